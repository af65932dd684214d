/* workspace.c: one stretch of memory for plans that run in turn. */
#include "exec/workspace.h"

#include "base/grow.h"
#include "exec/plan_internal.h"

static size_t needed(const ls_plan *p)
{
    return p->memory.arena_bytes - p->memory.kept_bytes;
}

/* What the device was told to do is over before its memory goes. */
static ls_status finish(const lsi_workspace *w, ls_device *dev, ls_err *err)
{
    const ls_queues *q = dev->backend->queues;

    if (q == NULL || w->n == 0 || dev->unbacked) return LS_OK;
    return q->join(dev, dev->end[LS_QUEUE_COPY], err);
}

/* Plans that have no memory any more run no more. */
static void give_up(const lsi_workspace *w)
{
    for (int i = 0; i < w->n; i++)
        ls_stream_fail(&(ls_stream){&w->plans[i]->failure, LSI_BETWEEN_RUNS}, LS_NOMEM,
                       "the memory of its steps could not be had again");
}

/* The old memory goes before the new one comes: both at once may be more than there is.  Where the new one
 * cannot be had, plans go on in as much as they had. */
static ls_status grow(lsi_workspace *w, ls_device *dev, size_t bytes, ls_err *err)
{
    const size_t before = w->memory.bytes;
    ls_status st = finish(w, dev, err);

    if (st != LS_OK) return st;
    ls_buffer_free(&w->memory);
    st = ls_buffer_alloc(&w->memory, dev, bytes, err);
    if (st != LS_OK && before > 0 && ls_buffer_alloc(&w->memory, dev, before, &(ls_err){0}) != LS_OK)
        give_up(w);
    for (int i = 0; i < w->n; i++) lsi_plan_resolve(w->plans[i]);
    return st;
}

ls_status lsi_workspace_join(lsi_workspace *w, ls_plan *p, ls_err *err)
{
    ls_status st = LS_OK;

    if (!LS_GROW(LS_MEM_PLAN, w->plans, w->n + 1, w->cap)) return ls_fail(err, LS_NOMEM, "plan: no memory");
    if (needed(p) > w->memory.bytes) {
        LS_TRY(grow(w, p->dev, needed(p), err));
        for (int c = 0; c < LS_CAT_N; c++)
            w->by_category[c] = p->memory.by_category[c] - p->memory.kept_by_category[c];
    }
    w->plans[w->n++] = p;
out:
    return st;
}

void lsi_workspace_leave(lsi_workspace *w, const ls_plan *p)
{
    int at = 0;

    while (at < w->n && w->plans[at] != p) at++;
    LS_BUG_IF(at == w->n);
    w->plans[at] = w->plans[--w->n];
    if (w->n == 0) lsi_workspace_release(w);
}

void lsi_workspace_release(lsi_workspace *w)
{
    ls_buffer_free(&w->memory);
    ls_free(w->plans);
    *w = (lsi_workspace){0};
}
