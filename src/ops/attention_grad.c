/* attention_grad: q, k, v, out, lse, dout -> dq, dk, dv.
 *
 * With p = exp(scale * q_t k_s - lse_t) recomputed and delta_t = dout_t out_t:
 * dv_s = sum over t of p dout_t, and the gradient of the score is p * (dout_t v_s - delta_t). */
#include <string.h>

#include "ops/attention_rules.h"
#include "ops/type_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    ls_status st = lsi_attention_check(c, err);
    ls_shape q = c->in[0];

    if (st != LS_OK) return st;
    for (int i = 3; i < 6; i += 2)
        if (!ls_shape_equal(c->in[i], q) || c->in_dtype[i] != c->in_dtype[0])
            return ls_fail(err, LS_INVALID, "%s must be like q",
                           i == 3 ? "the output" : "the output's gradient");
    if (!ls_shape_equal(c->in[4], LS_SHAPE(q.dim[0], q.dim[1])) ||
        c->in_dtype[4] != lsi_wide_dtype(c->in_dtype[0]))
        return ls_fail(err, LS_INVALID, "the log-sum-exp must be (B, T) of type %s",
                       ls_dtype_name(lsi_wide_dtype(c->in_dtype[0])));
    for (int k = 0; k < 3; k++) c->out[k] = q;
    return LS_OK;
}

static double flops(const ls_graph *g, const ls_node *n)
{
    return lsi_attention_flops(*ls_node_in_shape(g, n, 0), 5); /* scores, dv, dp, dq, dk */
}

static void ref(const ls_ref_call *c)
{
    const ls_attention_attr *a = c->attr;
    int64_t T = c->in[0].shape.dim[1], D = c->in[0].shape.dim[2];

    for (int k = 0; k < 3; k++) memset(c->out[k].d, 0, sizeof(double) * (size_t)c->out[k].count);
    for (int64_t row = 0; row < c->in[4].count; row++) {
        const int64_t entry = row / T * T * D; /* where the batch entry begins */
        lsi_attend_grad(&(lsi_query_grad){.q = c->in[0].d + row * D,
                                          .k = c->in[1].d + entry,
                                          .v = c->in[2].d + entry,
                                          .out = c->in[3].d + row * D,
                                          .dout = c->in[5].d + row * D,
                                          .dq = c->out[0].d + row * D,
                                          .dk = c->out[1].d + entry,
                                          .dv = c->out[2].d + entry,
                                          .lse = c->in[4].d[row],
                                          .row = D},
                        a->scale, T, D);
    }
}

const ls_op ls_op_attention_grad = {
    .name = "attention_grad",
    .min_in = 6,
    .max_in = 6,
    .n_out = 3,
    .attr_size = sizeof(ls_attention_attr),
    .infer = infer,
    .flops = flops,
    .ref = ref,
    .attr_text = lsi_attention_attr_text,
};

ls_value ls_attention_grad(ls_value q, ls_value k, ls_value v, ls_value out, ls_value lse, ls_value dout,
                           double scale)
{
    ls_attention_attr a = {scale};

    return ls_graph_add(q.g, &ls_op_attention_grad, 6, (ls_value[]){q, k, v, out, lse, dout}, &a);
}
