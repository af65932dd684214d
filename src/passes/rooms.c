/* rooms.c: memory that gathers and scattered sums use one after the other, and how far ahead they begin.
 *
 * Needs: what ranks keep in pieces (shard.c, optimise.c), all nodes in the order of the program.  Leaves: its
 * collectives in rooms, with edges: one begins when the one before it in the room is over; gathers of weights
 * that begin ahead.
 *
 * A gather brings a unit of weights to memory that the ranks of a machine have in common, from where it is
 * copied to each rank's own.  With p units ahead there are p + 1 such rooms, and a unit's gather begins when
 * the unit p before it is there.  Sums of gradients have two, one on its way while the next fills, and so
 * have gathers of what an update has made.  A gradient lies there until its sum has come, and what is
 * gathered lies beside it: so all sums of an update come first, as they do on the wire. */
#include "ops/ops.h"
#include "passes/passes.h"

/* What is in rooms, and the number of the first of each kind. */
typedef enum tenant { WEIGHTS = 1, SUMS = 1024, UPDATED = 2048 } tenant;
enum { IN_TURN = 2 }; /* rooms of the last two */

static bool gathers_weights(const ls_graph *g, const ls_node *n)
{
    const int32_t var = n->op == &ls_op_all_gather_start ? ls_gathered_variable(g, n->in[0]) : -1;

    return var >= 0 && g->vars[var]->role == LS_VAR_PARAM;
}

/* What makes 16 bits of the piece that a gather takes by input k; NULL: it takes the piece itself. */
static ls_node *narrows(const ls_graph *g, const ls_node *start, int k)
{
    const ls_vinfo *v = g->values[start->in[k]];

    return v->var < 0 && v->node >= 0 ? g->nodes[v->node] : NULL;
}

static void begin_at(const ls_graph *g, ls_node *start, int32_t position)
{
    start->position = position;
    for (int k = 0; k < start->n_in; k++)
        if (narrows(g, start, k) != NULL) narrows(g, start, k)->position = position;
}

/* A gather begins when `wait` is over, and no sooner is anything made for it, which would only lie there. */
static void begin_behind(ls_graph *g, const ls_node *wait, const ls_node *start)
{
    ls_graph_order(g, wait->id, start->id, LS_EDGE_OVERWRITE);
    for (int k = 0; k < start->n_in; k++)
        if (narrows(g, start, k) != NULL) ls_graph_order(g, wait->id, narrows(g, start, k)->id, LS_EDGE_HOLD);
}

static bool is_wanted(const ls_graph *g, const ls_node *n, tenant what)
{
    if (n->dead) return false;
    if (what == SUMS) return n->op == &ls_op_reduce_scatter_start;
    return n->op == &ls_op_all_gather_start && gathers_weights(g, n) == (what == WEIGHTS);
}

/* The node that waits for what `start` begins. */
static ls_node *wait_of(const ls_graph *g, const ls_node *start)
{
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i]->dead && g->nodes[i]->n_in > 0 && g->nodes[i]->in[0] == start->out[0])
            return g->nodes[i];
    LS_BUG_IF(true);
    return NULL;
}

/* Behind the last of what makes its inputs. */
static int32_t ready_at(const ls_graph *g, const ls_node *n)
{
    int32_t last = -1;

    for (int k = 0; k < n->n_in; k++) {
        const int32_t producer = g->values[n->in[k]]->node;
        if (producer >= 0 && g->nodes[producer]->n_in > 0 && g->nodes[producer]->position > last)
            last = g->nodes[producer]->position;
    }
    return last >= 0 ? last : n->position;
}

typedef struct pair {
    ls_node *start, *wait;
} pair;

static int32_t list_pairs(const ls_graph *g, tenant what, pair *list)
{
    int32_t n = 0;

    for (int32_t i = 0; i < g->n_nodes; i++)
        if (is_wanted(g, g->nodes[i], what)) list[n++] = (pair){g->nodes[i], wait_of(g, g->nodes[i])};
    return n;
}

static void move_in(const pair *p, int room)
{
    ((ls_collective_attr *)p->start->attr)->room = room;
    ((ls_collective_attr *)p->wait->attr)->room = room;
}

static void place_weights(ls_graph *g, int ahead, pair *list)
{
    const int32_t n = list_pairs(g, WEIGHTS, list);
    int32_t at = n > 0 ? list[0].start->position : 0;

    for (int32_t i = 0; i < n; i++) {
        const int32_t own = list[i].start->position;
        move_in(&list[i], (int)WEIGHTS + i % (ahead + 1));
        if (i > ahead) begin_behind(g, list[i - ahead - 1].wait, list[i].start);
        if (ahead > 0 && i > 0) {
            if (i > ahead) at = list[i - ahead].wait->position;
            if (at < own) begin_at(g, list[i].start, at);
        }
    }
}

/* Waits go where the next wants the room. */
static void place_in_turn(ls_graph *g, tenant what, pair *list)
{
    const int32_t n = list_pairs(g, what, list);

    for (int32_t i = 0; i < n; i++) {
        move_in(&list[i], (int)what + i % IN_TURN);
        if (i < IN_TURN) continue;
        ls_graph_order(g, list[i - IN_TURN].wait->id, list[i].start->id, LS_EDGE_OVERWRITE);
        list[i - IN_TURN].wait->position = ready_at(g, list[i].start);
        list[i - IN_TURN].wait->prompt = true;
    }
}

/* Both lists have room for all pairs.  Each sum comes behind the one two before it. */
static void wait_for_sums(ls_graph *g, pair *list, pair *gathers)
{
    const int32_t n = list_pairs(g, SUMS, list), m = list_pairs(g, UPDATED, gathers);

    for (int32_t i = 0; i < m; i++) {
        int32_t before = 0;
        while (before < n && list[before].wait->id < gathers[i].wait->id) before++;
        for (int32_t k = before > IN_TURN ? before - IN_TURN : 0; k < before; k++)
            ls_graph_order(g, list[k].wait->id, gathers[i].wait->id, LS_EDGE_HOLD);
    }
}

void ls_pass_rooms(ls_graph *g, int ahead)
{
    const size_t most = (size_t)g->n_nodes + 1;
    pair *list = ls_arena_alloc(g->arena, sizeof *list * 2 * most);

    if (list == NULL) {
        ls_graph_fail(g, LS_NOMEM, "rooms pass: no memory");
        return;
    }
    place_weights(g, ahead, list);
    place_in_turn(g, SUMS, list);
    place_in_turn(g, UPDATED, list);
    wait_for_sums(g, list, list + most);
}
