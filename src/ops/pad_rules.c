/* pad_rules.c: shapes and positions for pad and its adjoint. */
#include "ops/pad_rules.h"

#include <stdio.h>

ls_status lsi_pad_shape(const ls_pad_attr *a, ls_shape x, ls_shape *padded, ls_err *err)
{
    *padded = x;
    if (x.rank < 2) return ls_fail(err, LS_INVALID, "needs at least two dimensions");
    for (int i = 0; i < 4; i++) {
        int64_t size = x.dim[x.rank - 2 + i % 2];
        if (a->pad[i] < 0) return ls_fail(err, LS_INVALID, "padding must not be negative");
        if (a->mode == LS_PAD_REFLECT && a->pad[i] > 0 && a->pad[i] >= size)
            return ls_fail(err, LS_INVALID, "reflecting %lld elements needs a size above that, got %lld",
                           (long long)a->pad[i], (long long)size);
        padded->dim[x.rank - 2 + i % 2] += a->pad[i];
    }
    return LS_OK;
}

void lsi_pad_attr_text(const void *attr, char *buf, size_t n)
{
    const ls_pad_attr *a = attr;

    snprintf(buf, n, "%s pad=%lld,%lld,%lld,%lld", a->mode == LS_PAD_REFLECT ? "reflect" : "zero",
             (long long)a->pad[0], (long long)a->pad[1], (long long)a->pad[2], (long long)a->pad[3]);
}

/* The position in 0..size-1 that `pos` shows, or -1 for a zero. */
static int64_t source(ls_pad_mode mode, int64_t pos, int64_t size)
{
    if (pos >= 0 && pos < size) return pos;
    if (mode == LS_PAD_ZERO) return -1;
    return pos < 0 ? -pos : 2 * (size - 1) - pos;
}

void lsi_pad_each(const ls_pad_attr *a, ls_ref_tensor x, ls_ref_tensor padded, lsi_pad_visit each)
{
    int64_t h = x.shape.dim[x.shape.rank - 2], w = x.shape.dim[x.shape.rank - 1];
    int64_t ph = h + a->pad[0] + a->pad[2], pw = w + a->pad[1] + a->pad[3];

    for (int64_t i = 0; i < padded.count; i++) {
        int64_t sy = source(a->mode, i / pw % ph - a->pad[0], h);
        int64_t sx = source(a->mode, i % pw - a->pad[1], w);
        if (sy >= 0 && sx >= 0) each(x.d, padded.d, (i / (pw * ph) * h + sy) * w + sx, i);
    }
}
