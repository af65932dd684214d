/* place.c: buffers one after the other, each at the lowest place that is free while it lives.
 *
 * The order decides how much is lost in gaps.  Largest first is right nearly always.  Where more is lost than
 * a little, other orders are tried, each also with those buffers first that stuck out: what is hard to place
 * is placed while there is room. */
#include "passes/place.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { KEYS = 3, REPAIRS = 8, LITTLE = 64 }; /* a 64th of the arena is little */

typedef ls_memory_buffer buffer;

/* A buffer that moves, and what it is sorted by, the largest first. */
typedef struct entry {
    double key[KEYS];
    int32_t at; /* its number */
} entry;

typedef struct placing {
    buffer *b;
    int32_t n;       /* of all */
    int32_t end;     /* one position behind the last that any lives at */
    int32_t peak;    /* the position at which most is in use */
    size_t kept;     /* bytes of the host's */
    size_t *load;    /* per position: bytes of others that live then */
    entry *order;    /* those that move and have a size */
    int32_t n_order; /* how many */
    const buffer **placed;
    size_t *best; /* offsets of the best try */
    size_t best_bytes;
} placing;

/* -- what lives when --------------------------------------------------------------------------------------
 */

static int32_t last_of(const buffer *b)
{
    return b->last + b->rest;
}

static size_t find_load(placing *p)
{
    size_t most = 0, now = 0;

    for (int32_t i = 0; i < p->n_order; i++) { /* differences, whose sums are right although they wrap */
        const buffer *b = &p->b[p->order[i].at];
        p->load[b->first] += b->bytes;
        p->load[last_of(b) + 1] -= b->bytes;
    }
    for (int32_t i = 0; i < p->end; i++) {
        now += p->load[i];
        p->load[i] = now;
        if (now <= most) continue;
        most = now;
        p->peak = i;
    }
    return most;
}

/* -- one order --------------------------------------------------------------------------------------------
 */

/* Puts `b` to the `n` that have their places, at the lowest offset behind the host's that is free while it
 * lives; they are sorted by offset. */
static void place_next(const placing *p, int32_t n, buffer *b)
{
    size_t end = p->kept;
    int32_t at;

    for (int32_t i = 0; i < n; i++) {
        const buffer *o = p->placed[i];
        if (o->first > last_of(b) || b->first > last_of(o)) continue;
        if (o->offset >= end + b->bytes) break;
        if (o->offset + o->bytes > end) end = o->offset + o->bytes;
    }
    b->offset = end;
    for (at = n; at > 0 && p->placed[at - 1]->offset > end; at--) p->placed[at] = p->placed[at - 1];
    p->placed[at] = b;
}

/* Places all in their order; what is better than before is noted. */
static void place_in_order(placing *p)
{
    size_t total = p->kept;

    for (int32_t i = 0; i < p->n_order; i++) {
        buffer *b = &p->b[p->order[i].at];
        place_next(p, i, b);
        if (b->offset + b->bytes > total) total = b->offset + b->bytes;
    }
    if (total >= p->best_bytes) return;
    p->best_bytes = total;
    for (int32_t i = 0; i < p->n; i++) p->best[i] = p->b[i].offset;
}

/* -- orders -----------------------------------------------------------------------------------------------
 */

static int by_key(const void *a, const void *b)
{
    const entry *x = a, *y = b;

    for (int k = 0; k < KEYS; k++)
        if (x->key[k] != y->key[k]) return x->key[k] > y->key[k] ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Largest first; largest and longest; from the moment when most is in use to both sides; what lives in
 * crowded times first; what lives long. */
typedef enum rule { BY_BYTES, BY_AREA, FROM_PEAK, BY_CROWD, BY_TIME, RULES } rule;

/* Positions between the peak and a time at which it lives. */
static double distance(const placing *p, const buffer *b)
{
    if (b->first > p->peak) return b->first - p->peak;
    return last_of(b) < p->peak ? p->peak - last_of(b) : 0;
}

static double crowd(const placing *p, const buffer *b)
{
    size_t most = 0;

    for (int32_t i = b->first; i <= last_of(b); i++)
        if (p->load[i] > most) most = p->load[i];
    return (double)most;
}

static double first_key(const placing *p, const buffer *b, rule r)
{
    const double length = last_of(b) - b->first + 1;

    switch (r) {
    case BY_AREA: return (double)b->bytes * length;
    case FROM_PEAK: return -distance(p, b);
    case BY_CROWD: return crowd(p, b);
    case BY_TIME: return length;
    default: return (double)b->bytes;
    }
}

static void sort_by(const placing *p, rule r)
{
    for (int32_t i = 0; i < p->n_order; i++) {
        const buffer *b = &p->b[p->order[i].at];
        const double bytes = (double)b->bytes, length = last_of(b) - b->first;
        double *key = p->order[i].key;
        key[0] = first_key(p, b, r);
        key[1] = r == BY_CROWD ? bytes : length;
        key[2] = bytes;
    }
    qsort(p->order, (size_t)p->n_order, sizeof *p->order, by_key);
}

/* The order of the last try, but first of all what ended beyond the bound, the highest first. */
static void put_forward(const placing *p, size_t bound)
{
    for (int32_t i = 0; i < p->n_order; i++) {
        const int32_t at = p->order[i].at;
        const size_t end = p->b[at].offset + p->b[at].bytes;
        p->order[i].key[0] = end > bound ? (double)end : -(double)i;
    }
    qsort(p->order, (size_t)p->n_order, sizeof *p->order, by_key);
}

static void try_orders(placing *p, size_t bound)
{
    const size_t good = bound + bound / LITTLE;

    for (int r = 0; r < RULES && p->best_bytes > good; r++) {
        sort_by(p, (rule)r);
        place_in_order(p);
        for (int i = 0; i < REPAIRS && p->best_bytes > good; i++) {
            put_forward(p, bound);
            place_in_order(p);
        }
    }
    for (int32_t i = 0; i < p->n; i++) p->b[i].offset = p->best[i];
}

/* -- all --------------------------------------------------------------------------------------------------
 */

static void begin(placing *p)
{
    for (int32_t i = 0; i < p->n; i++) {
        buffer *b = &p->b[i];
        b->offset = p->kept;
        if (b->kept)
            p->kept += b->bytes;
        else if (b->bytes > 0)
            p->order[p->n_order++] = (entry){.at = i};
    }
    for (int32_t i = 0; i < p->n; i++) /* what has no bytes lies behind the host's, too */
        if (!p->b[i].kept) p->b[i].offset = p->kept;
}

ls_status lsi_place(ls_memory_buffer *b, int32_t n, size_t *bytes, size_t *live, ls_err *err)
{
    placing p = {.b = b, .n = n, .best_bytes = SIZE_MAX};
    const size_t most = (size_t)n + 1;
    ls_status st = LS_OK;

    for (int32_t i = 0; i < n; i++)
        if (last_of(&b[i]) >= p.end) p.end = last_of(&b[i]) + 1;
    p.load = ls_alloc(LS_MEM_PLAN, sizeof *p.load * ((size_t)p.end + 1));
    p.order = ls_alloc(LS_MEM_PLAN, sizeof *p.order * most);
    p.placed = ls_alloc(LS_MEM_PLAN, sizeof *p.placed * most);
    p.best = ls_alloc(LS_MEM_PLAN, sizeof *p.best * most);
    if (p.load == NULL || p.order == NULL || p.placed == NULL || p.best == NULL) {
        st = ls_fail(err, LS_NOMEM, "memory plan: no memory");
        goto out;
    }
    begin(&p);
    *live = p.kept + find_load(&p);
    try_orders(&p, *live);
    *bytes = p.best_bytes;
out:
    ls_free(p.load);
    ls_free(p.order);
    ls_free(p.placed);
    ls_free(p.best);
    return st;
}
