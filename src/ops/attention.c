/* attention: out = softmax(scale * q k^T) v, separately for each of the B batch entries (sample times head).
 *
 * Besides the result it returns the log-sum-exp of every row of scores: with it the gradient recomputes any
 * single probability, so that no T x T matrix ever exists. */
#include "ops/attention_rules.h"
#include "ops/type_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    ls_status st = lsi_attention_check(c, err);

    if (st != LS_OK) return st;
    c->out[0] = c->in[0];
    c->out[1] = LS_SHAPE(c->in[0].dim[0], c->in[0].dim[1]);
    c->out_dtype[1] = lsi_wide_dtype(c->in_dtype[0]);
    return LS_OK;
}

static void grad(ls_grad_call *c)
{
    const ls_attention_attr *a = c->attr;
    ls_value d;

    if (ls_value_ok(c->dout[1])) {
        ls_graph_fail(c->g, LS_UNSUPPORTED, "op attention: no gradient flows through the log-sum-exp");
        return;
    }
    d = ls_attention_grad(c->in[0], c->in[1], c->in[2], c->out[0], c->out[1], c->dout[0], a->scale);
    for (int i = 0; i < 3; i++)
        if (c->want[i]) c->din[i] = ls_graph_out(d, i);
}

static double flops(const ls_graph *g, const ls_node *n)
{
    return lsi_attention_flops(*ls_node_in_shape(g, n, 0), 2);
}

static void ref(const ls_ref_call *c)
{
    const ls_attention_attr *a = c->attr;
    int64_t T = c->in[0].shape.dim[1], D = c->in[0].shape.dim[2];

    for (int64_t row = 0; row < c->out[1].count; row++) {
        int64_t entry = row / T * T * D; /* where the batch entry begins */
        c->out[1].d[row] = lsi_attend(c->in[0].d + row * D, c->in[1].d + entry, c->in[2].d + entry, D,
                                      a->scale, T, D, c->out[0].d + row * D);
    }
}

const ls_op ls_op_attention = {
    .name = "attention",
    .min_in = 3,
    .max_in = 3,
    .n_out = 2,
    .attr_size = sizeof(ls_attention_attr),
    .infer = infer,
    .grad = grad,
    .flops = flops,
    .ref = ref,
    .attr_text = lsi_attention_attr_text,
};

ls_value ls_attention(ls_value q, ls_value k, ls_value v, double scale)
{
    ls_attention_attr a = {scale};

    return ls_graph_add(q.g, &ls_op_attention, 3, (ls_value[]){q, k, v}, &a);
}
