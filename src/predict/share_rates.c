/* share_rates.c: rates of flows that share links max-min fairly.
 *
 * By progressive filling: of all links the one that leaves least to each of its flows decides theirs; what
 * they take elsewhere is gone, and the next link decides.  Who is held up by a link of its own before (its
 * cap) takes that. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predict/share_internal.h"

/* A link and what it leaves to each of its flows, as it was when it was put into the heap: it only grows. */
typedef struct lsi_candidate {
    double share;
    int32_t link;
} lsi_candidate;

/* -- a heap of links, the least share first ---------------------------------------------------------------
 */

static void sift_down(lsi_rates *w, int32_t i)
{
    const lsi_candidate c = w->heap[i];

    for (int32_t child; (child = 2 * i + 1) < w->n_heap; i = child) {
        if (child + 1 < w->n_heap && w->heap[child + 1].share < w->heap[child].share) child++;
        if (w->heap[child].share >= c.share) break;
        w->heap[i] = w->heap[child];
    }
    w->heap[i] = c;
}

static double share_of(const lsi_rates *w, int32_t link)
{
    const double left = w->left[link] > 0 ? w->left[link] : 0;

    return w->weight[link] > 0 ? left / w->weight[link] : INFINITY;
}

/* The link that decides next; -1: none is left.  Shares at the top are brought up to date until one was. */
static int32_t next_link(lsi_rates *w)
{
    while (w->n_heap > 0) {
        const int32_t link = w->heap[0].link;
        const double share = share_of(w, link);
        if (isinf(share)) {
            w->heap[0] = w->heap[--w->n_heap];
            if (w->n_heap > 0) sift_down(w, 0);
        } else if (share > w->heap[0].share) {
            w->heap[0].share = share;
            sift_down(w, 0);
            if (w->heap[0].link == link) return link;
        } else {
            return link;
        }
    }
    return -1;
}

static void fill_heap(lsi_rates *w)
{
    w->n_heap = 0;
    for (int32_t i = 0; i < w->n_touched; i++)
        w->heap[w->n_heap++] = (lsi_candidate){share_of(w, w->touched[i]), w->touched[i]};
    for (int32_t i = w->n_heap / 2; i-- > 0;) sift_down(w, i);
}

/* -- who is where -----------------------------------------------------------------------------------------
 */

/* From links to the active classes on them; weight and n of links nobody uses stay 0 between calls. */
static void find_links(lsi_rates *w, const lsi_class *classes, const int32_t *active, int32_t n_active)
{
    int32_t at = 0;

    w->n_touched = 0;
    for (int32_t a = 0; a < n_active; a++) {
        const lsi_class *c = &classes[active[a]];
        for (int32_t k = 0; k < c->n_links; k++) {
            const int32_t l = c->links[k];
            if (w->n[l]++ == 0) w->touched[w->n_touched++] = l;
            w->weight[l] += c->count;
        }
    }
    for (int32_t i = 0; i < w->n_touched; i++) {
        const int32_t l = w->touched[i];
        w->left[l] = w->capacity[l];
        w->first[l] = at;
        at += w->n[l];
        w->n[l] = 0;
    }
    for (int32_t a = 0; a < n_active; a++) {
        const lsi_class *c = &classes[active[a]];
        for (int32_t k = 0; k < c->n_links; k++) w->on[w->first[c->links[k]] + w->n[c->links[k]]++] = a;
    }
}

/* Places in `active` in the order of caps. */
static void order_caps(lsi_rates *w, const lsi_class *classes, const int32_t *active, int32_t n_active)
{
    memset(w->rank_first, 0, ((size_t)w->n_ranks + 1) * sizeof *w->rank_first);
    for (int32_t a = 0; a < n_active; a++) w->rank_first[classes[active[a]].cap_rank + 1]++;
    for (int32_t r = 0; r < w->n_ranks; r++) w->rank_first[r + 1] += w->rank_first[r];
    for (int32_t a = 0; a < n_active; a++) w->order[w->rank_first[classes[active[a]].cap_rank]++] = a;
}

/* -- rates ------------------------------------------------------------------------------------------------
 */

static void fix(lsi_rates *w, lsi_class *c, int32_t place, double rate)
{
    c->rate = rate;
    w->fixed[place] = true;
    for (int32_t k = 0; k < c->n_links; k++) {
        w->left[c->links[k]] -= rate * c->count;
        w->weight[c->links[k]] -= c->count;
    }
    w->work.visits += 1 + c->n_links;
}

void lsi_rates_find(lsi_rates *w, lsi_class *classes, const int32_t *active, int32_t n_active)
{
    int32_t at = 0;

    find_links(w, classes, active, n_active);
    order_caps(w, classes, active, n_active);
    memset(w->fixed, 0, (size_t)n_active * sizeof *w->fixed);
    fill_heap(w);
    w->work.solves++;
    for (;;) {
        const int32_t link = next_link(w);
        const double share = link >= 0 ? share_of(w, link) : INFINITY;
        while (at < n_active && w->fixed[w->order[at]]) at++;
        if (at < n_active && classes[active[w->order[at]]].cap <= share) {
            lsi_class *c = &classes[active[w->order[at]]];
            fix(w, c, w->order[at], c->cap);
            continue;
        }
        if (link < 0) break;
        for (int32_t k = 0; k < w->n[link]; k++) {
            const int32_t place = w->on[w->first[link] + k];
            if (!w->fixed[place]) fix(w, &classes[active[place]], place, share);
        }
        w->weight[link] = 0; /* what rounding left of it */
    }
    for (int32_t i = 0; i < w->n_touched; i++) w->weight[w->touched[i]] = w->n[w->touched[i]] = 0;
}

/* -- memory -----------------------------------------------------------------------------------------------
 */

bool lsi_rates_make(lsi_rates *w, ls_arena *arena, int32_t n_links, int32_t most_active, int64_t most_refs)
{
    const size_t links = (size_t)n_links + 1, classes = (size_t)most_active + 1;

    w->left = ls_arena_alloc(arena, links * sizeof *w->left);
    w->weight = ls_arena_alloc(arena, links * sizeof *w->weight);
    w->first = ls_arena_alloc(arena, links * sizeof *w->first);
    w->n = ls_arena_alloc(arena, links * sizeof *w->n);
    w->touched = ls_arena_alloc(arena, links * sizeof *w->touched);
    w->heap = ls_arena_alloc(arena, links * sizeof *w->heap);
    w->on = ls_arena_alloc(arena, ((size_t)most_refs + 1) * sizeof *w->on);
    w->order = ls_arena_alloc(arena, classes * sizeof *w->order);
    w->fixed = ls_arena_alloc(arena, classes * sizeof *w->fixed);
    return w->left != NULL && w->weight != NULL && w->first != NULL && w->n != NULL && w->touched != NULL &&
           w->heap != NULL && w->on != NULL && w->order != NULL && w->fixed != NULL;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

bool lsi_rates_rank(lsi_rates *w, ls_arena *arena, lsi_class *classes, int64_t n)
{
    double *caps = ls_alloc(LS_MEM_CLI, ((size_t)n + 1) * sizeof *caps);
    int32_t different = 0;

    if (caps == NULL) return false;
    for (int64_t c = 0; c < n; c++) caps[c] = classes[c].cap;
    qsort(caps, (size_t)n, sizeof *caps, ascending);
    for (int64_t c = 0; c < n; c++)
        if (c == 0 || caps[c] != caps[different - 1]) caps[different++] = caps[c];
    for (int64_t c = 0; c < n; c++) {
        const double *at = bsearch(&classes[c].cap, caps, (size_t)different, sizeof *caps, ascending);
        classes[c].cap_rank = (int32_t)(at - caps);
    }
    ls_free(caps);
    w->n_ranks = different;
    w->rank_first = ls_arena_alloc(arena, ((size_t)different + 2) * sizeof *w->rank_first);
    return w->rank_first != NULL;
}
