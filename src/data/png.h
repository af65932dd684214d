/* png.h: PNG images in memory: 8 bits, grey or RGB. */
#ifndef LS_DATA_PNG_H
#define LS_DATA_PNG_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

/* `pixels` are rows from the top, `channels` (1 or 3) bytes per pixel.  *out receives the file's *n bytes,
 * which the caller frees with ls_free. */
ls_status ls_png_encode(const uint8_t *pixels, int64_t width, int64_t height, int channels, uint8_t **out,
                        size_t *n, ls_err *err) LS_MUST_CHECK;

#endif
