/* outline_recompute.c: which units are computed again: as the settings say, or as few as let plans fit. */
#include <stdlib.h>

#include "base/alloc.h"
#include "bench/probe.h"
#include "exec/compile.h"
#include "graph/graph.h"
#include "passes/recompute.h"
#include "train/limit.h"
#include "train/outline_internal.h"

/* A unit, and what a saved byte of it costs. */
typedef struct candidate {
    int32_t unit;
    double price;
} candidate;

static int by_price(const void *a, const void *b)
{
    const candidate *x = a, *y = b;

    if (x->price != y->price) return x->price < y->price ? -1 : 1;
    return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* Units that save something, the cheapest first; *list is the caller's to free. */
static ls_status find_candidates(const lsi_outlining *o, candidate **list, int *n, ls_err *err)
{
    const size_t most = (size_t)o->x->record->n_units + 1;
    const ls_strategy how = lsi_outline_strategy(o, LS_PART_ALL, 0, &(ls_units){0});
    ls_unit_cost *cost = ls_alloc(LS_MEM_PLAN, sizeof *cost * most);
    ls_graph *g = NULL;
    ls_status st = LS_OK;

    *list = ls_alloc(LS_MEM_PLAN, sizeof **list * most);
    *n = 0;
    if (cost == NULL || *list == NULL) {
        st = ls_fail(err, LS_NOMEM, "recompute: no memory");
        goto out;
    }
    LS_TRY(ls_graph_clone(&g, o->x->record, err));
    ls_recompute_costs(g, &how, cost);
    LS_TRY(ls_graph_status(g, err));
    for (int32_t i = 0; i < g->n_units && i < LS_UNITS_LISTED; i++)
        if (cost[i].bytes > 0) (*list)[(*n)++] = (candidate){i + 1, cost[i].flops / cost[i].bytes};
    qsort(*list, (size_t)*n, sizeof **list, by_price);
out:
    if (g != NULL) ls_graph_destroy(g);
    ls_free(cost);
    return st;
}

static ls_units first_of(const candidate *list, int n)
{
    ls_units set = {0};

    for (int i = 0; i < n; i++) ls_units_add(&set, list[i].unit);
    return set;
}

/* The shortest beginning of the list with which the plans fit, compiled; all of it where none does.  Plans
 * for odd batches take `odd` bytes beside the others, whatever is computed again; that it is so is seen at
 * the end. */
static ls_status fit(const lsi_outlining *o, const candidate *list, int n, size_t limit, size_t odd,
                     ls_units *out, ls_err *err)
{
    int too_few = 0, enough = n;
    ls_status st = LS_OK;

    while (enough - too_few > 1) {
        const int middle = (too_few + enough) / 2;
        *out = first_of(list, middle);
        LS_TRY(lsi_outline_compile(o, out, false, err));
        if (ls_outline_memory(o->x).total + odd <= limit)
            enough = middle;
        else
            too_few = middle;
    }
    for (;; enough++) {
        *out = first_of(list, enough);
        LS_TRY(lsi_outline_compile(o, out, true, err));
        if (enough == n || ls_outline_memory(o->x).total <= limit) break;
    }
out:
    return st;
}

/* -- how long a step takes ----------------------------------------------------------------------------------
 */

/* Of devices that work by themselves, whose kernels are not timed here: only the ratio of the two counts. */
#define ACCELERATOR_FLOPS_PER_BYTE 75.0
/* Of a processor's peak, what products come near to that were not timed. */
#define PRODUCTS_REACH 0.75

static ls_status open_times(lsi_outlining *o, ls_err *err)
{
    ls_probe p = {0};
    ls_status st = LS_OK;

    if (o->x->dev->backend->queues != NULL) return LS_OK;
    LS_TRY(ls_probe_machine(o->x->dev->threads, NULL, &p, err));
    LS_TRY(ls_kernel_times_create(&o->times, (ls_machine_rates){PRODUCTS_REACH * p.flop_s, p.copy_b_s}, err));
out:
    return st;
}

/* Seconds, or what is as good to be compared with another step's. */
static ls_status time_step(const lsi_outlining *o, double *out, ls_err *err)
{
    ls_status st = LS_OK;

    *out = 0;
    for (int k = 0; k < o->x->n_plans; k++) {
        const ls_outline_plan *p = &o->x->plans[k];
        const ls_work w = ls_plan_work(p->plan);
        double one = w.flops / ACCELERATOR_FLOPS_PER_BYTE + w.bytes;
        if (p->runs == 0) continue;
        if (o->times != NULL) LS_TRY(ls_kernel_times_of(o->times, p->plan, &one, err));
        *out += (double)p->runs * one;
    }
out:
    return st;
}

/* -- choosing ---------------------------------------------------------------------------------------------
 */

/* With everything kept, to compare with. */
static ls_status compile_kept(const lsi_outlining *o, ls_err *err)
{
    const ls_status st = lsi_outline_compile(o, &(ls_units){0}, true, err);

    if (st != LS_OK) return st;
    o->x->recompute.bytes_kept = ls_outline_memory(o->x).total;
    o->x->recompute.flops_kept = ls_outline_flops(o->x);
    return LS_OK;
}

static ls_status compile_to_fit(lsi_outlining *o, size_t limit, ls_units *out, double *kept, ls_err *err)
{
    candidate *list = NULL;
    int n;
    ls_status st = LS_OK;

    LS_TRY(compile_kept(o, err));
    if (o->x->recompute.bytes_kept <= limit) goto out;
    if (o->compares) {
        LS_TRY(open_times(o, err));
        LS_TRY(time_step(o, kept, err));
    }
    LS_TRY(find_candidates(o, &list, &n, err));
    if (n > 0) LS_TRY(fit(o, list, n, limit, lsi_outline_odd_bytes(o->x), out, err));
out:
    ls_free(list);
    return st;
}

/* What the choice is, for those who say it. */
static void describe(ls_outline *x, const ls_units *again)
{
    ls_recompute_choice *c = &x->recompute;

    c->units = *again;
    c->n_units = (int)x->record->n_units;
    c->n_chosen = 0;
    for (int32_t u = 1; u <= x->record->n_units; u++) {
        if (!ls_units_have(again, u)) continue;
        if (c->n_chosen++ == 0) c->first = ls_graph_unit(x->record, u);
        c->last = ls_graph_unit(x->record, u);
    }
}

ls_status lsi_outline_choose(lsi_outlining *o, ls_err *err)
{
    const ls_recompute_mode mode = o->x->tests_only ? LS_RECOMPUTE_NONE : ls_recompute_mode_of(o->cfg);
    ls_units again = {.all = mode == LS_RECOMPUTE_UNIT};
    double kept = 0, now;
    size_t limit = 0;
    ls_status st = LS_OK;

    LS_TRY(ls_memory_limit(o->cfg, &limit, err));
    if (mode == LS_RECOMPUTE_AUTO && limit > 0) {
        o->x->recompute.by_limit = true;
        LS_TRY(compile_to_fit(o, limit, &again, &kept, err));
    } else {
        if (o->compares && again.all) {
            LS_TRY(compile_kept(o, err));
            LS_TRY(open_times(o, err));
            LS_TRY(time_step(o, &kept, err));
        }
        LS_TRY(lsi_outline_compile(o, &again, true, err));
    }
    describe(o->x, &again);
    if (kept > 0 && o->x->recompute.n_chosen > 0) {
        LS_TRY(time_step(o, &now, err));
        o->x->recompute.extra_time = now / kept - 1;
    }
out:
    ls_kernel_times_destroy(o->times);
    o->times = NULL;
    return st;
}
