/* far.c: two stretches of addresses, one that callers see and one that is memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backend/far/far_internal.h"
#include "backend/nvml.h"
#include "base/clock.h"
#include "base/log.h"
#include "ops/ops.h"

/* Addresses of a device; nothing is taken of the machine before it is used. */
#define ROOM ((size_t)256 << 30)
#define PAGE ((size_t)4096)

void *lsi_far_find(const lsi_far *d, const void *address)
{
    const char *p = address;

    return p >= d->shown && p < d->shown + ROOM ? d->memory + (p - d->shown) : NULL;
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
    lsi_far *d = (lsi_far *)b->dev;
    bool fits;
    size_t at;

    pthread_mutex_lock(&d->lock);
    at = d->used;
    fits = b->bytes < ROOM - at && pages(b->bytes) <= ROOM - at;
    if (fits) d->used += pages(b->bytes);
    pthread_mutex_unlock(&d->lock);
    if (!fits || mprotect(d->memory + at, pages(b->bytes) - PAGE, PROT_READ | PROT_WRITE) != 0)
        return ls_fail(err, LS_NOMEM, "far: %zu bytes cannot be had", b->bytes);
    memset(d->memory + at, 0xff, b->bytes);
    b->address = d->shown + at;
    return LS_OK;
}

static void release(ls_buffer *b)
{
    void *p = lsi_far_bytes(b, 0);

    lsi_far_drain((lsi_far *)b->dev);
    (void)madvise(p, pages(b->bytes) - PAGE, MADV_DONTNEED);
    (void)mprotect(p, pages(b->bytes) - PAGE, PROT_NONE);
}

static ls_status read_bytes(const ls_buffer *b, size_t at, void *to, size_t bytes, ls_err *err)
{
    (void)err;
    lsi_far_drain((lsi_far *)b->dev);
    memcpy(to, lsi_far_bytes(b, at), bytes);
    return LS_OK;
}

static ls_status write_bytes(ls_buffer *b, size_t at, const void *from, size_t bytes, ls_err *err)
{
    (void)err;
    lsi_far_drain((lsi_far *)b->dev);
    memcpy(lsi_far_bytes(b, at), from, bytes);
    return LS_OK;
}

static ls_status copy_bytes(ls_buffer *to, size_t to_at, const ls_buffer *from, size_t from_at, size_t bytes,
                            ls_err *err)
{
    (void)err;
    lsi_far_drain((lsi_far *)to->dev);
    lsi_far_drain((lsi_far *)from->dev);
    memcpy(lsi_far_bytes(to, to_at), lsi_far_bytes(from, from_at), bytes);
    return LS_OK;
}

static ls_status zero_bytes(ls_buffer *b, size_t at, size_t bytes, ls_err *err)
{
    (void)err;
    lsi_far_drain((lsi_far *)b->dev);
    memset(lsi_far_bytes(b, at), 0, bytes);
    return LS_OK;
}

/* A queue may still be on its way to it. */
static void free_staging(ls_device *dev, void *p)
{
    lsi_far_drain((lsi_far *)dev);
    ls_host_free_staging(dev, p);
}

static const ls_buffers far_buffers = {
    alloc, release, read_bytes, write_bytes, copy_bytes, zero_bytes, ls_host_alloc_staging, free_staging};

/* -- kernels ----------------------------------------------------------------------------------------------
 */

typedef struct far_kernel {
    const lsi_far *dev;
    ls_kernel ref;
    int n_in, n_out;
    bool transfers; /* between host and device: the only one that sees both */
    void *found[];  /* inputs, then outputs */
} far_kernel;

static void *found(const far_kernel *k, void *address)
{
    void *here = lsi_far_find(k->dev, address);

    LS_BUG_IF(here == NULL && !k->transfers);
    return here != NULL ? here : address;
}

static void run(void *state, const ls_call *call)
{
    far_kernel *k = state;
    ls_call here = *call;

    for (int i = 0; i < k->n_in; i++) k->found[i] = found(k, call->in[i]);
    for (int i = 0; i < k->n_out; i++) k->found[k->n_in + i] = found(k, call->out[i]);
    here.in = k->found;
    here.out = k->found + k->n_in;
    here.scratch = found(k, call->scratch);
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
    k->dev = (const lsi_far *)dev;
    k->n_in = n->n_in;
    k->n_out = n->n_out;
    k->transfers = n->op == &ls_op_to_host || n->op == &ls_op_to_device;
    *out = (ls_kernel){.run = run, .destroy = destroy, .state = k, .impl = "far"};
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
    lsi_far *d = (lsi_far *)dev;

    lsi_far_line_close(d);
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
    lsi_far *d = ls_alloc(LS_MEM_PLAN, sizeof *d);
    ls_status st;

    (void)threads;
    if (d == NULL) return ls_fail(err, LS_NOMEM, "far: no memory");
    pthread_mutex_init(&d->lock, NULL);
    d->base = (ls_device){.backend = &ls_backend_far, .threads = 1};
    d->shown = mmap(NULL, ROOM, PROT_NONE, how, -1, 0);
    d->memory = mmap(NULL, ROOM, PROT_NONE, how, -1, 0);
    if (d->shown == MAP_FAILED || d->memory == MAP_FAILED) {
        far_close(&d->base);
        return ls_fail(err, LS_NOMEM, "far: %zu bytes of addresses cannot be had (ulimit -v)", 2 * ROOM);
    }
    st = lsi_far_line_open(d, choose_seed(), err);
    if (st == LS_OK)
        *out = &d->base;
    else
        far_close(&d->base);
    return st;
}

static void describe(const ls_device *dev, char *buf, size_t n)
{
    (void)dev;
    snprintf(buf, n, "the reference kernels on memory that the host cannot see; for tests");
}

/* As if it were the machine's first GPU, so that what is done with gauges is tried without one. */
static int gauges(const ls_device *dev, int ranks, ls_gauge *out)
{
    (void)dev;
    (void)ranks;
    return lsi_nvml_look(NULL, out) ? 1 : 0;
}

/* Loops as those of the reference kernels, on memory of the device. */
static bool measure(ls_device *dev, ls_dtype type, ls_yardstick *out)
{
    enum { SIDE = 96, BYTES = 1 << 22 };
    ls_buffer b = {0};
    double *x;
    double begun;
    ls_err err = {0};

    (void)type;
    if (ls_buffer_alloc(&b, dev, 2 * BYTES, &err) != LS_OK) return false;
    lsi_far_drain((lsi_far *)dev);
    x = lsi_far_bytes(&b, 0);
    memset(x, 0, 2 * BYTES);
    begun = ls_clock_seconds();
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            for (int k = 0; k < SIDE; k++)
                x[i * SIDE + j] += x[SIDE * SIDE + i * SIDE + k] * x[2 * SIDE * SIDE + k * SIDE + j];
    out->flop_s = 2.0 * SIDE * SIDE * SIDE / (ls_clock_seconds() - begun);
    begun = ls_clock_seconds();
    memcpy((char *)x + BYTES, x, BYTES);
    out->copy_b_s = 2.0 * BYTES / (ls_clock_seconds() - begun);
    out->devices = 1;
    snprintf(out->what, sizeof out->what, "products in double");
    ls_buffer_free(&b);
    return true;
}

static bool optimised(const ls_op *op)
{
    (void)op;
    return false;
}

/* What changes no bit where the reference computes: so that it is tried without the device that wants it. */
static const ls_fusion_rule fusions[] = {{LS_FUSE_HEADS, NULL}, {LS_FUSE_NONE, NULL}};

const ls_backend ls_backend_far = {
    .name = "far",
    .probe = probe,
    .open = far_open,
    .close = far_close,
    .describe = describe,
    .gauges = gauges,
    .measure = measure,
    .buffers = &far_buffers,
    .queues = &lsi_far_queues,
    .links = &lsi_far_links,
    .fuses = fusions,
    .converts = true,
    .plan = plan,
    .optimised = optimised,
};
