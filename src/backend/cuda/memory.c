/* memory.c: buffers on the device.  Each function waits for what was enqueued before, and for its own copy.
 */
#include <string.h>

#include "backend/cuda/cuda.h"
#include "base/text.h"

static const lsi_cuda_device *device_of(const ls_buffer *b)
{
    return (const lsi_cuda_device *)b->dev;
}

static ls_status failed(const lsi_cuda_device *d, int code, const char *what, size_t bytes, ls_err *err)
{
    char why[400];

    lsi_cuda_explain(d, code, why, sizeof why);
    return ls_fail(err, LS_DEVICE, "%s: %s %zu bytes%s", why, what, bytes,
                   d->checks ? ""
                             : " (LOCKSTEP_CUDA_CHECK=1 names the op, where a kernel before was the cause)");
}

static ls_status alloc(ls_buffer *b, ls_err *err)
{
    const lsi_cuda_device *d = device_of(b);
    const int code = d->api->alloc(&b->address, b->bytes > 0 ? b->bytes : 1);
    size_t free = 0, all = 0;
    char want[32], have[32], in_all[32];

    if (code == 0) return LS_OK;
    (void)d->api->memory(&free, &all);
    return ls_fail(err, LS_NOMEM, "cuda: %s cannot be had: %s (%s of %s are free); lower batch.per_rank",
                   ls_text_bytes((double)b->bytes, want), d->api->error(code),
                   ls_text_bytes((double)free, have), ls_text_bytes((double)all, in_all));
}

static void release(ls_buffer *b)
{
    const lsi_cuda_device *d = device_of(b);

    (void)lsi_cuda_drain(d);
    d->api->free(b->address);
}

static ls_status moved(const lsi_cuda_device *d, int code, const char *what, size_t bytes, ls_err *err)
{
    if (code == 0) code = lsi_cuda_drain(d);
    return code == 0 ? LS_OK : failed(d, code, what, bytes, err);
}

/* After all queues. */
static int copy(const lsi_cuda_device *d, void *to, const void *from, size_t bytes)
{
    const int code = lsi_cuda_drain(d);

    return code != 0 ? code : d->api->copy(to, from, bytes, d->stream[LS_QUEUE_COPY]);
}

static ls_status read_bytes(const ls_buffer *b, size_t at, void *to, size_t bytes, ls_err *err)
{
    const lsi_cuda_device *d = device_of(b);

    return moved(d, copy(d, to, ls_buffer_address(b, at), bytes), "reading", bytes, err);
}

static ls_status write_bytes(ls_buffer *b, size_t at, const void *from, size_t bytes, ls_err *err)
{
    const lsi_cuda_device *d = device_of(b);

    return moved(d, copy(d, ls_buffer_address(b, at), from, bytes), "writing", bytes, err);
}

static ls_status copy_bytes(ls_buffer *to, size_t to_at, const ls_buffer *from, size_t from_at, size_t bytes,
                            ls_err *err)
{
    const lsi_cuda_device *d = device_of(to);

    return moved(d, copy(d, ls_buffer_address(to, to_at), ls_buffer_address(from, from_at), bytes), "copying",
                 bytes, err);
}

static ls_status zero_bytes(ls_buffer *b, size_t at, size_t bytes, ls_err *err)
{
    const lsi_cuda_device *d = device_of(b);
    int code = lsi_cuda_drain(d);

    if (code == 0) code = d->api->zero(ls_buffer_address(b, at), bytes, d->stream[LS_QUEUE_COPY]);
    return moved(d, code, "clearing", bytes, err);
}

/* Pinned: copies run by themselves. */
static ls_status alloc_staging(ls_device *dev, size_t bytes, void **out, ls_err *err)
{
    const lsi_cuda_device *d = (const lsi_cuda_device *)dev;
    const int code = d->api->alloc_pinned(out, bytes > 0 ? bytes : 1);

    if (code != 0)
        return ls_fail(err, LS_NOMEM, "cuda: %zu bytes of pinned host memory: %s", bytes,
                       d->api->error(code));
    memset(*out, 0, bytes);
    return LS_OK;
}

static void free_staging(ls_device *dev, void *p)
{
    const lsi_cuda_device *d = (const lsi_cuda_device *)dev;

    (void)lsi_cuda_drain(d);
    d->api->free_pinned(p);
}

const ls_buffers lsi_cuda_buffers = {alloc,      release,    read_bytes,    write_bytes,
                                     copy_bytes, zero_bytes, alloc_staging, free_staging};
