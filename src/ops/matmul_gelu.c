/* matmul_gelu: z = a b + bias as matmul computes it, and y = gelu(z) beside it, which gradients want as well.
 * Made by fusion, after gradients are taken. */
#include "ops/ops.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(ls_op_matmul.infer(c, err));
    if (((const ls_matmul_attr *)c->attr)->act != LS_ACT_NONE)
        return ls_fail(err, LS_INVALID, "the product itself has no activation");
    c->out[1] = c->out[0];
out:
    return st;
}

static double flops(const ls_graph *g, const ls_node *n)
{
    return ls_op_matmul.flops(g, n);
}

static void ref(const ls_ref_call *c)
{
    ls_op_matmul.ref(c);
    for (int64_t i = 0; i < c->out[0].count; i++)
        c->out[1].d[i] = ls_act_eval(LS_ACT_GELU, 0, c->out[0].d[i]);
}

static void attr_text(const void *attr, char *buf, size_t n)
{
    ls_op_matmul.attr_text(attr, buf, n);
}

const ls_op ls_op_matmul_gelu = {
    .name = "matmul_gelu",
    .min_in = 3,
    .max_in = 3,
    .n_out = 2,
    .attr_size = sizeof(ls_matmul_attr),
    .infer = infer,
    .flops = flops,
    .ref = ref,
    .attr_text = attr_text,
};
