/* adam: m = b1 * m + (1-b1) * g, v = b2 * v + (1-b2) * g^2, and then, in the t-th update,
 *   torch:  w -= lr / (1-b1^t) * m / (sqrt(v) / sqrt(1-b2^t) + eps)
 *   tf:     w -= lr * sqrt(1-b2^t) / (1-b1^t) * m / (sqrt(v) + eps): eps weighs more in early steps
 *   adamw:  torch, with weight decay w -= lr * wd * w taken out of the gradient (Loshchilov and Hutter).
 * The first two add weight decay to the gradient: g += wd * w. */
#include <math.h>

#include "ops/optim_rules.h"

static void update(const lsi_optim_step *step, const lsi_param *p)
{
    const ls_optim_attr *a = step->attr;
    double c1 = 1 - pow(a->beta1, step->t), c2 = sqrt(1 - pow(a->beta2, step->t));
    bool decoupled = a->form == LS_ADAM_W;

    for (int64_t i = 0; i < p->count; i++) {
        double m, root, w = decoupled ? p->w[i] * (1 - step->lr * a->weight_decay) : p->w[i];
        lsi_optim_moments(step, p, i, lsi_optim_gradient(step, p, i, decoupled ? 0 : a->weight_decay));
        m = p->s_new[0][i];
        root = sqrt(p->s_new[1][i]);
        if (a->form == LS_ADAM_TF)
            p->w_new[i] = w - step->lr * c2 / c1 * m / (root + a->eps);
        else
            p->w_new[i] = w - step->lr / c1 * m / (root / c2 + a->eps);
    }
}

LSI_OPTIM_OP(adam, 14)
