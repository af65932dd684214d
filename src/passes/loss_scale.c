/* loss_scale.c: losses times the loss scale.
 *
 * Needs: `gradients` and `update` as the trial recorded them.  Leaves: their seeds and divisors times the
 * scale, which is a constant, or a variable that changes with the step (guard.c): gradients are large enough
 * for the low type on their way, and optimisers divide them by it again. */
#include "passes/lower_internal.h"

ls_value lsi_loss_scale(ls_graph *g, const ls_strategy *how)
{
    if (how->loss_scale == 0) return ls_fill(g, LS_SHAPE_SCALAR, LS_F32, 1);
    if (how->scale_growth == 0) return ls_fill(g, LS_SHAPE_SCALAR, LS_F32, how->loss_scale);
    return ls_graph_variable(g, LS_SCALE_VAR, LS_VAR_OPTIMIZER, LS_F32, LS_SHAPE_SCALAR,
                             (ls_init){LS_INIT_CONST, how->loss_scale});
}

typedef struct scaling {
    const ls_strategy *how;
    int32_t from, product; /* that belong together; -1: none yet */
} scaling;

/* All losses of a step have one seed, and one product with the scale. */
static ls_value scaled(scaling *s, ls_value x)
{
    if (s->from != x.id) {
        s->from = x.id;
        s->product = ls_mul(x, lsi_loss_scale(x.g, s->how)).id;
    }
    return (ls_value){x.g, s->product};
}

static bool expand(void *ctx, ls_graph *to, const ls_node *n, const ls_value *in, ls_value *out)
{
    const bool gradients = n->op == &ls_op_gradients && ((const ls_gradients_attr *)n->attr)->seeded;
    ls_value *own, first;

    if (!gradients && n->op != &ls_op_update) return false;
    own = ls_arena_alloc(to->arena, sizeof *own * (size_t)(n->n_in + 1));
    if (own == NULL) {
        lsi_no_memory(to);
        return false;
    }
    for (int k = 0; k < n->n_in; k++) own[k] = in[k];
    own[gradients ? 1 : (int)LS_UPDATE_SCALE] = scaled(ctx, own[gradients ? 1 : (int)LS_UPDATE_SCALE]);
    if (!lsi_sound(to)) return false;
    first = ls_graph_add(to, n->op, n->n_in, own, n->attr);
    for (int k = 0; k < n->n_out; k++) out[k] = ls_graph_out(first, k);
    return true;
}

void ls_pass_loss_scale(ls_graph *g, const ls_strategy *how)
{
    scaling s = {how, -1, -1};

    ls_graph_rewrite(g, expand, &s);
}
