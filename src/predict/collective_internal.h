/* collective_internal.h: what algorithms consist of: rounds of messages, or one exchange of all with all. */
#ifndef LS_PREDICT_COLLECTIVE_INTERNAL_H
#define LS_PREDICT_COLLECTIVE_INTERNAL_H

#include "predict/collective.h"
#include "predict/network_internal.h"

/* -- rounds (collective_rounds.c) -------------------------------------------------------------------------
 */

/* Who sends to whom in a round, of `members` that have numbers from 0. */
typedef enum lsi_pattern {
    LSI_SHIFT, /* i to i + distance, around */
    LSI_XOR,   /* i and i ^ distance, of those that are left after folding */
    LSI_FOLD, /* the first members, two by two, so that a power of two is left: the even one to the odd one */
    LSI_UNFOLD, /* and back */
    LSI_TREE,   /* those below `distance` to that much above */
    LSI_SCATTER /* multiples of 2 * distance to that much above */
} lsi_pattern;

typedef struct lsi_round {
    lsi_pattern pattern;
    int32_t distance;
    double bytes;  /* of a message */
    int32_t times; /* so many rounds alike, one after the other */
} lsi_round;

enum { LSI_ROUNDS_MOST = 72 };

/* The rounds of an algorithm over so many members. */
typedef struct lsi_rounds {
    lsi_round of[LSI_ROUNDS_MOST];
    int n;
    int32_t members;
    int32_t per_node; /* members of a machine: its ranks; 1 where machines are the members */
    int32_t abreast;  /* messages from a member to another at a time: where machines are, one of each rank */
    double wire;      /* of the bytes of a message, those that travel where it leaves its machine */
} lsi_rounds;

/* Bytes between machines over those within them. */
static inline double lsi_wire_of(const ls_transfer *t)
{
    return t->wire > 0 ? t->wire : 1;
}

/* Of a job's ranks; or of its machines, where those of a machine have come together first
 * (LS_ALGORITHM_HIERARCHICAL, and a barrier of LS_ALGORITHM_OURS, which has no rounds else). */
void lsi_rounds_make(lsi_rounds *r, const ls_transfer *t, int32_t ranks, int32_t per_node);
/* To whom member i sends; -1: to nobody. */
int32_t lsi_round_target(const lsi_round *r, int32_t members, int32_t i);

/* -- a job ------------------------------------------------------------------------------------------------
 */

/* Ranks on machines: `per_node` each, the last may have fewer. */
typedef struct lsi_job {
    const ls_network *n;
    const ls_job_placement *p; /* NULL: contiguous */
    int32_t ranks, per_node, nodes;
} lsi_job;

static inline int32_t lsi_job_ranks(const lsi_job *j, int32_t machine)
{
    const int32_t left = j->ranks - machine * j->per_node;

    return left < j->per_node ? left : j->per_node;
}

/* Adds b to a, one after the other. */
void lsi_cost_add(ls_transfer_cost *a, const ls_transfer_cost *b);
/* What a message takes between two ranks of a machine that all send and receive one. */
ls_transfer_cost lsi_message_inside(const ls_link *inside, double bytes);
/* The part of our exchange, or of a hierarchical one, that stays inside machines; nothing of others. */
ls_transfer_cost lsi_inside(const lsi_job *j, const ls_transfer *t);

/* Adds up rounds: each takes as long as its slowest message, and nobody begins one before that
 * (collective_shared.c). */
ls_status lsi_rounds_together(ls_transfer_cost *sum, double *spread_s, const lsi_job *j,
                              const lsi_rounds *all, ls_err *err) LS_MUST_CHECK;
/* Seconds of the same where each member goes on when its own messages are over (collective_paced.c).
 * `together`: what lsi_rounds_together says. */
ls_status lsi_rounds_paced(double *seconds, int64_t *visits, double together, const lsi_job *j,
                           const lsi_rounds *all, ls_err *err) LS_MUST_CHECK;

/* -- all with all (collective_ours.c) ---------------------------------------------------------------------
 */

/* Whether machines send to all others at once; else there are rounds. */
bool lsi_is_all_with_all(const ls_transfer *t);

/* Machine a sends from_own * home(a) + from_peer * home(b) bytes to machine b, where home(m) is how much of
 * the vector is summed by m, or is there at first. */
typedef struct lsi_ours {
    double from_own, from_peer;
    double slice;          /* bytes; 0: homes are as many bytes as machines have ranks */
    double longest;        /* bytes of a message, where homes are not cut into slices */
    double bytes, n_trips; /* of the vector, in the wire's format; there, or there and back */
    ls_transfer_kind kind;
} lsi_ours;

lsi_ours lsi_ours_make(const lsi_job *j, const ls_transfer *t);
double lsi_ours_home(const lsi_ours *o, const lsi_job *j, int32_t machine);
/* Bytes that the machine sends, or receives, whichever is more. */
double lsi_ours_sent(const lsi_ours *o, const lsi_job *j, int32_t machine);
/* Processor time of a rank for what its machine sends and receives. */
double lsi_ours_core(const lsi_ours *o, const lsi_job *j, double sent);

/* The time of the busiest link when all machines send so, and the longest latency of a way
 * (collective_loads.c). */
ls_status lsi_busiest_link(const lsi_ours *o, const lsi_job *j, double *seconds, double *latency_s,
                           int64_t *visits, ls_err *err) LS_MUST_CHECK;

#endif
