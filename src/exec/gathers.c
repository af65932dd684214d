/* gathers.c: gathers of weights, as the plan's order has them. */
#include "exec/gathers.h"

#include "exec/plan_internal.h"
#include "ops/ops.h"

/* Whether the node waits for weights: what it gathers are pieces of parameters, or casts of them. */
static bool brings_weights(const ls_graph *g, const ls_node *n)
{
    return n->op == &ls_op_all_gather_wait && g->values[n->out[0]]->category == LS_CAT_WEIGHT;
}

static ls_unit_gather gather_of(const ls_graph *g, const ls_node *n)
{
    const double ranks = ((const ls_collective_attr *)n->attr)->ranks;
    ls_unit_gather x = {0};

    for (int k = 0; k < n->n_out; k++) {
        const ls_vinfo *v = g->values[n->out[k]];
        x.whole += (double)ls_shape_count(v->shape) * (double)ls_dtype_size(v->dtype);
    }
    x.bytes = x.whole * (ranks - 1) / ranks;
    return x;
}

int ls_plan_gathers(const ls_plan *p, ls_unit_gather *out, int most)
{
    int n = 0;

    for (int32_t i = 0; i < p->schedule.n; i++) {
        const ls_node *node = p->steps[i].node;
        if (brings_weights(p->graph, node)) {
            if (n < most) out[n] = gather_of(p->graph, node);
            n++;
        } else if (n > 0 && n <= most) {
            out[n - 1].flops += ls_node_flops(p->graph, node);
        }
    }
    return n;
}
