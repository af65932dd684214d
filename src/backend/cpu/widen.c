/* widen.c: conversions around a kernel that knows only f32. */
#include "backend/cpu/widen.h"

#include <stdio.h>
#include <string.h>

#include "backend/cpu/kernel_util.h"
#include "backend/cpu/move.h"

typedef struct operand {
    ls_dtype dtype; /* as stored */
    int64_t count;
    size_t offset; /* of the f32 copy in scratch */
    bool wide;     /* has a copy */
} operand;

typedef struct widen_state {
    ls_kernel inner;
    int n_in, n_out, threads;
    operand *operands; /* inputs, then outputs */
    void **pointers;   /* likewise, for the inner call */
    char impl[LSI_WIDE_NAME];
} widen_state;

typedef struct conversion {
    ls_dtype dtype;
    int64_t count;
    uint16_t *narrow;
    float *wide;
    bool widen;
    const lsi_move_table *table; /* NULL: no vectors here */
} conversion;

static void convert_part(int thread, int n_threads, void *arg)
{
    const conversion *c = arg;
    int64_t lo, hi;

    ls_parallel_range_grain(c->count, 64, thread, n_threads, &lo, &hi);
    if (c->table != NULL) {
        const lsi_move_table *t = c->table;
        if (c->widen)
            (c->dtype == LS_BF16 ? t->bf16_to_f32 : t->f16_to_f32)(c->wide + lo, c->narrow + lo, hi - lo);
        else
            (c->dtype == LS_BF16 ? t->bf16_from_f32 : t->f16_from_f32)(c->narrow + lo, c->wide + lo, hi - lo);
        return;
    }
    for (int64_t i = lo; i < hi; i++) {
        if (c->widen)
            c->wide[i] = c->dtype == LS_BF16 ? ls_bf16_to_f32(c->narrow[i]) : ls_f16_to_f32(c->narrow[i]);
        else
            c->narrow[i] = c->dtype == LS_BF16 ? ls_bf16_from_f32(c->wide[i]) : ls_f16_from_f32(c->wide[i]);
    }
}

static void convert(ls_dtype dtype, int64_t count, int threads, uint16_t *narrow, float *wide, bool widen)
{
    conversion c = {dtype, count, narrow, wide, widen, LSI_PICK(lsi_move_avx512, lsi_move_avx2)};

    ls_parallel_run(count < LSI_SMALL ? 1 : threads, convert_part, &c);
}

void lsi_wide_name(char *to, const char *impl)
{
    snprintf(to, LSI_WIDE_NAME, "wide_%s", impl != NULL ? impl : "");
}

void lsi_widen(float *wide, const void *narrow, ls_dtype t, int64_t count, int threads)
{
    convert(t, count, threads, (void *)(uintptr_t)narrow, wide, true);
}

void lsi_narrow(void *narrow, const float *wide, ls_dtype t, int64_t count, int threads)
{
    convert(t, count, threads, narrow, (void *)(uintptr_t)wide, false);
}

static void run(void *state, const ls_call *call)
{
    widen_state *s = state;
    char *scratch = call->scratch;
    ls_call inner = {s->pointers, s->pointers + s->n_in, scratch, call->stream, NULL};

    for (int i = 0; i < s->n_in + s->n_out; i++) {
        const operand *o = &s->operands[i];
        void *stored = i < s->n_in ? call->in[i] : call->out[i - s->n_in];
        s->pointers[i] = o->wide ? scratch + o->offset : stored;
        if (o->wide && i < s->n_in) lsi_widen(s->pointers[i], stored, o->dtype, o->count, s->threads);
    }
    s->inner.run(s->inner.state, &inner);
    for (int k = 0; k < s->n_out; k++) {
        const operand *o = &s->operands[s->n_in + k];
        if (o->wide) lsi_narrow(call->out[k], s->pointers[s->n_in + k], o->dtype, o->count, s->threads);
    }
}

static void destroy(void *state)
{
    widen_state *s = state;

    if (s == NULL) return;
    if (s->inner.destroy != NULL) s->inner.destroy(s->inner.state);
    ls_free(s->operands);
    ls_free(s->pointers);
    ls_free(s);
}

static bool is_narrow(const ls_vinfo *v)
{
    return v->dtype == LS_BF16 || v->dtype == LS_F16;
}

/* Places the f32 copies behind the inner kernel's scratch.  An output that takes over an input's memory
 * shares its copy, so that the inner kernel sees the same aliasing as it would in f32. */
static size_t place_operands(widen_state *s, const ls_graph *g, const ls_node *n)
{
    size_t bytes = (s->inner.scratch_bytes + 63) / 64 * 64;

    for (int i = 0; i < s->n_in + s->n_out; i++) {
        const ls_vinfo *v = g->values[i < s->n_in ? n->in[i] : n->out[i - s->n_in]];
        int twin = i >= s->n_in && n->op->alias != NULL ? n->op->alias(n->n_in, n->attr, i - s->n_in) : -1;
        operand *o = &s->operands[i];
        *o = (operand){v->dtype, ls_shape_count(v->shape), bytes, is_narrow(v)};
        if (!o->wide) continue;
        if (twin >= 0)
            o->offset = s->operands[twin].offset;
        else
            bytes += ((size_t)o->count * sizeof(float) + 63) / 64 * 64;
    }
    return bytes;
}

/* A graph that differs from `g` only in the types of the node's 16-bit tensors. */
static ls_status plan_inner(lsi_cpu_planner planner, ls_device *dev, const ls_graph *g, const ls_node *n,
                            ls_kernel *out, ls_err *err)
{
    ls_graph shadow = *g;
    size_t total = (size_t)n->n_in + (size_t)n->n_out;
    ls_vinfo *copies = ls_alloc(LS_MEM_PLAN, sizeof *copies * total);
    ls_status st;

    shadow.values = ls_alloc(LS_MEM_PLAN, sizeof *shadow.values * (size_t)g->n_values);
    if (copies == NULL || shadow.values == NULL) {
        st = ls_fail(err, LS_NOMEM, "cpu: no memory");
    } else {
        memcpy(shadow.values, g->values, sizeof *shadow.values * (size_t)g->n_values);
        for (size_t i = 0; i < total; i++) {
            int32_t id = i < (size_t)n->n_in ? n->in[i] : n->out[i - (size_t)n->n_in];
            copies[i] = *g->values[id];
            if (is_narrow(&copies[i])) copies[i].dtype = LS_F32;
            shadow.values[id] = &copies[i];
        }
        st = planner(dev, &shadow, n, out, err);
    }
    ls_free(copies);
    ls_free(shadow.values);
    return st;
}

ls_status lsi_plan_widened(lsi_cpu_planner planner, ls_device *dev, const ls_graph *g, const ls_node *n,
                           ls_kernel *out, ls_err *err)
{
    size_t total = (size_t)n->n_in + (size_t)n->n_out;
    bool any = false;
    widen_state *s;
    ls_status st;

    for (size_t i = 0; i < total; i++)
        any = any || is_narrow(g->values[i < (size_t)n->n_in ? n->in[i] : n->out[i - (size_t)n->n_in]]);
    if (!any) return LS_UNSUPPORTED;
    s = ls_alloc(LS_MEM_PLAN, sizeof *s);
    if (s == NULL) return ls_fail(err, LS_NOMEM, "cpu: no memory");
    s->n_in = n->n_in;
    s->n_out = n->n_out;
    s->threads = dev->threads;
    s->operands = ls_alloc(LS_MEM_PLAN, sizeof *s->operands * total);
    s->pointers = ls_alloc(LS_MEM_PLAN, sizeof *s->pointers * total);
    if (s->operands == NULL || s->pointers == NULL)
        st = ls_fail(err, LS_NOMEM, "cpu: no memory");
    else
        st = plan_inner(planner, dev, g, n, &s->inner, err);
    if (st != LS_OK) {
        destroy(s);
        return st;
    }
    lsi_wide_name(s->impl, s->inner.impl);
    *out = (ls_kernel){run, destroy, s, place_operands(s, g, n), s->impl};
    return LS_OK;
}
