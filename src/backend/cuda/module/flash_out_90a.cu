/* flash_out_90a.cu: attention of heads of 64 elements and up to 256 rows, forward, by compute
 * capability 9.0's instructions (flash_90a.cuh).
 *
 * A block is four warps and has one head, whose keys and values stay in shared memory.  It goes through the
 * queries 64 at a time; their scores with all keys are in registers at once, so that the maximum of a row is
 * known before its first exponential, and nothing is scaled again.  Products with the first values go on
 * while later scores become probabilities.  Warps wait for each other twice only, for keys and for values:
 * queries are copied by the warp that has them.  While a block waits, its neighbours on the same processor
 * compute. */
#include "backend/cuda/module/flash_90a.cuh"

template <int KEYS> struct memory {
    unsigned char k[KEYS][ROW], v[KEYS][ROW];
    unsigned char q[FOUR / LSI_WARP][GROUP][ROW]; /* 16 queries of each warp */
};

/* The warp's queries as left operands. */
static __device__ __forceinline__ void read_queries(uint32_t (&q)[D / GROUP][4], const unsigned char *from)
{
    const int lane = threadIdx.x % LSI_WARP;

#pragma unroll
    for (int k = 0; k < D / GROUP; k++)
        matrices<false>(q[k], from + mixed(lane % 16, (k * GROUP + lane / 16 * 8) * 2));
}

/* Begins with s = q k^T, of all keys. */
template <typename T, int KEYS>
static __device__ __forceinline__ void score(float (&s)[KEYS / 2], const uint32_t (&q)[D / GROUP][4],
                                             uint64_t k)
{
    const T *type = nullptr;

    products_begin();
#pragma unroll
    for (int j = 0; j + TILE <= KEYS; j += TILE)
#pragma unroll
        for (int i = 0; i < D / GROUP; i++)
            registers_by_rows(part<TILE / 2>(s, j / 2), q[i], behind(k, j, i * 32), i > 0, type);
    if constexpr (KEYS % TILE != 0)
#pragma unroll
        for (int i = 0; i < D / GROUP; i++)
            registers_by_rows(part<GROUP / 2>(s, KEYS / TILE * TILE / 2), q[i],
                              behind(k, KEYS / TILE * TILE, i * 32), i > 0, type);
    products_go();
}

/* What is behind the t keys has no probability. */
template <int KEYS> static __device__ __forceinline__ void hide(float (&s)[KEYS / 2], int t)
{
    const int two = threadIdx.x % 4 * 2;

#pragma unroll
    for (int j = 0; j < KEYS; j += GROUP)
        if (j + GROUP > t)
#pragma unroll
            for (int e = 0; e < GROUP / 2; e++)
                if (j + e / 4 * 8 + two + e % 2 >= t) s[j / 2 + e] = -INFINITY;
}

/* The largest score of rows row and row + 8, times `scale`. */
template <int KEYS>
static __device__ __forceinline__ void find_top(float (&top)[2], const float (&s)[KEYS / 2], float scale)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float m[2] = {s[2 * half], s[2 * half + 1]};
#pragma unroll
        for (int i = 4; i < KEYS / 2; i += 4) {
            m[0] = fmaxf(m[0], s[i + 2 * half]);
            m[1] = fmaxf(m[1], s[i + 2 * half + 1]);
        }
        top[half] = row_max(fmaxf(m[0], m[1])) * scale;
    }
}

/* Scores of 16 keys become probabilities, but for the sum: a left operand. */
template <typename T>
static __device__ __forceinline__ void weigh(uint32_t (&p)[4], float (&sum)[2][2], const float (&s)[8],
                                             const float (&top)[2], float scale)
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float x = power_of_2(fmaf(s[2 * i], scale, -top[i % 2])),
                    y = power_of_2(fmaf(s[2 * i + 1], scale, -top[i % 2]));
        sum[i % 2][0] += x;
        sum[i % 2][1] += y;
        p[i] = pair(x, y, (const T *)nullptr);
    }
}

/* Begins with out = softmax(s) v; `works`: some of the warp's rows are wanted. */
template <typename T, int KEYS>
static __device__ __forceinline__ void gather(float (&out)[D / 2], float (&sum)[2], float (&s)[KEYS / 2],
                                              const float (&top)[2], uint64_t v, float scale, bool works)
{
    constexpr int AT_ONCE = 4; /* products of 16 keys that begin together */
    float sums[2][2] = {};

#pragma unroll
    for (int j = 0; j < KEYS; j += AT_ONCE * GROUP) {
        uint32_t p[AT_ONCE][4] = {};
        if (works)
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++)
                if (j + i * GROUP < KEYS)
                    weigh<T>(p[i], sums, part<GROUP / 2>(s, (j + i * GROUP) / 2), top, scale);
        products_begin();
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (j + i * GROUP < KEYS)
                registers_by_columns(out, p[i], behind(v, j + i * GROUP, 0), j + i > 0, (const T *)nullptr);
        products_go();
    }
#pragma unroll
    for (int half = 0; half < 2; half++) sum[half] = row_sum(sums[half][0] + sums[half][1]);
}

template <typename T, int KEYS, int BLOCKS>
__global__ void __launch_bounds__(FOUR, BLOCKS)
    flash_out_kernel(const __grid_constant__ lsi_cuda_flash_args a)
{
    lsi_wait();
    extern __shared__ __align__(ALIGNED) unsigned char shared[];
    memory<KEYS> &m = *(memory<KEYS> *)aligned(shared);
    const int t = (int)a.t, me = threadIdx.x, lane = me % LSI_WARP, warp = me / LSI_WARP;
    const place at = place_of(a);
    const float scale = a.scale * LOG2_E;
    const uint64_t k = matrix_at(m.k), v = matrix_at(m.v);
    unsigned char *mine = &m.q[warp][0][0];
    const T *queries = (const T *)a.q + at.q;

    fetch_rows(&m.k[0][0], (const T *)a.k + at.q, a.q_rows.row, 0, KEYS, t, me, FOUR);
    fetch_rows(mine, queries, a.q_rows.row, warp * GROUP, GROUP, t, lane, LSI_WARP);
    copies_end();
    fetch_rows(&m.v[0][0], (const T *)a.v + at.q, a.q_rows.row, 0, KEYS, t, me, FOUR);
    copies_end();
    wait_copies<1>();
    stores_seen();
    __syncthreads();
#pragma unroll 1
    for (int first = 0; first < t; first += TILE) {
        const int row = first + warp * GROUP;
        uint32_t q[D / GROUP][4];
        float s[KEYS / 2], out[D / 2], top[2], sum[2];
        if (first > 0) wait_copies<0>();
        __syncwarp();
        read_queries(q, mine);
        __syncwarp();
        if (first + TILE < t) fetch_rows(mine, queries, a.q_rows.row, row + TILE, GROUP, t, lane, LSI_WARP);
        copies_end();
        score<T, KEYS>(s, q, k);
        products_end();
        if (first == 0) { /* the values are there */
            wait_copies<1>();
            stores_seen();
            __syncthreads();
        }
        hide<KEYS>(s, t);
        find_top<KEYS>(top, s, scale);
        gather<T, KEYS>(out, sum, s, top, v, scale, row < t);
        products_end();
        store_sums((T *)a.out + at.out, a.out_rows.row, row, t, out, 1 / sum[0], 1 / sum[1]);
        if (lane % 4 == 0)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int r = row + lane / 4 + half * 8;
                if (r < t) a.lse[at.row + r] = top[half] / LOG2_E + logf(sum[half]);
            }
    }
}

/* -- launching ----------------------------------------------------------------------------------------------
 */

template <typename T, int KEYS, int BLOCKS> static int start(lsi_cuda_stream s, const lsi_cuda_flash_args *a)
{
    const size_t bytes = sizeof(memory<KEYS>) + ALIGNED;
    const int code = lsi_flash_allow((const void *)flash_out_kernel<T, KEYS, BLOCKS>, bytes);

    if (code != 0) return code;
    LSI_LAUNCH(s, dim3(1, (unsigned)(a->samples * a->heads)), FOUR, bytes,
               (flash_out_kernel<T, KEYS, BLOCKS>), *a);
    return 0;
}

template <typename T> static int by_rows(lsi_cuda_stream s, const lsi_cuda_flash_args *a)
{
    if (a->t <= 64) return start<T, 64, 4>(s, a);
    if (a->t <= 128) return start<T, 128, 4>(s, a);
    if (a->t <= 208) return start<T, 208, 3>(s, a);
    return start<T, 256, 2>(s, a);
}

bool lsi_flash_90a_fits(int64_t t, int64_t d)
{
    int device = 0, major = 0, minor = 0;

    return d == D && t <= 256 && lsi_cuda_enter() == 0 && cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
           cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess &&
           major == 9 && minor == 0;
}

int lsi_flash_out_90a(lsi_cuda_stream s, const lsi_cuda_flash_args *a)
{
    return a->dtype == LS_BF16 ? by_rows<__nv_bfloat16>(s, a) : by_rows<__half>(s, a);
}
