/* plan.h: compiling a graph into a plan and running it.
 *
 * A plan is a fixed list of kernels over fixed memory.  Making one may be slow (kernels are timed and
 * chosen); running one allocates nothing.  The variables of a model live in an ls_state of their own, so that
 * a training plan and an evaluation plan can share them.  A plan, its state and its device belong to one
 * thread at a time. */
#ifndef LOCKSTEP_PLAN_H
#define LOCKSTEP_PLAN_H

#include "lockstep/graph.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* A device: one backend, opened: its threads or queues, its memory, and the kernels it has for ops.  It
 * outlives all that is made for it. */
typedef struct ls_device ls_device;
/* A state: the variables of a model by name (weights, running statistics, optimisers' memory), in memory of
 * one device.  Plans that are compiled over it read and write the same ones; those it lacks are added then.
 */
typedef struct ls_state ls_state;
/* A plan: a graph after all passes, with a kernel, an order and memory for each of its nodes.  It is run as
 * often as wanted. */
typedef struct ls_plan ls_plan;

/* Opens "cpu" or "ref" with `threads` threads (0: a default from the cores at hand); the caller owns *out.
 * From then on the calling thread, and whichever runs a plan, takes floating-point numbers below 1.18e-38 for
 * zero (FTZ and DAZ): processors are very slow with them.  That is not undone when the device is closed. */
ls_status ls_device_open(ls_device **out, const char *name, int threads, ls_err *err) LS_MUST_CHECK;
void ls_device_close(ls_device *dev); /* accepts NULL; after everything that uses it is gone */

/* -- tensors
 * -------------------------------------------------------------------------------------------------- */

/* A variable of a state, or an input or fetched value of a plan: what it is, and a handle to where its
 * elements lie, row-major, in memory of its device.  The host may not be able to see that memory, so nobody
 * follows an address: elements are read and written with the functions below. */
typedef struct ls_buffer ls_buffer;
typedef struct ls_tensor {
    const char *name;
    ls_dtype dtype;
    ls_shape shape;
    size_t bytes;      /* of all elements */
    ls_buffer *buffer; /* the device's; tensors may share one */
    size_t offset;     /* of the first element in it */
} ls_tensor;

/* Each returns when it is done, and sees what was run and written before.  Offsets and lengths are bytes of
 * the tensor; a range that goes beyond its end is LS_INVALID, and nothing is copied.  Zero bytes are always
 * right. */
ls_status ls_tensor_read(const ls_tensor *t, size_t offset, void *to, size_t bytes,
                         ls_err *err) LS_MUST_CHECK;
ls_status ls_tensor_write(const ls_tensor *t, size_t offset, const void *from, size_t bytes,
                          ls_err *err) LS_MUST_CHECK;
/* All elements; type and number must be equal, devices may differ. */
ls_status ls_tensor_copy(const ls_tensor *to, const ls_tensor *from, ls_err *err) LS_MUST_CHECK;
ls_status ls_tensor_zero(const ls_tensor *t, ls_err *err) LS_MUST_CHECK;
/* The one element of an f32 tensor, such as a metric; LS_INVALID for others. */
ls_status ls_tensor_read_scalar(const ls_tensor *t, double *x, ls_err *err) LS_MUST_CHECK;
ls_status ls_tensor_write_scalar(const ls_tensor *t, double x, ls_err *err) LS_MUST_CHECK;

/* Hands all bytes to `look`, from the first to the last, in one chunk or in several: for those who only look
 * (a hash, a check, a file).  Where the host can see the memory this is the memory itself and costs nothing;
 * else chunks of LS_TENSOR_CHUNK bytes (the last may be shorter) pass through a staging area.  A chunk is
 * valid during the call.  The first status that is not LS_OK ends it and is returned.  A tensor without
 * elements has no chunks. */
#define LS_TENSOR_CHUNK ((size_t)1 << 20)
typedef ls_status (*ls_tensor_look)(void *ctx, const void *chunk, size_t offset, size_t bytes, ls_err *err);
ls_status ls_tensor_visit(const ls_tensor *t, ls_tensor_look look, void *ctx, ls_err *err) LS_MUST_CHECK;

/* -- variables
 * ------------------------------------------------------------------------------------------------ */

ls_status ls_state_create(ls_state **out, ls_device *dev, ls_err *err) LS_MUST_CHECK;
void ls_state_destroy(ls_state *s); /* accepts NULL; after every plan that uses it */
/* Gives every variable its initial value from `seed`: a function of seed, name and element alone. */
ls_status ls_state_init(ls_state *s, uint64_t seed, ls_err *err) LS_MUST_CHECK;
int ls_state_count(const ls_state *s);
const ls_tensor *ls_state_at(const ls_state *s, int i);
/* NULL when there is no such variable. */
const ls_tensor *ls_state_find(const ls_state *s, const char *name);

/* -- plans
 * ---------------------------------------------------------------------------------------------------- */

/* Compiles the graph for the device.  Variables that `state` lacks are added to it (uninitialised: call
 * ls_state_init), others must match in type and shape.  The graph is taken over and transformed, also on
 * failure: do not use it again.  The caller owns *out. */
ls_status ls_plan_compile_take(ls_plan **out, ls_graph *graph, ls_device *dev, ls_state *state,
                               ls_err *err) LS_MUST_CHECK;
void ls_plan_destroy(ls_plan *p); /* accepts NULL */

/* One step.  Inputs keep their contents from step to step until they are written again.  Where it fails (a
 * kernel could not do its work, an input could not be written, a rank was lost), what it has computed is
 * worthless, and so are the variables that it updates; every later run of the plan fails the same way. */
ls_status ls_plan_run(ls_plan *p, ls_err *err) LS_MUST_CHECK;

/* One step with a clock: `note` is called after every node with its number, when it began and ended, and when
 * the work for other ranks that followed ended; nanoseconds of a clock that all processes of the machine
 * share. */
typedef void (*ls_plan_note)(void *ctx, int node, uint64_t begun, uint64_t ended, uint64_t progressed);
ls_status ls_plan_run_noted(ls_plan *p, ls_plan_note note, void *ctx, ls_err *err) LS_MUST_CHECK;

/* Puts `bytes` bytes into the input of that name from byte `offset` on, for the runs to come.  A plan without
 * such an input takes no notice: not every model uses all that it is offered.  `from` may be reused at once.
 * A failure is what the next run returns. */
void ls_plan_write_input(ls_plan *p, const char *name, size_t offset, const void *from, size_t bytes);
/* The same for an f32 scalar. */
void ls_plan_write_scalar(ls_plan *p, const char *name, double x);

/* An input (written before a step) or a fetched value (read after one); borrowed from the plan.  NULL when
 * there is none of that name. */
const ls_tensor *ls_plan_input(const ls_plan *p, const char *name);
const ls_tensor *ls_plan_fetch(const ls_plan *p, const char *name);
int ls_plan_input_count(const ls_plan *p);
const ls_tensor *ls_plan_input_at(const ls_plan *p, int i);
int ls_plan_fetch_count(const ls_plan *p);
const ls_tensor *ls_plan_fetch_at(const ls_plan *p, int i);

/* -- what a plan costs
 * ------------------------------------------------------------------------------------------ */

typedef struct ls_plan_memory {
    size_t weights, gradients, optimizer, activations, scratch, comm, total;
} ls_plan_memory;

ls_plan_memory ls_plan_memory_of(const ls_plan *p);
double ls_plan_flops(const ls_plan *p);  /* per step: matrix products, convolutions and the rest */
uint64_t ls_plan_hash(const ls_plan *p); /* equal for equal plans; independent of device and thread count */

int ls_plan_node_count(const ls_plan *p); /* that run in a step */
/* Runs `steps` steps as they are, with a clock around every node, and stores the mean of each over the middle
 * half of the steps. */
ls_status ls_plan_profile(ls_plan *p, int steps, ls_err *err) LS_MUST_CHECK;

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
