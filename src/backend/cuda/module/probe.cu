/* probe.cu: convolutions by their definition, element by element, for checking what a library computes. */
#include "backend/cuda/module/launch.cuh"

enum { THREADS = 256 };

/* A number that looks random (the finaliser of MurmurHash3). */
__device__ __forceinline__ unsigned scrambled(unsigned x)
{
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
}

template <typename T> __global__ void noise_kernel(T *out, int64_t count, unsigned key)
{
    lsi_wait();
    const int64_t step = (int64_t)gridDim.x * THREADS;

    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += step)
        out[i] = lsi_put<T>((float)((int)(scrambled((unsigned)i + key * 0x9e3779b9u) & 255) - 128) / 128.0f);
}

int lsi_cuda_noise(lsi_cuda_stream s, const lsi_cuda_noise_args *a)
{
    LSI_FLOAT_TYPES(a->dtype, LSI_LAUNCH(s, lsi_blocks(a->count, THREADS), THREADS, 0, noise_kernel<T>, (T *)a->out,
                                         a->count, a->key));
    return 0;
}

struct sums {
    double sum, magnitude;
};

__device__ __forceinline__ void add(sums &s, float a, float b)
{
    const double product = (double)a * (double)b;

    s.sum += product;
    s.magnitude += fabs(product);
}

template <typename T> __device__ __forceinline__ float at(const void *p, const int64_t *stride, int64_t a, int64_t b,
                                                          int64_t c, int64_t d)
{
    return lsi_get(((const T *)p)[a * stride[0] + b * stride[1] + c * stride[2] + d * stride[3]]);
}

/* Element i of the result along one of its dimensions, for sample `sample`: anywhere, or at an edge. */
__device__ int64_t place(unsigned sample, int dimension, int64_t size)
{
    const unsigned r = scrambled(sample * 4 + (unsigned)dimension);

    if (dimension >= 2 && (sample >> (dimension - 2) & 1)) return r & 1 ? size - 1 : 0;
    return (int64_t)(r % (unsigned)size);
}

/* This thread's part of the sum for y[n][k][p][q]. */
template <typename T> __device__ void sum_y(sums &s, const lsi_cuda_probe_args &a, const int64_t *o)
{
    const lsi_cuda_conv &c = a.conv;
    const int64_t in = c.w[1], group = o[1] / (c.w[0] / (c.x[1] / in)), area = c.w[2] * c.w[3];

    for (int64_t i = threadIdx.x; i < in * area; i += THREADS) {
        const int64_t ch = i / area, r = i % area / c.w[3], q = i % c.w[3];
        const int64_t h = o[2] * c.stride[0] - c.before[0] + r * c.dilation[0];
        const int64_t v = o[3] * c.stride[1] - c.before[1] + q * c.dilation[1];
        if (h >= 0 && h < c.x[2] && v >= 0 && v < c.x[3])
            add(s, at<T>(a.x, c.x_stride, o[0], group * in + ch, h, v), at<T>(a.w, c.w_stride, o[1], ch, r, q));
    }
}

/* The row of y that filter row r takes x's row h to; -1: none. */
__device__ __forceinline__ int64_t row_of(const lsi_cuda_conv &c, int d, int64_t h, int64_t r)
{
    const int64_t p = h + c.before[d] - r * c.dilation[d];

    return p >= 0 && p % c.stride[d] == 0 && p / c.stride[d] < c.y[2 + d] ? p / c.stride[d] : -1;
}

/* ... for x[n][c][h][w]. */
template <typename T> __device__ void sum_dx(sums &s, const lsi_cuda_probe_args &a, const int64_t *o)
{
    const lsi_cuda_conv &c = a.conv;
    const int64_t in = c.w[1], out = c.w[0] / (c.x[1] / in), first = o[1] / in * out, area = c.w[2] * c.w[3];

    for (int64_t i = threadIdx.x; i < out * area; i += THREADS) {
        const int64_t k = first + i / area, r = i % area / c.w[3], q = i % c.w[3];
        const int64_t h = row_of(c, 0, o[2], r), v = row_of(c, 1, o[3], q);
        if (h >= 0 && v >= 0)
            add(s, at<T>(a.y, c.y_stride, o[0], k, h, v), at<T>(a.w, c.w_stride, k, o[1] % in, r, q));
    }
}

/* ... for w[k][c][r][s]. */
template <typename T> __device__ void sum_dw(sums &s, const lsi_cuda_probe_args &a, const int64_t *o)
{
    const lsi_cuda_conv &c = a.conv;
    const int64_t in = c.w[1], ch = o[0] / (c.w[0] / (c.x[1] / in)) * in + o[1], map = c.y[2] * c.y[3];

    for (int64_t i = threadIdx.x; i < c.y[0] * map; i += THREADS) {
        const int64_t n = i / map, p = i % map / c.y[3], q = i % c.y[3];
        const int64_t h = p * c.stride[0] - c.before[0] + o[2] * c.dilation[0];
        const int64_t v = q * c.stride[1] - c.before[1] + o[3] * c.dilation[1];
        if (h >= 0 && h < c.x[2] && v >= 0 && v < c.x[3])
            add(s, at<T>(a.x, c.x_stride, n, ch, h, v), at<T>(a.y, c.y_stride, n, o[0], p, q));
    }
}

/* The sum over all threads, in thread 0. */
__device__ double total(double x)
{
    __shared__ double part[THREADS];

    part[threadIdx.x] = x;
    __syncthreads();
    for (int n = THREADS / 2; n > 0; n /= 2) {
        if (threadIdx.x < n) part[threadIdx.x] += part[threadIdx.x + n];
        __syncthreads();
    }
    x = part[0];
    __syncthreads();
    return x;
}

/* A block has one element. */
template <typename T> __global__ void probe_kernel(lsi_cuda_probe_args a)
{
    lsi_wait();
    const lsi_cuda_conv &c = a.conv;
    const int64_t *size = c.pass == LSI_CUDA_CONV_Y ? c.y : c.pass == LSI_CUDA_CONV_DX ? c.x : c.w;
    int64_t o[4];
    sums s = {0, 0};

    for (int d = 0; d < 4; d++) o[d] = place(blockIdx.x, d, size[d]);
    if (c.pass == LSI_CUDA_CONV_Y) sum_y<T>(s, a, o);
    if (c.pass == LSI_CUDA_CONV_DX) sum_dx<T>(s, a, o);
    if (c.pass == LSI_CUDA_CONV_DW) sum_dw<T>(s, a, o);
    s.sum = total(s.sum);
    s.magnitude = total(s.magnitude);
    if (threadIdx.x != 0) return;
    if (c.epilogue == LSI_CUDA_BIAS || c.epilogue == LSI_CUDA_BIAS_RELU) s.sum += lsi_get(((const T *)a.bias)[o[1]]);
    if (c.epilogue == LSI_CUDA_BIAS_RELU && s.sum < 0) s.sum = 0;
    a.out[blockIdx.x].sum = s.sum;
    a.out[blockIdx.x].magnitude = s.magnitude;
    a.out[blockIdx.x].found = c.pass == LSI_CUDA_CONV_Y    ? at<T>(a.y, c.y_stride, o[0], o[1], o[2], o[3])
                              : c.pass == LSI_CUDA_CONV_DX ? at<T>(a.x, c.x_stride, o[0], o[1], o[2], o[3])
                                                           : at<T>(a.w, c.w_stride, o[0], o[1], o[2], o[3]);
}

int lsi_cuda_probe(lsi_cuda_stream s, const lsi_cuda_probe_args *a)
{
    LSI_FLOAT_TYPES(a->conv.dtype,
                    LSI_LAUNCH(s, (unsigned)a->samples, THREADS, 0, probe_kernel<T>, *a));
    return 0;
}
