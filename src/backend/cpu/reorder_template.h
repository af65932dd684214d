/* reorder_template.h: plain <-> C16, one image-block (16 channels of one sample) at a time: a transpose of
 * (16, H*W) to (H*W, 16) or back. */
#include "backend/cpu/reorder.h"
#include "backend/cpu/vec_transpose.h"

static void block(const float *x, float *y, int64_t pixels)
{
    for (int64_t p = 0; p + LSI_VL <= pixels; p += LSI_VL)
        for (int c = 0; c < 16; c += LSI_VL) {
            vf r[LSI_VL];
            for (int i = 0; i < LSI_VL; i++) r[i] = v_load(x + (c + i) * pixels + p);
            v_transpose(r);
            for (int i = 0; i < LSI_VL; i++) v_store(y + (p + i) * 16 + c, r[i]);
        }
    for (int64_t p = pixels / LSI_VL * LSI_VL; p < pixels; p++)
        for (int c = 0; c < 16; c++) y[p * 16 + c] = x[c * pixels + p];
}

static void unblock(const float *x, float *y, int64_t pixels)
{
    for (int64_t p = 0; p + LSI_VL <= pixels; p += LSI_VL)
        for (int c = 0; c < 16; c += LSI_VL) {
            vf r[LSI_VL];
            for (int i = 0; i < LSI_VL; i++) r[i] = v_load(x + (p + i) * 16 + c);
            v_transpose(r);
            for (int i = 0; i < LSI_VL; i++) v_store(y + (c + i) * pixels + p, r[i]);
        }
    for (int64_t p = pixels / LSI_VL * LSI_VL; p < pixels; p++)
        for (int c = 0; c < 16; c++) y[c * pixels + p] = x[p * 16 + c];
}
