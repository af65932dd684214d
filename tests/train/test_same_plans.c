/* test_same_plans.c: ranks whose plans differ are told so before the first step, and which plan it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "comm/comm.h"
#include "config/experiment.h"
#include "nn/nn_internal.h"
#include "train/session.h"
#include "train/team.h"

enum { RANKS = 2 };

/* In what the model of the last rank differs. */
typedef enum difference { NOTHING, TRAINING, EVALUATION, SINGLE, UPDATE, ORDER, UNASKED, TESTS } difference;

static difference odd; /* of this process */

static void build(ls_step *s, ls_config *cfg)
{
    const int64_t n = ls_config_int(cfg, "batch.per_rank");
    ls_value x = ls_input(s, "image", LS_F32, LS_SHAPE(n, 4)), h = ls_linear(s, x, "fc1", .out = 8);

    if (odd >= ORDER) { /* two branches, of which single samples take the other one first; or tests of them */
        const bool other = n == 1 && (odd != TESTS || s->mode == LS_EVAL);
        const ls_value first = ls_linear(s, h, other ? "right" : "left", .out = 8);
        h = ls_add(first, ls_linear(s, h, other ? "left" : "right", .out = 8));
    }
    if (odd == TRAINING) h = ls_drop(s, h, "drop", 0.5); /* which evaluation leaves out */
    h = ls_linear(s, h, "fc2", .out = 1);
    if (odd == EVALUATION || (odd == SINGLE && n == 1))
        ls_output(s, "score", h); /* which training leaves out */
    h = ls_reduce_mean(ls_square(h), LS_ALL_AXES, false);
    ls_metric(s, "loss", h);
    ls_minimise(s, h, "*", ls_config_optimiser(cfg));
}

static const ls_trial trial = {.name = "same-plans",
                               .about = "a model of this test",
                               .batch = 4,
                               .optimiser = {.rule = LS_SGD, .lr = 0.01},
                               .build = build};

/* Of what fails on all ranks alike one says it. */
static bool told(const ls_err *err, const char *want)
{
    return strstr(err->text, want) != NULL || ((odd == ORDER || odd == TESTS) && err->text[0] == '\0');
}

/* Returns 0 when the comparison ends as it should on this rank. */
static int rank_main(ls_comm *comm, const char *setting, const char *want)
{
    const char *settings[] = {"ranks=2", "batch.per_rank=4", "parallel.bucket_mb=0.001", setting,
                              odd == UPDATE ? "optimizer.momentum=0.5" : "optimizer.momentum=0.25"};
    const ls_status expected = want == NULL ? LS_OK : odd >= ORDER ? LS_UNSUPPORTED : LS_DISAGREE;
    ls_experiment x = {0};
    ls_session s = {0};
    ls_session_options o;
    ls_update update;
    ls_batch_plan *p;
    ls_err err = {0};
    ls_status st = LS_OK;
    int wrong = 0;

    LS_TRY(ls_experiment_load(&x, "mnist", settings, 5, &err));
    update = ls_update_of(x.cfg, RANKS);
    o = ls_update_options(&update, x.cfg);
    o.threads = 1;
    o.comm = comm;
    LS_TRY(ls_session_open(&s, &trial, x.cfg, &o, &err));
    if (odd != UNASKED) LS_TRY(ls_team_agree_on_plans(comm, &s, &err));
    LS_TRY(ls_session_plan(&s, LS_TRAIN, 0, 3, &p, &err));
    LS_TRY(ls_session_plan(&s, LS_TRAIN, 0, 1, &p, &err));
out:
    if (st != expected || (want != NULL && !told(&err, want))) {
        printf("  rank %d: %s: %s\n", ls_comm_rank(comm), ls_status_name(st), err.text);
        wrong = 1;
    }
    ls_session_release(&s);
    ls_experiment_release(&x);
    fflush(stdout);
    return wrong;
}

static void run(difference d, const char *setting, const char *want)
{
    ls_comm_heap *heap;
    ls_err err = {0};
    pid_t pids[RANKS];

    REQUIRE_OK(ls_comm_heap_create(&heap, RANKS, &err), &err);
    fflush(stdout);
    for (int r = 0; r < RANKS; r++) {
        pids[r] = fork();
        REQUIRE(pids[r] >= 0);
        if (pids[r] == 0) {
            ls_comm *comm = NULL;
            int code = 99;
            if (r == RANKS - 1 || d >= ORDER) odd = d;
            if (ls_comm_open_local(&comm, ls_comm_heap_fd(heap), r, RANKS, &err) == LS_OK)
                code = rank_main(comm, setting, want);
            ls_comm_close(comm);
            _exit(code);
        }
    }
    for (int r = 0; r < RANKS; r++) {
        int status = 0;
        REQUIRE(waitpid(pids[r], &status, 0) == pids[r]);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    ls_comm_heap_destroy(heap);
}

#define ONE  "parallel.accumulate=1"
#define MANY "parallel.accumulate=2"

static void equal_plans_are_fine(void)
{
    run(NOTHING, ONE, NULL);
    run(NOTHING, MANY, NULL);
}

static void the_plan_that_differs_is_named(void)
{
    run(TRAINING, ONE, "rank 1 has another plan for training than rank 0");
    run(EVALUATION, ONE, "rank 1 has another plan for evaluation than rank 0");
    run(SINGLE, ONE, "rank 1 has another plan for evaluation of single samples than rank 0");
    run(TRAINING, MANY, "rank 1 has another plan for gradients than rank 0");
    run(UPDATE, MANY, "rank 1 has another plan for update than rank 0");
    run(EVALUATION, MANY, "rank 1 has another plan for evaluation than rank 0");
}

/* A plan for another batch that has its collectives otherwise is refused before it can begin one, and that of
 * a single sample before the first step. */
static void batches_with_another_order_are_refused(void)
{
    static const char *const ways[] = {ONE, "parallel.strategy=zero1", "parallel.strategy=fsdp"};

    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        run(NOTHING, ways[i], NULL);
        run(ORDER, ways[i], "or has them in another order");
        run(UNASKED, ways[i], "or has them in another order");
    }
}

/* Ranks without samples take part in evaluations of others, which gather weights. */
static void tests_with_another_order_are_refused(void)
{
    run(TESTS, ONE, NULL); /* where they do nothing together, either is right */
    run(TESTS, "parallel.strategy=zero1", NULL);
    run(TESTS, "parallel.strategy=fsdp", "or has them in another order");
}

int main(void)
{
    REQUIRE(setenv("LOCKSTEP_TUNE", "off", 1) == 0);
    CHECK_RUN(equal_plans_are_fine);
    CHECK_RUN(the_plan_that_differs_is_named);
    CHECK_RUN(batches_with_another_order_are_refused);
    CHECK_RUN(tests_with_another_order_are_refused);
    return CHECK_DONE();
}
