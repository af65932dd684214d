/* all_finite: 0 where all elements of all tensors are finite, else which tensor is the first that has one
 * that is not: its number among the inputs, counted from attr.first + 1. */
#include <math.h>
#include <stdio.h>

#include "ops/ops.h"
#include "ops/type_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    for (int i = 0; i < c->n_in; i++)
        if (!ls_dtype_is_float(c->in_dtype[i]))
            return ls_fail(err, LS_INVALID, "tensor %d is %s: only floating types have numbers that are none",
                           i, ls_dtype_name(c->in_dtype[i]));
    c->out[0] = LS_SHAPE_SCALAR;
    c->out_dtype[0] = lsi_wide_dtype(c->in_dtype[0]);
    return LS_OK;
}

static double flops(const ls_graph *g, const ls_node *n)
{
    double sum = 0;

    for (int i = 0; i < n->n_in; i++) sum += (double)ls_shape_count(*ls_node_in_shape(g, n, i));
    return sum;
}

static bool is_finite(const ls_ref_tensor *t)
{
    for (int64_t i = 0; i < t->count; i++)
        if (!isfinite(t->d[i])) return false;
    return true;
}

static void ref(const ls_ref_call *c)
{
    const ls_all_finite_attr *a = c->attr;
    int i = 0;

    while (i < c->n_in && is_finite(&c->in[i])) i++;
    c->out[0].d[0] = i < c->n_in ? a->first + i + 1 : 0;
}

static void attr_text(const void *attr, char *buf, size_t n)
{
    snprintf(buf, n, "first=%d", ((const ls_all_finite_attr *)attr)->first);
}

const ls_op ls_op_all_finite = {
    .name = "all_finite",
    .min_in = 1,
    .max_in = -1,
    .n_out = 1,
    .attr_size = sizeof(ls_all_finite_attr),
    .flags = LS_OP_NO_GRAD | LS_OP_EAGER, /* what it has seen may be free memory then */
    .infer = infer,
    .flops = flops,
    .ref = ref,
    .attr_text = attr_text,
};

ls_value ls_all_finite(int n, const ls_value *x, int first)
{
    return ls_graph_add(x[0].g, &ls_op_all_finite, n, x, &(ls_all_finite_attr){first});
}
