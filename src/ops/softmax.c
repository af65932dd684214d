/* softmax: y = exp(x) / sum of exp(x), over the last dimension. */
#include <math.h>

#include "ops/softmax_rules.h"

static void grad(ls_grad_call *c)
{
    ls_value y = c->out[0], ydy;

    if (!c->want[0]) return;
    /* dx = y * (dy - sum of y * dy), written so that the product is computed once. */
    ydy = ls_mul(y, c->dout[0]);
    c->din[0] = ls_sub(ydy, ls_mul(y, lsi_row_sum(ydy)));
}

static void ref(const ls_ref_call *c)
{
    ls_shape s = c->in[0].shape;
    int64_t n = s.dim[s.rank - 1];

    for (int64_t i = 0; i < c->in[0].count; i += n) {
        double lse = lsi_log_sum_exp(c->in[0].d + i, n);
        for (int64_t j = i; j < i + n; j++) c->out[0].d[j] = exp(c->in[0].d[j] - lse);
    }
}

const ls_op ls_op_softmax = {
    .name = "softmax",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = LS_OP_INPLACE,
    .infer = lsi_infer_rows,
    .grad = grad,
    .flops = lsi_softmax_flops,
    .ref = ref,
};

ls_value ls_softmax(ls_value x)
{
    return ls_graph_add(x.g, &ls_op_softmax, 1, &x, NULL);
}
