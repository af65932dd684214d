/* document.h: a plan written down: everything that can be said of it, in the order in which it runs.
 *
 * Made once from a compiled plan; the listing and the JSON of `lockstep plan`, its picture, differences
 * between plans, profiles, traces and `bench --export` are made from it.  It keeps nothing of the plan and
 * knows nothing of files.  All that it points to is its arena's.  Nodes and values go by their places in the
 * lists below; `id` is the graph's number, for messages. */
#ifndef LS_EXEC_DOCUMENT_H
#define LS_EXEC_DOCUMENT_H

#include "base/alloc.h"
#include "exec/peers.h"
#include "lockstep/plan.h"

/* What a node reads or makes. */
typedef struct ls_doc_value {
    int32_t id;
    const char *name;           /* of inputs, variables and fetched values; else "" */
    const char *kind;           /* "input", "variable" or "node" */
    const char *dtype, *layout; /* "f32"; "plain" */
    const char *category;       /* "activations", "weights", ... */
    ls_shape shape;
    size_t bytes;
    int32_t node;   /* that makes it, views looked through; -1: none */
    int32_t buffer; /* that it lies in; -1: none */
    bool fetch;     /* the host reads it after a step */
} ls_doc_value;

typedef struct ls_doc_node {
    int32_t id;
    const char *op, *attributes; /* "conv2d"; "stride=1x1 ...", or "" */
    const char *layer;           /* "layer1.0.conv1", or "" */
    const char *impl;            /* the kernel that was chosen */
    const char *queue;           /* "compute", "comm", "copy", "host" */
    bool carried;                /* of the update that the run before has left to this one */
    bool backward;
    bool waits;   /* may wait for other ranks */
    bool updates; /* is there to write the next version of a variable */
    double flops, bytes;
    size_t scratch_bytes;
    int n_in, n_out;
    int32_t *in, *out; /* values */
    double seconds;    /* measured, of one run: the node */
    double progress_s; /* the same: work on exchanges that are under way, after it */
} ls_doc_node;

typedef struct ls_doc_edge {
    int32_t from, to; /* nodes; from comes first */
    const char *kind; /* "value", or by control: "overwrite", "barrier", "commit", "hold",
                         "turn" */
    int32_t value;    /* that is read; -1 by control */
} ls_doc_edge;

/* Memory that something lies in. */
typedef struct ls_doc_buffer {
    const char *kind; /* "arena", "scratch", "variable", "exchange" */
    const char *name; /* of variables; else "" */
    const char *category;
    const char *home;     /* ls_home_name: "rank", "machine" (kept once by all its ranks), "sharded" */
    size_t offset, bytes; /* in the arena, or in the exchange's buffer */
    int32_t exchange;     /* number of the exchange's buffer; -1: none */
    int32_t first, last;  /* nodes between which it is in use, both included; variables: all */
} ls_doc_buffer;

/* Ranks working together: a barrier, or an exchange from its start to the end of its wait. */
typedef struct ls_doc_collective {
    const char *kind;   /* ls_collective_name: "all_reduce", "barrier", ... */
    int32_t bucket;     /* -1: none */
    size_t bytes;       /* that each rank gives */
    int32_t start, end; /* nodes; the same for a barrier */
    int32_t n_after;
    int32_t *after; /* nodes that it waits for on this rank */
} ls_doc_collective;

/* A pass that the plan has been through (passes/list.h), or what was done between two. */
typedef struct ls_doc_pass {
    const char *name, *leaves;
    int32_t nodes, edges; /* that there are afterwards: live nodes, and edges by control */
    double seconds;
} ls_doc_pass;

typedef struct ls_document {
    ls_arena *arena;
    const char *part; /* "step", "gradients", "update", "evaluation" */
    int stage;
    int64_t batch, runs; /* samples; how often it runs in a step */
    ls_doc_node *nodes;  /* in the order in which they run */
    int32_t n_nodes;
    ls_doc_value *values; /* that nodes read or make, and all inputs */
    int32_t n_values;
    ls_doc_edge *edges;
    int32_t n_edges;
    ls_doc_buffer *buffers;
    int32_t n_buffers;
    ls_doc_collective *collectives; /* in the order in which they start */
    int32_t n_collectives;
    ls_doc_pass *passes; /* in the order in which they ran; none of a document that was read from a file */
    int32_t n_passes;
    size_t arena_bytes;
    ls_plan_memory memory;
    double flops;
    uint64_t hash;
} ls_document;

/* Release in any case. */
ls_status ls_document_make(ls_document *d, const ls_plan *p, ls_err *err) LS_MUST_CHECK;
void ls_document_release(ls_document *d);

/* Bytes of a rank in use while node `at` runs, by category (LS_CAT_N of them, graph/graph.h), variables and
 * exchanges included. */
void ls_document_memory_at(const ls_document *d, int32_t at, double *by_category);

#endif
