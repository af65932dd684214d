/* samples.h: the images that a trial declares (ls_image), as PNG files and in TensorBoard.
 *
 * The images are those of the first samples of the test set, so that pictures of different steps show the
 * same ones; noise is the same every time, too.  Rank 0 makes them alone, unless ranks have pieces of the
 * weights, and the others wait for it at the next step, so the thread that trains only runs the plan, which
 * computes what the images need and nothing else.  Compressing and writing is done by a thread beside it. */
#ifndef LS_TRAIN_SAMPLES_H
#define LS_TRAIN_SAMPLES_H

#include "events/events.h"
#include "train/session.h"

/* Images beside and below each other in a picture; fewer where they are large. */
enum { LS_SAMPLES_ACROSS = 8, LS_SAMPLES_PIXELS = 1300 };

typedef struct ls_samples ls_samples;

typedef struct ls_samples_options {
    ls_session *session;
    const ls_dataset *data;
    const char *folder; /* the run's; files are <folder>/samples/<name>-<step>.png */
    uint64_t seed;      /* of noise */
    int64_t n;          /* samples; fewer where there are not so many */
} ls_samples_options;

/* What the options point to outlives *out. */
ls_status ls_samples_open(ls_samples **out, const ls_samples_options *o, ls_err *err) LS_MUST_CHECK;
void ls_samples_close(ls_samples *s, ls_events *ev); /* accepts NULL */

/* Makes the pictures of the variables as they are after `step` steps.  A trial without images has none.  What
 * cannot be made or written is left out with a warning. */
void ls_samples_make(ls_samples *s, ls_events *ev, int64_t step);
/* The part of the other ranks, which have pieces of the weights; where they have not, nothing. */
ls_status ls_samples_assist(ls_samples *s, ls_err *err) LS_MUST_CHECK;
/* Hands pictures that are ready to TensorBoard, as samples/<name>; `wait`: also those that are not yet. */
void ls_samples_collect(ls_samples *s, ls_events *ev, bool wait);

/* A row of images of one picture: `n` of (channels, height, width), floats from 0 to 1. */
typedef struct ls_sample_row {
    const float *images;
    int64_t n;
} ls_sample_row;

/* The rows below each other, as bytes for ls_png_encode: the caller frees *out with ls_free.  A single row is
 * broken into several where it is too long; of several rows, what is too long is left out.  Between images
 * are two dark pixels. */
ls_status ls_samples_grid(const ls_sample_row *rows, int n_rows, int64_t channels, int64_t height,
                          int64_t width, uint8_t **out, int64_t *out_width, int64_t *out_height,
                          ls_err *err) LS_MUST_CHECK;

#endif
