/* metrics.h: writes metrics.jsonl, one JSON object per line and report.
 *
 *     {"step": 781, "epoch": 1, "time_s": 12.5, "train/loss": 0.6931471805599453}
 *
 * Names come in the order they are given; numbers are the shortest that read back as the same double.  JSON
 * has no NaN and no infinity: such a value is null, and a last member says which it was:
 *
 *     {"step": 782, "epoch": 1, "time_s": 12.6, "loss": null, "not_finite": {"loss": "nan"}}
 *
 * with "nan", "inf" or "-inf".  A line reaches the kernel by one write call.  A failed write never stops a
 * run: lines that cannot be written wait in memory and are tried again (append.h).  Lines and
 * writers of NULL are ignored; a writer belongs to one thread at a time. */
#ifndef LS_EVENTS_METRICS_H
#define LS_EVENTS_METRICS_H

#include <stdint.h>

#include "base/text.h"
#include "lockstep/status.h"

/* A number with a name. */
typedef struct ls_metric {
    const char *name;
    double value;
} ls_metric;

/* One report. */
typedef struct ls_metrics_line {
    int64_t step;
    double epoch;
    double time_s; /* since the start of the run */
    const ls_metric *values;
    int64_t n_values;
} ls_metrics_line;

typedef struct ls_metrics ls_metrics;

#define LS_METRICS_NEW  (-1)      /* an empty file, whatever was there */
#define LS_METRICS_KEEP INT64_MAX /* everything that is there */

/* Opens or creates `path` to append.  After a resume, `last_step` is the last step that counts: the file is
 * cut off before the first line of a later step, and an unfinished last line goes in any case.  `undone` is
 * how the first name of a report of last_step begins that will be made again ("val/"), so that the file is
 * cut off before it, too; NULL: there is none. */
ls_status ls_metrics_open(ls_metrics **out, const char *path, int64_t last_step, const char *undone,
                          ls_err *err) LS_MUST_CHECK;
void ls_metrics_write(ls_metrics *m, const ls_metrics_line *line);
/* Waits until the file is on the disk. */
void ls_metrics_flush(ls_metrics *m);
void ls_metrics_close(ls_metrics *m);            /* flushes */
int64_t ls_metrics_missing(const ls_metrics *m); /* lines that wait or were lost */

/* The members of a line's object, without braces and newline, for other writers of JSON lines. */
void ls_metrics_format(ls_text *out, const ls_metrics_line *line);

#endif
