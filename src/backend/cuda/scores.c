/* scores.c: softmax, log_softmax, cross entropy both ways, accuracy: f32, bf16 and f16 scores, plain. */
#include "backend/cuda/groups.h"
#include "backend/cuda/kernel_util.h"
#include "backend/cuda/planners.h"

/* Rows of the last dimension. */
static bool rows_of(const ls_graph *g, const ls_node *n, const ls_vinfo *x, int64_t *rows, int64_t *width)
{
    *width = x->shape.dim[x->shape.rank - 1];
    *rows = *width > 0 ? ls_shape_count(x->shape) / *width : 0;
    return lsi_cuda_plain(g, n) && lsi_cuda_computes(x->dtype) && *width > 0 &&
           ls_shape_count(x->shape) <= INT32_MAX;
}

/* -- softmax --------------------------------------------------------------------------------------------- */

typedef struct softmax_state {
    const lsi_cuda_device *dev;
    lsi_cuda_softmax_args args;
} softmax_state;

static void run_softmax(void *state, const ls_call *call)
{
    const softmax_state *s = state;
    lsi_cuda_softmax_args a = s->args;

    a.x = call->in[0];
    a.y = call->out[0];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.softmax(lsi_cuda_stream_of(s->dev, call), &a));
}

ls_status lsi_cuda_plan_softmax(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                ls_err *err)
{
    const ls_vinfo *x = lsi_cuda_in(g, n, 0);
    softmax_state s = {lsi_cuda_of(dev), {.dtype = x->dtype, .log = n->op == &ls_op_log_softmax}};

    if (!rows_of(g, n, x, &s.args.rows, &s.args.width)) return LS_UNSUPPORTED;
    return lsi_cuda_kernel_make(out, run_softmax, &s, sizeof s, 0, "rows", err);
}

/* -- cross entropy and accuracy: both leave a number per row, which the last block sums --------------------
 */

typedef struct scored_state {
    const lsi_cuda_device *dev;
    unsigned *ticket;
    union {
        lsi_cuda_cross_entropy_args loss;
        lsi_cuda_accuracy_args accuracy;
    };
} scored_state;

static void destroy_scored(void *state)
{
    scored_state *s = state;

    lsi_cuda_tickets_free(s->dev, s->ticket);
    ls_free(s);
}

static ls_status make_scored(scored_state *s, void (*run)(void *, const ls_call *), int64_t rows,
                             ls_kernel *out, ls_err *err)
{
    ls_status st = lsi_cuda_tickets(s->dev, 1, &s->ticket, err);

    if (st != LS_OK) return st;
    st = lsi_cuda_kernel_make(out, run, s, sizeof *s, (size_t)rows * sizeof(float), "rows", err);
    if (st == LS_OK)
        out->destroy = destroy_scored;
    else
        lsi_cuda_tickets_free(s->dev, s->ticket);
    return st;
}

static void run_cross_entropy(void *state, const ls_call *call)
{
    const scored_state *s = state;
    lsi_cuda_cross_entropy_args a = s->loss;

    a.x = call->in[0];
    a.labels = call->in[1];
    a.loss = call->out[0];
    a.probs = call->out[1];
    a.each = call->scratch;
    a.ticket = s->ticket;
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.cross_entropy(lsi_cuda_stream_of(s->dev, call), &a));
}

ls_status lsi_cuda_plan_cross_entropy(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                      ls_err *err)
{
    const ls_vinfo *x = lsi_cuda_in(g, n, 0);
    scored_state s = {.dev = lsi_cuda_of(dev)};

    s.loss = (lsi_cuda_cross_entropy_args){.dtype = x->dtype};
    if (!rows_of(g, n, x, &s.loss.rows, &s.loss.width)) return LS_UNSUPPORTED;
    return make_scored(&s, run_cross_entropy, s.loss.rows, out, err);
}

static void run_accuracy(void *state, const ls_call *call)
{
    const scored_state *s = state;
    lsi_cuda_accuracy_args a = s->accuracy;

    a.x = call->in[0];
    a.labels = call->in[1];
    a.right = call->out[0];
    a.each = call->scratch;
    a.ticket = s->ticket;
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.accuracy(lsi_cuda_stream_of(s->dev, call), &a));
}

ls_status lsi_cuda_plan_accuracy(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                 ls_err *err)
{
    const ls_vinfo *x = lsi_cuda_in(g, n, 0);
    scored_state s = {.dev = lsi_cuda_of(dev)};

    s.accuracy = (lsi_cuda_accuracy_args){.dtype = x->dtype};
    if (!rows_of(g, n, x, &s.accuracy.rows, &s.accuracy.width)) return LS_UNSUPPORTED;
    return make_scored(&s, run_accuracy, s.accuracy.rows, out, err);
}

typedef struct loss_grad_state {
    const lsi_cuda_device *dev;
    lsi_cuda_cross_entropy_grad_args args;
} loss_grad_state;

static void run_loss_grad(void *state, const ls_call *call)
{
    const loss_grad_state *s = state;
    lsi_cuda_cross_entropy_grad_args a = s->args;

    a.dloss = call->in[0];
    a.probs = call->in[1];
    a.labels = call->in[2];
    a.dx = call->out[0];
    lsi_cuda_launched(s->dev, call,
                      s->dev->api->launch.cross_entropy_grad(lsi_cuda_stream_of(s->dev, call), &a));
}

ls_status lsi_cuda_plan_cross_entropy_grad(ls_device *dev, const ls_graph *g, const ls_node *n,
                                           ls_kernel *out, ls_err *err)
{
    const ls_vinfo *probs = lsi_cuda_in(g, n, 1);
    loss_grad_state s = {.dev = lsi_cuda_of(dev)};

    if (probs->dtype != LS_F32 || !rows_of(g, n, probs, &s.args.rows, &s.args.width)) return LS_UNSUPPORTED;
    return lsi_cuda_kernel_make(out, run_loss_grad, &s, sizeof s, 0, "elements", err);
}
