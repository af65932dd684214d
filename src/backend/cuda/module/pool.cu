/* pool.cu: max and average pools, both ways.
 *
 * Gradients are gathered: each element of dx looks at the windows that it is in, in order, so nothing is
 * added to memory by two threads, and dx is written once. */
#include "backend/cuda/module/window.cuh"

template <typename T, int V, int K, int S>
__global__ void __launch_bounds__(LSI_PIXEL_THREADS) maxpool_kernel(lsi_cuda_maxpool_args a, lsi_pixels p)
{
    lsi_wait();
    using W = window<K, S>;

    LSI_EACH_PIXEL(p, i)
    {
        const lsi_pixel at = lsi_pixel_at<V>(p, i);
        const int top = at.y * W::stride(a.attr, 0) - a.attr.pad[0],
                  left = at.x * W::stride(a.attr, 1) - a.attr.pad[1];
        float best[V], f[V];
        union {
            typename lsi_raw<V>::type raw;
            uint8_t e[V];
        } index;
        bool any = false;
#pragma unroll
        for (int ky = 0; ky < W::kernel(a.attr, 0); ky++) {
            const int y = top + ky;
            if (y < 0 || y >= p.h) continue;
#pragma unroll
            for (int kx = 0; kx < W::kernel(a.attr, 1); kx++) {
                const int x = left + kx;
                if (x < 0 || x >= p.w) continue;
                lsi_load<V>((const T *)a.x + at.large + (y * p.w + x) * at.step, f);
#pragma unroll
                for (int k = 0; k < V; k++) {
                    if (any && !(f[k] > best[k]) && !(f[k] != f[k] && best[k] == best[k])) continue;
                    best[k] = f[k];
                    index.e[k] = (uint8_t)(ky * W::kernel(a.attr, 1) + kx);
                }
                any = true;
            }
        }
        const int64_t to = at.small + (at.y * p.ow + at.x) * at.step;
        if (a.attr.relu)
#pragma unroll
            for (int k = 0; k < V; k++) best[k] = lsi_pw_relu(best[k]);
        lsi_store<V>((T *)a.y + to, best);
        *(typename lsi_raw<V>::type *)(a.index + to) = index.raw;
    }
}

template <typename T, int V> static int maxpool(lsi_cuda_stream s, const lsi_cuda_maxpool_args *a)
{
    const lsi_pixels p = lsi_pixels_of(&a->map, false, V);

    const unsigned blocks = lsi_blocks(p.count, LSI_PIXEL_THREADS);

    if (is_window(&a->attr, 3, 2))
        LSI_LAUNCH(s, blocks, LSI_PIXEL_THREADS, 0, (maxpool_kernel<T, V, 3, 2>), *a, p);
    else if (is_window(&a->attr, 2, 2))
        LSI_LAUNCH(s, blocks, LSI_PIXEL_THREADS, 0, (maxpool_kernel<T, V, 2, 2>), *a, p);
    else
        LSI_LAUNCH(s, blocks, LSI_PIXEL_THREADS, 0, (maxpool_kernel<T, V, 0, 0>), *a, p);
    return 0;
}

int lsi_cuda_maxpool(lsi_cuda_stream s, const lsi_cuda_maxpool_args *a)
{
    if (a->map.n * a->map.c == 0) return 0;
    LSI_IMAGE_TYPES(&a->map, return (maxpool<T, V>(s, a)));
    return 0;
}

template <typename T, int V, int K, int S>
__global__ void __launch_bounds__(LSI_PIXEL_THREADS)
    maxpool_grad_kernel(lsi_cuda_maxpool_grad_args a, lsi_pixels p)
{
    lsi_wait();
    using W = window<K, S>;
    constexpr int MOST = K > 0 ? (K + S - 1) / (S > 0 ? S : 1) : 0; /* windows that a position is in */

    LSI_EACH_PIXEL(p, i)
    {
        const lsi_pixel at = lsi_pixel_at<V>(p, i);
        int y0, y1, x0, x1;
        float sum[V] = {}, d[V], o[V];
        windows(at.y, a.attr.pad[0], W::kernel(a.attr, 0), W::stride(a.attr, 0), p.oh, &y0, &y1);
        windows(at.x, a.attr.pad[1], W::kernel(a.attr, 1), W::stride(a.attr, 1), p.ow, &x0, &x1);
#pragma unroll
        for (int v = 0; v < (K > 0 ? MOST : y1 - y0); v++)
#pragma unroll
            for (int u = 0; u < (K > 0 ? MOST : x1 - x0); u++) {
                const int y = y0 + v, x = x0 + u;
                if (K > 0 && (y >= y1 || x >= x1)) continue;
                const int64_t from = at.small + (y * p.ow + x) * at.step;
                const int mine = (at.y + a.attr.pad[0] - y * W::stride(a.attr, 0)) * W::kernel(a.attr, 1) +
                                 at.x + a.attr.pad[1] - x * W::stride(a.attr, 1);
                union {
                    typename lsi_raw<V>::type raw;
                    uint8_t e[V];
                } index;
                index.raw = *(const typename lsi_raw<V>::type *)(a.index + from);
                lsi_load<V>((const T *)a.dy + from, d);
                if (a.y != nullptr) {
                    lsi_load<V>((const T *)a.y + from, o);
#pragma unroll
                    for (int k = 0; k < V; k++) d[k] = lsi_pw_relu_grad(d[k], o[k]);
                }
#pragma unroll
                for (int k = 0; k < V; k++) sum[k] += index.e[k] == mine ? d[k] : 0.0f;
            }
        lsi_store<V>((T *)a.dx + at.large + (at.y * p.w + at.x) * at.step, sum);
    }
}

/* Windows of 3 x 3 that move by 2 over maps with a border of 1: a thread has the 2 x 2 positions from (2 y, 2
 * x) on, which lie in windows y and y + 1 times x and x + 1 and no others; so each is read once for four
 * positions, all of them together. */
template <typename T, int V, bool RELU>
__global__ void __launch_bounds__(LSI_PIXEL_THREADS)
    maxpool_grad_squares_kernel(lsi_cuda_maxpool_grad_args a, lsi_pixels p)
{
    lsi_wait();
    LSI_EACH_PIXEL(p, i)
    {
        const lsi_pixel at = lsi_pixel_at<V>(p, i);
        lsi_packed<V, T> dy[2][2], y[2][2];
        union {
            typename lsi_raw<V>::type raw;
            uint8_t e[V];
        } index[2][2];
        float d[2][2][V];

#pragma unroll
        for (int v = 0; v < 2; v++)
#pragma unroll
            for (int u = 0; u < 2; u++) {
                if (at.y + v >= p.oh || at.x + u >= p.ow) {
#pragma unroll
                    for (int k = 0; k < V; k++) index[v][u].e[k] = 0xff;
                    dy[v][u].raw = y[v][u].raw = {};
                    continue;
                }
                const int64_t from = at.small + ((at.y + v) * p.ow + at.x + u) * at.step;
                index[v][u].raw = *(const typename lsi_raw<V>::type *)(a.index + from);
                dy[v][u].fetch((const T *)a.dy + from);
                if (RELU) y[v][u].fetch((const T *)a.y + from);
            }
#pragma unroll
        for (int v = 0; v < 2; v++)
#pragma unroll
            for (int u = 0; u < 2; u++) {
                float o[V];
                dy[v][u].unpack(d[v][u]);
                if (!RELU) continue;
                y[v][u].unpack(o);
#pragma unroll
                for (int k = 0; k < V; k++) d[v][u][k] = lsi_pw_relu_grad(d[v][u][k], o[k]);
            }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int down = j / 2, right = j % 2, row = 2 * at.y + down, column = 2 * at.x + right;
            float sum[V] = {};
            if (row >= p.h || column >= p.w) continue;
#pragma unroll
            for (int v = 0; v <= down; v++)
#pragma unroll
                for (int u = 0; u <= right; u++) {
                    const int mine = (down + 1 - 2 * v) * 3 + right + 1 - 2 * u;
#pragma unroll
                    for (int k = 0; k < V; k++) sum[k] += index[v][u].e[k] == mine ? d[v][u][k] : 0.0f;
                }
            lsi_store<V>((T *)a.dx + at.large + (row * p.w + column) * at.step, sum);
        }
    }
}

template <typename T, int V>
static int maxpool_grad_squares(lsi_cuda_stream s, const lsi_cuda_maxpool_grad_args *a)
{
    const int64_t rows = (a->map.h + 1) / 2, columns = (a->map.w + 1) / 2;
    lsi_pixels p = lsi_pixels_of(&a->map, true, V);

    p.height = lsi_divider(rows);
    p.width = lsi_divider(columns);
    p.count = (uint32_t)(a->map.n * a->map.c * rows * columns / V);
    const unsigned blocks = lsi_blocks(p.count, LSI_PIXEL_THREADS);
    if (a->y != NULL)
        LSI_LAUNCH(s, blocks, LSI_PIXEL_THREADS, 0, (maxpool_grad_squares_kernel<T, V, true>), *a, p);
    else
        LSI_LAUNCH(s, blocks, LSI_PIXEL_THREADS, 0, (maxpool_grad_squares_kernel<T, V, false>), *a, p);
    return 0;
}

template <typename T, int V> static int maxpool_grad(lsi_cuda_stream s, const lsi_cuda_maxpool_grad_args *a)
{
    const lsi_pixels p = lsi_pixels_of(&a->map, true, V);

    const unsigned blocks = lsi_blocks(p.count, LSI_PIXEL_THREADS);

    if (is_window(&a->attr, 3, 2) && a->attr.pad[0] == 1 && a->attr.pad[1] == 1)
        return maxpool_grad_squares<T, V>(s, a);
    if (is_window(&a->attr, 3, 2))
        LSI_LAUNCH(s, blocks, LSI_PIXEL_THREADS, 0, (maxpool_grad_kernel<T, V, 3, 2>), *a, p);
    else if (is_window(&a->attr, 2, 2))
        LSI_LAUNCH(s, blocks, LSI_PIXEL_THREADS, 0, (maxpool_grad_kernel<T, V, 2, 2>), *a, p);
    else
        LSI_LAUNCH(s, blocks, LSI_PIXEL_THREADS, 0, (maxpool_grad_kernel<T, V, 0, 0>), *a, p);
    return 0;
}

int lsi_cuda_maxpool_grad(lsi_cuda_stream s, const lsi_cuda_maxpool_grad_args *a)
{
    if (a->map.n * a->map.c == 0) return 0;
    LSI_IMAGE_TYPES(&a->map, return (maxpool_grad<T, V>(s, a)));
    return 0;
}

/* One over the elements that the average of window (y, x) divides by. */
static __device__ __forceinline__ float weight(const lsi_cuda_avgpool_args &a, const lsi_pixels &p, int y,
                                               int x)
{
    const int top = y * a.attr.stride[0] - a.attr.pad[0], left = x * a.attr.stride[1] - a.attr.pad[1];
    int h = a.attr.kernel[0], w = a.attr.kernel[1];

    if (!a.attr.count_pad) {
        h = min(top + h, (int)p.h) - max(top, 0);
        w = min(left + w, (int)p.w) - max(left, 0);
    }
    return 1.0f / (float)(h * w);
}

template <typename T, int V>
__global__ void __launch_bounds__(LSI_PIXEL_THREADS) avgpool_kernel(lsi_cuda_avgpool_args a, lsi_pixels p)
{
    lsi_wait();
    LSI_EACH_PIXEL(p, i)
    {
        const lsi_pixel at = lsi_pixel_at<V>(p, i);
        const int top = at.y * a.attr.stride[0] - a.attr.pad[0],
                  left = at.x * a.attr.stride[1] - a.attr.pad[1];
        const float share = weight(a, p, at.y, at.x);
        float sum[V] = {}, f[V];
        for (int y = max(top, 0); y < min(top + a.attr.kernel[0], (int)p.h); y++)
            for (int x = max(left, 0); x < min(left + a.attr.kernel[1], (int)p.w); x++) {
                lsi_load<V>((const T *)a.in + at.large + (y * p.w + x) * at.step, f);
#pragma unroll
                for (int k = 0; k < V; k++) sum[k] += f[k];
            }
#pragma unroll
        for (int k = 0; k < V; k++) sum[k] *= share;
        lsi_store<V>((T *)a.out + at.small + (at.y * p.ow + at.x) * at.step, sum);
    }
}

template <typename T, int V>
__global__ void __launch_bounds__(LSI_PIXEL_THREADS)
    avgpool_grad_kernel(lsi_cuda_avgpool_args a, lsi_pixels p)
{
    lsi_wait();
    LSI_EACH_PIXEL(p, i)
    {
        const lsi_pixel at = lsi_pixel_at<V>(p, i);
        int y0, y1, x0, x1;
        float sum[V] = {}, f[V];
        windows(at.y, a.attr.pad[0], a.attr.kernel[0], a.attr.stride[0], p.oh, &y0, &y1);
        windows(at.x, a.attr.pad[1], a.attr.kernel[1], a.attr.stride[1], p.ow, &x0, &x1);
        for (int y = y0; y < y1; y++)
            for (int x = x0; x < x1; x++) {
                const float share = weight(a, p, y, x);
                lsi_load<V>((const T *)a.in + at.small + (y * p.ow + x) * at.step, f);
#pragma unroll
                for (int k = 0; k < V; k++) sum[k] = fmaf(f[k], share, sum[k]);
            }
        lsi_store<V>((T *)a.out + at.large + (at.y * p.w + at.x) * at.step, sum);
    }
}

template <typename T, int V> static int avgpool(lsi_cuda_stream s, const lsi_cuda_avgpool_args *a)
{
    const lsi_pixels p = lsi_pixels_of(&a->map, a->backward, V);
    const unsigned blocks = lsi_blocks(p.count, LSI_PIXEL_THREADS);

    if (a->backward)
        LSI_LAUNCH(s, blocks, LSI_PIXEL_THREADS, 0, (avgpool_grad_kernel<T, V>), *a, p);
    else
        LSI_LAUNCH(s, blocks, LSI_PIXEL_THREADS, 0, (avgpool_kernel<T, V>), *a, p);
    return 0;
}

int lsi_cuda_avgpool(lsi_cuda_stream s, const lsi_cuda_avgpool_args *a)
{
    if (a->map.n * a->map.c == 0) return 0;
    LSI_IMAGE_TYPES(&a->map, return (avgpool<T, V>(s, a)));
    return 0;
}
