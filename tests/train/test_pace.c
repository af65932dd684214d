/* test_pace.c: which rank is slow, and that all ranks learn the times of all. */
#include <pthread.h>

#include "check.h"
#include "train/pace.h"

static void the_slow_one_is_found(void)
{
    double sorted[5], factor;

    CHECK_EQ_INT(ls_pace_slow((double[]){1, 1.4}, 2, sorted, &factor), -1);
    CHECK_NEAR(factor, 1.4, 1e-12);
    CHECK_EQ_INT(ls_pace_slow((double[]){1.6, 1}, 2, sorted, &factor), 0);
    CHECK_NEAR(factor, 1.6, 1e-12);
    CHECK_EQ_INT(ls_pace_slow((double[]){1, 2, 9, 2, 3}, 5, sorted, &factor), 2);
    CHECK_NEAR(factor, 4.5, 1e-12);
    CHECK_EQ_INT(ls_pace_slow((double[]){0, 0, 0}, 3, sorted, &factor), -1);
    CHECK_EQ_INT(ls_pace_slow((double[]){3}, 1, sorted, &factor), -1);
}

enum { RANKS = 3 };

typedef struct place {
    ls_comm *comm;
    double each; /* seconds of a step, of the fast ones */
    ls_pace pace;
    ls_status st;
} place;

static void *run(void *arg)
{
    place *p = arg;
    ls_err err = {0};
    const int rank = ls_comm_rank(p->comm);

    for (int i = 0; i < LS_PACE_EVERY; i++) ls_pace_note(&p->pace, rank == 1 ? 4 * p->each : p->each);
    p->st = ls_pace_compare(&p->pace, p->comm, &err);
    return NULL;
}

static void compare_times(double each, bool warns)
{
    ls_comm *comms[RANKS];
    place places[RANKS] = {0};
    pthread_t threads[RANKS];
    ls_err err = {0};

    REQUIRE_OK(ls_comm_open_threads(comms, RANKS, &err), &err);
    for (int i = 0; i < RANKS; i++) {
        places[i].comm = comms[i];
        places[i].each = each;
        REQUIRE(pthread_create(&threads[i], NULL, run, &places[i]) == 0);
    }
    for (int i = 0; i < RANKS; i++) {
        json_t *means;
        pthread_join(threads[i], NULL);
        CHECK_EQ_INT(places[i].st, LS_OK);
        means = ls_pace_json(&places[i].pace);
        CHECK_EQ_INT(json_array_size(means), RANKS);
        for (int k = 0; k < RANKS; k++)
            CHECK_NEAR(json_real_value(json_array_get(means, (size_t)k)), k == 1 ? 4 * each : each, 0);
        json_decref(means);
        CHECK_EQ_INT(places[i].pace.warned, warns && i == 0); /* rank 0 speaks for all */
        ls_pace_release(&places[i].pace);
    }
    for (int i = 0; i < RANKS; i++) ls_comm_close(comms[i]);
}

static void all_learn_the_times_of_all(void)
{
    compare_times(0.125, true);
}

static void milliseconds_make_nobody_slow(void)
{
    compare_times(1.0 / 1024, false);
}

int main(void)
{
    CHECK_RUN(the_slow_one_is_found);
    CHECK_RUN(all_learn_the_times_of_all);
    CHECK_RUN(milliseconds_make_nobody_slow);
    return CHECK_DONE();
}
