/* plan_matmul.c: from a matmul node to the fastest applicable matrix product. */
#include <stdio.h>
#include <string.h>

#include "backend/cpu/b16.h"
#include "backend/cpu/conv_util.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/planners.h"
#include "backend/cpu/widen.h"
#include "ops/ops.h"

#define MAX_IMPLS 12

/* An implementation and what it is given: the problem as it is, or the same in fp32, with copies of whatever
 * is stored in 16 bits. */
typedef struct variant {
    const lsi_gemm_impl *impl;
    lsi_gemm_problem problem;
} variant;

typedef struct matmul_state {
    lsi_gemm_problem problem; /* as stored */
    variant v;
    char impl[LSI_WIDE_NAME];
} matmul_state;

/* -- fp32 kernels on 16 bits
 * ------------------------------------------------------------------------------------ */

typedef struct operands {
    void *at[4]; /* A, B, bias, C */
    ls_dtype type[4];
    int64_t count[4];
} operands;

static operands operands_of(const lsi_gemm_problem *p, void *a, void *b, void *bias, void *c)
{
    return (operands){{a, b, bias, c},
                      {p->a_type, p->b_type, p->bias_type, p->c_type},
                      {p->batch * p->m * p->k, (p->stride_b > 0 ? p->batch : 1) * p->k * p->n,
                       p->has_bias ? p->n : 0, p->batch * p->m * p->n}};
}

static size_t variant_scratch(const variant *v, const lsi_gemm_problem *stored)
{
    const operands o = operands_of(stored, NULL, NULL, NULL, NULL);
    size_t bytes = lsi_align64(v->impl->scratch != NULL ? v->impl->scratch(&v->problem) : 0);

    for (int i = 0; i < 4 && lsi_gemm_is_f32(&v->problem); i++)
        if (o.type[i] != LS_F32) bytes += lsi_align64((size_t)o.count[i] * sizeof(float));
    return bytes;
}

static ls_status variant_run(const variant *v, const lsi_gemm_problem *stored, const operands *o,
                             void *scratch)
{
    char *at = (char *)scratch + lsi_align64(v->impl->scratch != NULL ? v->impl->scratch(&v->problem) : 0);
    void *given[4];
    ls_status st;

    for (int i = 0; i < 4; i++) {
        given[i] = o->at[i];
        if (o->type[i] == LS_F32 || !lsi_gemm_is_f32(&v->problem)) continue;
        given[i] = at;
        if (i < 3) lsi_widen(given[i], o->at[i], o->type[i], o->count[i], stored->threads);
        at += lsi_align64((size_t)o->count[i] * sizeof(float));
    }
    st = v->impl->run(&v->problem, given[0], given[1], given[3], stored->has_bias ? given[2] : NULL, scratch);
    if (given[3] != o->at[3]) lsi_narrow(o->at[3], given[3], o->type[3], o->count[3], stored->threads);
    return st;
}

static void run(void *state, const ls_call *c)
{
    const matmul_state *s = state;
    const operands o =
        operands_of(&s->problem, c->in[0], c->in[1], s->problem.has_bias ? c->in[2] : NULL, c->out[0]);
    const ls_status st = variant_run(&s->v, &s->problem, &o, c->scratch);

    if (st != LS_OK) ls_stream_fail(c->stream, st, "%s: a product of matrices failed", s->v.impl->name);
}

static bool float_type(ls_dtype t)
{
    return t == LS_F32 || t == LS_BF16 || t == LS_F16;
}

/* A product of (..., M, K) with one (K, N) for all is a single product of (... * M, K) when A is not
 * transposed. */
static bool describe(const ls_device *dev, const ls_graph *g, const ls_node *n, lsi_gemm_problem *p)
{
    const ls_matmul_attr *a = n->attr;
    const ls_vinfo *va = g->values[n->in[0]], *vb = g->values[n->in[1]];
    ls_shape A = va->shape, B = vb->shape, C = *ls_node_out_shape(g, n, 0);

    memset(p, 0, sizeof *p);
    p->a_type = va->dtype, p->b_type = vb->dtype, p->c_type = g->values[n->out[0]]->dtype;
    if (n->n_in > 2) p->bias_type = g->values[n->in[2]]->dtype;
    if (!float_type(p->a_type) || !float_type(p->b_type) || !float_type(p->c_type) ||
        !float_type(p->bias_type) || a->act > LS_ACT_TANH)
        return false;
    p->m = C.dim[C.rank - 2], p->n = C.dim[C.rank - 1];
    p->k = A.dim[A.rank - (a->trans_a ? 2 : 1)];
    p->lda = A.dim[A.rank - 1], p->ldb = B.dim[B.rank - 1], p->ldc = p->n;
    p->trans_a = a->trans_a, p->trans_b = a->trans_b;
    p->batch = 1;
    for (int i = 0; i < A.rank - 2; i++) p->batch *= A.dim[i];
    p->stride_a = p->m * p->k;
    p->stride_b = B.rank > 2 ? p->k * p->n : 0;
    p->stride_c = p->m * p->n;
    if (B.rank == 2 && !a->trans_a) {
        p->m *= p->batch;
        p->batch = 1;
    }
    if (p->batch < 1) return false; /* empty: the reference kernel does nothing just as well */
    p->has_bias = n->n_in > 2;
    p->act = (lsi_conv_act)a->act; /* the two enumerations agree up to tanh */
    p->slope = (float)a->slope;
    p->threads = dev->threads;
    return true;
}

_Static_assert((int)LS_ACT_NONE == (int)LSI_ACT_NONE && (int)LS_ACT_RELU == (int)LSI_ACT_RELU &&
                   (int)LS_ACT_LEAKY == (int)LSI_ACT_LEAKY && (int)LS_ACT_TANH == (int)LSI_ACT_TANH,
               "activations are passed on by number");

/* -- timing candidates
 * ------------------------------------------------------------------------------------------ */

typedef struct trial {
    const lsi_gemm_problem *problem;
    variant v[MAX_IMPLS];
    const char *name[MAX_IMPLS];
    int n;
    lsi_ring a, b, c, bias;
    void *scratch;
    size_t scratch_bytes; /* enough for every candidate */
    int turn;
} trial;

/* Small numbers stay small numbers when they are stored in 16 bits. */
static void narrow_ring(const lsi_ring *r, ls_dtype t)
{
    for (int i = 0; t != LS_F32 && i < r->copies; i++)
        lsi_narrow(lsi_ring_at(r, i), lsi_ring_at(r, i), t, r->count, 1);
}

/* Matrices are made when the first candidate runs: a remembered choice needs none. */
static bool make_matrices(trial *t)
{
    const lsi_gemm_problem *p = t->problem;
    const int64_t a = p->batch * p->m * p->k, b = (p->stride_b > 0 ? p->batch : 1) * p->k * p->n;
    const int64_t c = p->batch * p->m * p->n;
    const int copies = lsi_ring_copies(a + b + c);

    if (t->scratch != NULL) return true;
    if (!lsi_ring_make(&t->a, a, copies) || !lsi_ring_make(&t->b, b, copies) ||
        !lsi_ring_make(&t->c, c, copies) || !lsi_ring_make(&t->bias, p->n, 1))
        return false;
    narrow_ring(&t->a, p->a_type);
    narrow_ring(&t->b, p->b_type);
    narrow_ring(&t->bias, p->bias_type);
    t->scratch = ls_alloc(LS_MEM_TUNE, t->scratch_bytes);
    return t->scratch != NULL;
}

static lsi_outcome try_candidate(void *ctx, int i)
{
    trial *t = ctx;
    operands o;
    ls_status st;

    if (!make_matrices(t)) return LSI_CANNOT_NOW;
    o = operands_of(t->problem, lsi_ring_at(&t->a, t->turn), lsi_ring_at(&t->b, t->turn), t->bias.base,
                    lsi_ring_at(&t->c, t->turn));
    t->turn++;
    st = variant_run(&t->v[i], t->problem, &o, t->scratch);
    return st == LS_OK ? LSI_RAN : st == LS_NOMEM ? LSI_CANNOT_NOW : LSI_CANNOT;
}

static void problem_text(const lsi_gemm_problem *p, char *buf, size_t n)
{
    const int used = snprintf(buf, n, "gemm m%lld n%lld k%lld %c%c batch%lld bias%d act%d", (long long)p->m,
                              (long long)p->n, (long long)p->k, p->trans_a ? 't' : 'n',
                              p->trans_b ? 't' : 'n', (long long)p->batch, p->has_bias, (int)p->act);

    if (!lsi_gemm_is_f32(p) && used > 0 && (size_t)used < n)
        snprintf(buf + used, n - (size_t)used, " a%s b%s c%s by %s", ls_dtype_name(p->a_type),
                 ls_dtype_name(p->b_type), ls_dtype_name(p->c_type), lsi_b16_name_here());
}

/* Every implementation that can do it, those of fp32 with copies where need be. */
static void find_variants(trial *t)
{
    const lsi_gemm_problem *p = t->problem;
    lsi_gemm_problem wide = *p;

    wide.a_type = wide.b_type = wide.c_type = wide.bias_type = LS_F32;
    for (int i = 0; lsi_gemm_impls[i] != NULL && t->n < MAX_IMPLS; i++) {
        const lsi_gemm_impl *impl = lsi_gemm_impls[i];
        const lsi_gemm_problem *given = impl->applicable(p) ? p : &wide;
        size_t bytes;
        if (!impl->applicable(given)) continue;
        t->name[t->n] = impl->name;
        t->v[t->n] = (variant){impl, *given};
        bytes = variant_scratch(&t->v[t->n++], p);
        if (bytes > t->scratch_bytes) t->scratch_bytes = bytes;
    }
}

static bool choose(const lsi_cpu_device *dev, const lsi_gemm_problem *p, variant *out)
{
    trial t = {.problem = p};
    char text[240];
    int winner = 0;

    find_variants(&t);
    if (t.n == 0) return false;
    if (t.n > 1 && !lsi_gemm_is_f32(p)) t.n--; /* the plain loops, which end the list */
    problem_text(p, text, sizeof text);
    if (t.n > 1 && !dev->base.fixed)
        winner = lsi_tune(dev->tuner, &(lsi_candidates){text, t.n, t.name, 0, try_candidate, &t, &dev->base});
    lsi_ring_free(&t.a);
    lsi_ring_free(&t.b);
    lsi_ring_free(&t.c);
    lsi_ring_free(&t.bias);
    ls_free(t.scratch);
    *out = t.v[winner];
    return true;
}

ls_status lsi_plan_matmul(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    lsi_gemm_problem p;
    matmul_state *s;
    variant v;

    if (n->n_in > 3 || !describe(dev, g, n, &p)) return LS_UNSUPPORTED;
    if (!choose((const lsi_cpu_device *)dev, &p, &v)) return LS_UNSUPPORTED;
    s = ls_alloc(LS_MEM_PLAN, sizeof *s);
    if (s == NULL) return ls_fail(err, LS_NOMEM, "cpu: no memory");
    *s = (matmul_state){.problem = p, .v = v};
    lsi_wide_name(s->impl, v.impl->name);
    *out = (ls_kernel){run, ls_free, s, variant_scratch(&v, &p),
                       lsi_gemm_is_f32(&v.problem) == lsi_gemm_is_f32(&p) ? v.impl->name : s->impl};
    return LS_OK;
}
