/* test_ranks.c: the times of ranks that are threads of this test, put together. */
#include <pthread.h>
#include <string.h>

#include "bench/ranks.h"
#include "check.h"

enum { RANKS = 3, STEPS = 20 };

typedef struct rank {
    pthread_t thread;
    ls_comm *comm;
    int number;
    double begin[STEPS], end[STEPS], exposed[STEPS], waiting[STEPS], data[STEPS];
    ls_job_times times;
    ls_crowd crowd[2];
    double zero;
    ls_status st;
    ls_err err;
} rank;

/* Step i begins at 10 i on all ranks; rank r computes for 5 + r, and waits until all have done so.  In step 0
 * rank 0 is late by 2, in step 1 it takes 4 more.  Ranks have 8, 8 and 4 samples. */
static void make_times(rank *r)
{
    for (int i = 0; i < STEPS; i++) {
        const double own = 5 + r->number + (i == 1 && r->number == 0 ? 4 : 0), longest = i == 1 ? 9 : 7;
        r->begin[i] = 10 * i + (i == 0 && r->number == 0 ? 2 : 0);
        r->waiting[i] = longest - own;
        r->end[i] = r->begin[i] + longest;
        r->exposed[i] = r->waiting[i] + 0.125;
        r->data[i] = r->number == 1 && i % 10 == 0 ? 3 : 0;
    }
}

static void *rank_main(void *arg)
{
    rank *r = arg;
    const ls_measure m = {.steps = STEPS,
                          .begin_s = r->begin,
                          .end_s = r->end,
                          .exposed_s = r->exposed,
                          .waiting_s = r->waiting,
                          .data_s = r->data,
                          .allocs_per_step = r->number};
    ls_status st = LS_OK;

    make_times(r);
    LS_TRY(ls_job_zero(r->comm, &r->zero, &r->err));
    LS_TRY(ls_job_times_gather(&r->times, &m, r->number == 2 ? 4 : 8, r->comm, &r->err));
    LS_TRY(ls_crowd_look(&r->crowd[0], r->comm, 2, 6, &r->err));
    LS_TRY(ls_crowd_look(&r->crowd[1], r->comm, 2, 5, &r->err));
out:
    r->st = st;
    return NULL;
}

static void times_are_put_together(void)
{
    static rank ranks[RANKS];
    ls_comm *comm[RANKS];
    ls_err err = {0};

    REQUIRE_OK(ls_comm_open_threads(comm, RANKS, &err), &err);
    for (int r = 0; r < RANKS; r++) {
        ranks[r].comm = comm[r];
        ranks[r].number = r;
        REQUIRE(pthread_create(&ranks[r].thread, NULL, rank_main, &ranks[r]) == 0);
    }
    for (int r = 0; r < RANKS; r++) pthread_join(ranks[r].thread, NULL);
    for (int r = 0; r < RANKS; r++) {
        const ls_job_times *t = &ranks[r].times;
        REQUIRE_OK(ranks[r].st, &ranks[r].err);
        CHECK_EQ_INT(t->ranks, RANKS);
        CHECK_EQ_INT(t->steps, STEPS);
        CHECK_NEAR(t->step_s[0], 7, 1e-12); /* from 2, when rank 0 came, to 9 */
        CHECK_NEAR(t->step_s[1], 9, 1e-12);
        CHECK_NEAR(t->step_s[2], 7, 1e-12);
        CHECK_NEAR(t->spread.p50, 7, 1e-12);
        CHECK_NEAR(t->mean.mean, 7.1, 1e-12);
        CHECK_NEAR(t->of[0].own_s, 5, 1e-12);
        CHECK_NEAR(t->of[2].own_s, 7, 1e-12);
        CHECK_EQ_INT(t->slowest, 2);
        CHECK_EQ_INT(t->fastest, 0);
        CHECK_NEAR(t->of[1].rate.p50, 8.0 / 7, 1e-12);
        CHECK_NEAR(t->of[2].rate.p50, 4.0 / 7, 1e-12);
        CHECK_NEAR(t->exposed_s, 2.125, 1e-12); /* rank 0 has the most */
        CHECK_NEAR(t->data_wait_s, 0.3, 1e-12); /* the mean of rank 1 */
        CHECK_NEAR(t->of[0].data_wait_s, 0, 0);
        CHECK_NEAR(t->allocs_per_step, 2, 0);
        CHECK(strlen(t->of[2].host) > 0);
        /* Iterations are of ten steps: of rank 0 in 95 (it began late), of the others in 97. */
        CHECK_EQ_INT(t->iterations, 2);
        CHECK_NEAR(t->iteration[0], 80 / 95.0 + 80 / 97.0 + 40 / 97.0, 1e-12);
        CHECK_NEAR(t->iteration[1], 200 / 97.0, 1e-12);
        CHECK_NEAR(ranks[r].zero, ranks[0].zero, 0); /* threads share a clock */
        CHECK_EQ_INT(ranks[r].crowd[0].hosts, 1);
        CHECK_EQ_INT(ranks[r].crowd[0].cores, 6);
        CHECK(!ranks[r].crowd[0].oversubscribed);
        CHECK(ranks[r].crowd[1].oversubscribed);
        ls_job_times_release(&ranks[r].times);
    }
    for (int r = 0; r < RANKS; r++) ls_comm_close(comm[r]);
}

static void one_rank_needs_nobody(void)
{
    double begin[] = {0, 2, 5}, end[] = {1, 4, 9}, none[3] = {0};
    const ls_measure m = {
        .steps = 3, .begin_s = begin, .end_s = end, .exposed_s = none, .waiting_s = none, .data_s = none};
    ls_job_times t;
    ls_crowd crowd;
    ls_err err = {0};

    REQUIRE_OK(ls_job_times_gather(&t, &m, 6, NULL, &err), &err);
    CHECK_NEAR(t.spread.p50, 2, 1e-12);
    CHECK_EQ_INT(t.iterations, 1); /* fewer than ten steps are one */
    CHECK_NEAR(t.iteration[0], 2, 1e-12);
    ls_job_times_release(&t);
    REQUIRE_OK(ls_crowd_look(&crowd, NULL, 1, 0, &err), &err); /* by this process's mask */
    CHECK(crowd.cores >= 1 && !crowd.oversubscribed);
}

int main(void)
{
    CHECK_RUN(times_are_put_together);
    CHECK_RUN(one_rank_needs_nobody);
    return CHECK_DONE();
}
