/* place.h: where buffers lie in one arena, from their sizes and lifetimes. */
#ifndef LS_PASSES_PLACE_H
#define LS_PASSES_PLACE_H

#include "passes/passes.h"

/* Gives all buffers their offsets, those of the host (`kept`) first and one behind the other; two that live
 * at the same time share no byte.  Each is taken to live for `more` positions longer than it says.  *bytes is
 * where the last one ends, and *live the most that live at a time with all of the host's: no arena is
 * smaller. */
ls_status lsi_place(ls_memory_buffer *b, int32_t n, int32_t more, size_t *bytes, size_t *live,
                    ls_err *err) LS_MUST_CHECK;

#endif
