/* Graphs: errors that say where and why, variables, costs, and the builders' refusal to add useless nodes. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "ops/ops.h"

static ls_graph *new_graph(void)
{
    ls_graph *g = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_graph_create(&g, &err), &err);
    return g;
}

static ls_value f32(ls_graph *g, const char *name, ls_shape shape)
{
    return ls_graph_input(g, name, LS_F32, shape);
}

static const ls_op *op_of(ls_value v)
{
    return v.g->nodes[v.g->values[v.id]->node]->op;
}

/* -- errors ------------------------------------------------------------------------------------------------
 */

static const int bad_perm[] = {0, 2, 2}, far_perm[] = {0, 1, 3};

/* x is (2, 3, 5), y is (3, 4), i is an i32 (2, 3). */
static ls_value add_misfit(ls_value x, ls_value y, ls_value i)
{
    (void)i;
    return ls_add(x, y);
}
static ls_value add_types(ls_value x, ls_value y, ls_value i)
{
    (void)y;
    return ls_add(x, i);
}
static ls_value exp_integer(ls_value x, ls_value y, ls_value i)
{
    (void)x, (void)y;
    return ls_exp(i);
}
static ls_value leaky_negative(ls_value x, ls_value y, ls_value i)
{
    (void)y, (void)i;
    return ls_leaky_relu(x, -0.5);
}
static ls_value reshape_count(ls_value x, ls_value y, ls_value i)
{
    (void)y, (void)i;
    return ls_reshape(x, LS_SHAPE(7, -1));
}
static ls_value reshape_two_open(ls_value x, ls_value y, ls_value i)
{
    (void)y, (void)i;
    return ls_reshape(x, LS_SHAPE(-1, -1));
}
static ls_value transpose_twice(ls_value x, ls_value y, ls_value i)
{
    (void)y, (void)i;
    return ls_transpose(x, bad_perm);
}
static ls_value transpose_far(ls_value x, ls_value y, ls_value i)
{
    (void)y, (void)i;
    return ls_transpose(x, far_perm);
}
static ls_value slice_axis(ls_value x, ls_value y, ls_value i)
{
    (void)y, (void)i;
    return ls_slice(x, 3, 0, 1);
}
static ls_value slice_end(ls_value x, ls_value y, ls_value i)
{
    (void)y, (void)i;
    return ls_slice(x, -1, 3, 3);
}
static ls_value concat_rank(ls_value x, ls_value y, ls_value i)
{
    (void)i;
    return ls_concat(2, (ls_value[]){x, y}, 0);
}
static ls_value concat_types(ls_value x, ls_value y, ls_value i)
{
    (void)x;
    return ls_concat(2, (ls_value[]){y, i}, 0);
}
static ls_value broadcast_misfit(ls_value x, ls_value y, ls_value i)
{
    (void)y, (void)i;
    return ls_broadcast_to(x, LS_SHAPE(2, 6, 5));
}
static ls_value sum_beyond(ls_value x, ls_value y, ls_value i)
{
    (void)y, (void)i;
    return ls_reduce_sum(x, 1u << 3, false);
}
static ls_value mean_beyond(ls_value x, ls_value y, ls_value i)
{
    (void)y, (void)i;
    return ls_reduce_mean(x, 1u << 3, false);
}
static ls_value sum_to_misfit(ls_value x, ls_value y, ls_value i)
{
    (void)i;
    return ls_sum_to(x, ls_value_shape(y));
}
static ls_value max_axis(ls_value x, ls_value y, ls_value i)
{
    (void)y, (void)i;
    return ls_reduce_max(x, -4);
}
static ls_value max_empty(ls_value x, ls_value y, ls_value i)
{
    (void)y, (void)i;
    return ls_reduce_max(ls_slice(x, 1, 0, 0), 1);
}
static ls_value max_scalar(ls_value x, ls_value y, ls_value i)
{
    (void)y, (void)i;
    return ls_reduce_max(ls_reduce_sum(x, LS_ALL_AXES, false), 0);
}
static ls_value matmul_inner(ls_value x, ls_value y, ls_value i)
{
    (void)i;
    return ls_matmul(x, y, false, false);
}
static ls_value matmul_batch(ls_value x, ls_value y, ls_value i)
{
    (void)i;
    return ls_matmul(y, x, true, false);
}
static ls_value matmul_vector(ls_value x, ls_value y, ls_value i)
{
    (void)x, (void)i;
    return ls_matmul(y, ls_reduce_sum(y, 1, false), false, false);
}
static ls_value bias_size(ls_value x, ls_value y, ls_value i)
{
    (void)i;
    return ls_bias(x, ls_reduce_sum(y, 1, false), -1);
}
static ls_value pointwise_register(ls_value x, ls_value y, ls_value i)
{
    ls_pointwise_attr a = {.n_steps = 1, .step = {{LS_PW_ADD, 0, 1, {0}}}};

    (void)y, (void)i;
    return ls_graph_add(x.g, &ls_op_pointwise, 1, &x, &a);
}
static ls_value pointwise_shape(ls_value x, ls_value y, ls_value i)
{
    ls_pointwise_attr a = {.n_steps = 1, .step = {{LS_PW_ADD, 0, 1, {0}}}};

    (void)y, (void)i;
    return ls_graph_add(x.g, &ls_op_pointwise, 2, (ls_value[]){x, ls_slice(x, 1, 0, 1)}, &a);
}
static ls_value reorder_layout(ls_value x, ls_value y, ls_value i)
{
    ls_reorder_attr a = {&ls_layout_plain, &ls_layout_nhwc};

    (void)y, (void)i;
    return ls_graph_add(x.g, &ls_op_reorder, 1, &x, &a);
}
static ls_value too_many_inputs(ls_value x, ls_value y, ls_value i)
{
    (void)i;
    return ls_graph_add(x.g, &ls_op_exp, 2, (ls_value[]){x, y}, NULL);
}
static ls_value negative_fill(ls_value x, ls_value y, ls_value i)
{
    (void)y, (void)i;
    return ls_fill(x.g, LS_SHAPE(2, -3), LS_F32, 0);
}

static const struct {
    const char *name;
    ls_value (*build)(ls_value x, ls_value y, ls_value i);
    const char *part[3]; /* what the message must say beside the place */
} bad[] = {
    {"add, shapes", add_misfit, {"op add", "(2, 3, 5), (3, 4)", "broadcast"}},
    {"add, types", add_types, {"op add", "f32 and i32", "cast"}},
    {"exp of integers", exp_integer, {"op exp", "(2, 3)", "floating type, got i32"}},
    {"leaky_relu", leaky_negative, {"op leaky_relu", "at least 0", "-0.5"}},
    {"reshape, count", reshape_count, {"op reshape", "30 elements", "(7, -1)"}},
    {"reshape, two open", reshape_two_open, {"op reshape", "(-1, -1)", "more than one"}},
    {"transpose, twice", transpose_twice, {"op transpose", "(2, 3, 5)", "dimension 2 twice"}},
    {"transpose, range", transpose_far, {"op transpose", "perm[2] = 3", "0..2"}},
    {"slice, axis", slice_axis, {"op slice", "axis 3", "-3..2"}},
    {"slice, range", slice_end, {"op slice", "3 elements from 3 on", "5 of axis 2"}},
    {"concat, shapes", concat_rank, {"op concat", "(2, 3, 5), (3, 4)", "input 1 differs"}},
    {"concat, types", concat_types, {"op concat", "input 1 is i32", "input 0 is f32"}},
    {"broadcast_to", broadcast_misfit, {"op broadcast_to", "(2, 3, 5)", "(2, 6, 5)"}},
    {"reduce_sum", sum_beyond, {"op reduce_sum", "0x8", "3 that exist"}},
    {"reduce_mean", mean_beyond, {"op reduce_sum", "0x8", "3 that exist"}},
    {"sum_to", sum_to_misfit, {"sum_to", "(2, 3, 5)", "(3, 4)"}},
    {"reduce_max, axis", max_axis, {"op reduce_max", "axis -4", "-3..2"}},
    {"reduce_max, empty", max_empty, {"op reduce_max", "(2, 0, 5)", "empty"}},
    {"reduce_max, scalar", max_scalar, {"op reduce_max", "axis 0", "scalar"}},
    {"matmul, inner sizes", matmul_inner, {"op matmul", "(2, 3, 5), (3, 4)", "5 elements"}},
    {"matmul, batch", matmul_batch, {"op matmul", "(3, 4), (2, 3, 5)", "leading dimensions"}},
    {"matmul, rank", matmul_vector, {"op matmul", "(3, 4), (4,)", "two dimensions"}},
    {"bias", bias_size, {"op bias", "(2, 3, 5), (4,)", "5 entries of axis 2"}},
    {"pointwise, register", pointwise_register, {"op pointwise", "registers 0 and 1", "0..0"}},
    {"pointwise, shape", pointwise_shape, {"op pointwise", "input 1", "(2, 3, 5)"}},
    {"reorder", reorder_layout, {"op reorder", "(2, 3, 5)", "nhwc"}},
    {"inputs", too_many_inputs, {"op exp", "1 to 1", "given 2"}},
    {"fill", negative_fill, {"op fill", "impossible shape", "(2, -3)"}},
};

static void errors_name_place_op_and_shapes(void)
{
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        ls_graph *g = new_graph();
        ls_value x = f32(g, "x", LS_SHAPE(2, 3, 5)), y = f32(g, "y", LS_SHAPE(3, 4));
        ls_value i = ls_graph_input(g, "i", LS_I32, LS_SHAPE(2, 3)), v;
        ls_err err = {0};
        char place[64];
        bool ok;

        g->scope = "fc1";
        ls_value_at(x, "trial.c", 1200 + (int)k);
        v = bad[k].build(x, y, i);
        ok = CHECK(!ls_value_ok(v)) && CHECK_STATUS(ls_graph_status(g, &err), LS_INVALID, &err);
        snprintf(place, sizeof place, "trial.c:%d: layer \"fc1\": ", 1200 + (int)k);
        ok &= CHECK_CONTAINS(err.text, place);
        for (int p = 0; p < 3; p++) ok &= CHECK_CONTAINS(err.text, bad[k].part[p]);
        if (!ok) printf("case: %s\n", bad[k].name);
        ls_graph_destroy(g);
    }
}

static void first_error_stays(void)
{
    ls_graph *g = new_graph();
    ls_value x = f32(g, "x", LS_SHAPE(2, 3)), v;
    ls_err first = {0}, later = {0};
    int32_t n_nodes, n_values;

    v = ls_add(x, ls_fill(g, LS_SHAPE(4), LS_F32, 0));
    CHECK(!ls_value_ok(v));
    CHECK_STATUS(ls_graph_status(g, &first), LS_INVALID, &first);
    n_nodes = g->n_nodes;
    n_values = g->n_values;
    ls_value_at(x, "later.c", 7);
    CHECK(!ls_value_ok(ls_relu(x)));                /* good operands, broken graph */
    CHECK(!ls_value_ok(ls_matmul(v, x, 0, 0)));     /* broken operand */
    CHECK(!ls_value_ok(ls_sum_to(v, LS_SHAPE(9)))); /* a composite */
    CHECK(!ls_value_ok(ls_transpose(v, NULL)));
    CHECK(!ls_value_ok(f32(g, "z", LS_SHAPE(1))));
    CHECK(!ls_value_ok(ls_graph_out(v, 1)));
    CHECK(!ls_value_ok(ls_graph_fail(g, LS_IO, "another")));
    ls_graph_fetch(v, "v");
    CHECK_EQ_INT(g->n_nodes, n_nodes);
    CHECK_EQ_INT(g->n_values, n_values);
    CHECK_STATUS(ls_graph_status(g, &later), LS_INVALID, &later);
    CHECK_EQ_STR(later.text, first.text);
    CHECK(ls_value_dtype(v) == LS_F32 && ls_shape_equal(ls_value_shape(v), LS_SHAPE(0)));
    ls_graph_destroy(g);
}

static void names_are_unique(void)
{
    ls_graph *g = new_graph();
    ls_err err = {0};

    f32(g, "x", LS_SHAPE(1));
    f32(g, "x", LS_SHAPE(1));
    CHECK_STATUS(ls_graph_status(g, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "\"x\" is declared twice");
    ls_graph_destroy(g);

    g = new_graph();
    err = (ls_err){0};
    ls_graph_var(g, "w", LS_VAR_PARAM, LS_F32, LS_SHAPE(1), (ls_init){LS_INIT_CONST, 0});
    ls_graph_var(g, "w", LS_VAR_BUFFER, LS_F32, LS_SHAPE(1), (ls_init){LS_INIT_CONST, 0});
    CHECK_STATUS(ls_graph_status(g, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "\"w\" exists already");
    ls_graph_destroy(g);

    g = new_graph();
    err = (ls_err){0};
    f32(g, "x", LS_SHAPE(INT64_MAX, 3));
    CHECK_STATUS(ls_graph_status(g, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "input \"x\"");
    ls_graph_destroy(g);
}

/* -- variables ---------------------------------------------------------------------------------------------
 */

static void variables_have_versions(void)
{
    ls_graph *g = new_graph();
    ls_init init = {LS_INIT_NORMAL, 0.02};
    ls_value w = ls_graph_var(g, "w", LS_VAR_PARAM, LS_F32, LS_SHAPE(3, 5), init);
    ls_value m = ls_graph_var(g, "m", LS_VAR_OPTIMIZER, LS_F32, LS_SHAPE(3, 5), init);
    int32_t var = ls_graph_find_var(g, "w");
    ls_value next = ls_add(w, m), last;

    CHECK_EQ_INT(var, 0);
    CHECK_EQ_INT(ls_graph_find_var(g, "m"), 1);
    CHECK_EQ_INT(ls_graph_find_var(g, "v"), -1);
    CHECK(g->vars[var]->init.kind == LS_INIT_NORMAL);
    CHECK(ls_graph_value(g, w.id)->kind == LS_VALUE_VAR);
    CHECK(ls_graph_value(g, w.id)->category == LS_CAT_WEIGHT);
    CHECK(ls_graph_value(g, m.id)->category == LS_CAT_OPTIMIZER);

    ls_graph_advance(g, var, next);
    CHECK_EQ_INT(g->vars[var]->first, w.id);
    CHECK_EQ_INT(g->vars[var]->current, next.id);
    CHECK_EQ_INT(ls_graph_value(g, next.id)->var, var);
    CHECK(ls_graph_value(g, next.id)->kind == LS_VALUE_NODE);
    CHECK(ls_graph_value(g, next.id)->category == LS_CAT_WEIGHT);
    last = ls_affine(next, 0.5, 0);
    ls_graph_advance(g, var, last);
    CHECK_EQ_INT(g->vars[var]->first, w.id);
    CHECK_EQ_INT(g->vars[var]->current, last.id);
    CHECK_EQ_INT(g->vars[1]->current, m.id);
    ls_graph_destroy(g);
}

static void replacing_follows_readers_fetches_and_versions(void)
{
    ls_graph *g = new_graph();
    ls_value x = f32(g, "x", LS_SHAPE(4));
    ls_value w = ls_graph_var(g, "w", LS_VAR_PARAM, LS_F32, LS_SHAPE(4), (ls_init){LS_INIT_CONST, 1});
    ls_value a = ls_mul(x, w), b = ls_exp(a), c = ls_add(a, b), d = ls_copy(a);
    int32_t uses[16];

    REQUIRE(g->n_values <= 16);
    ls_graph_fetch(a, "a");
    ls_graph_advance(g, 0, a);
    ls_graph_count_uses(g, uses);
    CHECK_EQ_INT(uses[a.id], 5); /* exp, add, copy, the fetch and the variable */
    CHECK_EQ_INT(uses[x.id], 1);
    CHECK_EQ_INT(uses[c.id], 0);

    g->nodes[g->values[b.id]->node]->dead = true;
    ls_graph_replace(g, a.id, d.id);
    CHECK_EQ_INT(g->nodes[g->values[c.id]->node]->in[0], d.id);
    CHECK_EQ_INT(g->nodes[g->values[b.id]->node]->in[0], a.id); /* dead: left alone */
    CHECK_EQ_INT(g->vars[0]->current, d.id);
    CHECK(g->values[d.id]->fetch && !g->values[a.id]->fetch);
    CHECK_EQ_STR(g->values[d.id]->name, "a");
    ls_graph_destroy(g);
}

/* -- builders ----------------------------------------------------------------------------------------------
 */

static void useless_nodes_are_not_made(void)
{
    ls_graph *g = new_graph();
    ls_value x = f32(g, "x", LS_SHAPE(3, 1, 5));

    CHECK_EQ_INT(ls_affine(x, 1, 0).id, x.id);
    CHECK_EQ_INT(ls_reshape(x, LS_SHAPE(3, -1, 5)).id, x.id);
    CHECK_EQ_INT(ls_transpose(x, (const int[]){0, 1, 2}).id, x.id);
    CHECK_EQ_INT(ls_slice(x, -1, 0, 5).id, x.id);
    CHECK_EQ_INT(ls_concat(1, &x, 0).id, x.id);
    CHECK_EQ_INT(ls_broadcast_to(x, LS_SHAPE(3, 1, 5)).id, x.id);
    CHECK_EQ_INT(ls_sum_to(x, LS_SHAPE(3, 1, 5)).id, x.id);
    CHECK_EQ_INT(ls_reduce_sum(x, 0, false).id, x.id);
    CHECK_EQ_INT(ls_reduce_sum(x, 2, true).id, x.id);
    CHECK_EQ_INT(ls_cast(x, LS_F32).id, x.id);
    CHECK_EQ_INT(g->n_nodes, 0);
    /* What only renames dimensions is a view. */
    CHECK(op_of(ls_transpose(x, (const int[]){1, 0, 2})) == &ls_op_reshape);
    CHECK(op_of(ls_reduce_sum(x, 2, false)) == &ls_op_reshape);
    CHECK(op_of(ls_broadcast_to(x, LS_SHAPE(1, 3, 1, 5))) == &ls_op_reshape);
    CHECK_EQ_INT(g->n_nodes, 3);
    ls_graph_destroy(g);
}

static void check_node(ls_value v, ls_shape shape, const char *text, double flops, double bytes)
{
    const ls_node *n = v.g->nodes[v.g->values[v.id]->node];
    char buf[256], got[LS_SHAPE_TEXT], want[LS_SHAPE_TEXT];

    ls_node_text(n, buf, sizeof buf);
    CHECK_EQ_STR(ls_shape_text(ls_value_shape(v), got), ls_shape_text(shape, want));
    CHECK_EQ_STR(buf, text);
    CHECK_NEAR(ls_node_flops(v.g, n), flops, 0);
    CHECK_NEAR(ls_node_bytes(v.g, n), bytes, 0);
}

static void nodes_know_shape_text_and_cost(void)
{
    ls_graph *g = new_graph();
    ls_value x = f32(g, "x", LS_SHAPE(2, 3, 5)), row = f32(g, "row", LS_SHAPE(5));
    ls_value w = f32(g, "w", LS_SHAPE(7, 5)), half = ls_graph_input(g, "h", LS_BF16, LS_SHAPE(8));
    ls_pointwise_attr chain = {
        .n_steps = 3,
        .step = {{LS_PW_ADD, 0, 1, {0}}, {LS_PW_AFFINE, 2, 0, {0.5, -1}}, {LS_PW_COPY, 3, 0, {0}}}};

    check_node(ls_add(x, row), LS_SHAPE(2, 3, 5), "add", 30, 4 * (30 + 5 + 30));
    check_node(ls_exp(half), LS_SHAPE(8), "exp", 8, 2 * 16);
    check_node(ls_copy(x), LS_SHAPE(2, 3, 5), "copy", 0, 4 * 60);
    check_node(ls_affine(x, 2, -0.5), LS_SHAPE(2, 3, 5), "affine 2 -0.5", 30, 4 * 60);
    check_node(ls_cast(x, LS_BF16), LS_SHAPE(2, 3, 5), "cast to=bf16", 0, 6 * 30);
    check_node(ls_fill(g, LS_SHAPE(3), LS_I32, 4), LS_SHAPE(3), "fill shape=(3,) type=i32 value=4", 0, 12);
    check_node(ls_reshape(x, LS_SHAPE(-1, 15)), LS_SHAPE(2, 15), "reshape to=(2, 15)", 0, 0);
    check_node(ls_detach(x), LS_SHAPE(2, 3, 5), "detach", 0, 0);
    check_node(ls_prefix(row, 3), LS_SHAPE(3), "prefix length=3", 0, 0);
    check_node(ls_transpose(x, (const int[]){2, 0, 1}), LS_SHAPE(5, 2, 3), "transpose perm=2,0,1", 0, 4 * 60);
    check_node(ls_slice(x, -2, 1, 2), LS_SHAPE(2, 2, 5), "slice axis=1 start=1 length=2", 0, 4 * 50);
    check_node(ls_concat(2, (ls_value[]){x, x}, -1), LS_SHAPE(2, 3, 10), "concat axis=2", 0, 4 * 120);
    check_node(ls_broadcast_to(row, LS_SHAPE(4, 5)), LS_SHAPE(4, 5), "broadcast_to to=(4, 5)", 0, 4 * 25);
    check_node(ls_reduce_sum(x, 5, false), LS_SHAPE(3), "reduce_sum axes=0x5 keep=0", 30, 4 * 33);
    check_node(ls_reduce_sum(x, LS_ALL_AXES, true), LS_SHAPE(1, 1, 1), "reduce_sum axes=0x7 keep=1", 30,
               4 * 31);
    check_node(ls_reduce_max(x, -1), LS_SHAPE(2, 3), "reduce_max axis=2", 30, 4 * (30 + 6 + 6));
    check_node(ls_matmul(x, w, false, true), LS_SHAPE(2, 3, 7), "matmul trans=01 act=none:0", 2 * 42 * 5,
               4 * (30 + 35 + 42));
    check_node(ls_bias(x, row, -1), LS_SHAPE(2, 3, 5), "bias axis=2", 30, 4 * 65);
    check_node(ls_graph_add(g, &ls_op_pointwise, 2, (ls_value[]){x, x}, &chain), LS_SHAPE(2, 3, 5),
               "pointwise add 0 1; affine 2 0.5 -1; copy 3", 60, 4 * 90);
    ls_graph_destroy(g);
}

int main(void)
{
    CHECK_RUN(errors_name_place_op_and_shapes);
    CHECK_RUN(first_error_stays);
    CHECK_RUN(names_are_unique);
    CHECK_RUN(variables_have_versions);
    CHECK_RUN(replacing_follows_readers_fetches_and_versions);
    CHECK_RUN(useless_nodes_are_not_made);
    CHECK_RUN(nodes_know_shape_text_and_cost);
    return CHECK_DONE();
}
