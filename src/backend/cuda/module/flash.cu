/* flash.cu: attention whose scores never leave the processor (Dao et al. 2022), bf16 and f16, both ways.
 *
 * A warp has 16 rows of one head, queries or (for dk and dv) keys, in registers, and goes through the other
 * side's rows, which a block of four warps brings to shared memory in tiles of 64, the next while the one
 * before is worked on.  Products are tensor instructions of 16 x 8 x 16 whose sums are f32; what one leaves
 * is laid out as the next wants it, so scores stay in registers.  Forward keeps a running maximum and sum of
 * each row. Backward makes the scores again, twice: once by rows for dq, and once by columns for dk and dv;
 * so nobody adds to what others add to, and bits are the same every time. */
#include "backend/cuda/module/flash.cuh"

enum { WARPS = 4, THREADS = WARPS * LSI_WARP, TILE = 64 };

/* Rows of one side that are in shared memory at a time. */
template <typename T, int D> struct tile {
    T row[TILE][PITCH(D)];
};

template <typename T, int D>
static __device__ __forceinline__ void fetch(tile<T, D> &to, const T *from, int64_t pitch, int first, int n)
{
    fetch<T, D>(to.row, from, pitch, first, TILE, n);
}

/* -- forward ------------------------------------------------------------------------------------------------
 */

/* Scores of one tile become probabilities times exp(largest so far): s in, p out; `sum` and what was summed
 * up before are scaled to the new maximum. */
template <int D>
static __device__ __forceinline__ void softmax(float (&s)[TILE / GROUP][2][4], float (&top)[2],
                                               float (&sum)[2], float (&out)[D / 8][4], float scale)
{
#pragma unroll
    for (int half = 0; half < 2; half++) { /* rows row and row + 8 */
        float m = top[half];
#pragma unroll
        for (int j = 0; j < TILE / GROUP; j++)
#pragma unroll
            for (int h = 0; h < 2; h++) m = fmaxf(m, fmaxf(s[j][h][2 * half], s[j][h][2 * half + 1]));
        m = row_max(m);
        const float shift = m == -INFINITY ? 0.0f : m * scale, keep = exp2f(top[half] * scale - shift);
        top[half] = m;
        sum[half] *= keep;
#pragma unroll
        for (int k = 0; k < D / 8; k++) {
            out[k][2 * half] *= keep;
            out[k][2 * half + 1] *= keep;
        }
#pragma unroll
        for (int j = 0; j < TILE / GROUP; j++)
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int i = 2 * half; i < 2 * half + 2; i++) {
                    s[j][h][i] = exp2f(fmaf(s[j][h][i], scale, -shift));
                    sum[half] += s[j][h][i];
                }
    }
}

template <typename T, int D>
__global__ void __launch_bounds__(THREADS) flash_kernel(const __grid_constant__ lsi_cuda_flash_args a)
{
    lsi_wait();
    extern __shared__ __align__(16) unsigned char shared[];
    tile<T, D> *k_tile = (tile<T, D> *)shared, *v_tile = k_tile + 2;
    const int t = (int)a.t, tiles = (t + TILE - 1) / TILE, lane = threadIdx.x % LSI_WARP;
    const int first = (int)blockIdx.x * TILE, mine = threadIdx.x / LSI_WARP * GROUP;
    const place at = place_of(a);
    const T *k = (const T *)a.k + at.q, *v = (const T *)a.v + at.q;
    const float scale = a.scale * LOG2_E;
    const bool works = first + mine < t;
    uint32_t q[D / GROUP][4];
    float out[D / 8][4] = {}, top[2] = {-INFINITY, -INFINITY}, sum[2] = {};

    fetch(v_tile[0], (const T *)a.q + at.q, a.q_rows.row, first, t);
    copies_end();
    wait_copies<0>();
    __syncthreads();
    left<T, D>(q, v_tile[0].row, mine);
    __syncthreads();
    fetch(k_tile[0], k, a.q_rows.row, 0, t);
    fetch(v_tile[0], v, a.q_rows.row, 0, t);
    copies_end();
    for (int i = 0; i < tiles; i++) {
        if (i + 1 < tiles) {
            fetch(k_tile[(i + 1) % 2], k, a.q_rows.row, (i + 1) * TILE, t);
            fetch(v_tile[(i + 1) % 2], v, a.q_rows.row, (i + 1) * TILE, t);
        }
        copies_end();
        wait_copies<1>();
        __syncthreads();
        if (works) {
            const int here = t - i * TILE < TILE ? t - i * TILE : TILE; /* keys of this tile */
            float s[TILE / GROUP][2][4];
#pragma unroll
            for (int j = 0; j < TILE / GROUP; j++) {
                if (j * GROUP < here) times_rows<T, D>(s[j], q, k_tile[i % 2].row, j * GROUP);
                if ((j + 1) * GROUP > here)
#pragma unroll
                    for (int h = 0; h < 2; h++)
#pragma unroll
                        for (int e = 0; e < 4; e++)
                            if (j * GROUP + h * 8 + lane % 4 * 2 + e % 2 >= here) s[j][h][e] = -INFINITY;
            }
            softmax<D>(s, top, sum, out, scale);
#pragma unroll
            for (int j = 0; j < TILE / GROUP; j++)
                if (j * GROUP < here) add_times<T, D>(out, s[j], v_tile[i % 2].row, j * GROUP);
        }
        __syncthreads();
    }
    if (!works) return;
    const float all = row_sum(sum[0]), all_8 = row_sum(sum[1]);
    store<T, D>((T *)a.out + at.out, a.out_rows.row, first + mine, t, out, 1 / all, 1 / all_8);
    const int row = first + mine + lane / 4;
    if (lane % 4 == 0 && row < t) a.lse[at.row + row] = top[0] * a.scale + logf(all);
    if (lane % 4 == 0 && row + 8 < t) a.lse[at.row + row + 8] = top[1] * a.scale + logf(all_8);
}

/* -- backward -----------------------------------------------------------------------------------------------
 */

/* dq, and what out . dout is in each row, for the kernel behind it. */
template <typename T, int D>
__global__ void __launch_bounds__(THREADS) flash_dq_kernel(const __grid_constant__ lsi_cuda_flash_grad_args a)
{
    lsi_wait();
    extern __shared__ __align__(16) unsigned char shared[];
    tile<T, D> *k_tile = (tile<T, D> *)shared, *v_tile = k_tile + 2;
    const int t = (int)a.t, tiles = (t + TILE - 1) / TILE, lane = threadIdx.x % LSI_WARP;
    const int first = (int)blockIdx.x * TILE, mine = threadIdx.x / LSI_WARP * GROUP;
    const place at = place_of(a);
    const T *k = (const T *)a.k + at.q, *v = (const T *)a.v + at.q;
    const float scale = a.scale * LOG2_E;
    const bool works = first + mine < t;
    uint32_t q[D / GROUP][4], dout[D / GROUP][4];
    float dq[D / 8][4] = {}, dot[2] = {}, lse[2];

    fetch(k_tile[0], (const T *)a.q + at.q, a.q_rows.row, first, t);
    fetch(k_tile[1], (const T *)a.dout + at.out, a.out_rows.row, first, t);
    fetch(v_tile[0], (const T *)a.out + at.out, a.out_rows.row, first, t);
    copies_end();
    wait_copies<0>();
    __syncthreads();
    left<T, D>(q, k_tile[0].row, mine);
    left<T, D>(dout, k_tile[1].row, mine);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int r = mine + lane / 4 + 8 * half, row = first + r;
        for (int c = lane % 4; c < D; c += 4)
            dot[half] = fmaf(lsi_get(k_tile[1].row[r][c]), lsi_get(v_tile[0].row[r][c]), dot[half]);
        dot[half] = row_sum(dot[half]);
        lse[half] = row < t ? a.lse[at.row + row] * LOG2_E : 0.0f;
        if (lane % 4 == 0 && row < t) a.dots[at.row + row] = dot[half];
    }
    __syncthreads();
    fetch(k_tile[0], k, a.q_rows.row, 0, t);
    fetch(v_tile[0], v, a.q_rows.row, 0, t);
    copies_end();
    for (int i = 0; i < tiles; i++) {
        if (i + 1 < tiles) {
            fetch(k_tile[(i + 1) % 2], k, a.q_rows.row, (i + 1) * TILE, t);
            fetch(v_tile[(i + 1) % 2], v, a.q_rows.row, (i + 1) * TILE, t);
        }
        copies_end();
        wait_copies<1>();
        __syncthreads();
        const int here = t - i * TILE < TILE ? t - i * TILE : TILE;
        for (int j = 0; works && j < here; j += GROUP) {
            float s[2][4], dp[2][4];
            times_rows<T, D>(s, q, k_tile[i % 2].row, j);
            times_rows<T, D>(dp, dout, v_tile[i % 2].row, j);
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const bool there = j + h * 8 + lane % 4 * 2 + e % 2 < here;
                    const float p = exp2f(fmaf(s[h][e], scale, -lse[e / 2]));
                    s[h][e] = there ? a.scale * p * (dp[h][e] - dot[e / 2]) : 0.0f;
                }
            add_times<T, D>(dq, s, k_tile[i % 2].row, j);
        }
        __syncthreads();
    }
    if (works) store<T, D>((T *)a.dq + at.q, a.q_rows.row, first + mine, t, dq, 1, 1);
}

/* dk and dv: rows are keys, columns queries. */
template <typename T, int D>
__global__ void __launch_bounds__(THREADS)
    flash_dkv_kernel(const __grid_constant__ lsi_cuda_flash_grad_args a)
{
    lsi_wait();
    extern __shared__ __align__(16) unsigned char shared[];
    tile<T, D> *q_tile = (tile<T, D> *)shared, *dout_tile = q_tile + 2;
    float(*numbers)[2][TILE] = (float(*)[2][TILE])(dout_tile + 2); /* lse and dots of a tile's queries */
    const int t = (int)a.t, tiles = (t + TILE - 1) / TILE, lane = threadIdx.x % LSI_WARP;
    const int first = (int)blockIdx.x * TILE, mine = threadIdx.x / LSI_WARP * GROUP;
    const place at = place_of(a);
    const T *q = (const T *)a.q + at.q, *dout = (const T *)a.dout + at.out;
    const float scale = a.scale * LOG2_E;
    const bool works = first + mine < t;
    uint32_t k[D / GROUP][4], v[D / GROUP][4];
    float dk[D / 8][4] = {}, dv[D / 8][4] = {};

    const auto fetch_queries = [&](int i) {
        fetch(q_tile[i % 2], q, a.q_rows.row, i * TILE, t);
        fetch(dout_tile[i % 2], dout, a.out_rows.row, i * TILE, t);
        for (int r = threadIdx.x; r < 2 * TILE; r += THREADS) {
            const int row = i * TILE + r % TILE;
            const float *from = r < TILE ? a.lse : a.dots;
            /* no probability behind the end: exp of minus infinity */
            numbers[i % 2][r / TILE][r % TILE] = row < t    ? from[at.row + row] * (r < TILE ? LOG2_E : 1.0f)
                                                 : r < TILE ? INFINITY
                                                            : 0.0f;
        }
    };
    fetch(q_tile[0], (const T *)a.k + at.q, a.q_rows.row, first, t);
    fetch(q_tile[1], (const T *)a.v + at.q, a.q_rows.row, first, t);
    copies_end();
    wait_copies<0>();
    __syncthreads();
    left<T, D>(k, q_tile[0].row, mine);
    left<T, D>(v, q_tile[1].row, mine);
    __syncthreads();
    fetch_queries(0);
    copies_end();
    for (int i = 0; i < tiles; i++) {
        if (i + 1 < tiles) fetch_queries(i + 1);
        copies_end();
        wait_copies<1>();
        __syncthreads();
        const int here = t - i * TILE < TILE ? t - i * TILE : TILE;
        for (int j = 0; works && j < here; j += GROUP) {
            float p[2][4], ds[2][4];
            times_rows<T, D>(p, k, q_tile[i % 2].row, j);
            times_rows<T, D>(ds, v, dout_tile[i % 2].row, j);
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const int query = j + h * 8 + lane % 4 * 2 + e % 2;
                    p[h][e] = exp2f(fmaf(p[h][e], scale, -numbers[i % 2][0][query]));
                    ds[h][e] = a.scale * p[h][e] * (ds[h][e] - numbers[i % 2][1][query]);
                }
            add_times<T, D>(dv, p, dout_tile[i % 2].row, j);
            add_times<T, D>(dk, ds, q_tile[i % 2].row, j);
        }
        __syncthreads();
    }
    if (!works) return;
    store<T, D>((T *)a.dk + at.q, a.q_rows.row, first + mine, t, dk, 1, 1);
    store<T, D>((T *)a.dv + at.q, a.q_rows.row, first + mine, t, dv, 1, 1);
}

/* -- launching ----------------------------------------------------------------------------------------------
 */

template <typename A> static dim3 grid_of(const A *a)
{
    return dim3((unsigned)((a->t + TILE - 1) / TILE), (unsigned)(a->samples * a->heads));
}

template <typename T, int D> static int flash(lsi_cuda_stream s, const lsi_cuda_flash_args *a)
{
    const size_t bytes = 4 * sizeof(tile<T, D>);
    const int code = lsi_flash_allow((const void *)flash_kernel<T, D>, bytes);

    if (code != 0) return code;
    LSI_LAUNCH(s, grid_of(a), THREADS, bytes, (flash_kernel<T, D>), *a);
    return 0;
}

template <typename T, int D> static int flash_grad(lsi_cuda_stream s, const lsi_cuda_flash_grad_args *a)
{
    const size_t bytes = 4 * sizeof(tile<T, D>), more = bytes + 4 * TILE * sizeof(float);
    int code = lsi_flash_allow((const void *)flash_dq_kernel<T, D>, bytes);

    if (code == 0) code = lsi_flash_allow((const void *)flash_dkv_kernel<T, D>, more);
    if (code != 0) return code;
    LSI_LAUNCH(s, grid_of(a), THREADS, bytes, (flash_dq_kernel<T, D>), *a);
    LSI_LAUNCH(s, grid_of(a), THREADS, more, (flash_dkv_kernel<T, D>), *a);
    return 0;
}

#define BY_WIDTH(function, T)                                                                                \
    switch (a->d) {                                                                                          \
    case 32: return function<T, 32>(s, a);                                                                   \
    case 64: return function<T, 64>(s, a);                                                                   \
    case 128: return function<T, 128>(s, a);                                                                 \
    default: return (int)cudaErrorNotSupported;                                                              \
    }

/* The way that is asked for, or the fastest that fits; LSI_FLASH_WAYS where the one that is asked for does
 * not fit. */
static lsi_flash_way way_of(lsi_flash_way asked, int64_t t, int64_t d)
{
    const bool fits_90a = lsi_flash_90a_fits(t, d), fits = lsi_flash_fits(t, d);

    if (asked == LSI_FLASH_BEST) return fits_90a ? LSI_FLASH_90A : fits ? LSI_FLASH_HEADS : LSI_FLASH_TILES;
    if ((asked == LSI_FLASH_90A && !fits_90a) || (asked == LSI_FLASH_HEADS && !fits)) return LSI_FLASH_WAYS;
    return asked;
}

int lsi_cuda_flash(lsi_cuda_stream s, const lsi_cuda_flash_args *a)
{
    switch (way_of(a->way, a->t, a->d)) {
    case LSI_FLASH_90A: return lsi_flash_out_90a(s, a);
    case LSI_FLASH_HEADS: return lsi_flash_heads(s, a);
    case LSI_FLASH_TILES:
        if (a->dtype == LS_BF16) BY_WIDTH(flash, __nv_bfloat16);
        if (a->dtype == LS_F16) BY_WIDTH(flash, __half);
        break;
    default: break;
    }
    return (int)cudaErrorNotSupported;
}

int lsi_cuda_flash_grad(lsi_cuda_stream s, const lsi_cuda_flash_grad_args *a)
{
    switch (way_of(a->way, a->t, a->d)) {
    case LSI_FLASH_90A: return lsi_flash_grad_90a(s, a);
    case LSI_FLASH_HEADS: return lsi_flash_heads_grad(s, a);
    case LSI_FLASH_TILES:
        if (a->dtype == LS_BF16) BY_WIDTH(flash_grad, __nv_bfloat16);
        if (a->dtype == LS_F16) BY_WIDTH(flash_grad, __half);
        break;
    default: break;
    }
    return (int)cudaErrorNotSupported;
}
