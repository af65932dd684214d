/* rows_template.h: functions of rows in vectors; included by rows_avx512.c and _avx2.c, and by those
 * for rows stored in 16 bits, which define ROW_TABLE.  Sums are in float over short chunks and in double
 * above that. */
#include "backend/cpu/rows.h"
#include "backend/cpu/stored.h"

#define CHUNK (32 * LSI_VL)

static float row_max(const stored *x, int64_t n)
{
    vf m = v_set1(-INFINITY);
    int64_t i = 0;

    for (; i + LSI_VL <= n; i += LSI_VL) m = v_max(m, s_load(x + i));
    float best = v_max_across(m);
    for (; i < n; i++) best = s_get(x + i) > best ? s_get(x + i) : best;
    return best;
}

/* Sum of exp(x - max), which is stored in y unless y is NULL. */
LSI_INLINE double exp_sum(const stored *x, float *y, float max, int64_t n, const bool store)
{
    const vf top = v_set1(max);
    double acc[LSI_VL] = {0};

    for (int64_t i = 0; i < n; i += CHUNK) {
        const int64_t end = i + CHUNK < n ? i + CHUNK : n;
        vf s = v_zero();
        int64_t k = i;
        for (; k + LSI_VL <= end; k += LSI_VL) {
            const vf e = v_exp(v_sub(s_load(x + k), top));
            if (store) v_store(y + k, e);
            s = v_add(s, e);
        }
        if (k < end) {
            const vf e = v_exp(v_sub(s_load_n(x + k, end - k), top));
            if (store) v_store_n(y + k, e, end - k);
            s = v_add(s, v_keep_n(e, end - k));
        }
        v_add_to_double(acc, s);
    }
    return v_sum_double(acc);
}

/* The largest element is taken off before the exponential: none overflows, and the sum is at least 1. */
static double row_softmax(const void *row, float *y, int64_t n)
{
    const stored *x = row;
    const float max = row_max(x, n);
    const double sum = exp_sum(x, y, max, n, true);
    const vf scale = v_set1((float)(1 / sum));

    for (int64_t i = 0; i < n; i += LSI_VL)
        v_store_upto(y + i, v_mul(v_load_upto(y + i, n - i), scale), n - i);
    return (double)max + log(sum);
}

static double row_log_softmax(const void *row, float *y, int64_t n)
{
    const stored *x = row;
    const float max = row_max(x, n);
    const double tail = log(exp_sum(x, NULL, max, n, false));
    const vf top = v_set1(max), rest = v_set1((float)tail);

    for (int64_t i = 0; i < n; i += LSI_VL)
        v_store_upto(y + i, v_sub(v_sub(s_load_upto(x + i, n - i), top), rest), n - i);
    return (double)max + tail;
}

/* Sum of x - shift, or of its square. */
LSI_INLINE double shifted_sum(const stored *x, float shift, int64_t n, const bool square)
{
    const vf sh = v_set1(shift);
    double acc[LSI_VL] = {0};

    for (int64_t i = 0; i < n; i += CHUNK) {
        const int64_t end = i + CHUNK < n ? i + CHUNK : n;
        vf s = v_zero();
        for (int64_t k = i; k < end; k += LSI_VL) {
            vf d = v_sub(s_load_upto(x + k, end - k), sh);
            if (end - k < LSI_VL) d = v_keep_n(d, end - k);
            s = square ? v_fma(d, d, s) : v_add(s, d);
        }
        v_add_to_double(acc, s);
    }
    return v_sum_double(acc);
}

static void row_norm(const void *from, const float *gamma, const float *beta, double eps, void *to,
                     float *mean, float *invstd, int64_t n)
{
    const stored *x = from;
    stored *y = to;
    const double m = n > 0 ? shifted_sum(x, 0, n, false) / (double)n : 0;
    /* A second pass, over what is in the cache by now: mean(x^2) - mean^2 would lose all digits where the
     * mean is large. */
    const double var = n > 0 ? shifted_sum(x, (float)m, n, true) / (double)n : 0;
    const double inv = 1 / sqrt(var + eps);
    const vf vm = v_set1((float)m), vi = v_set1((float)inv);

    *mean = (float)m;
    *invstd = (float)inv;
    for (int64_t i = 0; i < n; i += LSI_VL) {
        const vf scale = v_mul(vi, v_load_upto(gamma + i, n - i));
        const vf centred = v_sub(s_load_upto(x + i, n - i), vm);
        s_store_upto(y + i, v_fma(centred, scale, v_load_upto(beta + i, n - i)), n - i);
    }
}

static void row_norm_back(const void *dy_row, const void *x_row, const float *gamma, float mean, float invstd,
                          void *dx_row, double *dgamma, double *dbeta, int64_t n)
{
    const stored *dy = dy_row, *x = x_row;
    stored *dx = dx_row;
    const vf vm = v_set1(mean), vi = v_set1(invstd);
    double s[LSI_VL] = {0}, q[LSI_VL] = {0};

    for (int64_t i = 0; i < n; i += CHUNK) {
        const int64_t end = i + CHUNK < n ? i + CHUNK : n;
        vf s0 = v_zero(), q0 = s0;
        for (int64_t k = i; k < end; k += LSI_VL) {
            const int64_t w = end - k;
            const vf d = s_load_upto(dy + k, w), xhat = v_mul(v_sub(s_load_upto(x + k, w), vm), vi);
            const vf h = v_mul(d, v_load_upto(gamma + k, w));
            s0 = v_add(s0, h);
            q0 = v_fma(h, xhat, q0);
            if (w >= LSI_VL) {
                v_add_to_double(dgamma + k, v_mul(d, xhat));
                v_add_to_double(dbeta + k, d);
            }
        }
        for (int64_t k = end - (end - i) % LSI_VL; k < end; k++) {
            dgamma[k] += (double)(s_get(dy + k) * (s_get(x + k) - mean) * invstd);
            dbeta[k] += (double)s_get(dy + k);
        }
        v_add_to_double(s, s0);
        v_add_to_double(q, q0);
    }
    const vf m1 = v_set1((float)(v_sum_double(s) / (double)n));
    const vf m2 = v_set1((float)(v_sum_double(q) / (double)n));
    for (int64_t k = 0; k < n; k += LSI_VL) {
        const int64_t w = n - k;
        const vf xhat = v_mul(v_sub(s_load_upto(x + k, w), vm), vi);
        const vf h = v_mul(s_load_upto(dy + k, w), v_load_upto(gamma + k, w));
        s_store_upto(dx + k, v_mul(vi, v_sub(v_sub(h, m1), v_mul(xhat, m2))), w);
    }
}

const lsi_row_table ROW_TABLE = {
    .impl = ROW_IMPL,
    .softmax = row_softmax,
    .log_softmax = row_log_softmax,
    .norm = row_norm,
    .norm_back = row_norm_back,
};
