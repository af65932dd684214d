/* cpu.c: the CPU device. */
#include "backend/cpu/cpu.h"

#include <stdio.h>

#include "base/parallel.h"

static ls_status probe(ls_err *why)
{
    (void)why;
    return LS_OK;
}

static ls_status cpu_open(ls_device **out, int threads, ls_err *err)
{
    ls_device *d = ls_alloc(LS_MEM_PLAN, sizeof *d);

    if (d == NULL) return ls_fail(err, LS_NOMEM, "cpu: no memory");
    *d = (ls_device){&ls_backend_cpu, threads};
    *out = d;
    return LS_OK;
}

static void cpu_close(ls_device *dev)
{
    ls_free(dev);
}

static void describe(const ls_device *dev, char *buf, size_t n)
{
    snprintf(buf, n, "%d thread%s (%s)", dev->threads, dev->threads == 1 ? "" : "s", ls_parallel_name());
}

static lsi_cpu_planner planner_of(const ls_op *op)
{
    for (const lsi_cpu_entry *e = lsi_cpu_entries; e->op != NULL; e++)
        if (e->op == op) return e->plan;
    return NULL;
}

static ls_status plan(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    lsi_cpu_planner planner = planner_of(n->op);
    ls_status st = LS_UNSUPPORTED;

    if (planner != NULL) st = planner(dev, g, n, out, err);
    return st == LS_UNSUPPORTED ? ls_ref_plan(g, n, out, err) : st;
}

static bool optimised(const ls_op *op)
{
    return planner_of(op) != NULL;
}

const ls_backend ls_backend_cpu = {
    .name = "cpu",
    .probe = probe,
    .open = cpu_open,
    .close = cpu_close,
    .describe = describe,
    .fuses = true,
    .plan = plan,
    .optimised = optimised,
};
