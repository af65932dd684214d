/* far_internal.h: the inside of the device, shared by its files. */
#ifndef LS_BACKEND_FAR_FAR_INTERNAL_H
#define LS_BACKEND_FAR_FAR_INTERNAL_H

#include <pthread.h>

#include "backend/far/far.h"

typedef struct lsi_far_line lsi_far_line;

typedef struct lsi_far {
    ls_device base;
    char *shown, *memory; /* byte i of the one is byte i of the other; `shown` is never mapped */
    pthread_mutex_t lock; /* guards `used` */
    size_t used;
    lsi_far_line *line; /* queues and the thread that works on them */
} lsi_far;

/* Where the device finds what is shown at `address`; NULL where that is no memory of its own. */
void *lsi_far_find(const lsi_far *d, const void *address);
static inline void *lsi_far_bytes(const ls_buffer *b, size_t at)
{
    return lsi_far_find((const lsi_far *)b->dev, ls_buffer_address(b, at));
}

/* -- queues.c ---------------------------------------------------------------------------------------------
 */

extern const ls_queues lsi_far_queues;
extern const ls_links lsi_far_links; /* links.c */
ls_status lsi_far_line_open(lsi_far *d, uint64_t seed, ls_err *err);
void lsi_far_line_close(lsi_far *d); /* whatever is in the queues is left undone */
/* Waits until the queues are empty, and nothing that was asked for is looked at any more. */
void lsi_far_drain(lsi_far *d);

#endif
