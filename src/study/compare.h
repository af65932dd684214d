/* compare.h: two studies of the same question: two machines, two versions, or two settings. */
#ifndef LS_STUDY_COMPARE_H
#define LS_STUDY_COMPARE_H

#include "study/study.h"

typedef struct ls_compared {
    int count, ranks;    /* count 0: all points together */
    ls_interval ratio;   /* rate of B over that of A; 95 % */
    ls_verdict verdict;  /* of B; LS_SAME when the interval holds 1 */
    bool oversubscribed; /* in one of the two */
    bool assumed;        /* one of the two has but one repeat: what runs differ by is assumed */
} ls_compared;

typedef struct ls_comparison {
    ls_study a, b;
    ls_compared of[LS_STUDY_COUNTS_MAX], all;
    int n;
    unsigned parts;      /* ls_study_part: in what they differ */
    ls_text differences; /* what differs: "version: 0.1.0 and 0.2.0"; NULL data: nothing */
} ls_comparison;

/* Loads both.  LS_INVALID with what differs when they do not ask the same question (settings, machine and
 * version may differ; `force`: anything may), or share no point.  Release in any case. */
ls_status ls_study_compare(ls_comparison *c, const char *a, const char *b, bool force,
                           ls_err *err) LS_MUST_CHECK;
void ls_comparison_release(ls_comparison *c);

ls_status ls_comparison_table(const ls_comparison *c, ls_text *out, ls_err *err) LS_MUST_CHECK;
/* The object of `scale --compare --json`. */
json_t *ls_comparison_json(const ls_comparison *c);

#endif
