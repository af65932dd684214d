/* update.cuh: what an optimiser makes of one element: the same for kernels of updates (module/optim.cu) and
 * for regions that update what their sums are the gradients of (region_finish.cuh).
 *
 * The files of this folder are text of the program as well: they include nothing. */
#ifndef LSI_CUDA_UPDATE
#define LSI_CUDA_UPDATE

/* As lsi_cuda_rule and ls_adam_form have them. */
enum { LSI_UPDATE_SGD, LSI_UPDATE_ADAM, LSI_UPDATE_RMSPROP, LSI_UPDATE_LARS, LSI_UPDATE_LAMB };
enum { LSI_UPDATE_FORM_TORCH, LSI_UPDATE_FORM_TF, LSI_UPDATE_FORM_W };

/* What is the same for all elements. */
struct lsi_update_numbers {
    float lr, loss_scale;
    float c1, c2; /* 1 - beta1^t and sqrt(1 - beta2^t) */
    float beta1, beta2, momentum, decay, eps, alpha, trust;
    float rest1, rest2,
        rest_alpha; /* 1 - beta1 and so on, from doubles: of a float near 1 they would be crude */
    bool nesterov;
    int form;
};

/* New weight and states of one element; `ratio` is that of its tensor.  Sums with a product are written as
 * fmaf: left to a compiler, some become one and some do not, another choice in every kernel. */
template <int RULE>
static __device__ __forceinline__ float lsi_update(const lsi_update_numbers &k, float w, float g, float &a,
                                                   float &b, float ratio)
{
    g /= k.loss_scale;
    if (RULE == LSI_UPDATE_SGD) {
        g = fmaf(k.decay, w, g);
        if (k.momentum != 0.0f) {
            a = fmaf(k.momentum, a, g);
            g = k.nesterov ? fmaf(k.momentum, a, g) : a;
        }
        return fmaf(-k.lr, g, w);
    }
    if (RULE == LSI_UPDATE_RMSPROP) {
        g = fmaf(k.decay, w, g);
        a = fmaf(k.alpha, a, k.rest_alpha * g * g);
        g = g / (sqrtf(a) + k.eps);
        if (k.momentum != 0.0f) g = b = fmaf(k.momentum, b, g);
        return fmaf(-k.lr, g, w);
    }
    if (RULE == LSI_UPDATE_LARS) { /* the tensor's decay is in k */
        a = fmaf(k.momentum, a, ratio * fmaf(k.decay, w, g));
        return fmaf(-k.lr, a, w);
    }
    if (RULE == LSI_UPDATE_ADAM && k.form != LSI_UPDATE_FORM_W) g = fmaf(k.decay, w, g);
    a = fmaf(k.beta1, a, k.rest1 * g);
    b = fmaf(k.beta2, b, k.rest2 * g * g);
    if (RULE == LSI_UPDATE_LAMB)
        return fmaf(k.decay, w, a / k.c1 / (sqrtf(b) / k.c2 + k.eps)); /* the direction */
    if (k.form == LSI_UPDATE_FORM_TF) return w - k.lr * k.c2 / k.c1 * a / (sqrtf(b) + k.eps);
    g = k.lr / k.c1 * a / (sqrtf(b) / k.c2 + k.eps);
    return k.form == LSI_UPDATE_FORM_W ? fmaf(w, fmaf(-k.lr, k.decay, 1.0f), -g) : w - g;
}

#endif
