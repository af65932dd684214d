/* collective.h: how long ranks take together: all-reduce, reduce-scatter, all-gather, broadcast, barrier.
 *
 * Two ways to the same question: a closed form, exact where no two ways share a link, and flows that share
 * links fairly (share.h).  Both give the time from when the last rank has started until the last one has what
 * it is to get, with nothing to compute meanwhile, and what it takes of each rank's processor. */
#ifndef LS_PREDICT_COLLECTIVE_H
#define LS_PREDICT_COLLECTIVE_H

#include "predict/network.h"

typedef enum ls_algorithm {
    LS_ALGORITHM_OURS, /* machine first; then every rank owns slices: all send theirs, and get the sums */
    LS_ALGORITHM_RING, /* over all ranks in their order */
    LS_ALGORITHM_RABENSEIFNER, /* halving, then doubling */
    LS_ALGORITHM_DOUBLING,     /* recursive doubling of the whole vector */
    LS_ALGORITHM_HIERARCHICAL, /* machine first, then a ring over machines */
    LS_ALGORITHM_N
} ls_algorithm;

const char *ls_algorithm_name(ls_algorithm a);
bool ls_algorithm_from(const char *name, ls_algorithm *out);

typedef enum ls_transfer_kind {
    LS_TRANSFER_ALL_REDUCE,
    LS_TRANSFER_REDUCE_SCATTER,
    LS_TRANSFER_ALL_GATHER,
    LS_TRANSFER_BROADCAST,
    LS_TRANSFER_BARRIER,
    LS_TRANSFER_N
} ls_transfer_kind;

const char *ls_transfer_name(ls_transfer_kind k);
bool ls_transfer_from(const char *name, ls_transfer_kind *out);

/* `bytes`: of the whole vector, on the wire's format; of an all-gather what every rank has in the end. */
typedef struct ls_transfer {
    ls_transfer_kind kind;
    ls_algorithm algorithm;
    double bytes;
} ls_transfer;

typedef struct ls_transfer_cost {
    double seconds;    /* latency and wire, with what the slowest of both takes */
    double core_s;     /* of each rank's processor */
    double wire_bytes; /* that the busiest machine sends */
    double latency_s;  /* of `seconds`, what does not depend on bytes */
} ls_transfer_cost;

/* In closed form.  `ranks` of which `per_node` lie on a machine (the last may have fewer). */
ls_transfer_cost ls_transfer_closed(const ls_network *n, const ls_transfer *t, int32_t ranks,
                                    int32_t per_node);
/* With links shared; LS_NOMEM.  For LS_ALGORITHM_OURS the rounds are bounded by the busiest link. */
ls_status ls_transfer_shared(const ls_network *n, const ls_transfer *t, const ls_placement *p,
                             ls_transfer_cost *out, ls_err *err) LS_MUST_CHECK;

/* -- flows (share.c) --------------------------------------------------------------------------------------
 */

typedef struct ls_flow {
    int32_t from, to; /* machines in the network */
    double bytes;
} ls_flow;

/* Seconds until the last flow has ended when all begin at once and share links max-min fairly, latency of the
 * last one included. */
ls_status ls_flows_time(const ls_network *n, int32_t nodes, const ls_flow *flows, int64_t n_flows,
                        double *seconds, ls_err *err) LS_MUST_CHECK;

#endif
