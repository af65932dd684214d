/* test_sharing.c: which variables ranks of a machine may keep once: those that every ls_minimise which trains
 * them updates in pieces, together with nothing else. */
#include "graph/graph.h"
#include "nn_test.h"
#include "passes/lower.h"

static ls_value parameter(ls_step *s, const char *name, int64_t n)
{
    return ls_reduce_sum(ls_square(ls_parameter(s, name, LS_SHAPE(n), ls_init_const(1.0))), 1u, false);
}

static const ls_optimiser sgd = {.rule = LS_SGD, .lr = 0.1, .momentum = 0.9, .name = "sgd"},
                          adam = {.rule = LS_ADAM, .lr = 0.1, .name = "adam"},
                          lars = {.rule = LS_LARS, .lr = 0.1, .name = "lars"};

/* "b" is trained twice: with "a", which together are large, and as `again` says, alone or with "c". */
static ls_graph *twice(const ls_optimiser *again, bool with_c, ls_part part)
{
    ls_step *s;
    ls_graph *g;
    ls_value loss;
    ls_err err = {0};
    const ls_strategy how = {.ranks = true, .share_from = 400, .part = part};

    REQUIRE_OK(ls_step_create(&s, 1, LS_TRAIN, &err), &err);
    loss = ls_add(parameter(s, "a", 100), parameter(s, "b", 2));
    ls_minimise(s, loss, "a b", sgd);
    loss = ls_add(parameter(s, "b", 2), parameter(s, "c", 3));
    ls_minimise(s, loss, with_c ? "b c" : "b", *again);
    REQUIRE_OK(ls_step_status(s, &err), &err);
    g = ls_step_graph_take(s);
    ls_passes_lower(g, &how);
    REQUIRE_OK(ls_graph_status(g, &err), &err);
    ls_step_destroy(s);
    return g;
}

static bool shared(const ls_graph *g, const char *name)
{
    const int32_t var = ls_graph_find_var(g, name);

    REQUIRE(var >= 0);
    return g->vars[var]->home == LS_HOME_MACHINE;
}

static void large_updates_are_shared_with_their_states(void)
{
    ls_graph *g = twice(&sgd, false, LS_PART_ALL);

    CHECK(shared(g, "a") && shared(g, "b"));
    CHECK(shared(g, "a.sgd.momentum") && shared(g, "b.sgd.momentum"));
    CHECK(!shared(g, "optimizer.sgd.t")); /* each rank counts for itself */
    ls_graph_destroy(g);
}

/* The second call's nodes would write shared and own variables at once. */
static void mixed_updates_are_not_shared(void)
{
    for (int part = LS_PART_ALL; part <= LS_PART_GRADIENTS; part++) {
        ls_graph *g = twice(&adam, true, (ls_part)part);
        CHECK(!shared(g, "a") && !shared(g, "b") && !shared(g, "c"));
        if (part == LS_PART_ALL) CHECK(!shared(g, "a.sgd.momentum") && !shared(g, "b.adam.m"));
        ls_graph_destroy(g);
    }
}

/* A rule that needs norms of whole parameters cannot be followed in pieces. */
static void one_rule_by_norms_is_enough(void)
{
    ls_graph *g = twice(&lars, false, LS_PART_ALL);

    CHECK(!shared(g, "a") && !shared(g, "b"));
    CHECK(!shared(g, "a.sgd.momentum") && !shared(g, "b.lars.momentum"));
    ls_graph_destroy(g);
}

/* The states of each rule follow, whichever call comes first. */
static void states_of_every_rule_follow(void)
{
    ls_graph *g = twice(&adam, false, LS_PART_ALL);

    CHECK(shared(g, "b") && shared(g, "b.sgd.momentum"));
    CHECK(shared(g, "b.adam.m") && shared(g, "b.adam.v"));
    ls_graph_destroy(g);
}

int main(void)
{
    CHECK_RUN(large_updates_are_shared_with_their_states);
    CHECK_RUN(mixed_updates_are_not_shared);
    CHECK_RUN(one_rule_by_norms_is_enough);
    CHECK_RUN(states_of_every_rule_follow);
    return CHECK_DONE();
}
