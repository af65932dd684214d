/* plan_conv.c: from a convolution node to the fastest applicable implementation. */
#include <stdio.h>
#include <string.h>

#include "backend/cpu/b16.h"
#include "backend/cpu/conv.h"
#include "backend/cpu/conv_util.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/planners.h"
#include "backend/cpu/widen.h"
#include "ops/ops.h"

#define MAX_IMPLS 24

/* An implementation and what it is given: the problem as it is, or the same in fp32, with copies of whatever
 * is stored in 16 bits. */
typedef struct variant {
    const lsi_conv_impl *impl;
    lsi_conv_problem problem;
    void *state;
} variant;

typedef struct conv_state {
    lsi_conv_problem problem; /* as stored */
    variant v;
    char impl[LSI_WIDE_NAME];
} conv_state;

/* -- fp32 kernels on 16 bits
 * ------------------------------------------------------------------------------------ */

typedef struct operand {
    float **at;
    ls_dtype type;
    int64_t count;
    bool made;
} operand;

enum { OPERANDS = 4 };

static void operands_of(const lsi_conv_problem *p, lsi_conv_args *a, operand *o)
{
    const bool fwd = p->pass == LSI_CONV_FWD, dx = p->pass == LSI_CONV_DX;

    o[0] = (operand){&a->x, p->x_type, p->n * p->ci * p->hi * p->wi, dx};
    o[1] = (operand){&a->y, p->y_type, p->n * p->co * p->ho * p->wo, fwd};
    o[2] = (operand){&a->w, p->w_type, p->co * p->ci / p->groups * p->kh * p->kw, !fwd && !dx};
    o[3] = (operand){&a->bias, p->bias_type, p->has_bias ? (dx ? p->ci : p->co) : 0, false};
}

static size_t copies_bytes(const lsi_conv_problem *p)
{
    lsi_conv_args none = {0};
    operand o[OPERANDS];
    size_t bytes = 0;

    operands_of(p, &none, o);
    for (int i = 0; i < OPERANDS; i++)
        if (o[i].type != LS_F32) bytes += lsi_align64((size_t)o[i].count * sizeof(float));
    return bytes;
}

static size_t variant_scratch(const variant *v, const lsi_conv_problem *stored)
{
    const size_t bytes = v->impl->scratch != NULL ? v->impl->scratch(&v->problem) : 0;

    return v->impl->low ? bytes : lsi_align64(bytes) + copies_bytes(stored);
}

static void variant_run(const variant *v, const lsi_conv_problem *stored, lsi_conv_args *a)
{
    void *kept[OPERANDS];
    operand o[OPERANDS];
    char *at;

    if (v->impl->low || lsi_conv_is_f32(stored)) {
        v->impl->run(v->state, &v->problem, a);
        return;
    }
    at = (char *)a->scratch + lsi_align64(v->impl->scratch != NULL ? v->impl->scratch(&v->problem) : 0);
    operands_of(stored, a, o);
    for (int i = 0; i < OPERANDS; i++) {
        kept[i] = *o[i].at;
        if (o[i].type == LS_F32) continue;
        *o[i].at = (float *)(void *)at;
        if (!o[i].made) lsi_widen(*o[i].at, kept[i], o[i].type, o[i].count, stored->threads);
        at += lsi_align64((size_t)o[i].count * sizeof(float));
    }
    v->impl->run(v->state, &v->problem, a);
    for (int i = 0; i < OPERANDS; i++)
        if (o[i].type != LS_F32 && o[i].made)
            lsi_narrow(kept[i], *o[i].at, o[i].type, o[i].count, stored->threads);
}

static lsi_conv_args arguments(lsi_conv_pass pass, const ls_call *c, bool has_bias)
{
    float *bias = has_bias ? c->in[2] : NULL;

    switch (pass) {
    case LSI_CONV_FWD: return (lsi_conv_args){c->in[0], c->in[1], bias, c->out[0], c->scratch, c->stream};
    case LSI_CONV_DX: return (lsi_conv_args){c->out[0], c->in[1], bias, c->in[0], c->scratch, c->stream};
    default: return (lsi_conv_args){c->in[0], c->out[0], NULL, c->in[1], c->scratch, c->stream};
    }
}

static void run(void *state, const ls_call *call)
{
    const conv_state *s = state;
    lsi_conv_args a = arguments(s->problem.pass, call, s->problem.has_bias);

    variant_run(&s->v, &s->problem, &a);
}

static void destroy(void *state)
{
    conv_state *s = state;

    if (s->v.impl->destroy != NULL) s->v.impl->destroy(s->v.state);
    ls_free(s);
}

static bool float_type(ls_dtype t)
{
    return t == LS_F32 || t == LS_BF16 || t == LS_F16;
}

static bool map_act(ls_act from, lsi_conv_act *to)
{
    switch (from) {
    case LS_ACT_NONE: *to = LSI_ACT_NONE; return true;
    case LS_ACT_RELU: *to = LSI_ACT_RELU; return true;
    case LS_ACT_LEAKY: *to = LSI_ACT_LEAKY; return true;
    case LS_ACT_TANH: *to = LSI_ACT_TANH; return true;
    default: return false;
    }
}

/* False when the node is outside of what the interface can say. */
static bool describe(const ls_device *dev, const ls_graph *g, const ls_node *n, lsi_conv_problem *p)
{
    const ls_conv_attr *a = n->attr;
    const ls_vinfo *x, *y, *w;

    memset(p, 0, sizeof *p);
    if (n->op == &ls_op_conv2d) {
        p->pass = LSI_CONV_FWD;
        x = g->values[n->in[0]], w = g->values[n->in[1]], y = g->values[n->out[0]];
    } else if (n->op == &ls_op_conv2d_dx) {
        p->pass = LSI_CONV_DX;
        y = g->values[n->in[0]], w = g->values[n->in[1]], x = g->values[n->out[0]];
    } else {
        p->pass = LSI_CONV_DW;
        x = g->values[n->in[0]], y = g->values[n->in[1]], w = g->values[n->out[0]];
    }
    if (!float_type(x->dtype) || !float_type(y->dtype) || !float_type(w->dtype)) return false;
    p->x_type = x->dtype, p->y_type = y->dtype, p->w_type = w->dtype;
    p->n = x->shape.dim[0], p->ci = x->shape.dim[1], p->hi = x->shape.dim[2], p->wi = x->shape.dim[3];
    p->co = y->shape.dim[1], p->ho = y->shape.dim[2], p->wo = y->shape.dim[3];
    p->kh = (int)w->shape.dim[2], p->kw = (int)w->shape.dim[3];
    p->sh = a->stride[0], p->sw = a->stride[1];
    p->dh = a->dilation[0], p->dw = a->dilation[1];
    p->pt = a->pad[0], p->pl = a->pad[1];
    p->groups = a->groups;
    p->x_layout = x->layout, p->y_layout = y->layout;
    p->has_bias = p->pass != LSI_CONV_DW && n->n_in > 2;
    if (p->has_bias) p->bias_type = g->values[n->in[2]]->dtype;
    if (!float_type(p->bias_type)) return false;
    p->slope = (float)a->slope;
    p->threads = dev->threads;
    return map_act(p->pass == LSI_CONV_DW ? LS_ACT_NONE : a->act, &p->act);
}

static void problem_text(const lsi_conv_problem *p, char *buf, size_t n)
{
    static const char *const pass[] = {"fwd", "dx", "dw"};
    int used;

    used = snprintf(
        buf, n, "conv %s n%lld c%lldx%lldx%lld o%lldx%lldx%lld k%dx%d s%dx%d d%dx%d p%d,%d g%d %s>%s b%d a%d",
        pass[p->pass], (long long)p->n, (long long)p->ci, (long long)p->hi, (long long)p->wi,
        (long long)p->co, (long long)p->ho, (long long)p->wo, p->kh, p->kw, p->sh, p->sw, p->dh, p->dw, p->pt,
        p->pl, p->groups, p->x_layout->name, p->y_layout->name, p->has_bias, (int)p->act);
    if (!lsi_conv_is_f32(p) && used > 0 && (size_t)used < n)
        snprintf(buf + used, n - (size_t)used, " x%s w%s y%s by %s", ls_dtype_name(p->x_type),
                 ls_dtype_name(p->w_type), ls_dtype_name(p->y_type), lsi_b16_name_here());
}

/* -- timing candidates
 * ------------------------------------------------------------------------------------------ */

typedef struct trial {
    const lsi_conv_problem *problem;
    variant v[MAX_IMPLS];
    const char *name[MAX_IMPLS];
    int n;
    bool open[MAX_IMPLS];   /* its state exists */
    lsi_ring x, y, w, bias; /* shared by all candidates, like the scratch; made when the first one runs */
    void *scratch;
    int turn;
} trial;

/* Small numbers stay small numbers when they are stored in 16 bits. */
static void narrow_ring(const lsi_ring *r, ls_dtype t)
{
    for (int i = 0; t != LS_F32 && i < r->copies; i++)
        lsi_narrow(lsi_ring_at(r, i), lsi_ring_at(r, i), t, r->count, 1);
}

/* A remembered choice needs no tensors, so they are made when the first candidate runs. */
static bool make_tensors(trial *t)
{
    const lsi_conv_problem *p = t->problem;
    const int64_t x = p->n * p->ci * p->hi * p->wi, y = p->n * p->co * p->ho * p->wo;
    const int copies = lsi_ring_copies(x + y);
    size_t scratch = 0;

    if (t->scratch != NULL) return true;
    for (int i = 0; i < t->n; i++) {
        size_t bytes = variant_scratch(&t->v[i], p);
        if (bytes > scratch) scratch = bytes;
    }
    if (!lsi_ring_make(&t->x, x, copies) || !lsi_ring_make(&t->y, y, copies) ||
        !lsi_ring_make(&t->w, p->co * p->ci / p->groups * p->kh * p->kw, 1) ||
        !lsi_ring_make(&t->bias, p->pass == LSI_CONV_DX ? p->ci : p->co, 1))
        return false;
    narrow_ring(&t->x, p->x_type);
    narrow_ring(&t->y, p->y_type);
    narrow_ring(&t->w, p->w_type);
    narrow_ring(&t->bias, p->bias_type);
    t->scratch = ls_alloc(LS_MEM_TUNE, scratch);
    return t->scratch != NULL;
}

static lsi_outcome try_candidate(void *ctx, int i)
{
    trial *t = ctx;
    variant *v = &t->v[i];
    ls_failure failure = {0};
    ls_stream stream = {&failure, 0};
    ls_err err = {0};
    ls_status st = LS_OK;

    if (!make_tensors(t)) return LSI_CANNOT_NOW;
    if (!t->open[i] && v->impl->create != NULL) st = v->impl->create(&v->state, &v->problem, &err);
    if (st != LS_OK) return st == LS_NOMEM ? LSI_CANNOT_NOW : LSI_CANNOT;
    t->open[i] = true;
    variant_run(v, t->problem,
                &(lsi_conv_args){lsi_ring_at(&t->x, t->turn), t->w.base, t->bias.base,
                                 lsi_ring_at(&t->y, t->turn), t->scratch, &stream});
    t->turn++;
    if (failure.told) return failure.why.status == LS_NOMEM ? LSI_CANNOT_NOW : LSI_CANNOT;
    return LSI_RAN;
}

static void trial_release(trial *t)
{
    for (int i = 0; i < t->n; i++)
        if (t->open[i] && t->v[i].impl->destroy != NULL) t->v[i].impl->destroy(t->v[i].state);
    lsi_ring_free(&t->x);
    lsi_ring_free(&t->y);
    lsi_ring_free(&t->w);
    lsi_ring_free(&t->bias);
    ls_free(t->scratch);
}

/* What follows from the problem alone: the first that is good for the map, or the last resort. */
static int guess(const trial *t)
{
    const int64_t pixels = t->problem->ho * t->problem->wo;
    int i = 0;

    while (i < t->n - 1 && pixels < t->v[i].impl->good_from) i++;
    return i;
}

/* Every implementation that can do it, those of fp32 with copies where need be. */
static void find_variants(trial *t)
{
    const lsi_conv_problem *p = t->problem;
    lsi_conv_problem wide = *p;

    wide.x_type = wide.y_type = wide.w_type = wide.bias_type = LS_F32;
    for (int i = 0; lsi_conv_impls[i] != NULL && t->n < MAX_IMPLS; i++) {
        const lsi_conv_impl *impl = lsi_conv_impls[i];
        const lsi_conv_problem *given = impl->low ? p : &wide;
        if (!impl->applicable(given)) continue;
        t->name[t->n] = impl->name;
        t->v[t->n++] = (variant){impl, *given, NULL};
    }
}

static bool choose(const lsi_cpu_device *dev, const lsi_conv_problem *p, variant *out)
{
    trial t = {.problem = p};
    char text[256];
    lsi_candidates c;
    int winner;

    find_variants(&t);
    if (t.n == 0) return false;
    if (t.n > 1) t.n--; /* the plain loops end the list and only serve where nothing else does */
    problem_text(p, text, sizeof text);
    c = (lsi_candidates){text, t.n, t.name, guess(&t), try_candidate, &t, &dev->base};
    winner = dev->base.fixed ? c.guess : lsi_tune(dev->tuner, &c);
    trial_release(&t);
    *out = t.v[winner];
    out->state = NULL;
    return true;
}

ls_status lsi_plan_conv(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    lsi_conv_problem p;
    variant v;
    conv_state *s;
    ls_status st = LS_OK;

    if (!describe(dev, g, n, &p)) return LS_UNSUPPORTED;
    if (!choose((const lsi_cpu_device *)dev, &p, &v)) return LS_UNSUPPORTED;
    s = ls_alloc(LS_MEM_PLAN, sizeof *s);
    if (s == NULL) return ls_fail(err, LS_NOMEM, "cpu: no memory");
    s->problem = p;
    s->v = v;
    if (v.impl->create != NULL) st = v.impl->create(&s->v.state, &s->v.problem, err);
    if (st != LS_OK) {
        ls_free(s); /* there is no state of `impl` to be destroyed, and no kernel that somebody else would */
        return st;
    }
    lsi_wide_name(s->impl, v.impl->name);
    *out = (ls_kernel){run, destroy, s, variant_scratch(&s->v, &s->problem),
                       v.impl->low || lsi_conv_is_f32(&p) ? v.impl->name : s->impl};
    return LS_OK;
}
