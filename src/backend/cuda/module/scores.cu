/* scores.cu: softmax, cross entropy and accuracy over rows of scores.
 *
 * A team of threads, a warp for up to 2048 scores, has a row, which comes from memory once and then from the
 * innermost cache.  What is summed over rows is left per row, and the last block adds it up in a fixed order.
 */
#include "backend/cuda/launch/scores.h"
#include "backend/cuda/module/vector.cuh"

enum { THREADS = 256, NARROW = 2048 };

template <int TEAM> __device__ __forceinline__ float team_sum(float x, float *room)
{
    float none = 0;

    if (TEAM > LSI_WARP) __syncthreads(); /* `room` is free again */
    lsi_block_sums<TEAM>(&x, &none, room);
    return x;
}

template <int TEAM> __device__ __forceinline__ float team_max(float x, float *room)
{
    x = lsi_warp_max<LSI_WARP>(x);
    if (TEAM == LSI_WARP) return x;
    __syncthreads();
    if (threadIdx.x % LSI_WARP == 0) room[threadIdx.x / LSI_WARP] = x;
    __syncthreads();
    for (int w = 0; w < TEAM / LSI_WARP; w++) x = lsi_pw_max(x, room[w]);
    return x;
}

/* The largest of a row (a NaN counts as largest) and the sum of exp(x - largest). */
template <typename T, int TEAM>
__device__ __forceinline__ void largest_and_sum(const T *x, int width, float *room, float *largest,
                                                float *sum)
{
    const int first = threadIdx.x % TEAM;
    float m = -INFINITY, s = 0;

    for (int i = first; i < width; i += TEAM) m = lsi_pw_max(lsi_get(x[i]), m);
    m = team_max<TEAM>(m, room);
    for (int i = first; i < width; i += TEAM) s += expf(lsi_get(x[i]) - m);
    *sum = team_sum<TEAM>(s, room);
    *largest = m;
}

template <typename T, int TEAM>
__global__ void __launch_bounds__(THREADS) softmax_kernel(lsi_cuda_softmax_args a)
{
    lsi_wait();
    __shared__ float room[2 * THREADS / LSI_WARP];
    const int64_t row = (int64_t)blockIdx.x * (THREADS / TEAM) + threadIdx.x / TEAM;
    const int width = (int)a.width;
    const T *x = (const T *)a.x + row * width;
    T *y = (T *)a.y + row * width;
    float m, s;

    if (row >= a.rows) return; /* whole warps; where a team is a block there is no such row */
    largest_and_sum<T, TEAM>(x, width, room, &m, &s);
    const float log_sum = logf(s); /* subtracted by itself: beside a large m it would lose its digits */
    for (int i = threadIdx.x % TEAM; i < width; i += TEAM) {
        const float f = lsi_get(x[i]);
        y[i] = lsi_put<T>(a.log ? f - m - log_sum : expf(f - m) / s);
    }
}

int lsi_cuda_softmax(lsi_cuda_stream s, const lsi_cuda_softmax_args *a)
{
    constexpr int teams = THREADS / LSI_WARP;

    if (a->rows == 0 || a->width == 0) return 0;
    if (a->width <= NARROW) {
        LSI_FLOAT_TYPES(a->dtype, LSI_LAUNCH(s, (unsigned)((a->rows + teams - 1) / teams), THREADS, 0,
                                             (softmax_kernel<T, LSI_WARP>), *a));
    } else {
        LSI_FLOAT_TYPES(a->dtype,
                        LSI_LAUNCH(s, (unsigned)a->rows, THREADS, 0, (softmax_kernel<T, THREADS>), *a));
    }
    return 0;
}

/* The sum of each[0..n-1] by the last block, in thread 0. */
static __device__ float sum_of_rows(const float *each, int64_t n, float *room)
{
    float sum = 0, none = 0;

    for (int64_t i = threadIdx.x; i < n; i += THREADS) sum += __ldcg(each + i);
    __syncthreads();
    lsi_block_sums<THREADS>(&sum, &none, room);
    return sum;
}

template <typename T>
__global__ void __launch_bounds__(THREADS) cross_entropy_kernel(lsi_cuda_cross_entropy_args a)
{
    lsi_wait();
    __shared__ float room[2 * THREADS / LSI_WARP];
    constexpr int TEAMS = THREADS / LSI_WARP;
    const int width = (int)a.width, lane = threadIdx.x % LSI_WARP;

    for (int64_t row = (int64_t)blockIdx.x * TEAMS + threadIdx.x / LSI_WARP; row < a.rows;
         row += (int64_t)gridDim.x * TEAMS) {
        const T *x = (const T *)a.x + row * width;
        const int label = a.labels[row];
        float m, s;
        largest_and_sum<T, LSI_WARP>(x, width, room, &m, &s);
        for (int i = lane; i < width; i += LSI_WARP) a.probs[row * width + i] = expf(lsi_get(x[i]) - m) / s;
        if (lane == 0)
            __stcg(a.each + row, label >= 0 && label < width ? logf(s) - (lsi_get(x[label]) - m) : NAN);
    }
    if (!lsi_last_block(a.ticket, gridDim.x)) return;
    const float sum = sum_of_rows(a.each, a.rows, room);
    if (threadIdx.x == 0) *a.loss = a.rows > 0 ? sum / (float)a.rows : 0.0f;
}

int lsi_cuda_cross_entropy(lsi_cuda_stream s, const lsi_cuda_cross_entropy_args *a)
{
    LSI_FLOAT_TYPES(a->dtype, LSI_LAUNCH(s, lsi_blocks(a->rows, THREADS / LSI_WARP), THREADS, 0,
                                         cross_entropy_kernel<T>, *a));
    return 0;
}

static __global__ void __launch_bounds__(THREADS)
    cross_entropy_grad_kernel(lsi_cuda_cross_entropy_grad_args a, lsi_divider width)
{
    lsi_wait();
    const uint32_t count = (uint32_t)(a.rows * a.width);
    const float scale = *a.dloss / (float)a.rows;

    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        uint32_t k;
        const int label = a.labels[width.split(i, &k)];
        const float d = a.probs[i] - ((int)k == label ? 1.0f : 0.0f);
        a.dx[i] = label >= 0 && label < a.width ? scale * d : NAN;
    }
}

int lsi_cuda_cross_entropy_grad(lsi_cuda_stream s, const lsi_cuda_cross_entropy_grad_args *a)
{
    if (a->rows * a->width == 0) return 0;
    LSI_LAUNCH(s, lsi_blocks(a->rows * a->width, THREADS), THREADS, 0, cross_entropy_grad_kernel, *a,
               lsi_divider(a->width));
    return 0;
}

template <typename T> __global__ void __launch_bounds__(THREADS) accuracy_kernel(lsi_cuda_accuracy_args a)
{
    lsi_wait();
    __shared__ float room[2 * THREADS / LSI_WARP];
    constexpr int TEAMS = THREADS / LSI_WARP;
    const int width = (int)a.width, lane = threadIdx.x % LSI_WARP;

    for (int64_t row = (int64_t)blockIdx.x * TEAMS + threadIdx.x / LSI_WARP; row < a.rows;
         row += (int64_t)gridDim.x * TEAMS) {
        const T *x = (const T *)a.x + row * width;
        const int label = a.labels[row];
        bool right = label >= 0 && label < width;
        const float best = right ? lsi_get(x[label]) : 0.0f;
        for (int i = lane; i < width && right; i += LSI_WARP) {
            const float f = lsi_get(x[i]);
            right = i < label ? f < best : f <= best; /* never beside a NaN */
        }
        right = __all_sync(LSI_FULL, right);
        if (lane == 0) __stcg(a.each + row, right ? 1.0f : 0.0f);
    }
    if (!lsi_last_block(a.ticket, gridDim.x)) return;
    const float sum = sum_of_rows(a.each, a.rows, room);
    if (threadIdx.x == 0) *a.right = sum;
}

int lsi_cuda_accuracy(lsi_cuda_stream s, const lsi_cuda_accuracy_args *a)
{
    LSI_FLOAT_TYPES(
        a->dtype, LSI_LAUNCH(s, lsi_blocks(a->rows, THREADS / LSI_WARP), THREADS, 0, accuracy_kernel<T>, *a));
    return 0;
}
