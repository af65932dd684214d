/* buffer.c: ranges of buffers, and memory of the host's. */
#include "backend/buffer.h"

#include <stdatomic.h>
#include <string.h>

#include "backend/backend.h"
#include "base/alloc.h"

enum { STAGING = 16 << 10 }; /* bytes on their way from one device to another */

/* -- host memory ------------------------------------------------------------------------------------------
 */

static ls_status host_alloc(ls_buffer *b, ls_err *err)
{
    b->address = ls_alloc(LS_MEM_TENSOR, b->bytes);
    b->host_visible = true;
    return b->address != NULL ? LS_OK : ls_fail(err, LS_NOMEM, "%zu bytes cannot be had", b->bytes);
}

static void host_free(ls_buffer *b)
{
    ls_free(b->address);
}

static ls_status host_read(const ls_buffer *b, size_t at, void *to, size_t bytes, ls_err *err)
{
    (void)err;
    memcpy(to, ls_buffer_address(b, at), bytes);
    return LS_OK;
}

static ls_status host_write(ls_buffer *b, size_t at, const void *from, size_t bytes, ls_err *err)
{
    (void)err;
    memcpy(ls_buffer_address(b, at), from, bytes);
    return LS_OK;
}

static ls_status host_copy(ls_buffer *to, size_t to_at, const ls_buffer *from, size_t from_at, size_t bytes,
                           ls_err *err)
{
    (void)err;
    memcpy(ls_buffer_address(to, to_at), ls_buffer_address(from, from_at), bytes);
    return LS_OK;
}

static ls_status host_zero(ls_buffer *b, size_t at, size_t bytes, ls_err *err)
{
    (void)err;
    memset(ls_buffer_address(b, at), 0, bytes);
    return LS_OK;
}

ls_status ls_host_alloc_staging(struct ls_device *dev, size_t bytes, void **out, ls_err *err)
{
    (void)dev;
    *out = ls_alloc(LS_MEM_DATA, bytes);
    return *out != NULL ? LS_OK : ls_fail(err, LS_NOMEM, "%zu bytes cannot be had", bytes);
}

void ls_host_free_staging(struct ls_device *dev, void *p)
{
    (void)dev;
    ls_free(p);
}

const ls_buffers ls_host_buffers = {
    host_alloc,          host_free, host_read, host_write, host_copy, host_zero, ls_host_alloc_staging,
    ls_host_free_staging};

/* -- buffers ----------------------------------------------------------------------------------------------
 */

/* Here and not in backends: none can forget it.  Lanes make plans side by side. */
static void count(struct ls_device *dev, size_t bytes)
{
    const size_t now = atomic_fetch_add(&dev->used, bytes) + bytes;
    size_t peak = atomic_load(&dev->peak);

    while (now > peak && !atomic_compare_exchange_weak(&dev->peak, &peak, now)) continue;
}

ls_device_memory ls_device_memory_of(ls_device *dev)
{
    return (ls_device_memory){.own = dev->backend->buffers != &ls_host_buffers,
                              .used = atomic_load(&dev->used),
                              .peak = atomic_load(&dev->peak)};
}

static bool has_memory(const ls_buffer *b)
{
    return b->dev == NULL || !b->dev->unbacked;
}

ls_status ls_buffer_alloc(ls_buffer *out, struct ls_device *dev, size_t bytes, ls_err *err)
{
    ls_status st;

    *out = (ls_buffer){
        .how = dev != NULL ? dev->backend->buffers : &ls_host_buffers, .dev = dev, .bytes = bytes};
    if (dev != NULL && !dev->unbacked && dev->limit > 0 && bytes + atomic_load(&dev->used) > dev->limit) {
        *out = (ls_buffer){0};
        return ls_fail(err, LS_NOMEM,
                       "%zu bytes more than the %zu in use are beyond memory.limit, %zu; raise it, or set a "
                       "smaller batch.per_rank or train.recompute=unit",
                       bytes, (size_t)atomic_load(&dev->used), dev->limit);
    }
    st = has_memory(out) ? out->how->alloc(out, err) : LS_OK;
    if (st == LS_OK && dev != NULL) count(dev, bytes);
    if (st != LS_OK) *out = (ls_buffer){0};
    return st;
}

ls_buffer ls_buffer_of_host(void *host, size_t bytes)
{
    return (ls_buffer){
        .how = &ls_host_buffers, .address = host, .bytes = bytes, .host_visible = true, .borrowed = true};
}

ls_status ls_staging_alloc(void **out, struct ls_device *dev, size_t bytes, ls_err *err)
{
    const ls_buffers *how = dev != NULL ? dev->backend->buffers : &ls_host_buffers;

    *out = NULL;
    return how->alloc_staging(dev, bytes, out, err);
}

void ls_staging_free(struct ls_device *dev, void *p)
{
    if (p != NULL) (dev != NULL ? dev->backend->buffers : &ls_host_buffers)->free_staging(dev, p);
}

void ls_buffer_free(ls_buffer *b)
{
    if (b->how != NULL && !b->borrowed && has_memory(b)) b->how->free(b);
    if (b->dev != NULL && !b->borrowed) atomic_fetch_sub(&b->dev->used, b->bytes);
    *b = (ls_buffer){0};
}

static ls_status check(const ls_buffer *b, size_t at, size_t bytes, const char *what, ls_err *err)
{
    if (at <= b->bytes && bytes <= b->bytes - at) return LS_OK;
    return ls_fail(err, LS_INVALID, "%s of %zu bytes from byte %zu: there are %zu", what, bytes, at,
                   b->bytes);
}

ls_status ls_buffer_read(const ls_buffer *b, size_t at, void *to, size_t bytes, ls_err *err)
{
    const ls_status st = check(b, at, bytes, "reading", err);

    if (st == LS_OK && !has_memory(b)) {
        memset(to, 0, bytes);
        return LS_OK;
    }
    return st == LS_OK && bytes > 0 ? b->how->read(b, at, to, bytes, err) : st;
}

ls_status ls_buffer_write(ls_buffer *b, size_t at, const void *from, size_t bytes, ls_err *err)
{
    const ls_status st = check(b, at, bytes, "writing", err);

    return st == LS_OK && bytes > 0 && has_memory(b) ? b->how->write(b, at, from, bytes, err) : st;
}

ls_status ls_buffer_zero(ls_buffer *b, size_t at, size_t bytes, ls_err *err)
{
    const ls_status st = check(b, at, bytes, "clearing", err);

    return st == LS_OK && bytes > 0 && has_memory(b) ? b->how->zero(b, at, bytes, err) : st;
}

/* From a device to another, when the host sees the memory of neither. */
static ls_status copy_staged(ls_buffer *to, size_t to_at, const ls_buffer *from, size_t from_at, size_t bytes,
                             ls_err *err)
{
    char staging[STAGING];
    ls_status st = LS_OK;

    for (size_t done = 0, n; done < bytes; done += n) {
        n = bytes - done < sizeof staging ? bytes - done : sizeof staging;
        LS_TRY(from->how->read(from, from_at + done, staging, n, err));
        LS_TRY(to->how->write(to, to_at + done, staging, n, err));
    }
out:
    return st;
}

ls_status ls_buffer_copy(ls_buffer *to, size_t to_at, const ls_buffer *from, size_t from_at, size_t bytes,
                         ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(check(from, from_at, bytes, "copying", err));
    LS_TRY(check(to, to_at, bytes, "copying to", err));
    if (!has_memory(to) || !has_memory(from)) return LS_OK;
    if (bytes == 0 || ls_buffer_address(to, to_at) == ls_buffer_address(from, from_at)) return LS_OK;
    if (to->how == from->how) return to->how->copy(to, to_at, from, from_at, bytes, err);
    if (from->host_visible) return to->how->write(to, to_at, ls_buffer_host(from, from_at), bytes, err);
    if (to->host_visible) return from->how->read(from, from_at, ls_buffer_host(to, to_at), bytes, err);
    return copy_staged(to, to_at, from, from_at, bytes, err);
out:
    return st;
}
