/* conv_pooled_avx2.c: sums of conv_pooled.h in registers, one vector for each row of the filter.
 *
 * Eight lanes hold the taps of a row, so a window costs kh loads and kh fused multiply-adds.  Windows go by
 * twos into sums of their own: one set alone would wait for each addition to finish. */
#include "backend/cpu/conv_pooled.h"
#include "backend/cpu/vec.h"

LSI_INLINE void add_rows(const int kh, const lsi_pooled_plane *p, float (*sums)[LSI_POOLED_TAPS])
{
    vf even[LSI_POOLED_TAPS], odd[LSI_POOLED_TAPS];

    V_UNROLL
    for (int k = 0; k < kh; k++) {
        even[k] = v_load(sums[k]);
        odd[k] = v_zero();
    }
    for (int64_t y = 0; y < p->ph; y++) {
        const float *x = p->x + p->origin + y * p->step_y, *dy = p->dy + y * p->pw;
        const uint8_t *index = p->index + y * p->pw;
        int64_t i = 0;
        for (; i + 1 < p->pw; i += 2, x += 2 * p->step_x) {
            const float *a = x + p->offset[index[i]], *b = x + p->step_x + p->offset[index[i + 1]];
            const vf da = v_set1(dy[i]), db = v_set1(dy[i + 1]);
            V_UNROLL
            for (int k = 0; k < kh; k++) {
                even[k] = v_fma(da, v_load(a + k * p->pitch), even[k]);
                odd[k] = v_fma(db, v_load(b + k * p->pitch), odd[k]);
            }
        }
        if (i < p->pw) {
            const float *a = x + p->offset[index[i]];
            V_UNROLL
            for (int k = 0; k < kh; k++) even[k] = v_fma(v_set1(dy[i]), v_load(a + k * p->pitch), even[k]);
        }
    }
    V_UNROLL
    for (int k = 0; k < kh; k++) v_store(sums[k], v_add(even[k], odd[k]));
}

void lsi_pooled_add_avx2(const lsi_pooled_plane *p, int64_t kh, float (*sums)[LSI_POOLED_TAPS])
{
    switch (kh) {
    case 1: add_rows(1, p, sums); break;
    case 2: add_rows(2, p, sums); break;
    case 3: add_rows(3, p, sums); break;
    case 4: add_rows(4, p, sums); break;
    case 5: add_rows(5, p, sums); break;
    case 6: add_rows(6, p, sums); break;
    case 7: add_rows(7, p, sums); break;
    default: add_rows(8, p, sums); break;
    }
}
