/* test_fuse_casts.c: casts disappear in what makes or reads their operand, and every view still shows what it
 * views in its own type. */
#include "check.h"
#include "graph/graph.h"
#include "ops/ops.h"
#include "passes/passes.h"

static const ls_fusion_rule anywhere[] = {
    {LS_FUSE_CAST_OUT, NULL}, {LS_FUSE_CAST_IN, NULL}, {LS_FUSE_NONE, NULL}};

static ls_graph *begin(void)
{
    ls_graph *g;

    REQUIRE_OK(ls_graph_create(&g, NULL), NULL);
    return g;
}

static int casts(const ls_graph *g)
{
    int n = 0;

    for (int32_t i = 0; i < g->n_nodes; i++) n += !g->nodes[i]->dead && g->nodes[i]->op == &ls_op_cast;
    return n;
}

static ls_dtype type_of(ls_value v)
{
    return v.g->values[v.id]->dtype;
}

static void fuse(ls_graph *g)
{
    ls_err err = {0};

    ls_pass_fuse(g, anywhere, NULL);
    REQUIRE_OK(ls_graph_status(g, &err), &err);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        if (!n->dead && (n->op->flags & LS_OP_VIEW))
            CHECK_EQ_INT(g->values[n->in[0]]->dtype, g->values[n->out[0]]->dtype);
        if (!n->dead && n->op == &ls_op_cast)
            CHECK_EQ_INT(((const ls_cast_attr *)n->attr)->to, g->values[n->out[0]]->dtype);
    }
}

/* x and w are cast where they are read, the result is written as fp32. */
static void a_product_takes_them_all(void)
{
    ls_graph *g = begin();
    const ls_value x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(4, 3)),
                   w = ls_graph_input(g, "w", LS_F32, LS_SHAPE(3, 2));
    const ls_value y = ls_matmul(ls_cast(x, LS_BF16), ls_cast(w, LS_BF16), false, false);

    ls_graph_fetch(ls_square(ls_cast(y, LS_F32)), "y");
    CHECK_EQ_INT(casts(g), 3);
    fuse(g);
    CHECK_EQ_INT(casts(g), 0);
    CHECK_EQ_INT(type_of(y), LS_F32);
    ls_graph_destroy(g);
}

/* What others read in 16 bits stays so, and the reader in fp32 takes it as it is. */
static void what_others_read_stays(void)
{
    ls_graph *g = begin();
    const ls_value x = ls_graph_input(g, "x", LS_BF16, LS_SHAPE(3, 3)), y = ls_matmul(x, x, false, false);

    ls_graph_fetch(ls_square(ls_cast(y, LS_F32)), "y");
    ls_graph_fetch(ls_relu(y), "z");
    fuse(g);
    CHECK_EQ_INT(casts(g), 0);
    CHECK_EQ_INT(type_of(y), LS_BF16);
    ls_graph_destroy(g);
}

/* Terms of a sum in fp32 are fp32. */
static void sums_are_wide(void)
{
    ls_graph *g = begin();
    const ls_value x = ls_graph_input(g, "x", LS_BF16, LS_SHAPE(3, 3));
    const ls_value a = ls_matmul(x, x, false, false), b = ls_matmul(x, x, true, false);

    ls_graph_fetch(ls_square(ls_cast(ls_add(a, b), LS_F32)), "sum");
    fuse(g);
    CHECK_EQ_INT(casts(g), 0);
    CHECK_EQ_INT(type_of(a), LS_F32);
    CHECK_EQ_INT(type_of(b), LS_F32);
    ls_graph_destroy(g);
}

/* A cast back to 16 bits that reads a cast which has just disappeared, seen through a view: the gradient of a
 * bias from a batch of one sample. */
static void a_cast_back_is_not_the_same_cast(void)
{
    ls_graph *g = begin();
    const ls_value x = ls_graph_input(g, "x", LS_BF16, LS_SHAPE(1, 4)), y = ls_add(x, x);
    const ls_value wide = ls_cast(y, LS_F32), back = ls_cast(wide, LS_BF16);

    ls_graph_fetch(ls_square(wide), "wide");
    ls_graph_fetch(ls_relu(ls_cast(ls_reshape(back, LS_SHAPE(4)), LS_F32)), "bias");
    fuse(g);
    ls_graph_destroy(g);
}

int main(void)
{
    CHECK_RUN(a_product_takes_them_all);
    CHECK_RUN(what_others_read_stays);
    CHECK_RUN(sums_are_wide);
    CHECK_RUN(a_cast_back_is_not_the_same_cast);
    return CHECK_DONE();
}
