/* finite.cu: whether all gradients of an update are finite, in one launch, and the loss scale that follows.
 *
 * Tensors are cut into chunks, one a block.  A block that finds something leaves the tensor's number, counted
 * from the end so that 0 is nothing, if it is larger than what others left: the largest is the same in
 * whatever order they come.  The last block writes the result. */
#include "backend/cuda/launch/finite.h"
#include "backend/cuda/module/vector.cuh"

enum { THREADS = 256, FEW = 24, MANY = 1000 };

/* At most 32 KB, what a kernel can be given. */
template <int N> struct table {
    lsi_cuda_looked_at of[N];
};

struct common {
    int n, begin, all; /* tensors of this launch, how many came before it, and of all launches */
    int number;
    unsigned blocks; /* of the last launch; 0 in others */
    unsigned *ticket;
    float *out;
};

/* Whether any of a word's elements has the exponent of infinity. */
template <typename T> static __device__ __forceinline__ bool is_bad(uint32_t word);
template <> __device__ __forceinline__ bool is_bad<float>(uint32_t word)
{
    return (word & 0x7f800000u) == 0x7f800000u;
}
template <> __device__ __forceinline__ bool is_bad<__nv_bfloat16>(uint32_t word)
{
    return (word & 0x7f80u) == 0x7f80u || (word & 0x7f800000u) == 0x7f800000u;
}
template <> __device__ __forceinline__ bool is_bad<__half>(uint32_t word)
{
    return (word & 0x7c00u) == 0x7c00u || (word & 0x7c000000u) == 0x7c000000u;
}

template <typename T> static __device__ bool look(const lsi_cuda_looked_at &t, int64_t lo)
{
    constexpr int WIDE = lsi_width<T>::value;
    const int n = t.count - lo < LSI_FINITE_CHUNK ? (int)(t.count - lo) : LSI_FINITE_CHUNK;
    const T *x = (const T *)t.x + lo;
    const int whole = ((uintptr_t)x & 15) == 0 ? n / WIDE * WIDE : 0;
    bool bad = false;

#pragma unroll 4
    for (int i = (int)threadIdx.x * WIDE; i < whole; i += THREADS * WIDE) {
        const uint4 v = *(const uint4 *)(x + i);
        bad |= is_bad<T>(v.x) | is_bad<T>(v.y) | is_bad<T>(v.z) | is_bad<T>(v.w);
    }
    for (int i = whole + (int)threadIdx.x; i < n; i += THREADS) bad |= !isfinite(lsi_get(x[i]));
    return bad;
}

template <int N>
__global__ void __launch_bounds__(THREADS)
    all_finite_kernel(const __grid_constant__ common c, const __grid_constant__ table<N> table)
{
    lsi_wait();
    const int chunk = table.of[0].first + (int)blockIdx.x;
    int lo = 0, hi = c.n - 1;
    bool bad;

    while (lo < hi) { /* the tensor that the chunk belongs to */
        const int mid = (lo + hi + 1) / 2;
        if (table.of[mid].first <= chunk)
            lo = mid;
        else
            hi = mid - 1;
    }
    const lsi_cuda_looked_at &t = table.of[lo];
    const int64_t begin = (int64_t)(chunk - t.first) * LSI_FINITE_CHUNK;

    if (t.dtype == LS_F32)
        bad = look<float>(t, begin);
    else if (t.dtype == LS_BF16)
        bad = look<__nv_bfloat16>(t, begin);
    else
        bad = look<__half>(t, begin);
    if (__syncthreads_or(bad) && threadIdx.x == 0)
        atomicMax(c.ticket + 1, (unsigned)(c.all - (c.begin + lo)));
    if (c.blocks == 0 || !lsi_last_block(c.ticket, c.blocks) || threadIdx.x != 0) return;
    const unsigned found = atomicExch(c.ticket + 1, 0u);
    *c.out = found == 0 ? 0.0f : (float)(c.number + c.all - (int)found + 1);
}

/* Tensors begin..begin+n-1, n <= N. */
template <int N> static int start(lsi_cuda_stream s, const lsi_cuda_all_finite_args *a, int begin, int n)
{
    const bool last = begin + n == a->n;
    const int64_t end = last ? a->chunks : a->tensors[begin + n].first;
    const unsigned blocks = (unsigned)(end - a->tensors[begin].first);
    const common c = {n, begin, a->n, a->number, last ? blocks : 0, a->ticket, a->out};
    table<N> t;

    for (int i = 0; i < n; i++) t.of[i] = a->tensors[begin + i];
    LSI_LAUNCH(s, blocks, THREADS, 0, all_finite_kernel<N>, c, t);
    return 0;
}

int lsi_cuda_all_finite(lsi_cuda_stream s, const lsi_cuda_all_finite_args *a)
{
    int code = 0;

    for (int i = 0; i < a->n && code == 0; i += MANY) {
        const int n = a->n - i < MANY ? a->n - i : MANY;
        code = n <= FEW ? start<FEW>(s, a, i, n) : start<MANY>(s, a, i, n);
    }
    return code;
}

/* -- one of two ---------------------------------------------------------------------------------------------
 */

static __device__ double number(const void *p, ls_dtype type)
{
    if (p == nullptr) return 0;
    switch (type) {
    case LS_I32: return *(const int32_t *)p;
    case LS_BF16: return lsi_get(*(const __nv_bfloat16 *)p);
    case LS_F16: return lsi_get(*(const __half *)p);
    default: return *(const float *)p;
    }
}

template <typename Word> __global__ void __launch_bounds__(THREADS) pick_kernel(lsi_cuda_pick_args a)
{
    lsi_wait();
    const bool equal = number(a.left, a.left_type) == number(a.right, a.right_type);
    const Word *from = (const Word *)(equal ? a.a : a.b);
    const int64_t n = a.bytes / (int64_t)sizeof(Word), step = (int64_t)gridDim.x * THREADS;

    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += step)
        ((Word *)a.out)[i] = from != nullptr ? from[i] : Word{};
}

template <typename Word> static int pick(lsi_cuda_stream s, const lsi_cuda_pick_args *a)
{
    LSI_LAUNCH(s, lsi_blocks(a->bytes / (int64_t)sizeof(Word), THREADS), THREADS, 0, pick_kernel<Word>, *a);
    return 0;
}

int lsi_cuda_pick(lsi_cuda_stream s, const lsi_cuda_pick_args *a)
{
    const bool wide =
        a->bytes % 16 == 0 && lsi_aligned(a->a) && lsi_aligned(a->out) && (a->b == NULL || lsi_aligned(a->b));

    if (a->bytes == 0) return 0;
    return wide ? pick<uint4>(s, a) : a->bytes % 4 == 0 ? pick<uint32_t>(s, a) : pick<uint16_t>(s, a);
}

/* -- the loss scale -----------------------------------------------------------------------------------------
 */

static __global__ void rescale_kernel(const __grid_constant__ lsi_cuda_rescale_args a)
{
    lsi_wait();
    const float scale = *a.scale;
    float found = 0;

    for (int i = 0; i < a.n_found && found == 0; i++) found = *a.found[i];
    if (a.skipped != nullptr) *a.skipped += found != 0;
    if (a.good != nullptr) {
        const int32_t good = found != 0 ? 0 : *a.good + 1;
        const bool grows = good >= a.attr.growth;
        *a.next_scale = found != 0 ? fmaxf(scale * 0.5f, (float)a.attr.least)
                        : grows    ? fminf(scale * 2, (float)a.attr.most)
                                   : scale;
        *a.good = grows ? 0 : good;
    }
    a.report[LS_REPORT_FOUND] = found;
    a.report[LS_REPORT_SCALE] = scale;
}

int lsi_cuda_rescale(lsi_cuda_stream s, const lsi_cuda_rescale_args *a)
{
    LSI_LAUNCH(s, 1, 1, 0, rescale_kernel, *a);
    return 0;
}
