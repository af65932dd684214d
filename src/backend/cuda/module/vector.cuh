/* vector.cuh: what kernels that are bound by memory share: accesses of 16
 * bytes, division by numbers known before the launch, activations, and sums in
 * a fixed order. */
#ifndef LS_BACKEND_CUDA_MODULE_VECTOR_CUH
#define LS_BACKEND_CUDA_MODULE_VECTOR_CUH

#include "backend/cuda/launch/pointwise.h"
#include "backend/cuda/module/launch.cuh"
#include "backend/cuda/source/functions.cuh"

#define LSI_WARP 32
#define LSI_FULL 0xffffffffu /* every lane of a warp */

/* -- vectors
 * ---------------------------------------------------------------------------------------------
 */

/* Elements of T that one access of 16 bytes takes. */
template <typename T> struct lsi_width {
    static constexpr int value = 16 / (int)sizeof(T);
};

template <int bytes> struct lsi_raw;
template <> struct lsi_raw<1> {
    using type = uint8_t;
};
template <> struct lsi_raw<2> {
    using type = uint16_t;
};
template <> struct lsi_raw<4> {
    using type = uint32_t;
};
template <> struct lsi_raw<8> {
    using type = uint2;
};
template <> struct lsi_raw<16> {
    using type = uint4;
};

/* V elements from p, which is aligned to all of them. */
template <int V, typename T> __device__ __forceinline__ void lsi_load(const T *p, float (&f)[V])
{
    using raw = typename lsi_raw<V *(int)sizeof(T)>::type;
    union {
        raw r;
        T e[V];
    } u;

    u.r = *(const raw *)p;
#pragma unroll
    for (int k = 0; k < V; k++) f[k] = lsi_get(u.e[k]);
}

/* The same in two steps, for kernels that have several accesses under way
 * before they look at the first: what is fetched takes a quarter or half of the
 * registers. */
template <int V, typename T> struct lsi_packed {
    typename lsi_raw<V *(int)sizeof(T)>::type raw;

    __device__ __forceinline__ void fetch(const T *p)
    {
        raw = *(const decltype(raw) *)p;
    }
    __device__ __forceinline__ void unpack(float (&f)[V]) const
    {
        union {
            decltype(raw) r;
            T e[V];
        } u;

        u.r = raw;
#pragma unroll
        for (int k = 0; k < V; k++) f[k] = lsi_get(u.e[k]);
    }
    __device__ __forceinline__ void pack(const float (&f)[V])
    {
        union {
            decltype(raw) r;
            T e[V];
        } u;

#pragma unroll
        for (int k = 0; k < V; k++) u.e[k] = lsi_put<T>(f[k]);
        raw = u.r;
    }
};

template <int V, typename T> __device__ __forceinline__ void lsi_store(T *p, const float (&f)[V])
{
    lsi_packed<V, T> packed;

    packed.pack(f);
    *(decltype(packed.raw) *)p = packed.raw;
}

/* V floats, in accesses of 16 bytes where V has several. */
template <int V> __device__ __forceinline__ void lsi_load_floats(const float *p, float (&f)[V])
{
    if constexpr (V == 8) {
        float half[4];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            lsi_load<4>(p + 4 * h, half);
#pragma unroll
            for (int k = 0; k < 4; k++) f[4 * h + k] = half[k];
        }
    } else {
        lsi_load<V>(p, f);
    }
}

/* Runs `statement` with V = elements of 16 bytes where `vectors` holds, else
 * with V = 1.  T must be set. */
#define LSI_VECTORS(vectors, statement)                                                                      \
    do {                                                                                                     \
        if (vectors) {                                                                                       \
            constexpr int V = lsi_width<T>::value;                                                           \
            statement;                                                                                       \
        } else {                                                                                             \
            constexpr int V = 1;                                                                             \
            statement;                                                                                       \
        }                                                                                                    \
    } while (0)

/* Whether a dimension can be walked in accesses of 16 bytes. */
static inline bool lsi_wide(ls_dtype t, int64_t dim)
{
    return dim % (t == LS_F32 ? 4 : 8) == 0;
}

static inline bool lsi_aligned(const void *p)
{
    return ((uintptr_t)p & 15) == 0;
}

/* -- division
 * --------------------------------------------------------------------------------------------
 */

/* x / d and x % d for 0 <= x < 2^31 as a multiplication: a division takes some
 * 20 instructions. */
struct lsi_divider {
    uint32_t d, factor, shift;

    lsi_divider() = default;
    explicit lsi_divider(int64_t divisor) : d((uint32_t)divisor), factor(0), shift(0)
    {
        while (((uint64_t)1 << shift) < d) shift++;
        /* ceil(2^(31 + shift) / d) is exact enough for numerators below 2^31 */
        if (d > 1) factor = (uint32_t)((((uint64_t)1 << (31 + shift)) + d - 1) / d);
    }
    __device__ __forceinline__ uint32_t div(uint32_t x) const
    {
        return d == 1 ? x : (uint32_t)(((uint64_t)x * factor) >> (31 + shift));
    }
    __device__ __forceinline__ uint32_t split(uint32_t x, uint32_t *rest) const
    {
        const uint32_t q = div(x);

        *rest = x - q * d;
        return q;
    }
};

/* -- activations
 * -----------------------------------------------------------------------------------------
 */

__device__ __forceinline__ float lsi_act(ls_act act, float slope, float x)
{
    switch (act) { /* the same for a whole launch */
    case LS_ACT_RELU: return lsi_pw_relu(x);
    case LS_ACT_LEAKY: return lsi_pw_leaky(x, slope);
    case LS_ACT_TANH: return lsi_pw_tanh(x);
    case LS_ACT_GELU: return lsi_pw_gelu(x);
    default: return x;
    }
}

/* act'(y) * dy, from the result y. */
__device__ __forceinline__ float lsi_act_grad(ls_act act, float slope, float y, float dy)
{
    switch (act) {
    case LS_ACT_RELU: return lsi_pw_relu_grad(dy, y);
    case LS_ACT_LEAKY: return lsi_pw_leaky_grad(dy, y, slope);
    case LS_ACT_TANH: return lsi_pw_tanh_grad(dy, y);
    default: return dy;
    }
}

/* -- sums
 * ------------------------------------------------------------------------------------------------
 */

/* The sum over the lanes of each group of `lanes` neighbours (a power of two),
 * in all of them; the order is always the same. */
template <int lanes> __device__ __forceinline__ float lsi_warp_sum(float x)
{
#pragma unroll
    for (int o = lanes / 2; o > 0; o /= 2) x += __shfl_xor_sync(LSI_FULL, x, o);
    return x;
}
template <int lanes> __device__ __forceinline__ float lsi_warp_max(float x)
{
#pragma unroll
    for (int o = lanes / 2; o > 0; o /= 2) {
        const float y = __shfl_xor_sync(LSI_FULL, x, o);
        x = x > y || x != x ? x : y; /* a NaN stays */
    }
    return x;
}

/* Sums of two numbers over a block of `threads`, in all threads.  `room` is
 * shared, for 2 * threads / 32 floats, and free again when all threads have
 * come to the next barrier. */
template <int threads> __device__ __forceinline__ void lsi_block_sums(float *a, float *b, float *room)
{
    constexpr int warps = threads / LSI_WARP;
    const int lane = threadIdx.x % LSI_WARP, warp = threadIdx.x / LSI_WARP;

    *a = lsi_warp_sum<LSI_WARP>(*a);
    *b = lsi_warp_sum<LSI_WARP>(*b);
    if (warps == 1) return;
    if (lane == 0) {
        room[warp] = *a;
        room[warps + warp] = *b;
    }
    __syncthreads();
    *a = *b = 0;
    for (int w = 0; w < warps; w++) {
        *a += room[w];
        *b += room[warps + w];
    }
}

/* Whether this block is the last of `blocks` that say they are done; what the
 * others wrote before is then visible to it.  *ticket is 0 before the launch
 * and after it. */
__device__ __forceinline__ bool lsi_last_block(unsigned *ticket, unsigned blocks)
{
    __shared__ bool last;

    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        last = atomicAdd(ticket, 1u) == blocks - 1;
        if (last) *ticket = 0;
    }
    __syncthreads();
    if (last) __threadfence();
    return last;
}

#endif
