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

LSI_OPTIM_OP(rmsprop, 13)
