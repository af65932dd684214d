/* stock.h: blocks of memory that are used again and again: of those of the right size, the one that was used
 * last, which the cache still has.  After the first steps nothing is allocated.  A block is never used for
 * what is smaller: what is taken is, for each size, as many blocks as were ever in use at once. */
#ifndef LS_COMM_STOCK_H
#define LS_COMM_STOCK_H

#include <stddef.h>

enum { LSI_STOCK_SIZES = 160 };

typedef struct lsi_block lsi_block;

/* Zeros are an empty one.  It belongs to one thread. */
typedef struct lsi_stock {
    lsi_block *free[LSI_STOCK_SIZES];
} lsi_stock;

/* On a cache's line; its contents are anything.  NULL: no memory. */
void *lsi_stock_take(lsi_stock *s, size_t bytes);
void lsi_stock_give(lsi_stock *s, void *block); /* accepts NULL */
/* Frees all that have been given back. */
void lsi_stock_release(lsi_stock *s);
/* What a block of so many bytes takes; *number: which of the sizes it has. */
size_t lsi_stock_bytes(size_t bytes, int *number);

#endif
