/* pool_rules.c: shapes and windows of the pooling ops; sizes follow the rule of convolutions. */
#include "ops/pool_rules.h"

#include <stdio.h>

#include "ops/conv_rules.h"

ls_status lsi_pool_infer(ls_pool_attr *a, ls_dtype dtype, ls_shape x, ls_shape *y, ls_err *err)
{
    ls_conv_attr window = {.dilation = {1, 1}};
    int64_t ho = 0, wo = 0;
    ls_status st = LS_OK;

    if (x.rank != 4) return ls_fail(err, LS_INVALID, "needs an input (N, C, H, W)");
    if (!ls_dtype_is_float(dtype))
        return ls_fail(err, LS_INVALID, "needs a floating type, got %s", ls_dtype_name(dtype));
    if (x.dim[2] < 1 || x.dim[3] < 1)
        return ls_fail(err, LS_INVALID, "cannot pool an image without elements");
    for (int i = 0; i < 4; i++) {
        if (a->pad[i] >= a->kernel[i % 2])
            return ls_fail(err, LS_INVALID, "padding by %d leaves windows of %d without elements", a->pad[i],
                           a->kernel[i % 2]);
        window.pad[i] = a->pad[i];
    }
    for (int i = 0; i < 2; i++) {
        window.stride[i] = a->stride[i];
        a->in[i] = x.dim[2 + i];
    }
    LS_TRY(lsi_conv_out_size(&window, x.dim, a->kernel[0], a->kernel[1], &ho, &wo, err));
    *y = LS_SHAPE(x.dim[0], x.dim[1], ho, wo);
out:
    return st;
}

ls_status lsi_pool_infer_grad(ls_pool_attr *a, ls_dtype dtype, ls_shape dy, ls_shape *dx, ls_err *err)
{
    ls_shape y;
    ls_status st = LS_OK;

    if (dy.rank != 4) return ls_fail(err, LS_INVALID, "needs dy (N, C, HO, WO)");
    *dx = LS_SHAPE(dy.dim[0], dy.dim[1], a->in[0], a->in[1]);
    LS_TRY(lsi_pool_infer(a, dtype, *dx, &y, err));
    if (!ls_shape_equal(y, dy))
        return ls_fail(err, LS_INVALID, "pooling a %lldx%lld image gives %lldx%lld, but dy is %lldx%lld",
                       (long long)a->in[0], (long long)a->in[1], (long long)y.dim[2], (long long)y.dim[3],
                       (long long)dy.dim[2], (long long)dy.dim[3]);
out:
    return st;
}

ls_status lsi_pool_check_positions(const ls_pool_attr *a, ls_err *err)
{
    if (lsi_pool_window_size(a) <= 255) return LS_OK;
    return ls_fail(err, LS_INVALID, "windows of %dx%d are too large: positions must fit one byte (255)",
                   a->kernel[0], a->kernel[1]);
}

void lsi_pool_attr_text(const void *attr, char *buf, size_t n)
{
    const ls_pool_attr *a = attr;

    snprintf(buf, n, "kernel=%dx%d stride=%dx%d pad=%d,%d,%d,%d in=%lldx%lld%s%s", a->kernel[0], a->kernel[1],
             a->stride[0], a->stride[1], a->pad[0], a->pad[1], a->pad[2], a->pad[3], (long long)a->in[0],
             (long long)a->in[1], a->count_pad ? " count_pad" : "", a->relu ? " relu" : "");
}

int64_t lsi_pool_window_size(const ls_pool_attr *a)
{
    return (int64_t)a->kernel[0] * a->kernel[1];
}

static int64_t clip(int64_t v, int64_t limit)
{
    if (v < 0) return 0;
    return v < limit ? v : limit;
}

lsi_pool_window lsi_pool_window_at(const ls_pool_attr *a, ls_shape y, int64_t i)
{
    lsi_pool_window w;

    w.left = i % y.dim[3] * a->stride[1] - a->pad[1];
    w.top = i / y.dim[3] % y.dim[2] * a->stride[0] - a->pad[0];
    w.plane = i / (y.dim[2] * y.dim[3]) * a->in[0] * a->in[1];
    w.y0 = clip(w.top, a->in[0]);
    w.y1 = clip(w.top + a->kernel[0], a->in[0]);
    w.x0 = clip(w.left, a->in[1]);
    w.x1 = clip(w.left + a->kernel[1], a->in[1]);
    return w;
}

double lsi_pool_weight(const ls_pool_attr *a, const lsi_pool_window *w)
{
    return 1.0 / (double)(a->count_pad ? lsi_pool_window_size(a) : (w->y1 - w->y0) * (w->x1 - w->x0));
}
