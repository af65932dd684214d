/* The control plane: every rank gets everybody's words, sums have the same bits everywhere, and ranks that
 * meet in different operations learn it. */
#include <stdio.h>
#include <string.h>

#include "bodies.h"
#include "check.h"
#include "faults.h"
#include "ranks.h"

static void words_arrive(void)
{
    for (int n = 1; n <= 5; n++) {
        CHECK_EQ_INT(run_threads(n, rank_gathers, NULL), 0);
        CHECK_EQ_INT(run_processes(n, rank_gathers, NULL), 0);
    }
}

static void sums_are_in_rank_order(void)
{
    CHECK_EQ_INT(run_threads(1, rank_folds, NULL), 0);
    CHECK_EQ_INT(run_threads(4, rank_folds, NULL), 0);
    CHECK_EQ_INT(run_processes(3, rank_folds, NULL), 0);
}

static void memory_in_common(void)
{
    CHECK_EQ_INT(run_threads(1, rank_shares, NULL), 0);
    CHECK_EQ_INT(run_threads(3, rank_shares, NULL), 0);
    CHECK_EQ_INT(run_processes(4, rank_shares, NULL), 0);
}

static int places(ls_comm *c, const void *arg)
{
    const char *kind = arg;

    return (strcmp(ls_comm_kind(c), kind) != 0) + (ls_comm_local_rank(c) != ls_comm_rank(c)) +
           (ls_comm_local_size(c) != ls_comm_size(c)) + (ls_comm_hosts(c) != 1) + (ls_comm_host(c) != 0);
}

static void ranks_know_their_place(void)
{
    ls_err err = {0};
    ls_comm *c;

    CHECK_EQ_INT(run_threads(3, places, "threads"), 0);
    CHECK_EQ_INT(run_processes(2, places, "local"), 0);
    REQUIRE_OK(ls_comm_open_self(&c, &err), &err);
    CHECK_EQ_INT(places(c, "self"), 0);
    CHECK_EQ_INT(ls_comm_size(c), 1);
    ls_comm_close(c);
}

/* -- disagreement
 * --------------------------------------------------------------------------------------------- */

static int different_operations(ls_comm *c, const void *arg)
{
    ls_err err = {0};
    char word[4] = "";
    ls_status st = ls_comm_rank(c) == 1 ? ls_comm_broadcast(c, word, 4, 0, "the weights", &err)
                                        : ls_comm_barrier(c, "the end", &err);
    int wrong = expect_status(c, st, LS_DISAGREE, &err, "operations");

    (void)arg;
    if (strstr(err.text, "rank ") == NULL ||
        strstr(err.text, ls_comm_rank(c) == 1 ? "the end" : "the weights") == NULL) {
        printf("rank %d says: %s\n", ls_comm_rank(c), err.text);
        wrong++;
    }
    return wrong;
}

static int different_sizes(ls_comm *c, const void *arg)
{
    ls_err err = {0};
    char mine[8] = "", all[16];

    (void)arg;
    return expect_status(c, ls_comm_gather_all(c, mine, (size_t)(4 + ls_comm_rank(c)), all, "sizes", &err),
                         LS_DISAGREE, &err, "sizes");
}

static int different_hashes(ls_comm *c, const void *arg)
{
    ls_err err = {0};
    int wrong = expect_status(c, ls_comm_agree(c, 5, "the plan", &err), LS_OK, &err, "same");

    (void)arg;
    wrong += expect_status(c, ls_comm_agree(c, ls_comm_rank(c) == 2 ? 6 : 5, "the plan", &err), LS_DISAGREE,
                           &err, "different");
    if (strstr(err.text, "the plan") == NULL || strstr(err.text, "rank 2") == NULL) {
        printf("rank %d says: %s\n", ls_comm_rank(c), err.text);
        wrong++;
    }
    return wrong;
}

static void disagreements_are_named(void)
{
    CHECK_EQ_INT(run_threads(2, different_operations, NULL), 0);
    CHECK_EQ_INT(run_processes(2, different_operations, NULL), 0);
    CHECK_EQ_INT(run_threads(2, different_sizes, NULL), 0);
    CHECK_EQ_INT(run_threads(4, different_hashes, NULL), 0);
}

/* -- refusals and faults
 * --------------------------------------------------------------------------------------- */

static void bad_arguments(void)
{
    ls_err err = {0};
    ls_comm_heap *heap;
    ls_comm *c;

    CHECK_STATUS(ls_comm_heap_create(&heap, 0, &err), LS_INVALID, &err);
    CHECK(heap == NULL);
    err = (ls_err){0};
    REQUIRE_OK(ls_comm_heap_create(&heap, 2, &err), &err);
    CHECK_STATUS(ls_comm_open_local(&c, ls_comm_heap_fd(heap), 2, 2, &err), LS_INVALID, &err);
    err = (ls_err){0};
    CHECK_STATUS(ls_comm_open_local(&c, ls_comm_heap_fd(heap), 0, 3, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "3 ranks");
    err = (ls_err){0};
    CHECK_STATUS(ls_comm_open_local(&c, -1, 0, 2, &err), LS_INVALID, &err);
    CHECK(c == NULL);
    ls_comm_heap_destroy(heap);
    ls_comm_heap_destroy(NULL);
    ls_comm_close(NULL);
}

static ls_status alone(void *arg, ls_err *err)
{
    ls_status st = LS_OK;
    ls_comm *c = NULL;
    ls_exchange *x = NULL;
    ls_shared *s = NULL;
    ls_exchange_options o = {.name = "alone", .n = 100, .n_shards = 4, .end_shard = 4};

    (void)arg;
    LS_TRY(ls_comm_open_self(&c, err));
    LS_TRY(ls_exchange_create(&x, c, &o, err));
    ls_exchange_start(x, 2);
    LS_TRY(ls_exchange_wait(x, err));
    LS_TRY(ls_comm_agree(c, 1, "alone", err));
    LS_TRY(ls_shared_create(&s, c, 100, err));
out:
    ls_shared_destroy(s);
    ls_exchange_destroy(x);
    ls_comm_close(c);
    return st;
}

static void memory_runs_out(void)
{
    check_faults("a rank by itself", alone, NULL);
}

int main(void)
{
    CHECK_RUN(words_arrive);
    CHECK_RUN(sums_are_in_rank_order);
    CHECK_RUN(memory_in_common);
    CHECK_RUN(ranks_know_their_place);
    CHECK_RUN(disagreements_are_named);
    CHECK_RUN(bad_arguments);
    CHECK_RUN(memory_runs_out);
    return CHECK_DONE();
}
