/* plan_internal.h: the inside of a plan, shared by the files of exec. */
#ifndef LS_EXEC_PLAN_INTERNAL_H
#define LS_EXEC_PLAN_INTERNAL_H

#include "exec/collectives.h"
#include "exec/state.h"
#include "exec/workspace.h"
#include "passes/list.h"

typedef struct lsi_step {
    ls_kernel kernel;
    ls_call call;
    ls_stream stream;
    const ls_node *node;
    double seconds, progress; /* of a run, measured (profile.h): the node, and exchanges behind it */
} lsi_step;

enum { LSI_BETWEEN_RUNS = -1 }; /* in the place of a node: none runs */

struct ls_plan {
    ls_graph *graph;
    ls_device *dev;
    ls_state *state;
    ls_peers *peers; /* NULL: one rank */
    ls_schedule schedule;
    struct lsi_queued *queued; /* NULL: the device has no queues, and nodes run where they are called */
    ls_memory memory;
    ls_buffer kept;           /* the arena's first part: inputs and fetched values */
    lsi_workspace *workspace; /* the rest, which it has in turn with others; NULL: it has not joined them */
    int *state_index;         /* per variable: its entry of the state */
    ls_buffer staging;        /* of values that the host's nodes share with a device that has queues */
    lsi_step *steps;          /* schedule.n of them */
    void **pointers;          /* in/out arrays of all calls, one block */
    ls_operand *operands;     /* the same of collectives, as stretches of buffers */
    ls_buffer *exchanged;     /* of those that lie where ranks exchange them */
    ls_tensor *inputs, *fetches;
    ls_buffer *borrowed; /* of fetched ones that lie there */
    int n_inputs, n_fetches;
    size_t state_bytes[LS_CAT_N];
    uint64_t hash;
    ls_pass_notes notes; /* of how it was made */
    ls_failure failure;  /* the first of inputs that were written and of kernels that ran */
};

/* Writes the addresses of all operands anew, after memory has moved; it is not running. */
void lsi_plan_resolve(ls_plan *p);

/* Whether its time follows from what it computes; else it does from the bytes that it moves. */
bool lsi_node_computes(const ls_graph *g, const ls_node *n);

/* Why what was computed is worthless, if it is. */
ls_status lsi_plan_outcome(const ls_plan *p, ls_err *err) LS_MUST_CHECK;

/* Runs a node here and now.  Once the plan has failed, collectives end for all ranks, with why. */
void lsi_plan_run_node(ls_plan *p, const lsi_step *s);

/* -- devices with queues (queued.c, flights.c) ------------------------------------------------------------
 */

/* When the plan is complete; released in any case, after whatever the device still does for the plan. */
ls_status lsi_queued_make(ls_plan *p, ls_err *err) LS_MUST_CHECK;
void lsi_queued_release(ls_plan *p);
/* Addresses have changed: what was recorded of a run is so no more. */
void lsi_queued_forget(ls_plan *p);
/* One step: when it returns, the host's part is done and the device knows the rest.  `note` may be NULL; with
 * it the step is over when it returns. */
ls_status lsi_queued_run(ls_plan *p, ls_plan_note note, void *ctx, ls_err *err) LS_MUST_CHECK;
/* Waits until all that was fed is taken, for a run that does not come. */
void lsi_queued_take_inputs(ls_plan *p);
/* Writes an input for the next run.  False: it is too large to be kept on its way, or the room is used up. */
bool lsi_queued_write(ls_plan *p, const ls_tensor *t, size_t offset, const void *from, size_t bytes);

#endif
