/* profile.c: times of nodes, from steps as they are. */
#include "exec/profile.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/grow.h"
#include "exec/plan_internal.h"

typedef struct plan_times {
    ls_plan *plan;
    int runs;     /* in a step */
    float *times; /* [step][node][2]: the node, and the work on exchanges behind it, in nanoseconds */
} plan_times;

struct ls_profile {
    int steps, step; /* room; the one that goes on */
    double *seconds; /* of each step */
    plan_times *plans;
    int n_plans;
    size_t cap;
    plan_times *now; /* of the plan that runs */
};

ls_status ls_profile_create(ls_profile **out, int steps, ls_err *err)
{
    ls_profile *f = ls_alloc(LS_MEM_PLAN, sizeof *f);

    *out = f;
    if (f != NULL) f->seconds = ls_alloc(LS_MEM_PLAN, sizeof *f->seconds * ((size_t)steps + 1));
    if (f == NULL || f->seconds == NULL) return ls_fail(err, LS_NOMEM, "profile: no memory");
    f->steps = steps;
    return LS_OK;
}

void ls_profile_destroy(ls_profile *f)
{
    if (f == NULL) return;
    for (int i = 0; i < f->n_plans; i++) ls_free(f->plans[i].times);
    ls_free(f->plans);
    ls_free(f->seconds);
    ls_free(f);
}

/* -- running ----------------------------------------------------------------------------------------------
 */

static float *at(const plan_times *t, int step, int node)
{
    return t->times + 2 * ((size_t)step * (size_t)t->plan->schedule.n + (size_t)node);
}

static ls_status find_plan(ls_profile *f, ls_plan *p, ls_err *err)
{
    const size_t n = 2 * (size_t)f->steps * (size_t)p->schedule.n;

    for (int i = 0; i < f->n_plans; i++) {
        f->now = &f->plans[i];
        if (f->now->plan == p) return LS_OK;
    }
    if (!LS_GROW(LS_MEM_PLAN, f->plans, f->n_plans + 1, f->cap))
        return ls_fail(err, LS_NOMEM, "profile: no memory");
    f->now = &f->plans[f->n_plans];
    *f->now = (plan_times){.plan = p, .times = ls_alloc(LS_MEM_PLAN, sizeof(float) * (n + 1))};
    if (f->now->times == NULL) return ls_fail(err, LS_NOMEM, "profile: no memory");
    f->n_plans++;
    return LS_OK;
}

static void note(void *ctx, int node, uint64_t begun, uint64_t ended, uint64_t progressed)
{
    const ls_profile *f = ctx;
    float *t = at(f->now, f->step, node);

    t[0] += (float)(ended - begun);
    t[1] += (float)(progressed - ended);
}

ls_status ls_profile_run(ls_profile *f, ls_plan *p, ls_err *err)
{
    const ls_status st = find_plan(f, p, err);

    if (st != LS_OK) return st;
    LS_BUG_IF(f->step >= f->steps);
    if (f->step == 0) f->now->runs++;
    return ls_plan_run_noted(p, note, f, err);
}

void ls_profile_step(ls_profile *f, double seconds)
{
    f->seconds[f->step++] = seconds;
}

/* -- concluding -------------------------------------------------------------------------------------------
 */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The shortest and the longest step of the middle half. */
static void find_typical(const ls_profile *f, double *shortest, double *longest)
{
    double *sorted = ls_alloc(LS_MEM_PLAN, sizeof *sorted * ((size_t)f->step + 1));
    const int n = f->step;

    *shortest = -1;
    *longest = HUGE_VAL;
    if (sorted == NULL || n == 0) { /* then all of them */
        ls_free(sorted);
        return;
    }
    for (int i = 0; i < n; i++) sorted[i] = f->seconds[i];
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    *shortest = sorted[n / 4];
    *longest = sorted[n - 1 - n / 4];
    ls_free(sorted);
}

static bool is_typical(const ls_profile *f, int step, double shortest, double longest)
{
    return f->seconds[step] >= shortest && f->seconds[step] <= longest;
}

/* What node `node` and the exchanges behind it took, over all typical steps. */
static void add_node(const ls_profile *f, const plan_times *t, int node, double shortest, double longest,
                     double sums[2])
{
    sums[0] = sums[1] = 0;
    for (int step = 0; step < f->step; step++) {
        if (!is_typical(f, step, shortest, longest)) continue;
        sums[0] += (double)at(t, step, node)[0] / 1e9;
        sums[1] += (double)at(t, step, node)[1] / 1e9;
    }
}

ls_profile_sums ls_profile_conclude(ls_profile *f)
{
    ls_profile_sums all = {0};
    double shortest, longest, steps = 0;

    find_typical(f, &shortest, &longest);
    for (int i = 0; i < f->step; i++) {
        if (!is_typical(f, i, shortest, longest)) continue;
        steps++;
        all.step += f->seconds[i];
    }
    if (steps == 0) return all;
    for (int i = 0; i < f->n_plans; i++) {
        const plan_times *t = &f->plans[i];
        for (int32_t k = 0; k < t->plan->schedule.n; k++) {
            double sums[2];
            add_node(f, t, k, shortest, longest, sums);
            t->plan->steps[k].seconds = sums[0] / steps / t->runs;
            t->plan->steps[k].progress = sums[1] / steps / t->runs;
            all.nodes += sums[0] / steps;
            all.progress += sums[1] / steps;
        }
    }
    all.step /= steps;
    all.rest = all.step - all.nodes - all.progress;
    return all;
}

ls_status ls_plan_profile(ls_plan *p, int steps, ls_err *err)
{
    ls_profile *f = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_profile_create(&f, steps, err));
    for (int i = 0; i < steps; i++) {
        const double begun = ls_clock_seconds();
        LS_TRY(ls_profile_run(f, p, err));
        ls_profile_step(f, ls_clock_seconds() - begun);
    }
    ls_profile_conclude(f);
out:
    ls_profile_destroy(f);
    return st;
}
