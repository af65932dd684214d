/* transform_internal.h: the steps of transform.h on the bytes of one image. */
#ifndef LS_DATA_TRANSFORM_INTERNAL_H
#define LS_DATA_TRANSFORM_INTERNAL_H

#include "data_internal.h"

/* An image of bytes, in whatever order they lie: pixel (c, y, x) is data[c * channel_step + y * row_step +
 * x * column_step].  A channel_step of 0 shows one channel as several. */
typedef struct lsi_pixels {
    const uint8_t *data;
    int64_t channels, height, width;
    int64_t channel_step, row_step, column_step;
} lsi_pixels;

/* Channels one after another, as most formats store small images; and pixel by pixel, as decoders write them.
 */
lsi_pixels lsi_pixels_planar(const uint8_t *data, int64_t channels, int64_t height, int64_t width);
lsi_pixels lsi_pixels_interleaved(const uint8_t *data, int64_t channels, int64_t height, int64_t width);

/* A part of an image, possibly beyond its edges. */
typedef struct lsi_window {
    int64_t top, left, height, width;
} lsi_window;

/* Memory that grows and is used again; starts as {0}, belongs to one thread at a time. */
typedef struct lsi_scratch {
    void *data;
    size_t size;
} lsi_scratch;

/* At least `bytes` bytes, or NULL; what was there before is lost. */
void *lsi_scratch_need(lsi_scratch *s, size_t bytes) LS_MUST_CHECK;
void lsi_scratch_release(lsi_scratch *s);

/* For a kind's open: takes the transform of `src` as that of the set, for images of the given size, and adds
 * the field `name` of the shape that comes out.  LS_INVALID when the transform or the normalisation cannot
 * be applied to such images. */
ls_status lsi_transform_add_field(ls_dataset *d, const ls_data_source *src, const char *name,
                                  int64_t channels, int64_t height, int64_t width, ls_err *err) LS_MUST_CHECK;
/* The same for images whose size is not known or differs; they must have a crop. */
bool lsi_transform_fixes_size(const ls_transform *t);

/* Applies the set's transform to one image for the field `field` and writes it; LS_DATA when the image does
 * not come out in the field's shape: the text begins with `path`. */
ls_status lsi_transform_apply(const ls_dataset *d, int field, const lsi_pixels *in, const ls_rng_key *augment,
                              lsi_scratch *scratch, const char *path, float *out, ls_err *err) LS_MUST_CHECK;

/* The part `w` of the image `in` resized to height x width, channels interleaved, in *out; the memory is that
 * of `scratch`.  `w` lies inside.  LS_NOMEM when there is no memory. */
ls_status lsi_resize(const lsi_pixels *in, int64_t height, int64_t width, lsi_window w, lsi_scratch *scratch,
                     lsi_pixels *out, ls_err *err) LS_MUST_CHECK;

#endif
