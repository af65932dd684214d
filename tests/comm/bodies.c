/* bodies.c: see bodies.h. */
#include "bodies.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ranks.h"

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

int rank_sums_steps(ls_comm *c, const void *arg)
{
    const sum_case *p = arg;
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

/* Several exchanges under way at once, started in one order, waited for in the same. */
int rank_overlaps(ls_comm *c, const void *arg)
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

static bool work_on(void *exchange)
{
    return ls_exchange_work(exchange);
}

/* In turn one rank goes to the barrier while its exchange is under way, and the others come when theirs is
 * over, for which they need that rank's part of it. */
int rank_works_in_barriers(ls_comm *c, const void *arg)
{
    enum { N = 200000 };
    const ls_exchange_options o = {.name = "meanwhile", .n = N};
    const ls_collectives *how = ls_comm_collectives(c);
    ls_exchange *x;
    ls_err err = {0};
    int wrong = expect_status(c, ls_exchange_create(&x, c, &o, &err), LS_OK, &err, "create");

    (void)arg;
    for (int t = 0; t <= ls_comm_size(c) && wrong == 0; t++) {
        const bool early = t % ls_comm_size(c) == ls_comm_rank(c);
        fill_parts(x, (uint64_t)t, ls_comm_size(c), N);
        ls_exchange_start(x, 1);
        if (!early) wrong += expect_status(c, ls_exchange_wait(x, &err), LS_OK, &err, "wait");
        wrong +=
            expect_status(c, how->barrier(c, LS_GROUP_ALL, "all", work_on, x, &err), LS_OK, &err, "barrier");
        wrong += expect_status(c, ls_exchange_wait(x, &err), LS_OK, &err, "wait");
        wrong += compare(c, ls_exchange_result(x), (uint64_t)t, ls_comm_size(c), N);
    }
    ls_exchange_destroy(x);
    return wrong;
}

/* Weights differ by rank and by step; the scale is applied to the total. */
int rank_weighs(ls_comm *c, const void *arg)
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

/* The last rank weighs nothing. */
static int sum_without_last(ls_comm *c, float scale)
{
    enum { N = 3001 };
    const int size = ls_comm_size(c), last = size - 1;
    ls_exchange_options o = {.name = "weighed", .n = N, .scale = scale};
    ls_exchange *x;
    ls_err err = {0};
    int wrong = expect_status(c, ls_exchange_create(&x, c, &o, &err), LS_OK, &err, "create");

    for (int t = 0; t < 2 && wrong == 0; t++) {
        fill_parts(x, (uint64_t)t, size, N);
        for (int i = 0; ls_comm_rank(c) == last && i < N; i++) ls_exchange_part(x, 0)[i] = INFINITY;
        ls_exchange_start(x, ls_comm_rank(c) == last ? 0 : 2);
        wrong += expect_status(c, ls_exchange_wait(x, &err), LS_OK, &err, "wait");
        for (int i = 0; i < N && wrong == 0; i++) {
            float want = 0;
            for (int r = 0; r < last; r++) want += 2 * noise((uint64_t)t, (uint64_t)r, (uint64_t)i);
            if (fabsf(scale * want - ls_exchange_result(x)[i]) <= 1e-5f) continue;
            printf("rank %d of %d, element %d: %.9g, expected %.9g\n", ls_comm_rank(c), size, i,
                   (double)ls_exchange_result(x)[i], (double)(scale * want));
            wrong++;
        }
    }
    ls_exchange_destroy(x);
    return wrong;
}

int rank_weighs_nothing(ls_comm *c, const void *arg)
{
    (void)arg;
    return sum_without_last(c, 1) + sum_without_last(c, 0.3f);
}

static int wrong_value(const ls_comm *c, const char *what, double got, double want)
{
    if (got == want) return 0;
    printf("rank %d of %d: %s: %.17g, expected %.17g\n", ls_comm_rank(c), ls_comm_size(c), what, got, want);
    return 1;
}

/* Sizes on both sides of what one round carries, many times, at different paces. */
int rank_gathers(ls_comm *c, const void *arg)
{
    static const size_t sizes[] = {0, 1, 100, 65535, 65536, 65537, 200000};
    static _Thread_local unsigned char mine[200000], all[8 * 200000];
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

/* More values than are folded at once; the sum is in the order of ranks. */
int rank_folds(ls_comm *c, const void *arg)
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

static bool count_call(void *ctx)
{
    int *calls = ctx;

    return ++*calls % 2 == 0;
}

int rank_shares(ls_comm *c, const void *arg)
{
    enum { N = 1000, ROUNDS = 200 };
    const int size = ls_comm_local_size(c), rank = ls_comm_local_rank(c);
    uint64_t pace = (uint64_t)rank;
    ls_shared *s;
    ls_err err = {0};
    int wrong = 0, calls = 0;

    (void)arg;
    wrong += expect_status(c, ls_shared_create(&s, c, N * sizeof(int), &err), LS_OK, &err, "share");
    if (wrong > 0) return wrong;
    int *x = ls_shared_data(s);
    for (int i = 0; i < N; i++) wrong += x[i] != 0;
    for (int t = 1; t <= ROUNDS && wrong == 0; t++) {
        wrong += expect_status(c, ls_comm_machine_barrier(c, "all have read", NULL, NULL, &err), LS_OK, &err,
                               "barrier");
        dawdle(&pace);
        for (int i = rank; i < N; i += size) x[i] += i + t;
        wrong += expect_status(c, ls_comm_machine_barrier(c, "all have written", count_call, &calls, &err),
                               LS_OK, &err, "barrier");
        for (int i = 0; i < N && wrong == 0; i++)
            if (x[i] != i * t + t * (t + 1) / 2)
                wrong += printf("rank %d: x[%d] is %d in round %d\n", rank, i, x[i], t);
    }
    if (ls_comm_waiting_seconds(c) > ls_comm_exposed_seconds(c) || !(ls_comm_exposed_seconds(c) > 0))
        wrong += printf("rank %d waited %g s of %g\n", rank, ls_comm_waiting_seconds(c),
                        ls_comm_exposed_seconds(c));
    ls_shared_destroy(s);
    ls_shared_destroy(NULL);
    return wrong;
}
