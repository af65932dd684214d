/* blocks_internal.h: what a picture of a plan shows: blocks of nodes, each with its time. */
#ifndef LS_PLANS_BLOCKS_INTERNAL_H
#define LS_PLANS_BLOCKS_INTERNAL_H

#include "exec/document.h"

#define LSI_LANES 4
enum { LSI_ROWS = 24 }; /* most of a lane; what more goes on lies in the last */

/* Nodes of one queue that follow one another: one node, or, where there are many, those of one layer in one
 * direction. */
typedef struct lsi_block {
    int32_t first, last; /* nodes, both included */
    int lane;            /* place of its queue in lsi_lanes */
    int row;             /* within the lane: what goes on at the same time lies in rows of its own */
    double begin, end;   /* seconds since the begin, measured or estimated */
    char name[96];
} lsi_block;

typedef struct lsi_blocks {
    lsi_block *of;
    int32_t n;
    int32_t *block_of;     /* per node */
    double *begins, *ends; /* per node */
    double seconds;        /* of all */
    int rows[LSI_LANES];   /* of each lane; 0: it is empty */
    bool measured, grouped;
} lsi_blocks;

extern const char *const lsi_lanes[LSI_LANES]; /* names of queues */

/* False: no memory.  Release in any case. */
bool lsi_blocks_make(lsi_blocks *b, const ls_document *d);
void lsi_blocks_release(lsi_blocks *b);

#endif
