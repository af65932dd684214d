/* queues.h: what a device is told to do, and when it has done it.
 *
 * A device that works by itself has LS_QUEUE_DEVICE_N queues: what is put into one runs in that order, some
 * time later; queues run side by side.  An event is a place in a queue: it is marked there, other queues and
 * the host wait until it is reached.  That is all that orders one queue after another.  Everything here
 * returns at once but `join`, and maps one to one onto streams and events of GPUs; `ref` and `cpu` have no
 * queues and run a kernel where it is called.
 *
 * Memory of the host's that a queue reads or writes (staging, exchange buffers) belongs to the queue until an
 * event behind the transfer is reached: whoever touches it earlier sees or sends wrong bytes.  Failures of
 * kernels go to their streams (stream.h); `join` returns those of the device itself.
 *
 * The executor (exec/queued.c) is the only caller, from any thread. */
#ifndef LS_BACKEND_QUEUES_H
#define LS_BACKEND_QUEUES_H

#include "backend/buffer.h"
#include "graph/op.h"

typedef struct ls_event ls_event; /* what it is, only its backend knows */
typedef struct ls_recording ls_recording;
struct ls_device;
struct ls_kernel;
struct ls_call;

typedef struct ls_queues {
    /* A new event, which counts as reached until it is marked.  Nothing waits for it when it is freed. */
    ls_status (*make_event)(struct ls_device *dev, ls_event **out, ls_err *err);
    void (*free_event)(struct ls_device *dev, ls_event *e);

    /* Kernel and call stay as they are until the kernel has run.  `q` is the queue of the kernel's node. */
    void (*enqueue)(struct ls_device *dev, ls_queue q, const struct ls_kernel *k, const struct ls_call *call);
    /* Between a buffer of the device and memory from `alloc_staging`; ranges are checked already. */
    void (*read)(struct ls_device *dev, ls_queue q, const ls_buffer *from, size_t at, void *to, size_t bytes);
    void (*write)(struct ls_device *dev, ls_queue q, ls_buffer *to, size_t at, const void *from,
                  size_t bytes);
    /* Between buffers of the device; ranges are checked already. */
    void (*move)(struct ls_device *dev, ls_queue q, ls_buffer *to, size_t to_at, const ls_buffer *from,
                 size_t from_at, size_t bytes);

    /* Puts the event behind all that is in the queue now; what was marked before is forgotten. */
    void (*mark)(struct ls_device *dev, ls_queue q, ls_event *e);
    /* Whatever is put into the queue from now on comes after the event as it is marked now. */
    void (*wait)(struct ls_device *dev, ls_queue q, ls_event *e);

    /* Whether all before the mark is over; true also when the device has failed and nothing will come. */
    bool (*reached)(struct ls_device *dev, ls_event *e);
    /* Waits until it is.  LS_DEVICE, with a text, when the device has failed. */
    ls_status (*join)(struct ls_device *dev, ls_event *e, ls_err *err);
    /* When an event that is reached was, in nanoseconds of ls_clock_ns; for profiles. */
    uint64_t (*when)(struct ls_device *dev, ls_event *e);

    /* All of these or none.  Kernels that are put into the queue after `record` are not run but kept, until
     * `recorded`; from then on `replay` puts all of them into the queue at once, as often as it is called.
     * False, NULL: the device cannot, or one of the kernels cannot be kept; nothing was run then.
     * A device may begin a replay as late as the queue's next event. */
    bool (*record)(struct ls_device *dev, ls_queue q);
    /* Within a recording: the next kernel comes after these of it, by their numbers from 0 in the order in
     * which they are put in, and after no other; without it each comes after the one before.  NULL: the
     * device wants the latter. */
    void (*after)(struct ls_device *dev, ls_queue q, const int32_t *kernels, int32_t n);
    ls_recording *(*recorded)(struct ls_device *dev, ls_queue q);
    void (*replay)(struct ls_device *dev, ls_queue q, ls_recording *r);
    void (*free_recording)(struct ls_device *dev, ls_recording *r);
} ls_queues;

#endif
