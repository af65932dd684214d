/* transform.c: which part of an image is taken, and its way into a field.
 *
 * Only the part that is taken is resized and normalised: the choice comes first, the work after it. */
#include "data/transform.h"

#include <inttypes.h>
#include <string.h>

#include "transform_internal.h"

enum { MAX_PIXELS_OF_SIDE = 1 << 16 };

/* -- images and memory ------------------------------------------------------------------------------------
 */

lsi_pixels lsi_pixels_planar(const uint8_t *data, int64_t channels, int64_t height, int64_t width)
{
    return (lsi_pixels){data, channels, height, width, height * width, width, 1};
}

lsi_pixels lsi_pixels_interleaved(const uint8_t *data, int64_t channels, int64_t height, int64_t width)
{
    return (lsi_pixels){data, channels, height, width, 1, width * channels, channels};
}

void *lsi_scratch_need(lsi_scratch *s, size_t bytes)
{
    if (s->data && s->size >= bytes) return s->data;
    lsi_scratch_release(s);
    s->data = ls_alloc(LS_MEM_DATA, bytes);
    s->size = s->data ? bytes : 0;
    return s->data;
}

void lsi_scratch_release(lsi_scratch *s)
{
    ls_free(s->data);
    *s = (lsi_scratch){0};
}

/* -- sizes ------------------------------------------------------------------------------------------------
 */

bool lsi_transform_fixes_size(const ls_transform *t)
{
    return t->crop > 0;
}

static void resized(const ls_transform *t, int64_t *height, int64_t *width)
{
    int64_t *shorter = *height < *width ? height : width, *longer = shorter == height ? width : height;

    if (!t->resize) return;
    *longer = t->resize * *longer / *shorter;
    *shorter = t->resize;
}

/* Of what comes out of an image of the given size. */
static void final_size(const ls_transform *t, int64_t *height, int64_t *width)
{
    resized(t, height, width);
    *height = t->crop ? t->crop : *height + 2 * t->pad;
    *width = t->crop ? t->crop : *width + 2 * t->pad;
}

/* Whether an image of the given size is large enough to be cropped. */
static bool holds_crop(const ls_transform *t, int64_t height, int64_t width)
{
    resized(t, &height, &width);
    return height + 2 * t->pad >= t->crop && width + 2 * t->pad >= t->crop;
}

static ls_status check_transform(const ls_dataset *d, const ls_transform *t, ls_err *err)
{
    const struct {
        lsi_data_setting which;
        int64_t value;
    } sides[] = {{LSI_SET_RESIZE, t->resize}, {LSI_SET_PAD, t->pad}, {LSI_SET_CROP, t->crop}};

    for (int i = 0; i < 3; i++)
        if (sides[i].value < 0 || sides[i].value > MAX_PIXELS_OF_SIDE)
            return ls_fail(err, LS_INVALID, "%s=%" PRId64 ": must be 0 to %d pixels",
                           lsi_setting(d->of_experiment, sides[i].which), sides[i].value, MAX_PIXELS_OF_SIDE);
    return LS_OK;
}

ls_status lsi_transform_add_field(ls_dataset *d, const ls_data_source *src, const char *name,
                                  int64_t channels, int64_t height, int64_t width, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(check_transform(d, &src->transform, err));
    d->transform = src->transform;
    d->transforms = true;
    LS_TRY(lsi_scale_check(&d->scale, LS_SHAPE(channels, height, width), err));
    if (!holds_crop(&d->transform, height, width))
        return ls_fail(err, LS_INVALID,
                       "%s=%" PRId64 " is more than images of %" PRId64 " x %" PRId64 " with %s=%" PRId64
                       " and %s=%" PRId64 " have",
                       lsi_setting(d->of_experiment, LSI_SET_CROP), d->transform.crop, height, width,
                       lsi_setting(d->of_experiment, LSI_SET_RESIZE), d->transform.resize,
                       lsi_setting(d->of_experiment, LSI_SET_PAD), d->transform.pad);
    final_size(&d->transform, &height, &width);
    lsi_dataset_add_field(d, name, LS_F32, LS_SHAPE(channels, height, width));
out:
    return st;
}

/* -- choice -----------------------------------------------------------------------------------------------
 */

static int64_t below(uint32_t word, int64_t n)
{
    return (int64_t)((uint64_t)word * (uint64_t)n >> 32);
}

/* The part of the resized image that becomes the field; beyond its edges lies the padding. */
static lsi_window choose(const ls_transform *t, int64_t height, int64_t width, const ls_rng_key *augment,
                         int field, bool *mirrored)
{
    const int64_t all_h = height + 2 * t->pad, all_w = width + 2 * t->pad;
    lsi_window w = {-t->pad, -t->pad, all_h, all_w};
    uint32_t word[4];

    *mirrored = false;
    if (augment) ls_rng_block(augment, ls_rng_stream("data.transform"), 0, (uint32_t)field, word);
    if (t->crop) {
        const int64_t free_h = all_h - t->crop, free_w = all_w - t->crop;
        /* Halves are rounded as torchvision's CenterCrop does, to the even number. */
        w.top += augment ? below(word[0], free_h + 1) : free_h / 2 + (free_h % 4 == 3);
        w.left += augment ? below(word[1], free_w + 1) : free_w / 2 + (free_w % 4 == 3);
        w.height = w.width = t->crop;
    }
    if (augment && t->flip) *mirrored = word[2] >> 31;
    return w;
}

static int64_t clamp(int64_t x, int64_t lo, int64_t hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/* What of `w` lies inside height x width; height or width 0 when nothing does. */
static lsi_window inside(lsi_window w, int64_t height, int64_t width)
{
    int64_t top = clamp(w.top, 0, height), bottom = clamp(w.top + w.height, 0, height),
            left = clamp(w.left, 0, width), right = clamp(w.left + w.width, 0, width);

    return (lsi_window){top, left, bottom - top, right - left};
}

/* -- normalisation ----------------------------------------------------------------------------------------
 */

/* One row of one channel: `before` black pixels, n of the image, and black ones up to `width`. */
static void write_row(const float *table, const uint8_t *in, int64_t step, int64_t before, int64_t n,
                      int64_t width, bool mirrored, float *out)
{
    for (int64_t x = 0; x < before; x++) out[x] = table[0];
    if (step == 1)
        for (int64_t x = 0; x < n; x++) out[before + x] = table[in[x]];
    else
        for (int64_t x = 0; x < n; x++) out[before + x] = table[in[x * step]];
    for (int64_t x = before + n; x < width; x++) out[x] = table[0];
    for (int64_t x = 0; mirrored && x < width / 2; x++) {
        float left = out[x];
        out[x] = out[width - 1 - x];
        out[width - 1 - x] = left;
    }
}

/* `in` is put into a field of `shape` at (top, left); the rest is black. */
static void place(const lsi_scale *scale, const lsi_pixels *in, int64_t top, int64_t left, ls_shape shape,
                  bool mirrored, float *out)
{
    const int64_t height = shape.dim[1], width = shape.dim[2];

    for (int64_t c = 0; c < shape.dim[0]; c++) {
        const float *table = scale->table[lsi_scale_channel(scale, c)];
        for (int64_t y = 0; y < height; y++) {
            bool within = in->width > 0 && y >= top && y < top + in->height;
            const uint8_t *row =
                within ? in->data + c * in->channel_step + (y - top) * in->row_step : in->data;
            write_row(table, row, in->column_step, left, within ? in->width : 0, width, mirrored,
                      out + (c * height + y) * width);
        }
    }
}

ls_status lsi_transform_apply(const ls_dataset *d, int field, const lsi_pixels *in, const ls_rng_key *augment,
                              lsi_scratch *scratch, const char *path, float *out, ls_err *err)
{
    const ls_transform *t = &d->transform;
    const ls_shape shape = d->fields[field].shape;
    int64_t height = in->height, width = in->width, final_h = height, final_w = width;
    bool mirrored;
    lsi_pixels part = *in;
    ls_status st = LS_OK;

    final_size(t, &final_h, &final_w);
    resized(t, &height, &width);
    if (final_h != shape.dim[1] || final_w != shape.dim[2])
        return ls_fail(err, LS_DATA,
                       "%s: comes out as %" PRId64 " x %" PRId64 ", but the first image as %" PRId64
                       " x %" PRId64 " (height x width); set %s, or make all images equal",
                       path, final_h, final_w, shape.dim[1], shape.dim[2],
                       lsi_setting(d->of_experiment, LSI_SET_CROP));
    if (!holds_crop(t, in->height, in->width))
        return ls_fail(err, LS_DATA,
                       "%s: %" PRId64 " x %" PRId64
                       " pixels (height x width, resized) are fewer than the %" PRId64
                       " to be cropped; set %s, or a smaller %s",
                       path, height, width, t->crop, lsi_setting(d->of_experiment, LSI_SET_RESIZE),
                       lsi_setting(d->of_experiment, LSI_SET_CROP));
    const lsi_window w = choose(t, height, width, augment, field, &mirrored), seen = inside(w, height, width);
    if (height != in->height || width != in->width) {
        LS_TRY(lsi_resize(in, height, width, seen, scratch, &part, err));
    } else {
        part.data += seen.top * in->row_step + seen.left * in->column_step;
        part.height = seen.height;
        part.width = seen.width;
    }
    place(&d->scale, &part, clamp(seen.top - w.top, 0, final_h), clamp(seen.left - w.left, 0, final_w), shape,
          mirrored, out);
out:
    return st;
}
