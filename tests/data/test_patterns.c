/* test_patterns.c: what made-up images hold.  Tiles are told by their class's mean image, waves are not;
 * waves are told by their direction and length, wherever they are. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "data/data.h"

enum { CLASSES = 10, SIDE = 32, PIXELS = SIDE * SIDE, LEARNT = 1500, ASKED = 300 };

static double means[CLASSES][PIXELS];

static ls_dataset *open_set(const char *pattern, int64_t count)
{
    const ls_field fields[] = {{"image", LS_F32, LS_SHAPE(1, SIDE, SIDE)},
                               {"label", LS_I32, LS_SHAPE_SCALAR}};
    const ls_data_source src = {.kind = "synthetic",
                                .count = count,
                                .seed = 5,
                                .classes = CLASSES,
                                .n_fields = 2,
                                .fields = fields,
                                .pattern = pattern};
    ls_dataset *d = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_dataset_open(&d, &src, &err), &err);
    return d;
}

static int32_t load(const ls_dataset *d, int64_t index, float *image)
{
    int32_t label = -1;
    ls_err err = {0};

    REQUIRE_OK(ls_dataset_read(d, index, NULL, (void *const[]){image, &label}, &err), &err);
    return label;
}

static void learn_means(const ls_dataset *d)
{
    int count[CLASSES] = {0};
    float image[PIXELS];

    memset(means, 0, sizeof means);
    for (int i = 0; i < LEARNT; i++) {
        int32_t label = load(d, i, image);
        count[label]++;
        for (int k = 0; k < PIXELS; k++) means[label][k] += (double)image[k];
    }
    for (int c = 0; c < CLASSES; c++)
        for (int k = 0; k < PIXELS; k++) means[c][k] /= count[c];
}

/* How well an image fits a class: the more, the better. */
typedef double (*fit)(const float *image, int class);

static double near_mean(const float *image, int class)
{
    double sum = 0;

    for (int k = 0; k < PIXELS; k++) {
        double d = (double)image[k] - means[class][k];
        sum -= d * d;
    }
    return sum;
}

/* The strength of the class's waves in the image, whatever their phase and place. */
static double has_waves(const float *image, int class)
{
    const double pi = 3.14159265358979323846, angle = pi * class / CLASSES;
    const double k = 2 * pi * (class % 2 ? 9 : 6) / SIDE;
    double mean = 0, re = 0, im = 0;

    for (int i = 0; i < PIXELS; i++) mean += (double)image[i] / PIXELS;
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            double at = k * (cos(angle) * x + sin(angle) * y);
            re += ((double)image[y * SIDE + x] - mean) * cos(at);
            im += ((double)image[y * SIDE + x] - mean) * sin(at);
        }
    return re * re + im * im;
}

static double accuracy(const ls_dataset *d, fit f)
{
    int right = 0;
    float image[PIXELS];

    for (int i = LEARNT; i < LEARNT + ASKED; i++) {
        int32_t label = load(d, i, image);
        int best = 0;
        for (int c = 1; c < CLASSES; c++)
            if (f(image, c) > f(image, best)) best = c;
        right += best == label;
    }
    return (double)right / ASKED;
}

static void tiles_have_means(void)
{
    ls_dataset *d = open_set("tiles", LEARNT + ASKED), *usual = open_set(NULL, LEARNT + ASKED);
    float a[PIXELS], b[PIXELS];

    learn_means(d);
    CHECK(accuracy(d, near_mean) > 0.99);
    CHECK_EQ_INT(load(d, 7, a), load(usual, 7, b));
    CHECK_EQ_MEM(a, b, sizeof a);
    ls_dataset_close(d);
    ls_dataset_close(usual);
}

static void waves_have_none(void)
{
    ls_dataset *d = open_set("waves", LEARNT + ASKED);
    float image[PIXELS], lo = 1, hi = 0;

    learn_means(d);
    CHECK(accuracy(d, near_mean) < 0.2);
    CHECK(accuracy(d, has_waves) > 0.9);
    for (int i = 0; i < 100; i++) {
        load(d, i, image);
        for (int k = 0; k < PIXELS; k++) {
            if (image[k] < lo) lo = image[k];
            if (image[k] > hi) hi = image[k];
        }
    }
    CHECK(lo >= 0 && lo < 0.2f);
    CHECK(hi <= 1 && hi > 0.8f);
    ls_dataset_close(d);
}

static void unknown_is_refused(void)
{
    const ls_data_source src = {.kind = "synthetic", .count = 10, .pattern = "dots"};
    const ls_data_source other = {.kind = "idx", .path = "/nowhere", .pattern = "waves"};
    ls_dataset *d = NULL;
    ls_err err = {0};

    CHECK_STATUS(ls_dataset_open(&d, &src, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "tiles and waves");
    err = (ls_err){0};
    CHECK_STATUS(ls_dataset_open(&d, &other, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "pattern is for synthetic data");
}

int main(void)
{
    CHECK_RUN(tiles_have_means);
    CHECK_RUN(waves_have_none);
    CHECK_RUN(unknown_is_refused);
    return CHECK_DONE();
}
