/* graph.h (internal): the inside of a graph, for ops, passes, backends and the executor.
 *
 * Values and nodes are numbered in the order they were made, which is a topological order.  What must come
 * before what is said by edges: by value (a node reads what another made) and by control (ls_edge).  Nobody
 * but the scheduler makes an order of them.  Everything lives in the graph's arena.  Passes mark nodes dead
 * and append new ones; they never renumber. */
#ifndef LS_GRAPH_GRAPH_H
#define LS_GRAPH_GRAPH_H

#include "base/alloc.h"
#include "graph/op.h"
#include "tensor/layout.h"

typedef struct ls_src {
    const char *file; /* NULL: unknown */
    int line;
} ls_src;

typedef enum ls_value_kind {
    LS_VALUE_NODE,  /* made by a node */
    LS_VALUE_INPUT, /* written by the host before a step */
    LS_VALUE_VAR,   /* first version of a variable: lives across steps */
    LS_VALUE_GONE   /* an input that nobody needs any more: the next rewriting leaves it behind */
} ls_value_kind;

/* What a value's memory is booked as in the plan's table. */
typedef enum ls_category {
    LS_CAT_ACTIVATION,
    LS_CAT_WEIGHT,
    LS_CAT_GRADIENT,
    LS_CAT_OPTIMIZER,
    LS_CAT_SCRATCH,
    LS_CAT_COMM,
    LS_CAT_N
} ls_category;

const char *ls_category_name(ls_category c); /* as in the JSON of `plan`: "weights", "gradients", ... */

typedef struct ls_vinfo {
    ls_dtype dtype;
    ls_shape shape;
    const ls_layout *layout;
    ls_value_kind kind;
    ls_category category;
    int32_t node, out; /* producer and which of its outputs; node is -1 for inputs and variables */
    int32_t var;       /* the variable this value is a version of, or -1 */
    const char *name;  /* of inputs, variables and fetched values; else NULL */
    bool fetch;        /* the host reads it after a step */
    int32_t buffer; /* the buffer of a collective that it lies in, or -1: memory of the plan or a variable */
    size_t at;      /* where in that buffer, in bytes; of a staged value: in the plan's staging memory */
    bool staged;    /* it lies in memory of the host's, beside a device that has its own (passes/staging.c) */
} ls_vinfo;

struct ls_node {
    const ls_op *op;
    int32_t id;
    int n_in, n_out;
    int32_t *in, *out; /* value numbers */
    void *attr;
    ls_src src;
    const char *scope; /* the layer it belongs to, e.g. "conv1"; "" outside of layers */
    ls_queue queue;    /* its op's, unless the host runs it beside a device */
    bool backward;     /* made by autodiff */
    bool prompt;       /* of what may wait for ranks: at its position, not when nothing else is left to do */
    bool carried; /* it belongs to the update that the run before has left to this one (passes/carry.c) */
    bool kept;    /* needed for what it does, although nobody reads what it makes */
    bool dead;
    int32_t unit;     /* the unit that it belongs to, or whose gradient it is of: from 1 on; 0: none */
    int32_t loss;     /* the ls_minimise whose gradient it is of: from 1 on; 0: none, it is forward */
    int32_t after;    /* a value that it waits for without reading it (passes/hold.c), or -1 */
    int32_t position; /* where the program that the trial wrote has it: its number, or that of the node it
                         stands for.  Not an order: that is the scheduler's. */
};

/* Whether the node reads its input k, or has it for its shape alone. */
static inline bool ls_node_reads(const ls_node *n, int k)
{
    return n->op->reads == NULL || n->op->reads(n->attr, n->n_in, k);
}

/* What must come after something else although it reads nothing of it. */
typedef enum ls_edge_kind {
    LS_EDGE_OVERWRITE, /* from reads memory that `to`, or what `to` lets begin, writes over */
    LS_EDGE_BARRIER, /* one of the two is a barrier: `from` is over on all ranks before `to` begins on any */
    LS_EDGE_COMMIT,  /* `to` reads what several ranks write; `from` is the barrier that ends the writing */
    LS_EDGE_HOLD, /* `to` could run earlier, and would then take memory that is free until `from` is over */
    LS_EDGE_TURN  /* both start collectives, or both wait: on all ranks in this order */
} ls_edge_kind;

const char *ls_edge_kind_name(ls_edge_kind k); /* "overwrite", "barrier", "commit", "hold", "turn" */

typedef struct ls_edge {
    int32_t from, to; /* node numbers */
    ls_edge_kind kind;
} ls_edge;

typedef enum ls_var_role {
    LS_VAR_PARAM,
    LS_VAR_BUFFER, /* of the model, but not trained: running statistics */
    LS_VAR_OPTIMIZER,
    LS_VAR_ACCUMULATED /* gradients that wait for an update */
} ls_var_role;

typedef enum ls_init_kind {
    LS_INIT_CONST,       /* every element = a */
    LS_INIT_UNIFORM,     /* in [-a, a) */
    LS_INIT_NORMAL,      /* mean 0, standard deviation a */
    LS_INIT_TRUNC_NORMAL /* the same, redrawn beyond two standard deviations */
} ls_init_kind;

typedef struct ls_init {
    ls_init_kind kind;
    double a;
} ls_init;

/* Where a variable lives.  LS_HOME_MACHINE is a wish until a plan is compiled: it can be had where ranks of
 * a machine share memory and the device can update in pieces. */
typedef enum ls_home {
    LS_HOME_RANK,    /* every rank has its own: replicated */
    LS_HOME_MACHINE, /* the ranks of a machine keep it once, and each updates a piece of it */
    LS_HOME_SHARDED  /* the variable is this rank's piece of one that a group has; who reads all of it gathers
                        (passes/check_collectives.c) */
} ls_home;
const char *ls_home_name(ls_home h); /* "rank", "machine", "sharded" */

typedef struct ls_var {
    const char *name;
    ls_var_role role;
    ls_init init;
    int32_t first;   /* value at the start of a step */
    int32_t current; /* newest version: what ops added now should use */
    ls_home home;
    ls_shape whole; /* LS_HOME_SHARDED: the shape of what all pieces are together, */
    int pieces;     /* how many there are, */
    ls_group group; /* and whose */
    bool moved;     /* a buffer that shards change in this stage, or a sum of gradients (passes/split.c) */
} ls_var;

struct ls_graph {
    ls_arena *arena;
    ls_vinfo **values;
    int32_t n_values;
    size_t cap_values;
    ls_node **nodes;
    int32_t n_nodes;
    size_t cap_nodes;
    ls_var **vars;
    int32_t n_vars;
    size_t cap_vars;
    ls_edge *edges; /* control edges; edges by value are in the nodes */
    int32_t n_edges;
    size_t cap_edges;
    const char **units; /* their names; number n is units[n - 1] */
    int32_t n_units;
    size_t cap_units;
    int32_t n_losses;   /* that gradients have been made of for updates */
    int n_collectives;  /* each has a number of its own */
    uint64_t turns;     /* a hash of the collectives in their order (passes/turns.c); 0: there are none */
    uint64_t waits;     /* of those alone that a rank of any machine waits for, in their order */
    int n_stages;       /* of the step that it is a part of; 0 until passes/split.c has counted them */
    ls_src here;        /* source line of the ops being added */
    const char *scope;  /* layer of the ops being added */
    bool backward;      /* autodiff is adding ops */
    int32_t unit, loss; /* of the ops being added; 0: none */
    /* While the graph is being made anew: the numbers that values of the old one have in it; -1: not yet. */
    const int32_t *numbers;
    ls_err err; /* first error */
};

/* -- building ------------------------------------------------------------------------------------------- */

/* Adds a node and returns its output 0 (invalid when the shape rule refuses; the graph then holds the error).
 * `attr` is copied; NULL when the op has none. */
ls_value ls_graph_add(ls_graph *g, const ls_op *op, int n_in, const ls_value *in, const void *attr);
/* Output k of the node that made v. */
ls_value ls_graph_out(ls_value v, int k);

ls_value ls_graph_input(ls_graph *g, const char *name, ls_dtype dtype, ls_shape shape);
/* A new variable; its name must be new in the graph. */
ls_value ls_graph_var(ls_graph *g, const char *name, ls_var_role role, ls_dtype dtype, ls_shape shape,
                      ls_init init);
/* The current version of the variable, made on first use; an error when it exists as something else. */
ls_value ls_graph_variable(ls_graph *g, const char *name, ls_var_role role, ls_dtype dtype, ls_shape shape,
                           ls_init init);
/* A scalar f32 input, made on first use; an error when the name belongs to something else. */
ls_value ls_graph_scalar(ls_graph *g, const char *name);
/* The variable's number, or -1. */
int32_t ls_graph_find_var(const ls_graph *g, const char *name);
/* Declares `next`, an aliasing output of an op that read the current version, the new current version. */
void ls_graph_advance(ls_graph *g, int32_t var, ls_value next);
/* One more unit, a part of the model that memory is saved by (passes/recompute.c): every call of it counts.
 * Returns its number, which ls_graph.unit gives to nodes; 0, with the error in the graph, when memory runs
 * out. */
int32_t ls_graph_add_unit(ls_graph *g, const char *name);
/* Makes the host see `v` under `name` after each step. */
void ls_graph_fetch(ls_value v, const char *name);
/* Keeps the first error, prefixed by place and layer.  Returns an invalid value for convenience. */
ls_value ls_graph_fail(ls_graph *g, ls_status status, const char *fmt, ...) LS_PRINTF(3, 4);

/* -- looking -------------------------------------------------------------------------------------------- */

static inline ls_vinfo *ls_graph_value(const ls_graph *g, int32_t id)
{
    return g->values[id];
}
static inline const ls_shape *ls_node_in_shape(const ls_graph *g, const ls_node *n, int i)
{
    return &g->values[n->in[i]]->shape;
}
static inline const ls_shape *ls_node_out_shape(const ls_graph *g, const ls_node *n, int k)
{
    return &g->values[n->out[k]]->shape;
}
/* The name of unit number `unit`; "" of 0. */
static inline const char *ls_graph_unit(const ls_graph *g, int32_t unit)
{
    return unit > 0 ? g->units[unit - 1] : "";
}
/* The value whose memory `value` is in: itself, or what it is a view of. */
int32_t ls_graph_storage(const ls_graph *g, int32_t value);
double ls_node_flops(const ls_graph *g, const ls_node *n);
double ls_node_bytes(const ls_graph *g, const ls_node *n);
/* One number for what the graph computes: inputs and variables with their names, live nodes with attributes,
 * types, shapes and wiring, what is fetched under which name, control edges.  Before passes that ask the
 * device it is the same on all devices and ranks.  0, with the error in the graph, when memory runs out. */
uint64_t ls_graph_hash(ls_graph *g);
/* "conv2d stride=1x1 pad=0,0,0,0" into buf. */
void ls_node_text(const ls_node *n, char *buf, size_t size);

/* -- copying (passes that expand what a trial has recorded) -----------------------------------------------
 */

/* What a rewriting makes of node n: `in` are its inputs in the new graph.  Returns false to have it copied,
 * or true with all of `out` set.  An output that was a version of a variable becomes its newest again. */
typedef bool (*ls_rewrite)(void *ctx, ls_graph *to, const ls_node *n, const ls_value *in, ls_value *out);
/* Makes the graph anew, in the order in which it was made: what a rule adds stands where the node stood, so
 * that numbers stay a topological order and the program's.  Dead nodes stay behind.  Numbers of values,
 * nodes and variables are new afterwards.  For graphs without control edges. */
void ls_graph_rewrite(ls_graph *g, ls_rewrite rule, void *ctx);
/* The same, with all variables in the new graph before the rule is asked for the first time. */
void ls_graph_rewrite_declared(ls_graph *g, ls_rewrite rule, void *ctx);
/* The same, with all inputs there, too. */
void ls_graph_rewrite_fed(ls_graph *g, ls_rewrite rule, void *ctx);
/* A copy, with its error if it has one; the caller owns *out. */
ls_status ls_graph_clone(ls_graph **out, const ls_graph *g, ls_err *err) LS_MUST_CHECK;

/* -- changing (passes) ------------------------------------------------------------------------------------
 */

/* `to` comes after `from`; twice the same counts once. */
void ls_graph_order(ls_graph *g, int32_t from, int32_t to, ls_edge_kind kind);
/* The node n has the position of `old` in the program, and belongs to its unit. */
void ls_graph_stand_for(ls_node *n, const ls_node *old);
/* Every live node that reads `from` reads `to` instead; fetches and variables' current versions follow. */
void ls_graph_replace(ls_graph *g, int32_t from, int32_t to);
/* Number of live nodes that read each value, plus one for a fetch or a final variable version; the caller
 * provides n_values entries. */
void ls_graph_count_uses(const ls_graph *g, int32_t *uses);

#endif
