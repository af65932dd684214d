/* test_stall.c: when ranks count as stalled, and who is named.  Time is a number that the test counts up. */
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "launch/stall.h"

typedef struct rig {
    ls_comm *c[2];
    lsi_stall stall;
    pthread_t thread;
    double now, asked_at;
    char text[512];
} rig;

/* Two ranks; rank 0 waits in a barrier, rank 1 is this thread. */
static void *wait_for_other(void *arg)
{
    (void)!ls_comm_barrier(arg, "the barrier", NULL);
    return NULL;
}

static void begin(rig *r, double limit)
{
    ls_comm_look look;
    ls_err err = {0};

    *r = (rig){.now = 100, .asked_at = (double)INFINITY};
    REQUIRE_OK(ls_comm_open_threads(r->c, 2, &err), &err);
    for (int i = 0; i < 2; i++) ls_comm_note_step(r->c[i], 40 + i);
    ls_comm_set_stall(r->c[1], 1, limit);
    REQUIRE_OK(lsi_stall_open(&r->stall, ls_comm_heap_of(r->c[1]), 2, &err), &err);
    REQUIRE(pthread_create(&r->thread, NULL, wait_for_other, r->c[0]) == 0);
    do {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        ls_comm_heap_look(ls_comm_heap_of(r->c[0]), 0, &look);
    } while (!look.waiting);
    CHECK_EQ_STR(look.what, "the barrier");
}

static void end(rig *r)
{
    (void)!ls_comm_barrier(r->c[1], "the barrier", NULL);
    pthread_join(r->thread, NULL);
    lsi_stall_release(&r->stall);
    for (int i = 0; i < 2; i++) ls_comm_close(r->c[i]);
}

/* Looks for `seconds`; true: the run is to be ended. */
static bool look_for(rig *r, double seconds)
{
    for (const double until = r->now + seconds; r->now < until; r->now += LSI_STALL_LOOK_S)
        if (lsi_stall_look(&r->stall, r->now, r->asked_at, 0, r->text, sizeof r->text)) return true;
    return false;
}

/* A step whose nodes end nowhere is found out after the limit, not before. */
static void a_step_that_hangs_ends_the_run(void)
{
    rig r;

    begin(&r, 5);
    ls_comm_set_doing(r.c[1], LS_COMM_STEPPING);
    CHECK(!look_for(&r, 4.8));
    CHECK(look_for(&r, 1));
    CHECK_CONTAINS(r.text, "rank 0 waits in \"the barrier\" of step 40");
    CHECK_CONTAINS(r.text, "rank 1 (pid ");
    CHECK_CONTAINS(r.text, ") is in compute, last in step 41");
    end(&r);
}

static void a_step_that_beats_goes_on(void)
{
    rig r;

    begin(&r, 5);
    ls_comm_set_doing(r.c[1], LS_COMM_STEPPING);
    for (int i = 0; i < 10; i++) {
        CHECK(!look_for(&r, 4));
        ls_comm_beat(r.c[1]);
    }
    r.asked_at = r.now; /* the same when it was asked to stop */
    for (int i = 0; i < 10; i++) {
        ls_comm_beat(r.c[1]);
        CHECK(!look_for(&r, 0.5));
    }
    end(&r);
}

/* Validation, checkpoints, set-up: nobody is ended over them. */
static void what_takes_long_is_no_stall(void)
{
    rig r;

    begin(&r, 5);
    ls_comm_set_doing(r.c[1], LS_COMM_AT_LENGTH);
    CHECK(!look_for(&r, 60));
    r.asked_at = r.now;
    CHECK(!look_for(&r, 60));
    end(&r);
}

static void samples_that_do_not_come(void)
{
    rig r;

    begin(&r, 5);
    ls_comm_set_doing(r.c[1], LS_COMM_LOADING);
    CHECK(!look_for(&r, 4));
    CHECK(look_for(&r, 5));
    CHECK_CONTAINS(r.text, "is in data: no samples come");
    end(&r);
}

static void *come_and_go(void *arg)
{
    ls_comm *c;
    ls_err err = {0};

    REQUIRE_OK(ls_comm_open_local(&c, ls_comm_heap_fd(arg), 0, 2, &err), &err);
    ls_comm_close(c);
    return NULL;
}

/* To end may take a process a while, after all is done and kept. */
static void who_has_left_may_end_slowly(void)
{
    rig r = {.now = 100, .asked_at = 100};
    ls_comm_heap *heap;
    ls_err err = {0};

    REQUIRE_OK(ls_comm_heap_create(&heap, 2, &err), &err);
    REQUIRE(pthread_create(&r.thread, NULL, come_and_go, heap) == 0);
    REQUIRE_OK(ls_comm_open_local(&r.c[1], ls_comm_heap_fd(heap), 1, 2, &err), &err);
    ls_comm_close(r.c[1]);
    pthread_join(r.thread, NULL);
    REQUIRE_OK(lsi_stall_open(&r.stall, heap, 2, &err), &err);
    CHECK(!look_for(&r, 30));
    CHECK(look_for(&r, 60)); /* but not for ever */
    CHECK_CONTAINS(r.text, "all ranks have done their work, but a process does not end");
    CHECK(strstr(r.text, "without a checkpoint") == NULL);
    lsi_stall_release(&r.stall);
    ls_comm_heap_destroy(heap);
}

/* Each waits for something: who was asked to stop ends soon, whatever the limit. */
static void a_request_ends_those_who_wait(void)
{
    rig r;

    begin(&r, 0);
    ls_comm_set_doing(r.c[1], LS_COMM_LOADING);
    CHECK(!look_for(&r, 1000)); /* no limit */
    r.asked_at = r.now;
    CHECK(!look_for(&r, 0.8));
    CHECK(look_for(&r, 1));
    CHECK_CONTAINS(r.text, "asked to stop");
    CHECK(r.now - r.asked_at < 1.6);
    end(&r);
}

/* Slow storage: a batch comes every few seconds, and the processor has nothing to do meanwhile. */
static void a_request_waits_for_samples_that_come(void)
{
    rig r;

    begin(&r, 60);
    ls_comm_set_stall(r.c[1], 10, 60);
    ls_comm_set_doing(r.c[1], LS_COMM_LOADING);
    CHECK(!look_for(&r, 3));
    r.asked_at = r.now;
    CHECK(!look_for(&r, 6));
    ls_comm_set_doing(r.c[1], LS_COMM_LOADING); /* the next one */
    CHECK(!look_for(&r, 9));
    CHECK(look_for(&r, 3)); /* and then none */
    CHECK_CONTAINS(r.text, "is in data: no samples come");
    end(&r);
}

/* A watcher that was stopped itself must not take that time for the ranks'. */
static void a_sleep_of_the_watcher_does_not_count(void)
{
    rig r;

    begin(&r, 5);
    ls_comm_set_doing(r.c[1], LS_COMM_STEPPING);
    CHECK(!look_for(&r, 1));
    r.now += 1000;
    CHECK(!look_for(&r, 4.8));
    CHECK(look_for(&r, 1));
    end(&r);
}

/* Two machines of which each tells the other what it sees: a sign of progress must not go to and fro. */
static void what_was_heard_is_not_said_again(void)
{
    rig r;
    lsi_stall other;
    ls_err err = {0};
    bool over = false;

    begin(&r, 5);
    ls_comm_set_doing(r.c[1], LS_COMM_STEPPING);
    REQUIRE_OK(lsi_stall_open(&other, ls_comm_heap_of(r.c[0]), 2, &err), &err);
    for (const double until = r.now + 10; !over && r.now < until; r.now += LSI_STALL_LOOK_S) {
        over = lsi_stall_look(&r.stall, r.now, r.asked_at, 1 + other.moves, r.text, sizeof r.text);
        (void)lsi_stall_look(&other, r.now, r.asked_at, 1 + r.stall.moves, r.text, sizeof r.text);
    }
    CHECK(over);
    lsi_stall_release(&other);
    end(&r);
}

/* Nobody waits here.  Alone that is no stall; where there are other machines, theirs may wait. */
static void a_step_that_hangs_holds_other_machines(void)
{
    static const uint64_t elsewhere[] = {0, 7};

    for (size_t k = 0; k < 2; k++) {
        ls_comm *c[2];
        lsi_stall stall;
        ls_err err = {0};
        char text[512];
        bool over = false;

        REQUIRE_OK(ls_comm_open_threads(c, 2, &err), &err);
        REQUIRE_OK(lsi_stall_open(&stall, ls_comm_heap_of(c[0]), 2, &err), &err);
        for (int i = 0; i < 2; i++) ls_comm_set_doing(c[i], LS_COMM_STEPPING);
        ls_comm_set_stall(c[0], 1, 5);
        for (double now = 100; !over && now < 120; now += LSI_STALL_LOOK_S)
            over = lsi_stall_look(&stall, now, (double)INFINITY, elsewhere[k], text, sizeof text);
        CHECK(over == (elsewhere[k] != 0));
        lsi_stall_release(&stall);
        for (int i = 0; i < 2; i++) ls_comm_close(c[i]);
    }
}

/* Rank 0 has waited, and then does what takes long, while rank 1 waits for it. */
static void who_has_waited_may_work_at_length(void)
{
    rig r;
    ls_comm_look look;

    begin(&r, 5);
    REQUIRE(ls_comm_barrier(r.c[1], "the barrier", NULL) == LS_OK);
    pthread_join(r.thread, NULL);
    ls_comm_heap_look(ls_comm_heap_of(r.c[0]), 0, &look);
    CHECK(!look.waiting);
    REQUIRE(pthread_create(&r.thread, NULL, wait_for_other, r.c[1]) == 0);
    do {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        ls_comm_heap_look(ls_comm_heap_of(r.c[0]), 1, &look);
    } while (!look.waiting);
    CHECK(!look_for(&r, 60));
    (void)!ls_comm_barrier(r.c[0], "the barrier", NULL);
    pthread_join(r.thread, NULL);
    lsi_stall_release(&r.stall);
    for (int i = 0; i < 2; i++) ls_comm_close(r.c[i]);
}

/* Three ranks of which this machine has two: rank 0 waits for another machine.  Rank 1 waits, too, or is in
 * its step. */
typedef struct far_rig {
    rig here;
    ls_comm *far;
    pthread_t second; /* rank 1, if it waits */
    bool both_wait;
} far_rig;

static void begin_far(far_rig *f, bool both_wait)
{
    ls_comm *c[3];
    ls_comm_look look;
    ls_err err = {0};
    rig *r = &f->here;

    *f = (far_rig){.here = {.now = 100, .asked_at = (double)INFINITY}, .both_wait = both_wait};
    REQUIRE_OK(ls_comm_open_threads(c, 3, &err), &err);
    r->c[0] = c[0];
    r->c[1] = c[1];
    f->far = c[2];
    ls_comm_set_stall(c[0], 1, 5);
    ls_comm_set_doing(c[1], LS_COMM_STEPPING);
    REQUIRE_OK(lsi_stall_open(&r->stall, ls_comm_heap_of(c[0]), 2, &err), &err);
    REQUIRE(pthread_create(&r->thread, NULL, wait_for_other, c[0]) == 0);
    if (both_wait) REQUIRE(pthread_create(&f->second, NULL, wait_for_other, c[1]) == 0);
    for (int i = 0; i < (both_wait ? 2 : 1); i++) {
        do {
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
            ls_comm_heap_look(ls_comm_heap_of(c[0]), i, &look);
        } while (!look.waiting);
    }
}

static void end_far(far_rig *f)
{
    rig *r = &f->here;

    if (!f->both_wait) REQUIRE(pthread_create(&f->second, NULL, wait_for_other, r->c[1]) == 0);
    (void)!ls_comm_barrier(f->far, "the barrier", NULL);
    pthread_join(r->thread, NULL);
    pthread_join(f->second, NULL);
    lsi_stall_release(&r->stall);
    for (int i = 0; i < 2; i++) ls_comm_close(r->c[i]);
    ls_comm_close(f->far);
}

/* Looks until the run is to be ended, at most for `seconds`; returns how long that took, infinity: it is not.
 */
static double time_to_end(rig *r, double seconds, uint64_t elsewhere)
{
    const double begun = r->now;

    for (; r->now < begun + seconds; r->now += LSI_STALL_LOOK_S)
        if (lsi_stall_look(&r->stall, r->now, r->asked_at, elsewhere, r->text, sizeof r->text))
            return r->now - begun;
    return (double)INFINITY;
}

/* Other machines that tell nothing may do what takes long: nobody is ended for waiting for them, but a rank
 * that hangs here is the cause, whatever they do. */
static void who_hears_nothing_judges_what_is_here(far_rig *f)
{
    const double took = time_to_end(&f->here, 100, LSI_STALL_DEAF);

    if (f->both_wait) {
        CHECK(isinf(took));
        return;
    }
    CHECK(took >= 4.9 && took < 6);
    CHECK_CONTAINS(f->here.text, "no rank of this machine has got on");
    CHECK_CONTAINS(f->here.text, "rank 1 (pid ");
}

/* The same with a request: two seconds where the cause is here, more where it may be elsewhere. */
static void who_hears_nothing_obeys(far_rig *f)
{
    double took;

    if (!f->both_wait) ls_comm_set_doing(f->here.c[1], LS_COMM_LOADING);
    CHECK(isinf(time_to_end(&f->here, 2, LSI_STALL_DEAF)));
    f->here.asked_at = f->here.now;
    took = time_to_end(&f->here, 60, LSI_STALL_DEAF);
    CHECK_CONTAINS(f->here.text, "asked to stop, but nobody gets on");
    CHECK(f->both_wait ? took >= LSI_STOP_GRACE_DEAF_S - 0.05 && took < LSI_STOP_GRACE_DEAF_S + 1
                       : took < 1.6);
}

static void who_hears_nothing(void)
{
    void (*const cases[])(far_rig *) = {who_hears_nothing_judges_what_is_here, who_hears_nothing_obeys};

    for (int i = 0; i < 4; i++) {
        far_rig f;
        begin_far(&f, i % 2 != 0);
        cases[i / 2](&f);
        end_far(&f);
    }
}

/* All here wait, and another machine gets on now and then, just often enough for those who see it at once.
 * What it does comes here late by the two beats and the look that it takes; when nothing comes any more the
 * run is ended, with half a second left for its ranks to leave. */
static void signs_from_afar_come_in_time(void)
{
    const double every = LSI_STOP_GRACE_S - LSI_STALL_LOOK_S, delay = 2 * LSI_STOP_BEAT_S + LSI_STALL_LOOK_S;
    far_rig f;
    rig *r = &f.here;
    uint64_t heard = 1;

    begin_far(&f, true);
    r->asked_at = r->now;
    for (int i = 0; i < 20; i++) {
        const double late = i % 2 != 0 ? delay : 0; /* one comes at once, the next as late as can be */
        const double until = r->asked_at + (i + 1) * every + late;
        bool goes_on = true;
        while (goes_on && r->now < until) goes_on = isinf(time_to_end(r, LSI_STALL_LOOK_S / 2, heard));
        REQUIRE(goes_on);
        heard++;
    }
    CHECK(isinf(time_to_end(r, LSI_STALL_LOOK_S, heard)));
    CHECK(time_to_end(r, 60, heard) < 1.5 - LSI_STALL_LOOK_S);
    CHECK_CONTAINS(r->text, "for ranks of other machines");
    end_far(&f);
}

int main(void)
{
    CHECK_RUN(a_step_that_hangs_ends_the_run);
    CHECK_RUN(a_step_that_beats_goes_on);
    CHECK_RUN(what_takes_long_is_no_stall);
    CHECK_RUN(samples_that_do_not_come);
    CHECK_RUN(who_has_left_may_end_slowly);
    CHECK_RUN(a_request_ends_those_who_wait);
    CHECK_RUN(a_request_waits_for_samples_that_come);
    CHECK_RUN(a_sleep_of_the_watcher_does_not_count);
    CHECK_RUN(what_was_heard_is_not_said_again);
    CHECK_RUN(a_step_that_hangs_holds_other_machines);
    CHECK_RUN(who_has_waited_may_work_at_length);
    CHECK_RUN(who_hears_nothing);
    CHECK_RUN(signs_from_afar_come_in_time);
    return CHECK_DONE();
}
