/* log_softmax: y = x - log(sum of exp(x)), over the last dimension. */
#include "ops/softmax_rules.h"

static void grad(ls_grad_call *c)
{
    /* dx = dy - softmax(x) * sum of dy */
    if (c->want[0]) c->din[0] = ls_sub(c->dout[0], ls_mul(ls_exp(c->out[0]), lsi_row_sum(c->dout[0])));
}

static void ref(const ls_ref_call *c)
{
    ls_shape s = c->in[0].shape;
    int64_t n = s.dim[s.rank - 1];

    for (int64_t i = 0; i < c->in[0].count; i += n) {
        double lse = lsi_log_sum_exp(c->in[0].d + i, n);
        for (int64_t j = i; j < i + n; j++) c->out[0].d[j] = c->in[0].d[j] - lse;
    }
}

const ls_op ls_op_log_softmax = {
    .name = "log_softmax",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = LS_OP_INPLACE,
    .infer = lsi_infer_rows,
    .grad = grad,
    .flops = lsi_softmax_flops,
    .ref = ref,
};

ls_value ls_log_softmax(ls_value x)
{
    return ls_graph_add(x.g, &ls_op_log_softmax, 1, &x, NULL);
}
