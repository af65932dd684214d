/* Pad, crop, flip, resize and normalisation: which pixels come out, and that the random ones depend on
 * nothing but seed, epoch and position. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "data/loader.h"
#include "data_files.h"
#include "image_files.h"
#include "loader_test.h"

enum { SIDE = 32, PLANE = SIDE * SIDE, PIXELS = 3 * PLANE, RECORD = 1 + PIXELS, RECORDS = 23 };

static unsigned char records[RECORDS * RECORD];

static void write_cifar(void)
{
    unsigned state = 7;

    for (int i = 0; i < RECORDS * RECORD; i++) {
        state = state * 1103515245u + 12345u;
        records[i] = (unsigned char)(i % RECORD == 0 ? (unsigned)(i / RECORD % 10) : state >> 16);
    }
    data_write("data_batch_1.bin", records, sizeof records, false);
}

static ls_dataset *open_cifar(ls_transform t, const char *normalise)
{
    ls_err err = {0};
    ls_dataset *d;

    REQUIRE_OK(ls_dataset_open(&d,
                               &(ls_data_source){.kind = "cifar",
                                                 .path = data_folder(),
                                                 .normalise = normalise,
                                                 .transform = t,
                                                 .classes = 10},
                               &err),
               &err);
    return d;
}

static void read_image(const ls_dataset *d, int64_t index, const ls_rng_key *key, float *out)
{
    ls_err err = {0};
    REQUIRE_OK(ls_dataset_read(d, index, key, (void *const[]){out, NULL}, &err), &err);
}

/* Pixel (c, y, x) of a record with black around it, as it should come out. */
static float pixel_of(int record, int c, int y, int x)
{
    const bool inside = y >= 0 && y < SIDE && x >= 0 && x < SIDE;
    return inside ? (float)records[record * RECORD + 1 + c * PLANE + y * SIDE + x] / 255.0f : 0;
}

static bool is_window(const float *image, int side, int record, int top, int left, bool mirrored)
{
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < side; y++)
            for (int x = 0; x < side; x++)
                if (image[(c * side + y) * side + x] !=
                    pixel_of(record, c, top + y, left + (mirrored ? side - 1 - x : x)))
                    return false;
    return true;
}

/* CIFAR's recipe: every image is one of 81 windows, mirrored or not, and all of these are met. */
static void pad_crop_flip(void)
{
    enum { DRAWS = 4000 };
    ls_dataset *d = open_cifar((ls_transform){.pad = 4, .crop = SIDE, .flip = true}, NULL);
    static int tops[9], lefts[9], flips[2];
    float image[PIXELS];

    read_image(d, 3, NULL, image);
    CHECK(is_window(image, SIDE, 3, 0, 0, false));
    for (int i = 0; i < DRAWS; i++) {
        const ls_rng_key key = {.seed_lo = 5, .step = (uint32_t)i / 100, .sample_base = (uint32_t)i % 100};
        int record = i % RECORDS, found = 0;
        read_image(d, record, &key, image);
        for (int k = 0; k < 81 * 2 && !found; k++) {
            if (!is_window(image, SIDE, record, k / 2 / 9 - 4, k / 2 % 9 - 4, k % 2)) continue;
            found++;
            tops[k / 2 / 9]++;
            lefts[k / 2 % 9]++;
            flips[k % 2]++;
        }
        if (!CHECK_EQ_INT(found, 1)) break;
    }
    /* Six standard deviations of a binomial count. */
    for (int k = 0; k < 9; k++) {
        CHECK_NEAR(tops[k], DRAWS / 9.0, 6 * sqrt(DRAWS * 8 / 81.0));
        CHECK_NEAR(lefts[k], DRAWS / 9.0, 6 * sqrt(DRAWS * 8 / 81.0));
    }
    CHECK_NEAR(flips[1], DRAWS / 2.0, 6 * sqrt(DRAWS / 4.0));
    ls_dataset_close(d);
}

/* Without a key the middle is taken, halves as torchvision rounds them; padding alone enlarges. */
static void fixed_windows(void)
{
    static const struct {
        ls_transform t;
        int side, at;
    } cases[] = {
        {{.crop = 31}, 31, 0},           {{.crop = 30}, 30, 1},   {{.crop = 29}, 29, 2},
        {{.crop = 27}, 27, 2},           {{.crop = 1}, 1, 16},    {{.pad = 3}, 38, -3},
        {{.pad = 40, .crop = 8}, 8, 12}, {{.flip = true}, 32, 0},
    };
    static float image[3 * 38 * 38];

    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        const ls_field *f;
        ls_dataset *d = open_cifar(cases[k].t, NULL);
        ls_dataset_fields(d, &f);
        REQUIRE(ls_shape_equal(f[0].shape, LS_SHAPE(3, cases[k].side, cases[k].side)));
        read_image(d, 2, NULL, image);
        if (!CHECK(is_window(image, cases[k].side, 2, cases[k].at, cases[k].at, false)))
            printf("  case %zu\n", k);
        ls_dataset_close(d);
    }
}

/* A window may lie beside the image altogether. */
static void only_padding(void)
{
    ls_dataset *d = open_cifar((ls_transform){.pad = 50, .crop = 4, .flip = true}, NULL);
    float image[3 * 4 * 4];
    int black = 0;

    for (uint32_t i = 0; i < 500; i++) {
        const ls_rng_key key = {.sample_base = i};
        int lit = 0;
        read_image(d, 0, &key, image);
        for (int k = 0; k < 48; k++) lit += image[k] > 0;
        black += lit == 0;
    }
    CHECK(black > 300);
    CHECK(black < 500);
    ls_dataset_close(d);
}

static void normalised(void)
{
    static const struct {
        const char *name;
        double mean[3], deviation[3];
    } cases[] = {{"imagenet", {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}},
                 {"cifar", {0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616}},
                 {"unit", {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}}};
    static float image[3 * 34 * 34];

    for (size_t k = 0; k < 3; k++) {
        ls_dataset *d = open_cifar((ls_transform){.pad = 1}, cases[k].name);
        read_image(d, 1, NULL, image);
        for (int c = 0; c < 3; c++) {
            const double p = (double)pixel_of(1, c, 5, 6);
            CHECK_NEAR(image[(c * 34 + 6) * 34 + 7], (p - cases[k].mean[c]) / cases[k].deviation[c], 1e-6);
            /* Padding is black before it is normalised. */
            CHECK_NEAR(image[c * 34 * 34], -cases[k].mean[c] / cases[k].deviation[c], 1e-6);
        }
        ls_dataset_close(d);
    }
}

/* A resize keeps what is constant, and a ramp stays one; tests/data/test_pillow.sh compares every bit. */
static void resized(void)
{
    static unsigned char flat[2 * 3 * 40 * 30];
    static float image[3 * 26 * 20];
    ls_err err = {0};
    ls_dataset *d;

    for (int i = 0; i < 3 * 40 * 30; i++) {
        flat[i] = 77;
        flat[3600 + i] = (unsigned char)(i % 30 * 8);
    }
    data_write_npy("flat.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3, 40, 30), }", flat,
                   sizeof flat);
    REQUIRE_OK(ls_dataset_open(&d,
                               &(ls_data_source){.kind = "npy",
                                                 .path = data_folder(),
                                                 .images = "flat.npy",
                                                 .transform = {.resize = 20}},
                               &err),
               &err);
    const ls_field *f;
    ls_dataset_fields(d, &f);
    REQUIRE(ls_shape_equal(f[0].shape, LS_SHAPE(3, 26, 20))); /* 20 * 40 / 30 rounded down */
    read_image(d, 0, NULL, image);
    for (int i = 0; i < 3 * 26 * 20; i++)
        if (!CHECK_NEAR(image[i], 77 / 255.0, 1e-6)) break;
    read_image(d, 1, NULL, image);
    for (int x = 2; x < 18; x++) CHECK_NEAR(image[x], ((x + 0.5) * 1.5 - 0.5) * 8 / 255, 1.0 / 255);
    ls_dataset_close(d);
}

/* -- through the loader -----------------------------------------------------------------------------------
 */

enum { BATCH = 4, BATCHES = 6 };

/* The same pixels for 0, 1 and 3 workers, on 2 ranks, and from the middle of an epoch on. */
static void same_sequence(const ls_dataset *d, size_t sample)
{
    const ls_loader_options base = {.batch = BATCH, .shuffle = true, .augment = true, .seed = 11};
    const int workers[] = {1, 3};
    ls_loader *plain = loader_open(d, base), *other[2], *rank[2];
    int64_t positions[3 * BATCHES];

    for (int k = 0; k < 2; k++) {
        ls_loader_options o = base;
        o.n_workers = workers[k];
        other[k] = loader_open(d, o);
        o = base;
        o.batch = BATCH / 2;
        o.n_ranks = 2;
        o.rank = k;
        o.n_workers = k;
        rank[k] = loader_open(d, o);
    }
    for (int i = 0; i < 3 * BATCHES; i++) {
        positions[i] = ls_loader_position(plain);
        ls_batch a = loader_next(plain);
        size_t at = 0;
        for (int k = 0; k < 2; k++) {
            ls_batch b = loader_next(other[k]), part = loader_next(rank[k]);
            CHECK_EQ_MEM(b.fields[0], a.fields[0], sample * (size_t)a.n);
            CHECK_EQ_MEM(part.fields[0], (char *)a.fields[0] + at * sample, sample * (size_t)part.n);
            at += (size_t)part.n;
        }
        CHECK_EQ_INT(at, a.n);
    }
    for (int i = 0; i < 3 * BATCHES - 1; i += 4) {
        ls_loader_options o = base;
        o.first = positions[i];
        o.n_workers = 2;
        ls_loader *from = loader_open(d, o), *whole = loader_open(d, base);
        for (int k = 0; k < i; k++) loader_next(whole);
        for (int k = 0; k < 3; k++) {
            ls_batch a = loader_next(whole), b = loader_next(from);
            CHECK_EQ_MEM(b.fields[0], a.fields[0], sample * (size_t)a.n);
        }
        ls_loader_destroy(from);
        ls_loader_destroy(whole);
    }
    ls_loader_destroy(plain);
    for (int k = 0; k < 2; k++) {
        ls_loader_destroy(other[k]);
        ls_loader_destroy(rank[k]);
    }
}

static void loader_cifar(void)
{
    ls_dataset *d = open_cifar((ls_transform){.pad = 4, .crop = SIDE, .flip = true}, "cifar"),
               *still = open_cifar((ls_transform){0}, "cifar");
    float image[PIXELS];
    int changed = 0, seen = 0;

    same_sequence(d, sizeof image);
    /* Without augment the loader gives the images as they are. */
    ls_loader *l = loader_open(d, (ls_loader_options){.batch = BATCH, .n_workers = 1}),
              *trained = loader_open(d, (ls_loader_options){.batch = BATCH, .augment = true});
    for (int i = 0; i < BATCHES; i++) {
        ls_batch b = loader_next(l), t = loader_next(trained);
        for (int64_t k = 0; k < b.n; k++) {
            read_image(still, b.indices[k], NULL, image);
            CHECK_EQ_MEM((float *)b.fields[0] + k * PIXELS, image, sizeof image);
            changed += memcmp((float *)t.fields[0] + k * PIXELS, image, sizeof image) != 0;
            seen++;
        }
    }
    CHECK_EQ_INT(seen, RECORDS);
    CHECK(changed > RECORDS / 2);
    ls_loader_destroy(l);
    ls_loader_destroy(trained);
    ls_dataset_close(d);
    ls_dataset_close(still);
}

static ls_dataset *open_unpaired(const char *path, ls_transform t)
{
    ls_err err = {0};
    ls_dataset *d;

    REQUIRE_OK(ls_dataset_open(
                   &d,
                   &(ls_data_source){.kind = "images", .layout = "unpaired", .path = path, .transform = t},
                   &err),
               &err);
    return d;
}

/* Eleven images of A and five of B: eleven pairs, every A once per epoch, every B twice or three times, and
 * partners that change. */
static void loader_unpaired(void)
{
    enum { ALL = 3 * 20 * 20 };
    const char *path = image_folder(
        &(ls_data_make_options){.kind = "unpaired", .train = 22, .test = 4, .shape = LS_SHAPE(3, 24, 20)});
    char name[1024];
    static float b_of[11][3 * 24 * 20];
    int pairs[2][11];

    for (int i = 5; i < 11; i++) {
        snprintf(name, sizeof name, "%s/trainB/%05d.jpg", path, i);
        REQUIRE(remove(name) == 0);
    }
    ls_dataset *d = open_unpaired(path, (ls_transform){0});
    CHECK_EQ_INT(ls_dataset_count(d), 11);
    CHECK_EQ_INT(ls_dataset_find(d, "image_a"), 0);
    CHECK_EQ_INT(ls_dataset_find(d, "image_b"), 1);
    for (int i = 0; i < 11; i++)
        REQUIRE_OK(ls_dataset_read(d, i, NULL, (void *const[]){NULL, b_of[i]}, NULL), NULL);
    CHECK_EQ_MEM(b_of[0], b_of[5], sizeof b_of[0]);
    ls_loader *l =
        loader_open(d, (ls_loader_options){.batch = 1, .shuffle = true, .augment = true, .seed = 2});
    for (int epoch = 0; epoch < 2; epoch++) {
        int met[5] = {0};
        for (int i = 0; i < 11; i++) {
            ls_batch b = loader_next(l);
            for (int k = 0; k < 5; k++) {
                if (memcmp(b.fields[1], b_of[k], sizeof b_of[k]) != 0) continue;
                met[k]++;
                pairs[epoch][b.indices[0]] = k;
            }
        }
        for (int k = 0; k < 5; k++) CHECK(met[k] == 2 || met[k] == 3);
    }
    CHECK(memcmp(pairs[0], pairs[1], sizeof pairs[0]) != 0);
    ls_loader_destroy(l);
    ls_dataset_close(d);
    d = open_unpaired(path, (ls_transform){.resize = 24, .crop = 20, .flip = true});
    same_sequence(d, sizeof(float) * ALL);
    ls_dataset_close(d);
}

static void refused(void)
{
    const float floats[12] = {0};

    data_write_npy("f.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 2, 2), }", floats,
                   sizeof floats);
    ls_data_source src = {
        .kind = "npy", .path = data_folder(), .images = "f.npy", .transform = {.flip = true}};
    data_check_refused(&src, LS_INVALID, "flip is for images of bytes", "npy");
    src = (ls_data_source){.kind = "cifar", .path = data_folder(), .transform = {.crop = -1}};
    data_check_refused(&src, LS_INVALID, "crop=-1", NULL);
    src.transform = (ls_transform){.crop = 41, .pad = 4};
    data_check_refused(&src, LS_INVALID, "crop=41 is more than images of 32 x 32", "pad=4");
    src.transform = (ls_transform){.crop = 40, .resize = 36, .pad = 1};
    data_check_refused(&src, LS_INVALID, "crop=40", "resize=36");
}

int main(void)
{
    write_cifar();
    CHECK_RUN(pad_crop_flip);
    CHECK_RUN(fixed_windows);
    CHECK_RUN(only_padding);
    CHECK_RUN(normalised);
    CHECK_RUN(resized);
    CHECK_RUN(loader_cifar);
    CHECK_RUN(loader_unpaired);
    CHECK_RUN(refused);
    data_clean();
    image_clean();
    return CHECK_DONE();
}
