/* layers.c: linear layers, norms, pooling, embedding and attention. */
#include <math.h>

#include "nn/nn_internal.h"

/* -- linear -----------------------------------------------------------------------------------------------
 */

/* y = x W^T + b, W being (out, in) as PyTorch keeps it: its weights are read and written without turning
 * them.  All dimensions but the last are samples. */
static ls_value linear(ls_step *s, ls_value x, const char *full, ls_linear_args a)
{
    ls_shape in = ls_value_shape(x);
    ls_value w;
    int64_t width;

    if (!ls_value_ok(x)) return x;
    if (a.out < 1)
        return lsi_step_fail(s, ".out, the width of the result, must be at least 1, got %lld",
                             (long long)a.out);
    if (in.rank < 2) return lsi_step_fail(s, "needs at least two dimensions (N, ..., in)");
    width = in.dim[in.rank - 1];
    w = lsi_variable(s, full, "weight", LS_VAR_PARAM, LS_F32, LS_SHAPE(a.out, width),
                     lsi_init_weight(a.init, (double)width, (double)a.out));
    return lsi_add_bias(s, ls_matmul(x, w, false, true), full, -1, a.no_bias, a.init, (double)width);
}

ls_value ls_linear_layer(ls_step *s, ls_at at, ls_value x, const char *name, ls_linear_args a)
{
    const char *full = lsi_layer_enter(s, at, name);
    ls_value y;

    if (full == NULL) return lsi_step_none(s);
    y = linear(s, x, full, a);
    lsi_layer_leave(s);
    return y;
}

/* -- norms ------------------------------------------------------------------------------------------------
 */

/* The two parameters of a norm: scale starting at `scale`, shift at 0.  The names are PyTorch's, where gamma
 * is "weight" and beta "bias". */
static void norm_params(ls_step *s, const char *full, int64_t n, double scale, ls_value *weight,
                        ls_value *bias)
{
    *weight =
        lsi_variable(s, full, "weight", LS_VAR_PARAM, LS_F32, LS_SHAPE(n), (ls_init){LS_INIT_CONST, scale});
    *bias = lsi_variable(s, full, "bias", LS_VAR_PARAM, LS_F32, LS_SHAPE(n), (ls_init){LS_INIT_CONST, 0});
}

/* (x - mean) / sqrt(var + eps) * weight + bias, with what does not depend on x put together first: one
 * multiply-add per element is left. */
static ls_value norm_by_buffers(ls_value x, ls_value weight, ls_value bias, ls_value mean, ls_value var,
                                double eps)
{
    ls_value scale = ls_mul(weight, ls_rsqrt(ls_affine(var, 1.0, eps)));
    ls_value shift = ls_sub(bias, ls_mul(mean, scale));
    ls_shape to = {.rank = ls_value_shape(x).rank, .dim = {1, 1, 1, 1}};

    to.dim[1] = ls_value_shape(x).dim[1];
    return ls_bias(ls_mul(x, ls_reshape(scale, to)), shift, 1);
}

static ls_value batchnorm(ls_step *s, ls_value x, const char *full, ls_batchnorm_args a)
{
    ls_shape in = ls_value_shape(x);
    /* PyTorch's defaults; momentum is the part of the new statistics (TensorFlow's is that of the old). */
    ls_norm_attr attr = {.eps = a.eps != 0 ? a.eps : 1e-5,
                         .momentum = a.momentum != 0 ? a.momentum : 0.1,
                         .unbiased_running = !a.biased_running};
    ls_value weight, bias, mean, var, y;
    char buf[LS_SHAPE_TEXT];

    if (!ls_value_ok(x)) return x;
    if (in.rank != 2 && in.rank != 4)
        return lsi_step_fail(s, "needs (N, C) or (N, C, H, W), got %s", ls_shape_text(in, buf));
    norm_params(s, full, in.dim[1], a.zero_weight ? 0 : 1, &weight, &bias);
    mean = lsi_variable(s, full, "running_mean", LS_VAR_BUFFER, LS_F32, LS_SHAPE(in.dim[1]),
                        (ls_init){LS_INIT_CONST, 0});
    var = lsi_variable(s, full, "running_var", LS_VAR_BUFFER, LS_F32, LS_SHAPE(in.dim[1]),
                       (ls_init){LS_INIT_CONST, 1});
    /* Variables are the same in both modes, so that an evaluation finds by name what training has left. */
    if (s->mode == LS_EVAL) return norm_by_buffers(x, weight, bias, mean, var, attr.eps);
    y = ls_batch_norm(x, weight, bias, mean, var, attr);
    if (!ls_value_ok(y)) return y;
    /* Outputs 1 and 2 are the batch's own statistics, for the gradient; 3 and 4 the running ones, moved on.
     */
    ls_graph_advance(s->g, s->g->values[mean.id]->var, ls_graph_out(y, 3));
    ls_graph_advance(s->g, s->g->values[var.id]->var, ls_graph_out(y, 4));
    return y;
}

ls_value ls_batchnorm_layer(ls_step *s, ls_at at, ls_value x, const char *name, ls_batchnorm_args a)
{
    const char *full = lsi_layer_enter(s, at, name);
    ls_value y;

    if (full == NULL) return lsi_step_none(s);
    y = batchnorm(s, x, full, a);
    lsi_layer_leave(s);
    return y;
}

/* Without scale and shift, as pix2pix and CycleGAN have it: there is nothing to name. */
ls_value ls_instancenorm_layer(ls_value x, double eps)
{
    return ls_instance_norm(x, (ls_norm_attr){.eps = eps != 0 ? eps : 1e-5});
}

ls_value ls_layernorm_layer(ls_step *s, ls_at at, ls_value x, const char *name, double eps)
{
    const char *full = lsi_layer_enter(s, at, name);
    ls_shape in = ls_value_shape(x);
    ls_value weight, bias, y;

    if (full == NULL) return lsi_step_none(s);
    norm_params(s, full, in.rank > 0 ? in.dim[in.rank - 1] : 1, 1, &weight, &bias);
    y = ls_layer_norm(x, weight, bias, (ls_norm_attr){.eps = eps != 0 ? eps : 1e-5});
    lsi_layer_leave(s);
    return y;
}

/* -- pooling and shape ------------------------------------------------------------------------------------
 */

/* Windows lie next to one another unless a stride is given.  Positions are counted by floor, as PyTorch does
 * without ceil_mode: a window that would reach beyond the padding is none.  Zeros of the padding count in an
 * average unless they are left out (count_include_pad), and never win a maximum. */
static ls_pool_attr pool_attr(ls_pool_args a)
{
    int stride = a.stride != 0 ? a.stride : a.kernel;

    return (ls_pool_attr){.kernel = {a.kernel, a.kernel},
                          .stride = {stride, stride},
                          .pad = {a.pad, a.pad, a.pad, a.pad},
                          .count_pad = !a.skip_pad};
}

ls_value ls_max_pool_layer(ls_value x, ls_pool_args a)
{
    return ls_maxpool2d(x, pool_attr(a));
}

ls_value ls_avg_pool_layer(ls_value x, ls_pool_args a)
{
    return ls_avgpool2d(x, pool_attr(a));
}

ls_value ls_global_avg_pool_layer(ls_value x)
{
    char buf[LS_SHAPE_TEXT];

    if (!ls_value_ok(x)) return x;
    if (ls_value_shape(x).rank != 4)
        return ls_graph_fail(x.g, LS_INVALID, "global average pool: needs (N, C, H, W), got %s",
                             ls_shape_text(ls_value_shape(x), buf));
    return ls_reduce_mean(x, 1u << 2 | 1u << 3, false); /* (N, C): H and W go */
}

ls_value ls_flatten_layer(ls_value x)
{
    ls_shape in = ls_value_shape(x);

    if (!ls_value_ok(x) || in.rank < 1) return x;
    return ls_reshape(x, LS_SHAPE(in.dim[0], -1)); /* channels first: as the weights that follow expect it */
}

/* -- embedding and attention ------------------------------------------------------------------------------
 */

static ls_value embed(ls_step *s, ls_value index, const char *full, ls_embedding_args a)
{
    ls_shape in = ls_value_shape(index);
    ls_value table, rows;

    if (!ls_value_ok(index)) return index;
    if (a.rows < 1 || a.width < 1)
        return lsi_step_fail(s, ".rows and .width must be at least 1, got %lld and %lld", (long long)a.rows,
                             (long long)a.width);
    if (in.rank != 1 && in.rank != 2) return lsi_step_fail(s, "the index must be (N) or (N, T)");
    /* PyTorch draws tables from N(0, 1), and not by their fans as it does all else. */
    if (a.init.how == LS_HOW_TORCH) a.init = ls_init_normal(1.0);
    table = lsi_variable(s, full, "weight", LS_VAR_PARAM, LS_F32, LS_SHAPE(a.rows, a.width),
                         lsi_init_weight(a.init, (double)a.rows, (double)a.width));
    rows = ls_gather_rows(table, ls_reshape(index, LS_SHAPE(-1)));
    return in.rank == 1 ? rows : ls_reshape(rows, LS_SHAPE(in.dim[0], in.dim[1], a.width));
}

ls_value ls_embedding_layer(ls_step *s, ls_at at, ls_value index, const char *name, ls_embedding_args a)
{
    const char *full = lsi_layer_enter(s, at, name);
    ls_value y;

    if (full == NULL) return lsi_step_none(s);
    y = embed(s, index, full, a);
    lsi_layer_leave(s);
    return y;
}

/* Part `i` of (3, N, H, T, D) as (N * H, T, D). */
static ls_value third(ls_value qkv, int64_t i)
{
    ls_shape in = ls_value_shape(qkv);

    if (!ls_value_ok(qkv)) return qkv;
    return ls_reshape(ls_slice(qkv, 0, i, 1), LS_SHAPE(in.dim[1] * in.dim[2], in.dim[3], in.dim[4]));
}

/* softmax(Q K^T / sqrt(depth)) V for every head (Vaswani et al. 2017, section 3.2), then a product that mixes
 * the heads.  Heads are made one dimension with samples: to the op each is a small problem of its own. */
static ls_value attend(ls_step *s, ls_at at, ls_value x, ls_attention_args a)
{
    ls_shape in = ls_value_shape(x);
    int64_t depth;
    ls_value qkv, y;
    char buf[LS_SHAPE_TEXT];

    if (!ls_value_ok(x)) return x;
    if (in.rank != 3) return lsi_step_fail(s, "needs (N, T, D), got %s", ls_shape_text(in, buf));
    if (a.heads < 1 || in.dim[2] % a.heads != 0)
        return lsi_step_fail(s, ".heads (%lld) must divide the width %lld", (long long)a.heads,
                             (long long)in.dim[2]);
    depth = in.dim[2] / a.heads;
    /* One product for all three: three times as wide is faster than three of them, and it is how published
     * weights come. */
    qkv = ls_linear_layer(s, at, x, "qkv", (ls_linear_args){.out = 3 * in.dim[2], .init = a.init});
    qkv = ls_reshape(qkv, LS_SHAPE(in.dim[0], in.dim[1], 3, a.heads, depth));
    qkv = ls_transpose(qkv, (const int[]){2, 0, 3, 1, 4}); /* (3, N, heads, T, depth): thirds lie together */
    y = ls_attention(third(qkv, 0), third(qkv, 1), third(qkv, 2), 1.0 / sqrt((double)depth));
    y = ls_transpose(ls_reshape(y, LS_SHAPE(in.dim[0], a.heads, in.dim[1], depth)),
                     (const int[]){0, 2, 1, 3});
    return ls_linear_layer(s, at, ls_reshape(y, in), "proj",
                           (ls_linear_args){.out = in.dim[2], .init = a.init});
}

ls_value ls_self_attention_layer(ls_step *s, ls_at at, ls_value x, const char *name, ls_attention_args a)
{
    ls_value y;

    if (!lsi_step_open(s)) return lsi_step_none(s);
    lsi_step_at(s, at);
    ls_scope_push(s, "%s", name); /* its two linear layers are layers themselves: "name.qkv", "name.proj" */
    y = attend(s, at, x, a);
    ls_scope_pop(s);
    return y;
}
