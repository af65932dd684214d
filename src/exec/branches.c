/* branches.c: see branches.h. */
#include "exec/branches.h"

#include <string.h>

#include "base/grow.h"

/* Bytes that a node reads or writes. */
typedef struct stretch {
    uintptr_t from, to;
} stretch;

typedef struct worker {
    const ls_plan *p;
    stretch *all; /* of position i: reads from first[i] on, then writes from writes[i] on */
    int32_t *first, *writes;
    uint64_t *after; /* per position: a bit for each that it comes after */
    size_t words;
    int32_t *place; /* per node: its position; -1: none */
} worker;

static stretch stretch_of(const ls_graph *g, int32_t value, const void *at)
{
    const ls_vinfo *v = g->values[value];

    return (stretch){(uintptr_t)at, (uintptr_t)at + ls_layout_bytes(v->layout, v->dtype, v->shape)};
}

static void list_stretches(const worker *w)
{
    int32_t n = 0;

    for (int32_t i = 0; i < w->p->schedule.n; i++) {
        const lsi_step *s = &w->p->steps[i];
        const uintptr_t scratch = (uintptr_t)s->call.scratch;
        w->first[i] = n;
        for (int k = 0; k < s->node->n_in; k++)
            w->all[n++] = stretch_of(w->p->graph, s->node->in[k], s->call.in[k]);
        w->writes[i] = n;
        for (int k = 0; k < s->node->n_out; k++)
            w->all[n++] = stretch_of(w->p->graph, s->node->out[k], s->call.out[k]);
        w->all[n++] = (stretch){scratch, scratch + s->kernel.scratch_bytes};
    }
    w->first[w->p->schedule.n] = n;
}

static bool touch(const worker *w, int32_t a, int32_t a_end, int32_t b, int32_t b_end)
{
    for (int32_t i = a; i < a_end; i++)
        for (int32_t k = b; k < b_end; k++)
            if (w->all[i].from < w->all[k].to && w->all[k].from < w->all[i].to) return true;
    return false;
}

/* Whether one of the two writes what the other reads or writes. */
static bool conflict(const worker *w, int32_t i, int32_t k)
{
    return touch(w, w->writes[i], w->first[i + 1], w->first[k], w->first[k + 1]) ||
           touch(w, w->first[i], w->writes[i], w->writes[k], w->first[k + 1]);
}

static bool is_after(const worker *w, int32_t i, int32_t k)
{
    return (w->after[(size_t)i * w->words + (size_t)k / 64] >> (k % 64) & 1) != 0;
}

static void come_after(const worker *w, int32_t i, int32_t k)
{
    uint64_t *mine = w->after + (size_t)i * w->words;
    const uint64_t *its = w->after + (size_t)k * w->words;

    for (size_t j = 0; j < w->words; j++) mine[j] |= its[j];
    mine[k / 64] |= (uint64_t)1 << (k % 64);
}

/* Edges of the graph say more than memory does where an order is wanted for its own sake. */
static bool *mark_edges(const worker *w)
{
    const ls_graph *g = w->p->graph;
    const size_t n = (size_t)w->p->schedule.n;
    bool *edge = ls_alloc(LS_MEM_PLAN, n * n + 1);

    if (edge == NULL) return NULL;
    for (int32_t i = 0; i < g->n_nodes; i++) w->place[i] = -1;
    for (int32_t i = 0; i < w->p->schedule.n; i++) w->place[w->p->schedule.order[i]] = i;
    for (int32_t i = 0; i < g->n_edges; i++) {
        const int32_t from = w->place[g->edges[i].from], to = w->place[g->edges[i].to];
        if (from >= 0 && to >= 0) edge[(size_t)to * n + (size_t)from] = true;
    }
    return edge;
}

/* From the last before it to the first: what is found to be before another that was found follows from it. */
static ls_status list_before(const worker *w, const bool *edge, lsi_branches *out, ls_err *err)
{
    const size_t n = (size_t)w->p->schedule.n;
    size_t count = 0, room = 0;

    for (int32_t i = 0; i < w->p->schedule.n; i++) {
        out->first[i] = (int32_t)count;
        for (int32_t k = i - 1; k >= 0; k--) {
            if (is_after(w, i, k) || (!edge[(size_t)i * n + (size_t)k] && !conflict(w, i, k))) continue;
            if (!LS_GROW(LS_MEM_PLAN, out->before, count + 1, room))
                return ls_fail(err, LS_NOMEM, "plan: no memory");
            out->before[count++] = k;
            come_after(w, i, k);
        }
    }
    out->first[n] = (int32_t)count;
    return LS_OK;
}

static size_t count_stretches(const ls_plan *p)
{
    size_t n = 1;

    for (int32_t i = 0; i < p->schedule.n; i++)
        n += (size_t)p->steps[i].node->n_in + (size_t)p->steps[i].node->n_out + 1;
    return n;
}

ls_status lsi_branches_make(const ls_plan *p, lsi_branches *out, ls_err *err)
{
    const size_t n = (size_t)p->schedule.n;
    worker w = {.p = p, .words = n / 64 + 1};
    bool *edge = NULL;
    ls_status st = LS_OK;

    *out = (lsi_branches){0};
    out->first = ls_alloc(LS_MEM_PLAN, sizeof *out->first * (n + 1));
    w.all = ls_alloc(LS_MEM_PLAN, sizeof *w.all * count_stretches(p));
    w.first = ls_alloc(LS_MEM_PLAN, sizeof *w.first * (n + 1));
    w.writes = ls_alloc(LS_MEM_PLAN, sizeof *w.writes * (n + 1));
    w.after = ls_alloc(LS_MEM_PLAN, sizeof *w.after * w.words * (n + 1));
    w.place = ls_alloc(LS_MEM_PLAN, sizeof *w.place * ((size_t)p->graph->n_nodes + 1));
    if (out->first == NULL || w.all == NULL || w.first == NULL || w.writes == NULL || w.after == NULL ||
        w.place == NULL || (edge = mark_edges(&w)) == NULL) {
        st = ls_fail(err, LS_NOMEM, "plan: no memory");
        goto out;
    }
    list_stretches(&w);
    LS_TRY(list_before(&w, edge, out, err));
out:
    ls_free(w.all);
    ls_free(w.first);
    ls_free(w.writes);
    ls_free(w.after);
    ls_free(w.place);
    ls_free(edge);
    return st;
}

void lsi_branches_release(lsi_branches *b)
{
    ls_free(b->first);
    ls_free(b->before);
    *b = (lsi_branches){0};
}
