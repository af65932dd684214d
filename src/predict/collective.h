/* collective.h: how long ranks take together: all-reduce, reduce-scatter, all-gather, broadcast, barrier.
 *
 * Two ways to the same question: a closed form, exact where no two ways share a link, and flows that share
 * links fairly (below).  Both give the time from when the last rank has started until the last one has what
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

/* `bytes`: of the whole vector, as ranks have it; of an all-gather what every rank has in the end. */
typedef struct ls_transfer {
    ls_transfer_kind kind;
    ls_algorithm algorithm;
    double bytes;
    double wire; /* bytes between machines over those: 0.5 where fp32 travels as 16 bits; 0 stands for 1 */
} ls_transfer;

typedef struct ls_transfer_cost {
    double seconds;    /* latency and wire, with what the slowest of both takes */
    double core_s;     /* of each rank's processor */
    double wire_bytes; /* that the busiest machine sends */
    double latency_s;  /* of `seconds`, what does not depend on bytes */
    int64_t visits;    /* what the solver had to look at (ls_flow_work); 0 in closed form */
} ls_transfer_cost;

/* In closed form: what a machine sends at a time is slowed by its own link alone.  `ranks` of which
 * `per_node` lie on a machine (the last may have fewer). */
ls_transfer_cost ls_transfer_closed(const ls_network *n, const ls_transfer *t, int32_t ranks,
                                    int32_t per_node);
/* With links shared; LS_NOMEM.  Rounds of an algorithm come one after the other; LS_ALGORITHM_OURS has none,
 * all send to all at once, and takes as long as its busiest link. */
ls_status ls_transfer_shared(const ls_network *n, const ls_transfer *t, const ls_job_placement *p,
                             ls_transfer_cost *out, ls_err *err) LS_MUST_CHECK;

/* -- flows (share.c) --------------------------------------------------------------------------------------
 */

typedef struct ls_flow {
    int32_t from, to; /* machines in the network */
    int32_t count;    /* so many alike; 0 stands for 1 */
    double bytes;     /* of each */
} ls_flow;

/* What the solver did: for tests of its cost, and for who wonders. */
typedef struct ls_flow_work {
    int64_t classes; /* flows that are told apart: those that share the same slow links are one */
    int64_t solves;  /* how often rates were found anew */
    int64_t visits;  /* of a class at a link, over all of them */
} ls_flow_work;

/* Seconds until the last flow has ended when all begin at once and share links max-min fairly; each has its
 * latency in front.  `work` is added to; may be NULL. */
ls_status ls_flows_time(const ls_network *n, int32_t nodes, const ls_flow *flows, int64_t n_flows,
                        double *seconds, ls_flow_work *work, ls_err *err) LS_MUST_CHECK;

#endif
