/* host.c: reference kernels on the host, for ops that the device has no kernel for.
 *
 * Operands are copied into an area of host memory that all such kernels of the device share, and results
 * back.  The stream is waited for twice: correct from the first day, and never fast. */
#include <string.h>

#include "backend/cuda/kernel_util.h"

#define ALIGN(bytes) (((bytes) + 63) / 64 * 64)

typedef struct host_operand {
    size_t at, bytes; /* in the area */
} host_operand;

typedef struct host_kernel {
    const lsi_cuda_device *dev;
    ls_kernel ref;
    int n_in, n_out;
    void **pointers; /* inputs, then outputs, in the area */
    host_operand operand[];
} host_kernel;

static int copy_all(host_kernel *k, const ls_call *call, bool in)
{
    const lsi_cuda_device *d = k->dev;
    const int first = in ? 0 : k->n_in, end = in ? k->n_in : k->n_in + k->n_out;
    lsi_cuda_stream stream = lsi_cuda_stream_of(d, call);
    int code = 0;

    for (int i = first; i < end && code == 0; i++) {
        char *here = d->area.bytes + k->operand[i].at;
        void *there = in ? call->in[i] : call->out[i - k->n_in];
        k->pointers[i] = here;
        if (k->operand[i].bytes == 0) continue;
        code = d->api->copy(in ? here : there, in ? there : here, k->operand[i].bytes, stream);
    }
    return code != 0 ? code : d->api->stream_sync(stream);
}

static void run(void *state, const ls_call *call)
{
    host_kernel *k = state;
    const size_t operands = (size_t)k->n_in + (size_t)k->n_out;
    ls_call here = *call;
    int code;

    if (lsi_cuda_refuses(k->dev)) return;
    code = copy_all(k, call, true);
    if (code == 0) {
        for (int i = 0; i < k->n_out; i++)
            k->pointers[k->n_in + i] = k->dev->area.bytes + k->operand[k->n_in + i].at;
        here.in = k->pointers;
        here.out = k->pointers + k->n_in;
        here.scratch = k->dev->area.bytes + k->operand[operands].at;
        k->ref.run(k->ref.state, &here);
        code = copy_all(k, call, false);
    }
    lsi_cuda_launched(k->dev, call, code);
}

static void destroy(void *state)
{
    host_kernel *k = state;

    if (k->ref.destroy != NULL) k->ref.destroy(k->ref.state);
    ls_free(k->pointers);
    ls_free(k);
}

/* Grows the area; whoever was planned before finds it by the device. */
static ls_status reserve(lsi_cuda_device *d, size_t bytes, ls_err *err)
{
    char *grown;

    if (bytes <= d->area.size) return LS_OK;
    grown = ls_alloc(LS_MEM_PLAN, bytes);
    if (grown == NULL) return ls_fail(err, LS_NOMEM, "cuda: %zu bytes of host memory cannot be had", bytes);
    ls_free(d->area.bytes);
    d->area = (lsi_cuda_area){grown, bytes};
    return LS_OK;
}

static size_t place(host_kernel *k, const ls_graph *g, const ls_node *n)
{
    size_t at = 0;

    for (int i = 0; i < k->n_in + k->n_out; i++) {
        const ls_vinfo *v = g->values[i < k->n_in ? n->in[i] : n->out[i - k->n_in]];
        k->operand[i] = (host_operand){at, ls_layout_bytes(v->layout, v->dtype, v->shape)};
        at += ALIGN(k->operand[i].bytes);
    }
    k->operand[k->n_in + k->n_out] = (host_operand){at, k->ref.scratch_bytes};
    return at + k->ref.scratch_bytes;
}

ls_status lsi_cuda_plan_on_host(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                ls_err *err)
{
    const size_t operands = (size_t)n->n_in + (size_t)n->n_out;
    host_kernel *k = ls_alloc(LS_MEM_PLAN, sizeof *k + sizeof k->operand[0] * (operands + 1));
    ls_status st = LS_OK;

    if (k == NULL) return ls_fail(err, LS_NOMEM, "cuda: no memory to plan %s", n->op->name);
    k->dev = lsi_cuda_of(dev);
    k->n_in = n->n_in;
    k->n_out = n->n_out;
    k->pointers = ls_alloc(LS_MEM_PLAN, sizeof *k->pointers * (operands + 1));
    if (k->pointers == NULL) {
        st = ls_fail(err, LS_NOMEM, "cuda: no memory to plan %s", n->op->name);
        goto out;
    }
    LS_TRY(ls_ref_plan(g, n, &k->ref, err));
    LS_TRY(reserve((lsi_cuda_device *)dev, place(k, g, n), err));
    *out = (ls_kernel){run, destroy, k, 0, "host"};
out:
    if (st != LS_OK) destroy(k);
    return st;
}
