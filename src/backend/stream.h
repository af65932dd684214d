/* stream.h: where kernels run, and where they say what went wrong.
 *
 * A stream runs the kernels of a plan one after the other.  A kernel returns nothing, since on most devices
 * it ends long after the call that started it; one that cannot do its work tells its stream, which remembers
 * the first failure, and the run of the plan returns it. */
#ifndef LS_BACKEND_STREAM_H
#define LS_BACKEND_STREAM_H

#include <stdint.h>

#include "lockstep/status.h"

/* Starts as {0}. */
typedef struct ls_stream {
    int32_t at;        /* the node whose kernel runs, for those who look for the one that failed */
    int32_t failed_at; /* of the failure */
    ls_err failure;
} ls_stream;

/* From any thread of a kernel; what was told first stays.  `s` may be NULL: nobody listens. */
void ls_stream_fail(ls_stream *s, ls_status status, const char *fmt, ...) LS_PRINTF(3, 4);

#endif
