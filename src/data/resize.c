/* resize.c: bicubic resampling with Pillow's arithmetic.
 *
 * A pixel of the result is a weighted sum of the pixels around the same place in the image; where the image
 * shrinks, the filter is stretched, so that every pixel has a share.  First along rows, then along columns,
 * with 8 bits between and weights of 22 fractional bits: Pillow's ImagingResample does the same, and the
 * results are equal to the last bit.  Weights are computed per call, since images of a set differ in size. */
#include <math.h>

#include "transform_internal.h"

enum { FRACTION = 22 }; /* bits of a weight: 8 for the pixel and 2 for overshoot are left of 32 */

/* Where the weights of each position of one direction begin, and how many there are. */
typedef struct taps {
    int64_t most; /* per position */
    int32_t *first, *count;
    int32_t *weight; /* `most` per position */
} taps;

/* Keys' kernel with a = -1/2. */
static double cubic(double x)
{
    const double a = -0.5;

    x = fabs(x);
    if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
    return 0.0;
}

static double stretch_of(int64_t from, int64_t to)
{
    double scale = (double)from / (double)to;
    return scale < 1.0 ? 1.0 : scale;
}

static int64_t most_taps(int64_t from, int64_t to)
{
    return (int64_t)ceil(2.0 * stretch_of(from, to)) * 2 + 1;
}

static size_t taps_bytes(int64_t from, int64_t to, int64_t n)
{
    return sizeof(int32_t) * (size_t)(n * (most_taps(from, to) + 2));
}

/* Weights for the positions at .. at + n - 1 of `to`; `real` has room for one position's. */
static void compute(taps *t, int64_t from, int64_t to, int64_t at, int64_t n, double *real)
{
    const double scale = (double)from / (double)to, stretch = stretch_of(from, to), support = 2.0 * stretch,
                 narrow = 1.0 / stretch;

    for (int64_t i = 0; i < n; i++) {
        const double centre = ((double)(at + i) + 0.5) * scale;
        int32_t *weight = t->weight + i * t->most;
        double sum = 0;
        int64_t lo = (int64_t)(centre - support + 0.5), hi = (int64_t)(centre + support + 0.5);
        if (centre - support + 0.5 < 0) lo = 0;
        if (hi > from) hi = from;
        for (int64_t k = 0; k < hi - lo; k++) {
            real[k] = cubic(((double)(k + lo) - centre + 0.5) * narrow);
            sum += real[k];
        }
        for (int64_t k = 0; k < hi - lo; k++) {
            double w = (sum != 0 ? real[k] / sum : real[k]) * (double)(1 << FRACTION);
            weight[k] = (int32_t)(w < 0 ? w - 0.5 : w + 0.5);
        }
        t->first[i] = (int32_t)lo;
        t->count[i] = (int32_t)(hi - lo);
    }
}

static uint8_t to_byte(int32_t sum)
{
    int32_t v = sum >> FRACTION;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* Rows top .. top + rows - 1 of `in`, resampled along themselves into `out`, channels interleaved. */
static void along_rows(const lsi_pixels *in, int64_t top, int64_t rows, const taps *t, int64_t n,
                       uint8_t *out)
{
    for (int64_t y = 0; y < rows; y++) {
        for (int64_t x = 0; x < n; x++) {
            const int32_t *weight = t->weight + x * t->most;
            const uint8_t *row = in->data + (top + y) * in->row_step + t->first[x] * in->column_step;
            for (int64_t c = 0; c < in->channels; c++) {
                const uint8_t *p = row + c * in->channel_step;
                int32_t sum = 1 << (FRACTION - 1);
                for (int32_t k = 0; k < t->count[x]; k++) sum += p[k * in->column_step] * weight[k];
                out[(y * n + x) * in->channels + c] = to_byte(sum);
            }
        }
    }
}

/* Whole rows of `stride` bytes are added up: the compiler makes vectors of that. */
static void along_columns(const uint8_t *in, int64_t stride, int64_t top, const taps *t, int64_t n,
                          int32_t *sum, uint8_t *out)
{
    for (int64_t y = 0; y < n; y++) {
        const int32_t *weight = t->weight + y * t->most;
        for (int64_t i = 0; i < stride; i++) sum[i] = 1 << (FRACTION - 1);
        for (int32_t k = 0; k < t->count[y]; k++) {
            const uint8_t *row = in + (t->first[y] - top + k) * stride;
            for (int64_t i = 0; i < stride; i++) sum[i] += row[i] * weight[k];
        }
        for (int64_t i = 0; i < stride; i++) out[y * stride + i] = to_byte(sum[i]);
    }
}

/* The next `bytes` of the memory at *at, in steps that suit every type. */
static void *take(uint8_t **at, size_t bytes)
{
    void *p = *at;
    *at += (bytes + 63) / 64 * 64;
    return p;
}

static taps take_taps(uint8_t **at, int64_t from, int64_t to, int64_t n)
{
    taps t = {.most = most_taps(from, to)};
    size_t each = sizeof(int32_t) * (size_t)n;

    t.first = take(at, taps_bytes(from, to, n));
    t.count = (int32_t *)((uint8_t *)t.first + each);
    t.weight = (int32_t *)((uint8_t *)t.first + 2 * each);
    return t;
}

ls_status lsi_resize(const lsi_pixels *in, int64_t height, int64_t width, lsi_window w, lsi_scratch *scratch,
                     lsi_pixels *out, ls_err *err)
{
    const int64_t stride = w.width * in->channels, widest_x = most_taps(in->width, width),
                  widest_y = most_taps(in->height, height);
    const size_t n_real = sizeof(double) * (size_t)(widest_x > widest_y ? widest_x : widest_y);
    size_t bytes = n_real + taps_bytes(in->width, width, w.width) + taps_bytes(in->height, height, w.height) +
                   (sizeof(int32_t) + (size_t)in->height + (size_t)w.height) * (size_t)stride + 6 * 64;
    uint8_t *at = lsi_scratch_need(scratch, bytes);

    if (!at)
        return ls_fail(err, LS_NOMEM, "no memory to resize an image of %lld x %lld pixels",
                       (long long)in->height, (long long)in->width);
    *out = lsi_pixels_interleaved(NULL, in->channels, w.height, w.width);
    double *real = take(&at, n_real);
    taps x = take_taps(&at, in->width, width, w.width), y = take_taps(&at, in->height, height, w.height);
    compute(&x, in->width, width, w.left, w.width, real);
    compute(&y, in->height, height, w.top, w.height, real);
    if (w.height < 1 || w.width < 1) return LS_OK;
    /* Only the rows that the part needs. */
    const int64_t top = y.first[0], bottom = y.first[w.height - 1] + y.count[w.height - 1];
    int32_t *sum = take(&at, sizeof(int32_t) * (size_t)stride);
    uint8_t *between = take(&at, (size_t)(bottom - top) * (size_t)stride),
            *result = take(&at, (size_t)w.height * (size_t)stride);
    along_rows(in, top, bottom - top, &x, w.width, between);
    along_columns(between, stride, top, &y, w.height, sum, result);
    out->data = result;
    return LS_OK;
}
