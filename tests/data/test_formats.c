/* CIFAR, NumPy and synthetic sets: values, and everything that can be wrong with them; sets that were made.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "data/make.h"
#include "data_files.h"

static ls_dataset *open_set(const ls_data_source *src)
{
    ls_err err = {0};
    ls_dataset *d;

    REQUIRE_OK(ls_dataset_open(&d, src, &err), &err);
    return d;
}

/* -- cifar ------------------------------------------------------------------------------------------------
 */

enum { RECORD = 3073 };

static void write_batch(const char *name, int count, int first_label)
{
    unsigned char *bytes = calloc((size_t)(count * RECORD), 1);

    REQUIRE(bytes != NULL);
    for (int s = 0; s < count; s++) {
        bytes[s * RECORD] = (unsigned char)(first_label + s);
        for (int i = 1; i < RECORD; i++)
            bytes[s * RECORD + i] = (unsigned char)data_pixel(first_label + s, i);
    }
    data_write(name, bytes, (size_t)(count * RECORD), false);
    free(bytes);
}

static void cifar(void)
{
    ls_data_source src = {.kind = "cifar", .path = data_folder(), .classes = 10};
    const ls_field *field;
    float image[3072];
    int32_t label;
    ls_err err = {0};
    void *const fields[] = {image, &label};

    write_batch("data_batch_1.bin", 3, 0);
    write_batch("data_batch_2.bin", 4, 3);
    write_batch("test_batch.bin", 2, 9);
    ls_dataset *d = open_set(&src);
    CHECK_EQ_INT(ls_dataset_count(d), 7);
    CHECK_EQ_INT(ls_dataset_fields(d, &field), 2);
    CHECK(ls_shape_equal(field[0].shape, LS_SHAPE(3, 32, 32)));
    for (int s = 0; s < 7; s++) {
        REQUIRE_OK(ls_dataset_read(d, s, NULL, fields, &err), &err);
        CHECK_EQ_INT(label, s);
        CHECK(image[0] == (float)data_pixel(s, 1) / 255.0f);
        CHECK(image[3071] == (float)data_pixel(s, 3072) / 255.0f);
    }
    ls_dataset_close(d);

    src.images = "test";
    d = open_set(&src);
    CHECK_OK(ls_dataset_read(d, 0, NULL, fields, &err), &err);
    CHECK_STATUS(ls_dataset_read(d, 1, NULL, fields, &err), LS_DATA, &err);
    CHECK_CONTAINS(err.text, "test_batch.bin: the label of sample 1 (byte 3073) is 10");
    ls_dataset_close(d);

    src.images = "short.bin";
    data_write("short.bin", image, 3100, false);
    data_check_refused(&src, LS_DATA, "short.bin: truncated: 3100 bytes", "begins at byte 3073");
    src.images = "missing.bin";
    data_check_refused(&src, LS_DATA, "missing.bin", "no such file");
}

/* -- npy --------------------------------------------------------------------------------------------------
 */

#define HEADER(descr, shape) "{'descr': '" descr "', 'fortran_order': False, 'shape': " shape ", }\n"

static void npy(void)
{
    float in[2][3][4], image[12];
    double wide[2][3][4];
    unsigned char bytes[24], narrow[2] = {7, 3};
    const int64_t labels[2] = {7, 3};
    const int32_t labels4[2] = {7, 3};
    int32_t label;
    ls_err err = {0};
    const ls_field *field;
    void *const fields[] = {image, &label};

    for (int i = 0; i < 24; i++) {
        (&in[0][0][0])[i] = (float)i / 255.0f;
        (&wide[0][0][0])[i] = (double)i / 255.0;
        bytes[i] = (unsigned char)i;
    }
    data_write_npy("f4.npy", HEADER("<f4", "(2, 3, 4)"), in, sizeof in);
    data_write_npy("f8.npy", HEADER("<f8", "(2, 1, 3, 4)"), wide, sizeof wide);
    data_write_npy("u1.npy", HEADER("|u1", "(2, 12)"), bytes, sizeof bytes);
    data_write_npy("l1.npy", HEADER("|u1", "(2,)"), narrow, sizeof narrow);
    data_write_npy("l4.npy", HEADER("<i4", "(2,)"), labels4, sizeof labels4);
    data_write_npy("l8.npy", HEADER("<i8", "(2,)"), labels, sizeof labels);
    const char *const images_of[] = {"f4.npy", "f8.npy", "u1.npy"}, *const labels_of[] = {"l1.npy", "l4.npy",
                                                                                          "l8.npy"};
    for (int k = 0; k < 3; k++) {
        ls_dataset *d = open_set(&(ls_data_source){.kind = "npy",
                                                   .path = data_folder(),
                                                   .images = images_of[k],
                                                   .labels = labels_of[k],
                                                   .classes = 10,
                                                   .normalise = "unit"});
        CHECK_EQ_INT(ls_dataset_count(d), 2);
        CHECK_EQ_INT(ls_dataset_fields(d, &field), 2);
        CHECK(ls_shape_equal(field[0].shape, k < 2 ? LS_SHAPE(1, 3, 4) : LS_SHAPE(12)));
        REQUIRE_OK(ls_dataset_read(d, 1, NULL, fields, &err), &err);
        CHECK_EQ_INT(label, 3);
        for (int i = 0; i < 12; i++) CHECK_NEAR(image[i], 2.0 * (12 + i) / 255.0 - 1, 1e-6);
        ls_dataset_close(d);
    }
    char path[1024];
    snprintf(path, sizeof path, "%s/f4.npy", data_folder());
    ls_dataset *d = open_set(&(ls_data_source){.kind = "npy", .path = path});
    CHECK_EQ_INT(ls_dataset_fields(d, &field), 1);
    ls_dataset_close(d);
}

static void npy_refused(void)
{
    ls_data_source src = {.kind = "npy", .path = data_folder(), .images = "bad.npy"};
    const float x[6] = {1, 2, 3, 4, 5, 6};
    const struct {
        const char *header;
        size_t size;
        const char *part;
    } cases[] = {
        {HEADER("<f4", "(2, 3)"), 20, "truncated"},
        {HEADER("<f4", "(1, 3)"), 24, "wrong size"},
        {HEADER(">f4", "(2, 3)"), 24, "'>f4'"},
        {HEADER("<i4", "(2, 3)"), 24, "'<i4'"},
        {HEADER("<f4", "(2, -3)"), 24, "no shape"},
        {HEADER("<f4", "()"), 4, "no shape"},
        {HEADER("<f4", "(2, 3"), 24, "no shape"},
        {HEADER("<f4", "(99999999999999999999, 3)"), 24, "no shape"},
        {HEADER("<f4", "(4294967296, 4294967296)"), 24, "no shape"},
        {HEADER("<f4", "(1,1,1,1,1,1,1)"), 4, "no shape"},
        {HEADER("<f4", "(0, 3)"), 0, "no samples"},
        {HEADER("<f4", "(3, 0)"), 0, "without elements"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", 24, "C order"},
        {"{'descr': '<f4', 'shape': (2, 3), }", 24, "C order"},
        {"{'fortran_order': False, 'shape': (2, 3), }", 24, "(none)"},
        {"", 0, "begin like"},
    };

    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        data_write_npy("bad.npy", cases[k].header, x, cases[k].size);
        data_check_refused(&src, LS_DATA, cases[k].part, cases[k].part[0] == 'n' ? NULL : "bad.npy");
    }
    data_write("bad.npy", "not an array at all", 19, false);
    data_check_refused(&src, LS_DATA, "bad.npy: byte 0", "numpy.save");
    data_write("bad.npy", "\x93NUMPY\x09\x00\x10\x00 padding", 18, false);
    data_check_refused(&src, LS_DATA, "bad.npy: byte 6: version 9", NULL);
    data_write("bad.npy", "\x93NUMPY\x02\x00\xff\xff\xff\x7f padding", 20, false);
    data_check_refused(&src, LS_DATA, "bad.npy: truncated: a header of 2147483647 bytes", NULL);
    data_write_npy("bad.npy", HEADER("<f4", "(2, 3)"), x, 24);
    data_write_npy("labels3.npy", HEADER("|u1", "(3,)"), x, 3);
    src.labels = "labels3.npy";
    data_check_refused(&src, LS_DATA, "labels3.npy: labels of shape (3,)", "2 images");
    data_check_refused(&(ls_data_source){.kind = "npy"}, LS_INVALID, "which .npy file", NULL);
}

static void npy_nan(void)
{
    const char *header = HEADER("<f4", "(2, 3)");
    float x[6] = {1, 2, 3, 4, NAN, 6}, image[3];
    void *const fields[] = {image};
    char text[64];

    for (int k = 0; k < 2; k++) {
        ls_err err = {0};
        data_write_npy("nan.npy", header, x, sizeof x);
        ls_dataset *d =
            open_set(&(ls_data_source){.kind = "npy", .path = data_folder(), .images = "nan.npy"});
        CHECK_OK(ls_dataset_read(d, 0, NULL, fields, &err), &err);
        CHECK_STATUS(ls_dataset_read(d, 1, NULL, fields, &err), LS_DATA, &err);
        snprintf(text, sizeof text, "sample 1, element 1 (byte %zu) is %s", 10 + strlen(header) + 16,
                 k ? "-inf" : "nan");
        CHECK_CONTAINS(err.text, text);
        CHECK_CONTAINS(err.text, "nan.npy");
        ls_dataset_close(d);
        x[4] = -INFINITY;
    }
}

/* -- synthetic --------------------------------------------------------------------------------------------
 */

/* The class whose mean over the first half of the set is nearest tells the label in the other half. */
static void synthetic_learnable(void)
{
    enum { N = 600, PIXELS = 3 * 16 * 16, CLASSES = 5 };
    const ls_field want[] = {{"image", LS_F32, LS_SHAPE(3, 16, 16)}, {"label", LS_I32, LS_SHAPE_SCALAR}};
    ls_dataset *d = open_set(&(ls_data_source){
        .kind = "synthetic", .count = N, .seed = 3, .classes = CLASSES, .n_fields = 2, .fields = want});
    static double mean[CLASSES][PIXELS];
    int counts[CLASSES] = {0}, right = 0;
    float image[PIXELS];
    int32_t label;
    void *const fields[] = {image, &label};

    for (int s = 0; s < N; s++) {
        REQUIRE_OK(ls_dataset_read(d, s, NULL, fields, NULL), NULL);
        REQUIRE(label >= 0 && label < CLASSES);
        if (s < N / 2) {
            counts[label]++;
            for (int i = 0; i < PIXELS; i++) mean[label][i] += image[i];
            for (int i = 0; i < PIXELS; i++)
                if (!(image[i] >= 0 && image[i] <= 1)) CHECK_NEAR(image[i], 0.5, 0.5);
            continue;
        }
        int best = 0;
        double least = INFINITY;
        for (int k = 0; k < CLASSES; k++) {
            double sum = 0;
            for (int i = 0; i < PIXELS; i++) sum += pow(image[i] - mean[k][i] / counts[k], 2);
            if (sum < least) best = k;
            if (sum < least) least = sum;
        }
        right += best == label;
    }
    CHECK_NEAR(right, N / 2, 3);
    for (int k = 0; k < CLASSES; k++) CHECK_NEAR(counts[k], N / 2 / CLASSES, 35);
    ls_dataset_close(d);
}

static void synthetic_keyed(void)
{
    const ls_field want[] = {
        {"z", LS_F32, LS_SHAPE(5)}, {"tokens", LS_I32, LS_SHAPE(4)}, {"image", LS_F32, LS_SHAPE(9)}};
    ls_data_source src = {
        .kind = "synthetic", .count = 100, .seed = 1, .classes = 7, .n_fields = 3, .fields = want};
    float z[2][5], image[2][9];
    int32_t tokens[2][4];

    for (int other_seed = 0; other_seed < 2; other_seed++) {
        for (int k = 0; k < 2; k++) {
            void *const fields[] = {z[k], tokens[k], image[k]};
            src.seed = 1 + (uint64_t)(other_seed * k);
            src.first = k * 40; /* a range shows the same samples under other numbers */
            ls_dataset *d = open_set(&src);
            CHECK_EQ_INT(ls_dataset_count(d), 100 - src.first);
            REQUIRE_OK(ls_dataset_read(d, 50 - src.first, NULL, fields, NULL), NULL);
            ls_dataset_close(d);
            for (int i = 0; i < 4; i++) CHECK(tokens[k][i] >= 0 && tokens[k][i] < 7);
            for (int i = 0; i < 5; i++) CHECK(z[k][i] >= -1 && z[k][i] < 1);
        }
        CHECK_EQ_INT(memcmp(z[0], z[1], sizeof z[0]) == 0, !other_seed);
        CHECK_EQ_INT(memcmp(image[0], image[1], sizeof image[0]) == 0, !other_seed);
    }
    src.count = 0;
    data_check_refused(&src, LS_INVALID, "count 0", NULL);
    src.count = 100;
    src.classes = -1;
    data_check_refused(&src, LS_INVALID, "-1 classes", NULL);
}

/* -- make -------------------------------------------------------------------------------------------------
 */

/* Every format gives back the synthetic samples to within half a step of a byte. */
static void made(void)
{
    const char *const kinds[] = {"idx", "idx", "cifar", "npy"};
    const char *const files[4][4] = {
        {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
         "t10k-labels-idx1-ubyte"},
        {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
         "t10k-labels-idx1-ubyte.gz"},
        {"data_batch_1.bin", "test_batch.bin"},
        {"train-images.npy", "train-labels.npy", "test-images.npy", "test-labels.npy"}};
    static float got[3072], want[3072];
    int32_t got_label, want_label;
    void *const got_fields[] = {got, &got_label}, *const want_fields[] = {want, &want_label};
    const ls_field *field;

    for (int k = 0; k < 4; k++) {
        char folder[1024], path[1200];
        ls_err err = {0};
        snprintf(folder, sizeof folder, "%s/made", data_folder());
        ls_data_make_options o = {.kind = kinds[k],
                                  .path = folder,
                                  .train = 30,
                                  .test = 12,
                                  .classes = 4,
                                  .seed = 8,
                                  .gzip = k == 1};
        REQUIRE_OK(ls_data_make(&o, &err), &err);
        CHECK_STATUS(ls_data_make(&o, &err), LS_INVALID, &err);
        CHECK_CONTAINS(err.text, "already there");
        ls_dataset *d =
            open_set(&(ls_data_source){.kind = kinds[k], .path = folder, .images = "test", .classes = 4});
        ls_dataset_fields(d, &field);
        ls_dataset *source = open_set(&(ls_data_source){.kind = "synthetic",
                                                        .count = 42,
                                                        .first = 30,
                                                        .seed = 8,
                                                        .classes = 4,
                                                        .n_fields = 2,
                                                        .fields = field});
        CHECK_EQ_INT(ls_dataset_count(d), 12);
        for (int s = 0; s < 12; s++) {
            REQUIRE_OK(ls_dataset_read(d, s, NULL, got_fields, &err), &err);
            REQUIRE_OK(ls_dataset_read(source, s, NULL, want_fields, &err), &err);
            CHECK_EQ_INT(got_label, want_label);
            for (int i = 0; i < ls_shape_count(field[0].shape); i++)
                if (!(fabsf(got[i] - want[i]) <= 0.5f / 255 + 1e-6f))
                    CHECK_NEAR(got[i], want[i], 0.5 / 255 + 1e-6);
        }
        ls_dataset_close(source);
        ls_dataset_close(d);
        for (int i = 0; i < 4 && files[k][i]; i++) {
            snprintf(path, sizeof path, "%s/%s", folder, files[k][i]);
            CHECK(unlink(path) == 0);
        }
        CHECK(rmdir(folder) == 0);
    }
    ls_err err = {0};
    CHECK_STATUS(ls_data_make(&(ls_data_make_options){.kind = "png", .path = "x"}, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "\"png\"");
}

int main(void)
{
    CHECK_RUN(cifar);
    CHECK_RUN(npy);
    CHECK_RUN(npy_refused);
    CHECK_RUN(npy_nan);
    CHECK_RUN(synthetic_learnable);
    CHECK_RUN(synthetic_keyed);
    CHECK_RUN(made);
    data_clean();
    return CHECK_DONE();
}
