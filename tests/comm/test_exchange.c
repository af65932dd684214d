/* Exchanges: the bits are those of one tree for any number of ranks, of any kind, at any length and pace. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "bodies.h"
#include "check.h"
#include "ranks.h"

static const int rank_counts[] = {1, 2, 3, 4, 5, 8};
#define N_COUNTS (int)(sizeof rank_counts / sizeof *rank_counts)

static void same_bits_for_any_rank_count(void)
{
    static const int64_t shards[] = {8, 7, 1, 13};
    const size_t n = check_is_slow_build() ? 2 : sizeof shards / sizeof *shards;

    for (size_t s = 0; s < n; s++)
        for (int r = 0; r < N_COUNTS; r++) {
            sum_case p = {1000, shards[s], 2};
            CHECK_EQ_INT(run_threads(rank_counts[r], rank_sums_steps, &p), 0);
        }
}

static void same_bits_from_processes(void)
{
    for (int r = 0; r < N_COUNTS; r++) {
        sum_case p = {3000, 8, 3};
        CHECK_EQ_INT(run_processes(rank_counts[r], rank_sums_steps, &p), 0);
    }
}

/* Lengths around the sizes of vectors, blocks and chunks. */
static void any_length(void)
{
    static const int64_t n[] = {0, 1, 15, 17, 2047, 2049, 4095, 4097, 8193, 40001};

    for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
        sum_case p = {n[i], 0, 2};
        CHECK_EQ_INT(run_threads(2, rank_sums_steps, &p), 0);
        CHECK_EQ_INT(run_threads(3, rank_sums_steps, &p), 0);
    }
}

/* Twice as long as the second cache: results are then written around caches, by the loops for two inputs and
 * for more. */
static void past_the_caches(void)
{
    const long own = sysconf(_SC_LEVEL2_CACHE_SIZE);
    const sum_case p = {2 * (own > 1 << 20 ? own : 1 << 20) / (long)sizeof(float) + 3, 0, 1};

    CHECK_EQ_INT(run_threads(2, rank_sums_steps, &p), 0);
    CHECK_EQ_INT(run_threads(3, rank_sums_steps, &p), 0);
}

static void many_steps_at_different_pace(void)
{
    sum_case p = {9000, 0, check_is_slow_build() ? 30 : 150};

    CHECK_EQ_INT(run_threads(2, rank_sums_steps, &p), 0);
    CHECK_EQ_INT(run_threads(4, rank_sums_steps, &p), 0);
    CHECK_EQ_INT(run_processes(3, rank_sums_steps, &p), 0);
}

static void more_ranks_than_cores(void)
{
    int n = 4 * ls_parallel_cores() < 16 ? 4 * ls_parallel_cores() : 16;
    sum_case p = {5000, 0, check_is_slow_build() ? 8 : 20};

    CHECK_EQ_INT(run_threads(n, rank_sums_steps, &p), 0);
    CHECK_EQ_INT(run_processes(n, rank_sums_steps, &p), 0);
}

static void exchanges_overlap(void)
{
    CHECK_EQ_INT(run_threads(1, rank_overlaps, NULL), 0);
    CHECK_EQ_INT(run_threads(3, rank_overlaps, NULL), 0);
    CHECK_EQ_INT(run_processes(2, rank_overlaps, NULL), 0);
    CHECK_EQ_INT(run_threads(1, rank_works_in_barriers, NULL), 0);
    CHECK_EQ_INT(run_processes(3, rank_works_in_barriers, NULL), 0);
}

static void weights_and_scale(void)
{
    CHECK_EQ_INT(run_threads(1, rank_weighs, NULL), 0);
    CHECK_EQ_INT(run_threads(2, rank_weighs, NULL), 0);
    CHECK_EQ_INT(run_threads(4, rank_weighs, NULL), 0);
    for (int ranks = 2; ranks <= 4; ranks++) CHECK_EQ_INT(run_threads(ranks, rank_weighs_nothing, NULL), 0);
}

static void every_kind(void)
{
    for (int ranks = 1; ranks <= 4; ranks++) CHECK_EQ_INT(run_threads(ranks, rank_moves, NULL), 0);
    CHECK_EQ_INT(run_processes(3, rank_moves, NULL), 0);
    CHECK_EQ_INT(run_processes(4, rank_moves, NULL), 0);
    for (int ranks = 1; ranks <= 4; ranks++) CHECK_EQ_INT(run_threads(ranks, rank_moves_in, NULL), 0);
}

static void leaves_from_threads(void)
{
    static const int64_t shards[] = {4, 7, 13, 64};

    for (size_t s = 0; s < sizeof shards / sizeof *shards; s++)
        for (int ranks = 1; ranks <= 4; ranks++)
            CHECK_EQ_INT(run_threads(ranks, rank_gives_leaves, &shards[s]), 0);
}

/* Ranks that are not there can be asked what exchanges would take. */
static void absent_ranks(void)
{
    const ls_exchange_options o = {.name = "absent", .n = 1000};
    ls_comm *absent, *there[2];
    ls_exchange *x;
    ls_err err = {0};

    REQUIRE_OK(ls_comm_open_absent(&absent, 2, 0, &err), &err);
    REQUIRE_OK(ls_comm_open_threads(there, 2, &err), &err);
    REQUIRE_OK(ls_exchange_create(&x, absent, &o, &err), &err);
    CHECK(ls_exchange_bytes(absent, &o) == ls_exchange_bytes(there[0], &o));
    CHECK(ls_exchange_part(x, 0) == NULL && ls_exchange_result(x) == NULL);
    CHECK(ls_comm_absent(absent) && !ls_comm_absent(there[0]));
    ls_exchange_destroy(x);
    for (int i = 0; i < 2; i++) ls_comm_close(there[i]);
    ls_comm_close(absent);
}

/* Parts: the subtrees of a range, largest first where they fit; and what they cost. */
static int look_at_parts(ls_comm *c, const void *arg)
{
    static const int64_t want[2][3][2] = {{{0, 4}, {4, 5}}, {{5, 6}, {6, 8}, {8, 11}}};
    ls_exchange_options o = {.name = "parts", .n = 10, .n_shards = 11};
    int rank = ls_comm_rank(c), wrong = 0;
    ls_exchange *x;
    ls_err err = {0};

    (void)arg;
    o.first_shard = rank == 0 ? 0 : 5;
    o.end_shard = rank == 0 ? 5 : 11;
    wrong += expect_status(c, ls_exchange_create(&x, c, &o, &err), LS_OK, &err, "create");
    if (wrong > 0) return wrong;
    if (ls_exchange_parts(x) != 2 + rank) {
        printf("rank %d has %d parts\n", rank, ls_exchange_parts(x));
        wrong++;
    }
    for (int j = 0; j < 2 + rank && wrong == 0; j++) {
        int64_t first, end;
        ls_exchange_part_range(x, j, &first, &end);
        if (first == want[rank][j][0] && end == want[rank][j][1]) continue;
        printf("rank %d part %d is %lld to %lld\n", rank, j, (long long)first, (long long)end);
        wrong++;
    }
    if (ls_exchange_bytes(c, &o) < (size_t)(2 + rank) * 40) wrong++;
    ls_exchange_destroy(x);
    return wrong;
}

static void ranges_become_parts(void)
{
    CHECK_EQ_INT(run_threads(2, look_at_parts, NULL), 0);
}

/* Ranks that ask for different things all learn it. */
static int differ(ls_comm *c, const void *arg)
{
    int rank = ls_comm_rank(c), wrong = 0;
    ls_exchange_options o = {.name = "differ", .n = 10 + (rank == 1)};
    ls_exchange *x;
    ls_err err = {0};

    (void)arg;
    wrong += expect_status(c, ls_exchange_create(&x, c, &o, &err), LS_DISAGREE, &err, "lengths");
    memset(&err, 0, sizeof err);
    o = (ls_exchange_options){
        .name = "gap", .n = 10, .n_shards = 8, .first_shard = 4 * rank, .end_shard = 4 * rank + 3};
    wrong += expect_status(c, ls_exchange_create(&x, c, &o, &err), LS_DISAGREE, &err, "gap");
    memset(&err, 0, sizeof err);
    o = (ls_exchange_options){.name = "wrong", .n = rank == 0 ? -1 : 5};
    wrong += expect_status(c, ls_exchange_create(&x, c, &o, &err), LS_INVALID, &err, "negative length");
    return wrong;
}

static void disagreements_are_found(void)
{
    CHECK_EQ_INT(run_threads(2, differ, NULL), 0);
}

/* A step takes no memory, and what was shared is given back. */
static int no_allocations(ls_comm *c, const void *arg)
{
    ls_exchange_options o = {.name = "quiet", .n = 5000};
    ls_exchange *x;
    ls_err err = {0};
    int wrong = 0;

    (void)arg;
    wrong += expect_status(c, ls_exchange_create(&x, c, &o, &err), LS_OK, &err, "create");
    wrong += expect_status(c, ls_comm_barrier(c, "before", &err), LS_OK, &err, "barrier");
    uint64_t before = ls_mem_stats_now().n_allocs;
    for (int t = 0; t < 5 && wrong == 0; t++) {
        ls_exchange_start(x, 1);
        wrong += expect_status(c, ls_exchange_wait(x, &err), LS_OK, &err, "wait");
    }
    if (ls_mem_stats_now().n_allocs != before) wrong++;
    if (!(ls_comm_exposed_seconds(c) > 0) || !(ls_exchange_exposed_seconds(x) > 0)) wrong++;
    wrong += expect_status(c, ls_comm_barrier(c, "after", &err), LS_OK, &err, "barrier");
    ls_exchange_destroy(x);
    return wrong;
}

static void a_step_allocates_nothing(void)
{
    CHECK_EQ_INT(run_threads(2, no_allocations, NULL), 0);
    CHECK_EQ_INT(ls_mem_stats_now().live_bytes[LS_MEM_COMM], 0);
}

int main(void)
{
    CHECK_RUN(same_bits_for_any_rank_count);
    CHECK_RUN(same_bits_from_processes);
    CHECK_RUN(any_length);
    CHECK_RUN(past_the_caches);
    CHECK_RUN(many_steps_at_different_pace);
    CHECK_RUN(more_ranks_than_cores);
    CHECK_RUN(exchanges_overlap);
    CHECK_RUN(weights_and_scale);
    CHECK_RUN(every_kind);
    CHECK_RUN(leaves_from_threads);
    CHECK_RUN(absent_ranks);
    CHECK_RUN(ranges_become_parts);
    CHECK_RUN(disagreements_are_found);
    CHECK_RUN(a_step_allocates_nothing);
    return CHECK_DONE();
}
