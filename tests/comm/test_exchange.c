/* Exchanges: the bits are those of one tree for any number of ranks, of any kind, at any length and pace. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "check.h"
#include "ranks.h"

typedef struct plan_case {
    int64_t n, shards; /* shards 0: one per rank */
    int steps;
} plan_case;

static int64_t tree_width(int64_t leaves)
{
    int64_t width = 1;

    while (width < leaves) width *= 2;
    return width;
}

/* Result against the readable tree, bit for bit. */
static int compare(const ls_comm *c, const float *got, uint64_t seed, int64_t leaves, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float want = tree_value(seed, leaves, 0, tree_width(leaves), i);
        if (memcmp(&got[i], &want, sizeof want) == 0) continue;
        printf("rank %d of %d: element %lld of %lld, %lld leaves: %.9g, expected %.9g\n", ls_comm_rank(c),
               ls_comm_size(c), (long long)i, (long long)n, (long long)leaves, (double)got[i], (double)want);
        return 1;
    }
    return 0;
}

static int sum_steps(ls_comm *c, const void *arg)
{
    const plan_case *p = arg;
    ls_exchange_options o = {.name = "bucket", .n = p->n, .n_shards = p->shards};
    int64_t leaves = p->shards > 0 ? p->shards : ls_comm_size(c);
    uint64_t pace = (uint64_t)ls_comm_rank(c);
    ls_exchange *x;
    ls_err err = {0};
    int wrong = 0;

    deal(leaves, ls_comm_size(c), ls_comm_rank(c), &o.first_shard, &o.end_shard);
    wrong += expect_status(c, ls_exchange_create(&x, c, &o, &err), LS_OK, &err, "create");
    for (int t = 0; t < p->steps && wrong == 0; t++) {
        ls_comm_note_step(c, t);
        fill_parts(x, (uint64_t)t, leaves, p->n);
        dawdle(&pace);
        ls_exchange_start(x, 1);
        for (int i = 0; i < 3; i++) {
            ls_exchange_progress(x);
            dawdle(&pace);
        }
        wrong += expect_status(c, ls_exchange_wait(x, &err), LS_OK, &err, "wait");
        wrong += compare(c, ls_exchange_result(x), (uint64_t)t, leaves, p->n);
    }
    ls_exchange_destroy(x);
    return wrong;
}

static const int rank_counts[] = {1, 2, 3, 4, 5, 8};
#define N_COUNTS (int)(sizeof rank_counts / sizeof *rank_counts)

static void same_bits_for_any_rank_count(void)
{
    static const int64_t shards[] = {8, 1, 7, 13};

    for (size_t s = 0; s < sizeof shards / sizeof *shards; s++)
        for (int r = 0; r < N_COUNTS; r++) {
            plan_case p = {1000, shards[s], 2};
            CHECK_EQ_INT(run_threads(rank_counts[r], sum_steps, &p), 0);
        }
}

static void same_bits_from_processes(void)
{
    for (int r = 0; r < N_COUNTS; r++) {
        plan_case p = {3000, 8, 3};
        CHECK_EQ_INT(run_processes(rank_counts[r], sum_steps, &p), 0);
    }
}

/* Lengths around the sizes of vectors, blocks and chunks. */
static void any_length(void)
{
    static const int64_t n[] = {0, 1, 15, 17, 2047, 2049, 4095, 4097, 8193, 40001};

    for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
        plan_case p = {n[i], 0, 2};
        CHECK_EQ_INT(run_threads(2, sum_steps, &p), 0);
        CHECK_EQ_INT(run_threads(3, sum_steps, &p), 0);
    }
}

static void many_steps_at_different_pace(void)
{
    plan_case p = {9000, 0, check_is_slow_build() ? 60 : 300};

    CHECK_EQ_INT(run_threads(2, sum_steps, &p), 0);
    CHECK_EQ_INT(run_threads(4, sum_steps, &p), 0);
    CHECK_EQ_INT(run_processes(3, sum_steps, &p), 0);
}

static void more_ranks_than_cores(void)
{
    int n = 4 * ls_parallel_cores() < 16 ? 4 * ls_parallel_cores() : 16;
    plan_case p = {5000, 0, 40};

    CHECK_EQ_INT(run_threads(n, sum_steps, &p), 0);
    CHECK_EQ_INT(run_processes(n, sum_steps, &p), 0);
}

/* Several exchanges under way at once, started in one order, waited for in the same. */
static int several_at_once(ls_comm *c, const void *arg)
{
    static const int64_t n[3] = {5000, 70, 20000};
    ls_exchange *x[3];
    ls_err err = {0};
    uint64_t pace = 7 * (uint64_t)ls_comm_rank(c);
    int wrong = 0;

    (void)arg;
    for (int i = 0; i < 3; i++) {
        ls_exchange_options o = {.name = "several", .n = n[i]};
        wrong += expect_status(c, ls_exchange_create(&x[i], c, &o, &err), LS_OK, &err, "create");
    }
    for (int t = 0; t < 20 && wrong == 0; t++) {
        for (int i = 0; i < 3; i++) {
            fill_parts(x[i], (uint64_t)(3 * t + i), ls_comm_size(c), n[i]);
            ls_exchange_start(x[i], 1);
            dawdle(&pace);
            for (int k = 0; k < i; k++) ls_exchange_progress(x[k]);
        }
        for (int i = 0; i < 3; i++) {
            wrong += expect_status(c, ls_exchange_wait(x[i], &err), LS_OK, &err, "wait");
            wrong += compare(c, ls_exchange_result(x[i]), (uint64_t)(3 * t + i), ls_comm_size(c), n[i]);
        }
    }
    for (int i = 0; i < 3; i++) ls_exchange_destroy(x[i]);
    return wrong;
}

static void exchanges_overlap(void)
{
    CHECK_EQ_INT(run_threads(1, several_at_once, NULL), 0);
    CHECK_EQ_INT(run_threads(3, several_at_once, NULL), 0);
    CHECK_EQ_INT(run_processes(2, several_at_once, NULL), 0);
}

/* Weights differ by rank and by step; the scale is applied to the total. */
static int weigh(ls_comm *c, const void *arg)
{
    enum { N = 3001 };
    int size = ls_comm_size(c), rank = ls_comm_rank(c), wrong = 0;
    ls_exchange_options o = {.name = "weighed", .n = N, .scale = 0.3f};
    ls_exchange *x;
    ls_err err = {0};

    (void)arg;
    wrong += expect_status(c, ls_exchange_create(&x, c, &o, &err), LS_OK, &err, "create");
    for (int t = 0; t < 3 && wrong == 0; t++) {
        fill_parts(x, (uint64_t)t, size, N);
        ls_exchange_start(x, (float)(rank + 1) / (float)(t + 7));
        wrong += expect_status(c, ls_exchange_wait(x, &err), LS_OK, &err, "wait");
        for (int i = 0; i < N && wrong == 0; i++) {
            float sum[4] = {0}, want; /* four leaves: (0 + 1) + (2 + 3) */
            for (int r = 0; r < size; r++)
                sum[r] = (float)(r + 1) / (float)(t + 7) * noise((uint64_t)t, (uint64_t)r, (uint64_t)i);
            want = size == 1 ? sum[0] : size == 2 ? sum[0] + sum[1] : (sum[0] + sum[1]) + (sum[2] + sum[3]);
            want = 0.3f * want;
            if (memcmp(&want, &ls_exchange_result(x)[i], sizeof want) == 0) continue;
            printf("rank %d of %d, element %d: %.9g, expected %.9g\n", rank, size, i,
                   (double)ls_exchange_result(x)[i], (double)want);
            wrong++;
        }
    }
    ls_exchange_destroy(x);
    return wrong;
}

static void weights_and_scale(void)
{
    CHECK_EQ_INT(run_threads(1, weigh, NULL), 0);
    CHECK_EQ_INT(run_threads(2, weigh, NULL), 0);
    CHECK_EQ_INT(run_threads(4, weigh, NULL), 0);
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
    CHECK_RUN(many_steps_at_different_pace);
    CHECK_RUN(more_ranks_than_cores);
    CHECK_RUN(exchanges_overlap);
    CHECK_RUN(weights_and_scale);
    CHECK_RUN(ranges_become_parts);
    CHECK_RUN(disagreements_are_found);
    CHECK_RUN(a_step_allocates_nothing);
    return CHECK_DONE();
}
