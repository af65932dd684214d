/* hidden.c: see hidden.h. */
#include "hidden.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "check.h"

/* The two views of a buffer's memory. */
typedef struct views {
    char *outside, *inside;
    size_t bytes;
} views;

static views all[HIDDEN_BUFFERS];
static int fail_in, fail_kernel_in;

void hidden_fail_at(int n)
{
    fail_in = n;
}

void hidden_fail_kernel_at(int n)
{
    fail_kernel_in = n;
}

int hidden_live(void)
{
    int n = 0;

    for (int i = 0; i < HIDDEN_BUFFERS; i++) n += all[i].outside != NULL;
    return n;
}

/* Where the device itself finds an address of one of its buffers; NULL: it is none. */
static void *inside(const void *address)
{
    const char *p = address;

    for (int i = 0; i < HIDDEN_BUFFERS; i++)
        if (all[i].outside != NULL && p >= all[i].outside && p < all[i].outside + all[i].bytes)
            return all[i].inside + (p - all[i].outside);
    return NULL;
}

static ls_status transfer(ls_err *err)
{
    if (fail_in == 0 || --fail_in > 0) return LS_OK;
    fail_in = 1;
    return ls_fail(err, LS_DEVICE, "the device is gone");
}

/* -- buffers ----------------------------------------------------------------------------------------------
 */

static ls_status alloc(ls_buffer *b, ls_err *err)
{
    const size_t bytes = b->bytes > 0 ? b->bytes : 1;
    views *v = all;
    int fd;

    while (v->outside != NULL && v < all + HIDDEN_BUFFERS - 1) v++;
    REQUIRE(v->outside == NULL);
    fd = memfd_create("hidden", MFD_CLOEXEC);
    REQUIRE(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
    v->outside = mmap(NULL, bytes, PROT_NONE, MAP_SHARED, fd, 0);
    v->inside = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(v->outside != MAP_FAILED && v->inside != MAP_FAILED);
    close(fd);
    memset(v->inside, 0xff, bytes); /* not a number */
    v->bytes = bytes;
    b->address = v->outside;
    (void)err;
    return LS_OK;
}

static void release(ls_buffer *b)
{
    for (int i = 0; i < HIDDEN_BUFFERS; i++)
        if (all[i].outside != NULL && all[i].outside == b->address) {
            munmap(all[i].outside, all[i].bytes);
            munmap(all[i].inside, all[i].bytes);
            all[i] = (views){0};
        }
}

static ls_status read_bytes(const ls_buffer *b, size_t at, void *to, size_t bytes, ls_err *err)
{
    const ls_status st = transfer(err);

    if (st == LS_OK) memcpy(to, inside(ls_buffer_address(b, at)), bytes);
    return st;
}

static ls_status write_bytes(ls_buffer *b, size_t at, const void *from, size_t bytes, ls_err *err)
{
    const ls_status st = transfer(err);

    if (st == LS_OK) memcpy(inside(ls_buffer_address(b, at)), from, bytes);
    return st;
}

static ls_status copy_bytes(ls_buffer *to, size_t to_at, const ls_buffer *from, size_t from_at, size_t bytes,
                            ls_err *err)
{
    const ls_status st = transfer(err);

    if (st == LS_OK)
        memcpy(inside(ls_buffer_address(to, to_at)), inside(ls_buffer_address(from, from_at)), bytes);
    return st;
}

static ls_status zero_bytes(ls_buffer *b, size_t at, size_t bytes, ls_err *err)
{
    const ls_status st = transfer(err);

    if (st == LS_OK) memset(inside(ls_buffer_address(b, at)), 0, bytes);
    return st;
}

static const ls_buffers hidden_buffers = {alloc, release, read_bytes, write_bytes, copy_bytes, zero_bytes};

/* -- kernels ----------------------------------------------------------------------------------------------
 */

typedef struct kernel {
    ls_kernel ref;
    int n_in, n_out;
    void **addresses; /* of inputs, then of outputs, as the device sees them */
} kernel;

static void run(void *state, const ls_call *call)
{
    const kernel *k = state;
    ls_call translated = *call;

    for (int i = 0; i < k->n_in; i++) k->addresses[i] = inside(call->in[i]);
    for (int i = 0; i < k->n_out; i++) k->addresses[k->n_in + i] = inside(call->out[i]);
    translated.in = k->addresses;
    translated.out = k->addresses + k->n_in;
    translated.scratch = inside(call->scratch);
    if (fail_kernel_in > 0 && --fail_kernel_in == 0)
        ls_stream_fail(call->stream, LS_DEVICE, "an illegal instruction");
    else
        k->ref.run(k->ref.state, &translated);
}

static void destroy(void *state)
{
    kernel *k = state;

    k->ref.destroy(k->ref.state);
    ls_free(k->addresses);
    ls_free(k);
}

static ls_status plan(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    kernel *k = ls_alloc(LS_MEM_TEST, sizeof *k);
    ls_status st = LS_OK;

    (void)dev;
    REQUIRE(k != NULL);
    k->n_in = n->n_in;
    k->n_out = n->n_out;
    k->addresses = ls_alloc(LS_MEM_TEST, sizeof *k->addresses * (size_t)(n->n_in + n->n_out));
    REQUIRE(k->addresses != NULL);
    LS_TRY(ls_ref_plan(g, n, &k->ref, err));
    *out = (ls_kernel){run, destroy, k, k->ref.scratch_bytes + 1, "hidden"};
out:
    return st;
}

static const ls_backend hidden_backend = {.name = "hidden", .buffers = &hidden_buffers, .plan = plan};

ls_device hidden_device(void)
{
    return (ls_device){.backend = &hidden_backend, .threads = 1};
}
