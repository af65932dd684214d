/* early.c: kernels of a graph that are started while those before them still run.
 *
 * Between the end of a kernel and the start of one that comes after it lie one to two microseconds.  Kernels
 * of this module wait by themselves (source/wait.cuh), so they can be started when the last block before them
 * ends, and need not wait until that is noted.  While a stream is captured every launcher says which node of
 * the graph it made; when the graph is complete, edges from a kernel to such a node are made programmatic, as
 * CUDA calls them.  Edges to kernels of libraries, to copies and from them stay what they are: the next
 * begins when the one before has ended.  Why that is safe: docs/decisions/0042-early-kernels.md. */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/module/device.h"

/* Nodes of the graph that this thread captures whose kernels wait by themselves. */
static _Thread_local struct {
    cudaGraphNode_t *at;
    size_t n, room;
    bool capturing;
} noted;

void lsi_cuda_note_begin(void)
{
    noted.n = 0;
    noted.capturing = true;
}

/* A node that is not noted, for whatever reason, is one that does not begin early. */
void lsi_cuda_note_node(void *node)
{
    if (noted.n == noted.room) {
        const size_t room = noted.room > 0 ? 2 * noted.room : 256;
        cudaGraphNode_t *at = realloc(noted.at, room * sizeof *at);
        if (at == NULL) return;
        noted.at = at;
        noted.room = room;
    }
    noted.at[noted.n++] = node;
}

void lsi_cuda_note_kernel(lsi_cuda_stream s)
{
    enum cudaStreamCaptureStatus status;
    const cudaGraphNode_t *last = NULL;
    const cudaGraphEdgeData *data = NULL;
    size_t n = 0;

    if (!noted.capturing) return;
    if (cudaStreamGetCaptureInfo((cudaStream_t)s, &status, NULL, NULL, &last, &data, &n) != cudaSuccess)
        return;
    if (status == cudaStreamCaptureStatusActive && n == 1) lsi_cuda_note_node(last[0]);
}

void lsi_cuda_note_end(void)
{
    free(noted.at);
    memset(&noted, 0, sizeof noted);
}

/* -- edges ------------------------------------------------------------------------------------------------
 */

static int by_address(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;

    return (*x > *y) - (*x < *y);
}

static bool waits(cudaGraphNode_t node)
{
    return noted.n > 0 && bsearch(&node, noted.at, noted.n, sizeof *noted.at, by_address) != NULL;
}

static bool is_kernel(cudaGraphNode_t node)
{
    enum cudaGraphNodeType type;

    return cudaGraphNodeGetType(node, &type) == cudaSuccess && type == cudaGraphNodeTypeKernel;
}

/* Edges of a graph; of all that were read, those that can be programmatic. */
typedef struct edges {
    cudaGraphNode_t *from, *to;
    cudaGraphEdgeData *data; /* as they were */
    size_t n, all, programmatic;
} edges;

static void free_edges(edges *e)
{
    free(e->from);
    free(e->to);
    free(e->data);
}

static cudaError_t read_edges(cudaGraph_t graph, edges *e)
{
    cudaError_t st = cudaGraphGetEdges(graph, NULL, NULL, NULL, &e->all);

    if (st != cudaSuccess) return st;
    e->from = calloc(e->all + 1, sizeof(cudaGraphNode_t));
    e->to = calloc(e->all + 1, sizeof(cudaGraphNode_t));
    e->data = calloc(e->all + 1, sizeof *e->data);
    if (e->from == NULL || e->to == NULL || e->data == NULL) return cudaErrorMemoryAllocation;
    if (e->all == 0) return cudaSuccess; /* CUDA refuses to list no edges */
    return cudaGraphGetEdges(graph, e->from, e->to, e->data, &e->all);
}

/* Moves them to the front. */
static void choose_edges(edges *e)
{
    if (noted.n > 0) qsort(noted.at, noted.n, sizeof *noted.at, by_address);
    for (size_t i = 0; i < e->all; i++) {
        if (e->data[i].type == cudaGraphDependencyTypeProgrammatic) e->programmatic++;
        if (e->data[i].type != cudaGraphDependencyTypeDefault || !waits(e->to[i]) || !is_kernel(e->from[i]))
            continue;
        e->from[e->n] = e->from[i];
        e->to[e->n++] = e->to[i];
    }
    memset(e->data, 0, e->n * sizeof *e->data);
}

/* Makes the chosen edges leave their first node at another time than before. */
static cudaError_t change_edges(cudaGraph_t graph, edges *e, unsigned char port)
{
    cudaError_t st;

    if (e->n == 0) return cudaSuccess;
    st = cudaGraphRemoveDependencies(graph, e->from, e->to, e->data, e->n);
    for (size_t i = 0; i < e->n; i++) {
        e->data[i].from_port = port;
        e->data[i].type = port == cudaGraphKernelNodePortDefault ? cudaGraphDependencyTypeDefault
                                                                 : cudaGraphDependencyTypeProgrammatic;
    }
    return st != cudaSuccess ? st : cudaGraphAddDependencies(graph, e->from, e->to, e->data, e->n);
}

int lsi_cuda_instantiate(void *graph, void **out, lsi_cuda_graph_about *about)
{
    edges e = {0};
    cudaError_t st = read_edges(graph, &e);

    if (st == cudaSuccess) choose_edges(&e);
    if (st == cudaSuccess) st = change_edges(graph, &e, cudaGraphKernelNodePortProgrammatic);
    if (st == cudaSuccess && cudaGraphInstantiate((cudaGraphExec_t *)out, graph, 0) != cudaSuccess) {
        /* a driver that knows no such edges, or not these */
        st = change_edges(graph, &e, cudaGraphKernelNodePortDefault);
        e.n = 0;
        if (st == cudaSuccess) st = cudaGraphInstantiate((cudaGraphExec_t *)out, graph, 0);
    }
    about->edges = e.all;
    about->early = e.n;
    about->programmatic = e.programmatic;
    free_edges(&e);
    return (int)st;
}
