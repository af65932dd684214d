/* stream.h: where kernels say what went wrong.
 *
 * A kernel returns nothing, since on most devices it ends long after the call that started it; one that
 * cannot do its work tells its stream.  Every node of a plan has one, which knows the node's number, and all
 * of them lead to one failure: what was told first stays, and the run of the plan returns it. */
#ifndef LS_BACKEND_STREAM_H
#define LS_BACKEND_STREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lockstep/status.h"

/* Starts as {0}. */
typedef struct ls_failure {
    atomic_bool told; /* the rest is there, and stays */
    int32_t node;     /* of the stream that told it */
    ls_err why;
} ls_failure;

typedef struct ls_stream {
    ls_failure *failure;
    int32_t node; /* any number by which the owner knows who told */
} ls_stream;

/* From any thread.  `s` may be NULL: nobody listens. */
void ls_stream_fail(const ls_stream *s, ls_status status, const char *fmt, ...) LS_PRINTF(3, 4);

#endif
