/* results.h: results of `lockstep bench --json`, read back from files: bytes from outside.
 *
 * A file holds what the program printed, or only its last line; several results are repeats of the same
 * measurement, in the order in which they were made, or, for who asks for that, of any. */
#ifndef LS_BENCH_RESULTS_H
#define LS_BENCH_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/stats.h"
#include "lockstep/status.h"

typedef struct ls_bench_result {
    char experiment[128], device[32], mode[16], settings[512]; /* settings: with spaces between them */
    char host[128], version[64], plan_hash[24],
        strategy[32]; /* strategy: "" of versions that did not say it */
    int64_t ranks, threads, hosts, cores, batch_per_rank, batch_global, steps; /* 0: not said */
    int64_t time; /* seconds since 1970 at the end */
    bool oversubscribed;
    int64_t beside;   /* processes that took the same steps meanwhile (--beside) */
    ls_spread spread; /* samples per second of all ranks, by steps; NaN: not said */
    ls_estimate rate; /* samples per second of all ranks, by batches of steps */
} ls_bench_result;

enum { LS_BENCH_RESULTS_MAX = 1000 };

typedef struct ls_bench_results {
    ls_bench_result *of;
    int n;    /* at least 1 when it was read */
    bool any; /* they need not be of one measurement */
    size_t capacity;
} ls_bench_results;

/* LS_DATA, with the number of the line, where there is something else than JSON, a result that makes no sense
 * or is of another measurement than the first, or none at all.  Release in any case. */
ls_status ls_bench_results_parse(ls_bench_results *r, const char *text, size_t length,
                                 ls_err *err) LS_MUST_CHECK;
/* The same of a file, which errors name. */
ls_status ls_bench_results_read(ls_bench_results *r, const char *path, ls_err *err) LS_MUST_CHECK;
/* The same, where a file may hold results of several measurements. */
ls_status ls_bench_results_read_any(ls_bench_results *r, const char *path, ls_err *err) LS_MUST_CHECK;
void ls_bench_results_release(ls_bench_results *r); /* frees and zeroes */

#endif
