/* kernel_util.h: what the planners share.
 *
 * A planner fills a small state on its stack, mostly the arguments of a launcher without their addresses, and
 * hands it to lsi_cuda_kernel_make.  `run` copies the arguments, puts the addresses of the call in, launches,
 * and tells lsi_cuda_launched what came of it. */
#ifndef LS_BACKEND_CUDA_KERNEL_UTIL_H
#define LS_BACKEND_CUDA_KERNEL_UTIL_H

#include <string.h>

#include "backend/cuda/cuda.h"
#include "ops/ops.h"

static inline const lsi_cuda_device *lsi_cuda_of(const ls_device *dev)
{
    return (const lsi_cuda_device *)dev;
}

/* Where the kernels of this call are enqueued. */
static inline lsi_cuda_stream lsi_cuda_stream_of(const lsi_cuda_device *d, const ls_call *call)
{
    (void)call;
    return d->now;
}

/* Libraries want their workspace at a multiple of so many bytes: ask for so many more than it takes. */
enum { LSI_CUDA_ALIGNED = 256 };

static inline void *lsi_cuda_aligned(void *p)
{
    return (void *)(((uintptr_t)p + LSI_CUDA_ALIGNED - 1) / LSI_CUDA_ALIGNED * LSI_CUDA_ALIGNED);
}

/* For kernels that wait for the device: whether they are being recorded, which they cannot be. */
static inline bool lsi_cuda_refuses(const lsi_cuda_device *d)
{
    if (d->recording) ((lsi_cuda_device *)d)->refused = true;
    return d->recording;
}

/* What an error means for a candidate that is tried. */
static inline lsi_outcome lsi_cuda_outcome(int code)
{
    return code == 0 ? LSI_RAN : code == LSI_CUDA_NO_MEMORY ? LSI_CANNOT_NOW : LSI_CANNOT;
}

/* To be told after every launch; `code` is what the launcher returned. */
static inline void lsi_cuda_launched(const lsi_cuda_device *d, const ls_call *call, int code)
{
    char why[400];

    if (code == 0) return;
    lsi_cuda_explain(d, code, why, sizeof why);
    ls_stream_fail(call->stream, code == LSI_CUDA_NO_MEMORY ? LS_NOMEM : LS_DEVICE, "%s", why);
}

/* `state` is copied to the heap. */
static inline ls_status lsi_cuda_kernel_make(ls_kernel *out, void (*run)(void *, const ls_call *),
                                             const void *state, size_t bytes, size_t scratch_bytes,
                                             const char *impl, ls_err *err)
{
    void *copy = ls_alloc(LS_MEM_PLAN, bytes);

    if (copy == NULL) return ls_fail(err, LS_NOMEM, "cuda: no memory for a kernel");
    memcpy(copy, state, bytes);
    *out = (ls_kernel){run, ls_free, copy, scratch_bytes, impl};
    return LS_OK;
}

static inline const ls_vinfo *lsi_cuda_in(const ls_graph *g, const ls_node *n, int i)
{
    return g->values[n->in[i]];
}
static inline const ls_vinfo *lsi_cuda_out(const ls_graph *g, const ls_node *n, int k)
{
    return g->values[n->out[k]];
}

/* The types that networks compute in. */
static inline bool lsi_cuda_computes(ls_dtype t)
{
    return t == LS_F32 || t == LS_BF16 || t == LS_F16;
}

/* Every input and output is in plain layout. */
static inline bool lsi_cuda_plain(const ls_graph *g, const ls_node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (lsi_cuda_in(g, n, i)->layout != &ls_layout_plain) return false;
    for (int k = 0; k < n->n_out; k++)
        if (lsi_cuda_out(g, n, k)->layout != &ls_layout_plain) return false;
    return true;
}

#endif
