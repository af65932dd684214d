/* probe.h: what this machine can do at most, measured: the yardstick of `bench`.
 *
 * The probes run on `threads` threads for about a tenth of a second each and give the best of several rounds,
 * because a ceiling is what nothing disturbed. */
#ifndef LS_BENCH_PROBE_H
#define LS_BENCH_PROBE_H

#include "lockstep/status.h"

typedef struct ls_probe {
    double flop_s;   /* fp32 fused multiply-adds on the widest vectors, two operations each */
    double read_b_s; /* bytes per second read from memory, from a buffer larger than any cache */
    double copy_b_s; /* bytes per second copied, each read and written: counted twice */
    const char *isa; /* "avx512", "avx2" or "c" */
} ls_probe;

ls_status ls_probe_machine(int threads, ls_probe *out, ls_err *err) LS_MUST_CHECK;

#endif
