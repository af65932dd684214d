/* optim_template.h: the updates in vectors; included by optim_avx512.c and _avx2.c, which define OPTIM_TABLE.
 */
#include "backend/cpu/optim.h"
#include "backend/cpu/vec_math.h"

/* One vector of gradients: without the loss scale, with L2 decay. */
LSI_INLINE vf gradient(const lsi_optim_numbers *c, vf g, vf w)
{
    return v_fma(w, v_set1(c->decay), v_mul(g, v_set1(c->g_scale)));
}

LSI_INLINE void sgd_body(const lsi_optim_numbers *c, const lsi_optim_run *r, int64_t i, int64_t n)
{
    const vf w = v_load_upto(r->w + i, n), g = gradient(c, v_load_upto(r->g + i, n), w);

    v_store_upto(r->w_new + i, v_fma(v_set1(-c->lr), g, w), n);
}

LSI_INLINE void sgd_momentum_body(const lsi_optim_numbers *c, const lsi_optim_run *r, int64_t i, int64_t n)
{
    const vf w = v_load_upto(r->w + i, n), g = gradient(c, v_load_upto(r->g + i, n), w);
    const vf m = v_set1(c->momentum), v = v_fma(m, v_load_upto(r->s0 + i, n), g);
    const vf d = c->nesterov ? v_fma(m, v, g) : v;

    v_store_upto(r->s0_new + i, v, n);
    v_store_upto(r->w_new + i, v_fma(v_set1(-c->lr), d, w), n);
}

LSI_INLINE void new_moments(const lsi_optim_numbers *c, const lsi_optim_run *r, vf g, int64_t i, int64_t n,
                            vf *m, vf *v)
{
    *m = v_fma(v_set1(c->b1), v_load_upto(r->s0 + i, n), v_mul(v_set1(c->b1_rest), g));
    *v = v_fma(v_set1(c->b2), v_load_upto(r->s1 + i, n), v_mul(v_mul(v_set1(c->b2_rest), g), g));
    v_store_upto(r->s0_new + i, *m, n);
    v_store_upto(r->s1_new + i, *v, n);
}

/* step * m / (sqrt(v) * root_scale + eps) */
LSI_INLINE vf direction(const lsi_optim_numbers *c, vf m, vf v)
{
    return v_div(v_mul(v_set1(c->step), m), v_fma(v_sqrt(v), v_set1(c->root_scale), v_set1(c->eps)));
}

LSI_INLINE void adam_body(const lsi_optim_numbers *c, const lsi_optim_run *r, int64_t i, int64_t n)
{
    const vf w = v_load_upto(r->w + i, n), g = gradient(c, v_load_upto(r->g + i, n), w);
    vf m, v;

    new_moments(c, r, g, i, n, &m, &v);
    v_store_upto(r->w_new + i, v_sub(v_fma(v_set1(-c->w_decay), w, w), direction(c, m, v)), n);
}

LSI_INLINE vf rmsprop_direction(const lsi_optim_numbers *c, const lsi_optim_run *r, vf w, int64_t i,
                                int64_t n)
{
    const vf g = gradient(c, v_load_upto(r->g + i, n), w);
    const vf s = v_fma(v_set1(c->b2), v_load_upto(r->s0 + i, n), v_mul(v_mul(v_set1(c->b2_rest), g), g));

    v_store_upto(r->s0_new + i, s, n);
    return v_div(g, v_add(v_sqrt(s), v_set1(c->eps)));
}

LSI_INLINE void rmsprop_body(const lsi_optim_numbers *c, const lsi_optim_run *r, int64_t i, int64_t n)
{
    const vf w = v_load_upto(r->w + i, n), d = rmsprop_direction(c, r, w, i, n);

    v_store_upto(r->w_new + i, v_fma(v_set1(-c->lr), d, w), n);
}

LSI_INLINE void rmsprop_momentum_body(const lsi_optim_numbers *c, const lsi_optim_run *r, int64_t i,
                                      int64_t n)
{
    const vf w = v_load_upto(r->w + i, n);
    const vf d = v_fma(v_set1(c->momentum), v_load_upto(r->s1 + i, n), rmsprop_direction(c, r, w, i, n));

    v_store_upto(r->s1_new + i, d, n);
    v_store_upto(r->w_new + i, v_fma(v_set1(-c->lr), d, w), n);
}

/* u = direction + decay * w; c->step is 1 / (1 - b1^t) here. */
LSI_INLINE vf lamb_direction(const lsi_optim_numbers *c, vf m, vf v, vf w)
{
    return v_fma(v_set1(c->decay), w, direction(c, m, v));
}

LSI_INLINE void lamb_step_body(const lsi_optim_numbers *c, const lsi_optim_run *r, int64_t i, int64_t n)
{
    const vf w = v_load_upto(r->w + i, n);
    const vf u = lamb_direction(c, v_load_upto(r->s0_new + i, n), v_load_upto(r->s1_new + i, n), w);

    v_store_upto(r->w_new + i, v_fma(v_set1(-c->lr), u, w), n);
}

/* Four streams are more than a core's own prefetching keeps up with: of each, 32 lines ahead. */
enum { AHEAD = 512 };

LSI_INLINE void fetch_ahead(const lsi_optim_run *r, int64_t i)
{
    const uintptr_t at = (uintptr_t)(i + AHEAD) * sizeof(float); /* a number: there may be no such state */

    __builtin_prefetch((const void *)((uintptr_t)r->g + at), 0);
    __builtin_prefetch((const void *)((uintptr_t)r->w + at), 1);
    __builtin_prefetch((const void *)((uintptr_t)r->s0 + at), 1);
    __builtin_prefetch((const void *)((uintptr_t)r->s1 + at), 1);
}

/* The numbers are copied: the loops store floats, which might as well be these, and each vector would load
 * them again. */
/* Whole vectors with a constant width, then what is left. */
#define OPTIM_LOOP(NAME, BODY)                                                                               \
    static void NAME(const lsi_optim_numbers *numbers, const lsi_optim_run *run)                             \
    {                                                                                                        \
        const lsi_optim_numbers c = *numbers;                                                                \
        const lsi_optim_run r = *run;                                                                        \
        int64_t i = 0;                                                                                       \
        for (; i + LSI_VL <= r.n; i += LSI_VL) {                                                             \
            fetch_ahead(&r, i);                                                                              \
            BODY(&c, &r, i, LSI_VL);                                                                         \
        }                                                                                                    \
        if (i < r.n) BODY(&c, &r, i, r.n - i);                                                               \
    }

OPTIM_LOOP(sgd, sgd_body)
OPTIM_LOOP(sgd_momentum, sgd_momentum_body)
OPTIM_LOOP(adam, adam_body)
OPTIM_LOOP(rmsprop, rmsprop_body)
OPTIM_LOOP(rmsprop_momentum, rmsprop_momentum_body)
OPTIM_LOOP(lamb_step, lamb_step_body)

static void lamb_moments(const lsi_optim_numbers *c, const lsi_optim_run *r, double *u_square)
{
    double acc[LSI_VL] = {0};

    for (int64_t i = 0; i < r->n; i += LSI_VL) {
        const int64_t n = r->n - i;
        vf m, v, u;
        new_moments(c, r, v_mul(v_load_upto(r->g + i, n), v_set1(c->g_scale)), i, n, &m, &v);
        u = lamb_direction(c, m, v, v_load_upto(r->w + i, n));
        /* Beyond the end m, v and w are zero, and so is u unless eps is. */
        if (n < LSI_VL) u = v_keep_n(u, n);
        v_add_to_double(acc, v_mul(u, u));
    }
    *u_square += v_sum_double(acc);
}

static double square_sum(const float *x, int64_t n)
{
    double acc[LSI_VL] = {0};

    for (int64_t i = 0; i < n; i += 32 * LSI_VL) {
        vf s = v_zero();
        for (int64_t k = i; k < n && k < i + 32 * LSI_VL; k += LSI_VL) {
            const vf a = v_load_upto(x + k, n - k);
            s = v_fma(a, a, s);
        }
        v_add_to_double(acc, s);
    }
    return v_sum_double(acc);
}

static void accumulate(float *sum, const float *g, bool keep, float weight, int64_t n)
{
    const vf w = v_set1(weight);

    for (int64_t i = 0; i < n; i += LSI_VL) {
        const vf x = weight != 0 ? v_load_upto(g + i, n - i) : v_zero();
        v_store_upto(sum + i, keep ? v_fma(w, x, v_load_upto(sum + i, n - i)) : v_mul(w, x), n - i);
    }
}

const lsi_optim_table OPTIM_TABLE = {
    .impl = OPTIM_IMPL,
    .sgd = sgd,
    .sgd_momentum = sgd_momentum,
    .adam = adam,
    .rmsprop = rmsprop,
    .rmsprop_momentum = rmsprop_momentum,
    .lamb_moments = lamb_moments,
    .lamb_step = lamb_step,
    .square_sum = square_sum,
    .accumulate = accumulate,
};
