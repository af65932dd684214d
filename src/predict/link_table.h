/* link_table.h: the links that something uses, of a network that may have very many. */
#ifndef LS_PREDICT_LINK_TABLE_H
#define LS_PREDICT_LINK_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Starts as {0}.  Links get places 0, 1, ... in the order in which they come. */
typedef struct lsi_link_table {
    int64_t *links; /* by place */
    int32_t n, capacity;
    int32_t *hashed; /* places, -1: free; a power of two of them, at most half in use */
    int64_t n_hashed;
} lsi_link_table;

/* The place of a link, which is new or known; -1 when memory runs out. */
int32_t lsi_link_table_place(lsi_link_table *t, int64_t link);
void lsi_link_table_release(lsi_link_table *t); /* frees and zeroes */

#endif
