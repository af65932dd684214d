/* arena.c: a chain of blocks from which small objects are cut.
 *
 * Blocks double from 4 KiB to 64 KiB, so that a small graph stays small and a large one makes few
 * allocations; an object too large for a block gets one of its own. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define ALIGN       ((size_t)16)
#define BLOCK_FIRST ((size_t)4 << 10)
#define BLOCK_MAX   ((size_t)64 << 10)

typedef struct block {
    struct block *next;
    size_t used, capacity; /* bytes of data */
    _Alignas(16) char data[];
} block;

struct ls_arena {
    ls_mem_tag tag;
    block *head; /* the block being filled, then all older ones */
    size_t next_capacity;
};

ls_status ls_arena_create(ls_arena **out, ls_mem_tag tag, ls_err *err)
{
    *out = ls_alloc(tag, sizeof **out);
    if (!*out) return ls_fail(err, LS_NOMEM, "no memory for an arena (%s)", ls_mem_tag_name(tag));
    (*out)->tag = tag;
    (*out)->next_capacity = BLOCK_FIRST;
    return LS_OK;
}

void ls_arena_destroy(ls_arena *arena)
{
    if (!arena) return;
    for (block *b = arena->head; b;) {
        block *next = b->next;
        ls_free(b);
        b = next;
    }
    ls_free(arena);
}

static block *add_block(ls_arena *arena, size_t capacity)
{
    block *b = ls_alloc(arena->tag, sizeof(block) + capacity);
    if (!b) return NULL;
    b->capacity = capacity;
    b->next = arena->head;
    arena->head = b;
    return b;
}

/* A block for one large object goes behind the head, which still has room for small ones. */
static void *alloc_alone(ls_arena *arena, size_t bytes)
{
    block *head = arena->head;
    block *b = add_block(arena, bytes);
    if (!b) return NULL;
    b->used = bytes;
    if (head) {
        b->next = head->next;
        head->next = b;
        arena->head = head;
    }
    return b->data;
}

void *ls_arena_alloc(ls_arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 4) return NULL;
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (bytes == 0) bytes = ALIGN; /* distinct objects have distinct addresses */

    block *b = arena->head;
    if (!b || b->capacity - b->used < bytes) {
        if (bytes > arena->next_capacity / 4) return alloc_alone(arena, bytes);
        b = add_block(arena, arena->next_capacity);
        if (!b) return NULL;
        if (arena->next_capacity < BLOCK_MAX) arena->next_capacity *= 2;
    }
    void *p = b->data + b->used;
    b->used += bytes;
    return p;
}

char *ls_arena_strdup(ls_arena *arena, const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = ls_arena_alloc(arena, n);
    if (copy) memcpy(copy, text, n);
    return copy;
}

char *ls_arena_printf(ls_arena *arena, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    LS_BUG_IF(n < 0);

    char *text = ls_arena_alloc(arena, (size_t)n + 1);
    if (!text) return NULL;
    va_start(ap, fmt);
    vsnprintf(text, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return text;
}
