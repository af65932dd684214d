/* shared.c: memory that the ranks of a machine have in common, for what all of them would hold alike. */
#include <string.h>

#include "base/alloc.h"
#include "comm/comm_internal.h"

/* In front of the memory itself. */
typedef struct head {
    alignas(LSI_LINE) _Atomic int32_t closed; /* ranks that have destroyed theirs */
} head;

struct ls_shared {
    ls_comm *c;
    size_t offset, bytes; /* the window */
    head *window;
};

static ls_status map_window(ls_shared **out, ls_comm *c, size_t bytes, ls_err *err)
{
    ls_shared *s = ls_alloc(LS_MEM_COMM, sizeof *s);
    void *at;

    *out = s;
    if (s == NULL) return ls_fail(err, LS_NOMEM, "no memory for what ranks share");
    s->c = c;
    s->bytes = sizeof(head) + bytes;
    ls_status st = lsi_window_map(c, s->bytes, 1, 0, &s->offset, &at, err);
    s->window = at;
    return st;
}

ls_status ls_shared_create(ls_shared **out, ls_comm *c, size_t bytes, ls_err *err)
{
    const ls_status st = lsi_all_well(c, map_window(out, c, bytes, err), "sharing memory", err);

    if (st == LS_OK) return LS_OK;
    if (*out != NULL) lsi_heap_unmap(c->heap, (*out)->window); /* the others do not count on this one */
    ls_free(*out);
    *out = NULL;
    return st;
}

void ls_shared_destroy(ls_shared *s)
{
    if (s == NULL) return;
    const bool last = atomic_fetch_add(&s->window->closed, 1) + 1 == s->c->local_size;
    lsi_heap_unmap(s->c->heap, s->window);
    if (last) lsi_heap_discard(s->c->heap, s->offset, s->bytes);
    ls_free(s);
}

void *ls_shared_data(const ls_shared *s)
{
    return s->window + 1;
}
