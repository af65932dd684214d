/* plan_conv.c: from a convolution node to the fastest applicable implementation. */
#include <stdio.h>
#include <string.h>

#include "backend/cpu/conv.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/planners.h"
#include "ops/ops.h"

#define MAX_IMPLS 16

typedef struct conv_state {
    lsi_conv_problem problem;
    const lsi_conv_impl *impl;
    void *state;
} conv_state;

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

    s->impl->run(s->state, &s->problem, &a);
}

static void destroy(void *state)
{
    conv_state *s = state;

    if (s->impl->destroy != NULL) s->impl->destroy(s->state);
    ls_free(s);
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
    if (x->dtype != LS_F32 || y->dtype != LS_F32 || w->dtype != LS_F32) return false;
    p->n = x->shape.dim[0], p->ci = x->shape.dim[1], p->hi = x->shape.dim[2], p->wi = x->shape.dim[3];
    p->co = y->shape.dim[1], p->ho = y->shape.dim[2], p->wo = y->shape.dim[3];
    p->kh = (int)w->shape.dim[2], p->kw = (int)w->shape.dim[3];
    p->sh = a->stride[0], p->sw = a->stride[1];
    p->dh = a->dilation[0], p->dw = a->dilation[1];
    p->pt = a->pad[0], p->pl = a->pad[1];
    p->groups = a->groups;
    p->x_layout = x->layout, p->y_layout = y->layout;
    p->has_bias = p->pass != LSI_CONV_DW && n->n_in > 2;
    p->slope = (float)a->slope;
    p->threads = dev->threads;
    return map_act(p->pass == LSI_CONV_DW ? LS_ACT_NONE : a->act, &p->act);
}

static void problem_text(const lsi_conv_problem *p, char *buf, size_t n)
{
    static const char *const pass[] = {"fwd", "dx", "dw"};

    snprintf(buf, n,
             "conv %s n%lld c%lldx%lldx%lld o%lldx%lldx%lld k%dx%d s%dx%d d%dx%d p%d,%d g%d %s>%s b%d a%d",
             pass[p->pass], (long long)p->n, (long long)p->ci, (long long)p->hi, (long long)p->wi,
             (long long)p->co, (long long)p->ho, (long long)p->wo, p->kh, p->kw, p->sh, p->sw, p->dh, p->dw,
             p->pt, p->pl, p->groups, p->x_layout->name, p->y_layout->name, p->has_bias, (int)p->act);
}

/* -- timing candidates
 * ------------------------------------------------------------------------------------------ */

typedef struct trial {
    const lsi_conv_problem *problem;
    const lsi_conv_impl *impl[MAX_IMPLS];
    const char *name[MAX_IMPLS];
    int n;
    bool open[MAX_IMPLS]; /* its state exists */
    void *state[MAX_IMPLS];
    lsi_ring x, y, w, bias; /* shared by all candidates, like the scratch; made when the first one runs */
    void *scratch;
    int turn;
} trial;

/* A remembered choice needs no tensors, so they are made when the first candidate runs. */
static bool make_tensors(trial *t)
{
    const lsi_conv_problem *p = t->problem;
    const int64_t x = p->n * p->ci * p->hi * p->wi, y = p->n * p->co * p->ho * p->wo;
    const int copies = lsi_ring_copies(x + y);
    size_t scratch = 0;

    if (t->scratch != NULL) return true;
    for (int i = 0; i < t->n; i++) {
        size_t bytes = t->impl[i]->scratch != NULL ? t->impl[i]->scratch(p) : 0;
        if (bytes > scratch) scratch = bytes;
    }
    if (!lsi_ring_make(&t->x, x, copies) || !lsi_ring_make(&t->y, y, copies) ||
        !lsi_ring_make(&t->w, p->co * p->ci / p->groups * p->kh * p->kw, 1) ||
        !lsi_ring_make(&t->bias, p->pass == LSI_CONV_DX ? p->ci : p->co, 1))
        return false;
    t->scratch = ls_alloc(LS_MEM_TUNE, scratch);
    return t->scratch != NULL;
}

static bool try_candidate(void *ctx, int i)
{
    trial *t = ctx;
    const lsi_conv_impl *impl = t->impl[i];
    ls_failure failure = {0};
    ls_stream stream = {&failure, 0};
    ls_err err = {0};

    if (!make_tensors(t)) return false;
    if (!t->open[i] && impl->create != NULL && impl->create(&t->state[i], t->problem, &err) != LS_OK)
        return false;
    t->open[i] = true;
    impl->run(t->state[i], t->problem,
              &(lsi_conv_args){lsi_ring_at(&t->x, t->turn), t->w.base, t->bias.base,
                               lsi_ring_at(&t->y, t->turn), t->scratch, &stream});
    t->turn++;
    return !failure.told;
}

static void trial_release(trial *t)
{
    for (int i = 0; i < t->n; i++)
        if (t->open[i] && t->impl[i]->destroy != NULL) t->impl[i]->destroy(t->state[i]);
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

    while (i < t->n - 1 && pixels < t->impl[i]->good_from) i++;
    return i;
}

static const lsi_conv_impl *choose(const lsi_cpu_device *dev, const lsi_conv_problem *p)
{
    trial t = {.problem = p};
    char text[256];
    lsi_candidates c;
    int winner;

    for (int i = 0; lsi_conv_impls[i] != NULL && t.n < MAX_IMPLS; i++) {
        if (!lsi_conv_impls[i]->applicable(p)) continue;
        t.name[t.n] = lsi_conv_impls[i]->name;
        t.impl[t.n++] = lsi_conv_impls[i];
    }
    if (t.n == 0) return NULL;
    if (t.n > 1) t.n--; /* the plain loops end the list and only serve where nothing else does */
    problem_text(p, text, sizeof text);
    c = (lsi_candidates){text, t.n, t.name, guess(&t), try_candidate, &t, &dev->base};
    winner = dev->base.fixed ? c.guess : lsi_tune(dev->tuner, &c);
    trial_release(&t);
    return t.impl[winner];
}

ls_status lsi_plan_conv(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    lsi_conv_problem p;
    const lsi_conv_impl *impl;
    conv_state *s;
    ls_status st = LS_OK;

    if (!describe(dev, g, n, &p)) return LS_UNSUPPORTED;
    impl = choose((const lsi_cpu_device *)dev, &p);
    if (impl == NULL) return LS_UNSUPPORTED;
    s = ls_alloc(LS_MEM_PLAN, sizeof *s);
    if (s == NULL) return ls_fail(err, LS_NOMEM, "cpu: no memory");
    s->problem = p;
    if (impl->create != NULL) st = impl->create(&s->state, &s->problem, err);
    if (st != LS_OK) {
        ls_free(s); /* there is no state of `impl` to be destroyed, and no kernel that somebody else would */
        return st;
    }
    s->impl = impl;
    *out = (ls_kernel){run, destroy, s, impl->scratch != NULL ? impl->scratch(&s->problem) : 0, impl->name};
    return LS_OK;
}
