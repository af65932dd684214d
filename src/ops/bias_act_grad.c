/* bias_act_grad: dz = act'(y) * dy and dbias = the sum of dz over everything but `axis`, in one pass over
 * memory.  The fusion pass makes it from an activation's gradient and the reduction that follows it, after
 * differentiation, so it has no gradient itself. */
#include <stdio.h>
#include <string.h>

#include "ops/shape_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    ls_bias_act_attr *a = c->attr;
    ls_shape dy = c->in[0];
    ls_status st = LS_OK;

    if (c->in_dtype[0] != c->in_dtype[1] || !ls_dtype_is_float(c->in_dtype[0]) ||
        !ls_shape_equal(dy, c->in[1]))
        return ls_fail(err, LS_INVALID, "dy and y must have one floating type and one shape");
    if (a->act == LS_ACT_GELU)
        return ls_fail(err, LS_INVALID, "the gradient of %s does not follow from its result",
                       ls_act_name(a->act));
    LS_TRY(lsi_resolve_axis(&a->axis, dy.rank, err));
    c->out[0] = dy;
    c->out[1] = LS_SHAPE(dy.dim[a->axis]);
out:
    return st;
}

/* One for the activation, one for the sum. */
static double flops(const ls_graph *g, const ls_node *n)
{
    return 2.0 * (double)ls_shape_count(*ls_node_out_shape(g, n, 0));
}

static void ref(const ls_ref_call *c)
{
    const ls_bias_act_attr *a = c->attr;
    lsi_split s = lsi_split_at(c->in[0].shape, a->axis);

    memset(c->out[1].d, 0, sizeof(double) * (size_t)c->out[1].count);
    for (int64_t i = 0; i < c->in[0].count; i++) {
        double dz = ls_act_grad_from_y(a->act, a->slope, c->in[1].d[i], c->in[0].d[i]);
        c->out[0].d[i] = dz;
        c->out[1].d[i / s.inner % s.length] += dz;
    }
}

static void attr_text(const void *attr, char *buf, size_t n)
{
    const ls_bias_act_attr *a = attr;

    snprintf(buf, n, "axis=%d act=%s:%.9g", a->axis, ls_act_name(a->act), a->slope);
}

const ls_op ls_op_bias_act_grad = {
    .name = "bias_act_grad",
    .min_in = 2,
    .max_in = 2,
    .n_out = 2,
    .attr_size = sizeof(ls_bias_act_attr),
    .flags = LS_OP_INPLACE,
    .infer = infer,
    .flops = flops,
    .ref = ref,
    .attr_text = attr_text,
};
