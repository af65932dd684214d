/* Damaged HDF5 files: whatever is done to their bytes, a set is read, or refused with LS_DATA and the file's
 * name, in bounded memory.  LS_MUTANTS sets how many are tried, LS_MUTANT_SEED where the series begins. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "check.h"
#include "data_files.h"
#include "hdf5_files.h"

enum { MAX_FILE = 1 << 20, N_SEEDS = 6 };

typedef struct seed_file {
    const char *images, *labels;
    uint8_t *bytes;
    size_t size;
} seed_file;

/* -- files to begin with
 * -------------------------------------------------------------------------------------------
 */

static void take_file(seed_file *s, const char *path, const char *images, const char *labels)
{
    FILE *f = fopen(path, "rb");

    REQUIRE(f != NULL);
    s->bytes = malloc(MAX_FILE);
    REQUIRE(s->bytes != NULL);
    s->size = fread(s->bytes, 1, MAX_FILE, f);
    fclose(f);
    s->images = images;
    s->labels = labels;
    REQUIRE(s->size > 500 && s->size < MAX_FILE);
}

static void make_seeds(seed_file seeds[N_SEEDS])
{
    static const int64_t one[] = {1, 3, 5}, some[] = {4, 2, 5}, label_chunk[] = {8};

    for (int i = 0; i < N_SEEDS; i++) {
        lsi_h5_content c[] = {
            {.name = "images",
             .element = i % 2 ? H5_F4 : H5_U1,
             .shape = LS_SHAPE(12, 3, 5),
             .sample = hdf5_sample},
            {.name = "labels", .element = H5_I4, .shape = LS_SHAPE(12), .sample = hdf5_label}};
        c[0].arg = &c[0];
        c[1].arg = &c[1];
        if (i >= 2) c[0].chunk = i % 2 ? one : some;
        if (i >= 2) c[1].chunk = label_chunk;
        c[0].deflate = i >= 4 ? 6 : 0;
        c[0].shuffle = i == 5;
        c[0].fletcher32 = i == 3;
        take_file(&seeds[i], hdf5_write("seed.h5", c, 2), "mutant.h5:/images", i % 3 ? ":/labels" : NULL);
    }
}

/* -- damage
 * --------------------------------------------------------------------------------------------------------
 */

typedef struct dice {
    ls_rng_key key;
    uint32_t mutant;
    uint64_t n;
} dice;

static size_t roll(dice *d, size_t limit)
{
    return (size_t)((uint64_t)ls_rng_word(&d->key, 1, d->mutant, d->n++) * limit >> 32);
}

/* One to four changes: bits, bytes, numbers that are often checked wrongly, moved blocks, a shorter file. */
static size_t mutate(dice *d, uint8_t *p, size_t size)
{
    static const uint64_t odd[] = {0,
                                   1,
                                   0xff,
                                   0x7f,
                                   0x80,
                                   0xffff,
                                   0x10000,
                                   0x7fffffff,
                                   0x80000000,
                                   0xffffffff,
                                   0x100000000ull,
                                   UINT64_MAX,
                                   UINT64_MAX / 2,
                                   0xfffffffffffffffeull};

    for (size_t k = 1 + roll(d, 4); k > 0; k--) {
        const size_t at = roll(d, size), width = (size_t)1 << roll(d, 4), other = roll(d, size);
        const size_t n = roll(d, 64), room = size - (at > other ? at : other);
        uint64_t word = odd[roll(d, sizeof odd / sizeof odd[0])];
        switch (roll(d, 8)) {
        case 0:
        case 1: p[at] ^= (uint8_t)(1u << roll(d, 8)); break;
        case 2: p[at] = (uint8_t)roll(d, 256); break;
        case 3:
        case 4:
            for (size_t i = 0; i < width && at + i < size; i++) p[at + i] = (uint8_t)(word >> (8 * i));
            break;
        case 5: p[at] = (uint8_t)(p[at] + 1 - 2 * roll(d, 2)); break;
        case 6: memmove(p + at, p + other, n < room ? n : room); break;
        default:
            if (roll(d, 4) == 0) size = 1 + at;
            break;
        }
    }
    return size;
}

/* -- outcome
 * -------------------------------------------------------------------------------------------------------
 */

typedef enum outcome { READS, SAMPLES_REFUSED, REFUSED, BROKE_DOWN, N_OUTCOMES } outcome;

static outcome try(const ls_data_source *src, ls_err *err)
{
    ls_dataset *d;
    void *fields[2] = {NULL};
    outcome result = READS;

    if (ls_dataset_open(&d, src, err) != LS_OK)
        return strstr(err->text, "the HDF5 library") ? BROKE_DOWN : REFUSED;
    const ls_field *list;
    const int n = ls_dataset_fields(d, &list);
    for (int i = 0; i < n; i++) {
        fields[i] = malloc(ls_dataset_field_bytes(d, i) + 1);
        REQUIRE(fields[i] != NULL);
    }
    for (int64_t i = 0; result == READS && i < ls_dataset_count(d) && i < 64; i++)
        if (ls_dataset_read(d, i, NULL, fields, err) != LS_OK) result = SAMPLES_REFUSED;
    for (int i = 0; i < n; i++) free(fields[i]);
    ls_dataset_close(d);
    return result;
}

static void mutants(void)
{
    const char *text = getenv("LS_MUTANTS"), *first = getenv("LS_MUTANT_SEED");
    const int n = text ? atoi(text) : check_is_slow_build() ? 120 : 400, start = first ? atoi(first) : 0;
    seed_file seeds[N_SEEDS] = {{0}};
    int count[N_OUTCOMES] = {0}, slow = 0;
    static uint8_t bytes[MAX_FILE];
    const size_t before = ls_mem_stats_now().peak_bytes;

    make_seeds(seeds);
    for (int i = start; i < start + n; i++) {
        const seed_file *s = &seeds[i % N_SEEDS];
        dice d = {.key = {.seed_lo = 2026}, .mutant = (uint32_t)i};
        ls_err err = {0};
        struct timespec a, b;
        memcpy(bytes, s->bytes, s->size);
        data_write("mutant.h5", bytes, mutate(&d, bytes, s->size), false);
        const ls_data_source src = {
            .kind = "hdf5", .path = data_folder(), .images = s->images, .labels = s->labels, .classes = 10};
        clock_gettime(CLOCK_MONOTONIC, &a);
        outcome result = try(&src, &err);
        clock_gettime(CLOCK_MONOTONIC, &b);
        slow += b.tv_sec - a.tv_sec > 1;
        count[result]++;
        bool named = result == READS || (err.status == LS_DATA && strstr(err.text, "mutant.h5"));
        if (!CHECK(named)) printf("mutant %d: status %d: %s\n", i, (int)err.status, err.text);
    }
    printf("%d mutants: %d read, %d with samples refused, %d refused, %d broke the library, %d took over a "
           "second\n",
           n, count[READS], count[SAMPLES_REFUSED], count[REFUSED], count[BROKE_DOWN], slow);
    CHECK(ls_mem_stats_now().peak_bytes - before < (size_t)256 << 20);
    for (int i = 0; i < N_SEEDS; i++) free(seeds[i].bytes);
}

int main(void)
{
#ifndef LS_HAVE_HDF5
    const bool have_library = false;
#else
    const bool have_library = true;
#endif

    if (!have_library) CHECK_SKIP("built without HDF5");
    CHECK_RUN(mutants);
    data_clean();
    return CHECK_DONE();
}
