/* cross_entropy: mean over the batch of -log softmax(logits)[label]; output 1 is softmax(logits), kept for
 * the gradient and for metrics.
 *
 * Loss and probabilities of 16-bit logits are f32: near a probability of 1 the gradient p - 1 would vanish in
 * 16 bits.  A label out of range makes the loss NaN rather than reading foreign memory. */
#include <math.h>

#include "ops/index_rules.h"
#include "ops/loss_rules.h"
#include "ops/softmax_rules.h"
#include "ops/type_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    ls_status st = lsi_check_labelled(c, 0, 1, err);

    if (st != LS_OK) return st;
    c->out[0] = LS_SHAPE_SCALAR;
    c->out[1] = c->in[0];
    for (int k = 0; k < 2; k++) c->out_dtype[k] = lsi_wide_dtype(c->in_dtype[0]);
    return LS_OK;
}

static void grad(ls_grad_call *c)
{
    ls_dtype dtype = ls_value_dtype(c->in[0]);
    ls_value d;

    if (ls_value_ok(c->dout[1])) {
        ls_graph_fail(c->g, LS_UNSUPPORTED,
                      "op cross_entropy: no gradient flows through the probabilities; use softmax");
        return;
    }
    if (!c->want[0]) return;
    d = ls_cross_entropy_grad(c->dout[0], c->out[1], c->in[1]);
    c->din[0] = ls_value_dtype(d) == dtype ? d : ls_cast(d, dtype);
}

static void ref(const ls_ref_call *c)
{
    int64_t N = c->in[0].shape.dim[0], C = c->in[0].shape.dim[1];
    double sum = 0;

    for (int64_t n = 0; n < N; n++) {
        const double *x = c->in[0].d + n * C;
        double label = c->in[1].d[n], lse = lsi_log_sum_exp(x, C);
        for (int64_t i = 0; i < C; i++) c->out[1].d[n * C + i] = exp(x[i] - lse);
        sum += lsi_index_ok(label, C) ? lse - x[(int64_t)label] : NAN;
    }
    c->out[0].d[0] = N > 0 ? sum / (double)N : 0;
}

const ls_op ls_op_cross_entropy = {
    .name = "cross_entropy",
    .min_in = 2,
    .max_in = 2,
    .n_out = 2,
    .infer = infer,
    .grad = grad,
    .flops = lsi_softmax_flops,
    .ref = ref,
};

ls_value ls_cross_entropy(ls_value logits, ls_value labels)
{
    return ls_graph_add(logits.g, &ls_op_cross_entropy, 2, (ls_value[]){logits, labels}, NULL);
}
