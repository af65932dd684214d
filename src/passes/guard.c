/* guard.c: updates that are left out because gradients are not finite, and what becomes of the loss scale.
 *
 * For parallel.c and optimise.c, which make sums and optimisers: who looks at gradients, what an optimiser is
 * told, and the node that ends the step. */
#include "passes/lower_internal.h"

/* -- looking ----------------------------------------------------------------------------------------------
 */

bool lsi_guard_note(lsi_guard *guard, ls_value found)
{
    if (!ls_value_ok(found)) return false;
    if (guard->n == LS_GUARD_UPDATES) {
        ls_graph_fail(found.g, LS_UNSUPPORTED,
                      "gradients of at most %d calls of ls_minimise can be looked at; use "
                      "train.on_nonfinite=stop, train.check_gradients=false and another precision",
                      LS_GUARD_UPDATES);
        return false;
    }
    guard->found[guard->n++] = found.id;
    return true;
}

/* Which parameter it was differs between ranks, and sums have no smallest: a rank that has found nothing
 * itself knows another's number if that is the only one, else that there are several, and none of a parameter
 * is so large.  Whether there is one is the same everywhere. */
ls_value lsi_guard_everywhere(ls_value found)
{
    ls_graph *g = found.g;
    const ls_value none = ls_fill(g, LS_SHAPE_SCALAR, LS_F32, 0),
                   one = ls_fill(g, LS_SHAPE_SCALAR, LS_F32, 1),
                   several = ls_fill(g, LS_SHAPE_SCALAR, LS_F32, 1 << 24);
    ls_value in[3], first, count, others;

    if (!ls_value_ok(found)) return found;
    first = ls_all_reduce(one, 2, (const ls_value[]){ls_sign(found), found},
                          (ls_collective_attr){.bucket = -1, .plain = 2}, in);
    if (!ls_value_ok(first)) return first;
    count = ls_graph_out(first, 0);
    others = ls_mul(ls_sign(count), ls_either(count, one, ls_graph_out(first, 1), several));
    return ls_either(found, none, others, found);
}

/* -- what an optimiser is told ----------------------------------------------------------------------------
 */

static ls_value skipped_of(ls_graph *g)
{
    return ls_graph_variable(g, LS_SKIPPED_VAR, LS_VAR_OPTIMIZER, LS_I32, LS_SHAPE(1),
                             (ls_init){LS_INIT_CONST, 0});
}

ls_value lsi_guard_rate(ls_value lr)
{
    ls_graph *g = lr.g;
    const char *again = ls_arena_printf(g->arena, LS_RATE_AGAIN "%s", g->values[lr.id]->name);

    if (again == NULL) return ls_graph_fail(g, LS_NOMEM, "ls_minimise: no memory");
    return ls_either(skipped_of(g), ls_graph_scalar(g, LS_SKIPS_KNOWN), lr, ls_graph_scalar(g, again));
}

/* -- the end of a step ------------------------------------------------------------------------------------
 */

/* The variables of a step change with its last update. */
static ls_rescale_attr rule_of(const ls_graph *g, const ls_strategy *how)
{
    const bool counts = how->guard == LS_GUARD_SKIP && lsi_is_last(g, how);

    if (!counts || how->loss_scale == 0 || how->scale_growth == 0) return (ls_rescale_attr){.counts = counts};
    return (ls_rescale_attr){.counts = true,
                             .dynamic = true,
                             .growth = how->scale_growth,
                             .least = LS_SCALE_LEAST,
                             .most = LS_SCALE_MOST};
}

void lsi_guard_conclude(ls_graph *g, const ls_strategy *how, const lsi_guard *guard)
{
    const ls_rescale_attr a = rule_of(g, how);
    ls_value in[3 + LS_GUARD_UPDATES + 1], first;
    int n = 0, moved = 0;

    if (guard->n == 0 || !lsi_sound(g)) return;
    g->scope = "";
    in[n++] = lsi_loss_scale(g, how);
    if (a.counts) in[n++] = skipped_of(g);
    if (a.dynamic)
        in[n++] = ls_graph_variable(g, LS_GOOD_VAR, LS_VAR_OPTIMIZER, LS_I32, LS_SHAPE(1),
                                    (ls_init){LS_INIT_CONST, 0});
    if (how->stage > 0) in[n++] = ls_graph_scalar(g, LS_GUARD_BEFORE);
    for (int i = 0; i < guard->n; i++) in[n++] = (ls_value){g, guard->found[i]};
    first = ls_rescale(n, in, &a);
    if (!ls_value_ok(first)) return;
    if (a.dynamic) ls_graph_advance(g, g->values[in[0].id]->var, ls_graph_out(first, moved++));
    if (a.counts) ls_graph_advance(g, g->values[in[1].id]->var, ls_graph_out(first, moved++));
    if (a.dynamic) ls_graph_advance(g, g->values[in[2].id]->var, ls_graph_out(first, moved++));
    ls_graph_fetch(ls_graph_out(first, moved), LS_GUARD_REPORT_NAME);
}
