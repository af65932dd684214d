/* measure.c: timing a plan. */
#include "bench/measure.h"

#include "base/alloc.h"
#include "base/clock.h"

#define WARMUP_STEPS   3
#define WARMUP_SECONDS 0.5
#define MIN_STEPS      5
#define MAX_STEPS      1000000

typedef struct run {
    ls_plan *plan;
    const ls_measure_args *args;
    uint32_t step;
} run;

static double one_step(run *r)
{
    double start = ls_clock_seconds();

    ls_step_write_rng(r->plan, r->args->seed, r->step++, 0);
    ls_plan_run(r->plan);
    return ls_clock_seconds() - start;
}

static void report(const run *r, const char *phase, int done, int planned)
{
    if (r->args->progress != NULL) r->args->progress(r->args->ctx, phase, done, planned);
}

/* Returns the seconds of the last step: the best guess at those to come. */
static double warm_up(run *r, int *steps)
{
    double start = ls_clock_seconds(), last = 0;

    for (*steps = 0; *steps < WARMUP_STEPS || ls_clock_seconds() - start < WARMUP_SECONDS;) {
        last = one_step(r);
        report(r, "warm-up", ++*steps, 0);
    }
    return last;
}

/* How many samples to make room for: room is taken before timing starts, so that timing allocates nothing. */
static int room_for(const ls_measure_args *args, double seconds, double step_s)
{
    double n = 2 * seconds / (step_s > 1e-7 ? step_s : 1e-7) + 64;

    if (args->steps > 0) return args->steps;
    return n < MAX_STEPS ? (int)n : MAX_STEPS;
}

ls_status ls_measure_plan(ls_plan *p, const ls_measure_args *args, ls_measure *out, ls_err *err)
{
    run r = {p, args, 0};
    double seconds = args->seconds > 0 ? args->seconds : 5, start, last;
    double *t;
    uint64_t allocs;
    int room, n = 0;

    *out = (ls_measure){0};
    last = warm_up(&r, &out->warmup_steps);
    room = room_for(args, seconds, last);
    t = ls_alloc(LS_MEM_CLI, sizeof *t * (size_t)room);
    if (t == NULL) return ls_fail(err, LS_NOMEM, "no memory for %d samples", room);
    allocs = ls_mem_stats_now().n_allocs;
    start = ls_clock_seconds();
    while (n < room) {
        if (args->steps == 0 && n >= MIN_STEPS && ls_clock_seconds() - start >= seconds) break;
        t[n++] = one_step(&r);
        report(&r, "timing", n, args->steps);
    }
    out->allocs_per_step = (double)(ls_mem_stats_now().n_allocs - allocs) / n;
    out->steps = n;
    out->step_s = ls_spread_of(t, (size_t)n);
    ls_free(t);
    return LS_OK;
}
