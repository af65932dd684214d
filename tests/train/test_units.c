/* test_units.c: marks of units: they change neither names nor what is computed, every call is a unit of its
 * own, and nodes carry theirs through copies, rewritings and gradients. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "lockstep/nn.h"
#include "ops/ops.h"
#include "passes/lower.h"
#include "passes/passes.h"
#include "small_trials.h"

/* -- a network of two blocks, called twice ----------------------------------------------------------------
 */

static bool marked; /* whether blocks are marked */

static ls_value block(ls_step *s, ls_value x, const char *name)
{
    ls_scope_push(s, "%s", name);
    if (marked) ls_unit_begin(s, NULL);
    x = ls_gelu(ls_linear(s, x, "fc1", .out = 6));
    if (marked) ls_unit_begin(s, "inner"); /* means nothing */
    x = ls_linear(s, x, "fc2", .out = 4);
    if (marked) ls_unit_end(s);
    x = ls_gelu(x);
    if (marked) ls_unit_end(s);
    ls_scope_pop(s);
    return x;
}

static ls_graph *record(void)
{
    ls_step *s = NULL;
    ls_value x, y, z;
    ls_graph *g;
    ls_err err = {0};

    REQUIRE_OK(ls_step_create(&s, 3, LS_TRAIN, &err), &err);
    x = ls_input(s, "x", LS_F32, LS_SHAPE(-1, 4));
    y = block(s, block(s, x, "a"), "b");
    z = block(s, x, "a");
    ls_minimise(s, ls_reduce_mean(ls_square(ls_add(y, z)), LS_ALL_AXES, false), "*",
                (ls_optimiser){.rule = LS_SGD, .lr = 0.1});
    g = ls_step_graph_take(s);
    REQUIRE_OK(ls_graph_status(g, &err), &err);
    ls_step_destroy(s);
    return g;
}

static ls_graph *lowered(const ls_strategy *how)
{
    ls_graph *g = record();
    ls_err err = {0};

    ls_passes_lower(g, how);
    REQUIRE_OK(ls_graph_status(g, &err), &err);
    return g;
}

static void a_mark_changes_nothing(void)
{
    const ls_strategy ways[] = {
        {0}, {.ranks = true, .share_from = 1}, {.part = LS_PART_GRADIENTS, .shards = 2}};

    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        ls_graph *with, *without;
        marked = false;
        without = lowered(&ways[i]);
        marked = true;
        with = lowered(&ways[i]);
        CHECK(ls_graph_hash(with) == ls_graph_hash(without));
        CHECK_EQ_INT(with->n_units, 3);
        CHECK_EQ_INT(without->n_units, 0);
        ls_graph_destroy(with);
        ls_graph_destroy(without);
    }
}

static int count(const ls_graph *g, int32_t unit, int32_t loss, const ls_op *op)
{
    int n = 0;

    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *x = g->nodes[i];
        n += !x->dead && x->unit == unit && x->loss == loss && (op == NULL || x->op == op);
    }
    return n;
}

static void every_call_is_a_unit_and_gradients_know_whose(void)
{
    ls_graph *g;

    marked = true;
    g = lowered(&(ls_strategy){.ranks = true, .share_from = 1});
    REQUIRE(g->n_units == 3);
    CHECK(strcmp(ls_graph_unit(g, 1), "a") == 0 && strcmp(ls_graph_unit(g, 2), "b") == 0);
    CHECK(strcmp(ls_graph_unit(g, 3), "a") == 0 && strcmp(ls_graph_unit(g, 0), "") == 0);
    CHECK_EQ_INT(g->n_losses, 1);
    for (int32_t u = 1; u <= 3; u++) {
        CHECK_EQ_INT(count(g, u, 0, &ls_op_matmul), 2);
        CHECK_EQ_INT(count(g, u, 0, &ls_op_gelu), 2);
        CHECK_EQ_INT(count(g, u, 1, &ls_op_gelu_grad), 2);
        /* Two for each weight, and one for each input but that of the step. */
        CHECK_EQ_INT(count(g, u, 1, &ls_op_matmul), u == 2 ? 4 : 3);
    }
    CHECK_EQ_INT(count(g, 0, 0, &ls_op_matmul) + count(g, 0, 1, &ls_op_matmul), 0);
    /* Exchanges and updates are nobody's. */
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->op->flags & (LS_OP_COLLECTIVE | LS_OP_UPDATE)) CHECK_EQ_INT(g->nodes[i]->unit, 0);
    ls_graph_destroy(g);
}

/* -- what ranks gather --------------------------------------------------------------------------------------
 */

/* Parameters of each gather before the loss, as "2 4 ". */
static void list_gathers(const ls_graph *g, char *text, size_t size)
{
    size_t at = 0;

    text[0] = '\0';
    for (int32_t i = 0; i < g->n_nodes && at < size; i++)
        if (!g->nodes[i]->dead && g->nodes[i]->loss == 0 && g->nodes[i]->op == &ls_op_all_gather_wait)
            at += (size_t)snprintf(text + at, size - at, "%d ", g->nodes[i]->n_out);
}

/* A unit at a time: all that it has, whatever the names of its layers are. */
static void weights_are_gathered_by_units(void)
{
    const ls_strategy how = {
        .ranks = true, .sharding = LS_SHARD_WEIGHTS, .pieces = 2, .prefetch = 1, .bucket_bytes = 1};
    char with[64], without[64];
    ls_graph *g;

    marked = false;
    g = lowered(&how);
    list_gathers(g, without, sizeof without);
    ls_graph_destroy(g);
    marked = true;
    g = lowered(&how);
    list_gathers(g, with, sizeof with);
    ls_graph_destroy(g);
    /* Two blocks of two layers, each with weight and bias; names end in digits: fc1 and fc2 are apart. */
    CHECK_EQ_STR(without, "2 2 2 2 ");
    CHECK_EQ_STR(with, "4 4 ");
}

/* -- every trial ------------------------------------------------------------------------------------------
 */

/* A gradient node that reads what only one unit reads forward is that unit's. */
static void check_gradients(const ls_graph *g, const char *trial)
{
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        if (n->dead || n->loss == 0) continue;
        for (int k = 0; k < n->n_in; k++) {
            const int32_t maker = g->values[n->in[k]]->node;
            bool outside = maker < 0 || g->nodes[maker]->unit == 0 || g->nodes[maker]->loss > 0;
            for (int32_t j = 0; j < g->n_nodes && !outside; j++)
                for (int m = 0; !g->nodes[j]->dead && g->nodes[j]->loss == 0 && m < g->nodes[j]->n_in; m++)
                    outside = outside ||
                              (g->nodes[j]->in[m] == n->in[k] && g->nodes[j]->unit != g->nodes[maker]->unit);
            if (!outside && !CHECK(n->unit == g->nodes[maker]->unit))
                printf("  %s: %s of unit %d reads what %d has made for itself\n", trial, n->op->name,
                       (int)n->unit, (int)g->nodes[maker]->unit);
        }
    }
}

static void every_trial_has_units(void)
{
    for (const small_trial *t = small_trials; t->trial != NULL; t++) {
        ls_graph *g;
        if (t->like != NULL) continue;
        g = small_trial_record(t);
        if (!CHECK((g->n_units > 0) == (strcmp(t->trial, "linear") != 0)))
            printf("  %s: %d units\n", t->trial, (int)g->n_units);
        ls_passes_lower(g, &(ls_strategy){0});
        CHECK(g->n_losses > 0);
        check_gradients(g, t->trial);
        ls_graph_destroy(g);
    }
}

/* -- mistakes, and nodes that wait ------------------------------------------------------------------------
 */

static void check_error(void (*build)(ls_step *s), const char *part)
{
    ls_step *s = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_step_create(&s, 2, LS_TRAIN, &err), &err);
    build(s);
    ls_graph_destroy(ls_step_graph_take(s));
    CHECK_EQ_INT(ls_step_status(s, &err), LS_INVALID);
    CHECK_CONTAINS(err.text, part);
    ls_step_destroy(s);
}

static void end_without_begin(ls_step *s)
{
    ls_unit_end(s);
}
static void begin_without_end(ls_step *s)
{
    ls_unit_begin(s, "block");
}
static void begin_without_name(ls_step *s)
{
    ls_unit_begin(s, NULL);
}
static void begin_with_no_name(ls_step *s)
{
    ls_unit_begin(s, "a b");
}

static void mistakes_are_told(void)
{
    check_error(end_without_begin, "ls_unit_end without ls_unit_begin");
    check_error(begin_without_end, "unit \"block\" was never ended");
    check_error(begin_without_name, "without a name outside of all scopes");
    check_error(begin_with_no_name, "\"a b\" is no name");
}

/* What waits for a value that it does not read runs after its maker, whatever the program says. */
static void what_waits_runs_later(void)
{
    ls_graph *g = NULL, *copy = NULL;
    ls_value x, late;
    ls_err err = {0};

    REQUIRE_OK(ls_graph_create(&g, &err), &err);
    x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(8));
    late = ls_sqrt(x);
    ls_graph_fetch(late, "late");
    ls_graph_fetch(ls_exp(x), "early");
    g->nodes[1]->after = late.id;
    REQUIRE_OK(ls_graph_clone(&copy, g, &err), &err);
    CHECK_EQ_INT(copy->nodes[1]->after, late.id);
    CHECK(ls_graph_hash(copy) == ls_graph_hash(g));
    copy->nodes[0]->position = 9;       /* by the program, the other would run first */
    for (int way = 0; way < 3; way++) { /* nothing waits; as passes rewrite; when they are done */
        ls_schedule order = {0};
        copy->nodes[1]->after = way > 0 ? late.id : -1;
        if (way == 2) ls_pass_hold(copy);
        CHECK_EQ_INT(copy->n_edges, way == 2);
        REQUIRE_OK(ls_pass_schedule(copy, &order, &err), &err);
        CHECK(order.n == 2 && order.order[0] == (way == 0) && order.order[1] == (way > 0));
        ls_schedule_release(&order);
    }
    CHECK(copy->edges[0].kind == LS_EDGE_HOLD && copy->edges[0].from == 0 && copy->edges[0].to == 1);
    ls_graph_destroy(copy);
    ls_graph_destroy(g);
}

int main(void)
{
    CHECK_RUN(a_mark_changes_nothing);
    CHECK_RUN(every_call_is_a_unit_and_gradients_know_whose);
    CHECK_RUN(weights_are_gathered_by_units);
    CHECK_RUN(every_trial_has_units);
    CHECK_RUN(mistakes_are_told);
    CHECK_RUN(what_waits_runs_later);
    return CHECK_DONE();
}
