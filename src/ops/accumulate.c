/* accumulate: sum = weight * g, or sum + weight * g where `keep` is not zero: gradients of several batches,
 * added up in a variable before one update.  With keep = 0 the old contents do not matter, whatever they are,
 * and with weight = 0 the gradient does not. */
#include "ops/ops.h"
#include "ops/type_rules.h"

enum { SUM, GRADIENT, KEEP, WEIGHT };

static ls_status infer(ls_infer *c, ls_err *err)
{
    char a[LS_SHAPE_TEXT], b[LS_SHAPE_TEXT];

    if (c->in_dtype[SUM] != lsi_wide_dtype(c->in_dtype[GRADIENT]) ||
        !ls_shape_equal(c->in[SUM], c->in[GRADIENT]))
        return ls_fail(err, LS_INVALID, "a sum of %s %s cannot take %s %s", ls_dtype_name(c->in_dtype[SUM]),
                       ls_shape_text(c->in[SUM], a), ls_dtype_name(c->in_dtype[GRADIENT]),
                       ls_shape_text(c->in[GRADIENT], b));
    for (int i = KEEP; i <= WEIGHT; i++)
        if (c->in_dtype[i] != c->in_dtype[SUM] || ls_shape_count(c->in[i]) != 1)
            return ls_fail(err, LS_INVALID, "keep and weight must be scalars of the sum's type %s",
                           ls_dtype_name(c->in_dtype[SUM]));
    c->out[0] = c->in[SUM];
    c->out_dtype[0] = c->in_dtype[SUM];
    return LS_OK;
}

static int alias(int n_in, const void *attr, int k)
{
    (void)n_in;
    (void)attr;
    (void)k;
    return SUM;
}

static double flops(const ls_graph *g, const ls_node *n)
{
    return 2.0 * (double)ls_shape_count(*ls_node_out_shape(g, n, 0));
}

static void ref(const ls_ref_call *c)
{
    const double keep = c->in[KEEP].d[0], weight = c->in[WEIGHT].d[0];

    for (int64_t i = 0; i < c->out[0].count; i++)
        c->out[0].d[i] =
            (keep != 0 ? c->in[SUM].d[i] : 0) + (weight != 0 ? weight * c->in[GRADIENT].d[i] : 0);
}

const ls_op ls_op_accumulate = {
    .name = "accumulate",
    .min_in = 4,
    .max_in = 4,
    .n_out = 1,
    .flags = LS_OP_UPDATE | LS_OP_NO_GRAD | LS_OP_EAGER,
    .infer = infer,
    .flops = flops,
    .alias = alias,
    .ref = ref,
};

ls_value ls_accumulate(ls_value sum, ls_value gradient, ls_value keep, ls_value weight)
{
    return ls_graph_add(sum.g, &ls_op_accumulate, 4, (ls_value[]){sum, gradient, keep, weight}, NULL);
}
