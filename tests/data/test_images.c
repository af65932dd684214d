/* Folders of images: which files, which labels, which pixels; and what is wrong with a folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "data_files.h"
#include "image_encode.h"
#include "image_files.h"

static ls_dataset *open_set(ls_data_source src)
{
    ls_err err = {0};
    ls_dataset *d;

    src.kind = "images";
    REQUIRE_OK(ls_dataset_open(&d, &src, &err), &err);
    return d;
}

static int32_t read_one(const ls_dataset *d, int64_t index, float *image)
{
    ls_err err = {0};
    int32_t label = -1;

    CHECK_OK(ls_dataset_read(d, index, NULL, (void *const[]){image, &label}, &err), &err);
    return label;
}

/* The k-th sample of the class, in the order of the set the files were made from. */
static ls_dataset *open_source(int64_t count, ls_shape shape)
{
    ls_err err = {0};
    ls_dataset *d;
    const ls_field fields[] = {{"image", LS_F32, shape}, {"label", LS_I32, LS_SHAPE_SCALAR}};

    REQUIRE_OK(ls_dataset_open(&d,
                               &(ls_data_source){.kind = "synthetic",
                                                 .count = count,
                                                 .seed = 3,
                                                 .classes = 3,
                                                 .n_fields = 2,
                                                 .fields = fields},
                               &err),
               &err);
    return d;
}

/* What was made is read again: PNG to the byte, JPEG nearly (in grey: of coloured noise it keeps little). */
static void same_pixels(void)
{
    for (int png = 0; png < 2; png++) {
        enum { TRAIN = 40, MOST = 3 * 16 * 24 };
        const int64_t channels = png ? 3 : 1, pixels = channels * 16 * 24;
        const char *path = image_folder(&(ls_data_make_options){.kind = "images",
                                                                .train = TRAIN,
                                                                .test = 5,
                                                                .classes = 3,
                                                                .seed = 3,
                                                                .png = png,
                                                                .shape = LS_SHAPE(channels, 16, 24)});
        ls_dataset *d = open_set((ls_data_source){.path = path, .channels = channels}),
                   *source = open_source(TRAIN + 5, LS_SHAPE(channels, 16, 24));
        float image[MOST], want[MOST];
        int64_t at = 0;
        double worst = 0, sum = 0;
        CHECK_EQ_INT(ls_dataset_count(d), TRAIN);
        for (int class = 0; class < 3; class ++) {
            for (int i = 0; i < TRAIN; i++) {
                if (read_one(source, i, want) != class) continue;
                CHECK_EQ_INT(read_one(d, at++, image), class);
                for (int k = 0; k < pixels; k++) {
                    double gap = (double)image[k] - (double)want[k];
                    if (gap < 0) gap = -gap;
                    sum += gap;
                    if (gap > worst) worst = gap;
                }
            }
        }
        CHECK_EQ_INT(at, TRAIN);
        if (png)
            CHECK_NEAR(worst, 0, 0.5001 / 255);
        else
            CHECK_NEAR(sum / (double)(TRAIN * pixels), 0, 3.0 / 255);
        ls_dataset_close(d);
        ls_dataset_close(source);
    }
}

static void join(char *buf, const char *a, const char *b)
{
    snprintf(buf, 1024, "%s/%s", a, b);
}

/* Labels are the training folders' places, also where a part lacks a class; "val" serves as the test part. */
static void labels(void)
{
    const char *path = image_folder(&(ls_data_make_options){0});
    const char *const folders[] = {"train", "train/b", "train/a", "train/c", "val", "val/c", "val/a"};
    const char *const files[] = {"train/a/2",       "train/a/1", "train/b/x", "train/c/x",
                                 "train/c/.hidden", "val/a/x",   "val/c/y",   "val/c/x"};
    const int want[] = {0, 0, 1, 2}, want_val[] = {0, 2, 2};
    char name[1024];
    float image[3 * 8 * 8];

    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        join(name, path, folders[i]);
        REQUIRE(mkdir(name, 0777) == 0);
    }
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        join(name, path, files[i]);
        image_encode(name, i % 2 ? PNG_RGB : JPEG_PLAIN, 8, 8);
    }
    ls_dataset *train = open_set((ls_data_source){.path = path, .classes = 3}),
               *test = open_set((ls_data_source){.path = path, .images = "test"});
    CHECK_EQ_INT(ls_dataset_count(train), 4);
    CHECK_EQ_INT(ls_dataset_count(test), 3);
    for (int i = 0; i < 4; i++) CHECK_EQ_INT(read_one(train, i, image), want[i]);
    for (int i = 0; i < 3; i++) CHECK_EQ_INT(read_one(test, i, image), want_val[i]);
    ls_dataset_close(train);
    ls_dataset_close(test);

    ls_data_source src = {.kind = "images", .path = path, .classes = 2};
    data_check_refused(&src, LS_DATA, "holds 3 folders of classes", "/train");
    join(name, path, "val/d");
    REQUIRE(mkdir(name, 0777) == 0);
    data_check_refused(&(ls_data_source){.kind = "images", .path = path, .images = "test"}, LS_DATA,
                       "val/d: no such class", NULL);
    join(name, path, "train/b/folder");
    REQUIRE(mkdir(name, 0777) == 0);
    data_check_refused(&(ls_data_source){.kind = "images", .path = path}, LS_DATA,
                       "train/b/folder: is a folder", NULL);
}

/* All flavours, with three channels and with one. */
static void flavours(void)
{
    const char *path = image_folder(&(ls_data_make_options){0});
    char name[1024];
    static float colour[3 * 9 * 13], grey[9 * 13];

    join(name, path, "x");
    REQUIRE(mkdir(name, 0777) == 0);
    for (int k = 0; k < IMAGE_FLAVOURS; k++) {
        snprintf(name, sizeof name, "%s/x/%02d", path, k);
        image_encode(name, (image_flavour)k, 9, 13);
    }
    ls_dataset *rgb = open_set((ls_data_source){.path = path}),
               *one = open_set((ls_data_source){.path = path, .channels = 1});
    for (int k = 0; k < IMAGE_FLAVOURS; k++) {
        read_one(rgb, k, colour);
        read_one(one, k, grey);
        for (int i = 0; i < 9 * 13; i++) {
            double luma =
                0.299 * (double)colour[i] + 0.587 * (double)colour[117 + i] + 0.114 * (double)colour[234 + i];
            if (!CHECK_NEAR(grey[i], luma, 0.6 / 255)) break;
        }
        if (k == JPEG_GREY || k == PNG_GREY_INTERLACED) CHECK_EQ_MEM(colour, colour + 117, sizeof grey);
    }
    /* A palette of rising red and falling green; 16 bits keep the upper ones. */
    read_one(rgb, PNG_PALETTE_ALPHA, colour);
    for (int i = 0; i < 117; i++) CHECK_NEAR(colour[i] + colour[117 + i], 1, 1e-6);
    ls_dataset_close(rgb);
    ls_dataset_close(one);
    data_check_refused(&(ls_data_source){.kind = "images", .path = path, .channels = 2}, LS_INVALID,
                       "images of 2 channels", NULL);
    data_check_refused(
        &(ls_data_source){.kind = "images", .path = path, .channels = 1, .normalise = "imagenet"}, LS_INVALID,
        "for images of 3 channels", NULL);
}

/* Files that are no images, or not of the set's size, are found when they are read. */
static void damaged_files(void)
{
    static const struct {
        const char *part;
        int flavour; /* -1: text */
        size_t keep; /* bytes; 0: all */
        int height, width;
    } cases[] = {
        {"neither a JPEG nor a PNG", -1, 0, 0, 0},
        {"is empty", -2, 0, 0, 0},
        {"damaged JPEG: Premature end", JPEG_PLAIN, 400, 16, 16},
        {"damaged PNG: the file ends early", PNG_RGB, 100, 16, 16},
        {"comes out as 16 x 18", JPEG_PLAIN, 0, 16, 18},
    };
    const char *path = image_folder(&(ls_data_make_options){0});
    char name[1024];
    float image[3 * 16 * 16];

    join(name, path, "x");
    REQUIRE(mkdir(name, 0777) == 0);
    join(name, path, "x/0.jpg");
    image_encode(name, JPEG_PLAIN, 16, 16);
    ls_dataset *d;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        ls_err err = {0};
        join(name, path, "x/1.JPG");
        if (cases[k].flavour < 0) {
            image_store(name, "just text", cases[k].flavour == -1 ? 9 : 0);
        } else {
            image_encode(name, (image_flavour)cases[k].flavour, cases[k].height, cases[k].width);
            if (cases[k].keep) REQUIRE(truncate(name, (off_t)cases[k].keep) == 0);
        }
        d = open_set((ls_data_source){.path = path});
        CHECK_STATUS(ls_dataset_read(d, 1, NULL, (void *const[]){image, NULL}, &err), LS_DATA, &err);
        CHECK_CONTAINS(err.text, cases[k].part);
        CHECK_CONTAINS(err.text, "x/1.JPG");
        read_one(d, 0, image);
        ls_dataset_close(d);
    }
    /* A damaged first file does not hide the size of the others. */
    join(name, path, "x/0.jpg");
    image_store(name, "text", 4);
    join(name, path, "x/1.JPG");
    image_encode(name, PNG_RGB, 16, 16);
    d = open_set((ls_data_source){.path = path});
    read_one(d, 1, image);
    ls_dataset_close(d);
    image_store(name, "text", 4);
    data_check_refused(&(ls_data_source){.kind = "images", .path = path}, LS_DATA, "neither a JPEG",
                       "x/0.jpg");
    data_check_refused(&(ls_data_source){.kind = "images", .path = path, .images = "test"}, LS_DATA, "/test",
                       "no such file");
    data_check_refused(&(ls_data_source){.kind = "images"}, LS_INVALID, "which folder", NULL);
    data_check_refused(&(ls_data_source){.kind = "images", .path = path, .layout = "pairs"}, LS_INVALID,
                       "no layout \"pairs\"", NULL);
}

/* What lies about among images is no sample and no damage; what is one by its content counts, whatever its
 * name. */
static void other_files(void)
{
    static const char *const texts[] = {"x/notes.txt", "x/README", "y/Thumbs.db"};
    const char *path = image_folder(&(ls_data_make_options){0}), *first;
    const char *const *names;
    char name[1024];
    ls_dataset *d;

    for (int i = 0; i < 2; i++) {
        join(name, path, i ? "y" : "x");
        REQUIRE(mkdir(name, 0777) == 0);
    }
    join(name, path, "x/0.jpg");
    image_encode(name, JPEG_PLAIN, 16, 16);
    join(name, path, "y/odd-name");
    image_encode(name, PNG_RGB, 16, 16);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        join(name, path, texts[i]);
        image_store(name, "just text", 9);
    }
    d = open_set((ls_data_source){.path = path});
    CHECK_EQ_INT(ls_dataset_count(d), 2);
    CHECK_EQ_INT(ls_dataset_ignored(d, &first), 3);
    CHECK_CONTAINS(first, "x/README");
    REQUIRE(ls_dataset_classes(d, &names) == 2);
    CHECK_EQ_STR(names[0], "x");
    CHECK_EQ_STR(names[1], "y");
    ls_dataset_close(d);
    data_check_refused(&(ls_data_source){.kind = "images", .path = path, .classes = 1, .of_experiment = true},
                       LS_DATA, "2 folders of classes, but labels must lie in 0 to 0 (x ... y)",
                       "raise model.classes");
}

/* Sizes that no file of that length can have are refused before memory is taken. */
static void absurd_sizes(void)
{
    const char *path = image_folder(&(ls_data_make_options){0});
    char name[1024];
    size_t size;
    unsigned char *bytes;

    join(name, path, "x");
    REQUIRE(mkdir(name, 0777) == 0);
    join(name, path, "x/0");
    image_encode(name, JPEG_PLAIN, 16, 16);
    bytes = image_load(name, &size);
    for (size_t i = 0; i + 8 < size; i++) {
        if (bytes[i] != 0xff || bytes[i + 1] != 0xc0) continue; /* the frame header: height and width at 5 */
        for (int huge = 0; huge < 2; huge++) {
            bytes[i + 5] = bytes[i + 7] = huge ? 0xff : 0x10;
            image_store(name, bytes, size);
            data_check_refused(&(ls_data_source){.kind = "images", .path = path}, LS_DATA, "x/0",
                               huge ? "more than the" : "bytes cannot hold");
        }
    }
    free(bytes);
}

int main(void)
{
    CHECK_RUN(same_pixels);
    CHECK_RUN(labels);
    CHECK_RUN(flavours);
    CHECK_RUN(damaged_files);
    CHECK_RUN(other_files);
    CHECK_RUN(absurd_sizes);
    image_clean();
    return CHECK_DONE();
}
