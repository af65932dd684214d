/* measure.c: timing steps. */
#include "bench/measure.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/machine.h"
#include "bench/warmup.h"

#define MIN_STEPS  5
#define MAX_STEPS  1000000
#define TURN_STEPS 4 /* in a row, where there are several subjects */
#define COLUMNS    5 /* numbers kept of a step */

typedef struct run {
    const ls_measure_args *args;
    const ls_subject *subjects;
    int n_subjects;
    double seconds, start; /* start: clock at the first timed step */
    ls_measure *out;
    int room, done; /* steps of each subject */
} run;

static ls_spent spent(const ls_subject *x)
{
    return x->spent != NULL ? x->spent(x->ctx) : (ls_spent){0};
}

/* Step number `at` of those that are kept; `zero` is where its clock begins.  If it `rests`, what steps have
 * left under way is a part of it. */
static ls_status timed_step(const ls_subject *x, double zero, bool *last, bool rests, ls_measure *m, int at,
                            ls_err *err)
{
    const ls_spent before = spent(x);
    const double begin = ls_clock_seconds();
    ls_status st = x->step(x->ctx, last, err);
    double end;
    ls_spent after;

    if (st == LS_OK && rests && x->rest != NULL) st = x->rest(x->ctx, err);
    end = ls_clock_seconds();
    after = spent(x);
    m->begin_s[at] = begin - zero;
    m->end_s[at] = end - zero;
    m->exposed_s[at] = after.exposed_s - before.exposed_s;
    m->waiting_s[at] = after.waiting_s - before.waiting_s;
    m->data_s[at] = after.data_s - before.data_s;
    return st;
}

static void report(const run *r, const char *phase, int done, int planned)
{
    if (r->args->progress != NULL) r->args->progress(r->args->ctx, phase, done, planned);
}

/* *step_s: the seconds of the last step, the best guess at those to come. */
static ls_status warm_up(const run *r, const ls_subject *x, int *steps, double *step_s, ls_err *err)
{
    double now = ls_clock_seconds();
    ls_warmup w = {.began = now, .slice = now};
    bool last = false;
    ls_status st = LS_OK;

    while (!last) {
        const double begin = now;
        last = ls_warmup_enough(&w, now);
        LS_TRY(x->step(x->ctx, &last, err));
        now = ls_clock_seconds();
        *step_s = now - begin;
        ls_warmup_note(&w, *step_s, now);
        report(r, "warm-up", w.steps, 0);
    }
    *steps = w.steps;
out:
    return st;
}

/* Steps of a subject in a row. */
static int turn_of(const run *r)
{
    return r->n_subjects == 1 ? 1 : r->args->turn > 0 ? r->args->turn : TURN_STEPS;
}

/* How many samples to make room for: room is taken before timing starts, so that timing allocates nothing.
 * Whole turns, at least two: ranks may have other rooms, and a turn that ended where one of them does would
 * have other steps on each. */
static int room_for(const run *r, double step_s)
{
    const double n = 2 * r->seconds / (step_s > 1e-7 ? step_s : 1e-7) + 64;
    const int turn = turn_of(r), most = n < MAX_STEPS ? (int)n : MAX_STEPS;

    if (r->args->steps > 0) return r->args->steps;
    return (most > 2 * turn ? (most + turn - 1) / turn : 2) * turn;
}

/* A turn of every subject.  *last: as of the last step, which is the same on all ranks. */
static ls_status one_round(run *r, double zero, bool *last, ls_err *err)
{
    int turn = turn_of(r);
    ls_status st = LS_OK;

    if (turn > r->room - r->done) turn = r->room - r->done;
    for (int i = 0; i < r->n_subjects; i++)
        for (int k = 0; k < turn; k++) {
            *last = r->done + 2 * turn > r->room ||
                    (r->done + turn >= MIN_STEPS && ls_clock_seconds() - r->start >= r->seconds);
            LS_TRY(timed_step(&r->subjects[i], zero, last, r->n_subjects > 1 && k + 1 == turn, &r->out[i],
                              r->done + k, err));
            report(r, "timing", r->done + k + 1, r->args->steps);
        }
    r->done += turn;
out:
    return st;
}

static ls_status time_steps(run *r, ls_err *err)
{
    double zero = ls_clock_seconds();
    bool last = false;
    uint64_t allocs;
    ls_machine_ticks ticks;
    ls_status st = LS_OK;

    if (r->args->start != NULL) LS_TRY(r->args->start(r->args->ctx, &zero, err));
    ticks = ls_machine_ticks_now();
    allocs = ls_mem_stats_now().n_allocs;
    r->start = ls_clock_seconds();
    while (r->args->steps > 0 ? r->done < r->args->steps : !last) LS_TRY(one_round(r, zero, &last, err));
    for (int i = 0; i < r->n_subjects; i++) {
        r->out[i].allocs_per_step =
            (double)(ls_mem_stats_now().n_allocs - allocs) / (r->n_subjects * r->done);
        r->out[i].steps = r->done;
        r->out[i].stolen = ls_machine_stolen_since(ticks);
    }
out:
    return st;
}

static ls_status make_room(ls_measure *m, int steps, ls_err *err)
{
    m->room = ls_alloc(LS_MEM_CLI, sizeof *m->room * COLUMNS * (size_t)steps);
    if (m->room == NULL) return ls_fail(err, LS_NOMEM, "no memory for %d samples", steps);
    m->begin_s = m->room;
    m->end_s = m->begin_s + steps;
    m->exposed_s = m->end_s + steps;
    m->waiting_s = m->exposed_s + steps;
    m->data_s = m->waiting_s + steps;
    return LS_OK;
}

ls_status ls_measure_subjects(const ls_subject *subjects, int n, const ls_measure_args *args, ls_measure *out,
                              ls_err *err)
{
    run r = {.args = args,
             .subjects = subjects,
             .n_subjects = n,
             .seconds = args->seconds > 0 ? args->seconds : 5,
             .out = out};
    double step_s = 0, least = 0;
    ls_status st = LS_OK;

    for (int i = 0; i < n; i++) out[i] = (ls_measure){0};
    for (int i = 0; i < n; i++) {
        LS_TRY(warm_up(&r, &subjects[i], &out[i].warmup_steps, &step_s, err));
        if (i == 0 || step_s < least) least = step_s;
    }
    r.room = room_for(&r, least);
    for (int i = 0; i < n; i++) LS_TRY(make_room(&out[i], r.room, err));
    LS_TRY(time_steps(&r, err));
out:
    return st;
}

void ls_measure_release(ls_measure *m)
{
    ls_free(m->room);
    *m = (ls_measure){0};
}
