/* samples.h: the images that a trial declares (ls_image), as one picture per name in TensorBoard. */
#ifndef LS_TRAIN_SAMPLES_H
#define LS_TRAIN_SAMPLES_H

#include "events/events.h"
#include "train/session.h"

/* Images beside and below each other in a picture; fewer where they are large. */
enum { LS_SAMPLES_ACROSS = 8, LS_SAMPLES_PIXELS = 1040 };

/* Writes a picture for every fetched value samples/<name> of the evaluation plan with the most samples, from
 * the batch that it ran last.  What cannot be written is left out with a warning. */
void ls_samples_write(const ls_session *s, ls_events *ev, int64_t step);

/* `n` images of (channels, height, width) floats from 0 to 1, in rows, as bytes for ls_png_encode: the caller
 * frees *out with ls_free.  Between images are two dark pixels. */
ls_status ls_samples_grid(const float *images, int64_t n, int64_t channels, int64_t height, int64_t width,
                          uint8_t **out, int64_t *out_width, int64_t *out_height, ls_err *err) LS_MUST_CHECK;

#endif
