/* timeline.h: reads back the traces of a run (trace-%05d.json, train/trace.h): one step of every rank. */
#ifndef LS_TRAIN_TIMELINE_H
#define LS_TRAIN_TIMELINE_H

#include <stdint.h>

#include "base/alloc.h"
#include "lockstep/status.h"

typedef enum ls_span_kind {
    LS_SPAN_FORWARD,
    LS_SPAN_BACKWARD,
    LS_SPAN_UPDATE,
    LS_SPAN_EXCHANGE, /* adding up gradients, and starting to */
    LS_SPAN_WAIT,     /* for the sums of other ranks */
    LS_SPAN_KINDS
} ls_span_kind;

typedef struct ls_timeline_span {
    int rank;
    ls_span_kind kind;
    double begin_ms, end_ms; /* from the begin of the step */
    const char *name;        /* the op and its layer; the timeline's */
} ls_timeline_span;

typedef struct ls_timeline {
    ls_arena *arena;
    long long step; /* which; the last one that all ranks have */
    int n_ranks;    /* 0: there are no traces */
    ls_timeline_span *spans;
    int64_t n_spans;
    size_t capacity;
} ls_timeline;

enum { LS_TIMELINE_RANKS = 64 }; /* further ranks are left out */

/* Reads the traces in `folder`; none is no error.  LS_DATA names a file that is damaged, too large, or has no
 * step in common with the others.  Release in any case. */
ls_status ls_timeline_open(ls_timeline *t, const char *folder, ls_err *err) LS_MUST_CHECK;
void ls_timeline_release(ls_timeline *t);

/* The same from texts: trace k of n, called paths[k] in messages, is that of rank k. */
ls_status ls_timeline_parse(ls_timeline *t, int n, const char *const *texts, const size_t *lengths,
                            const char *const *paths, ls_err *err) LS_MUST_CHECK;
const char *ls_span_kind_name(ls_span_kind kind);

#endif
