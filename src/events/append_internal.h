/* append_internal.h: a file that grows by whole pieces and never stops a run.
 *
 * A piece (a record, a line) is written by one write call.  When that fails, as on a full disk, one warning
 * is logged, the file is cut back to its last whole piece, and this piece and all later ones are dropped and
 * counted. */
#ifndef LS_EVENTS_APPEND_INTERNAL_H
#define LS_EVENTS_APPEND_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

typedef struct lsi_append {
    int fd;
    char *path;       /* owned */
    const char *what; /* for messages: "TensorBoard events" */
    int64_t bytes;    /* length of the file: the end of its last whole piece */
    int64_t dropped;  /* pieces lost */
    bool failed;
} lsi_append;

/* Opens `path` for appending; `flags` are added to open(2)'s.  LS_IO with errno kept, LS_NOMEM. */
ls_status lsi_append_open(lsi_append *a, const char *path, int flags, const char *what,
                          ls_err *err) LS_MUST_CHECK;
void lsi_append_write(lsi_append *a, const void *data, size_t n);
/* The piece could not even be made, for lack of memory. */
void lsi_append_lost(lsi_append *a);
/* Waits until the file is on the disk. */
void lsi_append_flush(lsi_append *a);
/* Flushes, closes, and says how much was lost; accepts one that was never opened ({.fd = -1}). */
void lsi_append_close(lsi_append *a);

#endif
