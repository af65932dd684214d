/* search_template.h: searches in vectors; included by search_avx512.c and _avx2.c, which define SEARCH_TABLE.
 */
#include "backend/cpu/search.h"
#include "backend/cpu/vec_math.h"

#define POINT_VECTORS 4

LSI_INLINE void v_store_ints(int32_t *p, vf a, int64_t n)
{
    float lane[LSI_VL];

    v_store(lane, a);
    for (int64_t i = 0; i < n && i < LSI_VL; i++) p[i] = (int32_t)lane[i];
}

/* Places are floats, so that they travel with the values they belong to; exact up to 2^24. */
static const float counting[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static float row_max(const float *x, int64_t n, int32_t *at)
{
    float best = x[0];
    int64_t where = 0, i = 0;

    if (n >= LSI_VL) {
        float value[LSI_VL], place[LSI_VL];
        vf b = v_load(x), w = v_load(counting), pos = w;
        for (i = LSI_VL; i + LSI_VL <= n; i += LSI_VL) {
            pos = v_add(pos, v_set1((float)LSI_VL));
            v_contest(&b, &w, v_load(x + i), pos);
        }
        v_store(value, b);
        v_store(place, w);
        best = value[0];
        where = (int64_t)place[0];
        /* As in the reference kernel: of equal ones the first, and a NaN is larger than anything. */
        for (int k = 1; k < LSI_VL; k++) {
            const bool nan = value[k] != value[k], best_nan = best != best;
            const bool equal = (nan && best_nan) || value[k] == best;
            if (equal ? (int64_t)place[k] >= where : best_nan || !(nan || value[k] > best)) continue;
            best = value[k];
            where = (int64_t)place[k];
        }
    }
    for (; i < n; i++)
        if (best == best && !(x[i] <= best)) {
            best = x[i];
            where = i;
        }
    *at = (int32_t)where;
    return best;
}

static void column_max(const float *x, int64_t n, int64_t stride, int64_t width, float *y, int32_t *at)
{
    for (int64_t c = 0; c < width; c += LSI_VL) {
        const int64_t w = width - c;
        vf best = v_load_upto(x + c, w), where = v_zero();
        for (int64_t i = 1; i < n; i++)
            v_contest(&best, &where, v_load_upto(x + i * stride + c, w), v_set1((float)i));
        v_store_upto(y + c, best, w);
        v_store_ints(at + c, where, w);
    }
}

LSI_INLINE vf distance(vf x, vf y, vf z, const float *q, int64_t Q)
{
    const vf dx = v_sub(x, v_set1(q[0])), dy = v_sub(y, v_set1(q[Q])), dz = v_sub(z, v_set1(q[2 * Q]));

    return v_fma(dz, dz, v_fma(dy, dy, v_mul(dx, dx)));
}

/* POINT_VECTORS vectors of points against all of q: what is read of q serves that many. */
LSI_INLINE double nearest_block(const float *p, int64_t P, int64_t count, const float *q, int64_t Q,
                                int32_t *index, const bool full)
{
    vf x[POINT_VECTORS], y[POINT_VECTORS], z[POINT_VECTORS], best[POINT_VECTORS], at[POINT_VECTORS];
    double sum = 0;

    for (int k = 0; k < POINT_VECTORS; k++) {
        const int64_t w = full ? LSI_VL : count - k * LSI_VL;
        x[k] = w > 0 ? v_load_upto(p + k * LSI_VL, w) : v_zero();
        y[k] = w > 0 ? v_load_upto(p + P + k * LSI_VL, w) : v_zero();
        z[k] = w > 0 ? v_load_upto(p + 2 * P + k * LSI_VL, w) : v_zero();
        best[k] = distance(x[k], y[k], z[k], q, Q);
        at[k] = v_zero();
    }
    for (int64_t j = 1; j < Q; j++) {
        const vf here = v_set1((float)j);
        for (int k = 0; k < POINT_VECTORS; k++) {
            const vf d = distance(x[k], y[k], z[k], q + j, Q);
            at[k] = v_select_gt(best[k], d, here, at[k]);
            best[k] = v_min(d, best[k]);
        }
    }
    for (int k = 0; k < POINT_VECTORS; k++) {
        float lane[LSI_VL];
        const int64_t w = count - k * LSI_VL;
        v_store(lane, best[k]);
        for (int64_t i = 0; i < w && i < LSI_VL; i++) sum += (double)lane[i];
        if (w > 0) v_store_ints(index + k * LSI_VL, at[k], w);
    }
    return sum;
}

static double nearest(const float *p, int64_t P, int64_t count, const float *q, int64_t Q, int32_t *index)
{
    if (count == POINT_VECTORS * LSI_VL)
        return nearest_block(p, P, POINT_VECTORS * LSI_VL, q, Q, index, true);
    return nearest_block(p, P, count, q, Q, index, false);
}

const lsi_search_table SEARCH_TABLE = {.impl = SEARCH_IMPL,
                                       .points = POINT_VECTORS * LSI_VL,
                                       .row_max = row_max,
                                       .column_max = column_max,
                                       .nearest = nearest};
