/* finite.c: all_finite of f32, bf16 and f16 in every layout; unless and either, whose numbers are f32, bf16,
 * f16 or i32, of every type; rescale of f32 and i32. */
#include "backend/cuda/groups.h"
#include "backend/cuda/kernel_util.h"
#include "backend/cuda/planners.h"

/* -- all_finite -------------------------------------------------------------------------------------------
 */

typedef struct finite_state {
    const lsi_cuda_device *dev;
    lsi_cuda_all_finite_args args;
    lsi_cuda_looked_at tensors[];
} finite_state;

static void run_finite(void *opaque, const ls_call *call)
{
    finite_state *s = opaque;
    lsi_cuda_all_finite_args a = s->args;

    for (int i = 0; i < a.n; i++) s->tensors[i].x = call->in[i];
    a.tensors = s->tensors;
    a.out = call->out[0];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.all_finite(lsi_cuda_stream_of(s->dev, call), &a));
}

static void destroy_finite(void *opaque)
{
    finite_state *s = opaque;

    lsi_cuda_tickets_free(s->dev, s->args.ticket);
    ls_free(s);
}

/* An empty tensor has one chunk, too, so that every launch has a block. */
static int64_t chunks_of(int64_t count)
{
    return count > 0 ? (count + LSI_FINITE_CHUNK - 1) / LSI_FINITE_CHUNK : 1;
}

ls_status lsi_cuda_plan_all_finite(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                   ls_err *err)
{
    const ls_all_finite_attr *attr = n->attr;
    finite_state *s;
    int64_t chunks = 0;
    ls_status st;

    if (lsi_cuda_out(g, n, 0)->dtype != LS_F32) return LS_UNSUPPORTED;
    for (int i = 0; i < n->n_in; i++) {
        const ls_vinfo *x = lsi_cuda_in(g, n, i);
        chunks += chunks_of(ls_shape_count(x->shape));
        if (!lsi_cuda_computes(x->dtype) || chunks > INT32_MAX) return LS_UNSUPPORTED;
    }
    s = ls_alloc(LS_MEM_PLAN, sizeof *s + (size_t)n->n_in * sizeof s->tensors[0]);
    if (s == NULL) return ls_fail(err, LS_NOMEM, "cuda: no memory for a kernel");
    s->dev = lsi_cuda_of(dev);
    s->args = (lsi_cuda_all_finite_args){.n = n->n_in, .chunks = chunks, .number = attr->first};
    chunks = 0;
    for (int i = 0; i < n->n_in; i++) {
        const ls_vinfo *x = lsi_cuda_in(g, n, i);
        s->tensors[i] = (lsi_cuda_looked_at){
            .count = ls_shape_count(x->shape), .first = (int32_t)chunks, .dtype = x->dtype};
        chunks += chunks_of(s->tensors[i].count);
    }
    st = lsi_cuda_tickets(s->dev, 2, &s->args.ticket, err);
    if (st != LS_OK) {
        ls_free(s);
        return st;
    }
    *out = (ls_kernel){.run = run_finite, .destroy = destroy_finite, .state = s, .impl = "chunks"};
    return LS_OK;
}

/* -- unless, either ---------------------------------------------------------------------------------------
 */

typedef struct pick_state {
    const lsi_cuda_device *dev;
    bool unless;
    lsi_cuda_pick_args args;
} pick_state;

static void run_pick(void *opaque, const ls_call *call)
{
    const pick_state *s = opaque;
    lsi_cuda_pick_args a = s->args;

    a.left = call->in[0];
    a.right = s->unless ? NULL : call->in[1];
    a.a = call->in[s->unless ? 1 : 2];
    a.b = s->unless ? NULL : call->in[3];
    a.out = call->out[0];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.pick(lsi_cuda_stream_of(s->dev, call), &a));
}

static bool is_number(ls_dtype t)
{
    return lsi_cuda_computes(t) || t == LS_I32;
}

ls_status lsi_cuda_plan_pick(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    const bool unless = n->op == &ls_op_unless;
    const ls_vinfo *left = lsi_cuda_in(g, n, 0), *right = lsi_cuda_in(g, n, 1), *y = lsi_cuda_out(g, n, 0);
    const pick_state s = {lsi_cuda_of(dev),
                          unless,
                          {.left_type = left->dtype,
                           .right_type = unless ? LS_F32 : right->dtype,
                           .bytes = ls_shape_count(y->shape) * (int64_t)ls_dtype_size(y->dtype)}};

    if (!is_number(left->dtype) || (!unless && !is_number(right->dtype)) || s.args.bytes % 2 != 0)
        return LS_UNSUPPORTED;
    for (int i = unless ? 1 : 2; i < n->n_in; i++)
        if (lsi_cuda_in(g, n, i)->layout != y->layout) return LS_UNSUPPORTED;
    return lsi_cuda_kernel_make(out, run_pick, &s, sizeof s, 0, "elements", err);
}

/* -- rescale ------------------------------------------------------------------------------------------------
 */

typedef struct rescale_state {
    const lsi_cuda_device *dev;
    int n_in;
    lsi_cuda_rescale_args args;
} rescale_state;

/* In: scale, skipped (if it counts), good (if dynamic), numbers; out: those that change, then the report. */
static void run_rescale(void *opaque, const ls_call *call)
{
    const rescale_state *s = opaque;
    lsi_cuda_rescale_args a = s->args;
    const bool dynamic = a.attr.dynamic, counts = a.attr.counts;
    const int head = s->n_in - a.n_found;

    a.scale = call->in[0];
    a.next_scale = dynamic ? call->out[0] : NULL;
    a.skipped = dynamic ? call->out[1] : counts ? call->out[0] : NULL;
    a.good = dynamic ? call->out[2] : NULL;
    a.report = call->out[dynamic ? 3 : counts ? 1 : 0];
    for (int i = 0; i < a.n_found; i++) a.found[i] = call->in[head + i];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.rescale(lsi_cuda_stream_of(s->dev, call), &a));
}

ls_status lsi_cuda_plan_rescale(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                ls_err *err)
{
    const ls_rescale_attr *attr = n->attr;
    const int head = attr->dynamic ? 3 : attr->counts ? 2 : 1;
    const rescale_state s = {lsi_cuda_of(dev), n->n_in, {.attr = *attr, .n_found = n->n_in - head}};

    if (s.args.n_found > LSI_RESCALE_FOUND) return LS_UNSUPPORTED;
    for (int i = 0; i < n->n_in; i++)
        if (lsi_cuda_in(g, n, i)->dtype != (i > 0 && i < head ? LS_I32 : LS_F32)) return LS_UNSUPPORTED;
    return lsi_cuda_kernel_make(out, run_rescale, &s, sizeof s, 0, "one", err);
}
