/* turns.c: one order in which ranks start collectives, and one in which they wait for them.
 *
 * Needs: the program, with all barriers and rooms.  Leaves: edges of the kind turn, from each start to the
 * next one and from each wait, or barrier, to the next one.
 *
 * Ranks do not run the same plans.  At the end of an epoch some have fewer samples than others or none, and
 * what a device fuses differs with the batch; machines may have different devices.  But whoever comes to
 * waits in one order never waits for ever.  Of all ranks that wait, look at the one whose collective has the
 * first turn: the rank that it waits for is at a later one, has therefore waited for this one, and had to
 * start it before that.  Starts in one order are what a transport needs that knows collectives by their
 * turn.
 *
 * The order is the scheduler's own over the program, before a device has its say: sums as gradients are made,
 * gathers as weights are needed, each as far ahead as rooms let them, and all that read a variable before it
 * is updated.  So it costs no time, does not know the
 * batch, and is in no circle with the edges that are there; passes behind this one look at edges before they
 * make one node of several.
 *
 * A model may be built otherwise for batches of another size, after all.  So the sequence has a hash, and a
 * plan that is to run beside others (ls_strategy.turns) and has another one is refused.  The machine has a
 * say, too: one with a single rank has no barriers.  What is left without them, the waits for others, has a
 * hash that all ranks compare before the first step (ls_graph.waits). */
#include <string.h>
#include <xxhash.h>

#include "ops/ops.h"
#include "passes/check_internal.h"
#include "passes/lower.h"
#include "passes/passes.h"

enum { TEXT = 256 };

static bool has_turn(const ls_node *n, bool starts)
{
    if (n->dead || !(n->op->flags & LS_OP_COLLECTIVE)) return false;
    if (starts) return n->op->coll_op == LS_COLL_OP_START;
    return n->op->coll_op == LS_COLL_OP_WAIT || n->op->coll_op == LS_COLL_OP_WHOLE;
}

static uint64_t add(uint64_t sum, const void *bytes, size_t n)
{
    return XXH3_64bits_withSeed(bytes, n, sum);
}

static uint64_t add_text(uint64_t sum, const char *text)
{
    return add(sum, text, strlen(text) + 1);
}

/* What the value, or what it is a part of, was made of: its maker's first input; -1: nobody made it. */
static int32_t source_of(const ls_graph *g, int32_t value)
{
    const int32_t node = g->values[value]->node;

    return node >= 0 && g->nodes[node]->n_in > 0 ? g->nodes[node]->in[0] : -1;
}

/* Per value, the name of the variable that an optimiser updates by it, or by a piece of it. */
static void find_updated(const ls_graph *g, const char **updated)
{
    enum { WEIGHTS = 3 }; /* the first of an optimiser's inputs that is one */

    for (int32_t i = 0; i < g->n_values; i++) updated[i] = "";
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        if (n->dead || !ls_optim_is(n->op)) continue;
        const int all = ((const ls_optim_attr *)n->attr)->n;
        for (int k = WEIGHTS; k < WEIGHTS + all; k++) {
            int32_t weight = n->in[k], sum = n->in[k + all];
            while (weight >= 0 && g->values[weight]->var < 0) weight = source_of(g, weight);
            if (weight < 0) continue;
            updated[sum] = g->vars[g->values[weight]->var]->name;
            while (source_of(g, sum) >= 0 &&
                   !(g->nodes[g->values[sum]->node]->op->flags & LS_OP_COLLECTIVE)) {
                sum = source_of(g, sum);
                updated[sum] = g->vars[g->values[weight]->var]->name;
            }
        }
    }
}

/* What the node does, with which tensors. */
static uint64_t add_turn(const ls_graph *g, const ls_node *n, const char *const *updated, uint64_t sum)
{
    char text[TEXT] = "";

    sum = add_text(sum, n->op->name);
    if (n->op->attr_text != NULL) n->op->attr_text(n->attr, text, sizeof text);
    sum = add_text(sum, text);
    for (int k = 0; k < n->n_in; k++) {
        const ls_vinfo *v = g->values[n->in[k]];
        const int64_t type[] = {v->dtype, ls_shape_count(v->shape)};
        const int32_t var = ls_gathered_variable(g, n->in[k]);
        sum = add_text(add(sum, type, sizeof type), var >= 0 ? g->vars[var]->name : "");
    }
    for (int k = 0; k < n->n_out; k++) sum = add_text(sum, updated[n->out[k]]);
    return sum;
}

/* Without what the machine has to do with it: barriers of its ranks, pieces of updates that they share. */
static uint64_t add_wait(const ls_graph *g, const ls_node *n, uint64_t sum)
{
    int64_t what[] = {((const ls_collective_attr *)n->attr)->bucket, n->n_out, 0};

    for (int k = 0; k < n->n_out; k++) what[2] += ls_shape_count(g->values[n->out[k]]->shape);
    return add(add_text(sum, n->op->name), what, sizeof what);
}

static void one_after_the_other(ls_graph *g, const ls_schedule *s, const char *const *updated, bool starts)
{
    int32_t last = -1;

    for (int32_t i = 0; i < s->n; i++) {
        const int32_t node = s->order[i];
        if (!has_turn(g->nodes[node], starts)) continue;
        if (last >= 0) ls_graph_order(g, last, node, LS_EDGE_TURN);
        g->turns = add_turn(g, g->nodes[node], updated, g->turns);
        if (g->nodes[node]->op->coll_op == LS_COLL_OP_WAIT) g->waits = add_wait(g, g->nodes[node], g->waits);
        last = node;
    }
}

/* -- readers before updates ---------------------------------------------------------------------------------
 */

/* Readers of what node `update` writes over come before `first`, unless they come after it already: those
 * will read copies (versions.c). */
static ls_status hold_update(ls_graph *g, int32_t update, int32_t first, ls_err *err)
{
    const ls_node *n = g->nodes[update];
    lsi_relation r = {0};
    ls_status st = lsi_relation_make(&r, g, NULL, err);

    for (int k = 0; k < n->n_out && st == LS_OK; k++) {
        const int in = n->op->alias(n->n_in, n->attr, k);
        const int32_t old = in >= 0 ? ls_graph_storage(g, n->in[in]) : -1;
        for (int32_t i = 0; in >= 0 && i < g->n_nodes; i++) {
            const ls_node *reader = g->nodes[i];
            if (reader->dead || i == update || i == first || (reader->op->flags & LS_OP_VIEW)) continue;
            for (int j = 0; j < reader->n_in; j++)
                if (ls_graph_storage(g, reader->in[j]) == old && !lsi_before(&r, first, i))
                    ls_graph_order(g, i, first, LS_EDGE_OVERWRITE);
        }
    }
    lsi_relation_release(&r);
    return st;
}

/* As versions.c will have it, one update after the other. */
static ls_status hold_updates(ls_graph *g, ls_err *err)
{
    const int32_t n_edges = g->n_edges;
    ls_status st = LS_OK;

    for (int32_t i = 0; i < g->n_nodes && st == LS_OK; i++) {
        if (g->nodes[i]->dead || !(g->nodes[i]->op->flags & LS_OP_UPDATE)) continue;
        st = hold_update(g, i, i, err);
        for (int32_t e = 0; e < n_edges && st == LS_OK; e++)
            if (g->edges[e].to == i && g->edges[e].kind == LS_EDGE_BARRIER)
                st = hold_update(g, i, g->edges[e].from, err);
    }
    return st;
}

/* The order for which all of that holds; edges are again what they were. */
static ls_status find_order(ls_graph *g, ls_schedule *s, ls_err *err)
{
    const int32_t n_edges = g->n_edges;
    ls_status st = hold_updates(g, err);

    if (st == LS_OK) st = ls_pass_schedule(g, s, err);
    g->n_edges = n_edges;
    return st;
}

void ls_pass_turns(ls_graph *g, const ls_strategy *how)
{
    ls_schedule s = {0};
    ls_err err = {0};
    const char **updated = ls_arena_alloc(g->arena, sizeof *updated * ((size_t)g->n_values + 1));

    if (g->err.status != LS_OK) return;
    if (updated == NULL) {
        ls_graph_fail(g, LS_NOMEM, "turns pass: no memory");
        return;
    }
    find_updated(g, updated);
    if (find_order(g, &s, &err) != LS_OK) {
        ls_graph_fail(g, err.status, "%s", err.text);
        return;
    }
    one_after_the_other(g, &s, updated, true);
    one_after_the_other(g, &s, updated, false);
    ls_schedule_release(&s);
    if (how->turns != 0 && how->turns != g->turns)
        ls_graph_fail(
            g, LS_UNSUPPORTED,
            "with a batch of this size the model's step has other collectives than with the usual one, or "
            "has them in another order, and ranks would wait for each other for ever; choose "
            "data.train_range "
            "and the batch so that all batches have the usual size");
}
