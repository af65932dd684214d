/* few_total.cu: the last kernel of weight gradients between few channels and many: the sums that blocks left,
 * rows of (tap, channel), become the weights where they lie. */
#include "backend/cuda/launch/few.h"
#include "backend/cuda/module/groups.cuh"

template <typename Type> struct total_rule : lsi_elements<float, 4> {
    lsi_cuda_few p;
    Type *weights;

    __device__ void finish(int64_t group, int64_t, const float (&s)[SUMS]) const
    {
        const int m = (int)(group % p.m), tap = (int)(group / p.m), f = tap % p.f;
        const int kx = tap / p.f % p.kw, ky = tap / (p.f * p.kw);

        weights[p.w_first + m * p.w_m + f * p.w_f + ky * p.w_ky + kx * p.w_kx] = lsi_put<Type>(s[0]);
    }
};

int lsi_cuda_few_total(lsi_cuda_stream s, const lsi_cuda_few_total_args *a)
{
    const lsi_cuda_groups g = {true,    1,      (int64_t)a->p.kh * a->p.kw * a->p.f * a->p.m, a->blocks, 1,
                               nullptr, nullptr};

    LSI_FLOAT_TYPES(a->dtype,
                    return lsi_sum_groups(s, total_rule<T>{{a->partial}, a->p, (T *)a->weights}, g));
    return 0;
}
