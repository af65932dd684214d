/* heap.c: the memory that ranks of one machine share.
 *
 * It is a memfd: it has no name that could be left behind, it is not bounded by the size of /dev/shm, and it
 * goes when the last process that holds it does.  It grows by fallocate, which never shrinks a file: a rank
 * that is late with a window cannot cut off the next one, and memory that cannot be had is an error here
 * instead of a SIGBUS in the middle of a step. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "comm/comm_internal.h"

#define MAGIC     UINT64_C(0x31706165686b636c) /* lckheap1 */
#define MAX_RANKS 4096

static size_t region_bytes(int size)
{
    return sizeof(lsi_region) + (size_t)size * (sizeof(lsi_slot) + 2 * LSI_MAIL_BYTES);
}

/* The object around a descriptor, which it takes over, and the mapped region. */
static ls_status adopt_take(ls_comm_heap **out, int fd, int size, ls_err *err)
{
    ls_comm_heap *heap = ls_alloc(LS_MEM_COMM, sizeof *heap);

    if (heap == NULL) {
        close(fd);
        return ls_fail(err, LS_NOMEM, "no memory for a communicator");
    }
    heap->fd = fd;
    heap->size = size;
    heap->users = 1;
    heap->region_bytes = region_bytes(size);
    heap->region = mmap(NULL, heap->region_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (heap->region == MAP_FAILED) {
        ls_status st = ls_fail(err, LS_NOMEM, "shared memory cannot be mapped: %s", strerror(errno));
        close(fd);
        ls_free(heap);
        return st;
    }
    pthread_mutex_init(&heap->lock, NULL);
    *out = heap;
    return LS_OK;
}

ls_status ls_comm_heap_create(ls_comm_heap **out, int size, ls_err *err)
{
    ls_status st = LS_OK;

    *out = NULL;
    if (size < 1 || size > MAX_RANKS)
        return ls_fail(err, LS_INVALID, "%d ranks: must be 1 to %d", size, MAX_RANKS);
    int fd = memfd_create("lockstep", MFD_CLOEXEC);
    if (fd < 0) return ls_fail(err, LS_NOMEM, "shared memory cannot be had: %s", strerror(errno));
    if (ftruncate(fd, (off_t)region_bytes(size)) != 0) {
        st = ls_fail(err, LS_NOMEM, "shared memory cannot be had: %s", strerror(errno));
        close(fd);
        return st;
    }
    LS_TRY(adopt_take(out, fd, size, err));
    (*out)->region->size = size;
    (*out)->region->magic = MAGIC;
    if (getrandom(&(*out)->region->nonce, sizeof(uint64_t), 0) < 0) (*out)->region->nonce = ls_clock_ns();
    for (int i = 0; i < size; i++) {
        atomic_init(&(*out)->region->slot[i].step, -1);
        atomic_init(&(*out)->region->slot[i].rank, i);
    }
out:
    return st;
}

ls_status lsi_heap_attach(ls_comm_heap **out, int fd, int size, ls_err *err)
{
    struct stat about;
    ls_status st;
    int mine;

    *out = NULL;
    if (fstat(fd, &about) != 0) return ls_fail(err, LS_INVALID, "shared heap: %s", strerror(errno));
    if (size < 1 || size > MAX_RANKS || about.st_size < (off_t)region_bytes(size))
        return ls_fail(err, LS_INVALID, "descriptor %d is not a shared heap for %d ranks", fd, size);
    mine = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (mine < 0) return ls_fail(err, LS_IO, "shared heap: %s", strerror(errno));
    st = adopt_take(out, mine, size, err);
    if (st != LS_OK) return st;
    if ((*out)->region->magic != MAGIC || (*out)->region->size != size) {
        ls_comm_heap_destroy(*out);
        *out = NULL;
        return ls_fail(err, LS_INVALID, "descriptor %d is not a shared heap for %d ranks", fd, size);
    }
    return LS_OK;
}

void lsi_heap_keep(ls_comm_heap *heap)
{
    pthread_mutex_lock(&heap->lock);
    heap->users++;
    pthread_mutex_unlock(&heap->lock);
}

void ls_comm_heap_destroy(ls_comm_heap *heap)
{
    if (heap == NULL) return;
    pthread_mutex_lock(&heap->lock);
    int users = --heap->users;
    pthread_mutex_unlock(&heap->lock);
    if (users > 0) return;
    while (heap->mappings != NULL) {
        lsi_mapping *m = heap->mappings;
        heap->mappings = m->next;
        munmap(m->at, m->bytes);
        ls_free(m);
    }
    munmap(heap->region, heap->region_bytes);
    close(heap->fd);
    pthread_mutex_destroy(&heap->lock);
    ls_free(heap);
}

int ls_comm_heap_fd(const ls_comm_heap *heap)
{
    return heap->fd;
}

static void end_all(ls_comm_heap *heap, int rank, ls_status status, const char *why)
{
    lsi_region *r = heap->region;
    int32_t running = LSI_RUNNING;

    if (!atomic_compare_exchange_strong(&r->abort_state, &running, LSI_ABORT_BEING_WRITTEN)) return;
    r->abort_rank = rank;
    r->abort_status = (int32_t)status;
    snprintf(r->abort_why, sizeof r->abort_why, "%s", why);
    atomic_store_explicit(&r->abort_state, LSI_ABORTED, memory_order_release);
}

void ls_comm_heap_abort(ls_comm_heap *heap, int rank, const char *why)
{
    end_all(heap, rank, LS_LOST, why);
}

void ls_comm_heap_end(ls_comm_heap *heap, ls_status status, const char *why)
{
    end_all(heap, -1, status, why);
}

bool ls_comm_heap_ended(const ls_comm_heap *heap, char *why, size_t bytes)
{
    const lsi_region *r = heap->region;

    if (atomic_load_explicit(&r->abort_state, memory_order_acquire) != LSI_ABORTED) return false;
    snprintf(why, bytes, "%s", r->abort_why);
    return true;
}

void ls_comm_heap_stall(const ls_comm_heap *heap, double *report, double *limit)
{
    *report = (double)atomic_load_explicit(&heap->region->stall_us, memory_order_relaxed) * 1e-6;
    *limit = (double)atomic_load_explicit(&heap->region->stall_limit_us, memory_order_relaxed) * 1e-6;
}

void ls_comm_heap_look(const ls_comm_heap *heap, int rank, ls_comm_look *out)
{
    const lsi_slot *s = &heap->region->slot[rank];
    uint64_t words[LSI_WHAT_WORDS];

    LS_BUG_IF(rank < 0 || rank >= heap->size);
    out->pid = atomic_load(&s->pid);
    out->left = atomic_load(&s->left) != 0;
    out->step = atomic_load_explicit(&s->step, memory_order_relaxed);
    out->beats = atomic_load_explicit(&s->beats, memory_order_relaxed);
    out->waiting = atomic_load_explicit(&s->waited, memory_order_relaxed) == out->beats + 1;
    out->doing = (ls_comm_doing)atomic_load_explicit(&s->doing, memory_order_relaxed);
    out->rank = atomic_load_explicit(&s->rank, memory_order_relaxed);
    for (int i = 0; i < LSI_WHAT_WORDS; i++)
        words[i] = atomic_load_explicit(&s->what[i], memory_order_relaxed);
    memcpy(out->what, words, sizeof words);
    out->what[LS_COMM_WHAT_MAX - 1] = '\0';
}

/* -- windows --------------------------------------------------------------------------------------------- */

static ls_status map_new(ls_comm_heap *heap, size_t offset, size_t bytes, void **out, ls_err *err)
{
    lsi_mapping *m = ls_alloc(LS_MEM_COMM, sizeof *m);
    int problem;

    if (m == NULL) return ls_fail(err, LS_NOMEM, "no memory for a window of shared memory");
    do {
        problem = fallocate(heap->fd, 0, (off_t)offset, (off_t)bytes) == 0 ? 0 : errno;
    } while (problem == EINTR);
    if (problem == 0) {
        m->at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, heap->fd, (off_t)offset);
        if (m->at == MAP_FAILED) problem = errno;
    }
    if (problem != 0) {
        ls_free(m);
        return ls_fail(err, LS_NOMEM, "%zu bytes of shared memory cannot be had: %s", bytes,
                       strerror(problem));
    }
    m->offset = offset;
    m->bytes = bytes;
    m->users = 1;
    m->next = heap->mappings;
    heap->mappings = m;
    *out = m->at;
    return LS_OK;
}

ls_status lsi_heap_map(ls_comm_heap *heap, size_t offset, size_t bytes, void **out, ls_err *err)
{
    ls_status st = LS_OK;

    *out = NULL;
    pthread_mutex_lock(&heap->lock);
    for (lsi_mapping *m = heap->mappings; m != NULL && *out == NULL; m = m->next) {
        if (m->offset != offset) continue;
        m->users++;
        *out = m->at;
    }
    if (*out == NULL) st = map_new(heap, offset, bytes, out, err);
    pthread_mutex_unlock(&heap->lock);
    return st;
}

void lsi_heap_unmap(ls_comm_heap *heap, void *at)
{
    if (at == NULL) return;
    pthread_mutex_lock(&heap->lock);
    lsi_mapping **link = &heap->mappings;
    while (*link != NULL && (*link)->at != at) link = &(*link)->next;
    LS_BUG_IF(*link == NULL);
    if (--(*link)->users == 0) {
        lsi_mapping *m = *link;
        *link = m->next;
        munmap(m->at, m->bytes);
        ls_free(m);
    }
    pthread_mutex_unlock(&heap->lock);
}

void lsi_heap_discard(ls_comm_heap *heap, size_t offset, size_t bytes)
{
    /* Memory that cannot be given back now goes with the heap. */
    (void)!fallocate(heap->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes);
}
