/* differentiate.c: gradients in the places where a trial asked for them.
 *
 * Needs: everything that changes what a loss is made of has been done (split, sync_norm).  Leaves: no
 * `gradients`, and further nodes in their places.  They are expanded from the first to the last, so that the
 * gradient of a gradient sees plain ops. */
#include "passes/autodiff.h"
#include "passes/lower_internal.h"

/* A gradient rule may find that nothing flows, although there is a way from one to the other. */
static void fail_without(ls_graph *g, bool seeded, ls_value x)
{
    const int32_t var = g->values[x.id]->var;

    if (seeded && var >= 0)
        ls_graph_fail(g, LS_INVALID, "ls_minimise: the loss does not depend on the parameter \"%s\"",
                      g->vars[var]->name);
    else
        ls_graph_fail(g, LS_INVALID, "ls_gradient: the first value does not depend on the second");
}

static bool expand(void *ctx, ls_graph *to, const ls_node *n, const ls_value *in, ls_value *out)
{
    const ls_gradients_attr *a = n->attr;
    const ls_value none = {to, -1}, *x;

    (void)ctx;
    if (n->op != &ls_op_gradients) return false;
    x = in + (a->seeded ? 2 : 1);
    ls_autodiff(in[0], a->seeded ? in[1] : none, a->n, x, out);
    for (int i = 0; i < a->n && lsi_sound(to); i++) {
        if (!ls_value_ok(out[i]))
            fail_without(to, a->seeded, x[i]);
        else if (a->seeded)
            to->values[out[i].id]->category = LS_CAT_GRADIENT;
    }
    return true;
}

void ls_pass_differentiate(ls_graph *g)
{
    ls_graph_rewrite(g, expand, NULL);
}
