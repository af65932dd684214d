/* resample.cu: upsampling of maps and its adjoint; every element of the result is gathered by one thread. */
#include "backend/cuda/module/image.cuh"

template <typename T, int V>
__global__ void __launch_bounds__(LSI_PIXEL_THREADS)
    upsample_kernel(lsi_cuda_upsample_args a, lsi_pixels p, lsi_divider factor)
{
    lsi_wait();
    LSI_EACH_PIXEL(p, i)
    {
        const lsi_pixel at = lsi_pixel_at<V>(p, i);
        float f[V];
        lsi_load<V>((const T *)a.in + at.small +
                        ((int)factor.div((uint32_t)at.y) * p.ow + (int)factor.div((uint32_t)at.x)) * at.step,
                    f);
        lsi_store<V>((T *)a.out + at.large + (at.y * p.w + at.x) * at.step, f);
    }
}

template <typename T, int V>
__global__ void __launch_bounds__(LSI_PIXEL_THREADS)
    upsample_grad_kernel(lsi_cuda_upsample_args a, lsi_pixels p)
{
    lsi_wait();
    LSI_EACH_PIXEL(p, i)
    {
        const lsi_pixel at = lsi_pixel_at<V>(p, i);
        float sum[V] = {}, f[V];
        for (int y = at.y * a.factor; y < (at.y + 1) * a.factor; y++)
            for (int x = at.x * a.factor; x < (at.x + 1) * a.factor; x++) {
                lsi_load<V>((const T *)a.in + at.large + (y * p.w + x) * at.step, f);
#pragma unroll
                for (int k = 0; k < V; k++) sum[k] += f[k];
            }
        lsi_store<V>((T *)a.out + at.small + (at.y * p.ow + at.x) * at.step, sum);
    }
}

template <typename T, int V> static int upsample(lsi_cuda_stream s, const lsi_cuda_upsample_args *a)
{
    const lsi_pixels p = lsi_pixels_of(&a->map, !a->backward, V);
    const unsigned blocks = lsi_blocks(p.count, LSI_PIXEL_THREADS);

    if (a->backward)
        LSI_LAUNCH(s, blocks, LSI_PIXEL_THREADS, 0, (upsample_grad_kernel<T, V>), *a, p);
    else
        LSI_LAUNCH(s, blocks, LSI_PIXEL_THREADS, 0, (upsample_kernel<T, V>), *a, p, lsi_divider(a->factor));
    return 0;
}

int lsi_cuda_upsample(lsi_cuda_stream s, const lsi_cuda_upsample_args *a)
{
    if (a->map.n * a->map.c * a->map.h * a->map.w == 0) return 0;
    LSI_IMAGE_TYPES(&a->map, return (upsample<T, V>(s, a)));
    return 0;
}
