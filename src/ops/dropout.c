/* dropout: x, key -> x / (1 - p) where a draw is kept, else 0.
 *
 * Element e of sample s is dropped when uniform(word(s, e)) < p; with per_channel, e is the channel.  Both
 * sides are compared as real numbers (the uniform is a multiple of 2^-24), so that every backend drops the
 * same elements.  The gradient applies the same op to dy: the mask is redrawn, never stored. */
#include "ops/random_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_random_attr *a = c->attr;

    if (!(a->p >= 0 && a->p < 1))
        return ls_fail(err, LS_INVALID, "the probability of dropping must be in [0, 1), got %g", a->p);
    if (c->in[0].rank < (a->per_channel ? 2 : 1))
        return ls_fail(err, LS_INVALID, "the first dimension must count samples%s",
                       a->per_channel ? ", the second channels" : "");
    if (!ls_dtype_is_float(c->in_dtype[0]))
        return ls_fail(err, LS_INVALID, "needs a floating type, got %s", ls_dtype_name(c->in_dtype[0]));
    c->out[0] = c->in[0];
    return lsi_check_key(c, 1, err);
}

static void grad(ls_grad_call *c)
{
    if (c->want[0])
        c->din[0] = ls_graph_add(c->g, &ls_op_dropout, 2, (ls_value[]){c->dout[0], c->in[1]}, c->attr);
}

static double flops(const ls_graph *g, const ls_node *n)
{
    return (double)ls_shape_count(*ls_node_in_shape(g, n, 0));
}

static void ref(const ls_ref_call *c)
{
    const ls_random_attr *a = c->attr;
    ls_rng_key key = lsi_random_key(&c->in[1]);
    ls_shape s = c->in[0].shape;
    int64_t per_sample, per_draw = 1;

    if (c->in[0].count == 0) return;
    per_sample = c->in[0].count / s.dim[0];
    if (a->per_channel) per_draw = per_sample / s.dim[1];
    for (int64_t i = 0; i < c->in[0].count; i++) {
        uint64_t e = (uint64_t)(i % per_sample / per_draw);
        double u = (double)ls_rng_uniform(ls_rng_word(&key, a->stream, (uint32_t)(i / per_sample), e));
        c->out[0].d[i] = u < a->p ? 0 : c->in[0].d[i] / (1 - a->p);
    }
}

const ls_op ls_op_dropout = {
    .name = "dropout",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .attr_size = sizeof(ls_random_attr),
    .flags = LS_OP_RANDOM | LS_OP_INPLACE,
    .infer = infer,
    .grad = grad,
    .flops = flops,
    .ref = ref,
    .attr_text = lsi_random_attr_text,
};

ls_value ls_dropout(ls_value x, ls_value key, double p, bool per_channel, const char *stream)
{
    ls_random_attr a = {.p = p, .stream = ls_rng_stream(stream), .per_channel = per_channel};

    return ls_graph_add(x.g, &ls_op_dropout, 2, (ls_value[]){x, key}, &a);
}
