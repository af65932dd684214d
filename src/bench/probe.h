/* probe.h: what this machine can do at most, measured: the yardstick of `bench`.
 *
 * Threads that share cores reach a core's peak one after another, so the sum of what each reaches at its best
 * is nobody's.  What counts is what all threads of a machine did in the same few milliseconds: time is cut
 * into slots that are the same for all its ranks, each rank says how much it did in each, and the best slot
 * of their sum is the machine's peak, because a ceiling is what nothing disturbed. */
#ifndef LS_BENCH_PROBE_H
#define LS_BENCH_PROBE_H

#include "comm/comm.h"

typedef struct ls_probe {
    double flop_s;   /* fp32 fused multiply-adds on the widest vectors, two operations each */
    double read_b_s; /* bytes per second read from memory, from a buffer larger than any cache */
    double copy_b_s; /* bytes per second copied, each read and written: counted twice */
    const char *isa; /* "avx512", "avx2" or "c" */
} ls_probe;

/* Collective; `comm` NULL: this process alone.  `threads` of every rank work at the same time, for about a
 * quarter of a second in all; *out is the same on all ranks: the sum over machines of what each reaches. */
ls_status ls_probe_machine(int threads, ls_comm *comm, ls_probe *out, ls_err *err) LS_MUST_CHECK;

/* -- parts ------------------------------------------------------------------------------------------------
 */

enum { LS_PROBE_FMA, LS_PROBE_READ, LS_PROBE_COPY, LS_PROBE_KINDS };
enum { LS_PROBE_SLOTS = 24, LS_MACHINE_NAME_MAX = 40 };
#define LS_PROBE_SLOT_S 0.003 /* about a time slice: some slots are undisturbed on a busy machine */

/* What a rank did in each slot, in operations or bytes. */
typedef struct ls_probe_work {
    char machine[LS_MACHINE_NAME_MAX]; /* ranks with the same one share its slots */
    float done[LS_PROBE_KINDS][LS_PROBE_SLOTS];
} ls_probe_work;

/* Credits `work` that was done from `t0` to `t1` (seconds since the first slot began) to the slots, each by
 * its share of that time; what lies outside of all slots is dropped. */
void ls_probe_credit(float slots[LS_PROBE_SLOTS], double t0, double t1, double work);
/* All ranks' work together: per machine the best slot of each kind, added up over machines.  Leaves
 * out->isa. */
void ls_probe_combine(const ls_probe_work *of, int ranks, ls_probe *out);

#endif
