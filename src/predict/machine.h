/* machine.h: what a machine makes of a plan's nodes: costs that were measured, or that follow from a
 * description.
 *
 * A machine is a file of format "lockstep-machine" (docs/predict.md): made from `bench --export` files, or
 * written by hand; or a preset.  It describes one rank: its threads or its GPU. */
#ifndef LS_PREDICT_MACHINE_H
#define LS_PREDICT_MACHINE_H

#include <jansson.h>

#include "base/alloc.h"
#include "exec/document.h"
#include "lockstep/status.h"

enum { LS_MACHINE_FORMAT = 1, LS_MACHINE_POINTS = 16, LS_JITTER_N = 101, LS_MACHINE_JITTERS = 8 };

/* A node with so many samples: seconds, and the arithmetic and bytes by which it is known again. */
typedef struct ls_machine_point {
    double batch, seconds, flops, bytes;
} ls_machine_point;

/* One node, as measured.  Known by op, attributes (without what depends on the batch), layer, direction and
 * the FLOPs and bytes of its points: several nodes of a plan may have the same words. */
typedef struct ls_machine_node {
    const char *op, *attributes, *layer;
    bool backward;
    int n_points;
    ls_machine_point point[LS_MACHINE_POINTS]; /* ascending batches */
} ls_machine_node;

/* What nodes of one kind reach; seconds = launch_s + max(flops / flop_s, bytes / bytes_s).  A rate of 0 does
 * not bound them. */
typedef struct ls_machine_op {
    const char *op;
    bool backward;
    double flop_s, bytes_s, launch_s;
    double error; /* relative, of nodes that it was made from */
} ls_machine_op;

/* Ranks of a machine slow one another; larger batches, whose values no longer fit caches, more. */
typedef struct ls_crowding {
    int32_t ranks;
    double batch;  /* of a rank, with which that was measured; 0: it goes for all */
    double factor; /* of the computing of the median rank, against one rank alone */
} ls_crowding;

/* How steps of about this length spread: percentiles 0 to 100 of step / median step of one rank, alone and
 * among others of its machine; all 1: not measured.  What disturbs for 10 ms makes a step of 3 ms four times
 * as long, and one of a second no longer. */
typedef struct ls_jitter {
    double step_s;
    double alone[LS_JITTER_N], crowded[LS_JITTER_N];
} ls_jitter;

/* A whole step of several ranks that was measured, beside what the machine and the network that was measured
 * with it say of such a step. */
typedef struct ls_together {
    const char *experiment;
    int32_t ranks, nodes;
    double batch; /* of a rank */
    double measured_s, computed_s;
} ls_together;

typedef struct ls_machine {
    ls_arena *arena;
    const char *name, *about, *source, *device;
    int32_t threads, ranks_per_node, cores; /* of a rank; usual; of a machine (0: not said) */
    double flop_s, bytes_s; /* peaks of one rank: what an op that nobody has measured is held to */
    double memory_bytes;    /* of a rank; 0: not said */
    ls_machine_op *ops;
    int32_t n_ops;
    ls_machine_node *nodes;
    int32_t n_nodes;
    ls_crowding *crowding; /* ascending ranks, and batches of as many ranks */
    int32_t n_crowding;
    /* Step of each rank of a full machine / step of the median one, ascending: ranks that compute alike are
     * not as fast as one another, as long as they run.  None: not measured. */
    double *uneven;
    int32_t n_uneven;
    double uneven_error; /* relative standard error of the slowest of them, from one run to another */
    ls_jitter jitter[LS_MACHINE_JITTERS]; /* ascending lengths */
    int32_t n_jitter;
    /* What a rank computes longer in a step for each byte of the vectors that its machine exchanges with
     * others, over the ranks of the machine: these take caches and clocks from what is computed. */
    double exchanging_s_per_byte;
    ls_together *together;
    int32_t n_together;
    double rest_s;     /* of a step in no node */
    double error;      /* relative standard error of a step computed from its own nodes */
    bool own_exchange; /* exchanges have no processor of their own: they take the rank's (CPUs) */
} ls_machine;

/* A preset, or a file when the word has a '/' or '.'.  LS_INVALID names the nearest preset, or the file, the
 * field, its value and what it must be.  Release in any case. */
ls_status ls_machine_open(ls_machine *m, const char *preset_or_path, ls_err *err) LS_MUST_CHECK;
/* From a text, called `path` in messages: an object of the format, or one that has it as "machine". */
ls_status ls_machine_parse(ls_machine *m, const char *text, size_t length, const char *path,
                           ls_err *err) LS_MUST_CHECK;
/* From `bench --export` files of one machine: several batches, and several numbers of ranks.  All are of one
 * device and one number of threads a rank; one of them at least is of one rank or of the fewest there are,
 * from which nodes are taken. */
ls_status ls_machine_from_exports(ls_machine *m, const char *const *paths, int n, ls_err *err) LS_MUST_CHECK;
void ls_machine_release(ls_machine *m); /* frees and zeroes */
/* As a file has it; NULL when memory runs out.  The caller's to json_decref. */
json_t *ls_machine_json(const ls_machine *m);
/* Preset i: its name, and what it is in a line; NULL behind the last. */
const char *ls_machine_preset(int i, const char **about);
/* The spread of steps of about so many seconds of a rank that shares the machine with so many others, or
 * alone: LS_JITTER_N percentiles, of the length that is nearest; NULL: steps were not measured one by one. */
const double *ls_machine_jitter(const ls_machine *m, int32_t ranks, double step_s);
/* The relative standard error of a step of several ranks whose costs are right: what steps that were measured
 * say of it, and before any was, what those of other machines did. */
double ls_machine_together_error(const ls_machine *m);
/* How fast rank i of so many on a machine is, against the median one. */
double ls_machine_uneven(const ls_machine *m, int32_t i, int32_t ranks);
/* The relative standard error of the slowest of so many. */
double ls_machine_uneven_error(const ls_machine *m, int32_t ranks);

/* What it takes for a node: measured at this batch, between two, beyond the measured batches, from rates of
 * its op, or from the peaks alone. */
typedef enum ls_cost_source {
    LS_COST_MEASURED,
    LS_COST_INTERPOLATED,
    LS_COST_EXTRAPOLATED,
    LS_COST_RATES,
    LS_COST_PEAKS,
    LS_COST_N
} ls_cost_source;

const char *ls_cost_source_name(ls_cost_source s);

typedef struct ls_node_cost {
    double seconds, error; /* relative */
    double launch_s;       /* of `seconds`, what does not become less where there is less to do */
    ls_cost_source source;
    int32_t op; /* of the machine's, by whose rates it was found; -1: by none */
} ls_node_cost;

/* Of one run of the node, which is one of `d`, whose batch counts. */
ls_node_cost ls_machine_node_cost(const ls_machine *m, const ls_document *d, const ls_doc_node *node);
/* The factor for so many ranks on a machine with so large batches: measured, between two measured ones, or
 * beyond them by cores. */
double ls_machine_crowded(const ls_machine *m, int32_t ranks, double batch);

#endif
