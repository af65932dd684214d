/* share_classes.c: which flows must be told apart, and on which links they meet.
 *
 * Most links of a way never hold anything up: those that only flows of one pair of machines use are a limit
 * of theirs, and those that have at least the rate of all their flows together are none.  What is left of a
 * way is short, and often the same for many flows: these become one class.  On a fat tree with machines in
 * order a thousand ranks are a few dozen classes. */
#include <stdlib.h>
#include <string.h>

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
    int64_t *refs; /* numbers of links at first, then places in `links` */
    gathered_link *links;
    int64_t n_links;
} gathered;

static void *room(ls_arena *arena, int64_t n, size_t item_bytes)
{
    return ls_arena_alloc(arena, ((size_t)n + 1) * item_bytes);
}

static int64_t real_flows(const ls_flow *flows, int64_t n_flows)
{
    int64_t n = 0;

    for (int64_t i = 0; i < n_flows; i++) n += flows[i].from != flows[i].to;
    return n;
}

/* -- links ------------------------------------------------------------------------------------------------
 */

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static int64_t place_of(const gathered *g, int64_t number)
{
    int64_t lo = 0, hi = g->n_links;

    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        if (g->links[mid].number < number)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The links that are used at all, in the order of their numbers. */
static bool find_links(gathered *g, const ls_network *n, int32_t nodes)
{
    int64_t *sorted = ls_alloc(LS_MEM_CLI, ((size_t)g->n_refs + 1) * sizeof *sorted);

    if (sorted == NULL) return false;
    memcpy(sorted, g->refs, (size_t)g->n_refs * sizeof *sorted);
    qsort(sorted, (size_t)g->n_refs, sizeof *sorted, by_number);
    for (int64_t i = 0; i < g->n_refs; i++) g->n_links += i == 0 || sorted[i] != sorted[i - 1];
    g->links = room(g->arena, g->n_links, sizeof *g->links);
    for (int64_t i = 0, at = 0; g->links != NULL && i < g->n_refs; i++)
        if (i == 0 || sorted[i] != sorted[i - 1])
            g->links[at++] = (gathered_link){
                .number = sorted[i], .rate = ls_network_link_rate(n, nodes, sorted[i]), .kept = -1};
    ls_free(sorted);
    if (g->links == NULL) return false;
    for (int64_t i = 0; i < g->n_refs; i++) g->refs[i] = place_of(g, g->refs[i]);
    return true;
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
    for (int64_t i = 0; i < g->n_links; i++)
        if (g->links[i].flows > 1 && g->links[i].sum > g->links[i].rate * (1 + 1e-12))
            g->links[i].kept = kept++;
}

/* -- ways -------------------------------------------------------------------------------------------------
 */

static bool find_ways(gathered *g, const ls_network *n, int32_t nodes, const ls_flow *flows, int64_t n_flows)
{
    int64_t links[LS_ROUTE_MAX], capacity = 0, *more;

    g->ways = room(g->arena, real_flows(flows, n_flows), sizeof *g->ways);
    if (g->ways == NULL) return false;
    for (int64_t i = 0; i < n_flows; i++) {
        way *w = &g->ways[g->n_ways];
        if (flows[i].from == flows[i].to) continue;
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
        memcpy(g->refs + g->n_refs, links, (size_t)w->n_links * sizeof *links);
        g->n_refs += w->n_links;
        g->n_ways++;
    }
    return true;
}

/* Of each way the links that are shared, in ascending order. */
static void shorten(gathered *g)
{
    for (int64_t w = 0; w < g->n_ways; w++) {
        way *y = &g->ways[w];
        int32_t n = 0;
        for (int32_t k = 0; k < y->n_links; k++) {
            const int64_t kept = g->links[g->refs[y->first + k]].kept;
            if (kept >= 0) g->refs[y->first + n++] = kept;
        }
        y->n_links = n;
        qsort(g->refs + y->first, (size_t)n, sizeof *g->refs, by_number);
    }
}

/* A way with its links at hand, to be sorted. */
typedef struct sorted_way {
    const way *w;
    const int64_t *links;
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
    int64_t at = 0;

    s->classes = room(s->arena, g->n_ways, sizeof *s->classes);
    s->of_class = room(s->arena, g->n_refs, sizeof *s->of_class);
    if (sorted == NULL || s->classes == NULL || s->of_class == NULL) {
        ls_free(sorted);
        return false;
    }
    for (int64_t w = 0; w < g->n_ways; w++) sorted[w] = (sorted_way){&g->ways[w], g->refs + g->ways[w].first};
    qsort(sorted, (size_t)g->n_ways, sizeof *sorted, by_kind);
    for (int64_t w = 0; w < g->n_ways; w++) {
        const way *y = sorted[w].w;
        if (w > 0 && by_kind(&sorted[w - 1], &sorted[w]) == 0) {
            s->classes[s->n_classes - 1].count += y->count;
            continue;
        }
        s->classes[s->n_classes++] = (lsi_class){.latency_s = y->latency_s,
                                                 .bytes = y->bytes,
                                                 .cap = y->cap,
                                                 .count = y->count,
                                                 .first = at,
                                                 .n_links = y->n_links};
        for (int32_t k = 0; k < y->n_links; k++) s->of_class[at++] = (int32_t)sorted[w].links[k];
    }
    ls_free(sorted);
    return true;
}

/* From each link to the classes on it. */
static bool make_links(lsi_shares *s, const gathered *g)
{
    int64_t at = 0;

    for (int64_t i = 0; i < g->n_links; i++) s->n_links += g->links[i].kept >= 0;
    s->links = room(s->arena, s->n_links, sizeof *s->links);
    s->of_link = room(s->arena, g->n_refs, sizeof *s->of_link);
    if (s->links == NULL || s->of_link == NULL) return false;
    for (int64_t i = 0; i < g->n_links; i++)
        if (g->links[i].kept >= 0) s->links[g->links[i].kept].rate = g->links[i].rate;
    for (int32_t c = 0; c < s->n_classes; c++)
        for (int32_t k = 0; k < s->classes[c].n_links; k++)
            s->links[s->of_class[s->classes[c].first + k]].n_classes++;
    for (int32_t l = 0; l < s->n_links; l++) {
        s->links[l].first = at;
        at += s->links[l].n_classes;
        s->links[l].n_classes = 0;
    }
    for (int32_t c = 0; c < s->n_classes; c++)
        for (int32_t k = 0; k < s->classes[c].n_links; k++) {
            lsi_shared_link *l = &s->links[s->of_class[s->classes[c].first + k]];
            s->of_link[l->first + l->n_classes++] = c;
        }
    return true;
}

ls_status lsi_shares_make(lsi_shares *s, const ls_network *n, int32_t nodes, const ls_flow *flows,
                          int64_t n_flows, ls_err *err)
{
    gathered g = {0};
    bool enough;
    ls_status st;

    *s = (lsi_shares){0};
    st = ls_arena_create(&s->arena, LS_MEM_CLI, err);
    if (st != LS_OK) return st;
    g.arena = s->arena;
    enough = find_ways(&g, n, nodes, flows, n_flows) && find_links(&g, n, nodes);
    if (enough) {
        find_shared(&g);
        shorten(&g);
        enough = make_classes(s, &g) && make_links(s, &g);
    }
    ls_free(g.refs);
    return enough ? LS_OK : ls_fail(err, LS_NOMEM, "no memory for %lld flows", (long long)n_flows);
}

void lsi_shares_release(lsi_shares *s)
{
    ls_arena_destroy(s->arena);
    *s = (lsi_shares){0};
}
