/* softmax_rules.c: rows along the last dimension, for softmax, log_softmax and cross_entropy. */
#include "ops/softmax_rules.h"

#include <math.h>

ls_status lsi_infer_rows(ls_infer *c, ls_err *err)
{
    if (c->in[0].rank < 1) return ls_fail(err, LS_INVALID, "needs at least one dimension");
    if (!ls_dtype_is_float(c->in_dtype[0]))
        return ls_fail(err, LS_INVALID, "needs a floating type, got %s", ls_dtype_name(c->in_dtype[0]));
    c->out[0] = c->in[0];
    return LS_OK;
}

double lsi_softmax_flops(const ls_graph *g, const ls_node *node)
{
    return 5.0 * (double)ls_shape_count(*ls_node_in_shape(g, node, 0));
}

double lsi_log_sum_exp(const double *x, int64_t n)
{
    double max = -INFINITY, sum = 0;

    for (int64_t i = 0; i < n; i++)
        if (!(x[i] <= max)) max = x[i]; /* written so that NaN wins */
    if (isinf(max) && max < 0) return max;
    for (int64_t i = 0; i < n; i++) sum += exp(x[i] - max);
    return max + log(sum);
}

ls_value lsi_row_sum(ls_value x)
{
    if (!ls_value_ok(x)) return x;
    return ls_reduce_sum(x, 1u << (ls_value_shape(x).rank - 1), true);
}
