/* reduce.cu: sums over dimensions, and the gradient of bias and activation in one pass. */
#include "backend/cuda/launch/reduce.h"
#include "backend/cuda/module/groups.cuh"

template <typename T, int Width> struct sum_rule : lsi_elements<T, Width> {
    T *out;

    __device__ void finish(int64_t group, int64_t, const float (&s)[1]) const
    {
        out[group] = lsi_put<T>(s[0]);
    }
};

template <typename T, int V> static int sum(lsi_cuda_stream s, const lsi_cuda_sum_args *a)
{
    const sum_rule<T, V> r = {{(const T *)a->x}, (T *)a->out};

    return lsi_sum_groups(s, r, a->groups);
}

int lsi_cuda_sum(lsi_cuda_stream s, const lsi_cuda_sum_args *a)
{
    LSI_FLOAT_TYPES(a->dtype, LSI_VECTORS(lsi_groups_wide(a->dtype, &a->groups), return (sum<T, V>(s, a))));
    return 0;
}

template <typename Type, int Width> struct bias_rule {
    using T = Type;
    static constexpr int V = Width, SUMS = 1, AHEAD = 4;
    struct constants {
    };
    struct fetched {
        lsi_packed<V, T> dy, y;
    };
    const T *dy, *y;
    T *dz, *dbias; /* dz may be dy or y: elements are read before they are written, by the same thread */
    ls_act act;
    float slope;

    __device__ void begin(int64_t, int64_t, int, constants &) const
    {
    }
    __device__ void fetch(int64_t at, fetched &p) const
    {
        p.dy.fetch(dy + at);
        p.y.fetch(y + at);
    }
    __device__ void add(int64_t at, const fetched &p, const constants &, float (&s)[SUMS][V]) const
    {
        float d[V], o[V];

        p.dy.unpack(d);
        p.y.unpack(o);
#pragma unroll
        for (int k = 0; k < V; k++) {
            d[k] = lsi_act_grad(act, slope, o[k], d[k]);
            s[0][k] += d[k];
        }
        lsi_store<V>(dz + at, d);
    }
    __device__ void finish(int64_t group, int64_t, const float (&s)[SUMS]) const
    {
        dbias[group] = lsi_put<T>(s[0]);
    }
};

template <typename T, int V> static int bias_act_grad(lsi_cuda_stream s, const lsi_cuda_bias_act_grad_args *a)
{
    const bias_rule<T, V> r = {(const T *)a->dy, (const T *)a->y, (T *)a->dz,
                               (T *)a->dbias,    a->act,          a->slope};

    return lsi_sum_groups(s, r, a->groups);
}

int lsi_cuda_bias_act_grad(lsi_cuda_stream s, const lsi_cuda_bias_act_grad_args *a)
{
    constexpr int width =
        4; /* 8 bytes where numbers have 16 bits: more accesses under way in as many registers */

    if (lsi_groups_wide(a->dtype, &a->groups)) {
        LSI_FLOAT_TYPES(a->dtype, return (bias_act_grad<T, width>(s, a)));
    } else {
        LSI_FLOAT_TYPES(a->dtype, return (bias_act_grad<T, 1>(s, a)));
    }
    return 0;
}

/* -- any set of dimensions ------------------------------------------------------------------------------- */

enum { ANY_THREADS = 128 };

static __device__ int64_t place(int n, const int64_t *dim, const int64_t *stride, int64_t at)
{
    int64_t sum = 0;

    for (int d = n - 1; d >= 0; d--) {
        sum += at % dim[d] * stride[d];
        at /= dim[d];
    }
    return sum;
}

/* A warp for each element of the result: for sets of dimensions that are neither groups nor common. */
template <typename T>
__global__ void __launch_bounds__(ANY_THREADS) sum_any_kernel(const __grid_constant__ lsi_cuda_sum_any_args a)
{
    lsi_wait();
    const int64_t i = ((int64_t)blockIdx.x * ANY_THREADS + threadIdx.x) / LSI_WARP;
    float sum = 0;

    if (i >= a.count) return;
    const T *x = (const T *)a.x + place(a.n_kept, a.kept, a.kept_stride, i);
    for (int64_t k = threadIdx.x % LSI_WARP; k < a.terms; k += LSI_WARP)
        sum += lsi_get(x[place(a.n_summed, a.summed, a.summed_stride, k)]);
    sum = lsi_warp_sum<LSI_WARP>(sum);
    if (threadIdx.x % LSI_WARP == 0) ((T *)a.out)[i] = lsi_put<T>(sum);
}

int lsi_cuda_sum_any(lsi_cuda_stream s, const lsi_cuda_sum_any_args *a)
{
    constexpr int each = ANY_THREADS / LSI_WARP;

    if (a->count == 0) return 0;
    LSI_FLOAT_TYPES(a->dtype, LSI_LAUNCH(s, (unsigned)((a->count + each - 1) / each), ANY_THREADS, 0,
                                         sum_any_kernel<T>, *a));
    return 0;
}
