/* self_attention_grad: qkv, out, lse, dout -> dqkv: attention_grad where heads lie as in self_attention. */
#include <string.h>

#include "ops/attention_rules.h"
#include "ops/type_rules.h"

enum { QKV, OUT, LSE, DOUT };

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_shape x = c->in[QKV];
    ls_shape out;

    if (x.rank != 5 || x.dim[2] != 3 || !ls_dtype_is_float(c->in_dtype[QKV]))
        return ls_fail(err, LS_INVALID, "needs (N, T, 3, H, D) of a floating type");
    out = LS_SHAPE(x.dim[0], x.dim[1], x.dim[3], x.dim[4]);
    for (int i = OUT; i <= DOUT; i += DOUT - OUT)
        if (!ls_shape_equal(c->in[i], out) || c->in_dtype[i] != c->in_dtype[QKV])
            return ls_fail(err, LS_INVALID, "%s must be (N, T, H, D) of qkv's type",
                           i == OUT ? "the output" : "the output's gradient");
    if (!ls_shape_equal(c->in[LSE], LS_SHAPE(x.dim[0] * x.dim[3], x.dim[1])) ||
        c->in_dtype[LSE] != lsi_wide_dtype(c->in_dtype[QKV]))
        return ls_fail(err, LS_INVALID, "the log-sum-exp must be (N * H, T) of type %s",
                       ls_dtype_name(lsi_wide_dtype(c->in_dtype[QKV])));
    c->out[0] = x;
    return LS_OK;
}

static double flops(const ls_graph *g, const ls_node *n)
{
    const ls_shape out = *ls_node_in_shape(g, n, OUT);

    return 10.0 * (double)ls_shape_count(out) * (double)out.dim[1];
}

static void ref(const ls_ref_call *c)
{
    const ls_attention_attr *a = c->attr;
    const lsi_heads x = lsi_heads_of(c->in[QKV].shape);

    memset(c->out[0].d, 0, sizeof(double) * (size_t)c->out[0].count);
    for (int64_t i = 0; i < c->in[LSE].count; i++) { /* (n, h, t) */
        const int64_t t = i % x.T, h = i / x.T % x.H, n = i / x.T / x.H,
                      row = ((n * x.T + t) * x.H + h) * x.D;
        const double *head = c->in[QKV].d + lsi_heads_at(&x, n, 0, h);
        double *dhead = c->out[0].d + lsi_heads_at(&x, n, 0, h);
        lsi_attend_grad(&(lsi_query_grad){.q = head + t * x.row,
                                          .k = head + x.part,
                                          .v = head + 2 * x.part,
                                          .out = c->in[OUT].d + row,
                                          .dout = c->in[DOUT].d + row,
                                          .dq = dhead + t * x.row,
                                          .dk = dhead + x.part,
                                          .dv = dhead + 2 * x.part,
                                          .lse = c->in[LSE].d[i],
                                          .row = x.row},
                        a->scale, x.T, x.D);
    }
}

const ls_op ls_op_self_attention_grad = {
    .name = "self_attention_grad",
    .min_in = 4,
    .max_in = 4,
    .n_out = 1,
    .attr_size = sizeof(ls_attention_attr),
    .infer = infer,
    .flops = flops,
    .ref = ref,
    .attr_text = lsi_attention_attr_text,
};
