/* lars: momentum with a learning rate for each layer (You, Gitman and Ginsburg, arXiv:1708.03888):
 *   r = trust * |w| / (|g| + wd * |w|), or 1 when a norm is 0;  v = m * v + r * (g + wd * w);  w -= lr * v.
 * Biases and the scales and shifts of norms, which are all parameters of rank 0 or 1, get neither adaptation
 * (r = 1) nor decay: their norms say nothing about a layer, and decaying them hurts. */
#include "ops/optim_rules.h"

static void update(const lsi_optim_step *step, const lsi_param *p)
{
    const ls_optim_attr *a = step->attr;
    double decay = p->rank > 1 ? a->weight_decay : 0, ratio = 1;

    if (p->rank > 1) {
        double w = lsi_norm(p->w, p->count), g = lsi_norm(p->g, p->count) / step->loss_scale;
        if (w != 0 && g != 0) ratio = a->trust * w / (g + decay * w);
    }
    for (int64_t i = 0; i < p->count; i++) {
        double v = a->momentum * p->s[0][i] + ratio * lsi_optim_gradient(step, p, i, decay);
        p->s_new[0][i] = v;
        p->w_new[i] = p->w[i] - step->lr * v;
    }
}

LSI_OPTIM_OP(lars, 12)
