/* stock.c: blocks of memory by size, four sizes to each doubling: what is too much is a quarter at most. */
#include "comm/stock.h"

#include <stdalign.h>

#include "base/alloc.h"
#include "lockstep/status.h"

enum { SMALLEST = 256, PER_DOUBLING = 4, CACHE_LINE = 64 };

struct lsi_block {
    alignas(CACHE_LINE) lsi_block *next;
    int size; /* which of them */
    alignas(CACHE_LINE) char at[];
};

/* The number of the size that so many bytes fit in, and the size. */
static int size_for(size_t bytes, size_t *size)
{
    size_t base = SMALLEST, steps;
    int number = 0;

    for (; 2 * base <= bytes; base *= 2) number += PER_DOUBLING;
    steps = bytes <= base ? 0 : (bytes - base + base / PER_DOUBLING - 1) / (base / PER_DOUBLING);
    *size = base + steps * (base / PER_DOUBLING);
    return number + (int)steps;
}

void *lsi_stock_take(lsi_stock *s, size_t bytes)
{
    size_t size;
    const int number = size_for(bytes, &size);
    lsi_block *b;

    LS_BUG_IF(number >= LSI_STOCK_SIZES);
    if ((b = s->free[number]) != NULL) {
        s->free[number] = b->next;
        return b->at;
    }
    if ((b = ls_alloc(LS_MEM_COMM, sizeof *b + size)) == NULL) return NULL;
    b->size = number;
    return b->at;
}

void lsi_stock_give(lsi_stock *s, void *block)
{
    lsi_block *b;

    if (block == NULL) return;
    b = (lsi_block *)((char *)block - offsetof(lsi_block, at));
    b->next = s->free[b->size];
    s->free[b->size] = b;
}

void lsi_stock_release(lsi_stock *s)
{
    for (int i = 0; i < LSI_STOCK_SIZES; i++)
        for (lsi_block *b = s->free[i], *next; b != NULL; b = next) {
            next = b->next;
            ls_free(b);
            s->free[i] = next;
        }
}

size_t lsi_stock_bytes(size_t bytes, int *number)
{
    size_t size;

    *number = size_for(bytes, &size);
    return sizeof(lsi_block) + size;
}
