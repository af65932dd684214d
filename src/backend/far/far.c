/* far.c: two stretches of addresses, one that callers see and one that is memory. */
#include "backend/far/far.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/log.h"

/* Addresses of a device; nothing is taken of the machine before it is used. */
#define ROOM ((size_t)256 << 30)
#define PAGE ((size_t)4096)

typedef struct far_device {
    ls_device base;
    char *shown, *memory; /* byte i of the one is byte i of the other; `shown` is never mapped */
    pthread_mutex_t lock; /* guards `used` */
    size_t used;
} far_device;

static const far_device *far_of(const ls_buffer *b)
{
    return (const far_device *)b->dev;
}

/* Where the device finds what is shown at `address`.  Kernels also reach what ranks share, as those of a GPU
 * do. */
static void *found(const far_device *d, const void *address)
{
    const char *p = address;

    return p >= d->shown && p < d->shown + ROOM ? d->memory + (p - d->shown) : (void *)(uintptr_t)address;
}

static void *bytes_of(const ls_buffer *b, size_t at)
{
    return found(far_of(b), ls_buffer_address(b, at));
}

/* -- buffers ----------------------------------------------------------------------------------------------
 */

/* With a page that nobody has behind each, also where it is empty. */
static size_t pages(size_t bytes)
{
    return (bytes / PAGE + 2) * PAGE;
}

static ls_status alloc(ls_buffer *b, ls_err *err)
{
    far_device *d = (far_device *)b->dev;
    size_t at;

    pthread_mutex_lock(&d->lock);
    at = d->used;
    if (b->bytes < ROOM - at && pages(b->bytes) <= ROOM - at) d->used += pages(b->bytes);
    pthread_mutex_unlock(&d->lock);
    if (d->used == at || mprotect(d->memory + at, pages(b->bytes) - PAGE, PROT_READ | PROT_WRITE) != 0)
        return ls_fail(err, LS_NOMEM, "far: %zu bytes cannot be had", b->bytes);
    memset(d->memory + at, 0xff, b->bytes);
    b->address = d->shown + at;
    return LS_OK;
}

static void release(ls_buffer *b)
{
    void *p = bytes_of(b, 0);

    (void)madvise(p, pages(b->bytes) - PAGE, MADV_DONTNEED);
    (void)mprotect(p, pages(b->bytes) - PAGE, PROT_NONE);
}

static ls_status read_bytes(const ls_buffer *b, size_t at, void *to, size_t bytes, ls_err *err)
{
    (void)err;
    memcpy(to, bytes_of(b, at), bytes);
    return LS_OK;
}

static ls_status write_bytes(ls_buffer *b, size_t at, const void *from, size_t bytes, ls_err *err)
{
    (void)err;
    memcpy(bytes_of(b, at), from, bytes);
    return LS_OK;
}

static ls_status copy_bytes(ls_buffer *to, size_t to_at, const ls_buffer *from, size_t from_at, size_t bytes,
                            ls_err *err)
{
    (void)err;
    memcpy(bytes_of(to, to_at), bytes_of(from, from_at), bytes);
    return LS_OK;
}

static ls_status zero_bytes(ls_buffer *b, size_t at, size_t bytes, ls_err *err)
{
    (void)err;
    memset(bytes_of(b, at), 0, bytes);
    return LS_OK;
}

static const ls_buffers far_buffers = {alloc, release, read_bytes, write_bytes, copy_bytes, zero_bytes};

/* -- kernels ----------------------------------------------------------------------------------------------
 */

typedef struct far_kernel {
    const far_device *dev;
    ls_kernel ref;
    int n_in, n_out;
    void *found[]; /* inputs, then outputs */
} far_kernel;

static void run(void *state, const ls_call *call)
{
    far_kernel *k = state;
    ls_call here = *call;

    for (int i = 0; i < k->n_in; i++) k->found[i] = found(k->dev, call->in[i]);
    for (int i = 0; i < k->n_out; i++) k->found[k->n_in + i] = found(k->dev, call->out[i]);
    here.in = k->found;
    here.out = k->found + k->n_in;
    here.scratch = found(k->dev, call->scratch);
    k->ref.run(k->ref.state, &here);
}

static void destroy(void *state)
{
    far_kernel *k = state;

    if (k->ref.destroy != NULL) k->ref.destroy(k->ref.state);
    ls_free(k);
}

static ls_status plan(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    const size_t operands = (size_t)n->n_in + (size_t)n->n_out;
    far_kernel *k = ls_alloc(LS_MEM_PLAN, sizeof *k + sizeof k->found[0] * operands);
    ls_status st = LS_OK;

    if (k == NULL) return ls_fail(err, LS_NOMEM, "far: no memory to plan %s", n->op->name);
    k->dev = (const far_device *)dev;
    k->n_in = n->n_in;
    k->n_out = n->n_out;
    *out = (ls_kernel){run, destroy, k, 0, "far"};
    LS_TRY(ls_ref_plan(g, n, &k->ref, err));
    out->scratch_bytes = k->ref.scratch_bytes;
out:
    if (st != LS_OK) {
        destroy(k);
        *out = (ls_kernel){0};
    }
    return st;
}

/* -- the device -------------------------------------------------------------------------------------------
 */

static ls_status probe(ls_err *why)
{
    (void)why;
    return LS_OK;
}

static void far_close(ls_device *dev)
{
    far_device *d = (far_device *)dev;

    if (d->shown != MAP_FAILED) munmap(d->shown, ROOM);
    if (d->memory != MAP_FAILED) munmap(d->memory, ROOM);
    pthread_mutex_destroy(&d->lock);
    ls_free(d);
}

/* Said, so that an order that shows something can be had again. */
static uint64_t choose_seed(void)
{
    const char *given = getenv("LOCKSTEP_FAR_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : ls_clock_ns();

    if (seed == 0) seed = 1;
    ls_log(LS_LOG_INFO, "far: the order of queues is drawn from LOCKSTEP_FAR_SEED=%llu",
           (unsigned long long)seed);
    return seed;
}

static ls_status far_open(ls_device **out, int threads, ls_err *err)
{
    const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    far_device *d = ls_alloc(LS_MEM_PLAN, sizeof *d);

    (void)threads;
    if (d == NULL) return ls_fail(err, LS_NOMEM, "far: no memory");
    pthread_mutex_init(&d->lock, NULL);
    d->base = (ls_device){.backend = &ls_backend_far, .threads = 1, .draws = choose_seed()};
    d->shown = mmap(NULL, ROOM, PROT_NONE, how, -1, 0);
    d->memory = mmap(NULL, ROOM, PROT_NONE, how, -1, 0);
    if (d->shown == MAP_FAILED || d->memory == MAP_FAILED) {
        far_close(&d->base);
        return ls_fail(err, LS_NOMEM, "far: %zu bytes of addresses cannot be had (ulimit -v)", 2 * ROOM);
    }
    *out = &d->base;
    return LS_OK;
}

static void describe(const ls_device *dev, char *buf, size_t n)
{
    (void)dev;
    snprintf(buf, n, "the reference kernels on memory that the host cannot see; for tests");
}

static bool optimised(const ls_op *op)
{
    (void)op;
    return false;
}

const ls_backend ls_backend_far = {
    .name = "far",
    .probe = probe,
    .open = far_open,
    .close = far_close,
    .describe = describe,
    .buffers = &far_buffers,
    .plan = plan,
    .optimised = optimised,
};
