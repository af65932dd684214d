/* layer_norm.cu: layer norm, both ways.
 *
 * A team of threads, a warp for usual widths, has a row: it comes from memory
 * once and for the second and third look from the innermost cache.  Backward
 * makes dx and, in registers, each thread's share of dgamma and dbeta over all
 * rows of its team, so dy and x cross memory once; the blocks' shares are then
 * summed as columns. */
#include "backend/cuda/launch/norm.h"
#include "backend/cuda/module/groups.cuh"

enum { THREADS = 256, NARROW = 2048, PARTS = 4 }; /* rows up to NARROW are read by a warp */

template <int TEAM> __device__ __forceinline__ float team_sum(float x, float *room)
{
    float none = 0;

    if (TEAM > LSI_WARP) __syncthreads(); /* `room` is free again */
    lsi_block_sums<TEAM>(&x, &none, room);
    return x;
}

template <typename T, int V, int TEAM>
__global__ void __launch_bounds__(THREADS) forward_kernel(lsi_cuda_layer_norm_args a, float eps)
{
    lsi_wait();
    __shared__ float room[2 * THREADS / LSI_WARP];
    const int64_t row = (int64_t)blockIdx.x * (THREADS / TEAM) + threadIdx.x / TEAM;
    const int first = threadIdx.x % TEAM * V, width = (int)a.width;
    const T *x = (const T *)a.x + row * width;
    T *y = (T *)a.y + row * width;
    float sum = 0, squares = 0, f[V], mean, invstd;

    if (row >= a.rows) return; /* a whole team, and where that is a block there is no such row */
    for (int i = first; i < width; i += TEAM * V) {
        lsi_load<V>(x + i, f);
#pragma unroll
        for (int k = 0; k < V; k++) sum += f[k];
    }
    mean = team_sum<TEAM>(sum, room) / (float)width;
    for (int i = first; i < width; i += TEAM * V) {
        lsi_load<V>(x + i, f);
#pragma unroll
        for (int k = 0; k < V; k++) squares = fmaf(f[k] - mean, f[k] - mean, squares);
    }
    invstd = 1.0f / sqrtf(team_sum<TEAM>(squares, room) / (float)width + eps);
    for (int i = first; i < width; i += TEAM * V) {
        float g[V], b[V];
        lsi_load<V>(x + i, f);
        lsi_load_floats<V>(a.gamma + i, g);
        lsi_load_floats<V>(a.beta + i, b);
#pragma unroll
        for (int k = 0; k < V; k++) f[k] = fmaf((f[k] - mean) * invstd, g[k], b[k]);
        lsi_store<V>(y + i, f);
    }
    if (threadIdx.x % TEAM == 0) {
        a.mean[row] = mean;
        a.invstd[row] = invstd;
    }
}

/* The same for rows that fit into the registers of a team: PARTS accesses of
 * each thread, all under way at once. */
template <typename T, int V, int TEAM>
__global__ void __launch_bounds__(THREADS) forward_kept_kernel(lsi_cuda_layer_norm_args a, float eps)
{
    lsi_wait();
    __shared__ float room[2 * THREADS / LSI_WARP];
    const int64_t row = (int64_t)blockIdx.x * (THREADS / TEAM) + threadIdx.x / TEAM;
    const int first = threadIdx.x % TEAM * V, width = (int)a.width;
    lsi_packed<V, T> kept[PARTS];
    float sum = 0, squares = 0, f[V], mean, invstd;

    if (row >= a.rows) return;
#pragma unroll
    for (int p = 0; p < PARTS; p++)
        if (first + p * TEAM * V < width) kept[p].fetch((const T *)a.x + row * width + first + p * TEAM * V);
#pragma unroll
    for (int p = 0; p < PARTS; p++) {
        if (first + p * TEAM * V >= width) break;
        kept[p].unpack(f);
#pragma unroll
        for (int k = 0; k < V; k++) sum += f[k];
    }
    mean = team_sum<TEAM>(sum, room) / (float)width;
#pragma unroll
    for (int p = 0; p < PARTS; p++) {
        if (first + p * TEAM * V >= width) break;
        kept[p].unpack(f);
#pragma unroll
        for (int k = 0; k < V; k++) squares = fmaf(f[k] - mean, f[k] - mean, squares);
    }
    invstd = 1.0f / sqrtf(team_sum<TEAM>(squares, room) / (float)width + eps);
#pragma unroll
    for (int p = 0; p < PARTS; p++) {
        const int i = first + p * TEAM * V;
        if (i >= width) break;
        float gamma[V], beta[V];
        kept[p].unpack(f);
        lsi_load_floats<V>(a.gamma + i, gamma);
        lsi_load_floats<V>(a.beta + i, beta);
#pragma unroll
        for (int k = 0; k < V; k++) f[k] = fmaf((f[k] - mean) * invstd, gamma[k], beta[k]);
        lsi_store<V>((T *)a.y + row * width + i, f);
    }
    if (threadIdx.x % TEAM == 0) {
        a.mean[row] = mean;
        a.invstd[row] = invstd;
    }
}

template <typename T, int V> static int forward(lsi_cuda_stream s, const lsi_cuda_layer_norm_args *a)
{
    constexpr int teams = THREADS / LSI_WARP;

    if (a->width <= LSI_WARP * V * PARTS)
        LSI_LAUNCH(s, (unsigned)((a->rows + teams - 1) / teams), THREADS, 0,
                   (forward_kept_kernel<T, V, LSI_WARP>), *a, (float)a->eps);
    else if (a->width <= NARROW)
        LSI_LAUNCH(s, (unsigned)((a->rows + teams - 1) / teams), THREADS, 0, (forward_kernel<T, V, LSI_WARP>),
                   *a, (float)a->eps);
    else
        LSI_LAUNCH(s, (unsigned)a->rows, THREADS, 0, (forward_kernel<T, V, THREADS>), *a, (float)a->eps);
    return 0;
}

int lsi_cuda_layer_norm(lsi_cuda_stream s, const lsi_cuda_layer_norm_args *a)
{
    if (a->rows == 0) return 0;
    LSI_FLOAT_TYPES(a->dtype, LSI_VECTORS(lsi_wide(a->dtype, a->width), return (forward<T, V>(s, a))));
    return 0;
}

/* A thread has OWN accesses of a row, at most 32 columns: their shares of dgamma and dbeta
 * are up to 64 registers. */
template <typename T, int V, int TEAM, int BLOCK, int OWN>
__global__ void __launch_bounds__(BLOCK, BLOCK == 256 ? 2 : 4)
    backward_kernel(lsi_cuda_layer_norm_grad_args a)
{
    lsi_wait();
    constexpr int TEAMS = BLOCK / TEAM;
    constexpr bool KEEP =
        sizeof(T) == 2 && V > 1; /* a row in 32 registers: it is fetched once, all at a time */
    constexpr bool EARLY = KEEP && OWN < 32 / V; /* there are registers for what is added, too */
    __shared__ float room[2 * BLOCK / LSI_WARP];
    __shared__ float shares[TEAMS > 1 ? TEAMS : 1][TEAM * V];
    const int team = threadIdx.x / TEAM, first = threadIdx.x % TEAM * V, width = (int)a.width;
    float dgamma[OWN][V] = {}, dbeta[OWN][V] = {};

    for (int64_t row = (int64_t)blockIdx.x * TEAMS + team; row < a.rows; row += (int64_t)gridDim.x * TEAMS) {
        const T *dy = (const T *)a.dy + row * width, *x = (const T *)a.x + row * width;
        T *dx = (T *)a.dx + row * width;
        const float mean = a.mean[row], inv = a.invstd[row];
        float h = 0, hx = 0, d[V], f[V];
        lsi_packed<V, T> pd[KEEP ? OWN : 1], px[KEEP ? OWN : 1], pr[EARLY ? OWN : 1];
        if (KEEP)
#pragma unroll
            for (int p = 0; p < OWN; p++) {
                const int i = first + p * TEAM * V;
                if (i >= width) break;
                pd[KEEP ? p : 0].fetch(dy + i);
                px[KEEP ? p : 0].fetch(x + i);
                if (EARLY && a.residual != nullptr)
                    pr[EARLY ? p : 0].fetch((const T *)a.residual + row * width + i);
            }
        /* d, f and gamma of the elements at i */
        const auto read = [&](int p, int i, float(&gamma)[V]) {
            if (!KEEP) {
                pd[0].fetch(dy + i);
                px[0].fetch(x + i);
            }
            pd[KEEP ? p : 0].unpack(d);
            px[KEEP ? p : 0].unpack(f);
            lsi_load_floats<V>(a.gamma + i, gamma);
        };
#pragma unroll
        for (int p = 0; p < OWN; p++) {
            const int i = first + p * TEAM * V;
            if (i >= width) break;
            float gamma[V];
            read(p, i, gamma);
#pragma unroll
            for (int k = 0; k < V; k++) {
                const float xhat = (f[k] - mean) * inv, g = gamma[k] * d[k];
                h += g;
                hx = fmaf(g, xhat, hx);
                dgamma[p][k] = fmaf(d[k], xhat, dgamma[p][k]);
                dbeta[p][k] += d[k];
            }
        }
        if (TEAM > LSI_WARP) __syncthreads();
        lsi_block_sums<TEAM>(&h, &hx, room);
        h /= (float)width;
        hx /= (float)width;
#pragma unroll
        for (int p = 0; p < OWN; p++) {
            const int i = first + p * TEAM * V;
            if (i >= width) break;
            float gamma[V];
            read(p, i, gamma);
#pragma unroll
            for (int k = 0; k < V; k++) {
                const float xhat = (f[k] - mean) * inv;
                f[k] = inv * (fmaf(gamma[k], d[k], -h) - xhat * hx);
            }
            if (a.residual != nullptr) {
                if (EARLY)
                    pr[EARLY ? p : 0].unpack(d);
                else
                    lsi_load<V>((const T *)a.residual + row * width + i, d);
#pragma unroll
                for (int k = 0; k < V; k++) f[k] += d[k];
            }
            lsi_store<V>(dx + i, f);
        }
    }
    float *out = a.partial + (int64_t)blockIdx.x * 2 * width;
#pragma unroll
    for (int q = 0; q < 2; q++)
#pragma unroll
        for (int p = 0; p < OWN; p++) {
            if (p * TEAM * V >= width) break;
            __syncthreads();
#pragma unroll
            for (int k = 0; k < V; k++) shares[team][first + k] = q == 0 ? dgamma[p][k] : dbeta[p][k];
            __syncthreads();
            for (int i = threadIdx.x; i < TEAM * V && p * TEAM * V + i < width; i += BLOCK) {
                float sum = 0;
                for (int t = 0; t < TEAMS; t++) sum += shares[t][i];
                out[q * width + p * TEAM * V + i] = sum;
            }
        }
}

/* The blocks' shares, as rows of dgamma and dbeta side by side. */
template <int Width> struct shares_rule : lsi_elements<float, Width> {
    float *dgamma, *dbeta;
    int64_t width;

    __device__ void finish(int64_t group, int64_t, const float (&s)[1]) const
    {
        if (group < width)
            dgamma[group] = s[0];
        else
            dbeta[group - width] = s[0];
    }
};

template <int V> static int sum_shares(lsi_cuda_stream s, const lsi_cuda_layer_norm_grad_args *a)
{
    const shares_rule<V> r = {{a->partial}, a->dgamma, a->dbeta, a->width};
    const lsi_cuda_groups g = {true, 1, 2 * a->width, a->rows > 0 ? a->blocks : 0, 1, nullptr, nullptr};

    return lsi_sum_groups(s, r, g);
}

template <typename T, int V> static int backward(lsi_cuda_stream s, const lsi_cuda_layer_norm_grad_args *a)
{
    constexpr int most = 32 / V, less = V > 1 ? most * 3 / 4 : most; /* ViT-B's rows are three quarters */

    if (a->width <= LSI_WARP * V * less)
        LSI_LAUNCH(s, (unsigned)a->blocks, 256, 0, (backward_kernel<T, V, LSI_WARP, 256, less>), *a);
    else if (a->width <= LSI_WARP * 32)
        LSI_LAUNCH(s, (unsigned)a->blocks, 256, 0, (backward_kernel<T, V, LSI_WARP, 256, most>), *a);
    else
        LSI_LAUNCH(s, (unsigned)a->blocks, 128, 0, (backward_kernel<T, V, 128, 128, most>), *a);
    return 0;
}

static int backward_rows(lsi_cuda_stream s, const lsi_cuda_layer_norm_grad_args *a)
{
    LSI_FLOAT_TYPES(a->dtype, LSI_VECTORS(lsi_wide(a->dtype, a->width), return (backward<T, V>(s, a))));
    return 0;
}

int lsi_cuda_layer_norm_grad(lsi_cuda_stream s, const lsi_cuda_layer_norm_grad_args *a)
{
    const int code = a->rows > 0 && a->width > 0 ? backward_rows(s, a) : 0;

    if (code != 0) return code;
    return a->width % 2 == 0 ? sum_shares<4>(s, a) : sum_shares<1>(s, a);
}
