/* few.cuh: what the convolutions with few channels share: rows of the map with few channels in shared memory.
 *
 * A row lies there as it is in memory, with zeros for the padding on both sides; its element (x, f) is at
 * lead + (x + left) * f_channels + f.  The lead makes the row's first real element even, so that rows can
 * come in pairs. */
#ifndef LS_BACKEND_CUDA_MODULE_FEW_CUH
#define LS_BACKEND_CUDA_MODULE_FEW_CUH

#include "backend/cuda/launch/few.h"
#include "backend/cuda/module/mma.cuh"
#include "backend/cuda/module/vector.cuh"

#define LSI_FEW_SHARED (100 * 1024) /* bytes of a block: two fit */

static inline int lsi_few_lead(const lsi_cuda_few *p)
{
    return p->left * p->f % 2;
}

/* Elements from row to row, for pixels up to `pixels` of the map with many channels. */
static inline int lsi_few_pitch(const lsi_cuda_few *p, int pixels)
{
    const int own = lsi_few_lead(p) + (p->left + p->w) * p->f;
    const int seen = lsi_few_lead(p) + ((pixels - 1) * p->stride + p->kw + 2) * p->f;

    return ((own > seen ? own : seen) + 8) / 8 * 8;
}

/* Row iy of sample n into shared memory at `row`, or zeros where there is none.  Padding is left alone. */
template <int THREADS>
static __device__ __forceinline__ void lsi_few_row(const lsi_cuda_few &p, const __nv_bfloat16 *few, int n,
                                                   int iy, __nv_bfloat16 *row, int lead)
{
    const bool ok = iy >= 0 && iy < p.h;
    const int count = p.w * p.f;
    const __nv_bfloat16 *from = few + ((int64_t)n * p.h + (ok ? iy : 0)) * count;
    __nv_bfloat16 *to = row + lead + p.left * p.f;

    if (count % 2 == 0) {
        for (int i = threadIdx.x; i < count / 2; i += THREADS)
            ((uint32_t *)to)[i] = ok ? __ldg((const uint32_t *)from + i) : 0u;
    } else {
        for (int i = threadIdx.x; i < count; i += THREADS) to[i] = ok ? from[i] : __float2bfloat16_rn(0.0f);
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
