/* choice.c: see choice.h. */
#include "backend/cuda/choice.h"

#include "backend/cuda/kernel_util.h"

enum { MOST_OPERANDS = 8, REPEATS = 5 /* a wait for the device costs as much as a small kernel */ };

typedef struct trial {
    const lsi_cuda_choice *c;
    lsi_cuda_device *dev;
    ls_kernel kernel[LSI_CUDA_KERNELS];
    lsi_cuda_graph *graph[LSI_CUDA_KERNELS];
    void *scratch[LSI_CUDA_KERNELS];
    void *in[MOST_OPERANDS], *out[MOST_OPERANDS];
    bool tried;
} trial;

static ls_status make(trial *t, int i, ls_err *err)
{
    if (t->kernel[i].run != NULL) return LS_OK;
    return t->c->make(t->c->ctx, i, &t->kernel[i], err);
}

/* Filled with numbers: zeros would be faster than what a network computes with. */
static bool make_tensor(trial *t, const ls_vinfo *v, void **out)
{
    const size_t bytes = ls_layout_bytes(v->layout, v->dtype, v->shape) + 64;
    lsi_cuda_fill_args f = {.dtype = LS_BF16, .count = (int64_t)(bytes / 2), .value = 0.37};

    if (*out != NULL) return true;
    if (t->dev->api->alloc(out, bytes) != 0) return false;
    f.out = *out;
    return t->dev->api->launch.fill(t->dev->now, &f) == 0;
}

static bool make_tensors(trial *t)
{
    const ls_node *n = t->c->n;

    if (n->n_in > MOST_OPERANDS || n->n_out > MOST_OPERANDS) return false;
    for (int i = 0; i < n->n_in; i++)
        if (!make_tensor(t, lsi_cuda_in(t->c->g, n, i), &t->in[i])) return false;
    for (int k = 0; k < n->n_out; k++)
        if (!make_tensor(t, lsi_cuda_out(t->c->g, n, k), &t->out[k])) return false;
    return true;
}

/* The first run is by itself, since libraries may have to prepare themselves. */
static bool make_graph(trial *t, int i)
{
    const lsi_cuda_api *api = t->dev->api;
    ls_failure failure = {0};
    ls_stream listener = {&failure, 0};
    ls_call call = {.in = t->in, .out = t->out, .stream = &listener};
    bool kept;

    if (api->alloc(&t->scratch[i], t->kernel[i].scratch_bytes + 64) != 0) return false;
    call.scratch = t->scratch[i];
    t->kernel[i].run(t->kernel[i].state, &call);
    if (api->stream_sync(t->dev->now) != 0 || failure.told || api->capture(t->dev->now) != 0) return false;
    t->dev->recording = true;
    t->dev->refused = false;
    for (int k = 0; k < REPEATS; k++) t->kernel[i].run(t->kernel[i].state, &call);
    t->dev->recording = false;
    kept = api->captured(t->dev->now, &(lsi_cuda_graph_rules){.clears = !t->dev->clears_theirs}, &t->graph[i],
                         &(lsi_cuda_graph_about){0}) == 0;
    return kept && !t->dev->refused && !failure.told;
}

static bool try_kernel(void *ctx, int i)
{
    trial *t = ctx;
    const lsi_cuda_api *api = t->dev->api;
    ls_err err = {0};

    t->tried = true;
    if (t->graph[i] == NULL && (make(t, i, &err) != LS_OK || !make_tensors(t) || !make_graph(t, i)))
        return false;
    return api->graph_launch(t->graph[i], NULL, NULL, t->dev->now) == 0 && api->stream_sync(t->dev->now) == 0;
}

static void clear(trial *t)
{
    const lsi_cuda_api *api = t->dev->api;

    if (!t->tried) return;
    for (int i = 0; i < t->c->n_kernels; i++) {
        if (t->graph[i] != NULL) api->graph_destroy(t->graph[i]);
        api->free(t->scratch[i]);
    }
    for (int i = 0; i < MOST_OPERANDS; i++) {
        api->free(t->in[i]);
        api->free(t->out[i]);
    }
}

ls_status lsi_cuda_choose(const lsi_cuda_choice *c, ls_kernel *out, ls_err *err)
{
    trial t = {.c = c, .dev = (lsi_cuda_device *)c->dev};
    int best = c->guess;
    ls_status st;

    LS_BUG_IF(c->n_kernels > LSI_CUDA_KERNELS);
    if (!t.dev->base.fixed)
        best = lsi_tune(t.dev->tuner, &(lsi_candidates){c->problem, c->n_kernels, c->names, c->guess,
                                                        try_kernel, &t, c->dev});
    clear(&t);
    st = make(&t, best, err);
    for (int i = 0; i < c->n_kernels && st == LS_UNSUPPORTED; i++) st = make(&t, best = i, err);
    for (int i = 0; i < c->n_kernels; i++)
        if ((i != best || st != LS_OK) && t.kernel[i].destroy != NULL) t.kernel[i].destroy(t.kernel[i].state);
    if (st == LS_OK) *out = t.kernel[best];
    return st;
}
