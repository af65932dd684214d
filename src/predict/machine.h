/* machine.h: what a machine makes of a plan's nodes: costs that were measured, or that follow from a
 * description.
 *
 * A machine is a file of format "lockstep-machine" (docs/predict.md): made from `bench --export` files, or
 * written by hand; or a preset. */
#ifndef LS_PREDICT_MACHINE_H
#define LS_PREDICT_MACHINE_H

#include "base/alloc.h"
#include "exec/document.h"
#include "lockstep/status.h"

enum { LS_MACHINE_FORMAT = 1, LS_MACHINE_POINTS = 16, LS_JITTER_N = 101 };

/* One node, as measured.  Known by op, attributes (without what depends on the batch), layer and direction.
 */
typedef struct ls_machine_node {
    const char *op, *attributes, *layer;
    bool backward;
    int n_points;
    double batch[LS_MACHINE_POINTS], seconds[LS_MACHINE_POINTS]; /* ascending batches */
    double flops, bytes;                                         /* of a sample, of the largest batch */
} ls_machine_node;

/* What nodes of one kind reach; seconds = launch_s + max(flops / flop_s, bytes / bytes_s). */
typedef struct ls_machine_op {
    const char *op;
    bool backward;
    double flop_s, bytes_s, launch_s;
    double error; /* relative, of nodes that it was made from */
} ls_machine_op;

/* Ranks of a machine slow one another. */
typedef struct ls_crowding {
    int32_t ranks;
    double factor; /* of a rank's computing, against one rank alone */
} ls_crowding;

typedef struct ls_machine {
    ls_arena *arena;
    const char *name, *about, *source, *device;
    int32_t threads, ranks_per_node, cores; /* of a rank; usual; 0: not said */
    double flop_s, bytes_s; /* peaks of one rank: what an op that nobody has measured is held to */
    double memory_bytes;    /* of a rank; 0: not said */
    ls_machine_op *ops;
    int32_t n_ops;
    ls_machine_node *nodes;
    int32_t n_nodes;
    ls_crowding *crowding; /* ascending ranks */
    int32_t n_crowding;
    double
        jitter[LS_JITTER_N]; /* percentiles 0 to 100 of step / median step of one rank; all 1: not measured */
    double rest_s;           /* of a step in no node */
    double error;            /* relative standard error of a step computed from its own nodes */
    bool own_exchange;       /* exchanges have no processor of their own: they take the rank's (CPUs) */
} ls_machine;

ls_status ls_machine_open(ls_machine *m, const char *preset_or_path, ls_err *err) LS_MUST_CHECK;
ls_status ls_machine_parse(ls_machine *m, const char *text, size_t length, const char *path,
                           ls_err *err) LS_MUST_CHECK;
void ls_machine_release(ls_machine *m); /* frees and zeroes */
const char *ls_machine_preset(int i, const char **about);

/* What it takes for a node: measured at this batch or between two (exact), beyond the measured batches, from
 * rates of its op, or from the peaks alone. */
typedef enum ls_cost_source {
    LS_COST_MEASURED,
    LS_COST_INTERPOLATED,
    LS_COST_EXTRAPOLATED,
    LS_COST_RATES,
    LS_COST_PEAKS,
    LS_COST_N
} ls_cost_source;

typedef struct ls_node_cost {
    double seconds, error; /* relative */
    ls_cost_source source;
} ls_node_cost;

/* `batch`: samples of one run of the plan that the node belongs to. */
ls_node_cost ls_machine_node_cost(const ls_machine *m, const ls_document *d, const ls_doc_node *node);
/* The factor for so many ranks on a machine: measured, between two measured ones, or beyond them by cores. */
double ls_machine_crowded(const ls_machine *m, int32_t ranks);

#endif
