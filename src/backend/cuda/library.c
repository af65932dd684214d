/* library.c: the choice among a library's ways, and the kernel that runs it. */
#include "backend/cuda/library.h"

#include <stdio.h>

enum {
    MAX_WAYS = 16,
    REPEATS = 5 /* of a trial: a wait for the device costs as much as a small kernel */
};

typedef struct library_state {
    const lsi_cuda_device *dev;
    lsi_cuda_library_node node;
    int way;
} library_state;

static void run(void *state, const ls_call *call)
{
    const library_state *s = state;
    const lsi_cuda_library_node *n = &s->node;
    lsi_cuda_stream stream = lsi_cuda_stream_of(s->dev, call);
    char *scratch = lsi_cuda_aligned(call->scratch);
    void *operand[LSI_CUDA_OPERANDS];
    int code = 0;

    for (int i = 0; i < n->n; i++)
        operand[i] = n->from[i] >= 0 ? call->in[n->from[i]] : call->out[-1 - n->from[i]];
    if (n->gathers) {
        lsi_cuda_move_args a = n->gather;
        a.in = operand[n->gathered];
        a.out = operand[n->gathered] = scratch;
        scratch = lsi_cuda_aligned(scratch + n->bytes[n->gathered]);
        code = s->dev->api->launch.move(stream, &a);
    }
    if (code == 0) code = s->dev->api->run(n->library, s->way, operand, scratch, stream);
    if (code == 0 && n->after) {
        lsi_cuda_epilogue_args a = n->epilogue;
        a.y = call->out[0];
        a.bias = n->bias >= 0 ? call->in[n->bias] : NULL;
        code = s->dev->api->launch.epilogue(stream, &a);
    }
    lsi_cuda_launched(s->dev, call, code);
}

static void destroy(void *state)
{
    library_state *s = state;

    s->dev->api->drop(s->node.library);
    ls_free(s);
}

/* -- choosing ---------------------------------------------------------------------------------------------
 */

typedef struct trial {
    const lsi_cuda_device *dev;
    const lsi_cuda_library_node *node;
    void *operand[LSI_CUDA_OPERANDS], *workspace;
    size_t workspace_bytes;
} trial;

static bool make_room(const lsi_cuda_api *api, void **p, size_t *have, size_t bytes)
{
    if (*p != NULL && *have >= bytes) return true;
    api->free(*p);
    *p = NULL;
    *have = bytes;
    return api->alloc(p, bytes > 0 ? bytes : 1) == 0;
}

/* Operands are made when the first way runs: a remembered choice needs none.  Zeros would be faster than what
 * a network computes with. */
static bool make_operands(trial *t)
{
    const lsi_cuda_device *d = t->dev;

    for (int i = 0; i < t->node->n; i++) {
        lsi_cuda_fill_args a = {.dtype = LS_BF16, .count = (int64_t)(t->node->bytes[i] / 2), .value = 0.37};
        if (t->operand[i] != NULL) continue;
        if (d->api->alloc(&t->operand[i], t->node->bytes[i] + 64) != 0) return false;
        a.out = t->operand[i];
        if (d->api->launch.fill(d->now, &a) != 0) return false;
    }
    return true;
}

static bool try_way(void *ctx, int way)
{
    trial *t = ctx;
    const lsi_cuda_api *api = t->dev->api;
    size_t workspace;

    if (api->prepare(t->node->library, way, &workspace) != 0) return false;
    if (!make_operands(t) || !make_room(api, &t->workspace, &t->workspace_bytes, workspace)) return false;
    for (int i = 0; i < REPEATS; i++)
        if (api->run(t->node->library, way, t->operand, t->workspace, t->dev->now) != 0) return false;
    return api->stream_sync(t->dev->now) == 0;
}

static int choose(const lsi_cuda_device *d, const lsi_cuda_library_node *node)
{
    static const char *const names[MAX_WAYS] = {"0", "1", "2",  "3",  "4",  "5",  "6",  "7",
                                                "8", "9", "10", "11", "12", "13", "14", "15"};
    const int ways = d->api->ways(node->library);
    trial t = {.dev = d, .node = node};
    int way = 0;

    if (!d->base.fixed)
        way = lsi_tune(d->tuner, &(lsi_candidates){node->problem, ways < MAX_WAYS ? ways : MAX_WAYS, names, 0,
                                                   try_way, &t, &d->base});
    for (int i = 0; i < node->n; i++) d->api->free(t.operand[i]);
    d->api->free(t.workspace);
    return way;
}

/* The chosen way, or else the first that works. */
static int settle(const lsi_cuda_device *d, lsi_cuda_library *l, int way, size_t *workspace)
{
    const int ways = d->api->ways(l);
    int code = d->api->prepare(l, way, workspace);

    for (int i = 0; i < ways && code != 0; i++) {
        way = i;
        code = d->api->prepare(l, i, workspace);
    }
    return code == 0 ? way : -1;
}

int lsi_cuda_library_way(const lsi_cuda_device *d, const lsi_cuda_library_node *node, size_t *workspace)
{
    return settle(d, node->library, choose(d, node), workspace);
}

ls_status lsi_cuda_library_plan(ls_device *dev, const lsi_cuda_library_node *node, ls_kernel *out,
                                ls_err *err)
{
    const lsi_cuda_device *d = lsi_cuda_of(dev);
    library_state *s = ls_alloc(LS_MEM_PLAN, sizeof *s);
    size_t workspace = 0, more;

    if (s == NULL) {
        d->api->drop(node->library);
        return ls_fail(err, LS_NOMEM, "cuda: no memory for a kernel");
    }
    *s = (library_state){d, *node, lsi_cuda_library_way(d, node, &workspace)};
    s->node.problem = NULL; /* the caller's */
    if (s->way < 0) {
        destroy(s);
        return LS_UNSUPPORTED;
    }
    more = node->gathers ? node->bytes[node->gathered] + LSI_CUDA_ALIGNED : 0;
    if (workspace > 0) workspace += LSI_CUDA_ALIGNED;
    *out = (ls_kernel){run, destroy, s, workspace + more, node->impl};
    return LS_OK;
}
