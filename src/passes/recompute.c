/* recompute.c: activations of units that are dropped after the forward pass and made again in the backward.
 *
 * Needs: gradients as nodes, with the numbers of units and losses (differentiate).  Leaves: clones of forward
 * nodes right before the first gradient node of their unit, which wait for the gradient that arrives there
 * (ls_node.after); the unit's gradient nodes read them.
 *
 * A value is dropped when only its own unit reads it, forward and backward: what others read, a unit's result
 * above all, is there anyway until they have.  What is needed of dropped values is made from what is kept, as
 * far back as the unit goes.  Each backward pass (of an ls_minimise) has clones of its own: values kept from
 * one to the next would be what was to be saved.  Clones are the same ops on the same values, so that results
 * have the same bits; draws have the same key, and so the same numbers. */
#include "passes/recompute.h"

#include <string.h>

#include "passes/lower_internal.h"

enum { SMALL = 16 }; /* a second output that is so many times smaller than the first is kept: statistics */

typedef struct remaking {
    const ls_graph *g;
    const ls_strategy *how;
    int32_t n_nodes, n_values, n_units;
    bool *dropped; /* per value */
    /* A row for each loss. */
    bool *cloned;   /* per node */
    int32_t *clone; /* per value: its clone in the new graph, or -1 */
    int32_t *first; /* per unit: its first gradient node, or -1 */
    int32_t *after; /* per unit: the value that arrives there, or -1: nothing is made again */
    int32_t
        *moved; /* per node of the old graph that stands earlier in the new: its first value there, or -1 */
    int32_t *stack;
} remaking;

static size_t of_node(const remaking *r, int32_t loss, int32_t node)
{
    return (size_t)(loss - 1) * (size_t)r->n_nodes + (size_t)node;
}

static size_t of_value(const remaking *r, int32_t loss, int32_t value)
{
    return (size_t)(loss - 1) * (size_t)r->n_values + (size_t)value;
}

static size_t of_unit(const remaking *r, int32_t loss, int32_t unit)
{
    return (size_t)(loss - 1) * (size_t)r->n_units + (size_t)(unit - 1);
}

static bool is_gradient(const ls_node *n)
{
    return !n->dead && n->loss > 0 && n->unit > 0;
}

/* -- what is dropped --------------------------------------------------------------------------------------
 */

/* A gather of weights that ranks have pieces of. */
static bool is_gather(const ls_graph *g, const ls_node *n)
{
    const int32_t var = n->op == &ls_op_all_gather_wait ? ls_gathered_variable(g, n->in[1]) : -1;

    return var >= 0 && g->vars[var]->role == LS_VAR_PARAM;
}

/* What lies between a gather and the ops that read weights. */
static bool only_shapes(const ls_op *op)
{
    return (op->flags & LS_OP_VIEW) != 0 || op == &ls_op_slice || op == &ls_op_cast || op == &ls_op_transpose;
}

/* Whether the value is a weight that has been gathered, in any shape or type. */
static bool is_gathered(const ls_graph *g, int32_t value)
{
    for (int32_t node; (node = g->values[value]->node) >= 0; value = g->nodes[node]->in[0]) {
        if (is_gather(g, g->nodes[node])) return true;
        if (!only_shapes(g->nodes[node]->op)) return false;
    }
    return false;
}

/* Whether the node may run twice.  Running statistics move on once: a batch norm is cloned without them. */
static bool can_run_again(const remaking *r, const ls_node *n)
{
    const unsigned once = LS_OP_UPDATE | LS_OP_COLLECTIVE | LS_OP_EFFECT | LS_OP_WAIT;

    if (!ls_units_have(&r->how->recompute, n->unit)) return false;
    return !(n->op->flags & once) || n->op == &ls_op_batch_norm;
}

static double bytes_of(const ls_graph *g, int32_t value)
{
    const ls_vinfo *v = g->values[value];

    return (double)(ls_shape_count(v->shape) * (int64_t)ls_dtype_size(v->dtype));
}

static bool is_small(const ls_graph *g, const ls_node *n, int k)
{
    return k > 0 && SMALL * bytes_of(g, n->out[k]) <= bytes_of(g, n->out[0]);
}

static bool may_drop(const remaking *r, int32_t value)
{
    const ls_vinfo *v = r->g->values[value];
    const ls_node *n = v->kind == LS_VALUE_NODE ? r->g->nodes[v->node] : NULL;

    if (n == NULL || n->dead || n->loss > 0 || n->unit == 0 || v->fetch || v->var >= 0) return false;
    return can_run_again(r, n) && !is_small(r->g, n, v->out) && !is_gathered(r->g, value);
}

static void find_dropped(const remaking *r)
{
    const ls_graph *g = r->g;

    for (int32_t i = 0; i < r->n_values; i++) r->dropped[i] = may_drop(r, i);
    for (int32_t i = 0; i < r->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        for (int k = 0; !n->dead && k < n->n_in; k++)
            if (r->dropped[n->in[k]] && g->nodes[g->values[n->in[k]]->node]->unit != n->unit)
                r->dropped[n->in[k]] = false;
    }
}

/* -- what is made again -----------------------------------------------------------------------------------
 */

/* Of each unit in each backward pass: where it begins, and the gradient that has arrived by then.  A unit
 * that the loss itself is in has none: what it drops would be made at once. */
static void find_beginnings(const remaking *r)
{
    const ls_graph *g = r->g;

    for (int32_t i = 0; i < r->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        if (!is_gradient(n)) continue;
        const size_t at = of_unit(r, n->loss, n->unit);
        if (r->first[at] < 0) r->first[at] = i;
        for (int k = 0; k < n->n_in; k++) {
            const int32_t made = g->values[n->in[k]]->node;
            if (made < 0 || made >= r->first[at] || g->nodes[made]->loss != n->loss) continue;
            if (g->nodes[made]->unit == n->unit) continue;
            if (r->after[at] < 0 || made > g->values[r->after[at]]->node) r->after[at] = n->in[k];
        }
    }
}

static void need(const remaking *r, int32_t loss, int32_t value, int32_t *n_stack)
{
    const int32_t node = r->g->values[value]->node;

    if (!r->dropped[value] || r->cloned[of_node(r, loss, node)]) return;
    r->cloned[of_node(r, loss, node)] = true;
    r->stack[(*n_stack)++] = node;
}

static void find_needed(const remaking *r)
{
    for (int32_t i = 0; i < r->n_nodes; i++) {
        const ls_node *n = r->g->nodes[i];
        int32_t n_stack = 0;
        if (!is_gradient(n) || r->after[of_unit(r, n->loss, n->unit)] < 0) continue;
        for (int k = 0; k < n->n_in; k++) need(r, n->loss, n->in[k], &n_stack);
        while (n_stack > 0) {
            const ls_node *made = r->g->nodes[r->stack[--n_stack]];
            for (int k = 0; k < made->n_in; k++) need(r, n->loss, made->in[k], &n_stack);
        }
    }
}

/* False, with the error in the graph, when memory runs out. */
static bool study(remaking *r, ls_graph *g, const ls_strategy *how)
{
    const size_t losses = (size_t)g->n_losses + 1, nodes = (size_t)g->n_nodes + 1;
    const size_t values = (size_t)g->n_values + 1, units = (size_t)g->n_units + 1;

    *r =
        (remaking){.g = g, .how = how, .n_nodes = g->n_nodes, .n_values = g->n_values, .n_units = g->n_units};
    r->dropped = ls_arena_alloc(g->arena, sizeof *r->dropped * values);
    r->cloned = ls_arena_alloc(g->arena, sizeof *r->cloned * losses * nodes);
    r->clone = ls_arena_alloc(g->arena, sizeof *r->clone * losses * values);
    r->first = ls_arena_alloc(g->arena, sizeof *r->first * losses * units);
    r->after = ls_arena_alloc(g->arena, sizeof *r->after * losses * units);
    r->moved = ls_arena_alloc(g->arena, sizeof *r->moved * nodes);
    r->stack = ls_arena_alloc(g->arena, sizeof *r->stack * nodes);
    if (r->dropped == NULL || r->cloned == NULL || r->clone == NULL || r->first == NULL || r->after == NULL ||
        r->moved == NULL || r->stack == NULL) {
        lsi_no_memory(g);
        return false;
    }
    memset(r->moved, -1, sizeof *r->moved * nodes);
    memset(r->clone, -1, sizeof *r->clone * losses * values);
    memset(r->first, -1, sizeof *r->first * losses * units);
    memset(r->after, -1, sizeof *r->after * losses * units);
    ls_pass_dead(g); /* what nobody needs is a reader of nothing */
    find_dropped(r);
    find_beginnings(r);
    find_needed(r);
    return true;
}

/* -- making it again --------------------------------------------------------------------------------------
 */

/* What stands for value v of the old graph in a backward pass. */
static ls_value now(const remaking *r, ls_graph *to, int32_t loss, int32_t v)
{
    const int32_t clone = r->clone[of_value(r, loss, v)];

    return (ls_value){to, clone >= 0 ? clone : to->numbers[v]};
}

/* A node of the backward pass that comes earlier than it would, and is not made again in its place. */
static const ls_node *move(const remaking *r, ls_graph *to, const ls_node *old, const ls_value *in)
{
    const ls_value first = ls_graph_add(to, old->op, old->n_in, in, old->attr);
    const ls_node *n;

    if (!ls_value_ok(first)) return NULL;
    n = to->nodes[to->values[first.id]->node];
    for (int k = 0; k < n->n_out; k++) to->values[n->out[k]]->category = r->g->values[old->out[k]]->category;
    r->moved[old->id] = first.id;
    return n;
}

static bool same_pieces(const ls_graph *g, const ls_node *a, const ls_node *b)
{
    for (int k = 1; k < a->n_in; k++)
        if (ls_gathered_variable(g, a->in[k]) != ls_gathered_variable(g, b->in[k])) return false;
    return true;
}

/* The gather of the same pieces in a backward pass, or NULL: it is not made again. */
static const ls_node *gather_of(const remaking *r, int32_t loss, const ls_node *forward)
{
    for (int32_t i = 0; i < r->n_nodes; i++) {
        const ls_node *n = r->g->nodes[i];
        if (n->dead || n->loss != loss || n->op != forward->op || n->n_in != forward->n_in) continue;
        if (same_pieces(r->g, n, forward)) return n;
    }
    return NULL;
}

/* What a gather takes of value v: what makes 16 bits of a piece comes earlier with it. */
static ls_value moved_piece(const remaking *r, ls_graph *to, int32_t v)
{
    const int32_t made_by = r->g->values[v]->node;
    const ls_node *cast;

    if (to->numbers[v] >= 0 || made_by < 0) return (ls_value){to, to->numbers[v]};
    if (r->moved[made_by] >= 0) return (ls_value){to, r->moved[made_by]};
    cast = move(r, to, r->g->nodes[made_by], &(ls_value){to, to->numbers[r->g->nodes[made_by]->in[0]]});
    return (ls_value){to, cast != NULL ? cast->out[0] : -1};
}

/* What a backward pass gathers again, clones read as well; where they are the first, it is gathered for them.
 */
static void gather_for_clones(const remaking *r, ls_graph *to, int32_t loss, const ls_node *forward)
{
    const ls_node *wait = gather_of(r, loss, forward), *start, *made;
    ls_value *in;

    if (wait == NULL) return;
    if (to->numbers[wait->out[0]] < 0 && r->moved[wait->id] < 0) {
        start = r->g->nodes[r->g->values[wait->in[0]]->node];
        in = ls_arena_alloc(to->arena, sizeof *in * (size_t)(wait->n_in + 1));
        if (in == NULL) {
            lsi_no_memory(to);
            return;
        }
        for (int k = 0; k < start->n_in; k++) in[k] = moved_piece(r, to, start->in[k]);
        if (!lsi_sound(to)) return;
        made = move(r, to, start, in);
        if (made == NULL) return;
        for (int k = 1; k < wait->n_in; k++) in[k] = moved_piece(r, to, wait->in[k]);
        in[0] = (ls_value){to, made->out[0]};
        if (move(r, to, wait, in) == NULL) return;
    }
    for (int k = 0; k < wait->n_out; k++)
        r->clone[of_value(r, loss, forward->out[k])] =
            r->moved[wait->id] >= 0 ? r->moved[wait->id] + k : to->numbers[wait->out[k]];
}

/* What a clone reads: clones, weights that the backward pass gathers, or what there is. */
static ls_value read_again(const remaking *r, ls_graph *to, int32_t loss, int32_t v)
{
    const int32_t node = r->g->values[v]->node;
    const ls_node *n = node >= 0 ? r->g->nodes[node] : NULL;
    ls_value from, y;

    if (r->clone[of_value(r, loss, v)] >= 0 || !is_gathered(r->g, v)) return now(r, to, loss, v);
    if (is_gather(r->g, n)) {
        gather_for_clones(r, to, loss, n);
        return now(r, to, loss, v);
    }
    from = read_again(r, to, loss, n->in[0]);
    if (!ls_value_ok(from) || from.id == to->numbers[n->in[0]]) return now(r, to, loss, v);
    y = ls_graph_add(to, n->op, 1, &from, n->attr);
    if (ls_value_ok(y)) r->clone[of_value(r, loss, v)] = y.id;
    return y;
}

static void make_again(const remaking *r, ls_graph *to, int32_t loss, const ls_node *old)
{
    const int n_in = old->op == &ls_op_batch_norm ? 3 : old->n_in;
    ls_value *in = ls_arena_alloc(to->arena, sizeof *in * (size_t)(n_in + 1)), first;
    const char *scope = ls_arena_strdup(to->arena, old->scope);
    ls_node *n;

    if (in == NULL || scope == NULL) {
        lsi_no_memory(to);
        return;
    }
    to->here = old->src;
    to->scope = scope;
    for (int k = 0; k < n_in; k++) in[k] = read_again(r, to, loss, old->in[k]);
    first = ls_graph_add(to, old->op, n_in, in, old->attr);
    if (!ls_value_ok(first)) return;
    n = to->nodes[to->values[first.id]->node];
    n->after = to->numbers[r->after[of_unit(r, loss, old->unit)]];
    for (int k = 0; k < n->n_out; k++)
        if (r->dropped[old->out[k]]) r->clone[of_value(r, loss, old->out[k])] = n->out[k];
}

/* All that the unit's gradient nodes need, before the first of them. */
static void make_unit(const remaking *r, ls_graph *to, const ls_node *n)
{
    const ls_src here = to->here;
    const char *scope = to->scope;

    for (int32_t i = 0; i < r->n_nodes && lsi_sound(to); i++)
        if (r->g->nodes[i]->unit == n->unit && r->cloned[of_node(r, n->loss, i)])
            make_again(r, to, n->loss, r->g->nodes[i]);
    to->here = here;
    to->scope = scope;
}

static bool expand(void *ctx, ls_graph *to, const ls_node *n, const ls_value *in, ls_value *out)
{
    const remaking *r = ctx;
    ls_value *read, first;
    bool differs = false;

    for (int k = 0; r->moved[n->id] >= 0 && k < n->n_out; k++) out[k] = (ls_value){to, r->moved[n->id] + k};
    if (r->moved[n->id] >= 0) return true;
    if (!is_gradient(n)) return false;
    to->backward = true;
    if (r->first[of_unit(r, n->loss, n->unit)] == n->id) make_unit(r, to, n);
    read = ls_arena_alloc(to->arena, sizeof *read * (size_t)(n->n_in + 1));
    if (read == NULL) lsi_no_memory(to);
    for (int k = 0; k < n->n_in && lsi_sound(to); k++) {
        read[k] = now(r, to, n->loss, n->in[k]);
        differs = differs || read[k].id != in[k].id;
    }
    if (differs && lsi_sound(to)) {
        first = ls_graph_add(to, n->op, n->n_in, read, n->attr);
        for (int k = 0; k < n->n_out && lsi_sound(to); k++) {
            out[k] = ls_graph_out(first, k);
            to->values[out[k].id]->category = r->g->values[n->out[k]]->category;
        }
    }
    to->backward = false;
    return differs || !lsi_sound(to);
}

void ls_pass_recompute(ls_graph *g, const ls_strategy *how)
{
    remaking r;

    if (!lsi_sound(g) || g->n_losses == 0 || g->n_units == 0) return;
    if (study(&r, g, how)) ls_graph_rewrite(g, expand, &r);
}

/* -- what it would cost -----------------------------------------------------------------------------------
 */

/* Bytes that backward passes would keep: of each memory once, whoever reads it. */
static void add_bytes(const remaking *r, bool *counted, ls_unit_cost *of)
{
    const ls_graph *g = r->g;

    for (int32_t i = 0; i < r->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        if (!is_gradient(n) || r->after[of_unit(r, n->loss, n->unit)] < 0) continue;
        for (int k = 0; k < n->n_in; k++) {
            const int32_t v = ls_graph_storage(g, n->in[k]);
            if (!r->dropped[n->in[k]] || !r->dropped[v] || counted[v]) continue;
            counted[v] = true;
            of[n->unit - 1].bytes += bytes_of(g, v);
        }
    }
}

void ls_recompute_costs(ls_graph *g, const ls_strategy *how, ls_unit_cost *of)
{
    ls_strategy all = *how;
    bool *counted;
    remaking r;

    all.recompute.all = true;
    for (int32_t i = 0; i < g->n_units; i++) of[i] = (ls_unit_cost){0};
    ls_passes_lower_until(g, how, "differentiate");
    if (!lsi_sound(g) || g->n_losses == 0 || g->n_units == 0 || !study(&r, g, &all)) return;
    counted = ls_arena_alloc(g->arena, sizeof *counted * ((size_t)g->n_values + 1));
    if (counted == NULL) {
        lsi_no_memory(g);
        return;
    }
    add_bytes(&r, counted, of);
    for (int32_t loss = 1; loss <= g->n_losses; loss++)
        for (int32_t i = 0; i < r.n_nodes; i++)
            if (r.cloned[of_node(&r, loss, i)])
                of[g->nodes[i]->unit - 1].flops += ls_node_flops(g, g->nodes[i]);
}
