/* Copies of graphs: exact ones, which outlive what they were made of, and those with some nodes made anew in
 * their places. */
#include <string.h>

#include "check.h"
#include "ops/ops.h"

/* w becomes w + tanh(x * w); what comes after it reads the new version.  "unread" is an input that nobody
 * reads.
 */
static ls_graph *small(void)
{
    ls_graph *g = NULL;
    ls_err err = {0};
    ls_value x, w, y;

    REQUIRE_OK(ls_graph_create(&g, &err), &err);
    x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(3));
    w = ls_graph_var(g, "w", LS_VAR_PARAM, LS_F32, LS_SHAPE(3), (ls_init){LS_INIT_NORMAL, 0.5});
    ls_value_at(x, "some.c", 7);
    g->scope = ls_arena_strdup(g->arena, "net.layer");
    y = ls_tanh(ls_mul(x, w));
    ls_graph_input(g, "unread", LS_I32, LS_SHAPE(2));
    ls_graph_advance(g, 0, ls_assign(w, ls_add(w, y)));
    g->scope = "";
    ls_graph_fetch(ls_affine((ls_value){g, g->vars[0]->current}, 2, 1), "result");
    REQUIRE_OK(ls_graph_status(g, &err), &err);
    return g;
}

static void check_equal(const ls_graph *a, const ls_graph *b)
{
    REQUIRE(a->n_nodes == b->n_nodes && a->n_values == b->n_values && a->n_vars == b->n_vars);
    for (int32_t i = 0; i < a->n_values; i++) {
        const ls_vinfo *x = a->values[i], *y = b->values[i];
        CHECK(x->dtype == y->dtype && ls_shape_equal(x->shape, y->shape) && x->kind == y->kind);
        CHECK(x->category == y->category && x->node == y->node && x->out == y->out && x->var == y->var);
        CHECK(x->fetch == y->fetch && (x->name == NULL) == (y->name == NULL));
        if (x->name != NULL) CHECK(x->name != y->name && strcmp(x->name, y->name) == 0);
    }
    for (int32_t i = 0; i < a->n_nodes; i++) {
        const ls_node *x = a->nodes[i], *y = b->nodes[i];
        char text[2][128];
        ls_node_text(x, text[0], sizeof text[0]);
        ls_node_text(y, text[1], sizeof text[1]);
        CHECK(x->op == y->op && strcmp(text[0], text[1]) == 0 && strcmp(x->scope, y->scope) == 0);
        CHECK(x->src.file == y->src.file && x->src.line == y->src.line && x->position == y->position);
        for (int k = 0; k < x->n_in; k++) CHECK_EQ_INT(x->in[k], y->in[k]);
    }
    CHECK(a->vars[0]->first == b->vars[0]->first && a->vars[0]->current == b->vars[0]->current);
    CHECK(strcmp(a->vars[0]->name, b->vars[0]->name) == 0 && b->vars[0]->init.a == 0.5);
}

static void a_clone_is_equal_and_its_own(void)
{
    ls_graph *g = small(), *copy = NULL, *again = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_graph_clone(&copy, g, &err), &err);
    check_equal(g, copy);
    ls_graph_destroy(g);
    REQUIRE_OK(ls_graph_clone(&again, copy, &err), &err); /* names are its own */
    check_equal(copy, again);
    ls_graph_destroy(copy);
    ls_graph_destroy(again);
}

static void an_error_is_copied_too(void)
{
    ls_graph *g = small(), *copy = NULL;
    ls_err err = {0};

    ls_graph_fail(g, LS_INVALID, "a mistake");
    REQUIRE_OK(ls_graph_clone(&copy, g, &err), &err);
    CHECK_STATUS(ls_graph_status(copy, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "a mistake");
    ls_graph_destroy(g);
    ls_graph_destroy(copy);
}

/* Two nodes for one. */
static bool two_for_tanh(void *ctx, ls_graph *to, const ls_node *n, const ls_value *in, ls_value *out)
{
    (void)to;
    if (n->op != &ls_op_tanh) return false;
    ++*(int *)ctx;
    out[0] = ls_square(ls_exp(in[0]));
    return true;
}

static void what_a_rule_makes_stands_where_the_node_stood(void)
{
    ls_graph *g = small();
    int calls = 0;
    const ls_op *const expected[] = {&ls_op_mul, &ls_op_exp,    &ls_op_square,
                                     &ls_op_add, &ls_op_assign, &ls_op_affine};

    ls_graph_rewrite(g, two_for_tanh, &calls);
    CHECK_EQ_INT(calls, 1);
    REQUIRE(g->err.status == LS_OK && g->n_nodes == 6);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        CHECK(g->nodes[i]->op == expected[i]);
        for (int k = 0; k < g->nodes[i]->n_in; k++) CHECK(g->values[g->nodes[i]->in[k]]->node < i);
    }
    CHECK(strcmp(g->nodes[1]->scope, "net.layer") == 0 && g->nodes[1]->src.line == 7);
    CHECK_EQ_INT(g->nodes[3]->in[1], g->nodes[2]->out[0]);
    ls_graph_destroy(g);
}

/* The variable stays as it is: its readers read the first version. */
static bool without_assign(void *ctx, ls_graph *to, const ls_node *n, const ls_value *in, ls_value *out)
{
    (void)ctx, (void)to;
    out[0] = in[0];
    return n->op == &ls_op_assign;
}

static void readers_follow_the_version_that_is_left(void)
{
    ls_graph *g = small();

    ls_graph_rewrite(g, without_assign, NULL);
    REQUIRE(g->n_nodes == 4);
    CHECK_EQ_INT(g->vars[0]->current, g->vars[0]->first);
    CHECK_EQ_INT(g->nodes[3]->in[0], g->vars[0]->first);
    CHECK(g->values[g->nodes[3]->out[0]]->fetch);
    ls_graph_destroy(g);
}

static void what_is_dead_or_gone_stays_behind(void)
{
    ls_graph *g = small();
    const int32_t n_values = g->n_values;

    for (int32_t i = 0; i < n_values; i++)
        if (g->values[i]->name != NULL && strcmp(g->values[i]->name, "unread") == 0)
            g->values[i]->kind = LS_VALUE_GONE;
    ls_tanh((ls_value){g, 0});
    g->nodes[g->n_nodes - 1]->dead = true;
    ls_graph_rewrite(g, NULL, NULL);
    CHECK_EQ_INT(g->n_nodes, 5);
    CHECK_EQ_INT(g->n_values, n_values - 1);
    ls_graph_destroy(g);
}

static bool fails(void *ctx, ls_graph *to, const ls_node *n, const ls_value *in, ls_value *out)
{
    (void)ctx, (void)in, (void)out;
    if (n->op == &ls_op_add) ls_graph_fail(to, LS_UNSUPPORTED, "not here");
    return n->op == &ls_op_add;
}

static void a_rule_that_fails_names_the_place(void)
{
    ls_graph *g = small();
    ls_err err = {0};

    ls_graph_rewrite(g, fails, NULL);
    CHECK_STATUS(ls_graph_status(g, &err), LS_UNSUPPORTED, &err);
    CHECK_CONTAINS(err.text, "some.c:7: layer \"net.layer\": not here");
    ls_graph_destroy(g);
}

int main(void)
{
    CHECK_RUN(a_clone_is_equal_and_its_own);
    CHECK_RUN(an_error_is_copied_too);
    CHECK_RUN(what_a_rule_makes_stands_where_the_node_stood);
    CHECK_RUN(readers_follow_the_version_that_is_left);
    CHECK_RUN(what_is_dead_or_gone_stays_behind);
    CHECK_RUN(a_rule_that_fails_names_the_place);
    return CHECK_DONE();
}
