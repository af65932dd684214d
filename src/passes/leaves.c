/* leaves.c: what one shard adds to the sums of all (reproducible mode).
 *
 * Needs: updates and pools of one stage, with gradients as nodes (split, differentiate).  Leaves: in their
 * places leaves of the tree over shards, one per update and one for statistics and metrics; parallel.c makes
 * the other end, the sums, in the plan of the update.
 *
 * Nothing of a shard outlives its plan but what it gives: which thread of which rank computes it, and when,
 * changes no bit. */
#include <string.h>

#include "passes/lower_internal.h"

static void give(ls_graph *g, const ls_strategy *how, int number, ls_value weight, int n, const ls_value *x)
{
    const ls_collective_attr attr = {.bucket = number, .shards = how->shards};
    ls_value *in = ls_arena_alloc(g->arena, sizeof *in * (size_t)(n + 2));

    if (in == NULL) lsi_no_memory(g);
    if (lsi_sound(g)) ls_all_reduce_leaf(weight, ls_graph_scalar(g, "shard"), n, x, attr, in);
}

/* Variables stay as they are: the update is another plan's. */
static bool expand(void *ctx, ls_graph *to, const ls_node *n, const ls_value *in, ls_value *out)
{
    const ls_strategy *how = ctx;
    const ls_value weight = ls_graph_scalar(to, "gradient.weight");

    if (n->op == &ls_op_update) {
        give(to, how, ((const ls_update_attr *)n->attr)->number, weight, n->n_out,
             in + LS_UPDATE_W + n->n_out);
        for (int k = 0; k < n->n_out; k++) out[k] = in[LS_UPDATE_W + k];
    } else if (n->op == &ls_op_keep) {
        ls_value x[2];
        const ls_value counts = lsi_keep_leaf(to, how, in, x);
        give(to, how, ((const ls_keep_attr *)n->attr)->number, counts, 2, x);
        out[0] = in[LS_KEEP_POOL];
        out[1] = in[LS_KEEP_FILLED];
    } else {
        return false;
    }
    return true;
}

/* Statistics and metrics; ranks add their control numbers where the sum starts. */
static void give_rest(ls_graph *g, const ls_strategy *how)
{
    const size_t most = (size_t)g->n_vars + (size_t)g->n_values + 1;
    ls_value *x = ls_arena_alloc(g->arena, most * sizeof *x);
    int32_t *vars = ls_arena_alloc(g->arena, most * sizeof *vars);
    int n, n_buffers;

    if (x == NULL || vars == NULL) lsi_no_memory(g);
    if (!lsi_sound(g)) return;
    n = lsi_list_rest(g, how, vars, x, &n_buffers);
    for (int i = n_buffers; i < n; i++) g->values[x[i].id]->fetch = false;
    if (lsi_is_last(g, how)) x[n++] = ls_fill(g, LS_SHAPE(LS_CONTROL_SLOTS), LS_F32, 0);
    if (n > 0) give(g, how, how->stage, ls_graph_scalar(g, "gradient.weight"), n, x);
}

void ls_pass_leaves(ls_graph *g, const ls_strategy *how)
{
    ls_strategy copy = *how;

    if (!lsi_sound(g)) return;
    ls_graph_rewrite(g, expand, &copy);
    if (lsi_sound(g)) give_rest(g, how);
}
