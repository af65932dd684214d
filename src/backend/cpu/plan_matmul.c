/* plan_matmul.c: from a matmul node to the fastest applicable matrix product. */
#include <stdio.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/planners.h"
#include "ops/ops.h"

#define MAX_IMPLS 8

typedef struct matmul_state {
    lsi_gemm_problem problem;
    const lsi_gemm_impl *impl;
} matmul_state;

static void run(void *state, const ls_call *c)
{
    const matmul_state *s = state;
    const ls_status st = s->impl->run(&s->problem, c->in[0], c->in[1], c->out[0],
                                      s->problem.has_bias ? c->in[2] : NULL, c->scratch);

    if (st != LS_OK) ls_stream_fail(c->stream, st, "%s: a product of matrices failed", s->impl->name);
}

/* A product of (..., M, K) with one (K, N) for all is a single product of (... * M, K) when A is not
 * transposed. */
static bool describe(const ls_device *dev, const ls_graph *g, const ls_node *n, lsi_gemm_problem *p)
{
    const ls_matmul_attr *a = n->attr;
    const ls_vinfo *va = g->values[n->in[0]], *vb = g->values[n->in[1]];
    ls_shape A = va->shape, B = vb->shape, C = *ls_node_out_shape(g, n, 0);

    memset(p, 0, sizeof *p);
    if (va->dtype != LS_F32 || vb->dtype != LS_F32 || a->act > LS_ACT_TANH) return false;
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
    const lsi_gemm_impl *impl[MAX_IMPLS];
    const char *name[MAX_IMPLS];
    int n;
    lsi_ring a, b, c, bias;
    void *scratch;
    size_t scratch_bytes; /* enough for every candidate */
    int turn;
} trial;

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
    t->scratch = ls_alloc(LS_MEM_TUNE, t->scratch_bytes);
    return t->scratch != NULL;
}

static bool try_candidate(void *ctx, int i)
{
    trial *t = ctx;
    ls_status st;

    if (!make_matrices(t)) return false;
    st = t->impl[i]->run(t->problem, lsi_ring_at(&t->a, t->turn), lsi_ring_at(&t->b, t->turn),
                         lsi_ring_at(&t->c, t->turn), t->problem->has_bias ? t->bias.base : NULL, t->scratch);
    t->turn++;
    return st == LS_OK;
}

static const lsi_gemm_impl *choose(const lsi_cpu_device *dev, const lsi_gemm_problem *p)
{
    trial t = {.problem = p};
    char text[200];
    int winner;

    for (int i = 0; lsi_gemm_impls[i] != NULL && t.n < MAX_IMPLS; i++) {
        size_t bytes;
        if (!lsi_gemm_impls[i]->applicable(p)) continue;
        bytes = lsi_gemm_impls[i]->scratch != NULL ? lsi_gemm_impls[i]->scratch(p) : 0;
        if (bytes > t.scratch_bytes) t.scratch_bytes = bytes;
        t.name[t.n] = lsi_gemm_impls[i]->name;
        t.impl[t.n++] = lsi_gemm_impls[i];
    }
    if (t.n < 2) return t.n > 0 ? t.impl[0] : NULL;
    snprintf(text, sizeof text, "gemm m%lld n%lld k%lld %c%c batch%lld bias%d act%d", (long long)p->m,
             (long long)p->n, (long long)p->k, p->trans_a ? 't' : 'n', p->trans_b ? 't' : 'n',
             (long long)p->batch, p->has_bias, (int)p->act);
    winner =
        dev->base.fixed
            ? 0
            : lsi_tune(dev->tuner, &(lsi_candidates){text, t.n, t.name, 0, try_candidate, &t, &dev->base});
    lsi_ring_free(&t.a);
    lsi_ring_free(&t.b);
    lsi_ring_free(&t.c);
    lsi_ring_free(&t.bias);
    ls_free(t.scratch);
    return t.impl[winner];
}

ls_status lsi_plan_matmul(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    lsi_gemm_problem p;
    const lsi_gemm_impl *impl;
    matmul_state *s;

    if (!describe(dev, g, n, &p)) return LS_UNSUPPORTED;
    impl = choose((const lsi_cpu_device *)dev, &p);
    if (impl == NULL) return LS_UNSUPPORTED;
    s = ls_alloc(LS_MEM_PLAN, sizeof *s);
    if (s == NULL) return ls_fail(err, LS_NOMEM, "cpu: no memory");
    *s = (matmul_state){p, impl};
    *out = (ls_kernel){run, ls_free, s, impl->scratch != NULL ? impl->scratch(&p) : 0, impl->name};
    return LS_OK;
}
