/* metrics_reader.h: reads metrics.jsonl back, report by report (metrics.h writes it).
 *
 * The file comes from outside.  A line that is no report (a torn write, a bad sector, an editor) is left out
 * and counted: one of thousands must not hide the others.  What follows the last newline is a line that is
 * being written, and no damage. */
#ifndef LS_EVENTS_METRICS_READER_H
#define LS_EVENTS_METRICS_READER_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* Lines that were left out; starts as {0}. */
typedef struct ls_metrics_damage {
    int64_t lines;
    int64_t first; /* its number in the file, from 1 */
    char why[200]; /* what is wrong with the first */
} ls_metrics_damage;

typedef struct ls_metrics_reader {
    const char *at, *end;
    int64_t line; /* the number of the line that was read last; 0: none yet */
    ls_metrics_damage damage;
} ls_metrics_reader;

/* `text` is borrowed. */
void ls_metrics_reader_begin(ls_metrics_reader *r, const char *text, size_t n);
/* The next report, an object with "step", "epoch" and "time_s" as numbers, to be released by json_decref;
 * NULL: there is none. */
json_t *ls_metrics_next(ls_metrics_reader *r);

/* Warns once of all that was left out of the file at `path`; nothing where nothing was. */
void ls_metrics_warn(const ls_metrics_damage *d, const char *path);

#endif
