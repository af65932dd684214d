/* image_internal.h: JPEG and PNG files to bytes, and bytes to such files. */
#ifndef LS_DATA_IMAGE_INTERNAL_H
#define LS_DATA_IMAGE_INTERNAL_H

#include <stdio.h>

#include "transform_internal.h"

/* Beyond these an image is refused before memory is taken for it.  Photographs have up to 50 million pixels.
 */
#define LSI_IMAGE_SIDE   INT64_C(65535)
#define LSI_IMAGE_PIXELS (INT64_C(1) << 26)

/* What one thread needs to decode images, one after another; starts as {0}. */
typedef struct lsi_decoder {
    lsi_scratch file, pixels, resized;
} lsi_decoder;

void lsi_decoder_release(lsi_decoder *d);

/* The file `path` as an image of `channels` (1 or 3) channels; it lives in the decoder until its next use.
 * What cannot be read or is damaged, also in part, is LS_DATA; the text names the file and the library's
 * reason.  With `header_only` nothing but the size is read, and out->data is NULL. */
ls_status lsi_image_read(lsi_decoder *d, const char *path, int64_t channels, bool header_only,
                         lsi_pixels *out, ls_err *err) LS_MUST_CHECK;

/* The decoders behind it: `bytes` as an image of interleaved channels: grey, red green blue, or cyan magenta
 * yellow black as Adobe writes them (255 is no ink). */
ls_status lsi_jpeg_decode(lsi_decoder *d, const char *path, const uint8_t *bytes, size_t size,
                          bool header_only, lsi_pixels *out, ls_err *err) LS_MUST_CHECK;
ls_status lsi_png_decode(lsi_decoder *d, const char *path, const uint8_t *bytes, size_t size,
                         bool header_only, lsi_pixels *out, ls_err *err) LS_MUST_CHECK;

/* For the decoders: LS_DATA for a size that no image here has, or that `least` bytes of data cannot hold when
 * only `size` are there. */
ls_status lsi_image_check_size(const char *path, int64_t height, int64_t width, size_t least, size_t size,
                               ls_err *err) LS_MUST_CHECK;

/* -- writing ----------------------------------------------------------------------------------------------
 */

/* A file that is being written, and room for one row of interleaved channels. */
typedef struct lsi_image_file {
    const char *path;
    FILE *file;
    uint8_t *row;
} lsi_image_file;

ls_status lsi_image_create(lsi_image_file *f, const char *path, const lsi_pixels *in,
                           ls_err *err) LS_MUST_CHECK;
/* Closes the file; what could not be written until then fails here.  `st` is what happened before. */
ls_status lsi_image_finish(lsi_image_file *f, ls_status st, ls_err *err) LS_MUST_CHECK;
void lsi_pixels_row(const lsi_pixels *in, int64_t y, uint8_t *row);

/* Write a new file from 1 or 3 channels; LS_INVALID when it is already there. */
ls_status lsi_jpeg_write(const char *path, const lsi_pixels *in, ls_err *err) LS_MUST_CHECK;
ls_status lsi_png_write(const char *path, const lsi_pixels *in, ls_err *err) LS_MUST_CHECK;

#endif
