/* grow.c: arrays that grow. */
#include "base/grow.h"

#include <stdint.h>
#include <string.h>

enum { LEAST = 16 };

bool ls_grow(ls_mem_tag tag, void *array, size_t item_bytes, size_t want, size_t *capacity)
{
    size_t more = *capacity < LEAST / 2 ? LEAST : 2 * *capacity;
    void *p;

    if (want <= *capacity) return true;
    if (*capacity > SIZE_MAX / 2 || more < want) more = want;
    if (more > SIZE_MAX / item_bytes) return false;
    /* The pointer is copied: a T * must not be written as a void *. */
    memcpy(&p, array, sizeof p);
    p = ls_realloc(tag, p, more * item_bytes);
    if (p == NULL) return false;
    memcpy(array, &p, sizeof p);
    *capacity = more;
    return true;
}
