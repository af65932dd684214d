/* measure.c: timing steps. */
#include "bench/measure.h"

#include "base/alloc.h"
#include "base/clock.h"

#define WARMUP_STEPS   3
#define WARMUP_SECONDS 0.5
#define MIN_STEPS      5
#define MAX_STEPS      1000000
#define TURN_STEPS     4 /* in a row, where there are several subjects */

typedef struct run {
    const ls_measure_args *args;
    const ls_subject *subjects;
    int n_subjects;
    double seconds, start;
    double *step_s, *exposed_s; /* room for each subject */
    int room, done;
} run;

static ls_status one_step(const ls_subject *x, bool *last, double *seconds, double *exposed_s, ls_err *err)
{
    const double before = x->exposed_s != NULL ? x->exposed_s(x->ctx) : 0, start = ls_clock_seconds();
    const ls_status st = x->step(x->ctx, last, err);

    *seconds = ls_clock_seconds() - start;
    *exposed_s = x->exposed_s != NULL ? x->exposed_s(x->ctx) - before : 0;
    return st;
}

static void report(const run *r, const char *phase, int done, int planned)
{
    if (r->args->progress != NULL) r->args->progress(r->args->ctx, phase, done, planned);
}

/* *step_s: the seconds of the last step, the best guess at those to come. */
static ls_status warm_up(const run *r, const ls_subject *x, int *steps, double *step_s, ls_err *err)
{
    const double start = ls_clock_seconds();
    bool last = false;
    double exposed;
    ls_status st = LS_OK;

    for (*steps = 0; !last;) {
        last = *steps + 1 >= WARMUP_STEPS && ls_clock_seconds() - start >= WARMUP_SECONDS;
        LS_TRY(one_step(x, &last, step_s, &exposed, err));
        report(r, "warm-up", ++*steps, 0);
    }
out:
    return st;
}

/* How many samples to make room for: room is taken before timing starts, so that timing allocates nothing. */
static int room_for(const run *r, double step_s)
{
    const double n = 2 * r->seconds / (step_s > 1e-7 ? step_s : 1e-7) + 64;

    if (r->args->steps > 0) return r->args->steps;
    return n < MAX_STEPS ? (int)n : MAX_STEPS;
}

/* A turn of every subject.  *last: as of the last step, which is the same on all ranks. */
static ls_status one_round(run *r, bool *last, ls_err *err)
{
    int turn = r->n_subjects > 1 ? TURN_STEPS : 1;
    ls_status st = LS_OK;

    if (turn > r->room - r->done) turn = r->room - r->done;
    for (int i = 0; i < r->n_subjects; i++)
        for (int k = 0; k < turn; k++) {
            const int at = i * r->room + r->done + k;
            *last = r->done + 2 * turn > r->room ||
                    (r->done + turn >= MIN_STEPS && ls_clock_seconds() - r->start >= r->seconds);
            LS_TRY(one_step(&r->subjects[i], last, &r->step_s[at], &r->exposed_s[at], err));
            report(r, "timing", r->done + k + 1, r->args->steps);
        }
    r->done += turn;
out:
    return st;
}

static ls_status time_steps(run *r, ls_measure *out, ls_err *err)
{
    const uint64_t allocs = ls_mem_stats_now().n_allocs;
    bool last = false;
    ls_status st = LS_OK;

    r->start = ls_clock_seconds();
    while (r->args->steps > 0 ? r->done < r->args->steps : !last) LS_TRY(one_round(r, &last, err));
    for (int i = 0; i < r->n_subjects; i++) {
        out[i].allocs_per_step = (double)(ls_mem_stats_now().n_allocs - allocs) / (r->n_subjects * r->done);
        out[i].steps = r->done;
        out[i].step_s = ls_spread_of(r->step_s + i * r->room, (size_t)r->done);
        out[i].exposed_s = ls_spread_of(r->exposed_s + i * r->room, (size_t)r->done);
    }
out:
    return st;
}

ls_status ls_measure_subjects(const ls_subject *subjects, int n, const ls_measure_args *args, ls_measure *out,
                              ls_err *err)
{
    run r = {.args = args,
             .subjects = subjects,
             .n_subjects = n,
             .seconds = args->seconds > 0 ? args->seconds : 5};
    double step_s = 0, least = 0;
    ls_status st = LS_OK;

    for (int i = 0; i < n; i++) {
        out[i] = (ls_measure){0};
        LS_TRY(warm_up(&r, &subjects[i], &out[i].warmup_steps, &step_s, err));
        if (i == 0 || step_s < least) least = step_s;
    }
    r.room = room_for(&r, least);
    r.step_s = ls_alloc(LS_MEM_CLI, sizeof *r.step_s * (size_t)(n * r.room));
    r.exposed_s = ls_alloc(LS_MEM_CLI, sizeof *r.exposed_s * (size_t)(n * r.room));
    if (r.step_s == NULL || r.exposed_s == NULL) {
        st = ls_fail(err, LS_NOMEM, "no memory for %d samples", r.room);
        goto out;
    }
    LS_TRY(time_steps(&r, out, err));
out:
    ls_free(r.step_s);
    ls_free(r.exposed_s);
    return st;
}
