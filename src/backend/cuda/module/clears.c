/* clears.c: what in a captured graph is no kernel.
 *
 * Some of cuDNN's convolutions clear their result, or memory to work in, before they begin, by the driver.
 * That takes longer than a kernel that writes as many zeros, and what comes next cannot be started early
 * behind it, so it becomes such a kernel. */
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "backend/cuda/module/device.h"

typedef struct list {
    cudaGraphNode_t *at;
    size_t n;
} list;

typedef cudaError_t (*neighbours)(cudaGraphNode_t node, cudaGraphNode_t *others, cudaGraphEdgeData *data,
                                  size_t *n);

/* At most `most` of them.  Edges to and from what is no kernel have no data. */
static cudaError_t find(neighbours of, cudaGraphNode_t node, size_t most, list *out)
{
    cudaGraphEdgeData *data = calloc(most + 1, sizeof *data);
    cudaError_t st = cudaErrorMemoryAllocation;

    out->at = calloc(most + 1, sizeof *out->at);
    out->n = most;
    if (out->at != NULL && data != NULL) st = of(node, out->at, data, &out->n);
    free(data);
    return st;
}

/* All that comes before the node, or behind it, comes before or behind the other instead. */
static cudaError_t put_in_place(cudaGraph_t graph, size_t nodes, cudaGraphNode_t old, cudaGraphNode_t new)
{
    list before = {0}, behind = {0};
    cudaError_t st = find(cudaGraphNodeGetDependencies, old, nodes, &before);

    if (st == cudaSuccess) st = find(cudaGraphNodeGetDependentNodes, old, nodes, &behind);
    for (size_t i = 0; i < before.n && st == cudaSuccess; i++)
        st = cudaGraphAddDependencies(graph, &before.at[i], &new, NULL, 1);
    for (size_t i = 0; i < behind.n && st == cudaSuccess; i++)
        st = cudaGraphAddDependencies(graph, &new, &behind.at[i], NULL, 1);
    if (st == cudaSuccess) st = cudaGraphDestroyNode(old);
    free(before.at);
    free(behind.at);
    return st;
}

static int clear(cudaGraph_t graph, size_t nodes, cudaGraphNode_t node, bool ours,
                 lsi_cuda_graph_about *about)
{
    struct cudaMemsetParams p;
    int code = (int)cudaGraphMemsetNodeGetParams(node, &p);
    size_t bytes;
    void *new;

    if (code != 0) return code;
    bytes = p.width * p.elementSize * (p.height > 1 ? p.height : 1);
    about->clears++;
    about->cleared += bytes;
    if (!ours || p.value != 0 || bytes == 0 || (p.height > 1 && p.pitch != p.width * p.elementSize)) return 0;
    code = lsi_cuda_clear_node(graph, &new, p.dst, bytes);
    if (code == 0) code = (int)put_in_place(graph, nodes, node, new);
    if (code == 0) lsi_cuda_note_node(new);
    return code;
}

static void count_copy(cudaGraphNode_t node, lsi_cuda_graph_about *about)
{
    struct cudaMemcpy3DParms p;

    about->copies++;
    if (cudaGraphMemcpyNodeGetParams(node, &p) == cudaSuccess) /* or it has no such size */
        about->copied += p.extent.width * p.extent.height * p.extent.depth;
}

int lsi_cuda_clears(void *graph, bool ours, lsi_cuda_graph_about *about)
{
    void **all = NULL;
    size_t n = 0;
    int code = lsi_cuda_graph_nodes(graph, &all, &n);

    for (size_t i = 0; i < n && code == 0; i++) {
        enum cudaGraphNodeType type = cudaGraphNodeTypeKernel;
        code = (int)cudaGraphNodeGetType(all[i], &type);
        if (code == 0 && type == cudaGraphNodeTypeMemset) code = clear(graph, n, all[i], ours, about);
        if (code == 0 && type == cudaGraphNodeTypeMemcpy) count_copy(all[i], about);
    }
    free(all);
    return code;
}
