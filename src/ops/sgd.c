/* sgd: stochastic gradient descent with momentum, Nesterov's momentum and L2 weight decay, as in PyTorch:
 *   g += wd * w;  v = m * v + g;  w -= lr * (nesterov ? g + m * v : v).
 * v starts at zero, so that the first step has v = g. */
#include "ops/optim_rules.h"

static void update(const lsi_optim_step *step, const lsi_param *p)
{
    const ls_optim_attr *a = step->attr;

    for (int64_t i = 0; i < p->count; i++) {
        double g = lsi_optim_gradient(step, p, i, a->weight_decay), d = g;
        if (a->momentum != 0) {
            double v = a->momentum * p->s[0][i] + g;
            p->s_new[0][i] = v;
            d = a->nesterov ? g + a->momentum * v : v;
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
    return lsi_optim_infer(c, &ls_op_sgd, err);
}

static double flops(const ls_graph *g, const ls_node *n)
{
    return lsi_optim_flops(g, n, 7);
}

const ls_op ls_op_sgd = {
    .name = "sgd",
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
