/* ops.h: functions of tensors, as a trial calls them.
 *
 * Each adds one op (or a short chain) to the graph of its arguments and returns the result; when the shapes
 * do not fit, the result is invalid and the graph keeps the error.  Layers with parameters, pooling and norms
 * are in nn.h. */
#ifndef LOCKSTEP_OPS_H
#define LOCKSTEP_OPS_H

#include "lockstep/graph.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* -- element-wise ----------------------------------------------------------------------------------------
 * Binary ops broadcast like NumPy; both operands have the same dtype. */
ls_value ls_add(ls_value a, ls_value b);
ls_value ls_sub(ls_value a, ls_value b);
ls_value ls_mul(ls_value a, ls_value b);
ls_value ls_div(ls_value a, ls_value b);
ls_value ls_maximum(ls_value a, ls_value b);
ls_value ls_minimum(ls_value a, ls_value b);
ls_value ls_affine(ls_value x, double scale, double shift); /* scale * x + shift */
static inline ls_value ls_scale(ls_value x, double scale)
{
    return ls_affine(x, scale, 0.0);
}
static inline ls_value ls_neg(ls_value x)
{
    return ls_affine(x, -1.0, 0.0);
}
ls_value ls_relu(ls_value x);
ls_value ls_leaky_relu(ls_value x, double slope);
ls_value ls_gelu(ls_value x); /* x * Phi(x), the exact (erf) form */
ls_value ls_tanh(ls_value x);
ls_value ls_sigmoid(ls_value x);
ls_value ls_exp(ls_value x);
ls_value ls_ln(ls_value x); /* op "log" */
ls_value ls_sqrt(ls_value x);
ls_value ls_rsqrt(ls_value x);
ls_value ls_square(ls_value x);
ls_value ls_abs(ls_value x);
ls_value ls_sign(ls_value x);     /* -1, 0, 1 */
ls_value ls_softplus(ls_value x); /* log(1 + exp(x)) without overflow */
ls_value ls_copy(ls_value x);
/* To integers: towards zero, at the ends of the range where x lies outside it, 0 for NaN; to bool: x != 0. */
ls_value ls_cast(ls_value x, ls_dtype to);

/* -- shape -----------------------------------------------------------------------------------------------
 * These move elements of any type.  A negative axis counts from the end.  Builders return their argument
 * where nothing would change. */
ls_value ls_fill(ls_graph *g, ls_shape shape, ls_dtype dtype, double value);
ls_value ls_reshape(ls_value x, ls_shape to);       /* one dimension may be -1: whatever is left */
ls_value ls_detach(ls_value x);                     /* x, but no gradient flows through */
ls_value ls_transpose(ls_value x, const int *perm); /* dimension i of the result is dimension perm[i] of x */
ls_value ls_slice(ls_value x, int axis, int64_t start, int64_t length);
ls_value ls_concat(int n, const ls_value *x, int axis);
typedef enum ls_pad_mode { LS_PAD_ZERO, LS_PAD_REFLECT } ls_pad_mode;
/* Pads the last two dimensions; reflection does not repeat the edge and needs pad < size. */
ls_value ls_pad2d(ls_value x, ls_pad_mode mode, int64_t top, int64_t left, int64_t bottom, int64_t right);
ls_value ls_broadcast_to(ls_value x, ls_shape to);
ls_value ls_upsample2d(ls_value x, int factor); /* nearest neighbour, (N, C, H, W) */

/* -- reductions ------------------------------------------------------------------------------------------
 * `axes` is a bit mask: 1u << i reduces dimension i; LS_ALL_AXES reduces to a scalar (or to all ones with
 * keep). */
#define LS_ALL_AXES 0xffffffffu
ls_value ls_reduce_sum(ls_value x, unsigned axes, bool keep);
ls_value ls_reduce_mean(ls_value x, unsigned axes, bool keep); /* reduce_sum, then affine */
/* Sums x over broadcast dimensions so that it has shape `to` (the adjoint of broadcasting). */
ls_value ls_sum_to(ls_value x, ls_shape to);
/* Maximum over one axis, which disappears; output 1 is the index (i32) of the first maximum.  A NaN counts as
 * larger than any number.  The axis must not be empty. */
ls_value ls_reduce_max(ls_value x, int axis);

/* -- products and softmax -------------------------------------------------------------------------------- */
/* a: (..., M, K), b: (..., K, N) -> (..., M, N); trans_a: a is (..., K, M), trans_b: b is (..., N, K).
 * Leading dimensions are equal, or b has rank 2 and serves all of a. */
ls_value ls_matmul(ls_value a, ls_value b, bool trans_a, bool trans_b);
/* x + b along `axis` of x (1 for feature maps, -1 for the last). */
ls_value ls_bias(ls_value x, ls_value b, int axis);
ls_value ls_softmax(ls_value x);     /* over the last dimension */
ls_value ls_log_softmax(ls_value x); /* over the last dimension */
/* q, k, v: (B, T, D) -> softmax(scale * q k^T) v per B; output 1 is log-sum-exp (B, T), of type f32 for
 * 16-bit types. No T x T matrix is stored. */
ls_value ls_attention(ls_value q, ls_value k, ls_value v, double scale);
/* (V, D), (N) i32 -> (N, D); an index outside 0..V-1 gives a row of NaN. */
ls_value ls_gather_rows(ls_value table, ls_value index);

/* -- losses and metrics ----------------------------------------------------------------------------------
 * Losses of 16-bit inputs are f32; the loss of an empty batch is 0. */
/* Mean over the batch of -log softmax(logits)[label]; logits (N, C), labels (N) i32 -> loss (scalar),
 * probabilities (N, C) of the loss's type, through which no gradient flows.  A label outside 0..C-1 makes the
 * loss NaN. */
ls_value ls_cross_entropy(ls_value logits, ls_value labels);
/* Sum over the batch and all points of squared distances to the nearest point of the other cloud, both ways.
 * p, q: (B, 3, P), (B, 3, Q) -> loss (scalar), nearest q of each p (B, P) i32, nearest p of each q (B, Q)
 * i32. */
ls_value ls_chamfer(ls_value p, ls_value q);
/* Number of samples whose largest logit (first of equals) is the label: scalar f32. */
ls_value ls_accuracy(ls_value logits, ls_value labels);
/* Composites (no op of their own); all are means over all elements. */
ls_value ls_bce_with_logits(ls_value logits, ls_value target);
ls_value ls_l1_loss(ls_value a, ls_value b);
ls_value ls_mse_loss(ls_value a, ls_value b);

/* Adam's formula: whose bias correction and weight decay. */
typedef enum ls_adam_form { LS_ADAM_TORCH, LS_ADAM_TF, LS_ADAM_W } ls_adam_form;

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
