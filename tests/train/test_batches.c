/* test_batches.c: the sizes of batches that are told before a run are those that its ranks meet: each rank
 * meets no more odd ones than are told, and for the k-th largest of them there is one told that is as large.
 */
#include <stdlib.h>

#include "base/parallel.h"
#include "base/rng.h"
#include "check.h"
#include "data/loader.h"
#include "train/batches.h"

enum { MET = 32 };

typedef struct met {
    int64_t n[MET];
    int count;
} met;

static void meet(met *m, int64_t n, int64_t usual)
{
    if (n == usual) return;
    for (int i = 0; i < m->count; i++)
        if (m->n[i] == n) return;
    REQUIRE(m->count < MET);
    m->n[m->count++] = n;
}

static int downwards(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

/* The parts of rank `rank` in a batch of all ranks of n samples. */
static void meet_batch(met *m, const ls_update *u, int64_t n, int rank, int ranks, int64_t usual)
{
    int64_t lo, hi, first = 0, end = 0;

    ls_loader_share(n, u->shards, rank, ranks, &lo, &hi, &first, &end);
    if (u->shards == 0) meet(m, hi > lo ? hi - lo : 1, usual);
    for (int64_t s = first; s < end; s++) {
        int64_t a, b;
        ls_parallel_range(n, (int)s, (int)u->shards, &a, &b);
        if (b > a) meet(m, b - a, usual);
    }
}

static void meet_set(met *m, const ls_update *u, int64_t n, int64_t global, int rank, int ranks,
                     int64_t usual)
{
    for (int64_t at = 0; at < n; at += global)
        meet_batch(m, u, n - at < global ? n - at : global, rank, ranks, usual);
}

static void check_mode(met *m, const ls_batch_size *told, int n, ls_mode mode)
{
    met of = {.count = 0};

    for (int i = 0; i < n; i++)
        if (told[i].mode == mode && !told[i].images) of.n[of.count++] = told[i].n;
    qsort(of.n, (size_t)of.count, sizeof *of.n, downwards);
    qsort(m->n, (size_t)m->count, sizeof *m->n, downwards);
    CHECK(m->count <= of.count);
    for (int i = 0; i < m->count && i < of.count; i++) CHECK(m->n[i] <= of.n[i]);
}

static void check_sizes(const ls_update *u, int64_t usual, int ranks, const ls_run_sets *sets)
{
    const int64_t parts = u->shards > 0 ? u->shards : ranks;
    ls_batch_size told[LS_BATCH_SIZES];
    const int n = ls_batches_odd(told, u, usual, ranks, sets);

    for (int i = 0; i < n; i++) CHECK(told[i].n > 0 && (told[i].images || told[i].n != usual));
    for (int rank = 0; rank < ranks; rank++) {
        met trains = {.count = 0}, evaluates = {.count = 0};
        meet_set(&trains, u, sets->train, u->global, rank, ranks, usual);
        meet_set(&evaluates, u, sets->test, usual * parts, rank, ranks, usual);
        meet_set(&evaluates, u, sets->val, usual * parts, rank, ranks, usual);
        check_mode(&trains, told, n, LS_TRAIN);
        check_mode(&evaluates, told, n, LS_EVAL);
    }
}

static void ranks_meet_what_was_told(void)
{
    const ls_rng_key key = {9, 0, 0, 0};

    for (uint32_t turn = 0; turn < 3000; turn++) {
        uint32_t draw[8];
        for (uint32_t k = 0; k < 8; k++) draw[k] = ls_rng_word(&key, 1, 0, 8 * turn + k);
        const int ranks = 1 + (int)(draw[0] % 6);
        const int64_t usual = 1 + draw[1] % 7, shards = ranks + (int64_t)(draw[2] % 5);
        ls_update u = {.global = usual * ranks - (int64_t)(draw[3] % (uint32_t)ranks)};
        ls_run_sets sets = {.test = draw[5] % 60, .val = draw[6] % 3 > 0 ? draw[6] % 50 : 0, .pictures = 8};
        if (u.global < 1) u.global = 1;
        if (draw[7] % 2 != 0) { /* the reproducible mode, whose shards are as large as `usual` */
            u.shards = shards;
            u.global = usual * shards - (int64_t)(draw[3] % (uint32_t)shards);
            if (u.global <= (usual - 1) * shards) u.global = usual * shards;
        }
        u.samples = u.global;
        sets.train = u.global + (int64_t)(draw[4] % 80);
        check_sizes(&u, usual, ranks, &sets);
    }
}

static void pictures_are_told(void)
{
    const ls_update u = {.global = 8, .samples = 8};
    ls_batch_size told[LS_BATCH_SIZES];
    const int n = ls_batches_odd(told, &u, 8, 1, &(ls_run_sets){.train = 16, .test = 5, .pictures = 8});

    CHECK_EQ_INT(n, 2); /* the set of five, and its pictures */
    CHECK(told[1].images && told[1].n == 5 && told[1].mode == LS_EVAL);
    CHECK_EQ_INT(ls_batches_odd(told, &u, 8, 1, &(ls_run_sets){0}), 0);
}

/* A sample that is left out makes its batch shorter by one; who writes rows has a plan for one sample. */
static void samples_that_are_left_out_are_told(void)
{
    const ls_update u = {.global = 8, .samples = 8};
    const ls_run_sets none = {.train = 16, .test = 16}, skips = {.train = 16, .test = 16, .skips = 3},
                      rows = {.test = 16, .single = true};
    ls_batch_size told[LS_BATCH_SIZES];

    CHECK_EQ_INT(ls_batches_odd(told, &u, 8, 1, &none), 0);
    CHECK_EQ_INT(ls_batches_odd(told, &u, 8, 1, &skips), 2);
    CHECK(told[0].mode == LS_TRAIN && told[0].n == 7 && told[1].mode == LS_EVAL && told[1].n == 7);
    CHECK_EQ_INT(ls_batches_odd(told, &u, 8, 1, &rows), 1);
    CHECK(told[0].mode == LS_EVAL && told[0].n == 1);
}

int main(void)
{
    CHECK_RUN(ranks_meet_what_was_told);
    CHECK_RUN(pictures_are_told);
    CHECK_RUN(samples_that_are_left_out_are_told);
    return CHECK_DONE();
}
