/* pieces.cu: many stretches at once, as they are, weighted, or zeros: a row of blocks for each. */
#include "backend/cuda/launch/pieces.h"
#include "backend/cuda/launchers.h"
#include "backend/cuda/module/launch.cuh"

enum { THREADS = 256 };

template <typename Word> static __device__ void move_words(const ls_link_piece &p)
{
    const int64_t n = p.bytes / (int64_t)sizeof(Word), step = (int64_t)gridDim.y * THREADS;

    for (int64_t i = (int64_t)blockIdx.y * THREADS + threadIdx.x; i < n; i += step)
        ((Word *)p.to)[i] = p.from != nullptr ? ((const Word *)p.from)[i] : Word{};
}

static __device__ void weigh(const ls_link_piece &p)
{
    const int64_t n = p.bytes / 4, step = (int64_t)gridDim.y * THREADS;
    const float w = *p.weight;

    for (int64_t i = (int64_t)blockIdx.y * THREADS + threadIdx.x; i < n; i += step)
        ((float *)p.to)[i] = w == 0 ? 0.0F : w * ((const float *)p.from)[i];
}

__global__ void __launch_bounds__(THREADS) pieces_kernel(const __grid_constant__ lsi_cuda_pieces_args a)
{
    lsi_wait();
    const ls_link_piece &p = a.of[blockIdx.x];
    const uint64_t odd = (uint64_t)(uintptr_t)p.to | (uint64_t)(uintptr_t)p.from | (uint64_t)p.bytes;

    if (p.weight != nullptr)
        weigh(p);
    else if (odd % 16 == 0)
        move_words<uint4>(p);
    else if (odd % 4 == 0)
        move_words<uint32_t>(p);
    else
        move_words<uint8_t>(p);
}

int lsi_cuda_pieces(lsi_cuda_stream s, const lsi_cuda_pieces_args *a)
{
    int64_t most = 0;

    for (int i = 0; i < a->n; i++)
        if (a->of[i].bytes > most) most = a->of[i].bytes;
    if (most == 0) return 0;
    LSI_LAUNCH(s, dim3((unsigned)a->n, lsi_blocks(most, THREADS * 32)), THREADS, 0, pieces_kernel, *a);
    return 0;
}
