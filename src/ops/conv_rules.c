/* conv_rules.c: checks, sizes and the sum that conv2d and its adjoints share. */
#include "ops/conv_rules.h"

#include <stdio.h>

ls_status lsi_conv_check_inputs(const ls_infer *c, const char *what, ls_err *err)
{
    if (c->in[0].rank != 4 || c->in[1].rank != 4) return ls_fail(err, LS_INVALID, "needs %s", what);
    if (c->in_dtype[0] != c->in_dtype[1] || !ls_dtype_is_float(c->in_dtype[0]))
        return ls_fail(err, LS_INVALID, "needs two inputs of one floating type, got %s and %s",
                       ls_dtype_name(c->in_dtype[0]), ls_dtype_name(c->in_dtype[1]));
    return LS_OK;
}

ls_status lsi_conv_check_channels(const ls_conv_attr *a, int64_t c, int64_t o, int64_t cg, ls_err *err)
{
    if (a->groups < 1 || c != cg * a->groups || o % a->groups != 0)
        return ls_fail(
            err, LS_INVALID,
            "%lld input and %lld output channels in %d groups do not fit weights for %lld per group",
            (long long)c, (long long)o, a->groups, (long long)cg);
    return LS_OK;
}

ls_status lsi_conv_check_bias(const ls_infer *c, int64_t n, ls_err *err)
{
    if (c->n_in < 3) return LS_OK;
    if (c->in[2].rank != 1 || c->in[2].dim[0] != n || !ls_dtype_is_float(c->in_dtype[2]))
        return ls_fail(err, LS_INVALID, "the bias must have one floating entry for each of %lld channels",
                       (long long)n);
    return LS_OK;
}

ls_status lsi_conv_out_size(const ls_conv_attr *a, const int64_t *in, int64_t kh, int64_t kw, int64_t *ho,
                            int64_t *wo, ls_err *err)
{
    const int64_t kernel[2] = {kh, kw};
    int64_t *out[2] = {ho, wo};

    for (int i = 0; i < 2; i++) {
        int64_t span = (kernel[i] - 1) * a->dilation[i] + 1;
        int64_t room = in[2 + i] + a->pad[i] + a->pad[2 + i] - span;
        if (a->stride[i] < 1 || a->dilation[i] < 1 || kernel[i] < 1)
            return ls_fail(err, LS_INVALID, "stride, dilation and kernel must be at least 1");
        if (a->pad[i] < 0 || a->pad[2 + i] < 0)
            return ls_fail(err, LS_INVALID, "padding must not be negative");
        if (room < 0)
            return ls_fail(err, LS_INVALID, "a kernel spanning %lld does not fit the padded size %lld",
                           (long long)span, (long long)(room + span));
        *out[i] = room / a->stride[i] + 1;
    }
    return LS_OK;
}

ls_status lsi_conv_check_dy(const ls_conv_attr *a, ls_shape dy, int64_t kh, int64_t kw, ls_err *err)
{
    int64_t ho = 0, wo = 0;
    ls_status st = lsi_conv_out_size(a, a->in, kh, kw, &ho, &wo, err);

    if (st != LS_OK) return st;
    if (ho != dy.dim[2] || wo != dy.dim[3])
        return ls_fail(err, LS_INVALID,
                       "a %lldx%lld convolution of a %lldx%lld image gives %lldx%lld, but dy is %lldx%lld",
                       (long long)kh, (long long)kw, (long long)a->in[2], (long long)a->in[3], (long long)ho,
                       (long long)wo, (long long)dy.dim[2], (long long)dy.dim[3]);
    return LS_OK;
}

void lsi_conv_attr_text(const void *attr, char *buf, size_t n)
{
    const ls_conv_attr *a = attr;

    snprintf(buf, n,
             "stride=%dx%d pad=%d,%d,%d,%d dilation=%dx%d groups=%d in=%lldx%lld kernel=%dx%d act=%s:%.9g",
             a->stride[0], a->stride[1], a->pad[0], a->pad[1], a->pad[2], a->pad[3], a->dilation[0],
             a->dilation[1], a->groups, (long long)a->in[2], (long long)a->in[3], a->kernel[0], a->kernel[1],
             ls_act_name(a->act), a->slope);
}

void lsi_conv_start(const ls_ref_call *c)
{
    const ls_shape *y = &c->out[0].shape;
    int64_t map = y->dim[2] * y->dim[3];

    for (int64_t i = 0; i < c->out[0].count; i++)
        c->out[0].d[i] = c->n_in > 2 ? c->in[2].d[i / map % y->dim[1]] : 0;
}

void lsi_conv_finish(const ls_ref_call *c)
{
    const ls_conv_attr *a = c->attr;

    for (int64_t i = 0; i < c->out[0].count; i++)
        c->out[0].d[i] = ls_act_eval(a->act, a->slope, c->out[0].d[i]);
}

void lsi_conv_each(const ls_conv_attr *a, ls_shape x, ls_shape w, ls_shape y, lsi_conv_term term,
                   const lsi_conv_data *t)
{
    int64_t C = x.dim[1], H = x.dim[2], W = x.dim[3];
    int64_t O = y.dim[1], HO = y.dim[2], WO = y.dim[3];
    int64_t CG = w.dim[1], KH = w.dim[2], KW = w.dim[3];
    int64_t OG = O / a->groups;

    for (int64_t n = 0; n < y.dim[0]; n++)
        for (int64_t o = 0; o < O; o++)
            for (int64_t oy = 0; oy < HO; oy++)
                for (int64_t ox = 0; ox < WO; ox++)
                    for (int64_t c = 0; c < CG; c++)
                        for (int64_t ky = 0; ky < KH; ky++)
                            for (int64_t kx = 0; kx < KW; kx++) {
                                int64_t iy = oy * a->stride[0] + ky * a->dilation[0] - a->pad[0];
                                int64_t ix = ox * a->stride[1] + kx * a->dilation[1] - a->pad[1];
                                int64_t channel = (o / OG) * CG + c;
                                if (iy < 0 || iy >= H || ix < 0 || ix >= W) continue;
                                term(t, ((n * O + o) * HO + oy) * WO + ox, ((o * CG + c) * KH + ky) * KW + kx,
                                     ((n * C + channel) * H + iy) * W + ix);
                            }
}

double lsi_conv_flops(ls_shape y, ls_shape w)
{
    return 2.0 * (double)ls_shape_count(y) * (double)(w.dim[1] * w.dim[2] * w.dim[3]);
}
