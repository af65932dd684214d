/* channels_template.h: the per-channel kernels in vectors; included by channels_avx512.c and _avx2.c, and by
 * those for maps stored in 16 bits, which define CHANNEL_TABLE.
 *
 * Lines and lanes share their loops: in both, the elements of a unit are vectors at equal distances, of which
 * some at the end may be incomplete (a strip).  Sums run in float over short chunks and in double above
 * that. */
#include "backend/cpu/channels.h"
#include "backend/cpu/stored.h"

#define CHUNK 128 /* vectors summed in float before they are added to a double */

/* Vectors at x + at, x + at + step, ...: `full` whole ones, then `rest` of `width` elements. */
typedef struct strip {
    int64_t at, step, full, rest, width;
} strip;

/* The strip of positions *pos..hi-1 that lie in one image; moves *pos behind it. */
LSI_INLINE strip next_strip(const lsi_channels *v, int64_t ch, int64_t *pos, int64_t hi)
{
    const int64_t image = *pos / v->s, p = *pos % v->s;
    const int64_t n = v->s - p < hi - *pos ? v->s - p : hi - *pos;

    *pos += n;
    if (!v->lanes)
        return (strip){(image * v->c + ch) * v->s + p, LSI_VL, n / LSI_VL, n % LSI_VL != 0, n % LSI_VL};
    const int64_t at = image * v->sn + ch / 16 * v->sb + ch % 16 + p * v->sp;
    if (v->c - ch >= LSI_VL) return (strip){at, v->sp, n, 0, LSI_VL};
    return (strip){at, v->sp, 0, n, v->c - ch};
}

/* A parameter of the unit: one per lane, or the same in all lanes.  NULL stands for zeros. */
LSI_INLINE vf param(const lsi_channels *v, const float *p, int64_t ch)
{
    if (p == NULL) return v_zero();
    if (!v->lanes) return v_set1(p[ch]);
    return v_load_upto(p + ch, v->c - ch);
}

LSI_INLINE vf get(const stored *p, int64_t width)
{
    return width == LSI_VL ? s_load(p) : s_load_n(p, width);
}
LSI_INLINE void put(stored *p, vf a, int64_t width)
{
    if (width == LSI_VL)
        s_store(p, a);
    else
        s_store_n(p, a, width);
}

/* Runs STATEMENT, which uses `at` and `w`, for every vector of a strip; w is a constant for whole vectors. */
#define FOR_VECTORS(S, FROM, TO, STATEMENT)                                                                  \
    do {                                                                                                     \
        int64_t at = (S).at + (FROM) * (S).step, k_ = (FROM);                                                \
        for (; k_ < (TO) && k_ < (S).full; k_++, at += (S).step) {                                           \
            enum { w = LSI_VL };                                                                             \
            STATEMENT;                                                                                       \
        }                                                                                                    \
        for (; k_ < (TO); k_++, at += (S).step) {                                                            \
            const int64_t w = (S).width;                                                                     \
            STATEMENT;                                                                                       \
        }                                                                                                    \
    } while (0)

/* Adds the vector sums of a unit to its doubles: lane by lane, or all lanes into one. */
LSI_INLINE void give_sums(const lsi_channels *v, const double *acc, double *sums)
{
    if (v->lanes)
        for (int i = 0; i < LSI_VL; i++) sums[i] += acc[i];
    else
        sums[0] += v_sum_double(acc);
}

static void moments(const lsi_channels *v, const void *map, int64_t ch, int64_t lo, int64_t hi,
                    const float *shift, double *sums)
{
    const vf sh = v->lanes ? v_load(shift) : v_set1(shift[0]);
    const stored *x = map;
    double s[LSI_VL] = {0}, q[LSI_VL] = {0};

    while (lo < hi) {
        const strip t = next_strip(v, ch, &lo, hi);
        for (int64_t k = 0; k < t.full; k += CHUNK) {
            const int64_t end = k + CHUNK < t.full ? k + CHUNK : t.full;
            const stored *p = x + t.at + k * t.step;
            vf s0 = v_zero(), s1 = s0, q0 = s0, q1 = s0;
            int64_t i = k;
            for (; i + 2 <= end; i += 2, p += 2 * t.step) {
                const vf d0 = v_sub(s_load(p), sh), d1 = v_sub(s_load(p + t.step), sh);
                s0 = v_add(s0, d0);
                s1 = v_add(s1, d1);
                q0 = v_fma(d0, d0, q0);
                q1 = v_fma(d1, d1, q1);
            }
            if (i < end) {
                const vf d0 = v_sub(s_load(p), sh);
                s0 = v_add(s0, d0);
                q0 = v_fma(d0, d0, q0);
            }
            v_add_to_double(s, v_add(s0, s1));
            v_add_to_double(q, v_add(q0, q1));
        }
        for (int64_t k = 0; k < t.rest; k++) {
            const vf d = v_keep_n(v_sub(s_load_n(x + t.at + (t.full + k) * t.step, t.width), sh), t.width);
            v_add_to_double(s, d);
            v_add_to_double(q, v_mul(d, d));
        }
    }
    give_sums(v, s, sums);
    give_sums(v, q, sums + (v->lanes ? LSI_VL : 1));
}

LSI_INLINE void norm_body(const lsi_channels *v, const lsi_norm_apply *d, int64_t ch, int64_t lo, int64_t hi,
                          const ls_act act, const bool residual)
{
    const vf mean = param(v, d->mean, ch), scale = param(v, d->scale, ch), beta = param(v, d->beta, ch);
    const stored *x = d->x, *r = d->residual;
    const float slope = d->slope;
    stored *y = d->y;

    while (lo < hi) {
        const strip t = next_strip(v, ch, &lo, hi);
        FOR_VECTORS(t, 0, t.full + t.rest, {
            vf a = v_fma(v_sub(get(x + at, w), mean), scale, beta);
            if (residual) a = v_add(a, get(r + at, w));
            put(y + at, v_graph_act(a, act, slope), w);
        });
    }
}

static void norm(const lsi_channels *v, const lsi_norm_apply *d, int64_t ch, int64_t lo, int64_t hi)
{
    const bool r = d->residual != NULL;

    switch (d->act) {
    case LS_ACT_NONE:
        if (r)
            norm_body(v, d, ch, lo, hi, LS_ACT_NONE, true);
        else
            norm_body(v, d, ch, lo, hi, LS_ACT_NONE, false);
        break;
    case LS_ACT_RELU:
        if (r)
            norm_body(v, d, ch, lo, hi, LS_ACT_RELU, true);
        else
            norm_body(v, d, ch, lo, hi, LS_ACT_RELU, false);
        break;
    case LS_ACT_LEAKY: norm_body(v, d, ch, lo, hi, LS_ACT_LEAKY, r); break;
    case LS_ACT_TANH: norm_body(v, d, ch, lo, hi, LS_ACT_TANH, r); break;
    case LS_ACT_GELU: norm_body(v, d, ch, lo, hi, LS_ACT_GELU, r); break;
    }
}

LSI_INLINE void norm_sums_body(const lsi_channels *v, const lsi_norm_back *d, int64_t ch, int64_t lo,
                               int64_t hi, double *sums, const ls_act act)
{
    const vf mean = param(v, d->mean, ch);
    const stored *dy = d->dy, *x = d->x, *y = act == LS_ACT_NONE ? d->dy : d->y;
    const float slope = d->slope;
    double s[LSI_VL] = {0}, q[LSI_VL] = {0};

    while (lo < hi) {
        const strip t = next_strip(v, ch, &lo, hi);
        for (int64_t k = 0; k < t.full + t.rest; k += CHUNK) {
            const int64_t end = k + CHUNK < t.full + t.rest ? k + CHUNK : t.full + t.rest;
            vf s0 = v_zero(), q0 = s0;
            /* Incomplete vectors of dy are filled with zeros, which add nothing to either sum. */
            FOR_VECTORS(t, k, end, {
                const vf dz = v_graph_act_grad(get(dy + at, w), get(y + at, w), act, slope);
                s0 = v_add(s0, dz);
                q0 = v_fma(dz, v_sub(get(x + at, w), mean), q0);
            });
            v_add_to_double(s, s0);
            v_add_to_double(q, q0);
        }
    }
    give_sums(v, s, sums);
    give_sums(v, q, sums + (v->lanes ? LSI_VL : 1));
}

static void norm_sums(const lsi_channels *v, const lsi_norm_back *d, int64_t ch, int64_t lo, int64_t hi,
                      double *sums)
{
    switch (d->act) {
    case LS_ACT_RELU: norm_sums_body(v, d, ch, lo, hi, sums, LS_ACT_RELU); break;
    case LS_ACT_LEAKY: norm_sums_body(v, d, ch, lo, hi, sums, LS_ACT_LEAKY); break;
    case LS_ACT_TANH: norm_sums_body(v, d, ch, lo, hi, sums, LS_ACT_TANH); break;
    default: norm_sums_body(v, d, ch, lo, hi, sums, LS_ACT_NONE); break;
    }
}

LSI_INLINE void norm_back_body(const lsi_channels *v, const lsi_norm_back *d, int64_t ch, int64_t lo,
                               int64_t hi, const ls_act act, const bool residual)
{
    const vf mean = param(v, d->mean, ch), a = param(v, d->a, ch), b = param(v, d->b, ch);
    const vf c = param(v, d->c, ch);
    const stored *dy = d->dy, *x = d->x, *y = act == LS_ACT_NONE ? d->dy : d->y;
    const float slope = d->slope;
    stored *dx = d->dx, *dr = d->dresidual;

    while (lo < hi) {
        const strip t = next_strip(v, ch, &lo, hi);
        FOR_VECTORS(t, 0, t.full + t.rest, {
            const vf dz = v_graph_act_grad(get(dy + at, w), get(y + at, w), act, slope);
            const vf centred = v_sub(get(x + at, w), mean);
            if (residual) put(dr + at, dz, w);
            put(dx + at, v_fma(a, dz, v_fma(b, centred, c)), w);
        });
    }
}

static void norm_back(const lsi_channels *v, const lsi_norm_back *d, int64_t ch, int64_t lo, int64_t hi)
{
    const bool r = d->dresidual != NULL;

    switch (d->act) {
    case LS_ACT_RELU:
        if (r)
            norm_back_body(v, d, ch, lo, hi, LS_ACT_RELU, true);
        else
            norm_back_body(v, d, ch, lo, hi, LS_ACT_RELU, false);
        break;
    case LS_ACT_LEAKY: norm_back_body(v, d, ch, lo, hi, LS_ACT_LEAKY, r); break;
    case LS_ACT_TANH: norm_back_body(v, d, ch, lo, hi, LS_ACT_TANH, r); break;
    default: norm_back_body(v, d, ch, lo, hi, LS_ACT_NONE, r); break;
    }
}

LSI_INLINE void act_back_body(const lsi_channels *v, const lsi_act_back *d, int64_t ch, int64_t lo,
                              int64_t hi, double *sums, const ls_act act, const bool store)
{
    const stored *dy = d->dy, *y = act == LS_ACT_NONE ? d->dy : d->y;
    const float slope = d->slope;
    stored *dz = d->dz;
    double s[LSI_VL] = {0};

    while (lo < hi) {
        const strip t = next_strip(v, ch, &lo, hi);
        for (int64_t k = 0; k < t.full + t.rest; k += CHUNK) {
            const int64_t end = k + CHUNK < t.full + t.rest ? k + CHUNK : t.full + t.rest;
            vf s0 = v_zero();
            FOR_VECTORS(t, k, end, {
                const vf z = v_graph_act_grad(get(dy + at, w), get(y + at, w), act, slope);
                s0 = v_add(s0, z);
                if (store) put(dz + at, z, w);
            });
            v_add_to_double(s, s0);
        }
    }
    give_sums(v, s, sums);
}

static void act_back(const lsi_channels *v, const lsi_act_back *d, int64_t ch, int64_t lo, int64_t hi,
                     double *sums)
{
    switch (d->act) {
    case LS_ACT_RELU: act_back_body(v, d, ch, lo, hi, sums, LS_ACT_RELU, true); break;
    case LS_ACT_LEAKY: act_back_body(v, d, ch, lo, hi, sums, LS_ACT_LEAKY, true); break;
    case LS_ACT_TANH: act_back_body(v, d, ch, lo, hi, sums, LS_ACT_TANH, true); break;
    default:
        if (d->dz != NULL)
            act_back_body(v, d, ch, lo, hi, sums, LS_ACT_NONE, true);
        else
            act_back_body(v, d, ch, lo, hi, sums, LS_ACT_NONE, false);
        break;
    }
}

static void bias(const lsi_channels *v, const void *from, const float *b, void *to, int64_t ch, int64_t lo,
                 int64_t hi)
{
    const vf add = param(v, b, ch);
    const stored *x = from;
    stored *y = to;

    while (lo < hi) {
        const strip t = next_strip(v, ch, &lo, hi);
        FOR_VECTORS(t, 0, t.full + t.rest, { put(y + at, v_add(get(x + at, w), add), w); });
    }
}

const lsi_channel_table CHANNEL_TABLE = {
    .unit = LSI_VL,
    .impl = CHANNEL_IMPL,
    .moments = moments,
    .norm = norm,
    .norm_sums = norm_sums,
    .norm_back = norm_back,
    .act_back = act_back,
    .bias = bias,
};
