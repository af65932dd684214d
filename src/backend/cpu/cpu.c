/* cpu.c: the CPU device. */
#include "backend/cpu/cpu.h"

#include <stdio.h>

#include "backend/cpu/dnnl_info.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/optim.h"
#include "backend/cpu/widen.h"
#include "base/parallel.h"

static ls_status probe(ls_err *why)
{
    (void)why;
    return LS_OK;
}

static ls_status cpu_open(ls_device **out, int threads, ls_err *err)
{
    lsi_cpu_device *d = ls_alloc(LS_MEM_PLAN, sizeof *d);
    char library[64], name[32], built[96];
    ls_status st;

    if (d == NULL) return ls_fail(err, LS_NOMEM, "cpu: no memory");
    lsi_dnnl_info(library, sizeof library);
    d->base =
        (ls_device){.backend = &ls_backend_cpu, .threads = threads, .shares = lsi_optimiser_table() != NULL};
    snprintf(name, sizeof name, "cpu-%d", threads);
    snprintf(built, sizeof built, "%s|%d%d", library, lsi_has_avx512(), lsi_has_avx2());
    st = lsi_tuner_create(&d->tuner, name, built, err);
    if (st != LS_OK)
        ls_free(d);
    else
        *out = &d->base;
    return st;
}

static void cpu_close(ls_device *dev)
{
    lsi_tuner_destroy(((lsi_cpu_device *)dev)->tuner);
    ls_free(dev);
}

static void describe(const ls_device *dev, char *buf, size_t n)
{
    snprintf(buf, n, "%d thread%s (%s)", dev->threads, dev->threads == 1 ? "" : "s", ls_parallel_name());
}

lsi_cpu_planner lsi_cpu_planner_of(const ls_op *op)
{
    for (const lsi_cpu_entry *e = lsi_cpu_entries; e->op != NULL; e++)
        if (e->op == op) return e->plan;
    return NULL;
}

static ls_status plan(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    lsi_cpu_planner planner = lsi_cpu_planner_of(n->op);
    ls_status st = LS_UNSUPPORTED;

    if (planner != NULL) st = planner(dev, g, n, out, err);
    if (planner != NULL && st == LS_UNSUPPORTED) st = lsi_plan_widened(planner, dev, g, n, out, err);
    return st == LS_UNSUPPORTED ? ls_ref_plan(g, n, out, err) : st;
}

static bool optimised(const ls_op *op)
{
    return lsi_cpu_planner_of(op) != NULL;
}

const ls_backend ls_backend_cpu = {
    .name = "cpu",
    .probe = probe,
    .open = cpu_open,
    .close = cpu_close,
    .describe = describe,
    .buffers = &ls_host_buffers,
    .fuses = lsi_cpu_fusions,
    .layouts = lsi_cpu_layouts,
    .plan = plan,
    .optimised = optimised,
};
