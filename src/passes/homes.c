/* homes.c: which variables the ranks of a machine may keep once and update together (decision 13).
 *
 * Needs: the record, with all its updates.  Leaves: the home of every parameter; that of what an optimiser
 * remembers follows (optimise.c).
 *
 * An update of shared variables is made in pieces between two barriers, so it must be an update of shared
 * variables only, by a rule that works element by element.  A parameter may be trained by several calls of
 * ls_minimise: it is shared if that holds for each of them. */
#include "passes/lower_internal.h"

static ls_var *variable(const ls_graph *g, const ls_node *update, int k)
{
    return g->vars[g->values[ls_update_weight(update, k)]->var];
}

/* Below some size the two barriers cost more than they save: 16 ranks on 87 KB lost 5 %, on 4.8 MB they
 * gained 8 %. */
static void propose(const ls_graph *g, const ls_strategy *how, const ls_node *n)
{
    int64_t bytes = 0;

    for (int k = 0; k < n->n_out; k++)
        bytes += ls_shape_count(*ls_node_out_shape(g, n, k)) * (int64_t)sizeof(float);
    for (int k = 0; k < n->n_out && bytes >= how->share_from; k++) variable(g, n, k)->home = LS_HOME_MACHINE;
}

static bool all_shared(const ls_graph *g, const ls_node *n)
{
    for (int k = 0; k < n->n_out; k++)
        if (variable(g, n, k)->home != LS_HOME_MACHINE || g->values[n->out[k]]->dtype != LS_F32) return false;
    return ls_optim_by_element(((const ls_update_attr *)n->attr)->rule);
}

/* Takes the proposal back where it does not hold; true where that changed something, which may matter to
 * another call. */
static bool refuse(const ls_graph *g, const ls_node *n)
{
    bool changed = false;

    if (all_shared(g, n)) return false;
    for (int k = 0; k < n->n_out; k++) {
        changed = changed || variable(g, n, k)->home == LS_HOME_MACHINE;
        variable(g, n, k)->home = LS_HOME_RANK;
    }
    return changed;
}

void ls_pass_homes(ls_graph *g, const ls_strategy *how)
{
    bool changed = lsi_sound(g);

    for (int32_t i = 0; changed && i < g->n_nodes; i++)
        if (g->nodes[i]->op == &ls_op_update) propose(g, how, g->nodes[i]);
    while (changed) {
        changed = false;
        for (int32_t i = 0; i < g->n_nodes; i++)
            if (g->nodes[i]->op == &ls_op_update) changed = refuse(g, g->nodes[i]) || changed;
    }
}
