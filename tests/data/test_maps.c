/* test_maps.c: made-up maps have the distribution they promise, and a split cuts a set into two parts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "data/make.h"
#include "data_files.h"

enum { SIDE = 32, MAPS = 200 };

static float maps[MAPS][SIDE][SIDE];

/* Makes a set, reads its training maps and removes it. */
static void make_and_read(uint64_t seed)
{
    static const char *const names[] = {"train-images.npy", "test-images.npy"};
    char folder[1024], path[1200];
    ls_dataset *d = NULL;
    const ls_field *field;
    ls_err err = {0};

    snprintf(folder, sizeof folder, "%s/maps", data_folder());
    REQUIRE_OK(ls_data_make(
                   &(ls_data_make_options){
                       .kind = "npy", .path = folder, .maps = SIDE, .train = MAPS, .test = 3, .seed = seed},
                   &err),
               &err);
    REQUIRE_OK(ls_dataset_open(&d, &(ls_data_source){.kind = "npy", .path = folder, .images = "train"}, &err),
               &err);
    CHECK_EQ_INT(ls_dataset_count(d), MAPS);
    CHECK_EQ_INT(ls_dataset_fields(d, &field), 1);
    CHECK(ls_shape_equal(field[0].shape, LS_SHAPE(1, SIDE, SIDE)));
    for (int i = 0; i < MAPS; i++)
        REQUIRE_OK(ls_dataset_read(d, i, NULL, (void *const[]){maps[i]}, &err), &err);
    ls_dataset_close(d);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        CHECK(unlink(path) == 0);
    }
    CHECK(rmdir(folder) == 0);
}

/* The logarithm of (v + 1) / 2 is normal with mean -2.4 and deviation 0.6, cut off at 0: four deviations. */
static void maps_are_log_normal(void)
{
    const double n = (double)MAPS * SIDE * SIDE;
    double mean = 0, square = 0, fourth = 0, above = 0, steps = 0;
    int inside = 0;

    make_and_read(5);
    for (int i = 0; i < MAPS * SIDE * SIDE; i++) {
        const double v = (double)(&maps[0][0][0])[i], g = (log((v + 1) / 2) + 2.4) / 0.6;
        inside += v > -1 && v <= 1;
        mean += g / n;
        square += g * g / n;
        fourth += g * g * g * g / n;
        above += (v > 0) / n;
        if (i % SIDE > 0) steps += fabs(v - (double)(&maps[0][0][0])[i - 1]) / n;
    }
    CHECK_EQ_INT(inside, MAPS * SIDE * SIDE);
    CHECK_NEAR(mean, 0, 0.02);
    CHECK_NEAR(square, 1, 0.05);
    CHECK_NEAR(fourth, 3, 0.4);
    CHECK_NEAR(above, 0.0022, 0.0012); /* far more than a normal distribution of the same width has */
    CHECK(steps < 0.05);               /* neighbours differ by much less than the whole does */
}

static void maps_follow_from_the_seed(void)
{
    float *first = malloc(sizeof maps);

    make_and_read(1);
    memcpy(first, maps, sizeof maps);
    make_and_read(1);
    CHECK(memcmp(first, maps, sizeof maps) == 0);
    make_and_read(2);
    CHECK(memcmp(first, maps, sizeof maps) != 0);
    CHECK(memcmp(maps[0], maps[1], sizeof maps[0]) != 0);
    free(first);
}

static void maps_refused(void)
{
    ls_err err = {0};

    CHECK_STATUS(ls_data_make(&(ls_data_make_options){.kind = "idx", .path = "x", .maps = 16}, &err),
                 LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "not as idx");
    err = (ls_err){0};
    CHECK_STATUS(ls_data_make(&(ls_data_make_options){.kind = "npy", .path = "x", .maps = 4}, &err),
                 LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "8 to");
    err = (ls_err){0};
    CHECK_STATUS(
        ls_data_make(
            &(ls_data_make_options){.kind = "npy", .path = "x", .maps = 16, .shape = LS_SHAPE(1, 8, 8)},
            &err),
        LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "leave the shape out");
}

/* -- splits -----------------------------------------------------------------------------------------------
 */

/* Marks which of the set's 90 samples (from 10 on) a part holds, by their labels' place in the order. */
static int64_t mark(double split, uint64_t seed, bool rest, int times[90])
{
    const ls_field fields[] = {{"value", LS_F32, LS_SHAPE(2)}};
    ls_data_source src = {
        .kind = "synthetic", .count = 100, .seed = 3, .n_fields = 1, .fields = fields, .first = 10};
    ls_dataset *whole = NULL, *part = NULL;
    float a[2], b[2];
    int64_t at = 0, n;
    ls_err err = {0};

    REQUIRE_OK(ls_dataset_open(&whole, &src, &err), &err);
    src.split = split;
    src.split_seed = seed;
    src.rest = rest;
    REQUIRE_OK(ls_dataset_open(&part, &src, &err), &err);
    n = ls_dataset_count(part);
    for (int64_t i = 0; i < n; i++) {
        REQUIRE_OK(ls_dataset_read(part, i, NULL, (void *const[]){a}, &err), &err);
        for (; at < 90; at++) { /* in stored order */
            REQUIRE_OK(ls_dataset_read(whole, at, NULL, (void *const[]){b}, &err), &err);
            if (memcmp(a, b, sizeof a) == 0) break;
        }
        REQUIRE(at < 90);
        times[at++]++;
    }
    ls_dataset_close(part);
    ls_dataset_close(whole);
    return n;
}

static void a_split_has_two_parts(void)
{
    int times[90] = {0}, first[90] = {0}, other[90] = {0}, early = 0;

    CHECK_EQ_INT(mark(0.8, 333, false, times), 72);
    memcpy(first, times, sizeof first);
    CHECK_EQ_INT(mark(0.8, 333, true, times), 18);
    for (int i = 0; i < 90; i++) CHECK_EQ_INT(times[i], 1);
    for (int i = 0; i < 18; i++) early += first[i];
    CHECK(early < 18); /* not simply the first ones */
    CHECK_EQ_INT(mark(0.8, 334, false, other), 72);
    CHECK(memcmp(first, other, sizeof first) != 0);
}

static void a_split_is_refused_that_leaves_nothing(void)
{
    const ls_data_source all = {.kind = "synthetic", .count = 10, .split = 1, .rest = true};
    const ls_data_source none = {.kind = "synthetic", .count = 10, .split = 0.05};

    data_check_refused(&all, LS_INVALID, "leaves one part empty", NULL);
    data_check_refused(&none, LS_INVALID, "leaves one part empty", NULL);
}

int main(void)
{
    CHECK_RUN(maps_are_log_normal);
    CHECK_RUN(maps_follow_from_the_seed);
    CHECK_RUN(maps_refused);
    CHECK_RUN(a_split_has_two_parts);
    CHECK_RUN(a_split_is_refused_that_leaves_nothing);
    data_clean();
    return CHECK_DONE();
}
