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
static int make_tensor(trial *t, const ls_vinfo *v, void **out)
{
    const size_t bytes = ls_layout_bytes(v->layout, v->dtype, v->shape) + 64;
    lsi_cuda_fill_args f = {.dtype = LS_BF16, .count = (int64_t)(bytes / 2), .value = 0.37};
    int code;

    if (*out != NULL) return 0;
    code = t->dev->api->alloc(out, bytes);
    f.out = *out;
    return code != 0 ? code : t->dev->api->launch.fill(t->dev->now, &f);
}

static lsi_outcome make_tensors(trial *t)
{
    const ls_node *n = t->c->n;
    int code = 0;

    if (n->n_in > MOST_OPERANDS || n->n_out > MOST_OPERANDS) return LSI_CANNOT;
    for (int i = 0; i < n->n_in && code == 0; i++)
        code = make_tensor(t, lsi_cuda_in(t->c->g, n, i), &t->in[i]);
    for (int k = 0; k < n->n_out && code == 0; k++)
        code = make_tensor(t, lsi_cuda_out(t->c->g, n, k), &t->out[k]);
    return lsi_cuda_outcome(code);
}

/* The first run is by itself, since libraries may have to prepare themselves. */
static lsi_outcome make_graph(trial *t, int i)
{
    const lsi_cuda_api *api = t->dev->api;
    ls_failure failure = {0};
    ls_stream listener = {&failure, 0};
    ls_call call = {.in = t->in, .out = t->out, .stream = &listener};
    int code = t->scratch[i] == NULL ? api->alloc(&t->scratch[i], t->kernel[i].scratch_bytes + 64) : 0;

    if (code != 0) return lsi_cuda_outcome(code);
    call.scratch = t->scratch[i];
    t->kernel[i].run(t->kernel[i].state, &call);
    code = api->stream_sync(t->dev->now);
    if (failure.told) return failure.why.status == LS_NOMEM ? LSI_CANNOT_NOW : LSI_CANNOT;
    if (code == 0) code = api->capture(t->dev->now);
    if (code != 0) return lsi_cuda_outcome(code);
    t->dev->recording = true;
    t->dev->refused = false;
    for (int k = 0; k < REPEATS; k++) t->kernel[i].run(t->kernel[i].state, &call);
    t->dev->recording = false;
    code = api->captured(t->dev->now, &(lsi_cuda_graph_rules){.clears = !t->dev->clears_theirs}, &t->graph[i],
                         &(lsi_cuda_graph_about){0});
    return code == 0 && (t->dev->refused || failure.told) ? LSI_CANNOT : lsi_cuda_outcome(code);
}

static lsi_outcome make_ready(trial *t, int i)
{
    ls_err err = {0};
    const ls_status st = make(t, i, &err);
    lsi_outcome o;

    if (st != LS_OK) return st == LS_UNSUPPORTED ? LSI_CANNOT : LSI_CANNOT_NOW;
    o = make_tensors(t);
    return o == LSI_RAN ? make_graph(t, i) : o;
}

static lsi_outcome try_kernel(void *ctx, int i)
{
    trial *t = ctx;
    const lsi_cuda_api *api = t->dev->api;
    const lsi_outcome o = t->graph[i] == NULL ? make_ready(t, i) : LSI_RAN;
    int code;

    t->tried = true;
    if (o != LSI_RAN) return o;
    code = api->graph_launch(t->graph[i], NULL, NULL, t->dev->now);
    return lsi_cuda_outcome(code != 0 ? code : api->stream_sync(t->dev->now));
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
    for (int i = 0; i < c->n_kernels && (st == LS_UNSUPPORTED || st == LS_DEVICE); i++)
        st = make(&t, best = i, err);
    for (int i = 0; i < c->n_kernels; i++)
        if ((i != best || st != LS_OK) && t.kernel[i].destroy != NULL) t.kernel[i].destroy(t.kernel[i].state);
    if (st == LS_OK) *out = t.kernel[best];
    return st;
}
