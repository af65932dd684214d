/* transpose: dimension i of y is dimension perm[i] of x. */
#include <stdio.h>

#include "ops/ops.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_transpose_attr *a = c->attr;
    unsigned seen = 0;

    c->out[0] = c->in[0];
    for (int i = 0; i < c->in[0].rank; i++) {
        int from = a->perm[i];
        if (from < 0 || from >= c->in[0].rank)
            return ls_fail(err, LS_INVALID, "perm[%d] = %d lies outside 0..%d", i, from, c->in[0].rank - 1);
        if (seen & 1u << from) return ls_fail(err, LS_INVALID, "perm names dimension %d twice", from);
        seen |= 1u << from;
        c->out[0].dim[i] = c->in[0].dim[from];
    }
    return LS_OK;
}

static void grad(ls_grad_call *c)
{
    const ls_transpose_attr *a = c->attr;
    int inverse[LS_MAX_RANK] = {0};

    for (int i = 0; i < a->rank; i++) inverse[a->perm[i]] = i;
    if (c->want[0]) c->din[0] = ls_transpose(c->dout[0], inverse);
}

static void ref(const ls_ref_call *c)
{
    const ls_transpose_attr *a = c->attr;
    ls_shape x = c->in[0].shape, y = c->out[0].shape;
    int64_t stride[LS_MAX_RANK] = {0}, step = 1;

    for (int i = x.rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= x.dim[i];
    }
    for (int64_t k = 0; k < c->out[0].count; k++) {
        int64_t rest = k, offset = 0;
        for (int i = y.rank - 1; i >= 0; i--) {
            offset += rest % y.dim[i] * stride[a->perm[i]];
            rest /= y.dim[i];
        }
        c->out[0].d[k] = c->in[0].d[offset];
    }
}

static void attr_text(const void *attr, char *buf, size_t n)
{
    const ls_transpose_attr *a = attr;
    size_t used = (size_t)snprintf(buf, n, "perm=");

    for (int i = 0; i < a->rank && used < n; i++)
        used += (size_t)snprintf(buf + used, n - used, "%s%d", i ? "," : "", a->perm[i]);
}

const ls_op ls_op_transpose = {
    .name = "transpose",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(ls_transpose_attr),
    .infer = infer,
    .grad = grad,
    .ref = ref,
    .attr_text = attr_text,
};

/* Whether perm leaves all dimensions other than 1 in their order: then no element moves. */
static bool keeps_order(ls_shape x, const int *perm)
{
    int last = -1;

    for (int i = 0; i < x.rank; i++) {
        if (perm[i] < 0 || perm[i] >= x.rank) return false;
        if (x.dim[perm[i]] == 1) continue;
        if (perm[i] <= last) return false;
        last = perm[i];
    }
    return true;
}

ls_value ls_transpose(ls_value x, const int *perm)
{
    ls_shape s = ls_value_shape(x), to = s;
    ls_transpose_attr a = {.rank = s.rank};

    if (!ls_value_ok(x)) return x;
    for (int i = 0; i < s.rank; i++) a.perm[i] = perm[i];
    if (!keeps_order(s, perm)) return ls_graph_add(x.g, &ls_op_transpose, 1, &x, &a);
    for (int i = 0; i < s.rank; i++) to.dim[i] = s.dim[perm[i]];
    return ls_reshape(x, to);
}
