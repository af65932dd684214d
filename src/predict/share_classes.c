/* share_classes.c: which flows must be told apart, and on which links they meet.
 *
 * Most links of a way never hold anything up: those that only flows of one pair of machines use are a limit
 * of theirs, and those that have at least the rate of all their flows together are none.  What is left of a
 * way is short, and often the same for many flows: these become one class.  On a fat tree with machines in
 * order a thousand ranks are a few dozen classes. */
#include <stdlib.h>

#include "predict/link_table.h"
#include "predict/share_internal.h"

/* A flow and its way. */
typedef struct way {
    double latency_s, bytes, cap, count;
    int64_t first; /* in `refs` */
    int32_t n_links;
} way;

typedef struct gathered_link {
    int64_t number;   /* in the network */
    double rate, sum; /* of what its flows could have together */
    int64_t flows;    /* entries that use it */
    int32_t kept;     /* its number among those that are shared; -1: none */
} gathered_link;

typedef struct gathered {
    ls_arena *arena;
    way *ways;
    int64_t n_ways, n_refs;
    int32_t *refs; /* places of links in `links`; in the end, numbers among those that are shared */
    lsi_link_table table;
    gathered_link *links;
    int64_t own_links; /* numbers below are machines' own */
    lsi_merging merging;
} gathered;

static void *room(ls_arena *arena, int64_t n, size_t item_bytes)
{
    return ls_arena_alloc(arena, ((size_t)n + 1) * item_bytes);
}

/* -- links ------------------------------------------------------------------------------------------------
 */

/* The links that are used at all. */
static bool make_gathered_links(gathered *g, const ls_network *n, int32_t nodes)
{
    g->links = room(g->arena, g->table.n, sizeof *g->links);
    for (int32_t i = 0; g->links != NULL && i < g->table.n; i++)
        g->links[i] = (gathered_link){.number = g->table.links[i],
                                      .rate = ls_network_link_rate(n, nodes, g->table.links[i]),
                                      .kept = -1};
    return g->links != NULL;
}

/* A machine's own link, where it has one flow at a time. */
static bool is_own(const gathered *g, const gathered_link *l)
{
    return g->merging == LSI_ONE_EACH && l->number < g->own_links;
}

/* What each flow could have alone, then which links can hold up several. */
static void find_shared(gathered *g)
{
    int32_t kept = 0;

    for (int64_t i = 0; i < g->n_refs; i++) g->links[g->refs[i]].flows++;
    for (int64_t w = 0; w < g->n_ways; w++) {
        way *y = &g->ways[w];
        for (int32_t k = 0; k < y->n_links; k++) {
            const gathered_link *l = &g->links[g->refs[y->first + k]];
            const double alone = l->flows == 1 ? l->rate / y->count : l->rate;
            if (alone < y->cap) y->cap = alone;
        }
    }
    for (int64_t w = 0; w < g->n_ways; w++)
        for (int32_t k = 0; k < g->ways[w].n_links; k++)
            g->links[g->refs[g->ways[w].first + k]].sum += g->ways[w].cap * g->ways[w].count;
    for (int64_t i = 0; i < g->table.n; i++)
        if (g->links[i].flows > 1 && !is_own(g, &g->links[i]) &&
            g->links[i].sum > g->links[i].rate * (1 + 1e-12))
            g->links[i].kept = kept++;
}

/* -- ways -------------------------------------------------------------------------------------------------
 */

static bool find_ways(gathered *g, const ls_network *n, int32_t nodes, const ls_flow *flows, int64_t n_flows)
{
    int64_t links[LS_ROUTE_MAX], capacity = 0;
    int32_t *more;

    g->ways = room(g->arena, n_flows, sizeof *g->ways);
    if (g->ways == NULL) return false;
    for (int64_t i = 0; i < n_flows; i++) {
        way *w = &g->ways[g->n_ways];
        if (flows[i].from == flows[i].to && g->merging == LSI_MERGED) continue;
        *w = (way){.bytes = flows[i].bytes,
                   .cap = n->node.bytes_s,
                   .count = flows[i].count > 0 ? flows[i].count : 1,
                   .first = g->n_refs};
        w->n_links = ls_network_route(n, nodes, flows[i].from, flows[i].to, links, &w->latency_s);
        if (g->n_refs + w->n_links > capacity) {
            capacity = 2 * capacity + 1024;
            more = ls_realloc(LS_MEM_CLI, g->refs, (size_t)capacity * sizeof *more);
            if (more == NULL) return false;
            g->refs = more;
        }
        for (int32_t k = 0; k < w->n_links; k++) {
            const int32_t place = lsi_link_table_place(&g->table, links[k]);
            if (place < 0) return false;
            g->refs[g->n_refs++] = place;
        }
        g->n_ways++;
    }
    return true;
}

/* Of each way the links that are shared, in ascending order: there are few. */
static void shorten(gathered *g)
{
    for (int64_t w = 0; w < g->n_ways; w++) {
        int32_t *refs = g->refs + g->ways[w].first, n = 0;
        for (int32_t k = 0; k < g->ways[w].n_links; k++) {
            const int32_t kept = g->links[refs[k]].kept;
            int32_t at = n;
            if (kept < 0) continue;
            for (; at > 0 && refs[at - 1] > kept; at--) refs[at] = refs[at - 1];
            refs[at] = kept;
            n++;
        }
        g->ways[w].n_links = n;
    }
}

/* A way with its links at hand, to be sorted. */
typedef struct sorted_way {
    const way *w;
    const int32_t *links;
} sorted_way;

static int by_kind(const void *a, const void *b)
{
    const sorted_way *x = a, *y = b;

    if (x->w->n_links != y->w->n_links) return x->w->n_links < y->w->n_links ? -1 : 1;
    for (int32_t k = 0; k < x->w->n_links; k++)
        if (x->links[k] != y->links[k]) return x->links[k] < y->links[k] ? -1 : 1;
    if (x->w->bytes != y->w->bytes) return x->w->bytes < y->w->bytes ? -1 : 1;
    if (x->w->cap != y->w->cap) return x->w->cap < y->w->cap ? -1 : 1;
    if (x->w->latency_s != y->w->latency_s) return x->w->latency_s < y->w->latency_s ? -1 : 1;
    return 0;
}

static bool make_classes(lsi_shares *s, const gathered *g)
{
    sorted_way *sorted = ls_alloc(LS_MEM_CLI, ((size_t)g->n_ways + 1) * sizeof *sorted);
    int32_t *links;

    s->classes = room(s->arena, g->n_ways, sizeof *s->classes);
    s->tasks = room(s->arena, g->n_ways, sizeof *s->tasks);
    links = room(s->arena, g->n_refs, sizeof *links);
    if (sorted == NULL || s->classes == NULL || s->tasks == NULL || links == NULL) {
        ls_free(sorted);
        return false;
    }
    for (int64_t w = 0; w < g->n_ways; w++) sorted[w] = (sorted_way){&g->ways[w], g->refs + g->ways[w].first};
    if (g->merging == LSI_MERGED) qsort(sorted, (size_t)g->n_ways, sizeof *sorted, by_kind);
    for (int64_t w = 0; w < g->n_ways; w++) {
        const way *y = sorted[w].w;
        if (g->merging == LSI_MERGED && w > 0 && by_kind(&sorted[w - 1], &sorted[w]) == 0) {
            s->classes[s->n_classes - 1].count += y->count;
            continue;
        }
        s->tasks[s->n_classes] = (lsi_task){y->latency_s, y->bytes};
        s->classes[s->n_classes++] =
            (lsi_class){.cap = y->cap, .count = y->count, .links = links + s->n_refs, .n_links = y->n_links};
        for (int32_t k = 0; k < y->n_links; k++) links[s->n_refs++] = sorted[w].links[k];
    }
    ls_free(sorted);
    return true;
}

static bool make_links(lsi_shares *s, const gathered *g)
{
    for (int64_t i = 0; i < g->table.n; i++) s->n_links += g->links[i].kept >= 0;
    s->capacity = room(s->arena, s->n_links, sizeof *s->capacity);
    for (int64_t i = 0; s->capacity != NULL && i < g->table.n; i++)
        if (g->links[i].kept >= 0) s->capacity[g->links[i].kept] = g->links[i].rate;
    return s->capacity != NULL;
}

ls_status lsi_shares_make(lsi_shares *s, const ls_network *n, int32_t nodes, const ls_flow *flows,
                          int64_t n_flows, lsi_merging merging, ls_err *err)
{
    const int32_t machines = ls_network_size(n) > 0 ? ls_network_size(n) : nodes;
    gathered g = {.merging = merging, .own_links = 2 * (int64_t)machines};
    bool enough;
    ls_status st;

    *s = (lsi_shares){0};
    st = ls_arena_create(&s->arena, LS_MEM_CLI, err);
    if (st != LS_OK) return st;
    g.arena = s->arena;
    enough = find_ways(&g, n, nodes, flows, n_flows) && make_gathered_links(&g, n, nodes);
    if (enough) {
        find_shared(&g);
        shorten(&g);
        enough = make_classes(s, &g) && make_links(s, &g);
    }
    ls_free(g.refs);
    lsi_link_table_release(&g.table);
    return enough ? LS_OK : ls_fail(err, LS_NOMEM, "no memory for %lld flows", (long long)n_flows);
}

void lsi_shares_release(lsi_shares *s)
{
    ls_arena_destroy(s->arena);
    *s = (lsi_shares){0};
}
