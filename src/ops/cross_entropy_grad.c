/* cross_entropy_grad: dlogits = dloss * (probabilities - onehot(label)) / N; a row of NaN where the label is
 * out of range. */
#include <math.h>

#include "ops/index_rules.h"
#include "ops/loss_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    ls_status st = lsi_check_labelled(c, 1, 2, err);

    if (st == LS_OK) st = lsi_check_dloss(c, 0, c->in_dtype[1], err);
    if (st != LS_OK) return st;
    c->out[0] = c->in[1];
    return LS_OK;
}

static double flops(const ls_graph *g, const ls_node *n)
{
    return (double)ls_shape_count(*ls_node_in_shape(g, n, 1));
}

static void ref(const ls_ref_call *c)
{
    int64_t N = c->in[1].shape.dim[0], C = c->in[1].shape.dim[1];

    for (int64_t i = 0; i < c->out[0].count; i++) {
        double label = c->in[2].d[i / C];
        double d = c->in[1].d[i] - ((double)(i % C) == label ? 1 : 0);
        c->out[0].d[i] = lsi_index_ok(label, C) ? c->in[0].d[0] * d / (double)N : NAN;
    }
}

const ls_op ls_op_cross_entropy_grad = {
    .name = "cross_entropy_grad",
    .min_in = 3,
    .max_in = 3,
    .n_out = 1,
    .infer = infer,
    .flops = flops,
    .ref = ref,
};

ls_value ls_cross_entropy_grad(ls_value dloss, ls_value probs, ls_value labels)
{
    return ls_graph_add(dloss.g, &ls_op_cross_entropy_grad, 3, (ls_value[]){dloss, probs, labels}, NULL);
}
