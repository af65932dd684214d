/* event_reader.h: reads TensorBoard event files back.
 *
 * Every record's two checksums are verified.  A file that ends inside a record (a torn tail: the writer was
 * killed or is still at work) is read up to its last whole record, and says so.  Anything else that is wrong
 * is LS_FORMAT with the place.  A reader belongs to one thread at a time. */
#ifndef LS_EVENTS_EVENT_READER_H
#define LS_EVENTS_EVENT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

typedef enum ls_event_kind {
    LS_EVENT_VERSION, /* the header: `bytes` holds brain.Event:2 */
    LS_EVENT_SCALAR,  /* `value` */
    LS_EVENT_TEXT,    /* `bytes` */
    LS_EVENT_IMAGE,   /* `width`, `height`, `channels`, and the encoded image in `bytes` */
    LS_EVENT_PLUGIN,  /* a value that is all in its metadata, as of the hparams page: content in `bytes` */
    LS_EVENT_RESTART, /* ls_events_restart */
    LS_EVENT_OTHER,   /* a well-formed event of a kind that is not looked into */
} ls_event_kind;

/* One value of one event.  All pointers are borrowed from the reader until its next call; absent texts are
 * "" and absent bytes have length 0. */
typedef struct ls_event {
    ls_event_kind kind;
    double wall_time; /* seconds since 1970 */
    int64_t step;
    const char *tag;
    const char *plugin; /* the plugin named by the value's metadata */
    double value;
    int64_t width, height, channels;
    const char *bytes;
    size_t n_bytes;
} ls_event;

typedef struct ls_event_reader ls_event_reader;

/* Reads the whole file into memory. */
ls_status ls_event_reader_open(ls_event_reader **out, const char *path, ls_err *err) LS_MUST_CHECK;
/* The same over bytes that the caller keeps until the reader is closed. */
ls_status ls_event_reader_memory(ls_event_reader **out, const void *data, size_t n,
                                 ls_err *err) LS_MUST_CHECK;
void ls_event_reader_close(ls_event_reader *r); /* accepts NULL */

/* The next value: *more is false, and *out all zero, after the last one.  After a failure the reader fails
 * again. */
ls_status ls_event_reader_next(ls_event_reader *r, ls_event *out, bool *more, ls_err *err) LS_MUST_CHECK;
/* Bytes at the end of the file that are not a whole record; known once *more is false. */
size_t ls_event_reader_torn(const ls_event_reader *r);
const char *ls_event_kind_name(ls_event_kind kind);

#endif
