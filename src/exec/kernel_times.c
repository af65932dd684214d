/* kernel_times.c: a stopwatch on kernels, and what they are told apart by. */
#include "exec/kernel_times.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/log.h"
#include "exec/plan_internal.h"

enum { ALIGN = 64, ATTR_TEXT = 4096 };

#define MOST_BYTES   ((size_t)512 << 20) /* of tensors that are made for a kernel */
#define COLD_BYTES   ((size_t)96 << 20)  /* beyond, what was used before is in no cache any more */
#define MOST_COPIES  3
#define MOST_SECONDS 6.0 /* of all that is timed */
#define LONG_SECONDS 1.0 /* what is likely to take more is not timed: the rate of others will do */
#define SPENT_ENOUGH 0.02
#define MIN_RUNS     3
#define MAX_RUNS     20

/* Kernels of nodes that are alike in all that time depends on. */
typedef struct problem {
    uint64_t key;
    double flops, bytes; /* one of the two is what its time is guessed by; the other is 0 */
    double seconds;      /* of a run; below 0: it was not timed */
    int count;           /* in the plan that is looked at */
    int32_t node;        /* one of them in that plan, by its place in the order */
} problem;

struct ls_kernel_times {
    ls_machine_rates rates;
    double spent;                  /* seconds that timing has taken */
    double timed_flops, timed_for; /* of those of the first kind: what they computed, and how long it took */
    problem *list;
    size_t n, cap;
};

ls_status ls_kernel_times_create(ls_kernel_times **out, ls_machine_rates rates, ls_err *err)
{
    ls_kernel_times *t = ls_alloc(LS_MEM_PLAN, sizeof *t);

    *out = t;
    if (t == NULL) return ls_fail(err, LS_NOMEM, "times of kernels: no memory");
    t->rates = rates;
    return LS_OK;
}

void ls_kernel_times_destroy(ls_kernel_times *t)
{
    if (t == NULL) return;
    ls_free(t->list);
    ls_free(t);
}

/* -- which are alike --------------------------------------------------------------------------------------
 */

static uint64_t add(uint64_t sum, const void *bytes, size_t n)
{
    return XXH3_64bits_withSeed(bytes, n, sum);
}

static uint64_t add_value(uint64_t sum, const ls_vinfo *v)
{
    const int64_t type[] = {v->dtype, v->shape.rank};

    sum = add(add(sum, type, sizeof type), v->shape.dim, sizeof v->shape.dim[0] * (size_t)v->shape.rank);
    return add(sum, v->layout->name, strlen(v->layout->name) + 1);
}

static uint64_t key_of(const ls_graph *g, const lsi_step *s)
{
    const ls_node *n = s->node;
    char text[ATTR_TEXT] = "";
    uint64_t sum = add(0, n->op->name, strlen(n->op->name) + 1);

    if (n->op->attr_text != NULL) n->op->attr_text(n->attr, text, sizeof text);
    sum = add(sum, text, strlen(text) + 1);
    if (s->kernel.impl != NULL) sum = add(sum, s->kernel.impl, strlen(s->kernel.impl) + 1);
    for (int k = 0; k < n->n_in; k++) sum = add_value(sum, g->values[n->in[k]]);
    for (int k = 0; k < n->n_out; k++) sum = add_value(sum, g->values[n->out[k]]);
    return sum;
}

static problem *find(const ls_kernel_times *t, uint64_t key)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->list[i].key == key) return &t->list[i];
    return NULL;
}

/* Counts the plan's kernels of each problem. */
static ls_status list_problems(ls_kernel_times *t, const ls_plan *p, ls_err *err)
{
    for (size_t i = 0; i < t->n; i++) t->list[i].count = 0;
    for (int32_t i = 0; i < p->schedule.n; i++) {
        const ls_node *n = p->steps[i].node;
        const uint64_t key = key_of(p->graph, &p->steps[i]);
        const bool computes = lsi_node_computes(p->graph, n);
        problem *x;
        if (lsi_coll_runs(p->peers, n)) continue;
        if (!LS_GROW(LS_MEM_PLAN, t->list, t->n + 1, t->cap))
            return ls_fail(err, LS_NOMEM, "times of kernels: no memory");
        x = find(t, key);
        if (x == NULL) {
            x = &t->list[t->n++];
            *x = (problem){.key = key,
                           .flops = computes ? ls_node_flops(p->graph, n) : 0,
                           .bytes = computes ? 0 : ls_node_bytes(p->graph, n),
                           .seconds = -1};
        }
        x->count++;
        x->node = i;
    }
    return LS_OK;
}

/* -- one kernel -------------------------------------------------------------------------------------------
 */

/* The memory that a kernel is run on. */
typedef struct stage {
    const ls_graph *g;
    const lsi_step *s;
    char *memory; /* the scratch, then `copies` of all tensors: used in turn, they are as cold as in a step */
    size_t scratch, set;
    int copies;
    void **pointers;
} stage;

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static int32_t operand(const ls_node *n, int i)
{
    return i < n->n_in ? n->in[i] : n->out[i - n->n_in];
}

/* The input in whose memory operand i lies, being the next version of it; -1: it has its own. */
static int lies_in(const ls_node *n, int i)
{
    return i >= n->n_in && n->op->alias != NULL ? n->op->alias(n->n_in, n->attr, i - n->n_in) : -1;
}

static size_t operand_bytes(const stage *x, int i)
{
    const ls_vinfo *v = x->g->values[operand(x->s->node, i)];

    return lies_in(x->s->node, i) >= 0 ? 0 : aligned(ls_layout_bytes(v->layout, v->dtype, v->shape));
}

/* Numbers that no kernel is slow with: neither denormal nor all alike. */
static void fill(void *to, ls_dtype type, size_t bytes)
{
    float *f = to;
    uint16_t *h = to;

    if (type == LS_F32)
        for (size_t i = 0; i < bytes / sizeof *f; i++) f[i] = (float)(i % 13) * 0.125f - 0.75f;
    else if (type == LS_BF16 || type == LS_F16)
        for (size_t i = 0; i < bytes / sizeof *h; i++) h[i] = (uint16_t)(0x3800 + i % 13 * 32);
    else
        memset(to, 0, bytes); /* touched all the same */
}

static bool make_stage(stage *x)
{
    const int n = x->s->node->n_in + x->s->node->n_out;
    size_t at;

    x->scratch = aligned(x->s->kernel.scratch_bytes);
    for (int i = 0; i < n; i++) x->set += operand_bytes(x, i);
    x->copies = MOST_COPIES;
    while (x->copies > 1 && (x->set * (size_t)(x->copies - 1) >= COLD_BYTES ||
                             x->set * (size_t)x->copies + x->scratch > MOST_BYTES))
        x->copies--;
    if (x->set * (size_t)x->copies + x->scratch > MOST_BYTES) return false;
    x->memory = ls_alloc(LS_MEM_TUNE, x->scratch + x->set * (size_t)x->copies + ALIGN);
    x->pointers = ls_alloc(LS_MEM_TUNE, sizeof *x->pointers * (size_t)(n + 1));
    if (x->memory == NULL || x->pointers == NULL) return false;
    memset(x->memory, 0, x->scratch);
    at = x->scratch;
    for (int copy = 0; copy < x->copies; copy++)
        for (int i = 0; i < n; i++) {
            fill(x->memory + at, x->g->values[operand(x->s->node, i)]->dtype, operand_bytes(x, i));
            at += operand_bytes(x, i);
        }
    return true;
}

static double run_once(const stage *x, int turn)
{
    const ls_node *n = x->s->node;
    char *at = x->memory + x->scratch + x->set * (size_t)(turn % x->copies);
    const ls_call call = {.in = x->pointers, .out = x->pointers + n->n_in, .scratch = x->memory};

    for (int i = 0; i < n->n_in + n->n_out; i++) {
        x->pointers[i] = lies_in(n, i) >= 0 ? x->pointers[lies_in(n, i)] : at;
        at += operand_bytes(x, i);
    }
    const double begun = ls_clock_seconds();
    x->s->kernel.run(x->s->kernel.state, &call);
    return ls_clock_seconds() - begun;
}

/* Whether the kernel may be run on numbers that mean nothing: not where they are places to read from or write
 * to.  The key of random numbers is any. */
static bool takes_any_numbers(const ls_graph *g, const ls_node *n)
{
    for (int k = 0; k < n->n_in; k++)
        if (g->values[n->in[k]]->dtype == LS_I32 && !(n->op->flags & LS_OP_RANDOM)) return false;
    return true;
}

/* The shortest of some runs, for noise only adds; below 0: it cannot be timed. */
static double time_kernel(const ls_plan *p, const lsi_step *s)
{
    stage x = {.g = p->graph, .s = s};
    double best = -1, spent = 0;

    if (takes_any_numbers(p->graph, s->node) && make_stage(&x)) {
        best = run_once(&x, 0);
        for (int i = 1; i < MAX_RUNS && (i < MIN_RUNS || spent < SPENT_ENOUGH) && spent < LONG_SECONDS; i++) {
            const double now = run_once(&x, i);
            spent += now;
            if (now < best || i == 1) best = now;
        }
    }
    ls_free(x.memory);
    ls_free(x.pointers);
    return best;
}

/* -- all of a plan ----------------------------------------------------------------------------------------
 */

static double guess(const ls_kernel_times *t, const problem *x)
{
    const double flops = t->timed_for > 0 ? t->timed_flops / t->timed_for : t->rates.flops;

    return x->flops / flops + x->bytes / t->rates.bytes;
}

/* The one of the plan's that matters most of those that nobody has looked at; NULL: none is left. */
static problem *next_problem(const ls_kernel_times *t, const bool *seen)
{
    problem *best = NULL;

    for (size_t i = 0; i < t->n; i++) {
        problem *x = &t->list[i];
        if (seen[i] || x->count == 0 || x->seconds >= 0) continue;
        if (best == NULL || x->count * guess(t, x) > best->count * guess(t, best)) best = x;
    }
    return best;
}

static ls_status time_problems(ls_kernel_times *t, const ls_plan *p, ls_err *err)
{
    bool *seen = ls_alloc(LS_MEM_PLAN, t->n + 1);
    problem *x;

    if (seen == NULL) return ls_fail(err, LS_NOMEM, "times of kernels: no memory");
    while (t->spent < MOST_SECONDS && (x = next_problem(t, seen)) != NULL) {
        const double begun = ls_clock_seconds();
        seen[x - t->list] = true;
        if (guess(t, x) > LONG_SECONDS) continue;
        x->seconds = time_kernel(p, &p->steps[x->node]);
        t->spent += ls_clock_seconds() - begun;
        if (x->seconds <= 0 || x->flops <= 0) continue;
        t->timed_flops += x->flops;
        t->timed_for += x->seconds;
    }
    ls_free(seen);
    return LS_OK;
}

ls_status ls_kernel_times_of(ls_kernel_times *t, const ls_plan *p, double *seconds, ls_err *err)
{
    ls_status st = LS_OK;

    *seconds = 0;
    LS_BUG_IF(p->dev->backend->queues != NULL);
    LS_TRY(list_problems(t, p, err));
    LS_TRY(time_problems(t, p, err));
    for (size_t i = 0; i < t->n; i++) {
        const problem *x = &t->list[i];
        const double one = x->seconds >= 0 ? x->seconds : guess(t, x);
        *seconds += x->count * one;
        if (x->count > 0)
            ls_log(LS_LOG_DEBUG, "time: %d of %s \"%s\" (%s): %.4g ms each%s", x->count,
                   p->steps[x->node].node->op->name, p->steps[x->node].node->scope,
                   p->steps[x->node].kernel.impl != NULL ? p->steps[x->node].kernel.impl : "", 1e3 * one,
                   x->seconds >= 0 ? "" : ", by rates");
    }
out:
    return st;
}
