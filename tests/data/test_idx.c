/* IDX sets: values, names, ranges, compressed files, MNIST itself, and everything that can be wrong. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "data_files.h"

static void check_values(const ls_data_source *src, int first, int count, int pixels)
{
    ls_err err = {0};
    ls_dataset *d;
    const ls_field *field;
    float image[64];
    int32_t label;
    void *const fields[] = {image, &label};

    REQUIRE_OK(ls_dataset_open(&d, src, &err), &err);
    CHECK_EQ_INT(ls_dataset_count(d), count);
    CHECK_EQ_INT(ls_dataset_fields(d, &field), 2);
    CHECK_EQ_STR(field[0].name, "image");
    CHECK_EQ_STR(field[1].name, "label");
    CHECK_EQ_INT(field[0].dtype, LS_F32);
    CHECK_EQ_INT(field[1].dtype, LS_I32);
    CHECK_EQ_INT(ls_dataset_field_bytes(d, 0), (size_t)pixels * sizeof(float));
    CHECK_EQ_INT(ls_dataset_find(d, "label"), 1);
    CHECK_EQ_INT(ls_dataset_find(d, "mask"), -1);
    for (int s = 0; s < count; s++) {
        REQUIRE_OK(ls_dataset_read(d, s, NULL, fields, &err), &err);
        CHECK_EQ_INT(label, (first + s) % 10);
        for (int i = 0; i < pixels; i++)
            if (!CHECK(image[i] == (float)data_pixel(first + s, i) / 255.0f)) break;
    }
    ls_dataset_close(d);
}

static void values(void)
{
    ls_data_source src = {.kind = "idx", .path = data_folder(), .classes = 10};

    data_write_idx("train", 25, 4, 6, false);
    check_values(&src, 0, 25, 24);
    src.first = 20;
    check_values(&src, 20, 5, 24);
    src.end = 22;
    check_values(&src, 20, 2, 24);
    data_write_idx("t10k", 7, 3, 3, true);
    check_values(&(ls_data_source){.kind = "idx", .path = data_folder(), .images = "test"}, 0, 7, 9);
    check_values(
        &(ls_data_source){.kind = "idx", .path = data_folder(), .images = "t10k-images-idx3-ubyte.gz"}, 0, 7,
        9);
}

static void normalise(void)
{
    const char *const names[] = {"none", "mnist", "unit"};
    float image[64];
    int32_t label;
    void *const fields[] = {image, &label};

    data_write_idx("train", 3, 4, 6, false);
    for (int k = 0; k < 3; k++) {
        ls_err err = {0};
        ls_dataset *d;
        REQUIRE_OK(
            ls_dataset_open(
                &d, &(ls_data_source){.kind = "idx", .path = data_folder(), .normalise = names[k]}, &err),
            &err);
        REQUIRE_OK(ls_dataset_read(d, 2, NULL, fields, &err), &err);
        double x = data_pixel(2, 5) / 255.0;
        CHECK_NEAR(image[5], k == 0 ? x : k == 1 ? (x - 0.1307) / 0.3081 : 2 * x - 1, 1e-6);
        ls_dataset_close(d);
    }
    data_check_refused(&(ls_data_source){.kind = "idx", .path = data_folder(), .normalise = "mnst"},
                       LS_INVALID, "\"mnst\"", "did you mean \"mnist\"");
}

/* Changes one byte of a written file, or cuts it to `size` bytes when `at` is negative. */
static void damage(const char *name, long at, int value, long size)
{
    char path[1024];

    snprintf(path, sizeof path, "%s/%s", data_folder(), name);
    if (at < 0) {
        REQUIRE(truncate(path, size) == 0);
        return;
    }
    FILE *f = fopen(path, "r+b");
    REQUIRE(f != NULL);
    REQUIRE(fseek(f, at, SEEK_SET) == 0);
    REQUIRE(fputc(value, f) == value);
    REQUIRE(fclose(f) == 0);
}

#define IMAGES "train-images-idx3-ubyte"
#define LABELS "train-labels-idx1-ubyte"

static void refused(void)
{
    const ls_data_source src = {.kind = "idx", .path = data_folder(), .classes = 10};
    const struct {
        const char *file;
        long at;
        int value;
        long size;
        const char *part, *other;
    } cases[] = {
        {IMAGES, 3, 0x01, 0, IMAGES ": byte 0: 0x00000801", "0x00000803"},
        {LABELS, 3, 0x03, 0, LABELS ": byte 0: 0x00000803", "0x00000801"},
        {IMAGES, -1, 0, 100, IMAGES ": truncated", "84 bytes"},
        {IMAGES, -1, 0, 15, IMAGES ": 15 bytes", "header"},
        {LABELS, -1, 0, 20, LABELS ": truncated", "12 bytes"},
        {LABELS, -1, 0, 3, LABELS ": 3 bytes", "header"},
        {IMAGES, -1, 0, 0, IMAGES ": is empty", NULL},
        {IMAGES, 4, 0xff, 0, IMAGES ": truncated", "promises"},
        {IMAGES, 8, 0xff, 0, IMAGES, "promises"},
        {IMAGES, 11, 0x00, 0, IMAGES ": byte 8", "0 x 6"},
        {IMAGES, 7, 20, 0, IMAGES ": wrong size", "20 items"},
    };

    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        data_write_idx("train", 25, 4, 6, false);
        damage(cases[k].file, cases[k].at, cases[k].value, cases[k].size);
        data_check_refused(&src, LS_DATA, cases[k].part, cases[k].other);
    }
    data_write_idx("train", 25, 4, 6, false);
    data_write_idx("other", 24, 4, 6, false);
    data_check_refused(
        &(ls_data_source){.kind = "idx", .path = data_folder(), .labels = "other-labels-idx1-ubyte"}, LS_DATA,
        "24 labels", "25 images");
    data_write_idx("none", 0, 4, 6, false);
    data_check_refused(
        &(ls_data_source){.kind = "idx", .path = data_folder(), .images = "none-images-idx3-ubyte"}, LS_DATA,
        "no samples", NULL);
    data_check_refused(&(ls_data_source){.kind = "idx", .path = "/nowhere"}, LS_DATA, "/nowhere/" IMAGES,
                       "no such file");
    data_check_refused(&(ls_data_source){.kind = "idx", .images = data_folder(), .labels = "x"}, LS_DATA,
                       "no plain file", NULL);
    data_check_refused(&(ls_data_source){.kind = "idx", .path = data_folder(), .first = 20, .end = 26},
                       LS_INVALID, "20 to 26", "0 to 25");
    data_check_refused(&(ls_data_source){.kind = "idx", .path = data_folder(), .images = "digits"},
                       LS_INVALID, "digits", "labels");
    data_check_refused(&(ls_data_source){.kind = "idxx"}, LS_INVALID, "idxx", "did you mean \"idx\"");
    data_check_refused(&(ls_data_source){0}, LS_INVALID, "no kind", "synthetic");
    if (geteuid() != 0) {
        char path[1024];
        snprintf(path, sizeof path, "%s/" IMAGES, data_folder());
        REQUIRE(chmod(path, 0) == 0);
        data_check_refused(&src, LS_DATA, path, "cannot be opened");
        REQUIRE(chmod(path, 0600) == 0);
    }
}

static void gzip_damage(void)
{
    const ls_data_source src = {.kind = "idx", .path = data_folder(), .images = "g-images-idx3-ubyte"};
    char path[1024];
    struct stat info;

    data_write_idx("g", 100, 10, 10, true);
    snprintf(path, sizeof path, "%s/g-images-idx3-ubyte.gz", data_folder());
    REQUIRE(stat(path, &info) == 0);
    damage("g-images-idx3-ubyte.gz", -1, 0, info.st_size - 12);
    data_check_refused(&src, LS_DATA, "g-images-idx3-ubyte.gz", "ends early");
    data_write_idx("g", 100, 10, 10, true);
    damage("g-images-idx3-ubyte.gz", info.st_size - 6, 0x55, 0); /* in the checksum */
    data_check_refused(&src, LS_DATA, "g-images-idx3-ubyte.gz", "damaged near byte");
    /* A wrong length at the end makes the first guess wrong, and the file damaged. */
    data_write_idx("g", 100, 10, 10, true);
    damage("g-images-idx3-ubyte.gz", info.st_size - 4, 0x01, 0);
    data_check_refused(&src, LS_DATA, "g-images-idx3-ubyte.gz", "damaged near byte");
}

static void bad_label(void)
{
    ls_err err = {0};
    ls_dataset *d;
    float image[24];
    int32_t label;
    void *const fields[] = {image, &label};

    data_write_idx("train", 25, 4, 6, false);
    damage(LABELS, 8 + 13, 10, 0);
    REQUIRE_OK(
        ls_dataset_open(&d, &(ls_data_source){.kind = "idx", .path = data_folder(), .classes = 10}, &err),
        &err);
    CHECK_OK(ls_dataset_read(d, 12, NULL, fields, &err), &err);
    CHECK_STATUS(ls_dataset_read(d, 13, NULL, fields, &err), LS_DATA, &err);
    CHECK_CONTAINS(err.text, LABELS ": the label of sample 13 (byte 21) is 10");
    CHECK_OK(ls_dataset_read(d, 14, NULL, fields, NULL), NULL);
    ls_dataset_close(d);
}

/* Facts about the published test set, where it is at hand. */
static void mnist(void)
{
    const char *folder = "../shared/data/mnist";
    const int per_class[10] = {980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009};
    int counts[10] = {0};
    ls_err err = {0};
    ls_dataset *d;
    float image[784];
    int32_t label;
    double sum = 0;
    void *const fields[] = {image, &label};

    if (access("../shared/data/mnist/t10k-images-idx3-ubyte.gz", R_OK) != 0) {
        printf("mnist: not at hand, left out\n");
        return;
    }
    REQUIRE_OK(
        ls_dataset_open(&d, &(ls_data_source){.kind = "idx", .path = folder, .images = "test", .classes = 10},
                        &err),
        &err);
    CHECK_EQ_INT(ls_dataset_count(d), 10000);
    for (int64_t s = 0; s < ls_dataset_count(d); s++) {
        REQUIRE_OK(ls_dataset_read(d, s, NULL, fields, &err), &err);
        counts[label]++;
        for (int i = 0; i < 784; i++) sum += image[i];
    }
    for (int k = 0; k < 10; k++) CHECK_EQ_INT(counts[k], per_class[k]);
    CHECK_NEAR(sum / 7840000, 0.1325, 0.0001);
    ls_dataset_close(d);
}

int main(void)
{
    CHECK_RUN(values);
    CHECK_RUN(normalise);
    CHECK_RUN(refused);
    CHECK_RUN(gzip_damage);
    CHECK_RUN(bad_label);
    CHECK_RUN(mnist);
    data_clean();
    return CHECK_DONE();
}
