/* test_precision.c: which types a step computes in: products in the low one, what is summed up in fp32, and
 * no cast that is none. */
#include <string.h>

#include "check.h"
#include "graph/graph.h"
#include "ops/macros.h"
#include "ops/ops.h"
#include "passes/lower.h"

enum { MANY = 8 };

static ls_graph *begin(void)
{
    ls_graph *g;

    REQUIRE_OK(ls_graph_create(&g, NULL), NULL);
    return g;
}

static ls_value variable(ls_graph *g, const char *name, ls_var_role role, ls_shape shape)
{
    return ls_graph_var(g, name, role, LS_F32, shape, (ls_init){LS_INIT_CONST, 1});
}

/* The program of one rank, and that it could be made. */
static void lower(ls_graph *g, ls_dtype compute)
{
    ls_err err = {0};

    ls_passes_lower(g, &(ls_strategy){.compute = compute});
    REQUIRE_OK(ls_graph_status(g, &err), &err);
}

static int count(const ls_graph *g, const ls_op *op)
{
    int n = 0;

    for (int32_t i = 0; i < g->n_nodes; i++) n += !g->nodes[i]->dead && g->nodes[i]->op == op;
    return n;
}

/* The only node of that op. */
static const ls_node *the(const ls_graph *g, const ls_op *op)
{
    REQUIRE(count(g, op) == 1);
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i]->dead && g->nodes[i]->op == op) return g->nodes[i];
    return NULL;
}

static ls_dtype in_type(const ls_graph *g, const ls_node *n, int k)
{
    return g->values[n->in[k]]->dtype;
}

static ls_dtype out_type(const ls_graph *g, const ls_node *n, int k)
{
    return g->values[n->out[k]]->dtype;
}

/* x * w, a bias, ReLU, the loss; and the gradient of w, fetched. */
static ls_graph *product(void)
{
    ls_graph *g = begin();
    const ls_value x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(4, 3)),
                   target = ls_graph_input(g, "target", LS_F32, LS_SHAPE(4, 2)),
                   w = variable(g, "w", LS_VAR_PARAM, LS_SHAPE(3, 2)),
                   b = variable(g, "b", LS_VAR_PARAM, LS_SHAPE(2));
    const ls_value y = ls_relu(ls_bias(ls_matmul(x, w, false, false), b, -1));
    ls_value wrt[2] = {w, b}, in[MANY], loss, first;

    loss = ls_mse_loss(y, target);
    ls_graph_fetch(loss, "loss");
    ls_graph_fetch(y, "y");
    first = ls_gradients(loss, (ls_value){g, -1}, 2, wrt, in);
    ls_graph_fetch(ls_graph_out(first, 0), "dw");
    ls_graph_fetch(ls_graph_out(first, 1), "db");
    return g;
}

static void products_are_low_and_losses_are_not(void)
{
    ls_graph *g = product();

    lower(g, LS_BF16);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        if (n->op == &ls_op_matmul || n->op == &ls_op_bias || n->op == &ls_op_relu)
            for (int k = 0; k < n->n_in; k++) CHECK(in_type(g, n, k) == LS_BF16);
        if (n->op == &ls_op_square || n->op == &ls_op_sub) CHECK(out_type(g, n, 0) == LS_F32);
    }
    CHECK(count(g, &ls_op_matmul) == 2); /* forward, and the gradient of w */
    ls_graph_destroy(g);
}

/* Variables and what the host reads are fp32. */
static void the_host_sees_no_low_type(void)
{
    static const char *const names[] = {"loss", "y", "dw", "db"};
    ls_graph *g = product();
    int seen = 0;

    lower(g, LS_BF16);
    for (int32_t i = 0; i < g->n_vars; i++) CHECK(g->values[g->vars[i]->first]->dtype == LS_F32);
    for (int32_t i = 0; i < g->n_values; i++) {
        if (!g->values[i]->fetch) continue;
        CHECK(g->values[i]->dtype == LS_F32);
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            seen += strcmp(g->values[i]->name, names[k]) == 0;
    }
    CHECK(seen == 4);
    ls_graph_destroy(g);
}

static void fp32_has_no_casts(void)
{
    ls_graph *g = product();

    CHECK(count(g, &ls_op_cast) > 0); /* where the loss begins */
    lower(g, LS_F32);
    CHECK(count(g, &ls_op_cast) == 0);
    ls_graph_destroy(g);
}

/* Two readers in fp32 of one low value share its cast. */
static void a_low_value_is_widened_once(void)
{
    ls_graph *g = begin();
    const ls_value x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(3, 3)),
                   w = variable(g, "w", LS_VAR_PARAM, LS_SHAPE(3, 3)), y = ls_matmul(x, w, false, false);

    ls_graph_fetch(ls_add(ls_exp(y), ls_square(y)), "sum");
    lower(g, LS_BF16);
    CHECK_EQ_INT(count(g, &ls_op_cast), 3); /* x, w, and y once */
    ls_graph_destroy(g);
}

/* Two readers of one parameter share its cast. */
static void a_parameter_is_cast_once(void)
{
    ls_graph *g = begin();
    const ls_value x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(3, 3)),
                   w = variable(g, "w", LS_VAR_PARAM, LS_SHAPE(3, 3));

    ls_graph_fetch(ls_matmul(ls_matmul(x, w, false, false), w, false, false), "y");
    lower(g, LS_BF16);
    CHECK(count(g, &ls_op_cast) == 3); /* x, w, and back for the host */
    ls_graph_destroy(g);
}

/* A norm reads and writes low maps; what it remembers of them is fp32, and so are its parameters. */
static void statistics_are_wide(void)
{
    ls_graph *g = begin();
    const ls_shape c = LS_SHAPE(2);
    const ls_value x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(4, 3)),
                   w = variable(g, "w", LS_VAR_PARAM, LS_SHAPE(3, 2));
    ls_value in[5] = {ls_matmul(x, w, false, false), variable(g, "gamma", LS_VAR_PARAM, c),
                      variable(g, "beta", LS_VAR_PARAM, c), variable(g, "mean", LS_VAR_BUFFER, c),
                      variable(g, "var", LS_VAR_BUFFER, c)};
    const ls_node *n;
    ls_value y;

    y = ls_graph_add(g, &ls_op_batch_norm, 5, in, &(ls_norm_attr){.eps = 1e-5, .momentum = 0.1});
    for (int k = 3; k < 5; k++) ls_graph_advance(g, g->values[in[k].id]->var, ls_graph_out(y, k));
    ls_graph_fetch(y, "y");
    lower(g, LS_BF16);
    n = the(g, &ls_op_batch_norm);
    CHECK(in_type(g, n, 0) == LS_BF16 && out_type(g, n, 0) == LS_BF16);
    for (int k = 1; k < 5; k++) CHECK(in_type(g, n, k) == LS_F32 && out_type(g, n, k) == LS_F32);
    ls_graph_destroy(g);
}

/* A constant and a parameter follow what they are used with; an input, which has a type of its own, does not.
 */
static void weak_values_follow(void)
{
    ls_graph *g = begin();
    const ls_value x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(3, 3)),
                   w = variable(g, "w", LS_VAR_PARAM, LS_SHAPE(3, 3)),
                   place = variable(g, "place", LS_VAR_PARAM, LS_SHAPE(3, 3));
    const ls_value low = ls_matmul(x, w, false, false);
    ls_value sum = ls_add(low, ls_reshape(place, LS_SHAPE(3, 3)));

    sum = ls_mul(sum, ls_fill(g, LS_SHAPE(3, 3), LS_F32, 0.5));
    ls_graph_fetch(ls_sub(sum, x), "y");
    lower(g, LS_BF16);
    CHECK(out_type(g, the(g, &ls_op_add), 0) == LS_BF16);
    CHECK(out_type(g, the(g, &ls_op_mul), 0) == LS_BF16);
    CHECK(out_type(g, the(g, &ls_op_fill), 0) == LS_BF16);
    CHECK(out_type(g, the(g, &ls_op_sub), 0) == LS_F32);
    ls_graph_destroy(g);
}

/* A parameter that an update has left, and one that is repeated for all samples, are parameters still: what
 * reads them is as low as before. */
static void later_versions_follow_too(void)
{
    ls_graph *g = begin();
    const ls_value x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(4, 3)),
                   w = variable(g, "w", LS_VAR_PARAM, LS_SHAPE(3, 2)),
                   b = variable(g, "b", LS_VAR_PARAM, LS_SHAPE(2)),
                   token = variable(g, "token", LS_VAR_PARAM, LS_SHAPE(1, 2));
    const ls_value low = ls_matmul(x, w, false, false);
    ls_value moved = ls_assign(b, ls_scale(b, 0.5));

    ls_graph_advance(g, g->values[b.id]->var, moved);
    moved = ls_bias(low, moved, -1);
    ls_graph_fetch(ls_concat(2, (const ls_value[]){ls_broadcast_to(token, LS_SHAPE(4, 2)), moved}, 0), "y");
    lower(g, LS_BF16);
    CHECK(out_type(g, the(g, &ls_op_bias), 0) == LS_BF16);
    CHECK(out_type(g, the(g, &ls_op_concat), 0) == LS_BF16);
    ls_graph_destroy(g);
}

/* That the host looks at a value, or that the trial has cast it, changes nothing of what the step computes:
 * the next product is low, and the gradient by that value is found. */
static void gradient_by(bool cast)
{
    ls_graph *g = begin();
    const ls_value x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(3, 3)),
                   w = variable(g, "w", LS_VAR_PARAM, LS_SHAPE(3, 3));
    ls_value h = ls_matmul(x, w, false, false), in[MANY], y;

    if (cast)
        h = ls_cast(ls_cast(h, LS_BF16), LS_F32);
    else
        ls_graph_fetch(h, "h");
    y = ls_relu(ls_matmul(h, w, false, false));
    ls_graph_fetch(y, "y");
    ls_graph_fetch(ls_gradients(y, (ls_value){g, -1}, 1, &h, in), "dh");
    lower(g, LS_BF16);
    CHECK(out_type(g, the(g, &ls_op_relu), 0) == LS_BF16);
    for (int32_t i = 0; i < g->n_values; i++) CHECK(!g->values[i]->fetch || g->values[i]->dtype == LS_F32);
    ls_graph_destroy(g);
}

static void fetched_values_stay_in_the_step(void)
{
    gradient_by(false);
}

static void cast_values_stay_in_the_step(void)
{
    gradient_by(true);
}

int main(void)
{
    CHECK_RUN(products_are_low_and_losses_are_not);
    CHECK_RUN(the_host_sees_no_low_type);
    CHECK_RUN(fp32_has_no_casts);
    CHECK_RUN(a_low_value_is_widened_once);
    CHECK_RUN(a_parameter_is_cast_once);
    CHECK_RUN(statistics_are_wide);
    CHECK_RUN(weak_values_follow);
    CHECK_RUN(later_versions_follow_too);
    CHECK_RUN(fetched_values_stay_in_the_step);
    CHECK_RUN(cast_values_stay_in_the_step);
    return CHECK_DONE();
}
