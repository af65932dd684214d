/* buffer.h: memory of a device: where it lies and whose it is.
 *
 * A buffer is one stretch of bytes that a device's kernels work on.  Where the host can see it, as it can
 * with the CPU devices, `address` is an ordinary pointer; where it cannot, `address` means something to the
 * kernels alone, and bytes come and go by ls_buffer_read and ls_buffer_write.  Only backends and the executor
 * look at addresses; everybody above holds tensors (lockstep/plan.h), which are a buffer and an offset.
 *
 * All functions here check the range they are given, and come after whatever the device was told to do
 * before: a caller sees the bytes as the last kernel left them, and may reuse its own memory when they
 * return. A buffer belongs to one thread at a time, except that several may read it. */
#ifndef LS_BACKEND_BUFFER_H
#define LS_BACKEND_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

typedef struct ls_buffer ls_buffer;
struct ls_device;

/* How a backend keeps memory.  Ranges are checked and bytes > 0 when these are called. */
typedef struct ls_buffers {
    /* Gives b->bytes bytes, aligned to 64: sets `address` and `host_visible`.  Their contents are whatever.
     */
    ls_status (*alloc)(ls_buffer *b, ls_err *err);
    void (*free)(ls_buffer *b);
    ls_status (*read)(const ls_buffer *b, size_t at, void *to, size_t bytes, ls_err *err);
    ls_status (*write)(ls_buffer *b, size_t at, const void *from, size_t bytes, ls_err *err);
    /* Between two buffers of this backend; the ranges do not overlap. */
    ls_status (*copy)(ls_buffer *to, size_t to_at, const ls_buffer *from, size_t from_at, size_t bytes,
                      ls_err *err);
    ls_status (*zero)(ls_buffer *b, size_t at, size_t bytes, ls_err *err);
    /* Memory of the host's that bytes pass through on their way to and from the device, aligned to 64 and
     * zero: ordinary, or what the device reads faster.  It is freed after all that the queues were told. */
    ls_status (*alloc_staging)(struct ls_device *dev, size_t bytes, void **out, ls_err *err);
    void (*free_staging)(struct ls_device *dev, void *p);
} ls_buffers;

struct ls_buffer {
    const ls_buffers *how;
    struct ls_device *dev; /* whose kernels work on it; NULL: memory of the host's that no device gave */
    void *address;         /* of the first byte, as kernels see it */
    size_t bytes;
    bool host_visible; /* the host may follow `address`, too */
    bool shared;       /* other ranks of this machine see the same bytes, and may change them */
    bool borrowed;     /* somebody else frees it */
};

/* Memory of the host's, from base/alloc.h: that of `ref` and `cpu`. */
extern const ls_buffers ls_host_buffers;
/* Its staging, for backends that want no other. */
ls_status ls_host_alloc_staging(struct ls_device *dev, size_t bytes, void **out, ls_err *err);
void ls_host_free_staging(struct ls_device *dev, void *p);

/* Memory from the device, or with dev NULL from the host; free it in any case, also twice.  Of a device that
 * is unbacked it is a number of bytes: what is written is lost, and what is read is zero. */
ls_status ls_buffer_alloc(ls_buffer *out, struct ls_device *dev, size_t bytes, ls_err *err) LS_MUST_CHECK;
/* Host memory that somebody else has made and frees; it outlives the buffer. */
ls_buffer ls_buffer_of_host(void *host, size_t bytes);
void ls_buffer_free(ls_buffer *b);

/* See alloc_staging; `dev` may be NULL.  The caller frees it, for the same device; NULL is no memory. */
ls_status ls_staging_alloc(void **out, struct ls_device *dev, size_t bytes, ls_err *err) LS_MUST_CHECK;
void ls_staging_free(struct ls_device *dev, void *p);

/* LS_INVALID, with the range and the buffer's bytes, where it lies beyond the end.  `bytes` may be 0. */
ls_status ls_buffer_read(const ls_buffer *b, size_t at, void *to, size_t bytes, ls_err *err) LS_MUST_CHECK;
ls_status ls_buffer_write(ls_buffer *b, size_t at, const void *from, size_t bytes, ls_err *err) LS_MUST_CHECK;
/* Also between devices; from a range to itself it does nothing. */
ls_status ls_buffer_copy(ls_buffer *to, size_t to_at, const ls_buffer *from, size_t from_at, size_t bytes,
                         ls_err *err) LS_MUST_CHECK;
ls_status ls_buffer_zero(ls_buffer *b, size_t at, size_t bytes, ls_err *err) LS_MUST_CHECK;

/* A stretch of a buffer. */
typedef struct ls_operand {
    ls_buffer *buffer;
    size_t at, bytes;
} ls_operand;

/* What kernels are called with: the address of byte `at`. */
static inline void *ls_buffer_address(const ls_buffer *b, size_t at)
{
    /* Of a device without memory addresses are numbers. */
    return (void *)((uintptr_t)b->address + at);
}

/* The same for the host; NULL where it cannot see it. */
static inline void *ls_buffer_host(const ls_buffer *b, size_t at)
{
    return b->host_visible ? ls_buffer_address(b, at) : NULL;
}

#endif
