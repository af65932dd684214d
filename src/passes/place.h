/* place.h: where buffers lie in one arena, from their sizes and lifetimes. */
#ifndef LS_PASSES_PLACE_H
#define LS_PASSES_PLACE_H

#include "passes/passes.h"

/* Gives all buffers their offsets, those of the host (`kept`) first and one behind the other; two that live
 * at the same time share no byte, the time at which they rest included.  *bytes is where the last one ends,
 * and *live the most that live at a time with all of the host's: no arena is smaller. */
ls_status lsi_place(ls_memory_buffer *b, int32_t n, size_t *bytes, size_t *live, ls_err *err) LS_MUST_CHECK;

/* Who uses which buffer. */
typedef struct lsi_users {
    const ls_graph *g;
    const ls_schedule *s;
    const int32_t *position; /* per node, in the schedule; -1: not in it */
    const int32_t *of_value; /* buffer of each value, or -1 */
    const int32_t *scratch;  /* buffer of each position's scratch */
} lsi_users;

/* Sets how long each of the n buffers rests, `most` positions at most, so that nodes can run side by side
 * (apart.c). */
ls_status lsi_rest(const lsi_users *u, int32_t most, ls_memory_buffer *b, int32_t n,
                   ls_err *err) LS_MUST_CHECK;

#endif
