/* flash_heads.cu: attention as in flash.cu where one side of a head fits into shared memory as a whole: up to
 * 224 rows of 64 elements, bf16 and f16, both ways.
 *
 * Forward: a warp has 32 queries, two sets of left operands, so that what it reads of keys and values serves
 * two products, and scores of the next keys are under way while those before become probabilities.  The
 * maximum that exponents are taken from moves only when one of them would exceed 8, which is mostly never
 * after the first keys.  Backward: a block has one head, a warp 16 of its keys, and goes through the queries
 * for dk and dv as they arrive; the scores' gradient is left in shared memory, 16 bits each, and is the left
 * operand of dq, which warps make by queries.  So scores are made once, and nobody adds to what others add
 * to. */
#include "backend/cuda/module/flash.cuh"

constexpr int D = 64;

enum { MOST = 224, HEAD_WARPS = 4, GRAD_WARPS = MOST / GROUP, CHUNK = 64 };

/* Exponents above the maximum in use that are let pass: 2^8 is far from what f16 holds. */
#define ALLOWED 8.0f

/* The 16 x D elements of rows first.. of n as left operands, from device memory; rows behind the end are 0.
 */
template <typename T>
static __device__ __forceinline__ void left_of(uint32_t (&a)[D / GROUP][4], const T *from, int64_t pitch,
                                               int first, int n)
{
    const int lane = threadIdx.x % LSI_WARP, row = first + lane / 4, two = lane % 4 * 2;

#pragma unroll
    for (int k = 0; k < D / GROUP; k++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int r = row + i % 2 * 8;
            a[k][i] = r < n ? *(const uint32_t *)(from + r * pitch + k * GROUP + i / 2 * 8 + two) : 0u;
        }
}

/* -- forward ------------------------------------------------------------------------------------------------
 */

/* What a warp knows of 16 of its queries; of rows row and row + 8 each. */
struct queries {
    uint32_t q[D / GROUP][4];
    float out[D / 8][4];
    float top[2], sum[2]; /* the exponent that is subtracted, in powers of 2; this thread's part of the sum */
};

/* Scores of 32 queries and the 16 keys from row j of k on. */
template <typename T>
static __device__ __forceinline__ void score(float (&s)[2][2][4], const queries (&x)[2], T (*k)[PITCH(D)],
                                             int j)
{
    const int lane = threadIdx.x % LSI_WARP;
    const T *type = nullptr;

#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int e = 0; e < 4; e++) s[m][h][e] = 0;
#pragma unroll
    for (int i = 0; i < D / GROUP; i++) {
        uint32_t b[4];
        matrices<false>(b, &k[j + lane / 16 * 8 + lane % 8][i * GROUP + lane / 8 % 2 * 8]);
#pragma unroll
        for (int m = 0; m < 2; m++) {
            multiply(s[m][0], x[m].q[i], b[0], b[1], type);
            multiply(s[m][1], x[m].q[i], b[2], b[3], type);
        }
    }
}

/* Takes the maxima of 16 keys into account. */
static __device__ __forceinline__ void raise(queries &x, const float (&s)[2][4], float scale)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float here =
            fmaxf(fmaxf(s[0][2 * half], s[0][2 * half + 1]), fmaxf(s[1][2 * half], s[1][2 * half + 1]));
        const float top = fmaxf(x.top[half], row_max(here) * scale);
        const float keep = top == -INFINITY ? 1.0f : power_of_2(x.top[half] - top);
        x.top[half] = top;
        x.sum[half] *= keep;
#pragma unroll
        for (int k = 0; k < D / 8; k++) {
            x.out[k][2 * half] *= keep;
            x.out[k][2 * half + 1] *= keep;
        }
    }
}

/* out += softmax(scores) v of the 16 keys from row j on; behind t there are none. */
template <typename T>
static __device__ __forceinline__ void gather(float (&s)[2][2][4], queries (&x)[2], T (*v)[PITCH(D)], int j,
                                              int t, float scale)
{
    const int lane = threadIdx.x % LSI_WARP;
    const T *type = nullptr;
    uint32_t p[2][4];
    bool above = false;

    if (j + GROUP > t)
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                if (j + h * 8 + lane % 4 * 2 + e % 2 >= t) s[0][h][e] = s[1][h][e] = -INFINITY;
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float most = fmaxf(fmaxf(s[m][0][2 * half], s[m][0][2 * half + 1]),
                                     fmaxf(s[m][1][2 * half], s[m][1][2 * half + 1]));
            above |= fmaf(most, scale, -ALLOWED) > x[m].top[half];
        }
    if (__any_sync(LSI_FULL, above)) {
        raise(x[0], s[0], scale);
        raise(x[1], s[1], scale);
    }
#pragma unroll
    for (int m = 0; m < 2; m++) {
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                s[m][h][e] = power_of_2(fmaf(s[m][h][e], scale, -x[m].top[e / 2]));
                x[m].sum[e / 2] += s[m][h][e];
            }
#pragma unroll
        for (int i = 0; i < 4; i++) p[m][i] = pair(s[m][i / 2][i % 2 * 2], s[m][i / 2][i % 2 * 2 + 1], type);
    }
#pragma unroll
    for (int n = 0; n < D / GROUP; n++) {
        uint32_t b[4];
        matrices<true>(b, &v[j + lane % 16][n * GROUP + lane / 16 * 8]);
#pragma unroll
        for (int m = 0; m < 2; m++) {
            multiply(x[m].out[2 * n], p[m], b[0], b[1], type);
            multiply(x[m].out[2 * n + 1], p[m], b[2], b[3], type);
        }
    }
}

template <typename T>
__global__ void __launch_bounds__(HEAD_WARPS *LSI_WARP, 3)
    flash_heads_kernel(const __grid_constant__ lsi_cuda_flash_args a)
{
    lsi_wait();
    extern __shared__ __align__(16) unsigned char shared[];
    const int t = (int)a.t, rows = (t + GROUP - 1) / GROUP * GROUP, lane = threadIdx.x % LSI_WARP;
    T(*k)[PITCH(D)] = (T(*)[PITCH(D)])shared, (*v)[PITCH(D)] = k + rows;
    const int first = ((int)blockIdx.x * HEAD_WARPS + threadIdx.x / LSI_WARP) * 2 * GROUP;
    const place at = place_of(a);
    const float scale = a.scale * LOG2_E;
    queries x[2];
    float s[2][2][2][4];

    fetch<T, D>(k, (const T *)a.k + at.q, a.q_rows.row, 0, rows, t);
    copies_end();
    fetch<T, D>(v, (const T *)a.v + at.q, a.q_rows.row, 0, rows, t);
    copies_end();
#pragma unroll
    for (int m = 0; m < 2; m++) {
        left_of(x[m].q, (const T *)a.q + at.q, a.q_rows.row, first + m * GROUP, t);
#pragma unroll
        for (int i = 0; i < D / 8; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) x[m].out[i][e] = 0;
        x[m].top[0] = x[m].top[1] = -INFINITY;
        x[m].sum[0] = x[m].sum[1] = 0;
    }
    wait_copies<0>();
    __syncthreads();
    if (first >= t) return;
    /* Scores of the next keys are under way while those before become probabilities; at the end the last ones
     * are made once more, for nobody. */
    score<T>(s[0], x, k, 0);
    for (int j = 0; j < rows; j += 2 * GROUP) {
        score<T>(s[1], x, k, j + GROUP < rows ? j + GROUP : j);
        gather<T>(s[0], x, v, j, t, scale);
        if (j + GROUP >= rows) break;
        score<T>(s[0], x, k, j + 2 * GROUP < rows ? j + 2 * GROUP : j);
        gather<T>(s[1], x, v, j + GROUP, t, scale);
    }
#pragma unroll
    for (int m = 0; m < 2; m++) {
        const float all = row_sum(x[m].sum[0]), all_8 = row_sum(x[m].sum[1]);
        const int row = first + m * GROUP + lane / 4;
        store<T, D>((T *)a.out + at.out, a.out_rows.row, first + m * GROUP, t, x[m].out, 1 / all, 1 / all_8);
        if (lane % 4 == 0 && row < t) a.lse[at.row + row] = x[m].top[0] / LOG2_E + logf(all);
        if (lane % 4 == 0 && row + 8 < t) a.lse[at.row + row + 8] = x[m].top[1] / LOG2_E + logf(all_8);
    }
}

/* -- backward -----------------------------------------------------------------------------------------------
 */

/* The gradient of scores lies by keys, queries side by side. */
static __host__ __device__ __forceinline__ int score_pitch(int rows)
{
    return rows + 8;
}

template <typename T>
__global__ void __launch_bounds__(GRAD_WARPS *LSI_WARP)
    flash_heads_grad_kernel(const __grid_constant__ lsi_cuda_flash_grad_args a)
{
    lsi_wait();
    extern __shared__ __align__(16) unsigned char shared[];
    const int t = (int)a.t, rows = (t + GROUP - 1) / GROUP * GROUP, lane = threadIdx.x % LSI_WARP;
    T(*q)[PITCH(D)] = (T(*)[PITCH(D)])shared, (*dout)[PITCH(D)] = q + rows, (*k)[PITCH(D)] = dout + rows;
    T *scores = (T *)(k + rows);
    const int pitch = score_pitch(rows), mine = threadIdx.x / LSI_WARP * GROUP;
    float *lse = (float *)(scores + rows * pitch), *dots = lse + rows;
    const place at = place_of(a);
    const float scale = a.scale * LOG2_E;
    const T *type = nullptr;

    for (int first = 0; first < MOST; first += CHUNK) {
        const int count = rows - first < CHUNK ? rows - first : CHUNK;
        if (count > 0) {
            fetch<T, D>(q + first, (const T *)a.q + at.q, a.q_rows.row, first, count, t);
            fetch<T, D>(dout + first, (const T *)a.dout + at.out, a.out_rows.row, first, count, t);
        }
        copies_end();
    }
    fetch<T, D>(k, (const T *)a.k + at.q, a.q_rows.row, 0, rows, t);
    copies_end();
    {
        uint32_t my_k[D / GROUP][4], my_v[D / GROUP][4];
        float dk[D / 8][4] = {}, dv[D / 8][4] = {};
        const bool there[2] = {mine + lane / 4 < t, mine + lane / 4 + 8 < t}; /* keys, not the end's */
        left_of(my_k, (const T *)a.k + at.q, a.q_rows.row, mine, t);
        left_of(my_v, (const T *)a.v + at.q, a.q_rows.row, mine, t);
        query_numbers<T, D>(a, at, t, mine, lse, dots);
        for (int j = 0; j < rows; j += GROUP) {
            float p[2][4], ds[2][4];
            if (j % CHUNK == 0) { /* the next queries are there */
                if (j == 0)
                    wait_copies<4>();
                else if (j == CHUNK)
                    wait_copies<3>();
                else if (j == 2 * CHUNK)
                    wait_copies<2>();
                else
                    wait_copies<1>();
                __syncthreads();
            }
            float2 log[2], dot[2]; /* of queries two and two + 1, and eight further on */
#pragma unroll
            for (int h = 0; h < 2; h++) {
                log[h] = *(const float2 *)&lse[j + h * 8 + lane % 4 * 2];
                dot[h] = *(const float2 *)&dots[j + h * 8 + lane % 4 * 2];
            }
            times_rows<T, D>(p, my_k, q, j);
            times_rows<T, D>(ds, my_v, dout, j);
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    p[h][e] = power_of_2(fmaf(p[h][e], scale, -(e % 2 == 0 ? log[h].x : log[h].y)));
            add_times<T, D>(dv, p, dout, j);
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    ds[h][e] = there[e / 2]
                                   ? a.scale * p[h][e] * (ds[h][e] - (e % 2 == 0 ? dot[h].x : dot[h].y))
                                   : 0.0f;
            add_times<T, D>(dk, ds, q, j);
#pragma unroll
            for (int h = 0; h < 2; h++) {
                T *to = &scores[(mine + lane / 4) * pitch + j + h * 8 + lane % 4 * 2];
                *(uint32_t *)to = pair(ds[h][0], ds[h][1], type);
                *(uint32_t *)(to + 8 * pitch) = pair(ds[h][2], ds[h][3], type);
            }
        }
        store<T, D>((T *)a.dk + at.q, a.q_rows.row, mine, t, dk, 1, 1);
        store<T, D>((T *)a.dv + at.q, a.q_rows.row, mine, t, dv, 1, 1);
    }
    wait_copies<0>();
    __syncthreads();
    float dq[D / 8][4] = {};
#pragma unroll 2
    for (int j = 0; j < rows; j += GROUP) {
        uint32_t ds[4]; /* queries 0-7 and 8-15 at keys 0-7 of this j, then at keys 8-15 */
        matrices<true>(ds, &scores[(j + lane / 16 * 8 + lane % 8) * pitch + mine + lane / 8 % 2 * 8]);
#pragma unroll
        for (int n = 0; n < D / GROUP; n++) {
            uint32_t b[4];
            matrices<true>(b, &k[j + lane % 16][n * GROUP + lane / 16 * 8]);
            multiply(dq[2 * n], ds, b[0], b[1], type);
            multiply(dq[2 * n + 1], ds, b[2], b[3], type);
        }
    }
    store<T, D>((T *)a.dq + at.q, a.q_rows.row, mine, t, dq, 1, 1);
}

/* -- launching ----------------------------------------------------------------------------------------------
 */

static size_t forward_bytes(int rows)
{
    return (size_t)(2 * rows * PITCH(D)) * 2;
}

static size_t backward_bytes(int rows)
{
    return (size_t)(3 * rows * PITCH(D) + rows * score_pitch(rows)) * 2 + 2 * (size_t)rows * sizeof(float);
}

template <typename T> static int forward(lsi_cuda_stream s, const lsi_cuda_flash_args *a)
{
    const int rows = (int)((a->t + GROUP - 1) / GROUP * GROUP);
    const int64_t blocks = (a->t + HEAD_WARPS * 2 * GROUP - 1) / (HEAD_WARPS * 2 * GROUP);
    const int code = lsi_flash_allow((const void *)flash_heads_kernel<T>, forward_bytes(rows));

    if (code != 0) return code;
    LSI_LAUNCH(s, dim3((unsigned)blocks, (unsigned)(a->samples * a->heads)), HEAD_WARPS * LSI_WARP,
               forward_bytes(rows), flash_heads_kernel<T>, *a);
    return 0;
}

template <typename T> static int backward(lsi_cuda_stream s, const lsi_cuda_flash_grad_args *a)
{
    const int rows = (int)((a->t + GROUP - 1) / GROUP * GROUP);
    const int code = lsi_flash_allow((const void *)flash_heads_grad_kernel<T>, backward_bytes(rows));

    if (code != 0) return code;
    LSI_LAUNCH(s, dim3(1, (unsigned)(a->samples * a->heads)), (unsigned)(rows / GROUP) * LSI_WARP,
               backward_bytes(rows), flash_heads_grad_kernel<T>, *a);
    return 0;
}

bool lsi_flash_fits(int64_t t, int64_t d)
{
    int device = 0, most = 0;

    return d == D && t > MOST / 2 && t <= MOST && lsi_cuda_enter() == 0 &&
           cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) == cudaSuccess &&
           (size_t)most >= backward_bytes((int)((t + GROUP - 1) / GROUP * GROUP));
}

int lsi_flash_heads(lsi_cuda_stream s, const lsi_cuda_flash_args *a)
{
    return a->dtype == LS_BF16 ? forward<__nv_bfloat16>(s, a) : forward<__half>(s, a);
}

int lsi_flash_heads_grad(lsi_cuda_stream s, const lsi_cuda_flash_grad_args *a)
{
    return a->dtype == LS_BF16 ? backward<__nv_bfloat16>(s, a) : backward<__half>(s, a);
}
