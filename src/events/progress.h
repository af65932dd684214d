/* progress.h: what a person sees of a run that goes on.
 *
 * On a terminal, one line that is redrawn in place, at most ten times a second; elsewhere a plain line every
 * few seconds; or nothing.  The input is numbers: nothing here knows what they count.  Nothing of the
 * terminal is changed that would have to be put back: after a kill the bar is left standing, and no more.
 *
 * Threads may share a progress: one draws, others interrupt it.  All functions but create accept NULL and do
 * nothing. */
#ifndef LS_EVENTS_PROGRESS_H
#define LS_EVENTS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "events/metrics.h"
#include "lockstep/status.h"

typedef enum ls_progress_mode { LS_PROGRESS_NONE, LS_PROGRESS_LINES, LS_PROGRESS_BAR } ls_progress_mode;

typedef struct ls_progress_options {
    ls_progress_mode mode;
    int fd;                     /* where to write; not closed */
    int columns;                /* of the terminal; 0 to ask it at every redraw */
    bool utf8, colour;          /* blocks instead of '#', and colours, in the bar */
    double interval_s;          /* between plain lines */
    double (*clock)(void *arg); /* seconds that never go back; NULL for the system's */
    void *clock_arg;
} ls_progress_options;

typedef struct ls_progress_state {
    const char *phase;       /* "train", "validate", ...; NULL for none */
    int64_t epoch, n_epochs; /* `epoch` counts from 1; n_epochs 0 when epochs say nothing */
    int64_t step, n_steps;   /* steps done, of all; n_steps 0 when the end is not known */
    const ls_metric *values; /* loss, metrics: shown in this order */
    int64_t n_values;
    double samples_per_s; /* 0 or less: not shown */
} ls_progress_state;

typedef struct ls_progress ls_progress;

/* What suits `fd` and the environment: a bar on a terminal, plain lines elsewhere and with TERM=dumb, nothing
 * when `quiet`; blocks when the locale (LC_ALL, LC_CTYPE, LANG) is UTF-8; colours on a terminal unless
 * NO_COLOR is set; five seconds between plain lines. */
ls_progress_options ls_progress_detect(int fd, bool quiet);

ls_status ls_progress_create(ls_progress **out, const ls_progress_options *options,
                             ls_err *err) LS_MUST_CHECK;
/* Shows `state` if it is time to; cheap otherwise.  The time left is worked out from the steps since the
 * first call or since n_steps or the phase last changed. */
void ls_progress_update(ls_progress *p, const ls_progress_state *state);
/* Takes the bar away, so that something else can be printed; the next update draws it again at once. */
void ls_progress_clear(ls_progress *p);
/* Prints a line of text of its own, above the bar.  Not in mode NONE. */
void ls_progress_say(ls_progress *p, const char *fmt, ...) LS_PRINTF(2, 3);
/* Writes `text`, whole lines with their newlines, above the bar and puts the bar back: for lines that come
 * from elsewhere, such as the log's.  In every mode, also NONE. */
void ls_progress_interrupt(ls_progress *p, const char *text, size_t n);
/* Shows the last state given to update, if it is not what stands there, and leaves the cursor on a fresh
 * line. */
void ls_progress_finish(ls_progress *p);
void ls_progress_destroy(ls_progress *p); /* finishes first */

#endif
