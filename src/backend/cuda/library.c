/* library.c: the choice among a library's ways, and the kernel that runs it. */
#include "backend/cuda/library.h"

#include <stdatomic.h>

#include "backend/cuda/probe.h"
#include "base/log.h"

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
    lsi_cuda_verdict verdict[MAX_WAYS]; /* of a convolution's ways */
} trial;

static int make_room(const lsi_cuda_api *api, void **p, size_t *have, size_t bytes)
{
    if (*p != NULL && *have >= bytes) return 0;
    api->free(*p);
    *p = NULL;
    *have = bytes;
    return api->alloc(p, bytes > 0 ? bytes : 1);
}

/* Numbers that look random: zeros would be faster than what a network computes with, and tell nothing. */
static int make_noise(const trial *t, int i)
{
    const ls_dtype dtype = t->node->conv != NULL ? t->node->conv->dtype : LS_BF16;
    const int64_t count = (int64_t)(t->node->bytes[i] / ls_dtype_size(dtype));

    return t->dev->api->launch.noise(t->dev->now,
                                     &(lsi_cuda_noise_args){t->operand[i], dtype, count, (unsigned)i});
}

/* Operands are made when the first way runs: a remembered choice needs none. */
static int make_operands(trial *t)
{
    int code = 0;

    for (int i = 0; i < t->node->n && code == 0; i++) {
        if (t->operand[i] != NULL) continue;
        code = t->dev->api->alloc(&t->operand[i], t->node->bytes[i] + 64);
        if (code == 0) code = make_noise(t, i);
    }
    return code;
}

/* Everything that the way needs to run; the error, where it cannot be had. */
static int make_ready(trial *t, int way)
{
    const lsi_cuda_api *api = t->dev->api;
    size_t workspace;
    int code = api->prepare(t->node->library, way, &workspace);

    if (code == 0) code = make_operands(t);
    return code == 0 ? make_room(api, &t->workspace, &t->workspace_bytes, workspace) : code;
}

static int run_once(const trial *t, int way)
{
    return t->dev->api->run(t->node->library, way, t->operand, t->workspace, t->dev->now);
}

/* Compares a way, which is ready, with sums of our own, once; without memory for that it is not known whether
 * it is right.  What is in the result's place before it runs is not what an earlier way left there. */
static lsi_cuda_verdict judge(trial *t, int way)
{
    const lsi_cuda_conv *c = t->node->conv;
    lsi_cuda_verdict *v = &t->verdict[way];
    int code;

    if (c == NULL) return LSI_CUDA_RIGHT;
    if (*v != LSI_CUDA_UNKNOWN) return *v;
    code = make_noise(t, lsi_cuda_conv_result(c));
    if (code == 0) code = run_once(t, way);
    if (code == 0)
        *v = lsi_cuda_probe_conv(t->dev, c, t->operand, t->node->problem, way);
    else if (code != LSI_CUDA_NO_MEMORY)
        *v = LSI_CUDA_WRONG;
    return *v;
}

static lsi_outcome try_way(void *ctx, int way)
{
    trial *t = ctx;
    int code = make_ready(t, way);

    if (code != 0) return lsi_cuda_outcome(code);
    if (judge(t, way) != LSI_CUDA_RIGHT)
        return t->verdict[way] == LSI_CUDA_WRONG ? LSI_CANNOT : LSI_CANNOT_NOW;
    for (int i = 0; i < REPEATS && code == 0; i++) code = run_once(t, way);
    return lsi_cuda_outcome(code != 0 ? code : t->dev->api->stream_sync(t->dev->now));
}

static int choose(trial *t, int ways)
{
    static const char *const names[MAX_WAYS] = {"0", "1", "2",  "3",  "4",  "5",  "6",  "7",
                                                "8", "9", "10", "11", "12", "13", "14", "15"};

    if (t->dev->base.fixed) return 0;
    return lsi_tune(t->dev->tuner, &(lsi_candidates){t->node->problem, ways < MAX_WAYS ? ways : MAX_WAYS,
                                                     names, 0, try_way, t, &t->dev->base});
}

/* Whether a way that was not chosen by running it can be taken: it works, and a convolution is one.  Without
 * memory to look, it is believed: a step that could run is not refused for that. */
static bool is_fit(trial *t, int way)
{
    static atomic_bool told;
    int code;

    if (t->node->conv == NULL) return true;
    code = make_ready(t, way);
    if (code == 0 && judge(t, way) != LSI_CUDA_UNKNOWN) return t->verdict[way] == LSI_CUDA_RIGHT;
    if (code != 0 && code != LSI_CUDA_NO_MEMORY) return false;
    ls_log(
        atomic_exchange(&told, true) ? LS_LOG_INFO : LS_LOG_WARN,
        "cuda: no memory to compare cuDNN's kernel for %s with sums of our own: it is taken unchecked, and "
        "the last digits may be others where there is more; lower batch.per_rank",
        t->node->problem);
    return true;
}

/* The chosen way, or else the first that works. */
static int settle(trial *t, int ways, int way, size_t *workspace)
{
    const lsi_cuda_device *d = t->dev;
    const bool known = !d->base.fixed && t->node->problem != NULL && lsi_tuned(d->tuner, t->node->problem);

    if (d->api->prepare(t->node->library, way, workspace) == 0 && (known || is_fit(t, way))) return way;
    for (int i = 0; i < ways && i < MAX_WAYS; i++)
        if (i != way && d->api->prepare(t->node->library, i, workspace) == 0 && is_fit(t, i)) return i;
    return -1;
}

int lsi_cuda_library_way(const lsi_cuda_device *d, const lsi_cuda_library_node *node, size_t *workspace)
{
    const int ways = d->api->ways(node->library);
    trial t = {.dev = d, .node = node};
    const int way = settle(&t, ways, choose(&t, ways), workspace);

    for (int i = 0; i < node->n; i++) d->api->free(t.operand[i]);
    d->api->free(t.workspace);
    return way;
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
    s->node.problem = NULL; /* the caller's, both */
    s->node.conv = NULL;
    if (s->way < 0) {
        destroy(s);
        return LS_UNSUPPORTED;
    }
    more = node->gathers ? node->bytes[node->gathered] + LSI_CUDA_ALIGNED : 0;
    if (workspace > 0) workspace += LSI_CUDA_ALIGNED;
    *out = (ls_kernel){run, destroy, s, workspace + more, node->impl};
    return LS_OK;
}
