/* optim.c: optimisers: a group's weights and gradients are all f32 or all bf16, states f32.  accumulate:
 * gradients of f32, bf16 and f16. */
#include "backend/cuda/groups.h"
#include "backend/cuda/kernel_util.h"
#include "backend/cuda/planners.h"

/* Inputs: lr, loss scale, t, weights, gradients, states; outputs t, weights, states, where the inputs lie. */
enum { LR, SCALE, T, W };

typedef struct state {
    const lsi_cuda_device *dev;
    lsi_cuda_optim_args args;
    int n_states;
    lsi_cuda_param params[];
} state;

static void run(void *opaque, const ls_call *call)
{
    state *s = opaque;
    lsi_cuda_optim_args a = s->args;
    const int n = a.n;

    for (int i = 0; i < n; i++) {
        lsi_cuda_param *p = &s->params[i];
        p->w = call->out[1 + i];
        p->g = call->in[W + n + i];
        for (int k = 0; k < s->n_states; k++) p->state[k] = call->out[1 + (1 + k) * n + i];
    }
    a.params = s->params;
    a.lr = call->in[LR];
    a.loss_scale = call->in[SCALE];
    a.t = call->out[0];
    a.norms = call->scratch;
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.optim(lsi_cuda_stream_of(s->dev, call), &a));
}

static void destroy(void *opaque)
{
    state *s = opaque;

    lsi_cuda_tickets_free(s->dev, s->args.ticket);
    ls_free(s);
}

static lsi_cuda_rule rule_of(const ls_op *op)
{
    if (op == &ls_op_sgd) return LSI_RULE_SGD;
    if (op == &ls_op_adam) return LSI_RULE_ADAM;
    if (op == &ls_op_rmsprop) return LSI_RULE_RMSPROP;
    return op == &ls_op_lars ? LSI_RULE_LARS : LSI_RULE_LAMB;
}

/* All weights have one type, and what is alike lies alike. */
static bool fits(const ls_graph *g, const ls_node *n, const ls_optim_attr *a)
{
    const ls_dtype type = lsi_cuda_in(g, n, W)->dtype;
    int64_t chunks = 0;

    if ((type != LS_F32 && type != LS_BF16) || a->pieces > 0) return false;
    for (int i = 0; i < a->n; i++) {
        const ls_vinfo *w = lsi_cuda_in(g, n, W + i);
        chunks += LSI_OPTIM_CHUNKS(ls_shape_count(w->shape));
        if (w->dtype != type) return false;
        for (int k = 1; W + k * a->n + i < n->n_in; k++)
            if (lsi_cuda_in(g, n, W + k * a->n + i)->layout != w->layout) return false;
    }
    return chunks <= INT32_MAX;
}

ls_status lsi_cuda_plan_optimiser(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                  ls_err *err)
{
    const ls_optim_attr *a = n->attr;
    const bool norms = n->op == &ls_op_lars || n->op == &ls_op_lamb;
    state *s;
    int64_t chunks = 0;
    ls_status st;

    if (!fits(g, n, a)) return LS_UNSUPPORTED;
    s = ls_alloc(LS_MEM_PLAN, sizeof *s + (size_t)a->n * sizeof s->params[0]);
    if (s == NULL) return ls_fail(err, LS_NOMEM, "cuda: no memory for a kernel");
    s->dev = lsi_cuda_of(dev);
    s->n_states = ls_optim_states(n->op, a);
    s->args = (lsi_cuda_optim_args){
        .rule = rule_of(n->op), .dtype = lsi_cuda_in(g, n, W)->dtype, .attr = *a, .n = a->n};
    for (int i = 0; i < a->n; i++) {
        const ls_shape shape = lsi_cuda_in(g, n, W + i)->shape;
        s->params[i] = (lsi_cuda_param){
            .count = ls_shape_count(shape), .first = (int32_t)chunks, .vector = shape.rank < 2};
        chunks += LSI_OPTIM_CHUNKS(s->params[i].count);
    }
    st = lsi_cuda_tickets(s->dev, 1, &s->args.ticket, err);
    if (st != LS_OK) {
        ls_free(s);
        return st;
    }
    *out = (ls_kernel){run, destroy, s, norms ? (size_t)chunks * 2 * sizeof(float) : 0, "group"};
    return LS_OK;
}

typedef struct accumulate_state {
    const lsi_cuda_device *dev;
    lsi_cuda_accumulate_args args;
} accumulate_state;

static void run_accumulate(void *opaque, const ls_call *call)
{
    const accumulate_state *s = opaque;
    lsi_cuda_accumulate_args a = s->args;

    a.sum = call->out[0];
    a.gradient = call->in[1];
    a.keep = call->in[2];
    a.weight = call->in[3];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.accumulate(lsi_cuda_stream_of(s->dev, call), &a));
}

ls_status lsi_cuda_plan_accumulate(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                   ls_err *err)
{
    const ls_vinfo *sum = lsi_cuda_in(g, n, 0), *gradient = lsi_cuda_in(g, n, 1);
    const accumulate_state s = {lsi_cuda_of(dev),
                                {.dtype = gradient->dtype, .count = ls_shape_count(sum->shape)}};

    if (sum->dtype != LS_F32 || !lsi_cuda_computes(gradient->dtype) || sum->layout != gradient->layout)
        return LS_UNSUPPORTED;
    return lsi_cuda_kernel_make(out, run_accumulate, &s, sizeof s, 0, "elements", err);
}
