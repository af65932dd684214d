/* test_measure.c: subjects take turns, numbers of steps are kept, and any rank can end the measurement. */
#include "bench/measure.h"
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

static double exposed(void *ctx)
{
    return ((fake *)ctx)->exposed;
}

static void subjects_take_turns(void)
{
    int order[ROOM], n = 0, begin;
    fake a = {.id = 0, .other_stops_at = 3, .order = order, .n_order = &n}, b = a;
    const ls_subject subjects[] = {{step, exposed, &a}, {step, NULL, &b}};
    const ls_measure_args args = {.steps = 10};
    ls_measure m[2];
    ls_err err = {0};

    b.id = 1;
    REQUIRE_OK(ls_measure_subjects(subjects, 2, &args, m, &err), &err);
    CHECK_EQ_INT(m[0].warmup_steps, 3); /* ended by the other rank */
    CHECK_EQ_INT(m[0].steps, 10);
    CHECK_EQ_INT(m[1].steps, 10);
    CHECK_EQ_INT(a.steps, 13);
    CHECK_EQ_INT(b.steps, 13);
    CHECK_NEAR(m[0].exposed_s.p50, 0.25, 0);
    CHECK_NEAR(m[1].exposed_s.p84, 0, 0);
    CHECK_NEAR(m[0].allocs_per_step, 0, 0);
    begin = 6;                     /* two warm-ups */
    for (int i = 0; i < 20; i++) { /* 4 4, 4 4, 2 2 */
        const int want = i < 16 ? i / 4 % 2 : i >= 18;
        CHECK_EQ_INT(order[begin + i], want);
    }
}

static void another_rank_can_end_it(void)
{
    int order[ROOM], n = 0;
    fake a = {.other_stops_at = 3, .order = order, .n_order = &n};
    const ls_subject subject = {step, NULL, &a};
    const ls_measure_args args = {.seconds = 3600};
    ls_measure m;
    ls_err err = {0};

    /* The wish is in every step from the third on: the first timed one is the last. */
    REQUIRE_OK(ls_measure_subjects(&subject, 1, &args, &m, &err), &err);
    CHECK_EQ_INT(m.steps, 1);
}

static void a_lost_rank_is_an_error(void)
{
    const ls_subject subject = {failing_step, NULL, NULL};
    const ls_measure_args args = {.steps = 2};
    ls_measure m;
    ls_err err = {0};

    CHECK_STATUS(ls_measure_subjects(&subject, 1, &args, &m, &err), LS_LOST, &err);
}

int main(void)
{
    CHECK_RUN(subjects_take_turns);
    CHECK_RUN(another_rank_can_end_it);
    CHECK_RUN(a_lost_rank_is_an_error);
    return CHECK_DONE();
}
