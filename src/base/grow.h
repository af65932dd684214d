/* grow.h: arrays that grow. */
#ifndef LS_BASE_GROW_H
#define LS_BASE_GROW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"

/* Makes room in `array`, a pointer to some type or NULL, for `want` items; `capacity`, a size_t, is how many
 * fit.  New items are zero.  False when memory runs out: array and capacity are then as before. */
#define LS_GROW(tag, array, want, capacity)                                                                  \
    ls_grow((tag), &(array), sizeof *(array), (size_t)(want), &(capacity))

/* What the macro calls: `array` is the address of the pointer.  At least doubles, so that n items that come
 * one by one are moved fewer than 2 n times. */
bool ls_grow(ls_mem_tag tag, void *array, size_t item_bytes, size_t want, size_t *capacity) LS_MUST_CHECK;

#endif
