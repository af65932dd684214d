/* differentiate.c: gradients in the places where a trial asked for them.
 *
 * Needs: everything that changes what a loss is made of has been done (split, sync_norm).  Leaves: no
 * `gradients`, and further nodes in their places.  They are expanded from the first to the last, so that the
 * gradient of a gradient sees plain ops.
 *
 * Where weights are gathered (shard.c), gradients of a loss gather them again, unless the strategy keeps
 * them. */
#include <string.h>

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

/* -- weights that are gathered again ------------------------------------------------------------------------
 */

/* Values that gradients read, and what they read in their places. */
typedef struct regathering {
    ls_graph *g;
    int32_t last; /* the gather that is not made again; -1: all are */
    int32_t (*pairs)[2];
    int32_t n, cap;
} regathering;

static bool is_gather(const ls_graph *g, const ls_node *n)
{
    const int32_t var = n->op == &ls_op_all_gather_wait ? ls_gathered_variable(g, n->in[1]) : -1;

    return var >= 0 && g->vars[var]->home == LS_HOME_SHARDED && g->vars[var]->role == LS_VAR_PARAM;
}

static int32_t last_gather(const ls_graph *g)
{
    int32_t last = -1;

    for (int32_t i = 0; i < g->n_nodes; i++)
        if (is_gather(g, g->nodes[i])) last = i;
    return last;
}

static void note(regathering *r, int32_t from, ls_value to)
{
    if (!ls_value_ok(to)) return;
    if (r->n == r->cap) {
        const int32_t cap = 2 * r->cap + 64;
        int32_t(*more)[2] = ls_arena_alloc(r->g->arena, sizeof *more * (size_t)cap);
        if (more == NULL) {
            lsi_no_memory(r->g);
            return;
        }
        if (r->n > 0) memcpy(more, r->pairs, sizeof *more * (size_t)r->n);
        r->pairs = more;
        r->cap = cap;
    }
    r->pairs[r->n][0] = from;
    r->pairs[r->n++][1] = to.id;
}

static ls_value known(const regathering *r, ls_value x)
{
    for (int32_t i = 0; i < r->n; i++)
        if (r->pairs[i][0] == x.id) return (ls_value){r->g, r->pairs[i][1]};
    return x;
}

/* A piece that is gathered once more; in 16 bits it need not wait in memory. */
static ls_value piece_again(ls_graph *g, int32_t value)
{
    const ls_node *n = g->values[value]->var < 0 ? g->nodes[g->values[value]->node] : NULL;
    ls_value y;

    if (n == NULL) return (ls_value){g, value};
    y = ls_graph_add(g, n->op, 1, &(ls_value){g, n->in[0]}, n->attr);
    if (ls_value_ok(y)) g->values[y.id]->category = LS_CAT_WEIGHT;
    return y;
}

/* The same gather once more. */
static void gather_again(regathering *r, const ls_node *wait)
{
    ls_graph *g = r->g;
    const int n = wait->n_out;
    ls_value *x = ls_arena_alloc(g->arena, sizeof *x * (size_t)(2 * n + 1)), all;
    ls_collective_attr attr = *(const ls_collective_attr *)wait->attr;

    if (x == NULL) {
        lsi_no_memory(g);
        return;
    }
    for (int k = 0; k < n; k++) x[k] = piece_again(g, wait->in[1 + k]);
    attr.bucket = -1;
    all = ls_all_gather(n, x, attr, x + n);
    for (int k = 0; k < n && ls_value_ok(all); k++) {
        g->values[ls_graph_out(all, k).id]->category = LS_CAT_WEIGHT;
        note(r, wait->out[k], ls_graph_out(all, k));
    }
}

/* What lies between a gather and the ops that read weights. */
static bool only_shapes(const ls_op *op)
{
    return (op->flags & LS_OP_VIEW) != 0 || op == &ls_op_slice || op == &ls_op_cast || op == &ls_op_transpose;
}

static ls_value again(void *ctx, ls_value x)
{
    regathering *r = ctx;
    const int32_t made_by = ls_value_ok(x) ? r->g->values[x.id]->node : -1;
    const ls_node *n = made_by >= 0 ? r->g->nodes[made_by] : NULL;
    ls_value y = known(r, x), from;

    if (n == NULL || y.id != x.id || !lsi_sound(r->g)) return y;
    if (is_gather(r->g, n) && made_by != r->last) {
        gather_again(r, n);
        return known(r, x);
    }
    if (!only_shapes(n->op)) return x;
    from = again(r, (ls_value){r->g, n->in[0]});
    if (from.id == n->in[0] || !ls_value_ok(from)) return x;
    y = ls_graph_add(r->g, n->op, 1, &from, n->attr);
    if (ls_value_ok(y)) r->g->values[y.id]->category = LS_CAT_WEIGHT;
    note(r, x.id, y);
    return y;
}

/* -- the pass ---------------------------------------------------------------------------------------------
 */

static bool expand(void *ctx, ls_graph *to, const ls_node *n, const ls_value *in, ls_value *out)
{
    const ls_strategy *how = ctx;
    const ls_gradients_attr *a = n->attr;
    const ls_value none = {to, -1}, *x;
    regathering r = {.g = to};
    ls_autodiff_how rules = {0};

    if (n->op != &ls_op_gradients) return false;
    x = in + (a->seeded ? 2 : 1);
    rules.wide = a->wide;
    /* What is no ls_minimise may be differentiated again, and that would lose its way to the weights. */
    if (how->sharding == LS_SHARD_WEIGHTS && how->regather != LS_REGATHER_NONE && a->seeded) {
        r.last = how->regather == LS_REGATHER_ALL ? -1 : last_gather(to);
        rules.again = again;
        rules.ctx = &r;
    }
    ls_autodiff_with(in[0], a->seeded ? in[1] : none, a->n, x, &rules, out);
    for (int i = 0; i < a->n && lsi_sound(to); i++) {
        if (!ls_value_ok(out[i]))
            fail_without(to, a->seeded, x[i]);
        else if (a->seeded)
            to->values[out[i].id]->category = LS_CAT_GRADIENT;
    }
    return true;
}

void ls_pass_differentiate(ls_graph *g, const ls_strategy *how)
{
    ls_strategy copy = *how;

    ls_graph_rewrite(g, expand, &copy);
}
