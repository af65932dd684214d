/* comm.c: opening and closing communicators of one machine. */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "comm/comm_internal.h"

#define STALL_SECONDS 10.0
/* Windows begin at multiples of the largest page that Linux is built with. */
#define WINDOW_GRAIN ((size_t)64 * 1024)

ls_status lsi_comm_make_take(ls_comm **out, const char *kind, ls_comm_heap *heap, int local, ls_err *err)
{
    ls_comm *c = ls_alloc(LS_MEM_COMM, sizeof *c);

    if (c == NULL) {
        ls_comm_heap_destroy(heap);
        return ls_fail(err, LS_NOMEM, "no memory for a communicator");
    }
    c->kind = kind;
    c->rank = c->local_rank = local;
    c->size = c->local_size = heap->size;
    c->hosts = 1;
    c->heap = heap;
    c->cursor = (heap->region_bytes + WINDOW_GRAIN - 1) / WINDOW_GRAIN * WINDOW_GRAIN;
    c->stall_seconds = STALL_SECONDS;
    atomic_store(&heap->region->slot[local].pid, (int32_t)getpid());
    *out = c;
    return LS_OK;
}

ls_status lsi_window_map(ls_comm *c, size_t bytes, int n, int i, size_t *offset, void **out, ls_err *err)
{
    const size_t stride = (bytes + WINDOW_GRAIN - 1) / WINDOW_GRAIN * WINDOW_GRAIN;

    *offset = c->cursor + (size_t)i * stride;
    c->cursor += (size_t)n * stride;
    return lsi_heap_map(c->heap, *offset, bytes, out, err);
}

ls_status ls_comm_open_threads(ls_comm *out[], int n, ls_err *err)
{
    ls_status st = LS_OK;
    ls_comm_heap *heap;

    for (int i = 0; i < n; i++) out[i] = NULL;
    LS_TRY(ls_comm_heap_create(&heap, n, err));
    for (int i = 0; i < n && st == LS_OK; i++) {
        lsi_heap_keep(heap);
        st = lsi_comm_make_take(&out[i], "threads", heap, i, err);
    }
    ls_comm_heap_destroy(heap); /* the ranks keep it */
    for (int i = 0; i < n && st != LS_OK; i++) {
        ls_comm_close(out[i]);
        out[i] = NULL;
    }
out:
    return st;
}

ls_status ls_comm_open_self(ls_comm **out, ls_err *err)
{
    ls_status st = ls_comm_open_threads(out, 1, err);

    if (st == LS_OK) (*out)->kind = "self";
    return st;
}

/* Where the system cannot, the launcher alone tells of lost ranks. */
ls_status lsi_comm_watch_peers(ls_comm *c, ls_err *err)
{
    c->pidfd = ls_alloc(LS_MEM_COMM, (size_t)c->local_size * sizeof *c->pidfd);
    if (c->pidfd == NULL) return ls_fail(err, LS_NOMEM, "no memory for a communicator");
    for (int i = 0; i < c->local_size; i++) {
        pid_t pid = atomic_load(&c->heap->region->slot[i].pid);
        c->pidfd[i] = i == c->local_rank ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
    }
    return LS_OK;
}

ls_status ls_comm_open_local(ls_comm **out, int heap_fd, int rank, int size, ls_err *err)
{
    ls_status st = LS_OK;
    ls_comm_heap *heap;
    ls_comm *c = NULL;

    *out = NULL;
    if (rank < 0 || rank >= size) return ls_fail(err, LS_INVALID, "rank %d of %d", rank, size);
    LS_TRY(lsi_heap_attach(&heap, heap_fd, size, err));
    LS_TRY(lsi_comm_make_take(&c, "local", heap, rank, err));
    LS_TRY(ls_comm_barrier(c, "start-up", err));
    LS_TRY(lsi_all_well(c, lsi_comm_watch_peers(c, err), "start-up", err));
    *out = c;
    c = NULL;
out:
    ls_comm_close(c);
    return st;
}

void ls_comm_close(ls_comm *c)
{
    bool orderly;

    if (c == NULL) return;
    if (c->heap == NULL) { /* nobody is there */
        ls_free(c);
        return;
    }
    /* The library between machines can only be closed together, and not at all when somebody is missing. */
    orderly = c->transport != NULL && !c->disagreed && !lsi_aborted(c) &&
              ls_comm_barrier(c, "closing", NULL) == LS_OK;
    if (c->transport != NULL) c->transport->close(orderly);
    lsi_remote_destroy(c);
    atomic_store_explicit(&c->heap->region->slot[c->local_rank].left, 1, memory_order_release);
    for (int i = 0; c->pidfd != NULL && i < c->local_size; i++)
        if (c->pidfd[i] >= 0) close(c->pidfd[i]);
    ls_free(c->pidfd);
    ls_comm_heap_destroy(c->heap);
    ls_free(c);
}

int ls_comm_rank(const ls_comm *c)
{
    return c->rank;
}

int ls_comm_size(const ls_comm *c)
{
    return c->size;
}

int ls_comm_local_rank(const ls_comm *c)
{
    return c->local_rank;
}

int ls_comm_local_size(const ls_comm *c)
{
    return c->local_size;
}

int ls_comm_host(const ls_comm *c)
{
    return c->host;
}

int ls_comm_hosts(const ls_comm *c)
{
    return c->hosts;
}

const char *ls_comm_kind(const ls_comm *c)
{
    return c->kind;
}

void lsi_book_adding(ls_comm *c, uint64_t begun_ns)
{
    c->adding_ns += ls_clock_ns() - begun_ns;
}

uint64_t ls_comm_sent_bytes(const ls_comm *c)
{
    return c->sent_bytes;
}

double ls_comm_exposed_seconds(const ls_comm *c)
{
    return (double)c->exposed_ns * 1e-9;
}

double ls_comm_waiting_seconds(const ls_comm *c)
{
    return (double)(c->exposed_ns - c->adding_ns) * 1e-9;
}
