/* events.h: writes TensorBoard event files.
 *
 * An event file is a row of TFRecords, each a protocol-buffer message `Event`.  Every record reaches the
 * kernel by one write call before the function returns, so a process that is killed loses nothing it has
 * reported, and a file can be torn only inside its last record.  Reporting never stops a run: records that
 * cannot be written wait in memory and are tried again (append.h).
 *
 * All functions but open accept NULL and then do nothing: ranks that report nothing have no writer.  A writer
 * belongs to one thread at a time. */
#ifndef LS_EVENTS_EVENTS_H
#define LS_EVENTS_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

typedef struct ls_events ls_events;

/* Creates `folder`/events.out.tfevents.<unix time>.<host>.<pid>.<n>, with a time after those of all files
 * that are there and the smallest n that is free, and writes its header record.  The folder must exist. LS_IO
 * when the file cannot be made or written. */
ls_status ls_events_open(ls_events **out, const char *folder, ls_err *err) LS_MUST_CHECK;

/* First in a new file: TensorBoard forgets what earlier files of the folder hold for `step` and later steps;
 * from step 0, all of it. */
void ls_events_restart(ls_events *ev, int64_t step);

/* TensorBoard keeps scalars as fp32; NaN and infinities are allowed and are shown as such. */
void ls_events_scalar(ls_events *ev, const char *tag, int64_t step, double value);
/* `text` is Markdown, in UTF-8. */
void ls_events_text(ls_events *ev, const char *tag, int64_t step, const char *text);
/* `png` is a whole PNG file of n_bytes; channels is 1 (grey), 2 (grey, alpha), 3 (RGB) or 4 (RGBA). */
void ls_events_image(ls_events *ev, const char *tag, int64_t step, int64_t width, int64_t height,
                     int channels, const void *png, size_t n_bytes);

/* One hyperparameter: a text, or a number when `text` is NULL. */
typedef struct ls_hparam {
    const char *name;
    const char *text;
    double number;
} ls_hparam;

/* The records of TensorBoard's hparams page: which hyperparameters exist, their values in this run, and the
 * metric `hp_metric` = -1 at step 0, which makes the run appear in the table. */
void ls_events_hparams(ls_events *ev, const ls_hparam *params, int64_t n_params);

/* Waits until the file is on the disk: for checkpoints and the end, not for every step.  A kill of the
 * process needs no flush; a fall of the machine does. */
void ls_events_flush(ls_events *ev);
/* Flushes and frees; accepts NULL. */
void ls_events_close(ls_events *ev);

const char *ls_events_path(const ls_events *ev); /* borrowed; "" for NULL */
int64_t ls_events_missing(const ls_events *ev);  /* records that wait or were lost */

#endif
