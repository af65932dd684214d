/* rmsprop: as PyTorch writes it, without centering:
 *   g += wd * w;  s = alpha * s + (1-alpha) * g^2;  d = g / (sqrt(s) + eps);
 *   w -= lr * d, or with momentum:  b = m * b + d;  w -= lr * b. */
#include <math.h>

#include "ops/optim_rules.h"

static void update(const lsi_optim_step *step, const lsi_param *p)
{
    const ls_optim_attr *a = step->attr;

    for (int64_t i = 0; i < p->count; i++) {
        double g = lsi_optim_gradient(step, p, i, a->weight_decay);
        double s = a->alpha * p->s[0][i] + (1 - a->alpha) * g * g;
        double d = g / (sqrt(s) + a->eps);
        p->s_new[0][i] = s;
        if (a->momentum != 0) {
            d = a->momentum * p->s[1][i] + d;
            p->s_new[1][i] = d;
        }
        p->w_new[i] = p->w[i] - step->lr * d;
    }
}

static void ref(const ls_ref_call *c)
{
    lsi_ref_optim(c, update);
}

static ls_status infer(ls_infer *c, ls_err *err)
{
    return lsi_optim_infer(c, &ls_op_rmsprop, err);
}

static double flops(const ls_graph *g, const ls_node *n)
{
    return lsi_optim_flops(g, n, 13);
}

const ls_op ls_op_rmsprop = {
    .name = "rmsprop",
    .min_in = LSI_OPTIM_W + 2,
    .max_in = -1,
    .attr_size = sizeof(ls_optim_attr),
    .flags = LS_OP_UPDATE | LS_OP_NO_GRAD,
    .count_out = lsi_optim_count_out,
    .infer = infer,
    .flops = flops,
    .alias = lsi_optim_alias,
    .ref = ref,
    .attr_text = lsi_optim_attr_text,
};
