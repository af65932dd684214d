/* memory.c: buffers on the device.  Each function waits for what was enqueued before, and for its own copy.
 */
#include "backend/cuda/cuda.h"
#include "base/text.h"

static const lsi_cuda_device *device_of(const ls_buffer *b)
{
    return (const lsi_cuda_device *)b->dev;
}

static ls_status failed(const lsi_cuda_device *d, int code, const char *what, size_t bytes, ls_err *err)
{
    return ls_fail(err, LS_DEVICE, "cuda: %s %zu bytes: %s%s", what, bytes, d->api->error(code),
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

    (void)d->api->stream_sync(d->stream);
    d->api->free(b->address);
}

static ls_status moved(const lsi_cuda_device *d, int code, const char *what, size_t bytes, ls_err *err)
{
    if (code == 0) code = d->api->stream_sync(d->stream);
    return code == 0 ? LS_OK : failed(d, code, what, bytes, err);
}

static ls_status read_bytes(const ls_buffer *b, size_t at, void *to, size_t bytes, ls_err *err)
{
    const lsi_cuda_device *d = device_of(b);

    return moved(d, d->api->copy(to, ls_buffer_address(b, at), bytes, d->stream), "reading", bytes, err);
}

static ls_status write_bytes(ls_buffer *b, size_t at, const void *from, size_t bytes, ls_err *err)
{
    const lsi_cuda_device *d = device_of(b);

    return moved(d, d->api->copy(ls_buffer_address(b, at), from, bytes, d->stream), "writing", bytes, err);
}

static ls_status copy_bytes(ls_buffer *to, size_t to_at, const ls_buffer *from, size_t from_at, size_t bytes,
                            ls_err *err)
{
    const lsi_cuda_device *d = device_of(to);
    const int code =
        d->api->copy(ls_buffer_address(to, to_at), ls_buffer_address(from, from_at), bytes, d->stream);

    return moved(d, code, "copying", bytes, err);
}

static ls_status zero_bytes(ls_buffer *b, size_t at, size_t bytes, ls_err *err)
{
    const lsi_cuda_device *d = device_of(b);

    return moved(d, d->api->zero(ls_buffer_address(b, at), bytes, d->stream), "clearing", bytes, err);
}

const ls_buffers lsi_cuda_buffers = {alloc,
                                     release,
                                     read_bytes,
                                     write_bytes,
                                     copy_bytes,
                                     zero_bytes,
                                     ls_host_alloc_staging,
                                     ls_host_free_staging};
