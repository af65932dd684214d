/* optim.c: the optimisers: one region over all parameters of a group as if they lay behind one another, in
 * pieces of elements.
 *
 * lars and lamb need norms of whole parameters first: every thread sums its part of each, the parts are
 * joined in the order of threads, and a second region makes the step. */
#include "backend/cpu/optim.h"

#include <math.h>

#include "backend/cpu/kernel_util.h"
#include "backend/cpu/planners.h"
#include "ops/optim_rules.h"

typedef enum optim_kind { SGD, ADAM, RMSPROP, LARS, LAMB } optim_kind;

typedef struct param {
    int64_t begin, count; /* among the elements of the group */
    int rank;
} param;

typedef struct optim_state {
    const lsi_optim_table *table;
    optim_kind kind;
    ls_optim_attr attr;
    int n_states, threads;
    int64_t total;
    param params[]; /* attr.n */
} optim_state;

enum { PIECE = 16384 }; /* elements */

typedef struct optim_call {
    const optim_state *s;
    const ls_call *call;
    lsi_optim_numbers numbers;
    double scale;  /* the loss scale */
    double *sums;  /* lars, lamb: (threads, n, 2): squares of w, and of g or the direction */
    double *ratio; /* lars, lamb: (n) trust ratios */
    ls_parallel_shares shares;
} optim_call;

/* Elements lo..hi-1 of parameter p. */
static lsi_optim_run run_of(const optim_call *c, int p, int64_t lo, int64_t hi)
{
    int n = c->s->attr.n, states = c->s->n_states;
    void *const *in = c->call->in + LSI_OPTIM_W + p, *const *out = c->call->out + 1 + p;
    lsi_optim_run r = {.n = hi - lo,
                       .w = (const float *)in[0] + lo,
                       .g = (const float *)in[n] + lo,
                       .w_new = (float *)out[0] + lo};

    if (states > 0) {
        r.s0 = (const float *)in[2 * n] + lo;
        r.s0_new = (float *)out[n] + lo;
    }
    if (states > 1) {
        r.s1 = (const float *)in[3 * n] + lo;
        r.s1_new = (float *)out[2 * n] + lo;
    }
    return r;
}

typedef void (*part_fn)(const optim_call *c, int thread, int p, const lsi_optim_run *r);

/* Calls `part` for what of each parameter lies in elements lo..hi-1 of the group. */
static void for_elements(const optim_call *c, int thread, int64_t lo, int64_t hi, part_fn part)
{
    for (int p = 0; p < c->s->attr.n && lo < hi; p++) {
        const param *q = &c->s->params[p];
        int64_t end = q->begin + q->count < hi ? q->begin + q->count : hi;
        lsi_optim_run r;
        if (lo >= end) continue;
        r = run_of(c, p, lo - q->begin, end - q->begin);
        part(c, thread, p, &r);
        lo = end;
    }
}

/* The share of a thread.  The piece of the group must not depend on threads, of which ranks may have
 * different numbers. */
static void share_of(const optim_call *c, int thread, int n_threads, int64_t *lo, int64_t *hi)
{
    const ls_optim_attr *a = &c->s->attr;
    int64_t first, end;

    ls_parallel_range_grain(c->s->total, 64, a->piece, a->pieces > 0 ? a->pieces : 1, &first, &end);
    ls_parallel_range_grain(end - first, 64, thread, n_threads, lo, hi);
    *lo += first;
    *hi += first;
}

/* This thread's share, for sums. */
static void for_share(const optim_call *c, int thread, int n_threads, part_fn part)
{
    int64_t lo, hi;

    share_of(c, thread, n_threads, &lo, &hi);
    for_elements(c, thread, lo, hi, part);
}

/* Everything, whoever comes first: each element by itself. */
static void for_pieces(optim_call *c, int thread, int n_threads, part_fn part)
{
    ls_parallel_walk w = ls_parallel_walk_begin(&c->shares, thread, n_threads);
    const int64_t pieces = c->s->total / w.n / PIECE + 1;

    for (int64_t piece; (piece = ls_parallel_walk_next(&w, pieces)) >= 0;) {
        int64_t lo, hi;
        share_of(c, w.share, w.n, &lo, &hi);
        lo += piece * PIECE;
        for_elements(c, thread, lo, piece == pieces - 1 || hi - lo < PIECE ? hi : lo + PIECE, part);
    }
}

/* -- the step ----------------------------------------------------------------------------------------- */

static void step_part(const optim_call *c, int thread, int p, const lsi_optim_run *r)
{
    const optim_state *s = c->s;
    const lsi_optim_table *t = s->table;
    lsi_optim_numbers x = c->numbers;

    (void)thread;
    switch (s->kind) {
    case SGD: (s->n_states > 0 ? t->sgd_momentum : t->sgd)(&x, r); break;
    case ADAM: t->adam(&x, r); break;
    case RMSPROP: (s->n_states > 1 ? t->rmsprop_momentum : t->rmsprop)(&x, r); break;
    case LARS:
        x.decay = s->params[p].rank > 1 ? (float)(c->ratio[p] * s->attr.weight_decay) : 0;
        x.g_scale = (float)(c->ratio[p] / c->scale);
        t->sgd_momentum(&x, r);
        break;
    case LAMB:
        x.lr = (float)((double)x.lr * c->ratio[p]);
        t->lamb_step(&x, r);
        break;
    }
}

static void step_thread(int thread, int n_threads, void *arg)
{
    for_pieces(arg, thread, n_threads, step_part);
}

/* -- norms ---------------------------------------------------------------------------------------------- */

static void norm_part(const optim_call *c, int thread, int p, const lsi_optim_run *r)
{
    double *sums = c->sums + 2 * ((int64_t)thread * c->s->attr.n + p);

    sums[0] += c->s->table->square_sum(r->w, r->n);
    if (c->s->kind == LARS)
        sums[1] += c->s->table->square_sum(r->g, r->n);
    else
        c->s->table->lamb_moments(&c->numbers, r, &sums[1]);
}

static void norm_thread(int thread, int n_threads, void *arg)
{
    const optim_call *c = arg;

    memset(c->sums + 2 * (int64_t)thread * c->s->attr.n, 0, 2 * sizeof(double) * (size_t)c->s->attr.n);
    for_share(c, thread, n_threads, norm_part);
}

static double trust_ratio(const optim_call *c, int p, double w, double d)
{
    const ls_optim_attr *a = &c->s->attr;

    if (c->s->kind == LAMB) return w != 0 && d != 0 ? w / d : 1;
    if (c->s->params[p].rank < 2) return 1;
    d /= c->scale;
    return w != 0 && d != 0 ? a->trust * w / (d + a->weight_decay * w) : 1;
}

static void measure_norms(optim_call *c)
{
    int n = c->s->attr.n;

    ls_parallel_run(c->s->threads, norm_thread, c);
    for (int p = 0; p < n; p++) {
        double w = 0, d = 0;
        for (int t = 0; t < c->s->threads; t++) {
            w += c->sums[2 * ((int64_t)t * n + p)];
            d += c->sums[2 * ((int64_t)t * n + p) + 1];
        }
        c->ratio[p] = trust_ratio(c, p, sqrt(w), sqrt(d));
    }
}

/* -- no step at all: everything as it was ------------------------------------------------------------- */

static void keep(float *to, const float *from, int64_t n)
{
    if (to != from) memcpy(to, from, sizeof *to * (size_t)n);
}

static void leave_part(const optim_call *c, int thread, int p, const lsi_optim_run *r)
{
    (void)thread, (void)p;
    keep(r->w_new, r->w, r->n);
    if (c->s->n_states > 0) keep(r->s0_new, r->s0, r->n);
    if (c->s->n_states > 1) keep(r->s1_new, r->s1, r->n);
}

static void leave_thread(int thread, int n_threads, void *arg)
{
    for_pieces(arg, thread, n_threads, leave_part);
}

/* -- planning ----------------------------------------------------------------------------------------- */

static void adam_numbers(const optim_state *s, double lr, double t, lsi_optim_numbers *x)
{
    const ls_optim_attr *a = &s->attr;
    double c1 = 1 - pow(a->beta1, t), c2 = sqrt(1 - pow(a->beta2, t));

    x->b1 = (float)a->beta1;
    x->b1_rest = (float)(1 - a->beta1);
    x->b2 = (float)a->beta2;
    x->b2_rest = (float)(1 - a->beta2);
    if (s->kind == LAMB) {
        x->step = (float)(1 / c1);
        x->root_scale = (float)(1 / c2);
    } else if (a->form == LS_ADAM_TF) {
        x->step = (float)(lr * c2 / c1);
        x->root_scale = 1;
    } else {
        x->step = (float)(lr / c1);
        x->root_scale = (float)(1 / c2);
    }
    if (s->kind == ADAM && a->form == LS_ADAM_W) {
        x->decay = 0;
        x->w_decay = (float)(lr * a->weight_decay);
    }
}

static void run(void *state, const ls_call *call)
{
    const optim_state *s = state;
    double lr = (double)*(const float *)call->in[LSI_OPTIM_LR];
    double scale = (double)*(const float *)call->in[LSI_OPTIM_SCALE];
    int32_t t = *(const int32_t *)call->in[LSI_OPTIM_T] + 1;
    optim_call c = {.s = s, .call = call, .scale = scale, .ratio = call->scratch};

    if (scale == 0) {
        ls_parallel_run(s->threads, leave_thread, &c);
        *(int32_t *)call->out[0] = t - 1;
        return;
    }
    c.sums = c.ratio + s->attr.n;
    c.numbers = (lsi_optim_numbers){.g_scale = (float)(1 / scale),
                                    .decay = (float)s->attr.weight_decay,
                                    .lr = (float)lr,
                                    .momentum = (float)s->attr.momentum,
                                    .nesterov = s->attr.nesterov,
                                    .b2 = (float)s->attr.alpha,
                                    .b2_rest = (float)(1 - s->attr.alpha),
                                    .eps = (float)s->attr.eps};
    if (s->kind == ADAM || s->kind == LAMB) adam_numbers(s, lr, (double)t, &c.numbers);
    if (s->kind == LARS || s->kind == LAMB) measure_norms(&c);
    ls_parallel_run(s->threads, step_thread, &c);
    *(int32_t *)call->out[0] = s->attr.more ? t - 1 : t;
}

static optim_kind kind_of(const ls_op *op)
{
    if (op == &ls_op_sgd) return SGD;
    if (op == &ls_op_adam) return ADAM;
    if (op == &ls_op_rmsprop) return RMSPROP;
    return op == &ls_op_lars ? LARS : LAMB;
}

const lsi_optim_table *lsi_optimiser_table(void)
{
    return LSI_PICK(lsi_optim_avx512, lsi_optim_avx2);
}

ls_status lsi_plan_optimiser(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    const lsi_optim_table *table = lsi_optimiser_table();
    const ls_optim_attr *a = n->attr;
    optim_state *s;
    size_t scratch = 0;

    if (table == NULL || !lsi_ins_are(g, n, LSI_OPTIM_W, n->n_in, LS_F32, &ls_layout_plain) ||
        !lsi_ins_are(g, n, LSI_OPTIM_LR, LSI_OPTIM_T, LS_F32, &ls_layout_plain))
        return LS_UNSUPPORTED;
    s = ls_alloc(LS_MEM_PLAN, sizeof *s + (size_t)a->n * sizeof s->params[0]);
    if (s == NULL) return ls_fail(err, LS_NOMEM, "cpu: no memory for a kernel");
    s->table = table;
    s->kind = kind_of(n->op);
    s->attr = *a;
    s->n_states = ls_optim_states(n->op, a);
    for (int p = 0; p < a->n; p++) {
        ls_shape w = lsi_in(g, n, LSI_OPTIM_W + p)->shape;
        s->params[p] = (param){s->total, ls_shape_count(w), w.rank};
        s->total += s->params[p].count;
    }
    s->threads = lsi_threads_for(dev, s->total / (a->pieces > 0 ? a->pieces : 1));
    if (s->kind == LARS || s->kind == LAMB)
        scratch = (size_t)(1 + 2 * s->threads) * (size_t)a->n * sizeof(double);
    *out = (ls_kernel){run, ls_free, s, scratch, table->impl};
    return LS_OK;
}
