/* open_mpi.c: how ranks that were started by mpirun, srun or the like find each other.
 *
 * MPI says who is on the same machine.  There the lowest rank makes a heap, and the others open it as
 * /proc/PID/fd/N: so the very code runs that serves forked ranks.  Where that does not work (processes in
 * containers that do not see each other), each rank counts as a machine of its own, and MPI carries
 * everything. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/module.h"
#include "comm/comm_internal.h"

/* What a rank tells about itself while they meet. */
typedef struct card {
    int32_t machine; /* lowest rank on the machine */
    int32_t group;   /* hosts are (machine, group) */
    int32_t attached;
    int32_t pid, fd; /* of the heap, from the first rank of a host */
    uint64_t nonce;
} card;

/* Tests can make several hosts of one machine: with LOCKSTEP_COMM_HOSTS=2 the lower half of its ranks is one,
 * with -2 every other rank is. */
static int group_of(int before, int on_machine)
{
    const char *text = getenv("LOCKSTEP_COMM_HOSTS");
    int n = text != NULL ? atoi(text) : 0;

    if (n > 1) return before * n / on_machine;
    return n < -1 ? before % -n : 0;
}

static bool same_host(const card *a, const card *b)
{
    return a->machine == b->machine && a->group == b->group;
}

/* Numbers the hosts in the order of their first ranks; returns how many there are. */
static int number_hosts(const card *all, int size, int *host_of)
{
    int hosts = 0;

    for (int r = 0; r < size; r++) {
        int s = 0;
        while (s < r && !same_host(&all[s], &all[r])) s++;
        host_of[r] = s < r ? host_of[s] : hosts++;
    }
    return hosts;
}

static int first_of(const int *host_of, int host)
{
    int r = 0;

    while (host_of[r] != host) r++;
    return r;
}

static int count_of(const int *host_of, int size, int host)
{
    int n = 0;

    for (int r = 0; r < size; r++) n += host_of[r] == host;
    return n;
}

/* Opens the heap that the first rank of the host has made. */
static ls_status attach(ls_comm_heap **heap, const card *first, int size, ls_err *err)
{
    char path[64];
    ls_status st;

    snprintf(path, sizeof path, "/proc/%d/fd/%d", first->pid, first->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return ls_fail(err, LS_UNSUPPORTED, "%s cannot be opened", path);
    st = lsi_heap_attach(heap, fd, size, err);
    close(fd);
    if (st == LS_OK && (*heap)->region->nonce != first->nonce) {
        ls_comm_heap_destroy(*heap);
        *heap = NULL;
        st = ls_fail(err, LS_UNSUPPORTED, "%s is another heap", path);
    }
    return st;
}

/* A launcher of ours has made one before it forked, by which it sees what ranks do and ends their waits. */
static ls_status make_heap(ls_comm_heap **heap, int size, ls_err *err)
{
    const char *inherited = getenv("LOCKSTEP_HEAP_FD");

    if (inherited != NULL && lsi_heap_attach(heap, atoi(inherited), size, NULL) == LS_OK) return LS_OK;
    return ls_comm_heap_create(heap, size, err);
}

/* A heap for this rank's host.  After this all ranks know on which hosts that failed. */
static ls_status share_heap(const ls_transport *transport, const ls_transport_place *p, card *all,
                            const int *host_of, ls_comm_heap **heap, ls_err *err)
{
    ls_status st = LS_OK;
    int host = host_of[p->rank], first = first_of(host_of, host), size = count_of(host_of, p->size, host);
    card mine = all[p->rank];
    ls_err why = {0};

    if (p->rank == first && make_heap(heap, size, &why) == LS_OK) {
        mine.pid = (int32_t)getpid();
        mine.fd = ls_comm_heap_fd(*heap);
        mine.nonce = (*heap)->region->nonce;
        mine.attached = 1;
    }
    LS_TRY(transport->gather(&mine, sizeof mine, all, err));
    if (p->rank != first)
        mine.attached = all[first].attached && attach(heap, &all[first], size, &why) == LS_OK;
    LS_TRY(transport->gather(&mine, sizeof mine, all, err));
    if (!mine.attached && size > 1)
        ls_log(LS_LOG_WARN, "rank %d shares no memory with its neighbours (%s); gradients go through MPI",
               p->rank, why.text);
out:
    return st;
}

/* Ranks of a host on which one could not open the heap become hosts of their own. */
static bool split_hosts(card *all, int size)
{
    bool changed = false;

    for (int r = 0; r < size; r++) {
        bool whole = true;
        for (int s = 0; s < size; s++)
            if (same_host(&all[s], &all[r]) && !all[s].attached) whole = false;
        if (whole) continue;
        all[r].fd = -1; /* marks it; groups change when all marks are set */
        changed = true;
    }
    for (int r = 0; r < size; r++)
        if (all[r].fd == -1) all[r].group = 1000000 + r;
    return changed;
}

static ls_status find_hosts(const ls_transport *transport, const ls_transport_place *p, card *all,
                            int *host_of, ls_comm_heap **heap, ls_err *err)
{
    ls_status st = LS_OK;
    card mine = {.machine = p->machine};
    int before = 0, on_machine = 0;

    LS_TRY(transport->gather(&mine, sizeof mine, all, err));
    for (int r = 0; r < p->size; r++) {
        if (all[r].machine != p->machine) continue;
        before += r < p->rank;
        on_machine++;
    }
    mine.group = group_of(before, on_machine);
    LS_TRY(transport->gather(&mine, sizeof mine, all, err));
    number_hosts(all, p->size, host_of);
    LS_TRY(share_heap(transport, p, all, host_of, heap, err));
    if (split_hosts(all, p->size)) {
        number_hosts(all, p->size, host_of);
        if (all[p->rank].fd == -1) { /* alone now */
            ls_comm_heap_destroy(*heap);
            *heap = NULL;
            LS_TRY(ls_comm_heap_create(heap, 1, err));
        }
    }
out:
    return st;
}

/* The communicator on a heap whose ranks are known. */
static ls_status make(ls_comm **out, const ls_transport *transport, const ls_transport_place *p,
                      const int *host_of, ls_comm_heap *heap, ls_err *err)
{
    ls_status st = LS_OK;
    int local = 0;

    for (int r = 0; r < p->rank; r++) local += host_of[r] == host_of[p->rank];
    LS_TRY(lsi_comm_make_take(out, "mpi", heap, local, err));
    ls_comm *c = *out;
    c->transport = transport;
    c->place = *p;
    c->rank = p->rank;
    c->size = p->size;
    c->host = host_of[p->rank];
    for (int r = 0; r < p->size; r++)
        if (host_of[r] >= c->hosts) c->hosts = host_of[r] + 1;
    atomic_store(&c->heap->region->slot[local].rank, c->rank);
    if (c->hosts > 1) {
        LS_TRY(lsi_remote_create(c, host_of, err));
        LS_TRY(lsi_lines_open(&c->remote->lines, c, err));
    }
    LS_TRY(ls_comm_barrier(c, "start-up", err));
    LS_TRY(lsi_all_well(c, lsi_comm_watch_peers(c, err), "start-up", err));
out:
    return st;
}

static ls_status load(const ls_transport **out, ls_err *err)
{
    ls_err why = {0};
    void *symbol;

    *out = NULL;
    if (ls_module_open(&symbol, "mpi", LS_TRANSPORT_SYMBOL, &why) != LS_OK)
        return ls_fail(err, LS_UNSUPPORTED,
                       "%s; install an MPI (Debian: libopenmpi-dev, openmpi-bin) and build again", why.text);
    if (((const ls_transport *)symbol)->version != LS_TRANSPORT_VERSION)
        return ls_fail(err, LS_UNSUPPORTED, "the module mpi belongs to another version of Lockstep");
    *out = symbol;
    return LS_OK;
}

ls_status ls_comm_mpi_probe(char *about, size_t bytes, ls_err *err)
{
    const ls_transport *transport;
    ls_status st = load(&transport, err);

    if (st == LS_OK) transport->describe(about, bytes);
    return st;
}

ls_status ls_comm_open_mpi(ls_comm **out, ls_err *err)
{
    ls_status st = LS_OK;
    const ls_transport *transport = NULL;
    ls_transport_place p = {0};
    ls_comm_heap *heap = NULL;
    ls_comm *c = NULL;
    card *all = NULL;
    int *host_of = NULL;
    bool opened = false;

    *out = NULL;
    LS_TRY(load(&transport, err));
    LS_TRY(transport->open(&p, err));
    opened = true;
    all = ls_alloc(LS_MEM_COMM, (size_t)p.size * sizeof *all);
    host_of = ls_alloc(LS_MEM_COMM, (size_t)p.size * sizeof *host_of);
    if (all == NULL || host_of == NULL) {
        st = ls_fail(err, LS_NOMEM, "no memory for a communicator");
        goto out;
    }
    LS_TRY(find_hosts(transport, &p, all, host_of, &heap, err));
    st = make(&c, transport, &p, host_of, heap, err);
    heap = NULL;
    if (st == LS_OK) *out = c;
    if (st != LS_OK && c != NULL) {
        c->disagreed = true; /* not everybody has met: nothing can be closed together */
        ls_comm_close(c);
        opened = false;
    }
out:
    ls_comm_heap_destroy(heap);
    if (st != LS_OK && opened) transport->close(false);
    ls_free(host_of);
    ls_free(all);
    return st;
}
