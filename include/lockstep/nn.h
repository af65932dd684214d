/* nn.h: building a training step: inputs, layers, losses, and which loss trains which parameters.
 *
 * A step is written once, top to bottom, in the order in which its updates happen.  Layers are functions of
 * the step, a value and a name; their options are designated arguments:
 *
 *     ls_value h = ls_relu(ls_conv(s, x, "conv1", .out = 10, .kernel = 5));
 *
 * Parameters are found by name.  A layer whose name exists already uses the same parameters, so a network
 * function called twice inside the same scope is one network: that is how a GAN shows its discriminator two
 * batches.  After ls_minimise, layers use the updated parameters; values made before keep what they were made
 * of.  So "update D, then judge with the new D" is the order of two lines, and two losses built before two
 * calls of ls_minimise are a simultaneous update.
 *
 * Errors are sticky and carry the source line of the trial: check once, with ls_step_status.  A step belongs
 * to one thread. */
#ifndef LOCKSTEP_NN_H
#define LOCKSTEP_NN_H

#include "lockstep/graph.h"
#include "lockstep/ops.h"
#include "lockstep/plan.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* A step: what is computed for one update (or one batch of an evaluation), recorded for one size of batch. It
 * has a graph, and what a graph does not know: parameters by name, inputs that data fill, losses with their
 * optimisers, metrics, pictures.  It knows nothing of ranks and devices. */
typedef struct ls_step ls_step;
typedef enum ls_mode { LS_TRAIN, LS_EVAL } ls_mode;

/* How a step is built; {0} is a training step.  How it is spread over batches and ranks is decided when plans
 * are made of it: a trial need not know. */
typedef struct ls_build {
    ls_mode mode;
    bool images; /* with LS_EVAL: what ls_image shows, instead of metrics */
    /* Globs, separated by commas, of parameters that no ls_minimise trains: they get no gradient, no
     * optimiser state and no exchange.  One that matches nothing is an error.  NULL or "": none. */
    const char *freeze;
} ls_build;

/* -- the step ------------------------------------------------------------------------------------------- */

/* A step over `batch` samples of this rank; the caller owns *out. */
ls_status ls_step_create(ls_step **out, int64_t batch, ls_mode mode, ls_err *err) LS_MUST_CHECK;
ls_status ls_step_create_as(ls_step **out, int64_t batch, const ls_build *how, ls_err *err) LS_MUST_CHECK;
void ls_step_destroy(ls_step *s); /* accepts NULL; the graph goes with it unless it was taken */
int64_t ls_step_batch(const ls_step *s);
bool ls_step_training(const ls_step *s);
/* LS_OK, or the first error. */
ls_status ls_step_status(const ls_step *s, ls_err *err);
/* Hands over what was recorded, for ls_plan_compile_take: forward passes, and what is to be minimised.  The
 * step stays for the questions below; nothing more can be built with it. */
ls_graph *ls_step_graph_take(ls_step *s);

/* A line of a trial.  The macros below hand it on, so that an error can name the line. */
typedef struct ls_at {
    const char *file;
    int line;
} ls_at;
#define LS_AT      ((ls_at){__FILE__, __LINE__})
#define LS_HERE(v) ls_value_at((v), __FILE__, __LINE__)

/* Names made until the matching pop begin with this text and a dot; scopes nest. */
void ls_scope_push(ls_step *s, const char *fmt, ...) LS_PRINTF(2, 3);
void ls_scope_pop(ls_step *s);

/* What is built from begin to end is one unit of the model: a transformer block, a residual block, a layer.
 * Units are what memory is saved by: activations of a unit can be dropped and computed again
 * (train.recompute), and ranks can gather the weights of one at a time.  A mark changes nothing else, names
 * included; every call is a unit of its own, also of a network that is called twice.  `name` is for people;
 * NULL: the scope's.  Inside of a unit, further marks mean nothing. */
void ls_unit_begin(ls_step *s, const char *name);
void ls_unit_end(ls_step *s);

/* -- inputs --------------------------------------------------------------------------------------------- */

/* An input the host writes before a step; a dimension of -1 is the local batch.  The name is not scoped. */
ls_value ls_input_at(ls_step *s, ls_at at, const char *name, ls_dtype dtype, ls_shape shape);
#define ls_input(s, name, dtype, shape) ls_input_at((s), LS_AT, (name), (dtype), (shape))
/* What made-up data for the input look like: uniform in [lo, hi), whole numbers for integer inputs.  Inputs
 * without a range are filled with standard normal numbers (integers: zeros). */
void ls_input_range(ls_step *s, const char *name, double lo, double hi);
/* A constant, the same number everywhere; -1 is the local batch. */
ls_value ls_constant(ls_step *s, ls_shape shape, double value);
/* The step's random key, an input "rng" i32 (4) made on first use; see ls_step_write_rng. */
ls_value ls_random_key(ls_step *s);
/* Draws, new in every step; dimension 0 counts samples, -1 is the local batch. */
ls_value ls_draw_normal_at(ls_step *s, ls_at at, const char *name, ls_shape shape, double stddev);
#define ls_draw_normal(s, name, shape, stddev) ls_draw_normal_at((s), LS_AT, (name), (shape), (stddev))
ls_value ls_draw_uniform_at(ls_step *s, ls_at at, const char *name, ls_shape shape); /* in [0, 1) */
#define ls_draw_uniform(s, name, shape) ls_draw_uniform_at((s), LS_AT, (name), (shape))

/* -- initial values --------------------------------------------------------------------------------------
 * Which distribution a layer's weights start from; the bias starts from a constant (`bias`, 0 unless set)
 * except under the PyTorch rule.  The zero value is the PyTorch rule. */
typedef enum ls_init_how {
    LS_HOW_TORCH,        /* weight and bias uniform in +-1/sqrt(fan_in) */
    LS_HOW_GLOROT,       /* uniform in +-sqrt(6 / (fan_in + fan_out)): Keras */
    LS_HOW_KAIMING_OUT,  /* normal, std sqrt(2 / fan_out): ResNet */
    LS_HOW_NORMAL,       /* normal, std a */
    LS_HOW_TRUNC_NORMAL, /* normal, std a, redrawn beyond two std */
    LS_HOW_UNIFORM,      /* uniform in +-a */
    LS_HOW_CONST         /* a */
} ls_init_how;
typedef struct ls_init_rule {
    ls_init_how how;
    double a, bias;
} ls_init_rule;
#define LS_INIT_RULE(how_, a_, bias_) ((ls_init_rule){.how = (how_), .a = (a_), .bias = (bias_)})
#define ls_init_glorot(bias)          LS_INIT_RULE(LS_HOW_GLOROT, 0, bias)
#define ls_init_kaiming_out()         LS_INIT_RULE(LS_HOW_KAIMING_OUT, 0, 0)
#define ls_init_normal(std)           LS_INIT_RULE(LS_HOW_NORMAL, std, 0)
#define ls_init_trunc_normal(std)     LS_INIT_RULE(LS_HOW_TRUNC_NORMAL, std, 0)
#define ls_init_uniform(a)            LS_INIT_RULE(LS_HOW_UNIFORM, a, 0)
#define ls_init_const(a)              LS_INIT_RULE(LS_HOW_CONST, a, 0)

/* A parameter of its own: the current version of the one called `name`, made on first use. */
ls_value ls_parameter_at(ls_step *s, ls_at at, const char *name, ls_shape shape, ls_init_rule init);
#define ls_parameter(s, name, shape, init) ls_parameter_at((s), LS_AT, (name), (shape), (init))

/* -- layers ---------------------------------------------------------------------------------------------- */

/* Convolution, x (N, C, H, W) -> (N, out, H', W'); parameters weight (out, C / groups, KH, KW), bias (out).
 */
typedef struct ls_conv_args {
    int64_t out;                  /* channels; must be given */
    int kernel;                   /* square, or: */
    int kernel_h, kernel_w;       /*   both of these */
    int stride, dilation, groups; /* 0 means 1 */
    int pad;                      /* zeros on all sides, or: */
    int pads[4];                  /*   top, left, bottom, right, or: */
    bool same;                    /*   TensorFlow's SAME: ceil(size / stride) positions, the odd zero last */
    int64_t out_h, out_w;         /* ls_conv_transpose: size of the result; 0: the smallest that fits */
    bool no_bias;
    ls_init_rule init;
} ls_conv_args;
ls_value ls_conv_layer(ls_step *s, ls_at at, ls_value x, const char *name, ls_conv_args a);
#define ls_conv(s, x, name, ...) ls_conv_layer((s), LS_AT, (x), (name), (ls_conv_args){__VA_ARGS__})

/* Transposed convolution, the adjoint of ls_conv with the same kernel, stride and padding:
 * x (N, C, H, W) -> (N, out, H', W'); weight (C, out / groups, KH, KW).  With `same`, H' = H * stride. */
ls_value ls_conv_transpose_layer(ls_step *s, ls_at at, ls_value x, const char *name, ls_conv_args a);
#define ls_conv_transpose(s, x, name, ...)                                                                   \
    ls_conv_transpose_layer((s), LS_AT, (x), (name), (ls_conv_args){__VA_ARGS__})

/* Over the last dimension: x (N, C, L), or (N, C, 1, L), which stays so and saves reshapes in a chain;
 * weight (out, C / groups, kernel).  `pad` and pads[1], pads[3] apply to L. */
ls_value ls_conv1d_layer(ls_step *s, ls_at at, ls_value x, const char *name, ls_conv_args a);
#define ls_conv1d(s, x, name, ...) ls_conv1d_layer((s), LS_AT, (x), (name), (ls_conv_args){__VA_ARGS__})

/* x (..., in) -> (..., out); weight (out, in), bias (out), as in PyTorch. */
typedef struct ls_linear_args {
    int64_t out; /* must be given */
    bool no_bias;
    ls_init_rule init;
} ls_linear_args;
ls_value ls_linear_layer(ls_step *s, ls_at at, ls_value x, const char *name, ls_linear_args a);
#define ls_linear(s, x, name, ...) ls_linear_layer((s), LS_AT, (x), (name), (ls_linear_args){__VA_ARGS__})

/* Per channel (dimension 1) of x (N, C) or (N, C, H, W): parameters weight and bias, buffers running_mean and
 * running_var.  Training steps normalise by the batch and advance the buffers, evaluation steps normalise by
 * the buffers. */
typedef struct ls_batchnorm_args {
    double eps;          /* 0: 1e-5 */
    double momentum;     /* share of the new batch in the running statistics; 0: 0.1 */
    bool biased_running; /* feed the biased variance to running_var; PyTorch and TensorFlow feed n/(n-1) of it
                          */
    bool zero_weight;    /* weight starts at 0 instead of 1 */
} ls_batchnorm_args;
ls_value ls_batchnorm_layer(ls_step *s, ls_at at, ls_value x, const char *name, ls_batchnorm_args a);
#define ls_batchnorm(s, x, name, ...)                                                                        \
    ls_batchnorm_layer((s), LS_AT, (x), (name), (ls_batchnorm_args){__VA_ARGS__})

/* Per sample and channel of x (N, C, H, W); no parameters.  eps 0: 1e-5. */
ls_value ls_instancenorm_layer(ls_value x, double eps);
#define ls_instancenorm(x, eps) ls_instancenorm_layer(LS_HERE(x), (eps))

/* Over the last dimension, parameters weight and bias.  eps 0: 1e-5. */
ls_value ls_layernorm_layer(ls_step *s, ls_at at, ls_value x, const char *name, double eps);
#define ls_layernorm(s, x, name, eps) ls_layernorm_layer((s), LS_AT, (x), (name), (eps))

/* Dropout with probability p of dropping; the kept values are scaled by 1/(1-p).  Identity in evaluation.
 * The name picks the random stream; a second call with the same name draws anew. */
ls_value ls_drop_layer(ls_step *s, ls_at at, ls_value x, const char *name, double p, bool channels);
#define ls_drop(s, x, name, p) ls_drop_layer((s), LS_AT, (x), (name), (p), false)
/* The same for whole channels (dimension 1). */
#define ls_drop_channels(s, x, name, p) ls_drop_layer((s), LS_AT, (x), (name), (p), true)

/* Shows images of earlier steps in place of new ones, as GANs do to their discriminators: x (N, ...) goes
 * through a pool of `capacity` (1 to 256) samples.  While it is not full every sample is kept and shown; then
 * every second one on average is kept in the place of a random one, which is shown instead of it.  No
 * gradient.  The pool is part of the model's state and the same on all ranks; in evaluation there is none. */
ls_value ls_replay_layer(ls_step *s, ls_at at, ls_value x, const char *name, int64_t capacity);
#define ls_replay(s, x, name, capacity) ls_replay_layer((s), LS_AT, (x), (name), (capacity))

typedef struct ls_pool_args {
    int kernel;    /* must be given */
    int stride;    /* 0: like the kernel */
    int pad;       /* on all sides */
    bool skip_pad; /* ls_avg_pool: divide by what lies inside instead of by the whole window */
} ls_pool_args;
ls_value ls_max_pool_layer(ls_value x, ls_pool_args a);
#define ls_max_pool(x, ...) ls_max_pool_layer(LS_HERE(x), (ls_pool_args){__VA_ARGS__})
ls_value ls_avg_pool_layer(ls_value x, ls_pool_args a);
#define ls_avg_pool(x, ...) ls_avg_pool_layer(LS_HERE(x), (ls_pool_args){__VA_ARGS__})
/* (N, C, H, W) -> (N, C) */
ls_value ls_global_avg_pool_layer(ls_value x);
#define ls_global_avg_pool(x) ls_global_avg_pool_layer(LS_HERE(x))
/* (N, ...) -> (N, everything else) */
ls_value ls_flatten_layer(ls_value x);
#define ls_flatten(x) ls_flatten_layer(LS_HERE(x))

/* Rows of a table (rows, width), parameter weight; index: i32 (N) or (N, T) -> (N[, T], width). */
typedef struct ls_embedding_args {
    int64_t rows, width; /* must be given */
    ls_init_rule init;   /* the zero value is normal(1) here, as in PyTorch */
} ls_embedding_args;
ls_value ls_embedding_layer(ls_step *s, ls_at at, ls_value index, const char *name, ls_embedding_args a);
#define ls_embedding(s, index, name, ...)                                                                    \
    ls_embedding_layer((s), LS_AT, (index), (name), (ls_embedding_args){__VA_ARGS__})

/* Multi-head self-attention, x (N, T, D) -> (N, T, D): layers name.qkv (3 D, D) and name.proj (D, D). */
typedef struct ls_attention_args {
    int64_t heads; /* must divide D */
    ls_init_rule init;
} ls_attention_args;
ls_value ls_self_attention_layer(ls_step *s, ls_at at, ls_value x, const char *name, ls_attention_args a);
#define ls_self_attention(s, x, name, ...)                                                                   \
    ls_self_attention_layer((s), LS_AT, (x), (name), (ls_attention_args){__VA_ARGS__})

/* -- training -------------------------------------------------------------------------------------------- */

typedef enum ls_optimiser_rule { LS_SGD, LS_ADAM, LS_RMSPROP, LS_LARS, LS_LAMB } ls_optimiser_rule;
/* A field left 0 takes the rule's default: beta1 0.9, beta2 0.999, eps 1e-8 (lamb 1e-6), alpha 0.99, trust
 * 0.001; momentum and weight_decay stay 0.  For a beta of zero write 1e-30. */
typedef struct ls_optimiser {
    ls_optimiser_rule rule;
    const char *name; /* the learning rate is the input "lr.<name>"; NULL: "lr", shared by all such calls */
    double lr;        /* what ls_step_write_defaults puts there */
    double momentum, weight_decay, beta1, beta2, eps, alpha, trust;
    bool nesterov;
    ls_adam_form form; /* adam: PyTorch's, TensorFlow's, or with decoupled weight decay */
} ls_optimiser;

/* Updates every parameter that matches one of the space-separated globs in `params` by the gradient of
 * `loss` (a scalar), and makes the updated versions current.  An error when a glob matches nothing, or when
 * the loss does not depend on the current version of a matched parameter.  Parameters that ls_build.freeze
 * names stay as they are.  Does nothing in evaluation. */
void ls_minimise_at(ls_step *s, ls_at at, ls_value loss, const char *params, ls_optimiser o);
#define ls_minimise(s, loss, params, ...) ls_minimise_at((s), LS_AT, (loss), (params), __VA_ARGS__)

/* The gradient of the sum of y with respect to x, as values that can be differentiated again. */
ls_value ls_gradient_at(ls_at at, ls_value y, ls_value x);
#define ls_gradient(y, x) ls_gradient_at(LS_AT, (y), (x))

/* The host reads `v` under `name` after each step (ls_plan_fetch). */
void ls_metric_at(ls_step *s, ls_at at, const char *name, ls_value v);
#define ls_metric(s, name, v) ls_metric_at((s), LS_AT, (name), (v))

/* Images to look at: v (N, 1 or 3, H, W) with values from lo (black) to hi.  Every train.sample_every the
 * trainer shows those of the first test samples as one picture, a PNG file and in TensorBoard.  Calls with
 * the same name make one picture, each call a row of it.  Costs nothing in training: there it does nothing.
 */
void ls_image_at(ls_step *s, ls_at at, const char *name, ls_value v, double lo, double hi);
#define ls_image(s, name, v, lo, hi) ls_image_at((s), LS_AT, (name), (v), (lo), (hi))

/* Values to keep: v (N, ...) of evaluation samples.  `lockstep infer` writes them for every sample; the
 * trainer writes those of a validation, in the order of the samples, to <name>/epoch-<e>.npy in the run
 * directory (train.output_every, train.output_stride). Does nothing in training. */
void ls_output_at(ls_step *s, ls_at at, const char *name, ls_value v);
#define ls_output(s, name, v) ls_output_at((s), LS_AT, (name), (v))

/* What a classifier says of each sample: scores f32 (N, classes), the largest of which is its answer (logits
 * or probabilities), and the right label, i32 (N).  `lockstep infer` writes the scores; per-class accuracy
 * and the confusion matrix are counted from both.  At most once in a step.  Does nothing in training. */
void ls_scores_at(ls_step *s, ls_at at, ls_value scores, ls_value label);
#define ls_scores(s, scores, label) ls_scores_at((s), LS_AT, (scores), (label))

/* How far apart two distributions are: a metric of evaluations, the 1-Wasserstein distance between all values
 * of a (N, ...) and all values of b over all samples.  Values are counted in LS_DISTANCE_BINS equal bins from
 * lo to hi (those beyond in the outermost), so that it is exact to the width of one.  Does nothing in
 * training.
 */
void ls_distance_at(ls_step *s, ls_at at, const char *name, ls_value a, ls_value b, double lo, double hi);
#define ls_distance(s, name, a, b, lo, hi) ls_distance_at((s), LS_AT, (name), (a), (b), (lo), (hi))

/* -- questions about a built step, also after its graph was taken -------------------------------------- */

/* Elements of all parameters that match one of the space-separated globs; "*" for all. */
int64_t ls_step_count_params(const ls_step *s, const char *patterns);
int ls_step_param_tensors(const ls_step *s);
/* Elements of all parameters that ls_build.freeze keeps from being trained. */
int64_t ls_step_count_frozen(const ls_step *s);

/* What ls_output and ls_distance declared, as an evaluation step fetches it: "output/<name>" (N, ...), and
 * "distance/<name>/0" and "/1", scaled so that lo to hi is 0 to 1. */
#define LS_OUTPUT_PREFIX   "output/"
#define LS_DISTANCE_PREFIX "distance/"
/* What ls_scores declared. */
#define LS_SCORES       "scores/values"
#define LS_SCORES_LABEL "scores/label"
enum { LS_DISTANCE_BINS = 4096 };
typedef struct ls_distance_info {
    const char *name;
    double width; /* hi - lo */
} ls_distance_info;
/* Their number, and the list, which lives as long as the step. */
int ls_step_distances(const ls_step *s, const ls_distance_info **out);

/* The range that ls_input_range gave an input; false when there is none. */
bool ls_step_input_range(const ls_step *s, const char *name, double *lo, double *hi);
/* These write inputs of a plan; what fails is told by its next run (ls_plan_write_input). */
/* Writes every learning rate, and 1 to the loss scale. */
void ls_step_write_defaults(const ls_step *s, ls_plan *p);
/* Writes made-up data (see ls_input_range) to every input declared with ls_input. */
void ls_step_write_synthetic(const ls_step *s, ls_plan *p, uint64_t seed);
/* Writes the random key, if the plan has one: seed, number of the step, and the global index of the first
 * sample of the local batch. */
void ls_step_write_rng(ls_plan *p, uint64_t seed, uint32_t step, uint32_t sample_base);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

/* -- the trial's line for ops that are not layers --------------------------------------------------------
 * A macro is not expanded again inside itself, so each of these calls the function of the same name.  Where
 * there are several values, the line is recorded after all of them were evaluated: a value may be a call that
 * has lines of its own, and C does not say which argument comes first.  Define LS_PLAIN_OPS to have the
 * functions only (the layers themselves do: their line is the caller's). */
static inline ls_value ls_at2(ls_at at, ls_value (*f)(ls_value, ls_value), ls_value a, ls_value b)
{
    return f(ls_value_at(a, at.file, at.line), b);
}
static inline ls_value ls_matmul_at(ls_at at, ls_value a, ls_value b, bool trans_a, bool trans_b)
{
    return ls_matmul(ls_value_at(a, at.file, at.line), b, trans_a, trans_b);
}
static inline ls_value ls_attention_at(ls_at at, ls_value q, ls_value k, ls_value v, double scale)
{
    return ls_attention(ls_value_at(q, at.file, at.line), k, v, scale);
}

#ifndef LS_PLAIN_OPS
#define ls_add(a, b)                  ls_at2(LS_AT, ls_add, (a), (b))
#define ls_sub(a, b)                  ls_at2(LS_AT, ls_sub, (a), (b))
#define ls_mul(a, b)                  ls_at2(LS_AT, ls_mul, (a), (b))
#define ls_div(a, b)                  ls_at2(LS_AT, ls_div, (a), (b))
#define ls_maximum(a, b)              ls_at2(LS_AT, ls_maximum, (a), (b))
#define ls_minimum(a, b)              ls_at2(LS_AT, ls_minimum, (a), (b))
#define ls_affine(x, scale, shift)    ls_affine(LS_HERE(x), (scale), (shift))
#define ls_scale(x, scale)            ls_scale(LS_HERE(x), (scale))
#define ls_neg(x)                     ls_neg(LS_HERE(x))
#define ls_relu(x)                    ls_relu(LS_HERE(x))
#define ls_leaky_relu(x, slope)       ls_leaky_relu(LS_HERE(x), (slope))
#define ls_gelu(x)                    ls_gelu(LS_HERE(x))
#define ls_tanh(x)                    ls_tanh(LS_HERE(x))
#define ls_sigmoid(x)                 ls_sigmoid(LS_HERE(x))
#define ls_exp(x)                     ls_exp(LS_HERE(x))
#define ls_ln(x)                      ls_ln(LS_HERE(x))
#define ls_sqrt(x)                    ls_sqrt(LS_HERE(x))
#define ls_rsqrt(x)                   ls_rsqrt(LS_HERE(x))
#define ls_square(x)                  ls_square(LS_HERE(x))
#define ls_abs(x)                     ls_abs(LS_HERE(x))
#define ls_sign(x)                    ls_sign(LS_HERE(x))
#define ls_softplus(x)                ls_softplus(LS_HERE(x))
#define ls_cast(x, to)                ls_cast(LS_HERE(x), (to))
#define ls_reshape(x, to)             ls_reshape(LS_HERE(x), (to))
#define ls_detach(x)                  ls_detach(LS_HERE(x))
#define ls_transpose(x, ...)          ls_transpose(LS_HERE(x), __VA_ARGS__)
#define ls_slice(x, axis, at, length) ls_slice(LS_HERE(x), (axis), (at), (length))
#define ls_pad2d(x, mode, t, l, b, r) ls_pad2d(LS_HERE(x), (mode), (t), (l), (b), (r))
#define ls_broadcast_to(x, to)        ls_broadcast_to(LS_HERE(x), (to))
#define ls_reduce_sum(x, axes, keep)  ls_reduce_sum(LS_HERE(x), (axes), (keep))
#define ls_reduce_mean(x, axes, keep) ls_reduce_mean(LS_HERE(x), (axes), (keep))
#define ls_reduce_max(x, axis)        ls_reduce_max(LS_HERE(x), (axis))
#define ls_matmul(a, b, ta, tb)       ls_matmul_at(LS_AT, (a), (b), (ta), (tb))
#define ls_upsample2d(x, factor)      ls_upsample2d(LS_HERE(x), (factor))
#define ls_softmax(x)                 ls_softmax(LS_HERE(x))
#define ls_log_softmax(x)             ls_log_softmax(LS_HERE(x))
#define ls_attention(q, k, v, scale)  ls_attention_at(LS_AT, (q), (k), (v), (scale))
#define ls_cross_entropy(x, labels)   ls_at2(LS_AT, ls_cross_entropy, (x), (labels))
#define ls_accuracy(x, labels)        ls_at2(LS_AT, ls_accuracy, (x), (labels))
#define ls_chamfer(p, q)              ls_at2(LS_AT, ls_chamfer, (p), (q))
#define ls_gather_rows(table, index)  ls_at2(LS_AT, ls_gather_rows, (table), (index))
#define ls_bce_with_logits(x, target) ls_at2(LS_AT, ls_bce_with_logits, (x), (target))
#define ls_l1_loss(a, b)              ls_at2(LS_AT, ls_l1_loss, (a), (b))
#define ls_mse_loss(a, b)             ls_at2(LS_AT, ls_mse_loss, (a), (b))
#endif

#endif
