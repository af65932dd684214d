/* test_measure.c: subjects take turns, numbers of steps are kept, and any rank can end the measurement. */
#include "bench/measure.h"
#include "bench/warmup.h"
#include "check.h"

enum { ROOM = 4096 };

typedef struct fake {
    int id, steps;
    int other_stops_at; /* the step in which another rank has had enough; 0: never */
    double exposed;
    int *order, *n_order; /* which subject ran when */
} fake;

static ls_status step(void *ctx, bool *last, ls_err *err)
{
    fake *f = ctx;

    (void)err;
    f->steps++;
    f->exposed += 0.25;
    if (*f->n_order < ROOM) f->order[(*f->n_order)++] = f->id;
    if (f->other_stops_at > 0 && f->steps >= f->other_stops_at) *last = true;
    return LS_OK;
}

static ls_status failing_step(void *ctx, bool *last, ls_err *err)
{
    (void)ctx;
    (void)last;
    return ls_fail(err, LS_LOST, "rank 1 is gone");
}

static ls_spent spent(void *ctx)
{
    return (ls_spent){.exposed_s = ((fake *)ctx)->exposed, .data_s = 2 * ((fake *)ctx)->exposed};
}

/* All ranks count from a moment 100 s ago. */
static ls_status start(void *ctx, double *zero, ls_err *err)
{
    (void)ctx;
    (void)err;
    *zero -= 100;
    return LS_OK;
}

static void subjects_take_turns(void)
{
    int order[ROOM], n = 0, begin;
    fake a = {.id = 0, .other_stops_at = 3, .order = order, .n_order = &n}, b = a;
    const ls_subject subjects[] = {{step, spent, &a, NULL}, {step, NULL, &b, NULL}};
    const ls_measure_args args = {.steps = 10, .start = start};
    ls_measure m[2];
    ls_err err = {0};

    b.id = 1;
    REQUIRE_OK(ls_measure_subjects(subjects, 2, &args, m, &err), &err);
    CHECK_EQ_INT(m[0].warmup_steps, 3); /* ended by the other rank */
    CHECK_EQ_INT(m[0].steps, 10);
    CHECK_EQ_INT(m[1].steps, 10);
    CHECK_EQ_INT(a.steps, 13);
    CHECK_EQ_INT(b.steps, 13);
    for (int i = 0; i < 10; i++) {
        CHECK_NEAR(m[0].exposed_s[i], 0.25, 0);
        CHECK_NEAR(m[0].data_s[i], 0.5, 0);
        CHECK_NEAR(m[1].exposed_s[i], 0, 0);
        CHECK(m[1].begin_s[i] >= 100 && m[1].end_s[i] >= m[1].begin_s[i]);
        CHECK(m[1].begin_s[i] >= m[0].end_s[i]); /* its turn comes later */
        CHECK(i == 0 || m[1].begin_s[i] >= m[1].end_s[i - 1]);
    }
    CHECK_NEAR(m[0].allocs_per_step, 0, 0);
    begin = 6;                     /* two warm-ups */
    for (int i = 0; i < 20; i++) { /* 4 4, 4 4, 2 2 */
        const int want = i < 16 ? i / 4 % 2 : i >= 18;
        CHECK_EQ_INT(order[begin + i], want);
    }
    for (int i = 0; i < 2; i++) ls_measure_release(&m[i]);
}

static void another_rank_can_end_it(void)
{
    int order[ROOM], n = 0;
    fake a = {.other_stops_at = 3, .order = order, .n_order = &n};
    const ls_subject subject = {step, NULL, &a, NULL};
    const ls_measure_args args = {.seconds = 3600};
    ls_measure m;
    ls_err err = {0};

    /* The wish is in every step from the third on: the first timed one is the last. */
    REQUIRE_OK(ls_measure_subjects(&subject, 1, &args, &m, &err), &err);
    CHECK_EQ_INT(m.steps, 1);
    ls_measure_release(&m);
}

static void a_lost_rank_is_an_error(void)
{
    const ls_subject subject = {failing_step, NULL, NULL, NULL};
    const ls_measure_args args = {.steps = 2};
    ls_measure m;
    ls_err err = {0};

    CHECK_STATUS(ls_measure_subjects(&subject, 1, &args, &m, &err), LS_LOST, &err);
    ls_measure_release(&m);
}

/* Steps of length step_s(i) from clock 0 on; returns how many the warm-up takes. */
static int warm_up(double (*step_s)(int i))
{
    ls_warmup w = {0};
    double now = 0;
    bool last = false;

    while (!last && w.steps < 100000) {
        const double s = step_s(w.steps);
        last = ls_warmup_enough(&w, now);
        now += s;
        ls_warmup_note(&w, s, now);
    }
    return w.steps;
}

static double even(int i)
{
    (void)i;
    return 0.001;
}

static double first_is_slow(int i)
{
    return i == 0 ? 2.0 : 0.1;
}

/* 10 % faster in every eighth of a second, until it is a millisecond. */
static double falls(int i)
{
    const double s = 0.0025 - 0.000002 * i;

    return s > 0.001 ? s : 0.001;
}

/* 11 % faster in every slice; the sum of the first n is log((100 + n) / 100). */
static double falls_for_ever(int i)
{
    return 1.0 / (100 + i);
}

static double slow(int i)
{
    return 10.0 - i;
}

static void warm_up_ends_when_steps_are_steady(void)
{
    CHECK_EQ_INT(warm_up(slow), 3); /* no step more than needed, where one takes seconds */
    /* A slice of one step, two of two steps each that are alike, and the last. */
    CHECK_EQ_INT(warm_up(first_is_slow), 6);
    CHECK(warm_up(even) >= 500 && warm_up(even) <= 502); /* half a second */
    CHECK(warm_up(falls) >= 750);                        /* not before the floor is reached */
    CHECK(warm_up(falls) <= 1100);
    CHECK(warm_up(falls_for_ever) >= 1900); /* at most three seconds: 100 (e^3 - 1) steps */
    CHECK(warm_up(falls_for_ever) <= 1915);
}

int main(void)
{
    CHECK_RUN(subjects_take_turns);
    CHECK_RUN(another_rank_can_end_it);
    CHECK_RUN(a_lost_rank_is_an_error);
    CHECK_RUN(warm_up_ends_when_steps_are_steady);
    return CHECK_DONE();
}
