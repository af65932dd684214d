/* self_attention: attention over queries, keys and values that lie as one product left them: qkv (N, T, 3, H,
 * D)
 * -> out (N, T, H, D) and the log-sum-exp (N * H, T) of attention.  Fusion makes it of transposes, slices and
 * attention, for devices that read heads where they lie; so it has no gradient. */
#include "ops/attention_rules.h"
#include "ops/type_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_shape x = c->in[0];

    if (x.rank != 5 || x.dim[2] != 3 || !ls_dtype_is_float(c->in_dtype[0]))
        return ls_fail(err, LS_INVALID, "needs (N, T, 3, H, D) of a floating type");
    c->out[0] = LS_SHAPE(x.dim[0], x.dim[1], x.dim[3], x.dim[4]);
    c->out[1] = LS_SHAPE(x.dim[0] * x.dim[3], x.dim[1]);
    c->out_dtype[1] = lsi_wide_dtype(c->in_dtype[0]);
    return LS_OK;
}

static double flops(const ls_graph *g, const ls_node *n)
{
    const ls_shape out = *ls_node_out_shape(g, n, 0);

    return 4.0 * (double)ls_shape_count(out) * (double)out.dim[1];
}

static void ref(const ls_ref_call *c)
{
    const ls_attention_attr *a = c->attr;
    const lsi_heads x = lsi_heads_of(c->in[0].shape);

    for (int64_t i = 0; i < c->out[1].count; i++) { /* (n, h, t) */
        const int64_t t = i % x.T, h = i / x.T % x.H, n = i / x.T / x.H;
        const double *head = c->in[0].d + lsi_heads_at(&x, n, 0, h);
        c->out[1].d[i] = lsi_attend(head + t * x.row, head + x.part, head + 2 * x.part, x.row, a->scale, x.T,
                                    x.D, c->out[0].d + ((n * x.T + t) * x.H + h) * x.D);
    }
}

const ls_op ls_op_self_attention = {
    .name = "self_attention",
    .min_in = 1,
    .max_in = 1,
    .n_out = 2,
    .attr_size = sizeof(ls_attention_attr),
    .infer = infer,
    .flops = flops,
    .ref = ref,
    .attr_text = lsi_attention_attr_text,
};
