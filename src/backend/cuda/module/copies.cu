/* copies.cu: many copies at once, by themselves or as a node of a graph; and memory that a graph clears. */
#include "backend/cuda/module/launch.cuh"

enum { THREADS = 256 };

/* Copy i has the blocks from first[i] on, as many as its bytes ask for. */
typedef struct shares {
    unsigned first[LSI_CUDA_COPIES + 1];
} shares;

template <typename Word>
static __device__ void copy_words(const lsi_cuda_copied &c, unsigned block, unsigned blocks)
{
    const int64_t step = (int64_t)blocks * THREADS;

    for (int64_t i = (int64_t)block * THREADS + threadIdx.x; i < c.bytes / (int64_t)sizeof(Word); i += step)
        ((Word *)c.to)[i] = ((const Word *)c.from)[i];
}

__global__ void __launch_bounds__(THREADS)
    copies_kernel(const __grid_constant__ lsi_cuda_copies_args a, const __grid_constant__ shares of)
{
    lsi_wait();
    int i = 0;

    while (i < a.n && blockIdx.x >= of.first[i + 1]) i++;
    if (i == a.n) return;
    const lsi_cuda_copied &c = a.of[i];
    const unsigned block = blockIdx.x - of.first[i], blocks = of.first[i + 1] - of.first[i];
    const uint64_t odd = (uint64_t)(uintptr_t)c.to | (uint64_t)(uintptr_t)c.from | (uint64_t)c.bytes;

    if (odd % 16 == 0)
        copy_words<uint4>(c, block, blocks);
    else if (odd % 4 == 0)
        copy_words<uint32_t>(c, block, blocks);
    else
        copy_words<uint8_t>(c, block, blocks);
}

/* The number of blocks; never 0. */
static unsigned share(const lsi_cuda_copies_args *a, shares *of)
{
    of->first[0] = 0;
    for (int i = 0; i < a->n; i++) of->first[i + 1] = of->first[i] + lsi_blocks(a->of[i].bytes, THREADS * 32);
    return a->n > 0 ? of->first[a->n] : 1;
}

int lsi_cuda_copies(lsi_cuda_stream s, const lsi_cuda_copies_args *a)
{
    shares of;

    if (a->n == 0) return 0;
    const unsigned blocks = share(a, &of);
    LSI_LAUNCH(s, blocks, THREADS, 0, copies_kernel, *a, of);
    return 0;
}

/* -- in a graph -------------------------------------------------------------------------------------------
 */

/* What a node is made or changed with; `arguments` lasts as long as the result. */
static struct cudaKernelNodeParams node_of(const lsi_cuda_copies_args *a, shares *of, void *arguments[2])
{
    struct cudaKernelNodeParams p = {};

    arguments[0] = (void *)a;
    arguments[1] = of;
    p.func = (void *)copies_kernel;
    p.gridDim = dim3(share(a, of));
    p.blockDim = dim3(THREADS);
    p.kernelParams = arguments;
    return p;
}

int lsi_cuda_copies_node(void *graph, void **node, const lsi_cuda_copies_args *a)
{
    shares of;
    void *arguments[2];
    const struct cudaKernelNodeParams p = node_of(a, &of, arguments);

    return (int)cudaGraphAddKernelNode((cudaGraphNode_t *)node, (cudaGraph_t)graph, NULL, 0, &p);
}

int lsi_cuda_copies_change(void *exec, void *node, const lsi_cuda_copies_args *a)
{
    shares of;
    void *arguments[2];
    const struct cudaKernelNodeParams p = node_of(a, &of, arguments);

    return (int)cudaGraphExecKernelNodeSetParams((cudaGraphExec_t)exec, (cudaGraphNode_t)node, &p);
}

/* -- clearing ---------------------------------------------------------------------------------------------
 */

template <typename Word> __global__ void __launch_bounds__(THREADS) clear_kernel(Word *to, size_t count)
{
    lsi_wait();
    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += (size_t)gridDim.x * THREADS)
        to[i] = Word{};
}

int lsi_cuda_clear_node(void *graph, void **node, void *to, size_t bytes)
{
    const bool wide = ((uintptr_t)to | bytes) % 16 == 0;
    size_t count = wide ? bytes / 16 : bytes;
    void *arguments[] = {&to, &count};
    struct cudaKernelNodeParams p = {};

    p.func = wide ? (void *)clear_kernel<uint4> : (void *)clear_kernel<uint8_t>;
    p.gridDim = dim3(lsi_blocks((int64_t)count, THREADS * 4));
    p.blockDim = dim3(THREADS);
    p.kernelParams = arguments;
    return (int)cudaGraphAddKernelNode((cudaGraphNode_t *)node, (cudaGraph_t)graph, NULL, 0, &p);
}
