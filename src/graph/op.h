/* op.h: what the engine knows about an op.
 *
 * An op is one ls_op in one file of src/ops: its shape rule, its gradient written in other ops, its cost and
 * a readable reference kernel in double precision.  Backends may replace the kernel; nothing else. */
#ifndef LS_GRAPH_OP_H
#define LS_GRAPH_OP_H

#include "comm/collective.h"
#include "lockstep/graph.h"

typedef struct ls_op ls_op;
typedef struct ls_node ls_node;

/* What a shape rule sees and fills in.  `attr` is the node's own copy: a rule may complete it. */
typedef struct ls_infer {
    int n_in, n_out;
    const ls_dtype *in_dtype;
    const ls_shape *in;
    void *attr;
    ls_dtype *out_dtype; /* preset to the dtype of input 0 (f32 without inputs) */
    ls_shape *out;
} ls_infer;

/* What a gradient rule sees.  It sets din[i] for every i with want[i]; leaving it invalid means zero.
 * dout[k] is invalid where no gradient flows into output k (at least one is valid). */
typedef struct ls_grad_call {
    ls_graph *g;
    const void *attr;
    int n_in, n_out;
    const ls_value *in, *out, *dout;
    const bool *want;
    ls_value *din;
} ls_grad_call;

/* A tensor as the reference kernels see it: row-major, widened to double whatever its dtype. */
typedef struct ls_ref_tensor {
    double *d;
    ls_shape shape;
    int64_t count;
} ls_ref_tensor;

typedef struct ls_ref_call {
    int n_in, n_out;
    const ls_ref_tensor *in;
    const ls_ref_tensor *out; /* out[k].d never overlaps an input */
    const void *attr;
} ls_ref_call;

/* Element-wise ops name the function they compute, so that chains of them can be fused into one kernel. */
typedef enum ls_pw {
    LS_PW_NONE, /* not element-wise */
    LS_PW_ADD,
    LS_PW_SUB,
    LS_PW_MUL,
    LS_PW_DIV,
    LS_PW_MAX,
    LS_PW_MIN,
    LS_PW_AFFINE, /* p[0] * a + p[1] */
    LS_PW_RELU,
    LS_PW_RELU_GRAD, /* a where b > 0, else 0 */
    LS_PW_LEAKY,     /* slope p[0] */
    LS_PW_LEAKY_GRAD,
    LS_PW_GELU,
    LS_PW_GELU_GRAD,
    LS_PW_TANH,
    LS_PW_TANH_GRAD, /* a * (1 - b*b) */
    LS_PW_SIGMOID,
    LS_PW_SIGMOID_GRAD, /* a * b * (1 - b) */
    LS_PW_EXP,
    LS_PW_LOG,
    LS_PW_SQRT,
    LS_PW_RSQRT,
    LS_PW_SQUARE,
    LS_PW_ABS,
    LS_PW_SIGN,
    LS_PW_SOFTPLUS,
    LS_PW_COPY,
    LS_PW_N
} ls_pw;

/* What runs one after the other.  Queues run side by side; edges between nodes of different ones are waited
 * for. */
typedef enum ls_queue {
    LS_QUEUE_COMPUTE,
    LS_QUEUE_COMM, /* collectives on their way */
    LS_QUEUE_COPY, /* between host and device */
    LS_QUEUE_FEED, /* inputs of the next run, while one is under way; it has no nodes */
    LS_QUEUE_HOST, /* what the host itself does while a device runs the others (passes/staging.c) */
    LS_QUEUE_N,
    LS_QUEUE_DEVICE_N = LS_QUEUE_HOST /* those that a device runs */
} ls_queue;

const char *ls_queue_name(ls_queue q); /* "compute", "comm", "copy", "feed", "host" */

/* Which part of a collective an op is; its kind is in ls_op. */
typedef enum ls_coll_op {
    LS_COLL_OP_WHOLE, /* all of it: a barrier */
    LS_COLL_OP_LEAF,  /* gives what one shard adds to the sum */
    LS_COLL_OP_START, /* makes a token */
    LS_COLL_OP_WAIT   /* input 0 is that token */
} ls_coll_op;

enum {
    LS_OP_VIEW = 1,    /* output 0 is input 0 under another shape or name, or its beginning: it shares its
                          memory */
    LS_OP_INPLACE = 2, /* output 0 may overwrite input 0 (or 1, for element-wise ops) when that dies here */
    LS_OP_RANDOM = 4,  /* draws random numbers: the last input is the step's random key */
    LS_OP_NO_GRAD = 8, /* gradients stop here by intention (detach, metrics, optimisers) */
    LS_OP_UPDATE = 16, /* writes the next version of a variable: see `alias` */
    LS_OP_COLLECTIVE = 32, /* all ranks take part: planned by the communicator, not by the device; attributes
                              are an ls_collective_attr (ops.h) */
    LS_OP_WAIT = 64,       /* may wait for other ranks: worth doing everything else before */
    LS_OP_EAGER = 128,     /* begins what takes time, or only frees memory: as soon as its inputs are there */
    LS_OP_MOVE = 256,      /* moves values for the sake of its readers: right before the first of them */
    LS_OP_EFFECT = 512,    /* runs for what it does, not for what it returns: never dead */
};

struct ls_op {
    const char *name;   /* stable: printed, hashed and used in messages */
    int min_in, max_in; /* max_in -1: no limit */
    int n_out;          /* or the result of count_out */
    size_t attr_size;   /* of the attribute struct in ops.h; 0 for none */
    unsigned flags;
    ls_queue queue;
    ls_collective collective; /* of LS_OP_COLLECTIVE: its kind, */
    ls_coll_op coll_op;       /* and what of it */
    ls_pw pw;

    int (*count_out)(int n_in, const void *attr); /* NULL: n_out */
    ls_status (*infer)(ls_infer *c, ls_err *err);
    void (*grad)(ls_grad_call *c); /* NULL: asking for its gradient is an error, unless LS_OP_NO_GRAD */
    /* Floating-point operations, a multiply-add being two.  NULL: one per element of output 0 for
     * element-wise ops, none for others. */
    double (*flops)(const ls_graph *g, const ls_node *node);
    /* Bytes moved; NULL: all inputs and outputs once. */
    double (*bytes)(const ls_graph *g, const ls_node *node);
    /* Whether input k is read, or there for its shape alone.  NULL: all are read. */
    bool (*reads)(const void *attr, int n_in, int k);
    /* The input whose memory output k must take over (the next version of a variable), or -1.  NULL: none. */
    int (*alias)(int n_in, const void *attr, int k);
    void (*ref)(const ls_ref_call *c); /* NULL only for LS_OP_VIEW and element-wise ops with pw_eval */
    /* Element-wise ops: the function on one element; b is unused by unary ops. */
    double (*pw_eval)(double a, double b, const double *p);
    /* Attributes as text ("stride=2x2 pad=1,1,2,2"), at most n bytes with the NUL: printed and hashed, so it
     * must name every attribute that changes the result.  NULL when attr_size is 0. */
    void (*attr_text)(const void *attr, char *buf, size_t n);
};

/* Attributes common to all element-wise ops. */
typedef struct ls_pw_attr {
    double p[2];
} ls_pw_attr;

#endif
