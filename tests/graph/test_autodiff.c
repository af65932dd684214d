/* Autodiff: only gradients that somebody asked for are computed, none where there is none, and memory may run
 * out at any moment. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "faults.h"
#include "ops/ops.h"
#include "passes/autodiff.h"
#include "passes/passes.h"

static const ls_value no_seed = {NULL, -1};

static ls_graph *new_graph(void)
{
    ls_graph *g = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_graph_create(&g, &err), &err);
    return g;
}

static ls_value param(ls_graph *g, const char *name, ls_shape shape)
{
    return ls_graph_var(g, name, LS_VAR_PARAM, LS_F32, shape, (ls_init){LS_INIT_NORMAL, 0.1});
}

static ls_value total(ls_value x)
{
    return ls_reduce_sum(x, LS_ALL_AXES, false);
}

/* Live nodes made by autodiff; those of one op when `op` is given. */
static int count_backward(const ls_graph *g, const ls_op *op)
{
    int n = 0;

    for (int32_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->backward && !g->nodes[i]->dead && (op == NULL || g->nodes[i]->op == op)) n++;
    return n;
}

/* Two layers with most kinds of ops in between; *w receives the parameters. */
static ls_value small_net(ls_graph *g, ls_value x, ls_value w[4])
{
    ls_value h, head, tail;

    w[0] = param(g, "fc1.weight", LS_SHAPE(7, 6));
    w[1] = param(g, "fc1.bias", LS_SHAPE(7));
    w[2] = param(g, "fc2.weight", LS_SHAPE(7, 3));
    w[3] = param(g, "gain", LS_SHAPE_SCALAR);
    h = ls_tanh(ls_bias(ls_matmul(x, w[0], false, true), w[1], -1));
    head = ls_gelu(ls_slice(h, 1, 0, 4));
    tail = ls_maximum(ls_slice(h, 1, 4, 3), ls_scale(ls_slice(h, 1, 1, 3), 0.5));
    h = ls_div(ls_concat(2, (ls_value[]){head, tail}, 1), ls_affine(ls_square(w[3]), 1, 1));
    h = ls_matmul(h, w[2], false, false);
    h = ls_transpose(ls_softplus(ls_leaky_relu(h, 0.1)), (const int[]){1, 0});
    tail = ls_slice(ls_reshape(h, LS_SHAPE(-1)), 0, 2, 5);
    return ls_reduce_mean(ls_mul(ls_reduce_max(h, 0), tail), LS_ALL_AXES, false);
}

/* -- what is computed --------------------------------------------------------------------------------------
 */

static void only_wanted_gradients_are_computed(void)
{
    ls_graph *g = new_graph();
    ls_value x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(4, 5)), w = param(g, "w", LS_SHAPE(5, 3));
    ls_value b = param(g, "b", LS_SHAPE(3)), y = ls_bias(ls_matmul(x, w, false, false), b, 1), grad;
    ls_value loss = total(ls_mul(ls_relu(y), ls_exp(ls_slice(x, 1, 0, 3))));

    ls_autodiff(loss, no_seed, 1, &b, &grad);
    CHECK(ls_value_ok(grad));
    CHECK_EQ_INT(count_backward(g, &ls_op_matmul), 0); /* neither dx nor dw lies on the way to b */
    /* seed, a view of it, its broadcast, times exp(x), relu's mask, the sum over rows */
    CHECK_EQ_INT(count_backward(g, NULL), 6);
    CHECK_EQ_INT(count_backward(g, &ls_op_fill), 1);
    CHECK_EQ_INT(count_backward(g, &ls_op_reshape), 1);
    CHECK_EQ_INT(count_backward(g, &ls_op_broadcast_to), 1);
    CHECK_EQ_INT(count_backward(g, &ls_op_mul), 1);
    CHECK_EQ_INT(count_backward(g, &ls_op_relu_grad), 1);
    CHECK_EQ_INT(count_backward(g, &ls_op_reduce_sum), 1);

    ls_autodiff(loss, no_seed, 1, &w, &grad);
    CHECK(ls_value_ok(grad));
    CHECK_EQ_INT(count_backward(g, &ls_op_matmul), 1); /* dw, not dx */
    ls_graph_destroy(g);
}

/* When the host fetches the gradients, no node made by autodiff may be left over. */
static void no_gradient_node_is_dead(void)
{
    for (unsigned set = 1; set < 16; set++) {
        ls_graph *g = new_graph();
        ls_value x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(5, 6)), w[4], wrt[4], grad[4];
        ls_value loss = small_net(g, x, w);
        ls_err err = {0};
        int n = 0, before;

        for (int i = 0; i < 4; i++)
            if (set & 1u << i) wrt[n++] = w[i];
        ls_autodiff(loss, no_seed, n, wrt, grad);
        CHECK_OK(ls_graph_status(g, &err), &err);
        for (int i = 0; i < n; i++) {
            char name[16];
            snprintf(name, sizeof name, "g%d", i);
            CHECK(ls_value_ok(grad[i]));
            CHECK(ls_shape_equal(ls_value_shape(grad[i]), ls_value_shape(wrt[i])));
            ls_graph_fetch(grad[i], name);
        }
        before = count_backward(g, NULL);
        ls_pass_dead(g);
        if (!CHECK_EQ_INT(count_backward(g, NULL), before)) printf("parameters: set 0x%x\n", set);
        ls_graph_destroy(g);
    }
}

static void no_dependence_no_gradient(void)
{
    ls_graph *g = new_graph();
    ls_value x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(4, 5)), w = param(g, "w", LS_SHAPE(5));
    ls_value unused = param(g, "unused", LS_SHAPE(5)), aside = param(g, "aside", LS_SHAPE(5));
    ls_value stopped = param(g, "stopped", LS_SHAPE(5)), flat = param(g, "flat", LS_SHAPE(5));
    ls_value loss, grad[5];
    int32_t n_nodes;
    ls_err err = {0};

    ls_mul(w, aside); /* made of w, but the loss does not see it */
    loss = total(ls_add(ls_mul(x, w), ls_add(ls_detach(ls_exp(stopped)), ls_sign(flat))));
    ls_autodiff(loss, no_seed, 5, (ls_value[]){w, unused, aside, stopped, flat}, grad);
    CHECK_OK(ls_graph_status(g, &err), &err);
    CHECK(ls_value_ok(grad[0]));
    for (int i = 1; i < 5; i++) CHECK(!ls_value_ok(grad[i]));

    n_nodes = g->n_nodes;
    ls_autodiff(loss, no_seed, 1, &unused, grad);
    CHECK(!ls_value_ok(grad[0]));
    CHECK_EQ_INT(g->n_nodes, n_nodes); /* not even a seed */
    ls_graph_destroy(g);
}

static void gradients_belong_to_the_line_of_their_op(void)
{
    ls_graph *g = new_graph();
    ls_value w = param(g, "w", LS_SHAPE(5)), y, loss, grad;
    bool seen = false;

    g->scope = "layer1";
    y = ls_exp(ls_value_at(w, "trial.c", 10));
    g->scope = "";
    loss = total(ls_value_at(y, "trial.c", 20));
    ls_value_at(loss, "trial.c", 30);
    ls_autodiff(loss, no_seed, 1, &w, &grad);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        if (!n->backward || n->op != &ls_op_mul) continue;
        seen = true;
        CHECK_EQ_STR(n->scope, "layer1");
        CHECK_EQ_INT(n->src.line, 10);
    }
    CHECK(seen);
    CHECK_EQ_INT(g->here.line, 30);
    CHECK_EQ_STR(g->scope, "");
    CHECK(!g->backward);
    ls_graph_destroy(g);
}

static void missing_gradients_are_errors(void)
{
    ls_graph *g = new_graph();
    ls_value w = param(g, "w", LS_SHAPE(5)), y, grad;
    ls_reorder_attr attr = {&ls_layout_plain, &ls_layout_plain};
    ls_err err = {0};

    ls_value_at(w, "trial.c", 44);
    y = ls_graph_add(g, &ls_op_reorder, 1, &w, &attr);
    ls_autodiff(total(y), no_seed, 1, &w, &grad);
    CHECK(!ls_value_ok(grad));
    CHECK_STATUS(ls_graph_status(g, &err), LS_UNSUPPORTED, &err);
    CHECK_CONTAINS(err.text, "op reorder has no gradient");
    CHECK_CONTAINS(err.text, "trial.c:44");
    ls_graph_destroy(g);
}

static void seeds_replace_ones(void)
{
    ls_graph *g = new_graph();
    ls_value w = param(g, "w", LS_SHAPE(5)), seed = ls_graph_input(g, "seed", LS_F32, LS_SHAPE(5)), grad;

    ls_autodiff(ls_copy(w), seed, 1, &w, &grad);
    CHECK_EQ_INT(grad.id, seed.id);
    CHECK_EQ_INT(count_backward(g, NULL), 0);
    ls_autodiff(w, seed, 1, &w, &grad); /* the loss is the parameter */
    CHECK_EQ_INT(grad.id, seed.id);
    ls_graph_destroy(g);
}

/* -- types -------------------------------------------------------------------------------------------------
 */

static void gradients_have_the_type_of_what_they_belong_to(void)
{
    ls_graph *g = new_graph();
    ls_value w = param(g, "w", LS_SHAPE(5, 3)), grad;
    ls_value half = ls_cast(w, LS_BF16), i = ls_cast(half, LS_I32);
    ls_err err = {0};

    /* Integers carry no gradient, so the second term adds none. */
    ls_autodiff(ls_add(total(ls_cast(ls_square(half), LS_F32)), total(ls_cast(i, LS_F32))), no_seed, 1, &w,
                &grad);
    CHECK_OK(ls_graph_status(g, &err), &err);
    REQUIRE(ls_value_ok(grad));
    CHECK(ls_value_dtype(grad) == LS_F32);
    CHECK_EQ_INT(count_backward(g, &ls_op_cast), 2);
    CHECK_EQ_INT(count_backward(g, &ls_op_add), 0);
    ls_graph_destroy(g);
}

/* -- memory ------------------------------------------------------------------------------------------------
 */

/* A graph with first and second derivatives, variables' versions and a fetch.  A graph takes memory in large
 * blocks, so only some of its requests can fail; `arg` is a number of bytes taken before, which shifts the
 * ones that do. */
static ls_status build_and_differentiate(void *arg, ls_err *err)
{
    ls_status st = LS_OK;
    ls_graph *g = NULL;
    ls_value x, loss, w[4], grad[4], grad2[4];

    LS_TRY(ls_graph_create(&g, err));
    for (size_t taken = 0; taken < *(const size_t *)arg; taken += 16)
        if (ls_arena_alloc(g->arena, 16) == NULL) {
            st = ls_fail(err, LS_NOMEM, "no memory to begin with");
            goto out;
        }
    x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(5, 6));
    loss = small_net(g, x, w);
    ls_autodiff(loss, no_seed, 4, w, grad);
    loss = ls_add(loss, total(ls_square(grad[0])));
    ls_autodiff(loss, no_seed, 4, w, grad2);
    for (int i = 0; i < 4; i++) {
        ls_value next = ls_sub(w[i], ls_scale(ls_add(grad[i], grad2[i]), 0.01));
        ls_graph_advance(g, i, next);
    }
    ls_graph_fetch(loss, "loss");
    LS_TRY(ls_graph_status(g, err));
    CHECK(ls_value_ok(grad2[3]));
out:
    ls_graph_destroy(g);
    return st;
}

static void every_allocation_may_fail(void)
{
    for (size_t taken = 0; taken < 66000; taken += 1616)
        check_faults("graph with gradients", build_and_differentiate, &taken);
}

int main(void)
{
    CHECK_RUN(only_wanted_gradients_are_computed);
    CHECK_RUN(no_gradient_node_is_dead);
    CHECK_RUN(no_dependence_no_gradient);
    CHECK_RUN(gradients_belong_to_the_line_of_their_op);
    CHECK_RUN(missing_gradients_are_errors);
    CHECK_RUN(seeds_replace_ones);
    CHECK_RUN(gradients_have_the_type_of_what_they_belong_to);
    CHECK_RUN(every_allocation_may_fail);
    return CHECK_DONE();
}
