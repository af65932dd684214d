/* matmul_gelu_grad: dz = gelu'(z) * (a b), element by element, and the sums of its columns, which are the
 * gradient of the bias that z has.  Made by fusion, after gradients are taken. */
#include <string.h>

#include "ops/ops.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_matmul_attr *a = c->attr;
    ls_infer product = *c;
    ls_status st = LS_OK;

    product.n_in = 2;
    LS_TRY(ls_op_matmul.infer(&product, err));
    if (a->act != LS_ACT_NONE || c->in_dtype[2] != c->in_dtype[0] || !ls_shape_equal(c->in[2], c->out[0]))
        return ls_fail(err, LS_INVALID, "z must have the product's shape and type, and that no activation");
    c->out[1] = LS_SHAPE(c->out[0].dim[c->out[0].rank - 1]);
out:
    return st;
}

static double flops(const ls_graph *g, const ls_node *n)
{
    return ls_op_matmul.flops(g, n);
}

static void ref(const ls_ref_call *c)
{
    ls_ref_call product = *c;
    const int64_t columns = c->out[1].count;

    product.n_in = 2;
    ls_op_matmul.ref(&product);
    memset(c->out[1].d, 0, sizeof(double) * (size_t)columns);
    for (int64_t i = 0; i < c->out[0].count; i++) {
        c->out[0].d[i] = ls_op_gelu_grad.pw_eval(c->out[0].d[i], c->in[2].d[i], NULL);
        c->out[1].d[i % columns] += c->out[0].d[i];
    }
}

static void attr_text(const void *attr, char *buf, size_t n)
{
    ls_op_matmul.attr_text(attr, buf, n);
}

const ls_op ls_op_matmul_gelu_grad = {
    .name = "matmul_gelu_grad",
    .min_in = 3,
    .max_in = 3,
    .n_out = 2,
    .attr_size = sizeof(ls_matmul_attr),
    .infer = infer,
    .flops = flops,
    .ref = ref,
    .attr_text = attr_text,
};
