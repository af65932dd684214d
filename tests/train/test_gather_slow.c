/* test_gather_slow.c: outputs of an evaluation are written in the order of the samples, the same on any
 * number of ranks; the distance between two distributions is the one that sorting gives. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "data/data.h"
#include "ranks_test.h"
#include "tensors.h"
#include "train/gather.h"

static char folder[] = "/tmp/lockstep-gather-XXXXXX";
static bool all; /* or, under a sanitizer, two of the cases on ranks */

enum { BATCH = 3, WIDTH = 4 };

/* -- by hand ----------------------------------------------------------------------------------------------
 */

/* An evaluation step of two inputs. */
static void open_plan(ls_batch_plan *p, ls_device **dev, ls_state **state, ls_mode mode)
{
    ls_err err = {0};
    ls_value a, b;

    *p = (ls_batch_plan){.mode = mode, .batch = BATCH};
    REQUIRE_OK(ls_step_create(&p->step, BATCH, mode, &err), &err);
    a = ls_input(p->step, "a", LS_F32, LS_SHAPE(-1, WIDTH));
    b = ls_input(p->step, "b", LS_F32, LS_SHAPE(-1, WIDTH));
    ls_metric(p->step, "sum", ls_reduce_sum(ls_add(a, b), LS_ALL_AXES, false));
    ls_distance(p->step, "far", a, b, -2, 2);
    ls_output(p->step, "kept", ls_reshape(b, LS_SHAPE(BATCH, 2, 2)));
    REQUIRE_OK(ls_step_status(p->step, &err), &err);
    REQUIRE_OK(ls_device_open(dev, "ref", 1, &err), &err);
    REQUIRE_OK(ls_state_create(state, *dev, &err), &err);
    REQUIRE_OK(ls_plan_compile_take(&p->plan, ls_step_graph_take(p->step), *dev, *state, &err), &err);
}

static void close_plan(ls_batch_plan *p, ls_device *dev, ls_state *state)
{
    ls_plan_destroy(p->plan);
    ls_step_destroy(p->step);
    ls_state_destroy(state);
    ls_device_close(dev);
}

static float value(int64_t sample, int i, int which)
{
    const double x = (double)((sample * 37 + i * 101 + which * 53) % 97) / 97;

    return (float)(which == 0 ? 2 * x * x - 1 : 1.5 * x - 0.5);
}

static int by_size(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;

    return x < y ? -1 : x > y;
}

/* Of equally many values: the mean distance between the sorted ones. */
static double sorted_distance(int64_t samples)
{
    const int64_t n = samples * WIDTH;
    float *v[2] = {malloc(sizeof(float) * (size_t)n), malloc(sizeof(float) * (size_t)n)};
    double sum = 0;

    for (int k = 0; k < 2; k++) {
        for (int64_t i = 0; i < n; i++) v[k][i] = value(i / WIDTH, (int)(i % WIDTH), k);
        qsort(v[k], (size_t)n, sizeof(float), by_size);
    }
    for (int64_t i = 0; i < n; i++) sum += fabs((double)v[0][i] - (double)v[1][i]);
    free(v[0]);
    free(v[1]);
    return sum / (double)n;
}

static void feed(const ls_batch_plan *p, int64_t first)
{
    for (int k = 0; k < 2; k++) {
        const ls_tensor *x = ls_plan_input(p->plan, k == 0 ? "a" : "b");
        for (int i = 0; i < BATCH * WIDTH; i++)
            tensor_put(x, i, (double)value(first + i / WIDTH, i % WIDTH, k));
    }
    run_plan(p->plan);
}

/* The rows of an array in the run's folder. */
static ls_dataset *open_rows(const char *path)
{
    ls_dataset *d = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_dataset_open(&d, &(ls_data_source){.kind = "npy", .path = path}, &err), &err);
    return d;
}

static void rows_and_distance(void)
{
    enum { BATCHES = 20, SAMPLES = BATCHES * BATCH, STRIDE = 7 };
    ls_gather g = {.samples = SAMPLES, .stride = STRIDE};
    ls_metric_sums sums = {0};
    ls_batch_plan p;
    ls_device *dev;
    ls_state *state;
    ls_dataset *d;
    char path[256];
    float row[WIDTH];
    ls_err err = {0};

    open_plan(&p, &dev, &state, LS_EVAL);
    for (int b = BATCHES - 1; b >= 0; b--) { /* the order of batches does not matter */
        feed(&p, b * BATCH);
        REQUIRE_OK(ls_gather_take(&g, &p, b * BATCH, &err), &err);
        ls_metric_add(&sums, "sum", 1, BATCH);
        sums.samples += BATCH;
    }
    REQUIRE_OK(ls_gather_finish(&g, NULL, &sums, &err), &err);
    CHECK_EQ_INT(sums.samples, SAMPLES);
    CHECK_NEAR(ls_metric_mean(&sums, "far"), sorted_distance(SAMPLES), 4.0 / LS_DISTANCE_BINS);
    CHECK(sorted_distance(SAMPLES) > 0.1);
    REQUIRE_OK(ls_gather_write(&g, folder, 1.5, &err), &err);
    snprintf(path, sizeof path, "%s/kept/epoch-1.5.npy", folder);
    d = open_rows(path);
    CHECK_EQ_INT(ls_dataset_count(d), (SAMPLES + STRIDE - 1) / STRIDE);
    for (int64_t i = 0; i < ls_dataset_count(d); i++) {
        REQUIRE_OK(ls_dataset_read(d, i, NULL, (void *const[]){row}, &err), &err);
        for (int k = 0; k < WIDTH; k++) CHECK(row[k] == value(i * STRIDE, k, 1));
    }
    ls_dataset_close(d);
    ls_gather_release(&g);
    close_plan(&p, dev, state);
}

static void what_is_no_number_has_no_distance(void)
{
    ls_gather g = {.samples = BATCH};
    ls_metric_sums sums = {0};
    ls_batch_plan p;
    ls_device *dev;
    ls_state *state;
    ls_err err = {0};

    open_plan(&p, &dev, &state, LS_EVAL);
    tensor_put(ls_plan_input(p.plan, "a"), 2, (double)NAN);
    run_plan(p.plan);
    REQUIRE_OK(ls_gather_take(&g, &p, 0, &err), &err);
    ls_metric_add(&sums, "sum", 1, BATCH);
    sums.samples += BATCH;
    REQUIRE_OK(ls_gather_finish(&g, NULL, &sums, &err), &err);
    CHECK(isnan(ls_metric_mean(&sums, "far")));
    CHECK_EQ_INT(g.n_outputs, 0); /* without a stride */
    ls_gather_release(&g);
    close_plan(&p, dev, state);
}

static void training_does_not_pay(void)
{
    ls_batch_plan p;
    ls_device *dev;
    ls_state *state;

    open_plan(&p, &dev, &state, LS_TRAIN);
    CHECK_EQ_INT(ls_plan_fetch_count(p.plan), 1);
    close_plan(&p, dev, state);
}

/* -- on ranks ---------------------------------------------------------------------------------------------
 */

/* The mean of |x| over all values of an array; *largest receives the largest distance from `other`. */
static double compare(const char *path, const char *other, int64_t rows, double *largest)
{
    ls_dataset *a = open_rows(path), *b = open_rows(other);
    float x[64], y[64];
    double sum = 0;
    ls_err err = {0};

    *largest = 0;
    CHECK_EQ_INT(ls_dataset_count(a), rows);
    CHECK_EQ_INT(ls_dataset_count(b), rows);
    for (int64_t i = 0; i < rows; i++) {
        REQUIRE_OK(ls_dataset_read(a, i, NULL, (void *const[]){x}, &err), &err);
        REQUIRE_OK(ls_dataset_read(b, i, NULL, (void *const[]){y}, &err), &err);
        for (int k = 0; k < 64; k++) {
            sum += fabs((double)x[k]);
            *largest = fmax(*largest, fabs((double)x[k] - (double)y[k]));
        }
    }
    ls_dataset_close(a);
    ls_dataset_close(b);
    return sum / (double)(rows * 64);
}

/* An autoencoder after two steps: the test loss of its reconstruction. */
static double train_aae(const char *name, int ranks, const char *test, const char *mode, const char *rate)
{
    const ranks_job j = {.folder = folder,
                         .name = name,
                         .model = "aae",
                         .ranks = ranks,
                         .settings = {"data.kind=synthetic", "data.train_range=0:24", test, "model.points=32",
                                      "batch.global=8", "train.steps=2", "train.validate_every=1st",
                                      "train.output_every=1st", "train.output_stride=3", "model.sum_over=32",
                                      "parallel.shards=4", "train.best_metric=val/loss_rec", mode, rate}};
    int codes[RANKS_MAX];
    json_t *summary;
    double rec;

    ranks_run(&j, codes);
    for (int r = 0; r < ranks; r++) CHECK_EQ_INT(codes[r], 0);
    summary = ranks_summary(&j);
    rec = json_real_value(
        json_object_get(json_object_get(json_object_get(summary, "metrics"), "test"), "loss_rec"));
    json_decref(summary);
    return rec;
}

static void same_on_any_ranks(void)
{
    /* Without learning, weights are the same on any number of ranks; in the reproducible mode they always
     * are. The second has fewer samples than ranks. */
    static const struct {
        const char *test, *mode, *rate;
        int64_t rows;
        int ranks, every;
        double tolerance;
    } cases[] = {{"data.test_range=24:43", "reproducible=false", "optimizer.lr=0", 7, 4, 1, 1e-6},
                 {"data.test_range=24:26", "reproducible=false", "optimizer.lr=0", 1, 4, 3, 1e-6},
                 {"data.test_range=24:43", "reproducible=true", "optimizer.lr=0.001", 7, 3, 1, 0},
                 {"data.test_range=24:26", "reproducible=true", "optimizer.lr=0.001", 1, 4, 3, 0}};

    for (int t = all ? 0 : 1; t < 4; t += all ? 1 : 2) {
        double one = 0;
        char first[256];
        for (int ranks = 1; ranks <= cases[t].ranks; ranks += cases[t].every) {
            char name[32], path[256];
            double rec, largest;
            snprintf(name, sizeof name, "aae-%d-%d", t, ranks);
            rec = train_aae(name, ranks, cases[t].test, cases[t].mode, cases[t].rate);
            snprintf(path, sizeof path, "%s/%s/embeddings/epoch-%.6g.npy", folder, name, 16.0 / 24);
            if (ranks == 1) {
                one = rec;
                snprintf(first, sizeof first, "%s", path);
            }
            CHECK(compare(path, first, cases[t].rows, &largest) > 1e-3);
            CHECK_NEAR(largest, 0, cases[t].tolerance);
            CHECK_NEAR(rec, one, 10 * cases[t].tolerance * one);
            CHECK(one > 0);
        }
    }
}

/* Trains a small GAN; labels are exchanged in every second step or shard. */
static json_t *train_gan(const char *mode, int ranks)
{
    char name[64];
    const ranks_job j = {.folder = folder,
                         .name = name,
                         .model = "cosmogan",
                         .ranks = ranks,
                         .settings = {"data.kind=synthetic", "data.train_range=0:48", "data.test_range=48:71",
                                      "model.size=16", "model.width=4", "model.flip_labels=0.5",
                                      "batch.global=16", "parallel.shards=4", "train.steps=5",
                                      "train.best_metric=val/pixel_distance", mode}};
    int codes[RANKS_MAX];

    snprintf(name, sizeof name, "gan-%s-%d", mode, ranks);
    ranks_run(&j, codes);
    for (int r = 0; r < ranks; r++) CHECK_EQ_INT(codes[r], 0);
    return ranks_summary(&j);
}

static double distance_of(const json_t *summary)
{
    return json_real_value(
        json_object_get(json_object_get(json_object_get(summary, "metrics"), "test"), "pixel_distance"));
}

static void a_gan_on_ranks(void)
{
    json_t *one = train_gan("reproducible=true", 1);

    CHECK(distance_of(one) > 0.01);
    for (int ranks = 2; ranks <= 4; ranks += 2) {
        json_t *same = train_gan("reproducible=true", ranks), *other = train_gan("reproducible=false", ranks);
        CHECK(distance_of(same) == distance_of(one)); /* in every bit, and so are the weights */
        CHECK(json_equal(json_object_get(same, "weights_xxh3"), json_object_get(one, "weights_xxh3")));
        CHECK(distance_of(other) > 0.01);
        json_decref(same);
        json_decref(other);
    }
    json_decref(one);
}

int main(void)
{
    char command[128];
    int rc;

    all = !check_is_slow_build();
    if (mkdtemp(folder) == NULL) return 1;
    CHECK_RUN(rows_and_distance);
    CHECK_RUN(what_is_no_number_has_no_distance);
    CHECK_RUN(training_does_not_pay);
    CHECK_RUN(same_on_any_ranks);
    CHECK_RUN(a_gan_on_ranks);
    rc = CHECK_DONE();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) rc = 1;
    return rc;
}
