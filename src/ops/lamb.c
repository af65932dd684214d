/* lamb: Adam with a learning rate for each layer (You et al., arXiv:1904.00962):
 *   u = m / (1-b1^t) / (sqrt(v / (1-b2^t)) + eps) + wd * w;
 *   w -= lr * r * u with r = |w| / |u|, or 1 when a norm is 0.
 * m and v are Adam's moments of the gradient without decay.  Unlike lars it treats parameters of every rank
 * alike. */
#include <math.h>

#include "ops/optim_rules.h"

static void update(const lsi_optim_step *step, const lsi_param *p)
{
    const ls_optim_attr *a = step->attr;
    double c1 = 1 - pow(a->beta1, step->t), c2 = sqrt(1 - pow(a->beta2, step->t));
    double w = lsi_norm(p->w, p->count), u, ratio;

    for (int64_t i = 0; i < p->count; i++) {
        lsi_optim_moments(step, p, i, lsi_optim_gradient(step, p, i, 0));
        p->w_new[i] = p->s_new[0][i] / c1 / (sqrt(p->s_new[1][i]) / c2 + a->eps) + a->weight_decay * p->w[i];
    }
    /* w_new holds the direction until its norm is known. */
    u = lsi_norm(p->w_new, p->count);
    ratio = w != 0 && u != 0 ? w / u : 1;
    for (int64_t i = 0; i < p->count; i++) p->w_new[i] = p->w[i] - step->lr * ratio * p->w_new[i];
}

LSI_OPTIM_OP(lamb, 20)
