/* The loader: the same batches whatever the workers, all samples once per epoch on all ranks, entering
 * anywhere, damaged samples, and shutting down at any moment. */
#include "data/loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "check.h"
#include "data_files.h"
#include "loader_test.h"

static ls_dataset *open_set(int64_t count)
{
    ls_err err = {0};
    ls_dataset *d;
    const ls_field fields[] = {{"image", LS_F32, LS_SHAPE(1, 4, 4)}, {"label", LS_I32, LS_SHAPE_SCALAR}};
    const ls_data_source src = {
        .kind = "synthetic", .count = count, .seed = 5, .n_fields = 2, .fields = fields};

    REQUIRE_OK(ls_dataset_open(&d, &src, &err), &err);
    return d;
}

static void check_same(const ls_batch *a, const ls_batch *b, int64_t batch)
{
    CHECK_EQ_INT(a->n, b->n);
    CHECK_EQ_INT(a->epoch, b->epoch);
    CHECK_EQ_INT(a->position, b->position);
    CHECK_EQ_MEM(a->indices, b->indices, sizeof(int64_t) * (size_t)a->n);
    CHECK_EQ_MEM(a->fields[0], b->fields[0], sizeof(float) * 16 * (size_t)batch);
    CHECK_EQ_MEM(a->fields[1], b->fields[1], sizeof(int32_t) * (size_t)batch);
}

static void any_workers(void)
{
    const int workers[] = {1, 2, 3, 8}, depths[] = {1, 2, 0, 16};
    ls_dataset *d = open_set(103);

    for (int k = 0; k < 4; k++) {
        ls_loader_options o = {.batch = 8, .shuffle = true, .seed = 9};
        ls_loader *plain = loader_open(d, o);
        o.n_workers = workers[k];
        o.depth = depths[k];
        ls_loader *threaded = loader_open(d, o);
        CHECK_EQ_INT(ls_loader_batches_per_epoch(plain), 13);
        for (int i = 0; i < 60; i++) {
            ls_batch a = loader_next(plain), b = loader_next(threaded);
            check_same(&a, &b, o.batch);
            CHECK_EQ_INT(a.epoch, i / 13);
            CHECK_EQ_INT(a.position, i % 13 * 8);
            CHECK_EQ_INT(a.n, i % 13 == 12 ? 7 : 8);
            /* What lies behind a short batch is zero. */
            if (a.n == 7) CHECK_EQ_INT(((int32_t *)a.fields[1])[7], 0);
        }
        CHECK(ls_loader_wait_seconds(plain) > 0);
        CHECK(ls_loader_wait_seconds(threaded) >= 0);
        ls_loader_destroy(plain);
        ls_loader_destroy(threaded);
    }
    ls_dataset_close(d);
}

static void contents(void)
{
    ls_dataset *d = open_set(50);
    ls_loader *l =
        loader_open(d, (ls_loader_options){.batch = 7, .n_workers = 2, .shuffle = true, .seed = 1});
    int seen[50] = {0};
    float image[16];
    int32_t label;
    void *const fields[] = {image, &label};

    for (int64_t k = 0; k < ls_loader_batches_per_epoch(l); k++) {
        ls_batch b = loader_next(l);
        for (int64_t i = 0; i < b.n; i++) {
            seen[b.indices[i]]++;
            REQUIRE_OK(ls_dataset_read(d, b.indices[i], NULL, fields, NULL), NULL);
            CHECK_EQ_MEM((float *)b.fields[0] + i * 16, image, sizeof image);
            CHECK_EQ_INT(((int32_t *)b.fields[1])[i], label);
        }
    }
    for (int i = 0; i < 50; i++) CHECK_EQ_INT(seen[i], 1);
    ls_loader_destroy(l);
    ls_dataset_close(d);
}

/* Ranks together see what one rank with the global batch sees, in its order. */
static void ranks(void)
{
    ls_dataset *d = open_set(101);

    for (int n_ranks = 2; n_ranks <= 4; n_ranks++) {
        ls_loader_options o = {.batch = 6, .n_workers = 1, .shuffle = true, .seed = 3, .n_ranks = n_ranks};
        ls_loader *part[4], *whole;
        for (o.rank = 0; o.rank < n_ranks; o.rank++) part[o.rank] = loader_open(d, o);
        o = (ls_loader_options){.batch = 6 * n_ranks, .shuffle = true, .seed = 3};
        whole = loader_open(d, o);
        for (int k = 0; k < 3 * ls_loader_batches_per_epoch(whole); k++) {
            ls_batch all = loader_next(whole);
            int64_t n = 0, least = 6, most = 0;
            for (int r = 0; r < n_ranks; r++) {
                ls_batch b = loader_next(part[r]);
                CHECK_EQ_INT(b.position, all.position + n);
                CHECK_EQ_INT(b.global_position, all.position);
                CHECK_EQ_INT(b.global_n, all.n);
                CHECK_EQ_MEM(b.indices, all.indices + n, sizeof(int64_t) * (size_t)b.n);
                n += b.n;
                if (b.n < least) least = b.n;
                if (b.n > most) most = b.n;
            }
            CHECK_EQ_INT(n, all.n);
            CHECK(most - least <= 1);
        }
        for (int r = 0; r < n_ranks; r++) ls_loader_destroy(part[r]);
        ls_loader_destroy(whole);
    }
    ls_dataset_close(d);
}

static void resume(void)
{
    ls_dataset *d = open_set(103);

    for (int dropped = 0; dropped < 2; dropped++) {
        ls_loader_options o = {.batch = 10, .n_workers = 2, .shuffle = true, .seed = 4, .drop_last = dropped};
        for (int stop = 0; stop < 25; stop++) {
            ls_loader *l = loader_open(d, o), *again;
            for (int k = 0; k < stop; k++) loader_next(l);
            ls_loader_options from = o;
            from.first = ls_loader_position(l);
            again = loader_open(d, from);
            for (int k = 0; k < 12; k++) {
                ls_batch a = loader_next(l), b = loader_next(again);
                check_same(&a, &b, o.batch);
                CHECK(a.n == 10 || !dropped);
            }
            CHECK_EQ_INT(ls_loader_position(l), ls_loader_position(again));
            ls_loader_destroy(l);
            ls_loader_destroy(again);
        }
    }
    /* Positions that are no multiple of the batch: the first batch starts right there. */
    ls_loader *l = loader_open(d, (ls_loader_options){.batch = 10, .first = 103 + 95});
    ls_batch b = loader_next(l);
    CHECK_EQ_INT(b.epoch, 1);
    CHECK_EQ_INT(b.position, 95);
    CHECK_EQ_INT(b.n, 8);
    b = loader_next(l);
    CHECK_EQ_INT(b.epoch, 2);
    CHECK_EQ_INT(b.position, 0);
    ls_loader_destroy(l);
    ls_dataset_close(d);
}

/* An IDX set whose samples 3, 13 and 14 have labels beyond the classes. */
static ls_dataset *open_damaged(void)
{
    unsigned char labels[8 + 20] = {0, 0, 8, 1, 0, 0, 0, 20};
    ls_err err = {0};
    ls_dataset *d;

    labels[8 + 3] = labels[8 + 13] = labels[8 + 14] = 77;
    data_write_idx("train", 20, 4, 4, false);
    data_write("train-labels-idx1-ubyte", labels, sizeof labels, false);
    REQUIRE_OK(
        ls_dataset_open(&d, &(ls_data_source){.kind = "idx", .path = data_folder(), .classes = 10}, &err),
        &err);
    return d;
}

static void damaged_stop(void)
{
    ls_dataset *d = open_damaged();

    for (int workers = 0; workers < 4; workers++) {
        ls_err err = {0};
        ls_batch b;
        ls_loader *l = loader_open(d, (ls_loader_options){.batch = 3, .n_workers = workers});
        b = loader_next(l);
        CHECK_EQ_INT(b.n, 3);
        CHECK_STATUS(ls_loader_next(l, &b, &err), LS_DATA, &err);
        CHECK_CONTAINS(err.text, "sample 3 (byte 11) is 77");
        CHECK_EQ_INT(b.n, 0);
        CHECK_STATUS(ls_loader_next(l, &b, NULL), LS_DATA, NULL);
        ls_loader_destroy(l);
    }
    ls_dataset_close(d);
}

static void damaged_skip(void)
{
    ls_dataset *d = open_damaged();
    const int64_t n[] = {4, 5, 3, 5};

    ls_log_set_level(LS_LOG_ERROR);
    for (int workers = 0; workers < 4; workers++) {
        ls_loader_options o = {
            .batch = 5, .n_workers = workers, .on_error = LS_ON_ERROR_SKIP, .max_skipped = 3};
        ls_loader *l = loader_open(d, o);
        for (int k = 0; k < 8; k++) {
            ls_batch b = loader_next(l);
            CHECK_EQ_INT(b.n, n[k % 4]);
            CHECK_EQ_INT(b.global_n, 5);
            if (k == 0) CHECK_EQ_INT(b.indices[3], 4);
        }
        CHECK_EQ_INT(ls_loader_skipped(l), 6);
        ls_loader_destroy(l);

        ls_err err = {0};
        ls_batch b;
        o.max_skipped = 2;
        l = loader_open(d, o);
        loader_next(l);
        loader_next(l);
        CHECK_STATUS(ls_loader_next(l, &b, &err), LS_DATA, &err);
        CHECK_CONTAINS(err.text, "3 damaged samples in epoch 0");
        CHECK_CONTAINS(err.text, "sample 13");
        ls_loader_destroy(l);
    }
    ls_log_set_level(LS_LOG_WARN);
    ls_dataset_close(d);
}

/* What is logged while a loader walks one epoch of the damaged set, into `text`. */
static void capture_log(const ls_dataset *d, int workers, char *text, size_t size)
{
    FILE *f = tmpfile();
    int before = dup(STDERR_FILENO);

    REQUIRE(f != NULL && before >= 0 && dup2(fileno(f), STDERR_FILENO) >= 0);
    ls_loader *l =
        loader_open(d, (ls_loader_options){
                           .batch = 5, .n_workers = workers, .on_error = LS_ON_ERROR_SKIP, .max_skipped = 3});
    for (int k = 0; k < 4; k++) loader_next(l);
    ls_loader_destroy(l);
    REQUIRE(dup2(before, STDERR_FILENO) >= 0);
    close(before);
    rewind(f);
    text[fread(text, 1, size - 1, f)] = '\0';
    fclose(f);
}

/* Each skipped sample is named once, in the order of the batches, whoever read it. */
static void damaged_log(void)
{
    ls_dataset *d = open_damaged();
    char plain[4096], text[4096];

    capture_log(d, 0, plain, sizeof plain);
    CHECK_CONTAINS(plain, "sample skipped");
    CHECK_CONTAINS(plain, "train-labels-idx1-ubyte: the label of sample 3 (byte 11) is 77");
    CHECK_CONTAINS(plain, "sample 13 (byte 21)");
    CHECK_CONTAINS(plain, "sample 14 (byte 22)");
    for (int workers = 1; workers < 4; workers++) {
        capture_log(d, workers, text, sizeof text);
        CHECK_EQ_STR(text, plain);
    }
    ls_dataset_close(d);
}

static void shutdown_any_time(void)
{
    ls_dataset *d = open_set(1000);
    size_t before = ls_mem_stats_now().live_bytes[LS_MEM_DATA];

    for (int k = 0; k < 60; k++) {
        ls_loader *l = loader_open(
            d,
            (ls_loader_options){.batch = 1 + k % 7, .n_workers = k % 4, .depth = 1 + k % 3, .shuffle = true});
        for (int i = 0; i < k % 9; i++) loader_next(l);
        ls_loader_destroy(l);
        CHECK_EQ_INT(ls_mem_stats_now().live_bytes[LS_MEM_DATA], before);
    }
    ls_loader_destroy(NULL);
    ls_dataset_close(d);
}

static void refused(void)
{
    const struct {
        ls_loader_options o;
        const char *part;
    } cases[] = {
        {{.batch = 0}, "batch of 0"},
        {{.batch = 1, .n_workers = -1}, "-1 loader threads"},
        {{.batch = 1, .depth = -1}, "-1 batches ahead"},
        {{.batch = 1, .rank = 2, .n_ranks = 2}, "rank 2 of 2"},
        {{.batch = 1, .first = -5}, "position -5"},
        {{.batch = 6, .n_ranks = 2, .drop_last = true}, "fewer than one global batch of 12"},
    };
    ls_dataset *d = open_set(10);

    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        ls_err err = {0};
        ls_loader *l;
        CHECK_STATUS(ls_loader_create(&l, d, &cases[k].o, &err), LS_INVALID, &err);
        CHECK_CONTAINS(err.text, cases[k].part);
        CHECK(l == NULL);
    }
    ls_dataset_close(d);
}

int main(void)
{
    CHECK_RUN(any_workers);
    CHECK_RUN(contents);
    CHECK_RUN(ranks);
    CHECK_RUN(resume);
    CHECK_RUN(damaged_stop);
    CHECK_RUN(damaged_skip);
    CHECK_RUN(damaged_log);
    CHECK_RUN(shutdown_any_time);
    CHECK_RUN(refused);
    data_clean();
    return CHECK_DONE();
}
