/* test_convert.c: which casts and reorders become one node, and that their readers get the same. */
#include "check.h"
#include "ops/ops.h"
#include "passes/passes.h"

static ls_graph *g;

static int count(const ls_op *op)
{
    int n = 0;

    for (int32_t i = 0; i < g->n_nodes; i++) n += !g->nodes[i]->dead && g->nodes[i]->op == op;
    return n;
}

static const ls_node *maker(ls_value v)
{
    return g->nodes[g->values[v.id]->node];
}

static ls_value param(const char *name, ls_shape shape)
{
    return ls_graph_var(g, name, LS_VAR_PARAM, LS_F32, shape, (ls_init){LS_INIT_CONST, 1});
}

/* As the layout pass leaves it. */
static ls_value reorder(ls_value x, const ls_layout *to)
{
    ls_value y = ls_graph_add(g, &ls_op_reorder, 1, &x, &(ls_reorder_attr){g->values[x.id]->layout, to});

    g->values[y.id]->layout = to;
    return y;
}

static ls_value scalar(double x)
{
    return ls_fill(g, LS_SHAPE_SCALAR, LS_F32, x);
}

/* One update of two parameters; the values of their new versions in next. */
static void update(ls_value w, ls_value b, ls_value dw, ls_value db, ls_value next[2])
{
    const ls_optim_attr a = {.n = 2};
    ls_value t = ls_graph_var(g, "t", LS_VAR_OPTIMIZER, LS_I32, LS_SHAPE(1), (ls_init){LS_INIT_CONST, 0});
    ls_value out = ls_graph_add(g, &ls_op_sgd, 7, (ls_value[]){scalar(0.5), scalar(1), t, w, b, dw, db}, &a);

    for (int k = 0; k < 2; k++) {
        next[k] = ls_graph_out(out, 1 + k);
        ls_graph_advance(g, g->values[(k == 0 ? w : b).id]->var, next[k]);
    }
    ls_graph_advance(g, g->values[t.id]->var, out);
}

static void finish(void)
{
    ls_err err = {0};

    ls_pass_convert(g);
    REQUIRE_OK(ls_graph_status(g, &err), &err);
}

static void weights_and_gradients_are_one_node_each(void)
{
    ls_value x, w, b, used_w, used_b, dw, db, next[2], again, y, turned;
    const ls_node *n;

    REQUIRE_OK(ls_graph_create(&g, NULL), NULL);
    x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(4, 3, 3, 3));
    w = param("w", LS_SHAPE(4, 3, 3, 3));
    b = param("b", LS_SHAPE(8));
    used_w = ls_copy(reorder(ls_cast(w, LS_BF16), &ls_layout_nhwc));
    used_b = ls_copy(ls_cast(b, LS_BF16));
    y = ls_copy(ls_cast(x, LS_BF16)); /* neither of a parameter nor of a gradient */
    ls_graph_fetch(y, "y");
    turned = ls_copy(reorder(ls_cast(x, LS_F16), &ls_layout_nhwc)); /* an input in two steps */
    ls_graph_fetch(turned, "turned");
    dw = reorder(ls_cast(used_w, LS_F32), &ls_layout_plain);
    db = ls_cast(used_b, LS_F32);
    update(w, b, dw, db, next);
    again = ls_copy(reorder(ls_cast(next[0], LS_BF16), &ls_layout_nhwc)); /* the new version, two nodes */
    ls_graph_fetch(again, "again");
    finish();
    CHECK_EQ_INT(count(&ls_op_convert), 4);
    CHECK_EQ_INT(count(&ls_op_reorder), 0);
    CHECK_EQ_INT(count(&ls_op_cast), 1);
    CHECK(g->nodes[g->values[maker(y)->in[0]]->node]->op == &ls_op_cast);

    n = g->nodes[g->values[maker(turned)->in[0]]->node];
    CHECK(n->op == &ls_op_convert && n->n_in == 1 && n->in[0] == x.id);
    CHECK(g->values[n->out[0]]->layout == &ls_layout_nhwc && g->values[n->out[0]]->dtype == LS_F16);

    n = g->nodes[g->values[maker(used_w)->in[0]]->node];
    CHECK(n->op == &ls_op_convert);
    CHECK_EQ_INT(n->n_in, 2);
    CHECK(n->in[0] == w.id && n->in[1] == b.id);
    CHECK(maker(used_w)->in[0] == n->out[0] && maker(used_b)->in[0] == n->out[1]);
    CHECK(g->values[n->out[0]]->layout == &ls_layout_nhwc &&
          g->values[n->out[1]]->layout == &ls_layout_plain);
    CHECK(g->values[n->out[0]]->dtype == LS_BF16);

    n = maker(next[0]);
    CHECK(n->in[5] != dw.id && n->in[6] != db.id);
    CHECK(g->values[n->in[5]]->layout == &ls_layout_plain && g->values[n->in[5]]->dtype == LS_F32);
    n = g->nodes[g->values[n->in[5]]->node];
    CHECK(n->op == &ls_op_convert && n->n_in == 2 && n->in[0] == used_w.id && n->in[1] == used_b.id);

    n = g->nodes[g->values[maker(again)->in[0]]->node];
    CHECK(n->op == &ls_op_convert && n->n_in == 1 && n->in[0] == next[0].id);
    ls_graph_destroy(g);
}

/* What somebody else reads in between, what is fetched, and a single node stay as they are. */
static void what_would_gain_nothing_stays(void)
{
    ls_value w, cast;

    REQUIRE_OK(ls_graph_create(&g, NULL), NULL);
    w = param("w", LS_SHAPE(4, 3, 3, 3));
    ls_graph_fetch(ls_copy(ls_cast(w, LS_BF16)), "alone");
    finish();
    CHECK_EQ_INT(count(&ls_op_convert), 0);
    CHECK_EQ_INT(count(&ls_op_cast), 1);
    ls_graph_destroy(g);

    REQUIRE_OK(ls_graph_create(&g, NULL), NULL);
    w = param("w", LS_SHAPE(4, 3, 3, 3));
    cast = ls_cast(w, LS_BF16);
    ls_graph_fetch(ls_copy(cast), "between");
    ls_graph_fetch(ls_copy(reorder(cast, &ls_layout_nhwc)), "end");
    finish();
    CHECK_EQ_INT(count(&ls_op_reorder), 1); /* it reads the cast, which others need */
    ls_graph_destroy(g);
}

int main(void)
{
    CHECK_RUN(weights_and_gradients_are_one_node_each);
    CHECK_RUN(what_would_gain_nothing_stays);
    return CHECK_DONE();
}
