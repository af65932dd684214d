/* cpu.h: the CPU backend: vector kernels of our own, oneDNN where it is faster, the reference kernels for the
 * rest. */
#ifndef LS_BACKEND_CPU_CPU_H
#define LS_BACKEND_CPU_CPU_H

#include "backend/backend.h"
#include "backend/tune.h"

extern const ls_backend ls_backend_cpu;

typedef struct lsi_cpu_device {
    ls_device base;
    lsi_tuner *tuner;
} lsi_cpu_device;

/* Plans one node of a kind of op.  LS_UNSUPPORTED without text: this variant has no kernel here, take the
 * reference kernel. */
typedef ls_status (*lsi_cpu_planner)(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                     ls_err *err);

/* One entry per op with kernels of its own (kernels.c: the only list). */
typedef struct lsi_cpu_entry {
    const ls_op *op;
    lsi_cpu_planner plan;
} lsi_cpu_entry;
extern const lsi_cpu_entry lsi_cpu_entries[]; /* ended by an entry with op NULL */

lsi_cpu_planner lsi_cpu_planner_of(const ls_op *op); /* NULL: none */

/* Fusions (fusions.c) and layouts (layouts.c): see ls_backend. */
extern const ls_fusion_rule lsi_cpu_fusions[];
void lsi_cpu_layouts(const ls_device *dev, const ls_graph *g, const ls_node *n, const ls_layout *const *have,
                     const ls_layout **in, const ls_layout **out);

#endif
