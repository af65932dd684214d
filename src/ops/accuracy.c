/* accuracy: the number of samples whose largest logit (the first of equals) is the label. */
#include "ops/index_rules.h"
#include "ops/loss_rules.h"
#include "ops/type_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    ls_status st = lsi_check_labelled(c, 0, 1, err);

    if (st != LS_OK) return st;
    c->out[0] = LS_SHAPE_SCALAR;
    c->out_dtype[0] = lsi_wide_dtype(c->in_dtype[0]);
    return LS_OK;
}

/* Whether x[label] is larger than everything before and no smaller than everything after it.  A NaN anywhere
 * makes the answer no. */
static bool is_first_maximum(const double *x, int64_t C, int64_t label)
{
    for (int64_t i = 0; i < C; i++)
        if (!(i < label ? x[i] < x[label] : x[i] <= x[label])) return false;
    return true;
}

static void ref(const ls_ref_call *c)
{
    int64_t N = c->in[0].shape.dim[0], C = c->in[0].shape.dim[1];
    double right = 0;

    for (int64_t n = 0; n < N; n++) {
        double label = c->in[1].d[n];
        if (lsi_index_ok(label, C) && is_first_maximum(c->in[0].d + n * C, C, (int64_t)label)) right += 1;
    }
    c->out[0].d[0] = right;
}

const ls_op ls_op_accuracy = {
    .name = "accuracy",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .flags = LS_OP_NO_GRAD,
    .infer = infer,
    .ref = ref,
};

ls_value ls_accuracy(ls_value logits, ls_value labels)
{
    return ls_graph_add(logits.g, &ls_op_accuracy, 2, (ls_value[]){logits, labels}, NULL);
}
