/* image.cuh: walking through the pixels of maps in both layouts.
 *
 * A thread has one pixel, of V neighbouring channels where channels come last.  A pixel (y, x) of a map of
 * width w lies at base + (y * w + x) * step, with step 1 in plain maps and the number of channels in others.
 */
#ifndef LS_BACKEND_CUDA_MODULE_IMAGE_CUH
#define LS_BACKEND_CUDA_MODULE_IMAGE_CUH

#include "backend/cuda/launch/image.h"
#include "backend/cuda/module/vector.cuh"

enum { LSI_PIXEL_THREADS = 256 };

/* The pixels that a kernel writes: of maps h x w, or oh x ow. */
struct lsi_pixels {
    lsi_divider channels, width, height; /* channels in units of V; 1 in plain maps */
    uint32_t count;                      /* pixels in units of V channels */
    int64_t h, w, oh, ow, c;
    bool channels_last;
};

struct lsi_pixel {
    int y, x;
    int64_t large, small; /* where pixel (0, 0) of its channel lies in the maps of h x w and of oh x ow */
    int64_t step;
};

template <int V> __device__ __forceinline__ lsi_pixel lsi_pixel_at(const lsi_pixels &p, uint32_t i)
{
    lsi_pixel out;
    uint32_t c, x, y;
    const uint32_t plane = p.height.split(p.width.split(p.channels.split(i, &c), &x), &y);

    out.y = (int)y;
    out.x = (int)x;
    out.step = p.channels_last ? p.c : 1;
    out.large = plane * (p.h * p.w) * out.step + c * V;
    out.small = plane * (p.oh * p.ow) * out.step + c * V;
    return out;
}

/* For a kernel that writes maps of h x w (`large`), or of oh x ow. */
static inline lsi_pixels lsi_pixels_of(const lsi_cuda_images *m, bool large, int V)
{
    const int64_t h = large ? m->h : m->oh, w = large ? m->w : m->ow;
    lsi_pixels p = {};

    p.channels = lsi_divider(m->channels_last ? m->c / V : 1);
    p.width = lsi_divider(w);
    p.height = lsi_divider(h);
    p.count = (uint32_t)(m->n * m->c * h * w / V);
    p.h = m->h;
    p.w = m->w;
    p.oh = m->oh;
    p.ow = m->ow;
    p.c = m->c;
    p.channels_last = m->channels_last;
    return p;
}

/* Runs `statement` with T, and with V > 1 where channels come last in vectors. */
#define LSI_IMAGE_TYPES(map, statement)                                                                      \
    LSI_FLOAT_TYPES((map)->dtype,                                                                            \
                    LSI_VECTORS((map)->channels_last &&lsi_wide((map)->dtype, (map)->c), statement))

#define LSI_EACH_PIXEL(p, i)                                                                                 \
    for (uint32_t i = blockIdx.x * LSI_PIXEL_THREADS + threadIdx.x; i < (p).count;                           \
         i += gridDim.x * LSI_PIXEL_THREADS)

#endif
