/* few.cuh: what the convolutions with few channels share: rows of the map with
 * few channels in shared memory.
 *
 * A row lies there as it is in memory, with zeros for the padding on both
 * sides; its element (x, f) is at lead + (x + left) * f_channels + f.  The lead
 * makes the row's first real element even, so that rows can come in pairs. */
#ifndef LS_BACKEND_CUDA_MODULE_FEW_CUH
#define LS_BACKEND_CUDA_MODULE_FEW_CUH

#include "backend/cuda/launch/few.h"
#include "backend/cuda/module/mma.cuh"
#include "backend/cuda/module/vector.cuh"

#define LSI_FEW_SHARED (100 * 1024) /* bytes of a block: two fit */

static inline int lsi_few_lead(const lsi_cuda_few *p)
{
    return (8 - p->left * p->f % 8) % 8;
}

/* Elements from row to row, for pixels up to `pixels` of the map with many
 * channels. */
static inline int lsi_few_pitch(const lsi_cuda_few *p, int pixels)
{
    const int own = lsi_few_lead(p) + (p->left + p->w) * p->f;
    const int seen = lsi_few_lead(p) + ((pixels - 1) * p->stride + p->kw + 2) * p->f;

    return ((own > seen ? own : seen) + 8) / 8 * 8;
}

/* Rows iy..iy+count-1 of sample n, each to its place in a ring of rows, row
 * `slot` being the first: zeros where there is none.  Padding is left alone.
 * The copies run by themselves, except where rows are of odd length. */
static __device__ __forceinline__ void lsi_few_rows(const lsi_cuda_few &p, const __nv_bfloat16 *few, int n,
                                                    int iy, int count, __nv_bfloat16 *rows, int pitch,
                                                    int ring, int slot, int lead)
{
    const int length = p.w * p.f,
              each = length % 8 == 0   ? 8
                     : length % 2 == 0 ? 2
                                       : 1,
              pieces = length / each;

    for (int i = threadIdx.x; i < count * pieces; i += blockDim.x) {
        const int r = i / pieces, e = (i - r * pieces) * each, y = iy + r, at = (slot + r) % ring;
        const bool ok = y >= 0 && y < p.h;
        const __nv_bfloat16 *from = few + ((int64_t)n * p.h + (ok ? y : 0)) * length + e;
        __nv_bfloat16 *to = rows + at * pitch + lead + p.left * p.f + e;
        if (each == 8)
            lsi_copy16(lsi_shared(to), from, ok);
        else if (each == 2)
            lsi_copy4(lsi_shared(to), from, ok);
        else
            *to = ok ? *from : __float2bfloat16_rn(0.0f);
    }
}

static __device__ __forceinline__ float lsi_few_weight(const lsi_cuda_few &p, const __nv_bfloat16 *w, int m,
                                                       int f, int ky, int kx)
{
    return __bfloat162float(w[p.w_first + m * p.w_m + f * p.w_f + ky * p.w_ky + kx * p.w_kx]);
}

static __device__ __forceinline__ uint32_t lsi_pair(float low, float high)
{
    const __nv_bfloat162 v = __floats2bfloat162_rn(low, high);

    return *(const uint32_t *)&v;
}

#endif
