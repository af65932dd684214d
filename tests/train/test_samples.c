/* test_samples.c: images of a trial become PNG pictures, in files and in TensorBoard, pixel for pixel; the
 * training step does not know them. */
#include <dirent.h>
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "check.h"
#include "data/png.h"
#include "events/event_reader.h"
#include "train/samples.h"
#include "train/train.h"

static char folder[] = "/tmp/lockstep-samples-XXXXXX";

/* Reads a PNG by libpng's own simple way; the caller frees the pixels. */
static uint8_t *decode(const uint8_t *png, size_t n, uint32_t *width, uint32_t *height, uint32_t *channels)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    uint8_t *pixels;

    REQUIRE(png_image_begin_read_from_memory(&image, png, n));
    *width = image.width;
    *height = image.height;
    *channels = PNG_IMAGE_SAMPLE_CHANNELS(image.format);
    CHECK(image.format == PNG_FORMAT_GRAY || image.format == PNG_FORMAT_RGB);
    pixels = malloc(PNG_IMAGE_SIZE(image));
    REQUIRE(pixels != NULL);
    CHECK(png_image_finish_read(&image, NULL, pixels, 0, NULL));
    return pixels;
}

/* Rows that do not compress make a file of several chunks. */
static void a_large_png(void)
{
    enum { SIDE = 301 };
    uint8_t *pixels = malloc(SIDE * SIDE * 3), *png = NULL, *back;
    uint32_t word = 1, width, height, channels;
    size_t n = 0;
    ls_err err = {0};

    REQUIRE(pixels != NULL);
    for (size_t i = 0; i < SIDE * SIDE * 3; i++)
        pixels[i] = (uint8_t)((word = word * 1664525 + 1013904223) >> 24);
    REQUIRE_OK(ls_png_encode(pixels, SIDE, SIDE, 3, &png, &n, &err), &err);
    back = decode(png, n, &width, &height, &channels);
    CHECK_EQ_INT(width * height * channels, SIDE * SIDE * 3);
    CHECK_EQ_MEM(back, pixels, SIDE * SIDE * 3);
    free(back);
    ls_free(png);
    /* Wherever memory ends, it is said and nothing is kept. */
    for (uint64_t at = 1;; at++) {
        const ls_mem_stats before = ls_mem_stats_now();
        ls_mem_fail_at(at);
        const ls_status st = ls_png_encode(pixels, SIDE, SIDE, 3, &png, &n, &(ls_err){0});
        ls_mem_fail_at(0);
        if (st == LS_OK) break;
        CHECK_EQ_INT(st, LS_NOMEM);
        CHECK(png == NULL);
        CHECK_EQ_INT(ls_mem_stats_now().live_bytes[LS_MEM_DATA], before.live_bytes[LS_MEM_DATA]);
    }
    ls_free(png);
    free(pixels);
}

static void png_there_and_back(void)
{
    uint8_t pixels[7 * 5 * 3], *png = NULL, *back;
    uint32_t width = 0, height = 0, channels = 0;
    size_t n = 0;
    ls_err err = {0};

    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)(i * 37);
    for (int c = 1; c <= 3; c += 2) {
        REQUIRE_OK(ls_png_encode(pixels, 7, 5, c, &png, &n, &err), &err);
        back = decode(png, n, &width, &height, &channels);
        CHECK_EQ_INT(width, 7);
        CHECK_EQ_INT(height, 5);
        CHECK_EQ_INT(channels, c);
        CHECK_EQ_MEM(back, pixels, (size_t)(7 * 5 * c));
        free(back);
        ls_free(png);
    }
    CHECK_EQ_INT(ls_png_encode(pixels, 7, 5, 2, &png, &n, &err), LS_INVALID);
    CHECK_EQ_INT(ls_png_encode(pixels, 0, 5, 1, &png, &n, &(ls_err){0}), LS_INVALID);
}

static void a_grid(void)
{
    float images[10][2][3];
    uint8_t *grid = NULL;
    int64_t width, height;
    ls_err err = {0};

    for (int i = 0; i < 10; i++)
        for (int k = 0; k < 6; k++) images[i][k / 3][k % 3] = (float)(i + 1) / 10;
    images[9][0][0] = NAN;
    images[9][0][1] = 7;
    images[9][0][2] = -7;
    REQUIRE_OK(
        ls_samples_grid(&(ls_sample_row){&images[0][0][0], 10}, 1, 1, 2, 3, &grid, &width, &height, &err),
        &err);
    CHECK_EQ_INT(width, 8 * 5 - 2);
    CHECK_EQ_INT(height, 2 * 4 - 2);
    CHECK_EQ_INT(grid[0], 26);     /* 0.1 */
    CHECK_EQ_INT(grid[3], 0);      /* the gap */
    CHECK_EQ_INT(grid[5], 51);     /* 0.2 */
    CHECK_EQ_INT(grid[width], 26); /* the second row of the first image */
    CHECK_EQ_INT(grid[2 * width], 0);
    CHECK_EQ_INT(grid[4 * width], 230); /* the ninth, 0.9, begins the second row */
    CHECK_EQ_INT(grid[4 * width + 5], 0);
    CHECK_EQ_INT(grid[4 * width + 6], 255);
    CHECK_EQ_INT(grid[4 * width + 7], 0);
    CHECK_EQ_INT(grid[4 * width + 10], 0); /* there is no eleventh */
    ls_free(grid);

    float *large = calloc(24 * 3 * 300 * 300, sizeof *large);
    REQUIRE_OK(ls_samples_grid(&(ls_sample_row){large, 24}, 1, 3, 300, 300, &grid, &width, &height, &err),
               &err);
    CHECK_EQ_INT(width, 4 * 302 - 2);
    CHECK_EQ_INT(height, 4 * 302 - 2);
    ls_free(grid);
    free(large);
}

/* Several rows: each begins at the left, and what is too long is left out. */
static void a_grid_of_rows(void)
{
    float images[12][2];
    const ls_sample_row rows[] = {{&images[0][0], 9}, {&images[9][0], 1}, {&images[10][0], 2}};
    uint8_t *grid = NULL;
    int64_t width, height;
    ls_err err = {0};

    for (int i = 0; i < 12; i++) images[i][0] = images[i][1] = (float)(i + 1) / 255;
    REQUIRE_OK(ls_samples_grid(rows, 3, 1, 1, 2, &grid, &width, &height, &err), &err);
    CHECK_EQ_INT(width, 8 * 4 - 2);
    CHECK_EQ_INT(height, 3 * 3 - 2);
    CHECK_EQ_INT(grid[7 * 4], 8); /* the ninth has no place */
    CHECK_EQ_INT(grid[3 * width], 10);
    CHECK_EQ_INT(grid[3 * width + 4], 0);
    CHECK_EQ_INT(grid[6 * width], 11);
    CHECK_EQ_INT(grid[6 * width + 5], 12);
    ls_free(grid);
}

/* Images of every event file of a run. */
static int count_images(const char *run, const char *tag, int64_t *last_step, uint32_t size[3])
{
    struct dirent *entry;
    DIR *dir = opendir(run);
    int n = 0;

    REQUIRE(dir != NULL);
    while ((entry = readdir(dir)) != NULL) {
        ls_event_reader *reader = NULL;
        char path[600];
        bool more = true;
        ls_err err = {0};
        if (strncmp(entry->d_name, "events.", 7) != 0) continue;
        snprintf(path, sizeof path, "%s/%s", run, entry->d_name);
        REQUIRE_OK(ls_event_reader_open(&reader, path, &err), &err);
        while (more) {
            ls_event e;
            REQUIRE_OK(ls_event_reader_next(reader, &e, &more, &err), &err);
            if (!more || e.kind != LS_EVENT_IMAGE || strcmp(e.tag, tag) != 0) continue;
            free(decode((const uint8_t *)e.bytes, e.n_bytes, &size[0], &size[1], &size[2]));
            CHECK_EQ_INT(e.width, size[0]);
            CHECK_EQ_INT(e.height, size[1]);
            CHECK_EQ_INT(e.channels, size[2]);
            *last_step = e.step;
            n++;
        }
        ls_event_reader_close(reader);
    }
    closedir(dir);
    return n;
}

/* Width, height and channels of a PNG file; `size` is zero where there is none. */
static void file_size(const char *run, const char *name, uint32_t size[3])
{
    char path[600];
    uint8_t *png = malloc(1 << 20);
    size_t n;
    FILE *f;

    snprintf(path, sizeof path, "%s/samples/%s", run, name);
    f = fopen(path, "rb");
    memset(size, 0, 3 * sizeof *size);
    if (f != NULL) {
        n = fread(png, 1, 1 << 20, f);
        fclose(f);
        free(decode(png, n, &size[0], &size[1], &size[2]));
    }
    free(png);
}

static void train(const char *model, const char *run, const char *const *settings, int n)
{
    ls_train_options o = {.threads = 1, .quiet = true};
    ls_experiment x = {0};
    json_t *summary = NULL;
    bool stopped;
    ls_err err = {0};

    REQUIRE_OK(ls_experiment_load(&x, model, settings, n, &err), &err);
    REQUIRE_OK(ls_run_create(&o.run, model, run, &err), &err);
    REQUIRE_OK(ls_train(&x, &o, &summary, &stopped, &err), &err);
    ls_run_close(o.run);
    json_decref(summary);
    ls_experiment_release(&x);
}

static void a_gan_shows_its_samples(void)
{
    char run[256];
    const char *settings[] = {
        "model.size=16",    "data.kind=synthetic", "data.train_range=0:24",     "data.test_range=24:34",
        "batch.per_rank=4", "train.steps=5",       "train.validate_every=none", "train.sample_every=2st",
        "train.samples=12", "model.width=4"};
    int64_t step = -1;
    uint32_t size[3] = {0}, file[3];

    snprintf(run, sizeof run, "%s/gan", folder);
    train("cosmogan", run, settings, (int)(sizeof settings / sizeof settings[0]));
    /* After steps 2 and 4, and at the end; of twelve samples there are ten. */
    CHECK_EQ_INT(count_images(run, "samples/fake", &step, size), 3);
    CHECK_EQ_INT(step, 5);
    CHECK_EQ_INT(size[0], 8 * 18 - 2);
    CHECK_EQ_INT(size[1], 2 * 18 - 2);
    CHECK_EQ_INT(size[2], 1);
    file_size(run, "fake-00000002.png", file);
    CHECK_EQ_MEM(file, size, sizeof size);
    file_size(run, "fake-00000005.png", file);
    CHECK_EQ_MEM(file, size, sizeof size);
    file_size(run, "fake-00000003.png", file);
    CHECK_EQ_INT(file[0], 0);
}

/* Four values of one name are one picture of four rows. */
static void rows_of_one_picture(void)
{
    char run[256];
    const char *settings[] = {
        "model.size=32",         "model.blocks=0",      "model.width=4", "data.kind=synthetic",
        "data.train_range=0:4",  "data.test_range=4:7", "train.steps=1", "train.validate_every=none",
        "train.sample_every=1st"};
    int64_t step = -1;
    uint32_t size[3] = {0};

    snprintf(run, sizeof run, "%s/rows", folder);
    train("cyclegan", run, settings, (int)(sizeof settings / sizeof settings[0]));
    CHECK_EQ_INT(count_images(run, "samples/translated", &step, size), 1);
    CHECK_EQ_INT(size[0], 3 * 34 - 2);
    CHECK_EQ_INT(size[1], 4 * 34 - 2);
    CHECK_EQ_INT(size[2], 3);
}

/* Images are in a plan of their own: neither the training step nor an evaluation knows them. */
static void training_does_not_pay(void)
{
    static const char *const models[] = {"cosmogan", "dcgan-g", "cyclegan", "cyclegan-g"};

    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        for (int k = 0; k < 3; k++) {
            const ls_build how = {.mode = k == 0 ? LS_TRAIN : LS_EVAL, .images = k == 2};
            const ls_trial *trial;
            ls_config *cfg = NULL;
            ls_step *step = NULL;
            ls_device *dev = NULL;
            ls_state *state = NULL;
            ls_plan *plan = NULL;
            int images = 0;
            ls_err err = {0};
            REQUIRE_OK(ls_trial_find(&trial, models[i], &err), &err);
            REQUIRE_OK(ls_config_create(&cfg, trial, &err), &err);
            REQUIRE_OK(ls_config_set(cfg, "model.size=32", &err), &err);
            REQUIRE_OK(ls_config_set(cfg, "model.width=4", &err), &err);
            REQUIRE_OK(ls_config_set(cfg, "batch.per_rank=2", &err), &err);
            REQUIRE_OK(ls_trial_build_as(&step, trial, cfg, &how, &err), &err);
            REQUIRE_OK(ls_device_open(&dev, "ref", 1, &err), &err);
            REQUIRE_OK(ls_state_create(&state, dev, &err), &err);
            REQUIRE_OK(ls_plan_compile_take(&plan, ls_step_graph_take(step), dev, state, &err), &err);
            for (int f = 0; f < ls_plan_fetch_count(plan); f++)
                images += strncmp(ls_plan_fetch_at(plan, f)->name, "samples/", 8) == 0;
            if (!CHECK_EQ_INT(images, how.images ? ls_plan_fetch_count(plan) : 0))
                printf("  %s, build %d: %d images\n", models[i], k, images);
            CHECK(!how.images || images > 0);
            ls_plan_destroy(plan);
            ls_state_destroy(state);
            ls_device_close(dev);
            ls_step_destroy(step);
            ls_config_destroy(cfg);
        }
}

int main(void)
{
    char command[128];
    int rc;

    if (mkdtemp(folder) == NULL) return 1;
    CHECK_RUN(png_there_and_back);
    CHECK_RUN(a_large_png);
    CHECK_RUN(a_grid);
    CHECK_RUN(a_grid_of_rows);
    CHECK_RUN(a_gan_shows_its_samples);
    CHECK_RUN(rows_of_one_picture);
    CHECK_RUN(training_does_not_pay);
    rc = CHECK_DONE();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) rc = 1;
    return rc;
}
