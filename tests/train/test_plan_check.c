/* test_plan_check.c: the proofs about plans accept every trial's step as the passes leave it, and refuse it
 * when any control edge is taken away, when updates of shared variables are ordered as they once were, when
 * the copy of an old version is not held back, when collectives are not whole, and when memory is given to
 * two values that live at once. */
#include <stdio.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "check.h"
#include "ops/ops.h"
#include "passes/check.h"
#include "passes/lower.h"
#include "small_trials.h"

/* The trial's step for one of two ranks that share their variables, after the passes that make edges. */
static ls_graph *step_of(const small_trial *l, int64_t bucket_bytes)
{
    const ls_strategy how = {.ranks = true, .share_from = 1, .bucket_bytes = bucket_bytes, .update = 4};
    ls_graph *g = small_trial_record(l);
    ls_err err = {0};

    ls_passes_lower(g, &how);
    ls_pass_dead(g);
    ls_pass_pieces(g, 0, 2);
    ls_pass_turns(g, &how);
    ls_pass_fuse(g, lsi_cpu_fusions, NULL);
    ls_pass_dead(g);
    ls_pass_versions(g);
    REQUIRE_OK(ls_graph_status(g, &err), &err);
    return g;
}

static const small_trial *trial(const char *name)
{
    for (const small_trial *l = small_trials; l->trial != NULL; l++)
        if (strcmp(l->trial, name) == 0) return l;
    REQUIRE(false);
    return NULL;
}

static void every_trial_is_proved(void)
{
    for (const small_trial *l = small_trials; l->trial != NULL; l++) {
        ls_graph *g = step_of(l, 50000);
        ls_err err = {0};
        int barriers = 0;
        for (int32_t i = 0; i < g->n_nodes; i++)
            barriers += !g->nodes[i]->dead && g->nodes[i]->op == &ls_op_barrier;
        CHECK(barriers >= 2); /* there is something to prove */
        if (!CHECK(ls_check_variables(g, &err) == LS_OK)) printf("  %s: %s\n", l->trial, err.text);
        if (!CHECK(ls_check_collectives(g, &err) == LS_OK)) printf("  %s: %s\n", l->trial, err.text);
        ls_graph_destroy(g);
    }
}

/* -- missing edges ----------------------------------------------------------------------------------------
 */

/* Takes edge i out, as if it were one of a node to itself; put_back undoes it. */
static ls_edge take_out(ls_graph *g, int32_t i)
{
    const ls_edge e = g->edges[i];

    g->edges[i] = g->edges[--g->n_edges];
    return e;
}

static void put_back(ls_graph *g, int32_t i, ls_edge e)
{
    g->edges[g->n_edges++] = g->edges[i];
    g->edges[i] = e;
}

/* Whether other edges imply the same: a path from one end to the other. */
static bool implied(const ls_graph *g, const ls_edge *e, bool *seen, int32_t node)
{
    const ls_node *n = g->nodes[node];

    if (node == e->from) return true;
    if (seen[node] || n->dead) return false;
    seen[node] = true;
    for (int k = 0; k < n->n_in; k++)
        if (g->values[n->in[k]]->node >= 0 && implied(g, e, seen, g->values[n->in[k]]->node)) return true;
    for (int32_t i = 0; i < g->n_edges; i++)
        if (g->edges[i].to == node && implied(g, e, seen, g->edges[i].from)) return true;
    return false;
}

/* Every edge of the trial's step by itself: without it the proof fails, unless the others imply it. */
static void each_edge_is_needed(const char *name, int *kinds_seen)
{
    ls_graph *g = step_of(trial(name), 50000);
    bool *seen = ls_arena_alloc(g->arena, (size_t)g->n_nodes + 1);

    for (int32_t i = 0; i < g->n_edges; i++) {
        const ls_edge e = take_out(g, i);
        const bool live =
            !g->nodes[e.from]->dead && !g->nodes[e.to]->dead && !(g->nodes[e.from]->op->flags & LS_OP_VIEW);
        ls_err err = {0};
        ls_status st;
        memset(seen, 0, (size_t)g->n_nodes);
        if (live && !implied(g, &e, seen, e.to)) {
            st = e.kind == LS_EDGE_TURN ? ls_check_collectives(g, &err) : ls_check_variables(g, &err);
            kinds_seen[e.kind]++;
            if (!CHECK(st == LS_INVALID))
                printf("  %s: accepted without the %s edge from node %d (%s) to node %d (%s)\n", name,
                       ls_edge_kind_name(e.kind), (int)e.from, g->nodes[e.from]->op->name, (int)e.to,
                       g->nodes[e.to]->op->name);
            else
                CHECK_CONTAINS(err.text,
                               e.kind == LS_EDGE_TURN ? "plan check: node" : "plan check: variable \"");
        }
        put_back(g, i, e);
    }
    ls_graph_destroy(g);
}

static void a_missing_edge_is_found(void)
{
    static const ls_edge_kind wanted[] = {LS_EDGE_OVERWRITE, LS_EDGE_BARRIER, LS_EDGE_COMMIT, LS_EDGE_TURN};
    int kinds[LS_EDGE_TURN + 1] = {0};

    each_edge_is_needed("mnist", kinds);
    each_edge_is_needed("aae", kinds);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (!CHECK(kinds[wanted[i]] > 0)) printf("  no %s edge was tried\n", ls_edge_kind_name(wanted[i]));
}

/* -- mistakes that were made ------------------------------------------------------------------------------
 */

/* As it once was: ranks met after the last bucket's update, and what read an earlier bucket's new weights was
 * only put behind that bucket's own.  The AAE's generator reads the critic's. */
static void the_old_order_of_the_aae_is_refused(void)
{
    ls_graph *g = step_of(trial("aae"), 50000);
    ls_err err = {0};
    int32_t kept = 0;

    for (int32_t i = 0; i < g->n_edges; i++)
        if (g->edges[i].kind != LS_EDGE_COMMIT) g->edges[kept++] = g->edges[i];
    REQUIRE(kept < g->n_edges);
    g->n_edges = kept;
    CHECK_STATUS(ls_check_variables(g, &err), LS_INVALID, NULL);
    CHECK_CONTAINS(err.text, "no barrier lies between one rank's first and another's second");
    ls_graph_destroy(g);
}

/* new - old of one update in two pieces: the copy of `old` must be taken before any rank writes. */
static void an_unordered_copy_is_refused(void)
{
    ls_graph *g;
    ls_value old, next, both, lr;
    ls_err err = {0};
    int32_t copy = -1;

    REQUIRE_OK(ls_graph_create(&g, NULL), NULL);
    old = ls_graph_var(g, "w", LS_VAR_PARAM, LS_F32, LS_SHAPE(2), (ls_init){LS_INIT_CONST, 3});
    lr = ls_fill(g, LS_SHAPE_SCALAR, LS_F32, 1);
    next = ls_graph_add(
        g, &ls_op_sgd, 5,
        (ls_value[]){lr, lr,
                     ls_graph_var(g, "t", LS_VAR_OPTIMIZER, LS_I32, LS_SHAPE(1), (ls_init){LS_INIT_CONST, 0}),
                     old, ls_fill(g, LS_SHAPE(2), LS_F32, 1)},
        &(ls_optim_attr){.n = 1});
    g->vars[0]->home = LS_HOME_MACHINE;
    ls_graph_advance(g, 0, ls_graph_out(next, 1));
    ls_graph_advance(g, 1, next);
    both = ls_sub(ls_graph_out(next, 1), old);
    ls_graph_fetch(both, "both");
    ls_pass_pieces(g, 0, 2);
    ls_pass_versions(g);
    REQUIRE_OK(ls_check_variables(g, &err), &err);
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i]->dead && g->nodes[i]->op == &ls_op_copy) copy = i;
    REQUIRE(copy >= 0);
    for (int32_t i = 0; i < g->n_edges; i++)
        if (g->edges[i].from == copy) take_out(g, i--);
    CHECK_STATUS(ls_check_variables(g, &err), LS_INVALID, NULL);
    CHECK_CONTAINS(err.text, "(copy ");
    ls_graph_destroy(g);
}

/* -- collectives ------------------------------------------------------------------------------------------
 */

static ls_node *live(const ls_graph *g, ls_coll_op what, int number)
{
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i]->dead && (g->nodes[i]->op->flags & LS_OP_COLLECTIVE) &&
            g->nodes[i]->op->coll_op == what && number-- == 0)
            return g->nodes[i];
    REQUIRE(false);
    return NULL;
}

static void no_wait(ls_graph *g)
{
    live(g, LS_COLL_OP_WAIT, 0)->dead = true;
}

static void other_wait(ls_graph *g)
{
    ((ls_collective_attr *)live(g, LS_COLL_OP_WAIT, 0)->attr)->bucket = 99;
}

static void tensor_let_go(ls_graph *g)
{
    ls_node *wait = live(g, LS_COLL_OP_WAIT, 0);

    wait->in[1] = wait->in[0];
}

static void one_bucket_for_two(ls_graph *g)
{
    const ls_collective_attr *first = live(g, LS_COLL_OP_START, 0)->attr;

    *(ls_collective_attr *)live(g, LS_COLL_OP_START, 1)->attr = *first;
    *(ls_collective_attr *)live(g, LS_COLL_OP_WAIT, 1)->attr = *first;
}

static void leaf_beside_its_sum(ls_graph *g)
{
    *(ls_collective_attr *)live(g, LS_COLL_OP_LEAF, 0)->attr =
        *(const ls_collective_attr *)live(g, LS_COLL_OP_START, 0)->attr;
}

static void piece_for_the_whole(ls_graph *g)
{
    g->vars[0]->home = LS_HOME_SHARDED;
}

/* Two sums of what a variable makes, side by side, and a leaf of a third; then `spoil`. */
static ls_status collectives_of(ls_collective kind, void (*spoil)(ls_graph *), ls_err *err)
{
    const ls_collective_attr attr = {.bucket = -1, .ranks = 2};
    ls_graph *g;
    ls_value w, x[2], room[4], one;
    ls_status st;

    REQUIRE_OK(ls_graph_create(&g, NULL), NULL);
    w = ls_graph_var(g, "w", LS_VAR_PARAM, LS_F32, LS_SHAPE(6), (ls_init){LS_INIT_CONST, 3});
    one = ls_fill(g, LS_SHAPE_SCALAR, LS_F32, 1);
    for (int i = 0; i < 2; i++) {
        x[i] = i == 0 ? ls_exp(w) : ls_tanh(w);
        x[i] = kind == LS_COLL_ALL_REDUCE       ? ls_all_reduce(one, 1, &x[i], attr, room)
               : kind == LS_COLL_REDUCE_SCATTER ? ls_reduce_scatter(one, 1, &x[i], attr, room)
               : kind == LS_COLL_ALL_GATHER     ? ls_all_gather(1, &x[i], attr, room)
                                                : ls_broadcast(1, &x[i], attr, room);
        ls_graph_fetch(ls_exp(x[i]), i == 0 ? "first" : "second");
    }
    ls_all_reduce_leaf(one, one, 1, &w, (ls_collective_attr){.bucket = 50, .shards = 2}, room);
    ls_pass_dead(g);
    ls_pass_turns(g, &(ls_strategy){0});
    REQUIRE_OK(ls_graph_status(g, err), err);
    if (spoil != NULL) spoil(g);
    st = ls_check_collectives(g, err);
    ls_graph_destroy(g);
    return st;
}

static void collectives_that_are_not_whole_are_refused(void)
{
    static const struct {
        void (*spoil)(ls_graph *);
        const char *text;
    } mistakes[] = {{no_wait, "nobody waits for what it starts"},
                    {other_wait, "another collective than was started"},
                    {tensor_let_go, "is not held until it has arrived"},
                    {one_bucket_for_two, "both work in one bucket"},
                    {leaf_beside_its_sum, "no edge puts the leaf before the start"},
                    {piece_for_the_whole, "a piece of a sharded variable"}};

    for (int kind = LS_COLL_ALL_REDUCE; kind <= LS_COLL_BROADCAST; kind++) {
        ls_err err = {0};
        CHECK_STATUS(collectives_of((ls_collective)kind, NULL, &err), LS_OK, &err);
        for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
            /* leaves are of all-reduces alone */
            if (mistakes[i].spoil == leaf_beside_its_sum && kind != LS_COLL_ALL_REDUCE) continue;
            err = (ls_err){0};
            CHECK_STATUS(collectives_of((ls_collective)kind, mistakes[i].spoil, &err), LS_INVALID, NULL);
            CHECK_CONTAINS(err.text, mistakes[i].text);
        }
    }
}

/* A sharded variable that is gathered, and updated by its piece. */
static void a_gathered_variable_is_proved(void)
{
    ls_graph *g;
    ls_value w, all, room[2];
    ls_err err = {0};

    REQUIRE_OK(ls_graph_create(&g, NULL), NULL);
    w = ls_graph_var(g, "w", LS_VAR_PARAM, LS_F32, LS_SHAPE(6), (ls_init){LS_INIT_CONST, 3});
    g->vars[0]->home = LS_HOME_SHARDED;
    all = ls_all_gather(1, &w, (ls_collective_attr){.bucket = -1, .ranks = 2}, room);
    ls_graph_advance(g, 0, ls_assign(w, ls_fill(g, LS_SHAPE(6), LS_F32, 1)));
    ls_graph_fetch(ls_exp(all), "y");
    ls_pass_dead(g);
    ls_pass_versions(g);
    CHECK_STATUS(ls_check_variables(g, &err), LS_OK, &err);
    CHECK_STATUS(ls_check_collectives(g, &err), LS_OK, &err);
    ls_graph_destroy(g);
}

/* -- memory -----------------------------------------------------------------------------------------------
 */

/* Compiles by hand; `spoil` may change what the passes left, then the proof is asked. */
static ls_status memory_of(ls_collective kind, void (*spoil)(ls_graph *, ls_schedule *, ls_memory *),
                           ls_err *err)
{
    const ls_collective_attr attr = {.bucket = -1, .ranks = 1};
    size_t bytes[64] = {0}, scratch[64] = {0};
    ls_graph *g;
    ls_schedule s;
    ls_memory m;
    ls_value x, in[2], sum, one, room[2];
    ls_status st;

    REQUIRE_OK(ls_graph_create(&g, NULL), NULL);
    x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(100));
    in[0] = ls_exp(x);
    one = ls_fill(g, LS_SHAPE_SCALAR, LS_F32, 1);
    sum = kind == LS_COLL_ALL_REDUCE       ? ls_all_reduce(one, 1, &in[0], attr, room)
          : kind == LS_COLL_REDUCE_SCATTER ? ls_reduce_scatter(one, 1, &in[0], attr, room)
          : kind == LS_COLL_ALL_GATHER     ? ls_all_gather(1, &in[0], attr, room)
                                           : ls_broadcast(1, &in[0], attr, room);
    ls_graph_fetch(ls_exp(ls_tanh(ls_sigmoid(x))), "meanwhile");
    ls_graph_fetch(ls_exp(sum), "sum");
    ls_pass_dead(g);
    REQUIRE_OK(ls_pass_schedule(g, &s, err), err);
    REQUIRE(g->n_values < 64 && s.n < 64);
    for (int32_t i = 0; i < g->n_values; i++)
        bytes[i] = (size_t)ls_shape_count(g->values[i]->shape) * ls_dtype_size(g->values[i]->dtype);
    for (int32_t i = 0; i < s.n; i++) scratch[i] = 64;
    REQUIRE_OK(ls_pass_memory(g, &s, bytes, scratch, &m, err), err);
    if (spoil != NULL) spoil(g, &s, &m);
    st = ls_check_memory(g, &s, &m, bytes, scratch, err);
    ls_schedule_release(&s);
    ls_memory_release(&m);
    ls_graph_destroy(g);
    return st;
}

static const ls_node *node_called(const ls_graph *g, const ls_op *op)
{
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->op == op) return g->nodes[i];
    REQUIRE(false);
    return NULL;
}

/* What is computed meanwhile lies where the sum is coming in. */
static void into_the_sum(ls_graph *g, ls_schedule *s, ls_memory *m)
{
    (void)s;
    m->offset[node_called(g, &ls_op_tanh)->out[0]] = m->offset[live(g, LS_COLL_OP_WAIT, 0)->out[0]];
}

/* It lies where the tensor is that is still on its way. */
static void into_the_tensor(ls_graph *g, ls_schedule *s, ls_memory *m)
{
    (void)s;
    m->offset[node_called(g, &ls_op_tanh)->out[0]] = m->offset[live(g, LS_COLL_OP_WAIT, 0)->in[1]];
}

/* Scratch of some kernel lies in a value that is read later. */
static void scratch_in_a_value(ls_graph *g, ls_schedule *s, ls_memory *m)
{
    for (int32_t i = 0; i < s->n; i++)
        if (g->nodes[s->order[i]]->op == &ls_op_tanh)
            m->scratch[i] = m->offset[live(g, LS_COLL_OP_WAIT, 0)->in[1]];
}

/* The host would read the fetched value after something else was written there. */
static void over_a_fetch(ls_graph *g, ls_schedule *s, ls_memory *m)
{
    const int32_t last = g->nodes[s->order[s->n - 1]]->out[0];

    for (int32_t v = 0; v < g->n_values; v++)
        if (g->values[v]->fetch && v != last) m->offset[last] = m->offset[v];
}

static void memory_in_use_is_found(void)
{
    void (*const spoilers[])(ls_graph *, ls_schedule *, ls_memory *) = {into_the_sum, into_the_tensor,
                                                                        scratch_in_a_value, over_a_fetch};
    ls_err err = {0};

    for (int kind = LS_COLL_ALL_REDUCE; kind <= LS_COLL_BROADCAST; kind++) {
        CHECK_STATUS(memory_of((ls_collective)kind, NULL, &err), LS_OK, NULL);
        for (size_t i = 0; i < sizeof spoilers / sizeof spoilers[0]; i++) {
            err = (ls_err){0};
            if (!CHECK(memory_of((ls_collective)kind, spoilers[i], &err) == LS_INVALID))
                printf("  mistake %zu was accepted of %s\n", i, ls_collective_name((ls_collective)kind));
            CHECK_CONTAINS(err.text, "writes over value");
        }
    }
}

int main(void)
{
    CHECK_RUN(every_trial_is_proved);
    CHECK_RUN(a_missing_edge_is_found);
    CHECK_RUN(the_old_order_of_the_aae_is_refused);
    CHECK_RUN(an_unordered_copy_is_refused);
    CHECK_RUN(collectives_that_are_not_whole_are_refused);
    CHECK_RUN(a_gathered_variable_is_proved);
    CHECK_RUN(memory_in_use_is_found);
    return CHECK_DONE();
}
