/* summary.h: what a run has cost and reached, and its summary.json. */
#ifndef LS_TRAIN_SUMMARY_H
#define LS_TRAIN_SUMMARY_H

#include <jansson.h>

#include "base/stats.h"
#include "train/counters.h"
#include "train/pace.h"
#include "train/session.h"

typedef struct ls_summary {
    double *steps;   /* seconds of the latest steps of this process */
    double *exposed; /* of each: waiting for other ranks, and summing, where nothing hid it */
    double *waiting; /* of that: waiting */
    double *sorted;  /* room for as many; a ring that is sorted would forget others than the oldest */
    size_t n_steps, cap;
    double compute_s, evaluate_s, checkpoint_s, data_s, wall_s; /* of this process, from its first step */
    double comm_s;        /* of compute_s: exchanging gradients, where nothing hid it */
    double rate;          /* samples per second, smoothed: for display */
    int64_t batch;        /* the usual one */
    ls_pace pace;         /* of all ranks */
    ls_metric_sums last;  /* of the newest validation */
    const char *ended_by; /* "end", "early_stop", "pause_after" or "request"; NULL: it goes on, or failed */
    char ended_why[256];  /* in words, of an early stop; "" */
    const char *tested;   /* which weights the test was with: "best" or "last"; NULL: there was none */
    int64_t tested_step;  /* and of which step they are */
    uint64_t weights;     /* hash of weights in pieces, after one step less than: */
    int64_t hashed_at;    /* 0: not known */
    double sent_bytes;    /* to other machines, by all ranks of this process's run; known at the end */
    json_t *init;         /* the weights that the run started from (train/init.h); NULL: none */
} ls_summary;

void ls_summary_release(ls_summary *s);
/* Seconds of a step, or of all steps. */
typedef struct ls_step_times {
    double all, exposed, waiting; /* of all: the exchange of gradients; of that: waiting */
} ls_step_times;
/* A step of n samples. */
void ls_summary_note_step(ls_summary *s, const ls_step_times *t, int64_t n);

/* The spread of the seconds of the latest steps (of `exposed`, `waiting` alike); NaN where there are none. */
ls_spread ls_summary_spread(const ls_summary *s, const double *latest);

/* The ledger of the run up to now: what counters hold of earlier processes, and this one. */
ls_ledger ls_summary_ledger(const ls_summary *s, const ls_counters *c);

/* summary.json of the run in `folder`; NULL: there is none that can be read. */
json_t *ls_summary_load(const char *folder);
/* The newest validation, and the weights the run started from, as its summary.json has them: a process that
 * resumes has none of its own yet. */
void ls_summary_recall(ls_summary *s, const char *folder);

/* {"name": mean, ...}; NULL when memory runs out.  Numbers that JSON does not have are null. */
json_t *ls_metrics_json(const ls_metric_sums *m);
/* The content of summary.json; `test` has no samples when there was no final test pass, `error` is NULL
 * unless the run failed. */
json_t *ls_summary_json(const ls_summary *s, const ls_counters *c, const ls_session *session,
                        const char *state, const ls_metric_sums *test, const char *error);

#endif
