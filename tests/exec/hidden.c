/* hidden.c: see hidden.h. */
#include "hidden.h"

#include "backend/far/far.h"
#include "base/alloc.h"
#include "check.h"

static int fail_in, fail_kernel_in, live;

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
    return live;
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
    live++;
    return ls_backend_far.buffers->alloc(b, err);
}

static void release(ls_buffer *b)
{
    live--;
    ls_backend_far.buffers->free(b);
}

static ls_status read_bytes(const ls_buffer *b, size_t at, void *to, size_t bytes, ls_err *err)
{
    const ls_status st = transfer(err);

    return st == LS_OK ? ls_backend_far.buffers->read(b, at, to, bytes, err) : st;
}

static ls_status write_bytes(ls_buffer *b, size_t at, const void *from, size_t bytes, ls_err *err)
{
    const ls_status st = transfer(err);

    return st == LS_OK ? ls_backend_far.buffers->write(b, at, from, bytes, err) : st;
}

static ls_status copy_bytes(ls_buffer *to, size_t to_at, const ls_buffer *from, size_t from_at, size_t bytes,
                            ls_err *err)
{
    const ls_status st = transfer(err);

    return st == LS_OK ? ls_backend_far.buffers->copy(to, to_at, from, from_at, bytes, err) : st;
}

static ls_status zero_bytes(ls_buffer *b, size_t at, size_t bytes, ls_err *err)
{
    const ls_status st = transfer(err);

    return st == LS_OK ? ls_backend_far.buffers->zero(b, at, bytes, err) : st;
}

static const ls_buffers buffers = {alloc,
                                   release,
                                   read_bytes,
                                   write_bytes,
                                   copy_bytes,
                                   zero_bytes,
                                   ls_host_alloc_staging,
                                   ls_host_free_staging};

/* -- queues -----------------------------------------------------------------------------------------------
 */

static bool gone; /* a transfer on a queue has failed: whoever waits is told */

static void write_later(ls_device *dev, ls_queue q, ls_buffer *to, size_t at, const void *from, size_t bytes)
{
    if (transfer(&(ls_err){0}) != LS_OK)
        gone = true;
    else
        ls_backend_far.queues->write(dev, q, to, at, from, bytes);
}

static ls_status join(ls_device *dev, ls_event *e, ls_err *err)
{
    const ls_status st = ls_backend_far.queues->join(dev, e, err);

    return gone ? ls_fail(err, LS_DEVICE, "the device is gone") : st;
}

/* -- kernels ----------------------------------------------------------------------------------------------
 */

static void run(void *state, const ls_call *call)
{
    const ls_kernel *k = state;

    if (fail_kernel_in > 0 && --fail_kernel_in == 0)
        ls_stream_fail(call->stream, LS_DEVICE, "an illegal instruction");
    else
        k->run(k->state, call);
}

static void destroy(void *state)
{
    ls_kernel *k = state;

    k->destroy(k->state);
    ls_free(k);
}

static ls_status plan(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    ls_kernel *k = ls_alloc(LS_MEM_TEST, sizeof *k);

    REQUIRE(k != NULL);
    REQUIRE_OK(ls_backend_far.plan(dev, g, n, k, err), err);
    *out = (ls_kernel){
        .run = run, .destroy = destroy, .state = k, .scratch_bytes = k->scratch_bytes, .impl = "hidden"};
    return LS_OK;
}

ls_device *hidden_open(void)
{
    static ls_backend backend;
    static ls_queues queues;
    ls_device *d = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_device_open(&d, "far", 1, &err), &err);
    backend = ls_backend_far;
    backend.buffers = &buffers;
    backend.plan = plan;
    queues = *ls_backend_far.queues;
    queues.write = write_later;
    queues.join = join;
    queues.record = NULL; /* kernels are counted in the order of their queue */
    queues.after = NULL;
    backend.queues = &queues;
    gone = false;
    d->backend = &backend;
    return d;
}
