/* lower.c: what several passes of the first phase need. */
#include "passes/lower_internal.h"

void lsi_no_memory(ls_graph *g)
{
    ls_graph_fail(g, LS_NOMEM, "step: no memory");
}

ls_value lsi_sum_variable(ls_graph *g, const char *name, ls_shape shape)
{
    const char *full = ls_arena_printf(g->arena, "accumulated.%s", name);

    if (full == NULL) return ls_graph_fail(g, LS_NOMEM, "step: no memory");
    return ls_graph_variable(g, full, LS_VAR_ACCUMULATED, LS_F32, shape, (ls_init){LS_INIT_CONST, 0});
}

void lsi_add_to_sum(ls_graph *g, ls_value sum, ls_value x, ls_value weight)
{
    const ls_value next = ls_accumulate(sum, x, ls_graph_scalar(g, "gradient.keep"), weight);
    int32_t var;

    if (!ls_value_ok(next)) return;
    var = g->values[sum.id]->var;
    ls_graph_advance(g, var, next);
    g->vars[var]->moved = true;
}

void lsi_cut(ls_var *v, const ls_strategy *how, ls_shape whole)
{
    v->home = LS_HOME_SHARDED;
    v->whole = whole;
    v->pieces = how->pieces;
    v->group = how->group;
}

int32_t ls_gathered_variable(const ls_graph *g, int32_t value)
{
    const ls_vinfo *v = g->values[value];

    if (v->var < 0 && v->node >= 0 && g->nodes[v->node]->op == &ls_op_cast)
        v = g->values[g->nodes[v->node]->in[0]];
    return v->var;
}

ls_value lsi_gathered(ls_value pieces, ls_shape whole)
{
    if (!ls_value_ok(pieces)) return pieces;
    return ls_reshape(ls_prefix(pieces, ls_shape_count(whole)), whole);
}
