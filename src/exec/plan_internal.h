/* plan_internal.h: the inside of a plan, shared by the files of exec. */
#ifndef LS_EXEC_PLAN_INTERNAL_H
#define LS_EXEC_PLAN_INTERNAL_H

#include "exec/peers.h"
#include "exec/state.h"
#include "passes/passes.h"

typedef struct lsi_step {
    ls_kernel kernel;
    ls_call call;
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
    int32_t (*waits)[LS_QUEUE_N]; /* per scheduled node (ls_pass_waits); NULL: queues follow the schedule */
    uint32_t runs;                /* so far, where the order of queues is drawn */
    ls_memory memory;
    ls_buffer arena;
    lsi_step *steps;      /* schedule.n of them */
    void **pointers;      /* in/out arrays of all calls, one block */
    ls_operand *operands; /* the same of collectives, as stretches of buffers */
    ls_buffer *exchanged; /* of those that lie where ranks exchange them */
    ls_tensor *inputs, *fetches;
    ls_buffer *borrowed; /* of fetched ones that lie there */
    int n_inputs, n_fetches;
    size_t state_bytes[LS_CAT_N];
    uint64_t hash;
    ls_stream stream; /* its failure: the first of inputs that were written and of kernels that ran */
};

/* Runs the i-th scheduled node and lets other ranks have what they need. */
void lsi_plan_run_node(ls_plan *p, int32_t i);
/* All of them, in an order that the device's seed, the run and the rank draw. */
void lsi_plan_run_drawn(ls_plan *p);

#endif
