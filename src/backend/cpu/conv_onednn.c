/* conv_onednn.c: oneDNN's convolutions behind our interface.
 *
 * Weights stay plain between steps, so each run first reorders them into what the primitive wants (or, for
 * DW, reorders its result back); the buffer for that and oneDNN's own scratch come from the plan's arena
 * ("user scratchpad").  oneDNN fixes its work distribution when a primitive is made, by the OpenMP thread
 * count of that moment, so the count is set around both creation and execution. */
#include "backend/cpu/conv_util.h"

#if defined(LS_HAVE_ONEDNN) && defined(_OPENMP)

#include <omp.h>
#include <string.h>

#include "backend/cpu/dnnl_compat.h"
#include "base/alloc.h"

typedef struct primitive {
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t prim;
    dnnl_memory_t scratch; /* over its own part of the scratch area, or NULL when it needs none */
    size_t scratch_bytes;
} primitive;

typedef struct state {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    lsi_dnnl_md x_md, w_md, bias_md, y_md; /* as we keep the tensors */
    lsi_dnnl_md w_any_md;                  /* lets oneDNN choose */
    primitive conv, reorder;
    bool has_reorder;
    size_t w_bytes; /* of the reordered weights */
    dnnl_memory_t x, w, w_inner, bias, y;
} state;

static int threads_enter(int threads)
{
    const int before = omp_get_max_threads();

    if (before != threads) omp_set_num_threads(threads);
    return before;
}

static void threads_leave(int before, int threads)
{
    if (before != threads) omp_set_num_threads(before);
}

/* Transposed convolution with an epilogue is a deconvolution to oneDNN; a plain gradient is not. */
static bool is_deconv(const lsi_conv_problem *p)
{
    return p->pass == LSI_CONV_DX && (p->has_bias || p->act != LSI_ACT_NONE);
}

static dnnl_format_tag_t map_tag(const ls_layout *l)
{
    return l == &lsi_layout_c16 ? dnnl_nChw16c : dnnl_nchw;
}

#define DNNL_TRY(call)                                                                                       \
    do {                                                                                                     \
        dnnl_status_t try_status = (call);                                                                   \
        if (try_status != dnnl_success) return try_status;                                                   \
    } while (0)

static dnnl_status_t describe_weights(state *s, const lsi_conv_problem *p, bool deconv)
{
    const int64_t g = p->groups, cog = p->co / g, cig = p->ci / g;
    /* A deconvolution's output channels are our ci: the same memory with two dimensions exchanged. */
    const int64_t first = deconv ? cig : cog, second = deconv ? cog : cig;

    if (g > 1) {
        const dnnl_dims_t dims = {g, first, second, p->kh, p->kw};
        DNNL_TRY(lsi_dnnl_md_make(&s->w_md, 5, dims, deconv ? dnnl_giohw : dnnl_goihw));
        return lsi_dnnl_md_make(&s->w_any_md, 5, dims, dnnl_format_tag_any);
    }
    const dnnl_dims_t dims = {first, second, p->kh, p->kw};
    DNNL_TRY(lsi_dnnl_md_make(&s->w_md, 4, dims, deconv ? dnnl_iohw : dnnl_oihw));
    return lsi_dnnl_md_make(&s->w_any_md, 4, dims, dnnl_format_tag_any);
}

static dnnl_status_t describe_maps(state *s, const lsi_conv_problem *p)
{
    const dnnl_dims_t x_dims = {p->n, p->ci, p->hi, p->wi}, y_dims = {p->n, p->co, p->ho, p->wo};
    const dnnl_dims_t bias_dims = {p->pass == LSI_CONV_DX ? p->ci : p->co};

    DNNL_TRY(lsi_dnnl_md_make(&s->x_md, 4, x_dims, map_tag(p->x_layout)));
    DNNL_TRY(lsi_dnnl_md_make(&s->y_md, 4, y_dims, map_tag(p->y_layout)));
    return lsi_dnnl_md_make(&s->bias_md, 1, bias_dims, dnnl_x);
}

static dnnl_status_t append_act(dnnl_primitive_attr_t attr, const lsi_conv_problem *p)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t st;

    if (p->act == LSI_ACT_NONE) return dnnl_success;
    DNNL_TRY(dnnl_post_ops_create(&ops));
    st = lsi_dnnl_append_eltwise(ops, p->act == LSI_ACT_TANH ? dnnl_eltwise_tanh : dnnl_eltwise_relu,
                                 p->act == LSI_ACT_LEAKY ? p->slope : 0.0f, 0.0f);
    if (st == dnnl_success) st = dnnl_primitive_attr_set_post_ops(attr, ops);
    dnnl_post_ops_destroy(ops);
    return st;
}

static dnnl_status_t make_conv_desc(state *s, const lsi_conv_problem *p, bool wino,
                                    dnnl_primitive_attr_t attr)
{
    const bool deconv = is_deconv(p);
    const int64_t below = (p->ho - 1) * p->sh + (int64_t)(p->kh - 1) * p->dh + 1 - p->pt - p->hi;
    const int64_t right = (p->wo - 1) * p->sw + (int64_t)(p->kw - 1) * p->dw + 1 - p->pl - p->wi;
    lsi_dnnl_conv c = {
        .alg = wino ? dnnl_convolution_winograd : dnnl_convolution_direct,
        .src = LSI_DNNL_REF(s->x_md),
        .weights = LSI_DNNL_REF(s->w_any_md),
        .bias = p->has_bias ? LSI_DNNL_REF(s->bias_md) : NULL,
        .dst = LSI_DNNL_REF(s->y_md),
        .strides = {p->sh, p->sw},
        .dilates = {p->dh - 1, p->dw - 1},
        .padding_l = {p->pt, p->pl},
        .padding_r = {below, right},
    };

    switch (p->pass) {
    case LSI_CONV_FWD: c.kind = LSI_DNNL_CONV_FWD; break;
    case LSI_CONV_DX: c.kind = LSI_DNNL_CONV_DX; break;
    case LSI_CONV_DW: c.kind = LSI_DNNL_CONV_DW; break;
    }
    if (deconv) {
        c.kind = LSI_DNNL_DECONV_FWD;
        c.alg = dnnl_deconvolution_direct;
        c.src = LSI_DNNL_REF(s->y_md);
        c.dst = LSI_DNNL_REF(s->x_md);
    }
    return lsi_dnnl_conv_pd(&s->conv.desc, &c, s->engine, attr);
}

/* oneDNN's reference code is correct but hundreds of times slower; trying it would stall the tuning. */
static bool is_reference(dnnl_primitive_desc_t desc)
{
    const char *name = NULL;

    if (dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &name) != dnnl_success || !name)
        return true;
    return strncmp(name, "ref", 3) == 0;
}

static size_t scratch_bytes(dnnl_primitive_desc_t desc)
{
    const lsi_dnnl_md_ref md = dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);

    return md ? dnnl_memory_desc_get_size(md) : 0;
}

static dnnl_status_t make_reorder_desc(state *s, const lsi_conv_problem *p, dnnl_primitive_attr_t attr)
{
    const bool dw = p->pass == LSI_CONV_DW;
    const lsi_dnnl_md_ref inner = dnnl_primitive_desc_query_md(
        s->conv.desc, dw ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
    const lsi_dnnl_md_ref ours = LSI_DNNL_REF(s->w_md);

    if (!inner) return dnnl_unimplemented;
    s->has_reorder = !dnnl_memory_desc_equal(inner, ours);
    if (!s->has_reorder) return dnnl_success;
    s->w_bytes = dnnl_memory_desc_get_size(inner);
    DNNL_TRY(dnnl_reorder_primitive_desc_create(&s->reorder.desc, dw ? inner : ours, s->engine,
                                                dw ? ours : inner, s->engine, attr));
    s->reorder.scratch_bytes = scratch_bytes(s->reorder.desc);
    return dnnl_success;
}

/* Everything that decides applicability and sizes; no code is generated yet. */
static dnnl_status_t describe(state *s, const lsi_conv_problem *p, bool wino)
{
    dnnl_primitive_attr_t attr = NULL, reorder_attr = NULL;
    dnnl_status_t st;

    DNNL_TRY(dnnl_engine_create(&s->engine, dnnl_cpu, 0));
    DNNL_TRY(describe_weights(s, p, is_deconv(p)));
    DNNL_TRY(describe_maps(s, p));
    DNNL_TRY(dnnl_primitive_attr_create(&attr));
    st = dnnl_primitive_attr_create(&reorder_attr);
    if (st == dnnl_success) st = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (st == dnnl_success)
        st = dnnl_primitive_attr_set_scratchpad_mode(reorder_attr, dnnl_scratchpad_mode_user);
    if (st == dnnl_success) st = append_act(attr, p);
    if (st == dnnl_success) st = make_conv_desc(s, p, wino, attr);
    if (st == dnnl_success && is_reference(s->conv.desc)) st = dnnl_unimplemented;
    if (st == dnnl_success) s->conv.scratch_bytes = scratch_bytes(s->conv.desc);
    if (st == dnnl_success) st = make_reorder_desc(s, p, reorder_attr);
    dnnl_primitive_attr_destroy(attr);
    if (reorder_attr) dnnl_primitive_attr_destroy(reorder_attr);
    return st;
}

static dnnl_status_t make_primitive(state *s, primitive *q)
{
    const lsi_dnnl_md_ref scratch = dnnl_primitive_desc_query_md(q->desc, dnnl_query_scratchpad_md, 0);

    DNNL_TRY(dnnl_primitive_create(&q->prim, q->desc));
    if (q->scratch_bytes == 0) return dnnl_success;
    return dnnl_memory_create(&q->scratch, scratch, s->engine, DNNL_MEMORY_NONE);
}

static dnnl_status_t build(state *s, const lsi_conv_problem *p)
{
    const dnnl_query_t what = p->pass == LSI_CONV_DW ? dnnl_query_diff_weights_md : dnnl_query_weights_md;

    DNNL_TRY(dnnl_stream_create(&s->stream, s->engine, dnnl_stream_default_flags));
    DNNL_TRY(make_primitive(s, &s->conv));
    DNNL_TRY(dnnl_memory_create(&s->x, LSI_DNNL_REF(s->x_md), s->engine, DNNL_MEMORY_NONE));
    DNNL_TRY(dnnl_memory_create(&s->y, LSI_DNNL_REF(s->y_md), s->engine, DNNL_MEMORY_NONE));
    DNNL_TRY(dnnl_memory_create(&s->w, LSI_DNNL_REF(s->w_md), s->engine, DNNL_MEMORY_NONE));
    DNNL_TRY(dnnl_memory_create(&s->bias, LSI_DNNL_REF(s->bias_md), s->engine, DNNL_MEMORY_NONE));
    if (!s->has_reorder) return dnnl_success;
    DNNL_TRY(make_primitive(s, &s->reorder));
    return dnnl_memory_create(&s->w_inner, dnnl_primitive_desc_query_md(s->conv.desc, what, 0), s->engine,
                              DNNL_MEMORY_NONE);
}

static void primitive_release(primitive *q)
{
    if (q->scratch) dnnl_memory_destroy(q->scratch);
    if (q->prim) dnnl_primitive_destroy(q->prim);
    if (q->desc) dnnl_primitive_desc_destroy(q->desc);
}

static void release(state *s)
{
    const dnnl_memory_t memories[] = {s->x, s->w, s->w_inner, s->bias, s->y};

    for (size_t i = 0; i < sizeof memories / sizeof *memories; i++)
        if (memories[i]) dnnl_memory_destroy(memories[i]);
    primitive_release(&s->conv);
    primitive_release(&s->reorder);
    lsi_dnnl_md_release(&s->x_md);
    lsi_dnnl_md_release(&s->w_md);
    lsi_dnnl_md_release(&s->bias_md);
    lsi_dnnl_md_release(&s->y_md);
    lsi_dnnl_md_release(&s->w_any_md);
    if (s->stream) dnnl_stream_destroy(s->stream);
    if (s->engine) dnnl_engine_destroy(s->engine);
}

/* Bytes of scratch, or -1 when oneDNN cannot do the problem (well). */
static int64_t probe(const lsi_conv_problem *p, bool wino)
{
    const int64_t dims[] = {p->n, p->ci, p->hi, p->wi, p->co, p->ho, p->wo};
    state s = {0};
    int64_t bytes = -1;
    int before;

    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        if (dims[i] <= 0) return -1;
    before = threads_enter(p->threads);
    if (describe(&s, p, wino) == dnnl_success)
        bytes = (int64_t)(lsi_align64(s.w_bytes) + lsi_align64(s.conv.scratch_bytes) +
                          lsi_align64(s.reorder.scratch_bytes));
    release(&s);
    threads_leave(before, p->threads);
    return bytes;
}

static ls_status create(void **out, const lsi_conv_problem *p, bool wino, ls_err *err)
{
    state *s = ls_alloc(LS_MEM_PLAN, sizeof *s);
    dnnl_status_t dst;
    int before;

    *out = NULL;
    if (!s) return ls_fail(err, LS_NOMEM, "no memory for a oneDNN convolution's state");
    before = threads_enter(p->threads);
    dst = describe(s, p, wino);
    if (dst == dnnl_success) dst = build(s, p);
    threads_leave(before, p->threads);
    if (dst != dnnl_success) {
        release(s);
        ls_free(s);
        return ls_fail(err, LS_DEVICE, "oneDNN: making a convolution failed with status %d", (int)dst);
    }
    *out = s;
    return LS_OK;
}

static void destroy(void *opaque)
{
    if (!opaque) return;
    release(opaque);
    ls_free(opaque);
}

static void set(dnnl_memory_t memory, void *data)
{
    if (memory) LS_BUG_IF(dnnl_memory_set_data_handle(memory, data) != dnnl_success);
}

static void execute(const state *s, const primitive *q, const dnnl_exec_arg_t *args, int n, ls_stream *told)
{
    const dnnl_status_t st = dnnl_primitive_execute(q->prim, s->stream, n, args);

    if (st != dnnl_success)
        ls_stream_fail(told, LS_DEVICE, "oneDNN: a convolution failed with status %d", (int)st);
}

static void run_reorder(const state *s, bool back, ls_stream *told)
{
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, back ? s->w_inner : s->w},
                                    {DNNL_ARG_TO, back ? s->w : s->w_inner},
                                    {DNNL_ARG_SCRATCHPAD, s->reorder.scratch}};

    execute(s, &s->reorder, args, s->reorder.scratch ? 3 : 2, told);
}

static void run_conv(const state *s, const lsi_conv_problem *p, ls_stream *told)
{
    const dnnl_memory_t w = s->has_reorder ? s->w_inner : s->w;
    dnnl_exec_arg_t args[5];
    int n = 0;

    if (p->pass == LSI_CONV_DX && !is_deconv(p)) {
        args[n++] = (dnnl_exec_arg_t){DNNL_ARG_DIFF_SRC, s->x};
        args[n++] = (dnnl_exec_arg_t){DNNL_ARG_WEIGHTS, w};
        args[n++] = (dnnl_exec_arg_t){DNNL_ARG_DIFF_DST, s->y};
    } else if (p->pass == LSI_CONV_DW) {
        args[n++] = (dnnl_exec_arg_t){DNNL_ARG_SRC, s->x};
        args[n++] = (dnnl_exec_arg_t){DNNL_ARG_DIFF_WEIGHTS, w};
        args[n++] = (dnnl_exec_arg_t){DNNL_ARG_DIFF_DST, s->y};
    } else {
        args[n++] = (dnnl_exec_arg_t){DNNL_ARG_SRC, is_deconv(p) ? s->y : s->x};
        args[n++] = (dnnl_exec_arg_t){DNNL_ARG_WEIGHTS, w};
        args[n++] = (dnnl_exec_arg_t){DNNL_ARG_DST, is_deconv(p) ? s->x : s->y};
        if (p->has_bias) args[n++] = (dnnl_exec_arg_t){DNNL_ARG_BIAS, s->bias};
    }
    if (s->conv.scratch) args[n++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, s->conv.scratch};
    execute(s, &s->conv, args, n, told);
}

static void run(void *opaque, const lsi_conv_problem *p, const lsi_conv_args *a)
{
    const state *s = opaque;
    char *scratch = a->scratch;
    const int before = threads_enter(p->threads);

    set(s->x, a->x);
    set(s->w, a->w);
    set(s->y, a->y);
    set(s->bias, a->bias);
    set(s->w_inner, scratch);
    set(s->conv.scratch, scratch + lsi_align64(s->w_bytes));
    set(s->reorder.scratch, scratch + lsi_align64(s->w_bytes) + lsi_align64(s->conv.scratch_bytes));
    if (s->has_reorder && p->pass != LSI_CONV_DW) run_reorder(s, false, a->stream);
    run_conv(s, p, a->stream);
    if (s->has_reorder && p->pass == LSI_CONV_DW) run_reorder(s, true, a->stream);
    threads_leave(before, p->threads);
}

static bool direct_applicable(const lsi_conv_problem *p)
{
    return probe(p, false) >= 0;
}

static size_t direct_scratch(const lsi_conv_problem *p)
{
    const int64_t bytes = probe(p, false);

    return bytes > 0 ? (size_t)bytes : 0;
}

static ls_status direct_create(void **out, const lsi_conv_problem *p, ls_err *err)
{
    return create(out, p, false, err);
}

/* Its kernels go through padding, which is most of what a small map has. */
const lsi_conv_impl lsi_conv_onednn = {.name = "onednn",
                                       .good_from = 5,
                                       .applicable = direct_applicable,
                                       .scratch = direct_scratch,
                                       .create = direct_create,
                                       .destroy = destroy,
                                       .run = run};

static bool wino_applicable(const lsi_conv_problem *p)
{
    return LSI_DNNL_HAS_WINO && !is_deconv(p) && probe(p, true) >= 0;
}

static size_t wino_scratch(const lsi_conv_problem *p)
{
    const int64_t bytes = probe(p, true);

    return bytes > 0 ? (size_t)bytes : 0;
}

static ls_status wino_create(void **out, const lsi_conv_problem *p, ls_err *err)
{
    return create(out, p, true, err);
}

const lsi_conv_impl lsi_conv_onednn_wino = {.name = "onednn_wino",
                                            .good_from = 16,
                                            .applicable = wino_applicable,
                                            .scratch = wino_scratch,
                                            .create = wino_create,
                                            .destroy = destroy,
                                            .run = run};

#else

/* Kept so that the list of implementations has no conditions: a build without oneDNN never offers them. */
static bool never(const lsi_conv_problem *p)
{
    (void)p;
    return false;
}

const lsi_conv_impl lsi_conv_onednn = {.name = "onednn", .applicable = never};
const lsi_conv_impl lsi_conv_onednn_wino = {.name = "onednn_wino", .applicable = never};

#endif
