/* graph.c: what a stream is given, kept as a CUDA graph and launched as often as it is wanted.
 *
 * A framed graph has one node more before all others, and one behind: copies, which each launch brings along.
 * Steps read their inputs from two places in turn, and write their results to as many, so there are two
 * executables, each with the copies that it had last: as long as the two alternate, a launch is one call and
 * changes nothing.  The second is made when it is first needed. */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/module/device.h"

enum { EXECS = 2 };

typedef struct launchable {
    cudaGraphExec_t exec;
    lsi_cuda_copies_args before, behind; /* as they are in it */
    bool used;
} launchable;

struct lsi_cuda_graph {
    cudaGraph_t graph; /* framed: another executable may be made of it */
    cudaGraphNode_t before, behind;
    launchable of[EXECS];
    int n, last; /* executables; the one that was launched last */
};

#define ENTER()                                                                                              \
    do {                                                                                                     \
        const int entered = lsi_cuda_enter();                                                                \
        if (entered != 0) return entered;                                                                    \
    } while (0)

/* -- capturing --------------------------------------------------------------------------------------------
 */

/* Other threads may allocate meanwhile. */
static int capture(lsi_cuda_stream s)
{
    int code;

    ENTER();
    code = (int)cudaStreamBeginCapture((cudaStream_t)s, cudaStreamCaptureModeThreadLocal);
    if (code == 0) lsi_cuda_note_begin();
    return code;
}

static int capture_after(lsi_cuda_stream s, void **nodes, size_t n)
{
    ENTER();
    return (int)cudaStreamUpdateCaptureDependencies((cudaStream_t)s, (cudaGraphNode_t *)nodes, NULL, n,
                                                    cudaStreamSetCaptureDependencies);
}

static int capture_last(lsi_cuda_stream s, void **nodes, size_t room, size_t *n)
{
    enum cudaStreamCaptureStatus status;
    const cudaGraphNode_t *last = NULL;
    const cudaGraphEdgeData *edges = NULL;
    cudaError_t e;

    *n = 0;
    ENTER();
    e = cudaStreamGetCaptureInfo((cudaStream_t)s, &status, NULL, NULL, &last, &edges, n);
    if (e != cudaSuccess) return (int)e;
    if (status != cudaStreamCaptureStatusActive) return (int)cudaErrorStreamCaptureInvalidated;
    for (size_t i = 0; i < *n && i < room; i++) nodes[i] = (void *)last[i];
    return 0;
}

/* -- the frame --------------------------------------------------------------------------------------------
 */

/* What was captured may be nothing at all, and CUDA refuses to list no nodes. */
int lsi_cuda_graph_nodes(void *graph, void ***out, size_t *n)
{
    cudaError_t st = cudaGraphGetNodes(graph, NULL, n);

    *out = st == cudaSuccess ? calloc(*n + 1, sizeof **out) : NULL;
    if (st == cudaSuccess && *out == NULL) st = cudaErrorMemoryAllocation;
    if (st == cudaSuccess && *n > 0) st = cudaGraphGetNodes(graph, (cudaGraphNode_t *)*out, n);
    if (st != cudaSuccess) *n = 0;
    return (int)st;
}

/* The nodes that nothing comes before, or nothing behind. */
static int outer_nodes(cudaGraph_t graph, bool last, void ***out, size_t *n)
{
    size_t all = 0;
    int code = lsi_cuda_graph_nodes(graph, out, &all);

    *n = 0;
    for (size_t i = 0; i < all && code == 0; i++) {
        cudaGraphNode_t node = (*out)[i], other;
        cudaGraphEdgeData data;
        size_t others = 1; /* one is enough to know */
        code = (int)(last ? cudaGraphNodeGetDependentNodes(node, &other, &data, &others)
                          : cudaGraphNodeGetDependencies(node, &other, &data, &others));
        if (code == 0 && others == 0) (*out)[(*n)++] = node;
    }
    return code;
}

/* A node of copies before all of `list`, or behind. */
static int add_copies(cudaGraph_t graph, void **list, size_t n, bool behind, cudaGraphNode_t *out)
{
    const lsi_cuda_copies_args none = {.n = 0};
    int code = lsi_cuda_copies_node(graph, (void **)out, &none);

    for (size_t i = 0; i < n && code == 0; i++) {
        cudaGraphNode_t other = list[i];
        code = (int)cudaGraphAddDependencies(graph, behind ? &other : out, behind ? out : &other, NULL, 1);
    }
    if (code == 0) lsi_cuda_note_node(*out);
    return code;
}

static int add_frame(lsi_cuda_graph *g)
{
    void **first = NULL, **last = NULL;
    size_t n_first = 0, n_last = 0;
    int code = outer_nodes(g->graph, false, &first, &n_first);

    if (code == 0) code = outer_nodes(g->graph, true, &last, &n_last);
    if (code == 0) code = add_copies(g->graph, first, n_first, false, &g->before);
    if (code == 0 && n_last == 0) last[n_last++] = g->before; /* results of no kernel are what came in */
    if (code == 0) code = add_copies(g->graph, last, n_last, true, &g->behind);
    free(first);
    free(last);
    return code;
}

static void graph_destroy(lsi_cuda_graph *g)
{
    if (g == NULL) return;
    if (lsi_cuda_enter() == 0) {
        for (int i = 0; i < g->n; i++) (void)cudaGraphExecDestroy(g->of[i].exec);
        if (g->graph != NULL) (void)cudaGraphDestroy(g->graph);
    }
    free(g);
}

static int complete(lsi_cuda_graph *g, const lsi_cuda_graph_rules *how, lsi_cuda_graph_about *about)
{
    int code = lsi_cuda_clears(g->graph, how->clears, about);

    if (code == 0 && how->framed) code = add_frame(g);
    if (code == 0 && how->early)
        code = lsi_cuda_instantiate(g->graph, (void **)&g->of[0].exec, about);
    else if (code == 0)
        code = (int)cudaGraphInstantiate(&g->of[0].exec, g->graph, 0);
    if (code == 0) g->n = 1;
    if (code != 0 || how->framed) return code;
    (void)cudaGraphDestroy(g->graph);
    g->graph = NULL;
    return 0;
}

static int captured(lsi_cuda_stream s, const lsi_cuda_graph_rules *how, lsi_cuda_graph **out,
                    lsi_cuda_graph_about *about)
{
    lsi_cuda_graph *g = calloc(1, sizeof *g);
    cudaGraph_t graph = NULL;
    int code;

    *out = NULL;
    *about = (lsi_cuda_graph_about){0};
    if ((code = lsi_cuda_enter()) == 0) code = (int)cudaStreamEndCapture((cudaStream_t)s, &graph);
    if (code == 0 && g == NULL) code = (int)cudaErrorMemoryAllocation;
    if (g != NULL)
        g->graph = graph;
    else if (graph != NULL)
        (void)cudaGraphDestroy(graph);
    if (code == 0) code = complete(g, how, about);
    lsi_cuda_note_end();
    if (code == 0) *out = g;
    if (code != 0) graph_destroy(g);
    return code;
}

/* -- launching --------------------------------------------------------------------------------------------
 */

static bool same(const lsi_cuda_copies_args *a, const lsi_cuda_copies_args *b)
{
    if (a->n != b->n) return false;
    for (int i = 0; i < a->n; i++)
        if (a->of[i].to != b->of[i].to || a->of[i].from != b->of[i].from || a->of[i].bytes != b->of[i].bytes)
            return false;
    return true;
}

/* One with these copies, or else the one that was launched longer ago, or has never been. */
static launchable *choose(lsi_cuda_graph *g, const lsi_cuda_copies_args *before,
                          const lsi_cuda_copies_args *behind)
{
    int at = 0;

    while (at < g->n && g->of[at].used &&
           (!same(&g->of[at].before, before) || !same(&g->of[at].behind, behind)))
        at++;
    if (at == g->n && at < EXECS) /* without memory for it, one has to do */
        if (cudaGraphInstantiate(&g->of[at].exec, g->graph, 0) == cudaSuccess) g->n++;
    if (at >= g->n) at = g->n > 1 ? 1 - g->last : 0;
    g->last = at;
    g->of[at].used = true;
    return &g->of[at];
}

static int change(void *exec, void *node, lsi_cuda_copies_args *now, const lsi_cuda_copies_args *want)
{
    int code;

    if (same(now, want)) return 0;
    code = lsi_cuda_copies_change(exec, node, want);
    if (code == 0) *now = *want;
    return code;
}

static int graph_launch(lsi_cuda_graph *g, const lsi_cuda_copies_args *before,
                        const lsi_cuda_copies_args *behind, lsi_cuda_stream s)
{
    launchable *l = &g->of[0];
    int code = 0;

    ENTER();
    if (before != NULL && behind != NULL) {
        l = choose(g, before, behind);
        code = change(l->exec, g->before, &l->before, before);
        if (code == 0) code = change(l->exec, g->behind, &l->behind, behind);
    }
    return code != 0 ? code : (int)cudaGraphLaunch(l->exec, (cudaStream_t)s);
}

void lsi_cuda_fill_graphs(lsi_cuda_api *api)
{
    api->capture = capture;
    api->captured = captured;
    api->capture_after = capture_after;
    api->capture_last = capture_last;
    api->graph_launch = graph_launch;
    api->graph_destroy = graph_destroy;
}
