/* slim.c: products of 16-bit numbers with few rows, or sums over few, against the library's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/choice.h"
#include "backend/cuda/kernel_util.h"
#include "backend/cuda/library.h"
#include "backend/cuda/planners.h"

/* Beyond that many rows, or terms of a sum over rows, a library's tiles are full. */
enum { MOST = 128 };

typedef struct state {
    const lsi_cuda_device *dev;
    lsi_cuda_slim_args args;
    bool biased, adds;
} state;

static void run(void *ctx, const ls_call *call)
{
    const state *s = ctx;
    lsi_cuda_slim_args a = s->args;

    a.a = call->in[0];
    a.b = call->in[1];
    a.bias = s->biased ? call->in[2] : NULL;
    a.more = s->adds ? call->in[3] : NULL;
    a.c = call->out[0];
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.slim(lsi_cuda_stream_of(s->dev, call), &a));
}

/* Whether the kernel has this product; LOCKSTEP_CUDA_SLIM=off: it has none. */
static bool describe(const lsi_cuda_device *d, const ls_graph *g, const ls_node *n, state *s)
{
    const char *word = getenv("LOCKSTEP_CUDA_SLIM");
    const ls_matmul_attr *attr = n->attr;
    lsi_cuda_product p;

    if (word != NULL && strcmp(word, "off") == 0) return false;
    if (!lsi_cuda_product_of(d, g, n, &p) || p.dtype == LS_F32 || p.batch != 1) return false;
    if (p.trans_a ? p.trans_b || p.k > MOST : p.m > MOST) return false;
    if (p.m > INT32_MAX || p.n > INT32_MAX || p.k > INT32_MAX || p.m * p.n > INT32_MAX) return false;
    *s = (state){.dev = d,
                 .args = {.m = p.m,
                          .n = p.n,
                          .k = p.k,
                          .trans_a = p.trans_a,
                          .trans_b = p.trans_b,
                          .dtype = p.dtype,
                          .out = p.out,
                          .act = (int)attr->act,
                          .slope = (float)attr->slope},
                 .biased = n->n_in > 2,
                 .adds = n->n_in > 3};
    return true;
}

/* -- the choice -------------------------------------------------------------------------------------------
 */

typedef struct candidates {
    ls_device *dev;
    const ls_graph *g;
    const ls_node *n;
    state s;
} candidates;

enum { SLIM, LIBRARY };

static ls_status make(const void *ctx, int i, ls_kernel *out, ls_err *err)
{
    const candidates *c = ctx;

    if (i == LIBRARY) return lsi_cuda_plan_matmul(c->dev, c->g, c->n, out, err);
    return lsi_cuda_kernel_make(out, run, &c->s, sizeof c->s, 0, "slim", err);
}

ls_status lsi_cuda_plan_slim(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    static const char *const names[] = {"slim", "library"};
    candidates c = {.dev = dev, .g = g, .n = n};
    const lsi_cuda_slim_args *a = &c.s.args;
    char problem[200];

    if (!describe(lsi_cuda_of(dev), g, n, &c.s)) return lsi_cuda_plan_matmul(dev, g, n, out, err);
    snprintf(problem, sizeof problem, "slim %s m%lld n%lld k%lld %c%c after%d%d%s%s", ls_dtype_name(a->dtype),
             (long long)a->m, (long long)a->n, (long long)a->k, a->trans_a ? 't' : 'n',
             a->trans_b ? 't' : 'n', c.s.biased, a->act, c.s.adds ? " adds" : "",
             a->out != a->dtype ? " wide" : "");
    return lsi_cuda_choose(&(lsi_cuda_choice){dev, g, n, problem, 2, names, SLIM, make, &c}, out, err);
}
