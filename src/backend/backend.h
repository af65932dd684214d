/* backend.h: what a device must be able to do.
 *
 * A backend turns each node of a finished graph into a kernel once, at planning time (it may allocate, time
 * candidates, and fail with a reason), and the executor then runs the kernels in order, many times (nothing
 * of the sort any more).  `ref` is always built and serves as the oracle of the tests; other backends fall
 * back to its kernels op by op, so that nothing is ever missing, only slow. */
#ifndef LS_BACKEND_BACKEND_H
#define LS_BACKEND_BACKEND_H

#include "backend/buffer.h"
#include "backend/gauges.h"
#include "backend/links.h"
#include "backend/queues.h"
#include "backend/stream.h"
#include "graph/graph.h"
#include "passes/rules.h"
#include <signal.h>

typedef struct ls_backend ls_backend;

/* A device in use.  Backends embed it as their first member. */
typedef struct ls_device ls_device;
struct ls_device {
    const ls_backend *backend;
    int threads;
    bool tf32;  /* products round their operands of 32 bits to 19: set it before the first plan; where the
                   backend cannot, it means nothing */
    bool fixed; /* kernels follow from the problem alone, not from timing: set it before the first plan */
    /* Its buffers are counted, and none has memory: plans can be compiled and looked at, not run.  Set it
     * before anything is made for it. */
    bool unbacked;
    /* Kernels that were timed before are taken, others by rule: nothing is timed.  Set it before the first
     * plan; `guessed` counts problems that were not known. */
    bool untimed;
    _Atomic int guessed;
    bool shares;   /* kernels of optimisers by element heed ls_optim_attr.piece, and reach host memory */
    size_t limit;  /* most bytes of its buffers together (memory.limit); 0: any */
    size_t memory; /* bytes that its buffers are taken from, whoever else takes of them; 0: the machine's */
    _Atomic size_t used, peak; /* bytes of its buffers, now and at most (buffer.c counts) */
    bool copies_apart;         /* with queues: inputs and results never go through the queue of kernels */
    ls_event *end[LS_QUEUE_DEVICE_N]; /* with queues: marked behind each run of a plan (exec/queued.c) */
    /* While plans are made, which may take long: a word that becomes 1 when it is to end (LS_CANCELLED), and
     * who is told how far it is (-1: as before).  Both may be NULL. */
    const volatile sig_atomic_t *stop;
    void (*progress)(void *arg, int done, int all);
    void *progress_arg;
};

/* The memory a kernel works on; fixed when the plan is made. */
typedef struct ls_call {
    void *const *in;
    void *const *out;
    void *scratch;     /* aligned to 64 bytes */
    ls_stream *stream; /* is told when the kernel cannot do its work (ls_stream_fail); NULL: nobody is */
    /* Inputs, then outputs, of what the host itself does with them, which are the collectives; else NULL. */
    const ls_operand *operands;
} ls_call;

typedef struct ls_kernel {
    /* Allocates nothing.  With queues it may return before the work is done. */
    void (*run)(void *state, const ls_call *call);
    void (*destroy)(void *state); /* NULL: nothing to free */
    void *state;
    size_t scratch_bytes;
    const char *impl; /* which implementation was chosen, for `plan` and profiles; static or owned by state */
} ls_kernel;

struct ls_backend {
    const char *name; /* as written in settings and logs: "ref", "cpu" */

    /* LS_OK when usable on this machine; otherwise says why.  Prints nothing. */
    ls_status (*probe)(ls_err *why);
    ls_status (*open)(ls_device **out, int threads, ls_err *err);
    /* Machines may have several: number `place` of them, counted round and round unless it is to be `exactly`
     * that one (LS_INVALID where it is not there).  NULL: there is one. */
    ls_status (*open_at)(ls_device **out, int threads, int place, bool exactly, ls_err *err);
    void (*close)(ls_device *dev);
    /* One line about the device: instruction set, libraries and their versions. */
    void (*describe)(const ls_device *dev, char *buf, size_t n);
    /* One look at each device that the first `ranks` ranks of this machine compute on, at most
     * LS_GAUGES_MOST; returns how many.  From any thread.  NULL, or 0: nobody can say anything of them. */
    int (*gauges)(const ls_device *dev, int ranks, ls_gauge *out);

    /* What it can do at most with numbers of that type, in about a quarter of a second, when nothing else
     * runs; false where that cannot be measured.  NULL: it computes with the host's processor. */
    bool (*measure)(ls_device *dev, ls_dtype type, ls_yardstick *out);

    const ls_buffers *buffers; /* where tensors lie; &ls_host_buffers: in memory of the host's */
    /* NULL: a kernel runs where it is called.  Else the device works by itself; its buffers are not
     * host-visible, and its kernels see device memory alone, but for those of to_host and to_device. */
    const ls_queues *queues;
    const ls_links
        *links; /* collectives between its devices; NULL: what ranks exchange passes through the host */

    bool rounds;                 /* it heeds ls_device.tf32 */
    const ls_fusion_rule *fuses; /* patterns that fusion may fold for its kernels; NULL: none */
    ls_layout_rule layouts;      /* NULL: plain everywhere */
    bool converts;               /* it has a kernel for many casts and reorders at once */
    /* What it computes sample by sample, as one node; returns NULL where it does not.  NULL: never. */
    const ls_region_rule *(*regions)(const ls_device *dev);
    /* Chooses the kernel of one node. */
    ls_status (*plan)(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err);
    /* Whether `op` has a kernel of this backend's own (otherwise it runs the reference kernel). */
    bool (*optimised)(const ls_op *op);
};

/* Every backend of this build, ended by NULL (registry.c: the only list). */
extern const ls_backend *const ls_backends[];
/* The backend called `name`, which may end in ":I" where machines can have several of its devices; LS_INVALID
 * with the names there are.  This alone decides which words the setting `device` may have. */
ls_status ls_device_find(const ls_backend **out, const char *name, ls_err *err) LS_MUST_CHECK;

/* Opens "ref" or "cpu" with `threads` threads (0: a default from the cores at hand); the caller owns *out.
 * From then on this thread and those it starts compute with zero where a number is denormal
 * (base/denormals.h). Both are public, but their header (lockstep/plan.h) belongs to a higher layer. */
#pragma GCC visibility push(default)
ls_status ls_device_open(ls_device **out, const char *name, int threads, ls_err *err) LS_MUST_CHECK;
void ls_device_close(ls_device *dev); /* accepts NULL */
#pragma GCC visibility pop

/* The same for rank number `local_rank` of this machine: where there are several devices, each has its own,
 * unless the name says which. */
ls_status ls_device_open_at(ls_device **out, const char *name, int threads, int local_rank,
                            ls_err *err) LS_MUST_CHECK;

/* The memory that a device has given as buffers, which is all that plans and variables take of it.  Tables
 * that its kernels make for themselves and what its libraries keep are not in it. */
typedef struct ls_device_memory {
    bool own;          /* false: it is the host's, and the allocator counts it, too */
    size_t used, peak; /* bytes: now, and the most so far */
} ls_device_memory;
ls_device_memory ls_device_memory_of(ls_device *dev);

/* Plans a node with its op's reference kernel, for tensors in any layouts.  Other backends use it for ops
 * that they have no kernel for. */
ls_status ls_ref_plan(const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err) LS_MUST_CHECK;

#endif
