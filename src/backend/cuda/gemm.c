/* gemm.c: products of our own and what follows them (module/gemm_90a.cu), where they are faster than the
 * library's and passes over memory behind them: bf16, plain, compute capability 9.0.
 *
 * Candidates are our ways to divide the product, then the library's. */
#include <stdio.h>

#include "backend/cuda/chain.h"
#include "backend/cuda/choice.h"
#include "backend/cuda/groups.h"
#include "backend/cuda/kernel_util.h"
#include "backend/cuda/matmul.h"
#include "backend/cuda/planners.h"

/* Multiplications of a product that are worth a choice; below, starting a kernel is what counts. */
#define LEAST ((double)(1 << 28))

/* -- ours -------------------------------------------------------------------------------------------------
 */

typedef struct gemm_state {
    const lsi_cuda_device *dev;
    lsi_cuda_gemm_args args;
    bool biased;
} gemm_state;

static void run_gemm(void *state, const ls_call *call)
{
    const gemm_state *s = state;
    lsi_cuda_gemm_args a = s->args;

    a.a = call->in[0];
    a.b = call->in[1];
    a.bias = s->biased ? call->in[2] : NULL;
    a.c = call->out[0];
    if (a.after == LSI_GEMM_ADD) a.more = call->in[3];
    if (a.after == LSI_GEMM_GELU) a.y = call->out[1];
    if (a.after == LSI_GEMM_GELU_GRAD) {
        a.more = call->in[2];
        a.sums = call->out[1];
        a.partial = call->scratch;
    }
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.gemm(lsi_cuda_stream_of(s->dev, call), &a));
}

/* All but operands; false: there is no kernel for it. */
static bool describe(const lsi_cuda_device *d, const ls_graph *g, const ls_node *n, lsi_gemm_after after,
                     lsi_cuda_gemm_args *a)
{
    lsi_cuda_product p;

    if (d->no_gemm || d->about.major != 9 || d->about.minor != 0 || !lsi_cuda_describe_product(d, g, n, &p))
        return false;
    if (p.dtype != LS_BF16 || p.out != LS_BF16 || p.batch != 1 || p.m * p.n > INT32_MAX) return false;
    if (((const ls_matmul_attr *)n->attr)->act != LS_ACT_NONE) return false;
    *a = (lsi_cuda_gemm_args){
        .m = p.m, .n = p.n, .k = p.k, .trans_a = p.trans_a, .trans_b = p.trans_b, .after = after};
    return lsi_gemm_fits(a);
}

static bool is_worth_it(const lsi_cuda_gemm_args *a)
{
    return (double)a->m * (double)a->n * (double)a->k >= LEAST;
}

bool lsi_cuda_wants_gelu(const ls_device *dev, const ls_graph *g, const ls_fusion *f)
{
    const lsi_gemm_after after = f->outer->op == &ls_op_gelu ? LSI_GEMM_GELU : LSI_GEMM_GELU_GRAD;
    lsi_cuda_gemm_args a;

    return describe(lsi_cuda_of(dev), g, f->inner, after, &a) && is_worth_it(&a);
}

/* -- the library's, and passes ----------------------------------------------------------------------------
 */

typedef struct passes_state {
    const lsi_cuda_device *dev;
    ls_kernel product;
    lsi_cuda_chain_args chain;
    bool back;
    lsi_cuda_sum_args sum; /* with `back` */
} passes_state;

static void run_passes(void *state, const ls_call *call)
{
    const passes_state *s = state;
    const lsi_cuda_api *api = s->dev->api;
    lsi_cuda_stream stream = lsi_cuda_stream_of(s->dev, call);
    lsi_cuda_chain_args a = s->chain;
    lsi_cuda_sum_args sum = s->sum;
    int code;

    s->product.run(s->product.state, call);
    a.in[0] = call->out[0];
    a.in[1] = s->back ? call->in[2] : NULL;
    a.out = call->out[s->back ? 0 : 1];
    code = api->launch.chain(stream, &a);
    if (code == 0 && s->back) {
        if (sum.groups.splits > 1) sum.groups.partial = call->scratch;
        sum.x = call->out[0];
        sum.out = call->out[1];
        code = api->launch.sum(stream, &sum);
    }
    lsi_cuda_launched(s->dev, call, code);
}

static void destroy_passes(void *state)
{
    passes_state *s = state;

    if (s->product.destroy != NULL) s->product.destroy(s->product.state);
    lsi_cuda_tickets_free(s->dev, s->sum.groups.tickets);
    ls_free(s);
}

static void describe_chain(ls_device *dev, const lsi_cuda_gemm_args *p, bool back, lsi_cuda_chain_args *a)
{
    *a = (lsi_cuda_chain_args){.dtype = LS_BF16, .n_in = back ? 2 : 1, .count = p->m * p->n, .vector = 8};
    a->chain.n_steps = 1;
    a->chain.step[0].pw = back ? LS_PW_GELU_GRAD : LS_PW_GELU;
    a->chain.step[0].b = back ? 1 : 0;
    a->compiled = lsi_cuda_chain_kernel((lsi_cuda_device *)dev, a);
}

static ls_status plan_passes(ls_device *dev, const ls_graph *g, const ls_node *n, const lsi_cuda_gemm_args *p,
                             ls_kernel *out, ls_err *err)
{
    const bool back = p->after == LSI_GEMM_GELU_GRAD;
    passes_state s = {.dev = lsi_cuda_of(dev), .back = back, .sum = {.dtype = LS_BF16}};
    lsi_cuda_groups *groups = &s.sum.groups;
    size_t scratch = 0;
    ls_status st = LS_OK;

    *groups = (lsi_cuda_groups){.columns = true, .outer = 1, .groups = p->n, .inner = p->m, .splits = 1};
    LS_TRY(lsi_cuda_plan_product(dev, g, n, back ? 2 : 3, &s.product, err));
    describe_chain(dev, p, back, &s.chain);
    if (back) {
        lsi_cuda_groups_split(s.dev, LS_BF16, groups);
        scratch = lsi_cuda_groups_scratch(groups, 1);
        st = lsi_cuda_tickets(s.dev, lsi_cuda_groups_tickets(groups, LS_BF16), &groups->tickets, err);
    }
    if (st == LS_OK)
        st = lsi_cuda_kernel_make(out, run_passes, &s, sizeof s,
                                  scratch > s.product.scratch_bytes ? scratch : s.product.scratch_bytes,
                                  "cublaslt and passes", err);
    if (st == LS_OK) {
        out->destroy = destroy_passes;
        return st;
    }
    lsi_cuda_tickets_free(s.dev, groups->tickets);
    s.product.destroy(s.product.state);
out:
    return st;
}

/* -- the choice -------------------------------------------------------------------------------------------
 */

typedef struct candidates {
    ls_device *dev;
    const ls_graph *g;
    const ls_node *n;
    lsi_cuda_gemm_args args;
} candidates;

static ls_status make(const void *ctx, int i, ls_kernel *out, ls_err *err)
{
    const candidates *c = ctx;
    const lsi_gemm_after after = c->args.after;
    gemm_state s = {.dev = lsi_cuda_of(c->dev), .args = c->args};
    const size_t partial = (size_t)(LSI_GEMM_PARTIAL(s.args.m) * s.args.n) * sizeof(float);

    if (i == LSI_GEMM_WAYS)
        return after == LSI_GEMM_GELU || after == LSI_GEMM_GELU_GRAD
                   ? plan_passes(c->dev, c->g, c->n, &c->args, out, err)
                   : lsi_cuda_plan_product(c->dev, c->g, c->n, c->n->n_in, out, err);
    s.args.way = i;
    if (after == LSI_GEMM_GELU_GRAD) s.args.sums_dtype = lsi_cuda_out(c->g, c->n, 1)->dtype;
    s.biased = after != LSI_GEMM_GELU_GRAD && c->n->n_in > 2;
    return lsi_cuda_kernel_make(out, run_gemm, &s, sizeof s, after == LSI_GEMM_GELU_GRAD ? partial : 0,
                                "gemm", err);
}

static ls_status choose(candidates *c, ls_kernel *out, ls_err *err)
{
    static const char *const names[LSI_GEMM_WAYS + 1] = {"0", "1", "2", "3", "library"};
    const lsi_cuda_gemm_args *a = &c->args;
    char problem[200];

    snprintf(problem, sizeof problem, "gemm m%lld n%lld k%lld %c%c after%d bias%d", (long long)a->m,
             (long long)a->n, (long long)a->k, a->trans_a ? 't' : 'n', a->trans_b ? 't' : 'n', (int)a->after,
             c->n->n_in > 2);
    return lsi_cuda_choose(
        &(lsi_cuda_choice){c->dev, c->g, c->n, problem, LSI_GEMM_WAYS + 1, names, LSI_GEMM_WAYS, make, c},
        out, err);
}

ls_status lsi_cuda_plan_matmul(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                               ls_err *err)
{
    const lsi_gemm_after after = n->n_in > 3 ? LSI_GEMM_ADD : LSI_GEMM_BIAS;
    candidates c = {dev, g, n, {0}};

    if (describe(lsi_cuda_of(dev), g, n, after, &c.args) && is_worth_it(&c.args)) return choose(&c, out, err);
    return lsi_cuda_plan_product(dev, g, n, n->n_in, out, err);
}

ls_status lsi_cuda_plan_matmul_gelu(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                    ls_err *err)
{
    const lsi_gemm_after after = n->op == &ls_op_matmul_gelu ? LSI_GEMM_GELU : LSI_GEMM_GELU_GRAD;
    candidates c = {dev, g, n, {0}};

    if (!describe(lsi_cuda_of(dev), g, n, after, &c.args)) return LS_UNSUPPORTED;
    return choose(&c, out, err);
}
