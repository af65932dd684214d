/* window.cuh: the windows of pools over maps. */
#ifndef LS_BACKEND_CUDA_MODULE_WINDOW_CUH
#define LS_BACKEND_CUDA_MODULE_WINDOW_CUH

#include "backend/cuda/module/image.cuh"

/* The windows, from `first` to before `end`, that position `at` lies in. */
static __device__ __forceinline__ void windows(int at, int pad, int kernel, int stride, int64_t n, int *first,
                                               int *end)
{
    const int low = at + pad - kernel + 1, last = (at + pad) / stride;

    *first = low <= 0 ? 0 : (low + stride - 1) / stride;
    *end = last + 1 < n ? last + 1 : (int)n;
}

/* Windows that are known to the compiler: their loops unroll, and their accesses are under way together. With
 * K = 0 they are known at run time. */
template <int K, int S> struct window {
    static __device__ __forceinline__ int kernel(const ls_pool_attr &a, int d)
    {
        return K > 0 ? K : a.kernel[d];
    }
    static __device__ __forceinline__ int stride(const ls_pool_attr &a, int d)
    {
        return K > 0 ? S : a.stride[d];
    }
};

static bool is_window(const ls_pool_attr *a, int k, int s)
{
    return a->kernel[0] == k && a->kernel[1] == k && a->stride[0] == s && a->stride[1] == s;
}

#endif
