/* The control plane: every rank gets everybody's words, sums have the same bits everywhere, and ranks that
 * meet in different operations learn it. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "faults.h"
#include "ranks.h"

static int wrong_value(const ls_comm *c, const char *what, double got, double want)
{
    if (got == want) return 0;
    printf("rank %d of %d: %s: %.17g, expected %.17g\n", ls_comm_rank(c), ls_comm_size(c), what, got, want);
    return 1;
}

/* Sizes on both sides of what one round carries, many times, at different paces. */
static int gather_and_broadcast(ls_comm *c, const void *arg)
{
    static const size_t sizes[] = {0, 1, 100, 65535, 65536, 65537, 200000};
    static _Thread_local unsigned char mine[200000], all[5 * 200000];
    int size = ls_comm_size(c), rank = ls_comm_rank(c), wrong = 0;
    uint64_t pace = (uint64_t)rank;
    ls_err err = {0};

    (void)arg;
    for (int t = 0; t < 30 && wrong == 0; t++) {
        size_t n = sizes[t % 7];
        for (size_t i = 0; i < n; i++) mine[i] = (unsigned char)(rank * 50 + t + (int)(i % 7));
        dawdle(&pace);
        wrong +=
            expect_status(c, ls_comm_gather_all(c, mine, n, all, "all words", &err), LS_OK, &err, "gather");
        for (int r = 0; r < size; r++)
            for (size_t i = 0; i < n && wrong == 0; i++)
                wrong += wrong_value(c, "gathered byte", all[(size_t)r * n + i],
                                     (unsigned char)(r * 50 + t + (int)(i % 7)));
        dawdle(&pace);
        wrong += expect_status(c, ls_comm_broadcast(c, mine, n, t % size, "words of one", &err), LS_OK, &err,
                               "broadcast");
        for (size_t i = 0; i < n && wrong == 0; i++)
            wrong += wrong_value(c, "broadcast byte", mine[i],
                                 (unsigned char)((t % size) * 50 + t + (int)(i % 7)));
        wrong += expect_status(c, ls_comm_barrier(c, "end of turn", &err), LS_OK, &err, "barrier");
    }
    return wrong;
}

static void words_arrive(void)
{
    for (int n = 1; n <= 5; n++) {
        CHECK_EQ_INT(run_threads(n, gather_and_broadcast, NULL), 0);
        CHECK_EQ_INT(run_processes(n, gather_and_broadcast, NULL), 0);
    }
}

/* More values than are folded at once; the sum is in the order of ranks. */
static int folds(ls_comm *c, const void *arg)
{
    enum { N = 1111 };
    double v[3][N];
    int size = ls_comm_size(c), rank = ls_comm_rank(c), wrong = 0;
    ls_err err = {0};

    (void)arg;
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < N; i++) v[k][i] = (double)noise((uint64_t)rank, 0, (uint64_t)i) / 3;
    wrong += expect_status(c, ls_comm_sum(c, v[0], N, "sum", &err), LS_OK, &err, "sum");
    wrong += expect_status(c, ls_comm_max(c, v[1], N, "max", &err), LS_OK, &err, "max");
    wrong += expect_status(c, ls_comm_min(c, v[2], N, "min", &err), LS_OK, &err, "min");
    wrong += expect_status(c, ls_comm_sum(c, v[0], 0, "none", &err), LS_OK, &err, "no values");
    for (int i = 0; i < N && wrong == 0; i++) {
        double sum = 0, most = -2, least = 2;
        for (int r = 0; r < size; r++) {
            double x = (double)noise((uint64_t)r, 0, (uint64_t)i) / 3;
            sum = r == 0 ? x : sum + x;
            most = x > most ? x : most;
            least = x < least ? x : least;
        }
        wrong += wrong_value(c, "sum", v[0][i], sum) + wrong_value(c, "max", v[1][i], most) +
                 wrong_value(c, "min", v[2][i], least);
    }
    return wrong;
}

static void sums_are_in_rank_order(void)
{
    CHECK_EQ_INT(run_threads(1, folds, NULL), 0);
    CHECK_EQ_INT(run_threads(4, folds, NULL), 0);
    CHECK_EQ_INT(run_processes(3, folds, NULL), 0);
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
    ls_exchange_options o = {.name = "alone", .n = 100, .n_shards = 4, .end_shard = 4};

    (void)arg;
    LS_TRY(ls_comm_open_self(&c, err));
    LS_TRY(ls_exchange_create(&x, c, &o, err));
    ls_exchange_start(x, 2);
    LS_TRY(ls_exchange_wait(x, err));
    LS_TRY(ls_comm_agree(c, 1, "alone", err));
out:
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
    CHECK_RUN(ranks_know_their_place);
    CHECK_RUN(disagreements_are_named);
    CHECK_RUN(bad_arguments);
    CHECK_RUN(memory_runs_out);
    return CHECK_DONE();
}
