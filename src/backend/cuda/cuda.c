/* cuda.c: the device. */
#include "backend/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/flash.h"
#include "backend/cuda/kernel_util.h"
#include "backend/cuda/planners.h"
#include "backend/nvml.h"

static ls_status probe(ls_err *why)
{
    const lsi_cuda_api *api;

    return lsi_cuda_load(&api, why);
}

static void cuda_close(ls_device *dev)
{
    lsi_cuda_device *d = (lsi_cuda_device *)dev;

    lsi_cuda_close_queues(d);
    lsi_tuner_destroy(d->tuner);
    ls_free(d->area.bytes);
    ls_free(d);
}

enum { LEAST_MAJOR = 9 }; /* clusters of blocks, kernels that begin early: kernels use them unasked */

ls_status lsi_cuda_take(lsi_cuda_device *d, int place, bool exactly, ls_err *err)
{
    int devices = 0, code = d->api->count(&devices);

    if (code != 0 || devices == 0)
        return ls_fail(err, LS_UNSUPPORTED,
                       "no GPU can be used: %s (nvidia-smi lists them, CUDA_VISIBLE_DEVICES hides them)",
                       code != 0 ? d->api->error(code) : "there is none");
    if (exactly && place >= devices)
        return ls_fail(err, LS_INVALID,
                       "there is no GPU %d: %d can be used, counted from 0; --device cuda takes one of them",
                       place, devices);
    d->place = place % devices;
    d->devices = devices;
    d->exactly = exactly;
    if (d->api->bus(d->place, d->bus, sizeof d->bus) != 0) d->bus[0] = '\0';
    code = d->api->use(d->place, &d->about);
    d->base.memory = d->about.memory;
    if (code == 0 && d->about.major < LEAST_MAJOR)
        return ls_fail(err, LS_UNSUPPORTED,
                       "%s has compute capability %d.%d, and kernels need %d.0 or more; --device cpu works "
                       "everywhere",
                       d->about.name, d->about.major, d->about.minor, LEAST_MAJOR);
    if (code == 0) code = lsi_cuda_open_queues(d);
    return code == 0 ? LS_OK : ls_fail(err, LS_DEVICE, "the GPU cannot be opened: %s", d->api->error(code));
}

/* Choices depend on the device and on the libraries. */
static ls_status remember(lsi_cuda_device *d, ls_err *err)
{
    const lsi_cuda_about *a = &d->about;
    char what[256];

    /* Choices from before ways were checked (probe.h) are not believed. */
    snprintf(what, sizeof what, "%s|%d.%d|%d|%lld|%lld|checked", a->name, a->major, a->minor, a->runtime,
             a->cublaslt, a->cudnn);
    return lsi_tuner_create(&d->tuner, "cuda", what, err);
}

static bool is_set(const char *name, const char *value)
{
    const char *text = getenv(name);

    return text != NULL && strcmp(text, value) == 0;
}

static ls_status cuda_open_at(ls_device **out, int threads, int place, bool exactly, ls_err *err)
{
    lsi_cuda_device *d = ls_alloc(LS_MEM_PLAN, sizeof *d);
    ls_status st = LS_OK;

    if (d == NULL) return ls_fail(err, LS_NOMEM, "cuda: no memory");
    d->base = (ls_device){.backend = &ls_backend_cuda, .threads = threads};
    d->checks = is_set("LOCKSTEP_CUDA_CHECK", "1");
    d->no_graph = is_set("LOCKSTEP_CUDA_GRAPH", "off");
    d->in_line = is_set("LOCKSTEP_CUDA_BRANCHES", "off");
    d->no_clusters = is_set("LOCKSTEP_CUDA_CLUSTERS", "off");
    d->no_norm_pool = is_set("LOCKSTEP_CUDA_NORM_POOL", "off");
    d->plain = is_set("LOCKSTEP_CUDA_LAYOUT", "plain");
    d->not_early = is_set("LOCKSTEP_CUDA_EARLY", "off");
    d->base.copies_apart = is_set("LOCKSTEP_CUDA_COPIES", "apart");
    d->copies_alone = d->base.copies_apart || is_set("LOCKSTEP_CUDA_COPIES", "alone");
    d->clears_theirs = is_set("LOCKSTEP_CUDA_CLEARS", "theirs");
    LS_TRY(lsi_cuda_load(&d->api, err));
    st = lsi_cuda_take(d, place, exactly, err);
    if (st != LS_OK) ls_fail_in(err, st, "device \"cuda\"");
    if (st == LS_OK) st = remember(d, err);
    if (st == LS_OK) *out = &d->base;
out:
    if (st != LS_OK) cuda_close(&d->base);
    return st;
}

static ls_status cuda_open(ls_device **out, int threads, ls_err *err)
{
    return cuda_open_at(out, threads, 0, false, err);
}

static void describe(const ls_device *dev, char *buf, size_t n)
{
    const lsi_cuda_about *a = &lsi_cuda_of(dev)->about;
    char why[200];
    const char *nvml = lsi_nvml_version(why, sizeof why);

    snprintf(buf, n,
             "%s, %d multiprocessors, %.0f GiB, compute %d.%d, CUDA %d.%d, driver for %d.%d, cuBLASLt %lld, "
             "cuDNN %lld, %s%s%s",
             a->name, a->processors, (double)a->memory / (1 << 30), a->major, a->minor, a->runtime / 1000,
             a->runtime % 1000 / 10, a->driver / 1000, a->driver % 1000 / 10, a->cublaslt, a->cudnn,
             nvml != NULL ? "NVML " : "no power and load in runs (", nvml != NULL ? nvml : why,
             nvml != NULL ? "" : ")");
}

void lsi_cuda_explain(const lsi_cuda_device *d, int code, char *buf, size_t size)
{
    const char *lost = d->bus[0] != '\0' ? lsi_nvml_lost(d->bus) : NULL;

    snprintf(buf, size, "cuda: %s at %s: %s%s%s", d->about.name, d->bus, d->api->error(code),
             lost != NULL ? "; " : "", lost != NULL ? lost : "");
}

/* Rank I of a machine has device I, counted round. */
static int gauges(const ls_device *dev, int ranks, ls_gauge *out)
{
    const lsi_cuda_device *d = lsi_cuda_of(dev);
    const int all = ranks < d->devices ? ranks : d->devices;
    char bus[32];
    int n = 0;

    for (int i = 0; i < all && n < LS_GAUGES_MOST; i++) {
        const int device = d->exactly ? d->place : i;
        if (d->api->bus(device, bus, sizeof bus) == 0 && lsi_nvml_look(bus, &out[n]))
            out[n++].device = device;
        if (d->exactly) break;
    }
    return n;
}

/* -- kernels ----------------------------------------------------------------------------------------------
 */

/* A kernel that is waited for. */
typedef struct checked_kernel {
    const lsi_cuda_device *dev;
    ls_kernel inner;
} checked_kernel;

static void run_checked(void *state, const ls_call *call)
{
    const checked_kernel *k = state;

    if (lsi_cuda_refuses(k->dev)) return;
    k->inner.run(k->inner.state, call);
    lsi_cuda_launched(k->dev, call, k->dev->api->stream_sync(lsi_cuda_stream_of(k->dev, call)));
}

static void destroy_checked(void *state)
{
    checked_kernel *k = state;

    if (k->inner.destroy != NULL) k->inner.destroy(k->inner.state);
    ls_free(k);
}

static ls_status check(const lsi_cuda_device *d, ls_kernel *k, ls_err *err)
{
    checked_kernel *c = ls_alloc(LS_MEM_PLAN, sizeof *c);

    if (c == NULL) {
        if (k->destroy != NULL) k->destroy(k->state);
        return ls_fail(err, LS_NOMEM, "cuda: no memory for a kernel");
    }
    *c = (checked_kernel){d, *k};
    *k = (ls_kernel){run_checked, destroy_checked, c, k->scratch_bytes, k->impl};
    return LS_OK;
}

/* Most kernels count elements with 32 bits.  The reference kernel would take so many, for minutes a step:
 * that is no way to train, and nobody asked for it. */
static ls_status refuse_many(const ls_graph *g, const ls_node *n, ls_err *err)
{
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const int64_t count = ls_shape_count(g->values[i < n->n_in ? n->in[i] : n->out[i - n->n_in]]->shape);
        if (count > INT32_MAX)
            return ls_fail(
                err, LS_INVALID,
                "a tensor of %lld elements, and this kernel of the GPU takes at most %d; a smaller "
                "batch.per_rank (parallel.accumulate=N adds up N of them)",
                (long long)count, INT32_MAX);
    }
    return LS_UNSUPPORTED;
}

static ls_status plan(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    const lsi_cuda_planner planner = lsi_cuda_planner_of(n->op);
    ls_status st = LS_UNSUPPORTED;

    if (planner != NULL) st = planner(dev, g, n, out, err);
    if (planner != NULL && st == LS_UNSUPPORTED) st = refuse_many(g, n, err);
    if (st == LS_UNSUPPORTED) st = lsi_cuda_plan_on_host(dev, g, n, out, err);
    if (st == LS_OK && lsi_cuda_of(dev)->checks) st = check(lsi_cuda_of(dev), out, err);
    return st;
}

static bool optimised(const ls_op *op)
{
    return lsi_cuda_planner_of(op) != NULL;
}

/* Heads are read where they lie by one kernel alone. */
static bool wants_heads(const ls_device *dev, const ls_graph *g, const ls_fusion *f)
{
    (void)dev;
    return lsi_cuda_can_flash(g, f->outer);
}

/* Sums of 16 bits: there what a product adds is read while it waits for its own operands, and small networks
 * are regions. */
static bool wants_sum(const ls_device *dev, const ls_graph *g, const ls_fusion *f)
{
    (void)dev;
    return g->values[f->outer->out[0]]->dtype != LS_F32;
}

/* Gradients of weights, which are cast for the update: products leave fp32 as fast as 16 bits. */
static bool wants_wide(const ls_device *dev, const ls_graph *g, const ls_fusion *f)
{
    const ls_matmul_attr *a = f->inner->attr;

    (void)dev;
    return f->inner->op == &ls_op_matmul && f->inner->n_in == 2 && a->trans_a && !a->trans_b &&
           a->act == LS_ACT_NONE && ls_node_out_shape(g, f->inner, 0)->rank == 2 &&
           g->values[f->inner->in[0]]->dtype != LS_F32 && g->values[f->outer->out[0]]->dtype == LS_F32;
}

static const ls_fusion_rule fusions[] = {
    {LS_FUSE_BIAS, NULL},
    {LS_FUSE_RESIDUAL, NULL},
    {LS_FUSE_PRODUCT_ADD, wants_sum},
    {LS_FUSE_ACT, NULL},
    {LS_FUSE_GRAD_ADD, NULL},
    {LS_FUSE_GRAD_SUM, NULL},
    {LS_FUSE_POOL_MASK, NULL},
    {LS_FUSE_NORM_GRAD, NULL},
    {LS_FUSE_NORM_BIAS, NULL},
    {LS_FUSE_NORM_SUM, NULL},
    {LS_FUSE_NORM_SIGN, NULL},
    {LS_FUSE_POOL_SUM, NULL},
    {LS_FUSE_POOL_GRAD, NULL},
    {LS_FUSE_BIAS_GRAD, NULL},
    {LS_FUSE_HEADS, wants_heads},
    {LS_FUSE_MAX, lsi_cuda_wants_max},
    {LS_FUSE_NORM_POOL, lsi_cuda_wants_norm_pool},
    {LS_FUSE_POINTWISE, NULL},
    {LS_FUSE_CAST_OUT, wants_wide},
    {LS_FUSE_NONE, NULL},
};

const ls_backend ls_backend_cuda = {
    .name = "cuda",
    .probe = probe,
    .open = cuda_open,
    .open_at = cuda_open_at,
    .close = cuda_close,
    .describe = describe,
    .gauges = gauges,
    .measure = lsi_cuda_measure,
    .buffers = &lsi_cuda_buffers,
    .queues = &lsi_cuda_queues,
    .links = &lsi_cuda_links,
    .rounds = true,
    .fuses = fusions,
    .regions = lsi_cuda_regions,
    .layouts = lsi_cuda_layouts,
    .converts = true,
    .plan = plan,
    .optimised = optimised,
};
