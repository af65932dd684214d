/* Damaged JPEG and PNG files: each mutant either decodes or is refused as LS_DATA by its name; the loader
 * counts the same ones as damaged.
 *
 * Usage: test_image_mutants [COUNT [SEED]]; COUNT is 1,000 unless given here or in $LS_MUTANTS. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/log.h"
#include "check.h"
#include "data/loader.h"
#include "image_encode.h"
#include "image_files.h"

enum { SIDE = 20, GROWTH = 512 };

static struct {
    uint64_t state;
    long count;
    char path[IMAGE_FLAVOURS][768];
    unsigned char *base[IMAGE_FLAVOURS];
    size_t size[IMAGE_FLAVOURS];
    long accepted[IMAGE_FLAVOURS], refused[IMAGE_FLAVOURS];
} test = {.state = 1, .count = 1000};

/* xorshift64*: the same mutants on every machine. */
static size_t draw(size_t n)
{
    test.state ^= test.state >> 12;
    test.state ^= test.state << 25;
    test.state ^= test.state >> 27;
    return (size_t)((test.state * UINT64_C(2685821657736338717)) >> 33) % n;
}

/* -- mutations --------------------------------------------------------------------------------------------
 */

static void flip_bits(unsigned char *p, size_t n)
{
    for (size_t k = 1 + draw(8); k > 0; k--) p[draw(n)] ^= (unsigned char)(1u << draw(8));
}

/* Headers are small and decide most: some mutants change only them. */
static void change_header(unsigned char *p, size_t n)
{
    size_t head = n < 400 ? n : 400;
    static const unsigned char odd[] = {0, 1, 0x7f, 0x80, 0xff, 0xfe, 2, 4};

    for (size_t k = 1 + draw(3); k > 0; k--) p[draw(head)] = odd[draw(sizeof odd)];
}

/* A stretch of some base takes the place of a stretch of the mutant, which may grow or shrink. */
static size_t splice(unsigned char *p, size_t n)
{
    int other = (int)draw(IMAGE_FLAVOURS);
    size_t from = draw(test.size[other]), length = 1 + draw(GROWTH / 2), at = draw(n),
           gone = draw(length + 16);

    if (length > test.size[other] - from) length = test.size[other] - from;
    if (gone > n - at) gone = n - at;
    memmove(p + at + length, p + at + gone, n - at - gone);
    memcpy(p + at, test.base[other] + from, length);
    return n - gone + length;
}

/* Checksums that fit again let a mutant past the first door of the decoder. */
static void mend_png(unsigned char *p, size_t n)
{
    for (size_t at = 8; at + 12 <= n;) {
        size_t length = (size_t)p[at] << 24 | (size_t)p[at + 1] << 16 | (size_t)p[at + 2] << 8 | p[at + 3];
        if (length > n - at - 12) return;
        unsigned long crc = crc32(0, p + at + 4, (unsigned)length + 4);
        for (int i = 0; i < 4; i++) p[at + 8 + length + (size_t)i] = (unsigned char)(crc >> (24 - 8 * i));
        at += 12 + length;
    }
}

static size_t mutate(unsigned char *p, int k)
{
    size_t n = test.size[k];

    memcpy(p, test.base[k], n);
    switch (draw(5)) {
    case 0: flip_bits(p, n); break;
    case 1: change_header(p, n); break;
    case 2: n = 1 + draw(n); break;
    case 3: n = splice(p, n); break;
    default: flip_bits(p, n); n = splice(p, n);
    }
    if (k >= PNG_RGB && draw(4) > 0) mend_png(p, n);
    return n;
}

/* -- the test ---------------------------------------------------------------------------------------------
 */

static void make_bases(char *folder)
{
    snprintf(folder, 512, "%s", image_folder(&(ls_data_make_options){0}));
    char path[640];
    snprintf(path, sizeof path, "%s/train", folder);
    REQUIRE(mkdir(path, 0777) == 0);
    snprintf(path, sizeof path, "%s/train/x", folder);
    REQUIRE(mkdir(path, 0777) == 0);
    for (int k = 0; k < IMAGE_FLAVOURS; k++) {
        snprintf(test.path[k], sizeof test.path[k], "%s/%02d", path, k);
        image_encode(test.path[k], (image_flavour)k, 37, 50);
        test.base[k] = image_load(test.path[k], &test.size[k]);
    }
}

/* Every file is a mutant of its base; returns how many the set refuses. */
static long round_of(const ls_dataset *d, float *image)
{
    long refused = 0;
    int32_t label;
    void *const fields[] = {image, &label};

    for (int k = 0; k < IMAGE_FLAVOURS; k++) {
        unsigned char *mutant = malloc(test.size[k] + GROWTH);
        ls_err err = {0};
        REQUIRE(mutant != NULL);
        image_store(test.path[k], mutant, mutate(mutant, k));
        free(mutant);
        ls_status st = ls_dataset_read(d, k, NULL, fields, &err);
        if (st == LS_OK) {
            test.accepted[k]++;
            continue;
        }
        refused++;
        test.refused[k]++;
        CHECK_STATUS(st, LS_DATA, &err);
        CHECK_CONTAINS(err.text, test.path[k]);
    }
    return refused;
}

static void mutants(void)
{
    static float image[3 * SIDE * SIDE];
    char folder[512];
    ls_err err = {0};
    ls_dataset *d;

    make_bases(folder);
    REQUIRE_OK(ls_dataset_open(&d,
                               &(ls_data_source){.kind = "images",
                                                 .path = folder,
                                                 .transform = {.resize = 24, .pad = 1, .crop = SIDE}},
                               &err),
               &err);
    REQUIRE(ls_dataset_count(d) == IMAGE_FLAVOURS);
    for (int k = 0; k < IMAGE_FLAVOURS; k++)
        CHECK_OK(ls_dataset_read(d, k, NULL, (void *const[]){image, NULL}, &err), &err);
    ls_log_set_level(LS_LOG_ERROR);
    for (long done = 0; done < test.count; done += IMAGE_FLAVOURS) {
        long refused = round_of(d, image);
        ls_loader_options o = {
            .batch = IMAGE_FLAVOURS / 2, .n_workers = 2, .on_error = LS_ON_ERROR_SKIP, .max_skipped = 1000};
        ls_loader *l;
        ls_batch b;
        REQUIRE_OK(ls_loader_create(&l, d, &o, &err), &err);
        for (int i = 0; i < 2; i++) CHECK_OK(ls_loader_next(l, &b, &err), &err);
        CHECK_EQ_INT(ls_loader_skipped(l), refused);
        ls_loader_destroy(l);
    }
    ls_log_set_level(LS_LOG_WARN);
    ls_dataset_close(d);
}

/* A test of refusals alone, or of none, would prove little. */
static void both_kinds(void)
{
    long accepted = 0, refused = 0;

    for (int k = 0; k < IMAGE_FLAVOURS; k++) {
        printf("  flavour %d: %ld accepted, %ld refused\n", k, test.accepted[k], test.refused[k]);
        accepted += test.accepted[k];
        refused += test.refused[k];
        free(test.base[k]);
    }
    printf("  %ld mutants: %ld accepted, %ld refused\n", accepted + refused, accepted, refused);
    CHECK(accepted > 0);
    CHECK(refused > 0);
}

int main(int argc, char **argv)
{
    const char *wanted = getenv("LS_MUTANTS");

    if (wanted) test.count = atol(wanted);
    if (argc > 1) test.count = atol(argv[1]);
    if (argc > 2) test.state = strtoull(argv[2], NULL, 10) + 1;
    CHECK_RUN(mutants);
    CHECK_RUN(both_kinds);
    image_clean();
    return CHECK_DONE();
}
