/* region.c: regions as kernels: whether there are any, and how they run. */
#include "backend/cuda/region.h"

#include <stdlib.h>

#include "backend/cuda/compiled.h"
#include "backend/cuda/kernel_util.h"
#include "backend/cuda/planners.h"

static lsi_region_machine machine_of(const ls_device *dev)
{
    const lsi_cuda_device *d = lsi_cuda_of(dev);

    const char *word = getenv("LOCKSTEP_CUDA_UPDATES");

    return (lsi_region_machine){.processors = d->about.processors,
                                .shared = d->about.shared,
                                .rounded = d->base.tf32,
                                .updates_apart = word != NULL && strcmp(word, "apart") == 0};
}

static bool takes(const ls_device *dev, const ls_graph *g, const ls_node *n, int64_t samples,
                  const ls_region_kind *in, ls_region_kind *out)
{
    const lsi_region_machine m = machine_of(dev);

    return lsi_region_takes(&m, g, n, samples, in, out);
}

static bool fits(const ls_device *dev, const ls_graph *g, int64_t samples, int n,
                 const ls_node *const *members)
{
    const lsi_region_machine m = machine_of(dev);
    lsi_region *r = ls_alloc(LS_MEM_PLAN, sizeof *r);
    const bool ok = r != NULL && lsi_region_plan(r, &m, g, samples, n, members, 0, NULL, 0, NULL);

    ls_free(r);
    return ok;
}

const ls_region_rule *lsi_cuda_regions(const ls_device *dev)
{
    static const ls_region_rule rule = {.takes = takes, .fits = fits, .least = 3};
    const char *word = getenv("LOCKSTEP_CUDA_REGIONS");

    if (word != NULL && strcmp(word, "off") == 0) return NULL;
    return lsi_cuda_can_compile((lsi_cuda_device *)dev) ? &rule : NULL;
}

/* -- running ----------------------------------------------------------------------------------------------
 */

typedef struct state {
    const lsi_cuda_device *dev;
    lsi_cuda_region_args args;
    int n_in, n_out;
    size_t parts; /* floats of scratch before what is spilled */
} state;

static void run(void *opaque, const ls_call *call)
{
    const state *s = opaque;
    lsi_cuda_region_args a = s->args;

    for (int i = 0; i < s->n_in; i++) a.pointers.at[i] = call->in[i];
    for (int k = 0; k < s->n_out; k++) a.pointers.at[s->n_in + k] = call->out[k];
    a.pointers.parts = call->scratch;
    a.pointers.spills = (float *)call->scratch + s->parts;
    lsi_cuda_launched(s->dev, call, s->dev->api->launch.region(lsi_cuda_stream_of(s->dev, call), &a));
}

static ls_status make(ls_device *dev, const lsi_region *r, const ls_node *n, ls_kernel *out, ls_err *err)
{
    static const char *const names[] = {"region", "finish"};
    const lsi_cuda_device *d = lsi_cuda_of(dev);
    const int grid = lsi_region_grid(r);
    ls_text source = {0};
    void *kernels[2] = {NULL, NULL};
    state s = {.dev = d, .n_in = n->n_in, .n_out = n->n_out};
    bool ok;

    s.parts = ((size_t)grid * (size_t)r->sums + 3) / 4 * 4;
    s.args = (lsi_cuda_region_args){.pointers = {.samples = (int)r->samples, .blocks = grid},
                                    .blocks = grid,
                                    .threads = r->threads,
                                    .shared = sizeof(float) * (size_t)(r->common + r->each)};
    s.args.finish_blocks = lsi_region_source(&source, r);
    s.args.finish_threads = lsi_region_finish_threads(r);
    ok =
        !source.failed && lsi_cuda_compiled((lsi_cuda_device *)dev, "region", source.data, 2, names, kernels);
    ls_text_release(&source);
    if (!ok) return LS_UNSUPPORTED;
    s.args.first = kernels[0];
    s.args.second = s.args.finish_blocks > 0 ? kernels[1] : NULL;
    return lsi_cuda_kernel_make(out, run, &s, sizeof s, lsi_region_scratch(r), "one kernel", err);
}

ls_status lsi_cuda_plan_region(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                               ls_err *err)
{
    const ls_region_attr *a = n->attr;
    const lsi_region_machine m = machine_of(dev);
    lsi_region *r = ls_alloc(LS_MEM_PLAN, sizeof *r);
    ls_status st = LS_UNSUPPORTED;

    if (r == NULL) return ls_fail(err, LS_NOMEM, "cuda: no memory for a region");
    if (lsi_cuda_plain(g, n) &&
        lsi_region_plan(r, &m, a->g, a->samples, a->n, a->members, a->n_in, a->in, a->n_out, a->out))
        st = make(dev, r, n, out, err);
    ls_free(r);
    return st;
}
