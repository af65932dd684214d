/* random.cu: dropout, random numbers and the replay of images.
 *
 * A mask is never stored: drawing it again takes fewer clocks than the bytes would. */
#include "backend/cuda/launch/random.h"
#include "backend/cuda/module/philox.cuh"
#include "backend/cuda/module/vector.cuh"

enum { THREADS = 256, WORDS = 4 };

/* -- dropout --------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ float kept(const lsi_cuda_dropout_args &a, float x, uint32_t word)
{
    return word >> 8 < a.dropped ? 0.0f : x * a.scale;
}

/* Four neighbours have the words of one block. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    dropout_blocks(lsi_cuda_dropout_args a, lsi_divider blocks, uint32_t count)
{
    lsi_wait();
    const lsi_key key = lsi_key_at(a.key);

    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        uint32_t block;
        const uint32_t sample = blocks.split(i, &block);
        const uint4 w = lsi_draw(key, a.stream, sample, block);
        float f[WORDS];
        lsi_load<WORDS>((const T *)a.x + (int64_t)i * WORDS, f);
        f[0] = kept(a, f[0], w.x);
        f[1] = kept(a, f[1], w.y);
        f[2] = kept(a, f[2], w.z);
        f[3] = kept(a, f[3], w.w);
        lsi_store<WORDS>((T *)a.y + (int64_t)i * WORDS, f);
    }
}

/* A block of words for each element: where neighbours in memory have words of different ones. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    dropout_elements(lsi_cuda_dropout_args a, lsi_divider channels, lsi_divider inner, uint32_t count)
{
    lsi_wait();
    const lsi_key key = lsi_key_at(a.key);

    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        uint32_t c, p, sample;
        if (a.channels_last)
            sample = inner.split(channels.split(i, &c), &p);
        else
            sample = channels.split(inner.split(i, &p), &c);
        const uint32_t e = a.per_channel ? c : c * (uint32_t)a.inner + p;
        const uint32_t word = lsi_draw_word(key, a.stream, sample, e);
        ((T *)a.y)[i] = lsi_put<T>(kept(a, lsi_get(((const T *)a.x)[i]), word));
    }
}

template <typename T> static int dropout(lsi_cuda_stream s, const lsi_cuda_dropout_args *a)
{
    const int64_t per_sample = a->channels * a->inner, count = a->samples * per_sample;
    const bool in_order = !a->channels_last || a->inner == 1 || a->channels == 1;

    if (in_order && (!a->per_channel || a->inner == 1) && per_sample % WORDS == 0)
        LSI_LAUNCH(s, lsi_blocks(count / WORDS, THREADS), THREADS, 0, dropout_blocks<T>, *a,
                   lsi_divider(per_sample / WORDS), (uint32_t)(count / WORDS));
    else
        LSI_LAUNCH(s, lsi_blocks(count, THREADS), THREADS, 0, dropout_elements<T>, *a,
                   lsi_divider(a->channels), lsi_divider(a->inner), (uint32_t)count);
    return 0;
}

int lsi_cuda_dropout(lsi_cuda_stream s, const lsi_cuda_dropout_args *a)
{
    if (a->samples * a->channels * a->inner == 0) return 0;
    LSI_FLOAT_TYPES(a->dtype, return dropout<T>(s, a));
    return 0;
}

/* -- random numbers -------------------------------------------------------------------------------------- */

/* ls_rng_normal: in double, as on the host.  Near 1 the logarithm would lose all digits in float. */
static __device__ double normal(uint32_t a, uint32_t b, int which)
{
    const double radius = sqrt(-2.0 * log(((double)a + 1.0) * 0x1p-32));
    double sine, cosine;

    sincospi(2.0 * ((double)b * 0x1p-32), &sine, &cosine);
    return radius * (which ? sine : cosine);
}

static __global__ void __launch_bounds__(THREADS)
    random_kernel(lsi_cuda_random_args a, lsi_divider per_sample, uint32_t count)
{
    lsi_wait();
    const lsi_key key = lsi_key_at(a.key);

    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        uint32_t e;
        const uint32_t sample = per_sample.split(i, &e);
        const uint4 w = lsi_draw(key, a.stream, sample, e / WORDS);
        const uint32_t word = e % 4 == 0 ? w.x : e % 4 == 1 ? w.y : e % 4 == 2 ? w.z : w.w;
        if (a.normal)
            a.out[i] = (float)(a.deviation * (e % 4 < 2 ? normal(w.x, w.y, e % 2) : normal(w.z, w.w, e % 2)));
        else
            a.out[i] = (float)(word >> 8) * 0x1p-24f;
    }
}

int lsi_cuda_random(lsi_cuda_stream s, const lsi_cuda_random_args *a)
{
    const int64_t count = a->samples * a->per_sample;

    if (count == 0) return 0;
    LSI_LAUNCH(s, lsi_blocks(count, THREADS), THREADS, 0, random_kernel, *a, lsi_divider(a->per_sample),
               (uint32_t)count);
    return 0;
}

/* -- replay ---------------------------------------------------------------------------------------------- */

struct turn {
    int32_t slot; /* -1: the image is not kept */
    bool swap;    /* what is in the slot is shown */
};

/* As lsi_replay_choose has it. */
static __device__ turn choose(const lsi_cuda_replay_args &a, lsi_key key, uint32_t place)
{
    int64_t empty = 0;

    key.sample_base = 0; /* the draws of an update are counted by place */
    for (int64_t i = 0; i < a.capacity; i++)
        if (a.filled[i] == 0.0f && empty++ == place) return {(int32_t)i, false};
    if (empty > 0 || place >= a.capacity) return {-1, false};
    if ((float)(lsi_draw_word(key, a.stream, place, 0) >> 8) * 0x1p-24f < 0.5f) return {-1, false};
    const uint64_t start = (uint64_t)lsi_draw_word(key, a.stream, 0, 1) * (uint64_t)a.capacity >> 32;
    return {(int32_t)((start + place) % (uint64_t)a.capacity), true};
}

/* Blocks (x, y): part x of image y.  Each chooses by itself, which is cheaper than to wait for another. */
template <typename T> __global__ void __launch_bounds__(THREADS) replay_kernel(lsi_cuda_replay_args a)
{
    lsi_wait();
    __shared__ turn mine;
    const int64_t image = blockIdx.y;
    const lsi_key key = lsi_key_at(a.key);
    const uint32_t place = key.sample_base + (uint32_t)image;

    if (threadIdx.x == 0) {
        mine = choose(a, key, place);
        if (blockIdx.x == 0) {
            a.slot[image] = mine.slot;
            a.place[image] = mine.slot >= 0 ? (int32_t)place : -1;
        }
    }
    __syncthreads();
    const T *from = mine.swap ? (const T *)a.pool + mine.slot * a.width : (const T *)a.x + image * a.width;
    T *to = (T *)a.shown + image * a.width;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < a.width;
         i += (int64_t)gridDim.x * THREADS)
        to[i] = from[i];
}

int lsi_cuda_replay(lsi_cuda_stream s, const lsi_cuda_replay_args *a)
{
    if (a->images == 0) return 0;
    const int64_t need = (a->width + THREADS * 8 - 1) / (THREADS * 8);
    const dim3 grid((unsigned)(need < 1 ? 1 : need < 128 ? need : 128), (unsigned)a->images);
    LSI_FLOAT_TYPES(a->dtype, LSI_LAUNCH(s, grid, THREADS, 0, replay_kernel<T>, *a));
    return 0;
}
