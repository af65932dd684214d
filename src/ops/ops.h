/* ops.h: the list of all ops, their attributes, and the functions that only the engine calls.
 *
 * Adding an op is one file with its ls_op and one line in LS_OPS; tables, tests and documentation follow from
 * the list.  Builders that trials call are declared in lockstep/ops.h; those below are for gradient rules,
 * layers and passes.  Every one of them returns an invalid value (and leaves the error in the graph) when the
 * shapes do not fit.
 *
 * Activations that a fusion pass may fold into a producer are named by ls_act; ops that can carry one have a
 * field `act`, which is LS_ACT_NONE in every graph that autodiff sees: fusion comes after differentiation. */
#ifndef LS_OPS_OPS_H
#define LS_OPS_OPS_H

#include "graph/graph.h"
#include "lockstep/ops.h"

/* clang-format off */
#define LS_OPS(X)          \
    /* element-wise */     \
    X(add) X(sub) X(mul) X(div) X(maximum) X(minimum) X(affine)                       \
    X(relu) X(relu_grad) X(leaky_relu) X(leaky_relu_grad) X(gelu) X(gelu_grad)        \
    X(tanh) X(tanh_grad) X(sigmoid) X(sigmoid_grad) X(exp) X(log) X(sqrt) X(rsqrt)    \
    X(square) X(abs) X(sign) X(softplus) X(copy) X(cast)                              \
    /* shape */            \
    X(fill) X(reshape) X(prefix) X(detach) X(transpose) X(slice) X(concat) X(pad)     \
    X(pad_adjoint) X(broadcast_to)                                                    \
    /* reductions */       \
    X(reduce_sum) X(reduce_max) X(reduce_max_grad)                                    \
    /* products */         \
    X(matmul) X(bias) X(conv2d) X(conv2d_dx) X(conv2d_dw) X(conv2d_dw_pooled)         \
    /* pooling, sampling */ \
    X(maxpool2d) X(maxpool2d_grad) X(avgpool2d) X(avgpool2d_grad)                     \
    X(upsample2d) X(upsample2d_grad)                                                  \
    /* norms */            \
    X(batch_norm) X(batch_norm_grad) X(instance_norm) X(instance_norm_grad)           \
    X(layer_norm) X(layer_norm_grad)                                                  \
    /* softmax, attention, losses, metrics */ \
    X(softmax) X(log_softmax) X(attention) X(attention_grad)                          \
    X(cross_entropy) X(cross_entropy_grad) X(chamfer) X(chamfer_grad) X(accuracy)     \
    X(gather_rows) X(scatter_rows)                                                    \
    /* random */           \
    X(dropout) X(random_normal) X(random_uniform) X(replay)                           \
    /* made by fusion */   \
    X(pointwise) X(bias_act_grad) X(reorder) X(convert)                               \
    X(self_attention) X(self_attention_grad) X(conv_max_dx) X(conv_max_dw)            \
    X(batch_norm_pool) X(batch_norm_pool_grad)                                        \
    /* optimisers */       \
    X(sgd) X(adam) X(rmsprop) X(lars) X(lamb) X(accumulate) X(assign) X(store_rows)   \
    X(all_finite) X(unless) X(either) X(rescale)                                      \
    /* between ranks */    \
    X(all_reduce_leaf) X(all_reduce_start) X(all_reduce_wait)                         \
    X(reduce_scatter_start) X(reduce_scatter_wait)                                    \
    X(all_gather_start) X(all_gather_wait) X(broadcast_start) X(broadcast_wait)       \
    X(barrier)                                                                        \
    /* between host and device */ \
    X(to_host) X(to_device)
/* clang-format on */

#define LS_DECLARE_OP(name) extern const ls_op ls_op_##name;
LS_OPS(LS_DECLARE_OP)
#undef LS_DECLARE_OP

/* Every op, in the order of the list; *n receives their number. */
const ls_op *const *ls_ops_all(int *n);

typedef enum ls_act { LS_ACT_NONE, LS_ACT_RELU, LS_ACT_LEAKY, LS_ACT_TANH, LS_ACT_GELU } ls_act;
const char *ls_act_name(ls_act a);
double ls_act_eval(ls_act a, double slope, double x);                   /* act(x) */
double ls_act_grad_from_y(ls_act a, double slope, double y, double dy); /* none, relu, leaky, tanh only */

/* -- element-wise ---------------------------------------------------------------------------------------- */
ls_value ls_relu_grad(ls_value dy, ls_value y);                     /* dy where y > 0, else 0 */
ls_value ls_leaky_relu_grad(ls_value dy, ls_value y, double slope); /* dy where y > 0, else slope * dy */
ls_value ls_gelu_grad(ls_value dy, ls_value x);
ls_value ls_tanh_grad(ls_value dy, ls_value y);    /* dy * (1 - y*y) */
ls_value ls_sigmoid_grad(ls_value dy, ls_value y); /* dy * y * (1 - y) */
typedef struct ls_cast_attr {
    ls_dtype to;
} ls_cast_attr;

/* -- shape -----------------------------------------------------------------------------------------------
 * A negative axis counts from the end; the nodes hold it resolved. */
typedef struct ls_shape_attr {
    ls_shape to;
} ls_shape_attr;
typedef struct ls_axis_attr {
    int axis;
} ls_axis_attr;
typedef struct ls_fill_attr {
    ls_shape shape;
    ls_dtype dtype;
    double value;
} ls_fill_attr;
typedef struct ls_transpose_attr {
    int rank; /* entries of perm in use */
    int perm[LS_MAX_RANK];
} ls_transpose_attr;
typedef struct ls_slice_attr {
    int axis;
    int64_t start, length;
} ls_slice_attr;
typedef struct ls_prefix_attr {
    int64_t length;
} ls_prefix_attr;
/* The first `length` elements of a vector, a view: unlike those of ls_slice, they stay where they are. */
ls_value ls_prefix(ls_value x, int64_t length);
typedef struct ls_pad_attr {
    ls_pad_mode mode;
    int64_t pad[4]; /* top, left, bottom, right */
} ls_pad_attr;
/* The adjoint of ls_pad2d: zero pads are cut off, reflected ones added back where they came from. */
ls_value ls_pad2d_adjoint(ls_value dy, ls_pad_mode mode, int64_t top, int64_t left, int64_t bottom,
                          int64_t right);

/* -- reductions ------------------------------------------------------------------------------------------ */
typedef struct ls_reduce_attr {
    unsigned axes; /* only bits of dimensions that exist */
    bool keep;     /* reduced dimensions stay, with size 1 */
} ls_reduce_attr;
typedef struct ls_reduce_max_grad_attr {
    int axis; /* of the result */
    int64_t length;
} ls_reduce_max_grad_attr;
typedef struct ls_conv_max_attr {
    int64_t length; /* points of conv_max_dx's result */
} ls_conv_max_attr;
/* The adjoint of ls_reduce_max: a new axis of `length` entries, dy at the index and zeros elsewhere. */
ls_value ls_reduce_max_grad(ls_value dy, ls_value index, int axis, int64_t length);

/* -- products ------------------------------------------------------------------------------------------ */
/* Third input when fused: bias (N). */
typedef struct ls_matmul_attr {
    bool trans_a, trans_b;
    ls_act act;
    double slope;
} ls_matmul_attr;
typedef struct ls_conv_attr {
    int stride[2], dilation[2];
    int pad[4]; /* top, left, bottom, right: zeros */
    int groups;
    int64_t in[4]; /* shape of x: (N, C, H, W); conv2d fills it in, the gradients need it */
    int kernel[2]; /* of conv2d_dw's result */
    ls_act act;
    double slope;
} ls_conv_attr;
/* x (N, C, H, W), w (O, C/groups, KH, KW) -> y (N, O, HO, WO).  Third input when fused: bias (O). */
ls_value ls_conv2d(ls_value x, ls_value w, ls_conv_attr a);
/* The adjoint of conv2d in x: dy (N, O, HO, WO), w -> (a.in); a.in[1..3] must be set.  It *is* transposed
 * convolution, with w as (in channels, out channels / groups, KH, KW) seen from there. */
ls_value ls_conv2d_dx(ls_value dy, ls_value w, ls_conv_attr a);
/* The adjoint of conv2d in w: x, dy -> (O, C/groups, a.kernel[0], a.kernel[1]). */
ls_value ls_conv2d_dw(ls_value x, ls_value dy, ls_conv_attr a);

/* -- pooling and sampling
 * ---------------------------------------------------------------------------------------- */
typedef struct ls_pool_attr {
    int kernel[2], stride[2];
    int pad[4];     /* top, left, bottom, right */
    bool count_pad; /* avgpool2d: divide by the whole window (PyTorch's default) or by what lies inside */
    int64_t in[2];  /* H, W of x; the gradients need it */
    bool relu;      /* maxpool2d: max(0, .) on top, and its mask in the gradient (set by fusion) */
} ls_pool_attr;
/* Padding is smaller than the window and images are not empty: every window holds an element.  Of equal
 * elements the first wins, padding never does, a NaN always. Output 1 (u8): position of the maximum inside
 * the window, ky * KW + kx; windows of up to 255 elements. */
ls_value ls_maxpool2d(ls_value x, ls_pool_attr a);
/* dy, index[, y when relu] -> dx */
ls_value ls_maxpool2d_grad(ls_value dy, ls_value index, ls_pool_attr a);
/* conv2d_dw(x, maxpool2d_grad(dy, index)) without what lies between (set by fusion). */
typedef struct ls_conv_pool_attr {
    ls_conv_attr conv;
    ls_pool_attr pool;
} ls_conv_pool_attr;
ls_value ls_conv2d_dw_pooled(ls_value x, ls_value dy, ls_value index, ls_conv_pool_attr a);
ls_value ls_avgpool2d(ls_value x, ls_pool_attr a);
ls_value ls_avgpool2d_grad(ls_value dy, ls_pool_attr a);
typedef struct ls_upsample_attr {
    int factor;
} ls_upsample_attr;
ls_value ls_upsample2d_grad(ls_value dy, int factor); /* sums factor x factor blocks */

/* -- norms
 * ---------------------------------------------------------------------------------------------------------
 */
typedef struct ls_norm_attr {
    double eps;
    double momentum;       /* running = (1 - momentum) * running + momentum * batch */
    bool unbiased_running; /* feed n/(n-1) times the batch variance to the running variance */
    ls_act act;            /* set by fusion: y = act(norm(x) [+ residual]) */
    double slope;
    bool residual; /* set by fusion: the last input is added before act */
    bool by_beta;  /* set by fusion, in batch_norm_grad: the last input is beta in the place of y, whose sign
                      x, gamma and beta have, too; in instance_norm_grad: y is no input, x has its sign */
    bool sums;     /* set by fusion, in gradients with `residual`: the last input is added to dy */
} ls_norm_attr;
/* Gamma, beta, mean, invstd and running values are f32, or f64 beside an f64 x.  Gradients flow through y
 * only; they can be differentiated again, mean and invstd then counting as functions of x.  Statistics of no
 * elements are mean 0 and variance 0, and leave running values alone. */
/* Per channel (dimension 1) over the rest; rank 2 or 4.  x, gamma, beta, running_mean, running_var ->
 * y, mean, invstd, new running_mean, new running_var.  The caller advances the two running variables
 * (nn does).  Normalises with the biased variance. */
ls_value ls_batch_norm(ls_value x, ls_value gamma, ls_value beta, ls_value running_mean, ls_value running_var,
                       ls_norm_attr a);
/* dy, x, gamma, mean, invstd[, y when act != none; beta when by_beta] -> dx, dgamma, dbeta[, dresidual when
 * residual]. */
ls_value ls_batch_norm_grad(ls_value dy, ls_value x, ls_value gamma, ls_value mean, ls_value invstd,
                            ls_norm_attr a);
/* Made by fusion: maxpool2d(act(batch_norm)), without the map between them, and its gradient.  act is none,
 * relu or leaky_relu, in `norm`; `pool.relu` is not set.
 * batch_norm_pool: x, gamma, beta[, running_mean, running_var] -> y, mean, invstd[, new running values],
 * index (u8), x where the windows were won.
 * batch_norm_pool_grad: dy, x, gamma, beta, mean, invstd, index, x where the windows were won[, what is added
 * to dy when norm.sums] -> dx, dgamma, dbeta. */
typedef struct ls_norm_pool_attr {
    ls_norm_attr norm;
    ls_pool_attr pool;
} ls_norm_pool_attr;
/* Per sample and channel over H, W, no affine: x[, residual] -> y, mean (N, C), invstd (N, C). */
ls_value ls_instance_norm(ls_value x, ls_norm_attr a);
/* dy, x, mean, invstd[, y when act != none, unless by_beta] -> dx[, dresidual when residual]. */
ls_value ls_instance_norm_grad(ls_value dy, ls_value x, ls_value mean, ls_value invstd, ls_norm_attr a);
/* Over the last dimension: x (..., D), gamma (D), beta (D) -> y, mean (...), invstd (...). */
ls_value ls_layer_norm(ls_value x, ls_value gamma, ls_value beta, ls_norm_attr a);
/* dy, x, gamma, mean, invstd -> dx, dgamma, dbeta */
ls_value ls_layer_norm_grad(ls_value dy, ls_value x, ls_value gamma, ls_value mean, ls_value invstd,
                            ls_norm_attr a);

/* -- softmax, attention, losses, metrics
 * ------------------------------------------------------------------------------ */
typedef struct ls_attention_attr {
    double scale;
} ls_attention_attr;
/* q, k, v, out, lse, dout -> dq, dk, dv */
ls_value ls_attention_grad(ls_value q, ls_value k, ls_value v, ls_value out, ls_value lse, ls_value dout,
                           double scale);
ls_value ls_cross_entropy_grad(ls_value dloss, ls_value probs, ls_value labels);
/* dloss, p, q, index_p, index_q -> dp */
ls_value ls_chamfer_grad(ls_value dloss, ls_value p, ls_value q, ls_value index_p, ls_value index_q);
typedef struct ls_scatter_attr {
    int64_t n_rows;
} ls_scatter_attr;
/* The adjoint of ls_gather_rows: adds rows into zeros (n_rows, D); rows whose index lies outside are ignored.
 */
ls_value ls_scatter_rows(ls_value rows, ls_value index, int64_t n_rows);

/* -- random
 * ------------------------------------------------------------------------------------------------------------
 * `key` is the step's i32 (4) input {seed_lo, seed_hi, step, sample_base} (base/rng.h); `stream` names the
 * draws. */
typedef struct ls_random_attr {
    double p; /* dropout: probability of dropping; normal: standard deviation; uniform: unused */
    uint32_t stream;
    bool per_channel; /* dropout: one draw per sample and channel (dimension 1) */
    ls_shape shape;   /* random_*: result; dimension 0 counts samples */
} ls_random_attr;
/* Kept elements are scaled by 1/(1-p).  Element e of sample s is dropped when uniform(word(s, e)) < p.  Its
 * gradient is itself with the same stream: the mask is redrawn, never stored. */
ls_value ls_dropout(ls_value x, ls_value key, double p, bool per_channel, const char *stream);
ls_value ls_random_normal(ls_value key, ls_shape shape, double stddev, const char *stream);
ls_value ls_random_uniform(ls_value key, ls_shape shape, const char *stream); /* in [0, 1) */
typedef struct ls_replay_attr {
    uint32_t stream;
} ls_replay_attr;
/* Images of earlier updates in place of new ones, from pool (C, D), whose slots are empty where filled (C, 1)
 * is 0, and x (N, D): returns what is shown (N, D); output 1 is the slot where each image of x is to be
 * stored, or -1, output 2 its place in the update, or -1 where the slot is.  ops/replay.c has the rule. */
ls_value ls_replay_choice(ls_value pool, ls_value filled, ls_value x, ls_value key, const char *stream);

/* -- made by fusion
 * ------------------------------------------------------------------------------------------------------ */
#define LS_PW_MAX_STEPS  16
#define LS_PW_MAX_INPUTS 8
/* A chain of element-wise functions over tensors of one shape (or single elements), run in one pass over
 * memory. The result has the inputs' broadcast shape; every input has that shape or is a single element.
 * Registers 0..n_in-1 hold the inputs; step i writes register n_in + i; the last step is the result. */
typedef struct ls_pointwise_attr {
    int n_steps;
    struct {
        ls_pw pw;
        int a, b; /* registers; b unused (0) by unary functions */
        double p[2];
    } step[LS_PW_MAX_STEPS];
} ls_pointwise_attr;
/* The function that belongs to a code. */
double ls_pw_eval(ls_pw pw, double a, double b, const double *p);
bool ls_pw_is_binary(ls_pw pw);
const char *ls_pw_name(ls_pw pw);

/* dz = act'(y) * dy and its sum over everything but `axis`, in one pass: dy, y -> dz, dbias. */
typedef struct ls_bias_act_attr {
    ls_act act;
    double slope;
    int axis;
} ls_bias_act_attr;
/* The layout pass inserts it: same values, other layout. */
typedef struct ls_reorder_attr {
    const ls_layout *from, *to;
} ls_reorder_attr;

/* A part of the graph as one node (passes/regions.c), for devices that compute it sample by sample.  Its
 * kernels are only its backend's: it is not in LS_OPS.  Members are nodes of the same graph, dead there, in
 * an order in which inputs come first.  Input i of the region is value in[i] to its members, and output k is
 * their value out[k].  region_update: optimisers are among them, and variables get their next versions. */
extern const ls_op ls_op_region, ls_op_region_update;
typedef struct ls_region_attr {
    const ls_graph *g;
    int64_t samples;
    int n, n_in, n_out;
    const ls_node *const *members;
    const int32_t *in, *out;
} ls_region_attr;

/* -- optimisers
 * ------------------------------------------------------------------------------------------------------------
 * One node updates all parameters of a group.  Inputs: lr (scalar), loss_scale (scalar; gradients are divided
 * by it), t (i32 (1), number of updates so far), then n weights, n gradients, and the op's state tensors, n
 * of each. Outputs: t + 1, then n weights and the states in the same order; each takes over its input's
 * memory.  A loss scale of 0 says that the update is left out: all of them stay as they are, t too, whatever
 * the gradients. */
typedef struct ls_optim_attr {
    int n; /* parameters in the group */
    double momentum, weight_decay, beta1, beta2, eps;
    double alpha; /* rmsprop: decay of the mean square */
    double trust; /* lars: trust coefficient */
    bool nesterov;
    ls_adam_form form;
    bool more;  /* more nodes of the same update follow: the counter t stays as it is */
    bool later; /* it is not the first of them */
    /* Set by the pass `pieces` where so many ranks update the same memory together: this one updates piece
     * number `piece` of it.  0 pieces: alone. */
    int piece, pieces;
} ls_optim_attr;
/* States per parameter: sgd 1 if momentum != 0 else 0; adam 2 (m, v); rmsprop 1 (mean square) + 1 if
 * momentum; lars 1; lamb 2. */
int ls_optim_states(const ls_op *op, const ls_optim_attr *a);
/* Whether the new value of an element follows from that element's own alone, so that pieces of a parameter
 * can be updated by themselves.  False for ops that are no optimisers. */
bool ls_optim_by_element(const ls_op *op);
/* Whether it is an optimiser at all. */
bool ls_optim_is(const ls_op *op);

/* The next version of the variable `sum`: weight * gradient, added to what is there where keep is not 0. */
ls_value ls_accumulate(ls_value sum, ls_value gradient, ls_value keep, ls_value weight);
/* The next version of `variable` is a copy of `value`. */
ls_value ls_assign(ls_value variable, ls_value value);
/* The next version of `table` (V, D) has rows (N, D) at index (N); an index outside of it leaves that row
 * out. */
ls_value ls_store_rows(ls_value table, ls_value rows, ls_value index);

/* -- gradients that are not finite ------------------------------------------------------------------------
 */
typedef struct ls_all_finite_attr {
    int first; /* tensors before the first one */
} ls_all_finite_attr;
/* 0 if all n tensors are finite, else first + the number of the first that is not, counted from 1: f32. */
ls_value ls_all_finite(int n, const ls_value *x, int first);
/* x, or zeros where the number `found` is not 0. */
ls_value ls_unless(ls_value found, ls_value x);
/* a where the two numbers are equal, else b. */
ls_value ls_either(ls_value count, ls_value known, ls_value a, ls_value b);
enum { LS_REPORT_FOUND, LS_REPORT_SCALE, LS_RESCALE_REPORT }; /* what the host gets to know, f32 */
typedef struct ls_rescale_attr {
    bool counts, dynamic; /* updates that are left out are counted; the scale changes, too */
    int growth;           /* good steps in a row before it is doubled */
    double least, most;   /* bounds */
} ls_rescale_attr;
/* The loss scale after a step; ops/rescale.c has inputs, outputs and the rule. */
ls_value ls_rescale(int n_in, const ls_value *in, const ls_rescale_attr *a);

/* -- between ranks
 * ---------------------------------------------------------------------------------------------------------
 */

/* Of all collectives. */
typedef struct ls_collective_attr {
    int bucket; /* its number in the graph: exchanges are found by it */
    ls_group group;
    bool exact;     /* of sums: in fp32 between machines, whatever the wire is for gradients */
    int plain;      /* of sums: the last so many tensors are added up without the weight */
    int64_t shards; /* not 0: the sum follows the tree over so many, which were given by all_reduce_leaf */
    int ranks;      /* of the group, where each has a piece */
    int root;       /* of a broadcast */
    int at;         /* of a barrier: ls_barrier_at */
    bool carried;   /* of sums: a run starts it, and the next one waits for it (passes/carry.c) */
    int room;       /* not 0: where others come before and after it in the same memory (passes/rooms.c) */
} ls_collective_attr;

/* Whether what a wait brings is written by the wait itself, and not by the collective on its way. */
static inline bool ls_collective_copies(const ls_node *wait)
{
    return (wait->op->flags & LS_OP_COLLECTIVE) && ((const ls_collective_attr *)wait->attr)->room > 0;
}

/* The node at the beginning of a run that waits for what `start` has begun in the run before; NULL: the run
 * itself waits. */
const ls_node *ls_carried_wait(const ls_graph *g, const ls_node *start);

/* Every function adds two nodes, start and wait, and returns the first of n results (ls_graph_out finds the
 * others); `in` is room for n + 1 values.  Attributes that do not matter are 0; a bucket of -1 becomes the
 * next free one of the graph. */

/* The sums over ranks of weight * x[i]; of the last `plain` tensors, of x[i].  With `shards` x gives the
 * shapes alone, but for the plain ones: what is added up are the leaves. */
ls_value ls_all_reduce(ls_value weight, int n, const ls_value *x, ls_collective_attr attr, ls_value *in);
/* A shard's contribution to such a sum, weight * x[i]: the end of a plan for its gradients.  `shard` is its
 * number, a scalar.  Returns a token that nobody needs. */
ls_value ls_all_reduce_leaf(ls_value weight, ls_value shard, int n, const ls_value *x,
                            ls_collective_attr attr, ls_value *in); /* room for n + 2 */
/* The same sums, of which this rank gets piece number rank: ceil(count / ranks) elements of the flat tensor,
 * zeros behind its end. */
ls_value ls_reduce_scatter(ls_value weight, int n, const ls_value *x, ls_collective_attr attr, ls_value *in);
/* x[i] is this rank's piece, a vector; the result is the pieces of all ranks one after the other. */
ls_value ls_all_gather(int n, const ls_value *x, ls_collective_attr attr, ls_value *in);
/* The root's x[i]. */
ls_value ls_broadcast(int n, const ls_value *x, ls_collective_attr attr, ls_value *in);

/* A barrier of the ranks of a machine: none goes on before all have come. */
typedef enum ls_barrier_at { LS_BARRIER_BEFORE_UPDATE, LS_BARRIER_AFTER_UPDATE } ls_barrier_at;
const char *ls_barrier_name(int at); /* "before an update" */
/* Its token, which nobody needs to read: edges say what comes before and after. */
ls_value ls_barrier(ls_graph *g, ls_barrier_at at);

#endif
