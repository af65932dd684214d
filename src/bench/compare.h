/* compare.h: which of two measurements is faster, as far as their spread allows to say. */
#ifndef LS_BENCH_COMPARE_H
#define LS_BENCH_COMPARE_H

#include "bench/interval.h"
#include "bench/results.h"

/* Where the interval comes from. */
typedef enum ls_compare_way {
    LS_COMPARE_STEPS,    /* single results: from the standard errors of their steps */
    LS_COMPARE_UNPAIRED, /* repeats: from how they scatter, on each side */
    LS_COMPARE_PAIRED,   /* repeats that were made in turns: from how the ratios of neighbours scatter */
} ls_compare_way;

enum { LS_COMPARE_FIELDS = 16 };

/* A field in which the two differ. */
typedef struct ls_compare_field {
    const char *name;
    char a[512], b[512];
    bool other; /* it makes them different measurements: not only the machine or the version differs */
} ls_compare_field;

typedef struct ls_bench_comparison {
    ls_interval ratio; /* rate of B over that of A; 95 % */
    ls_verdict verdict;
    ls_compare_way way;
    double rate_a, rate_b; /* geometric means over the repeats */
    ls_compare_field fields[LS_COMPARE_FIELDS];
    int n_fields;
    bool same; /* none of them is `other` */
    bool oversubscribed;
} ls_bench_comparison;

/* Both have at least one result. */
void ls_bench_compare(ls_bench_comparison *out, const ls_bench_results *a, const ls_bench_results *b);
/* Says how the interval was made. */
const char *ls_compare_way_text(ls_compare_way way);

#endif
