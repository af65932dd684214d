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

LSI_OPTIM_OP(sgd, 7)
