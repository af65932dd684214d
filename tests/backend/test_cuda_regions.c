/* test_cuda_regions.c: which parts of small networks become regions of the CUDA backend, and that what is
 * left can be put into an order.  No GPU is needed. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "passes/passes.h"
#include "small_nets.h"

static const small_net *net_called(const char *name)
{
    const small_net *n = small_nets;

    while (strcmp(n->name, name) != 0) n++;
    return n;
}

static int live(const ls_graph *g, const ls_op *op)
{
    int n = 0;

    for (int32_t i = 0; i < g->n_nodes; i++)
        n += !g->nodes[i]->dead &&
             (op == NULL ? !(g->nodes[i]->op->flags & LS_OP_VIEW) : g->nodes[i]->op == op);
    return n;
}

static int regions(const ls_graph *g)
{
    int n = 0;

    for (int32_t i = 0; i < g->n_nodes; i++) n += small_net_is_region(g->nodes[i]);
    return n;
}

static const ls_node *first(const ls_graph *g, const ls_op *op)
{
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i]->dead && g->nodes[i]->op == op) return g->nodes[i];
    return NULL;
}

static void print(const ls_graph *g)
{
    char text[1000];

    for (int32_t i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i]->dead) continue;
        ls_node_text(g->nodes[i], text, sizeof text);
        printf("  %s\n", text);
    }
}

static void a_small_step_is_one_region(void)
{
    const char *const names[] = {"pools_first", "pads_and_averages", "perceptron", "decoupled"};

    for (int i = 0; i < 4; i++) {
        lsi_region_machine m = small_net_machine(true);
        ls_graph *g = small_net_graph(net_called(names[i]), LS_TRAIN, 64, &m);
        if (!CHECK_EQ_INT(live(g, NULL), 1)) print(g);
        CHECK_EQ_INT(live(g, &ls_op_region_update), 1);
        ls_graph_destroy(g);
        m.updates_apart = true;
        g = small_net_graph(net_called(names[i]), LS_TRAIN, 64, &m);
        if (!CHECK_EQ_INT(live(g, NULL), 2)) print(g);
        CHECK_EQ_INT(live(g, &ls_op_region), 1);
        ls_graph_destroy(g);
    }
}

/* Next versions lie where the versions lie that they replace: number, weights and states. */
static void updates_write_over_what_they_read(void)
{
    const lsi_region_machine m = small_net_machine(true);
    ls_graph *g = small_net_graph(net_called("pools_first"), LS_TRAIN, 64, &m);
    const ls_node *n = first(g, &ls_op_region_update);
    int over = 0;

    REQUIRE(n != NULL);
    for (int k = 0; k < n->n_out; k++) {
        const int in = n->op->alias(n->n_in, n->attr, k);
        const int32_t var = g->values[n->out[k]]->var;
        CHECK_EQ_INT(var >= 0, in >= 0);
        if (in < 0) continue;
        CHECK_EQ_INT(g->values[n->in[in]]->var, var);
        CHECK_EQ_INT(g->vars[var]->current, n->out[k]);
        over++;
    }
    CHECK_EQ_INT(over, 1 + 2 * 8);
    ls_graph_destroy(g);
}

/* Two losses of which each trains what the other reads, as a step has them whose second part reads weights
 * that the first has updated. */
static void one_after_the_other(ls_step *s)
{
    ls_value x = ls_flatten(ls_input(s, "image", LS_F32, LS_SHAPE(-1, 1, 8, 8)));
    ls_value label = ls_input(s, "label", LS_I32, LS_SHAPE(-1));
    const ls_optimiser o = {.rule = LS_SGD, .lr = 0.01, .momentum = 0.5};
    ls_value h = ls_relu(ls_linear(s, x, "a", .out = 20));
    ls_value loss = ls_cross_entropy(ls_linear(s, h, "b", .out = 10), label);

    ls_minimise(s, loss, "a.*", o);
    ls_minimise(s, loss, "b.*", o);
    h = ls_relu(ls_linear(s, x, "a", .out = 20));
    ls_metric(s, "again", ls_cross_entropy(ls_linear(s, h, "b", .out = 10), label));
}

static void what_reads_new_weights_comes_after_them(void)
{
    const small_net net = {"one after the other", one_after_the_other};
    const lsi_region_machine m = small_net_machine(true);
    ls_graph *g = small_net_graph(&net, LS_TRAIN, 64, &m);
    ls_schedule s = {0};
    ls_err err = {0};

    if (!CHECK_EQ_INT(live(g, &ls_op_region_update), 1)) print(g);
    ls_pass_versions(g);
    CHECK_OK(ls_graph_status(g, &err), &err);
    CHECK_OK(ls_pass_schedule(g, &s, &err), &err);
    ls_schedule_release(&s);
    ls_graph_destroy(g);
}

/* A metric of weights and loss, which reads weights as they were before. */
static void read_behind(ls_step *s)
{
    ls_value x = ls_flatten(ls_input(s, "image", LS_F32, LS_SHAPE(-1, 1, 8, 8)));
    ls_value label = ls_input(s, "label", LS_I32, LS_SHAPE(-1));
    ls_value w = ls_parameter(s, "w", LS_SHAPE(64, 10), (ls_init_rule){0});
    ls_value loss = ls_cross_entropy(ls_relu(ls_matmul(ls_tanh(x), w, false, false)), label);

    ls_minimise(s, loss, "w", (ls_optimiser){.rule = LS_SGD, .lr = 0.01});
    ls_metric(s, "product", ls_reduce_sum(ls_mul(w, ls_broadcast_to(loss, LS_SHAPE(64, 10))), 3, false));
}

static void what_is_read_behind_a_region_is_not_updated_there(void)
{
    const small_net net = {"read behind", read_behind};
    const lsi_region_machine m = small_net_machine(true);
    ls_graph *g = small_net_graph(&net, LS_TRAIN, 64, &m);

    if (!CHECK_EQ_INT(live(g, &ls_op_region), 1)) print(g);
    CHECK_EQ_INT(live(g, &ls_op_region_update), 0);
    CHECK_EQ_INT(live(g, &ls_op_sgd), 1);
    ls_graph_destroy(g);
}

/* Weights that are made of three: two of these have one gradient, and that of the third follows from it. */
static void three_of_one_gradient(ls_step *s)
{
    ls_value x = ls_flatten(ls_input(s, "image", LS_F32, LS_SHAPE(-1, 1, 8, 8)));
    ls_value label = ls_input(s, "label", LS_I32, LS_SHAPE(-1));
    ls_value a = ls_parameter(s, "a", LS_SHAPE(64, 10), (ls_init_rule){0});
    ls_value b = ls_parameter(s, "b", LS_SHAPE(64, 10), (ls_init_rule){0});
    ls_value c = ls_parameter(s, "c", LS_SHAPE(64, 10), (ls_init_rule){0});
    ls_value w = ls_sub(ls_add(a, b), c);

    ls_minimise(s, ls_cross_entropy(ls_relu(ls_matmul(ls_tanh(x), w, false, false)), label), "*",
                (ls_optimiser){.rule = LS_SGD, .lr = 0.01});
}

static void variables_of_one_gradient_are_updated_apart(void)
{
    const small_net net = {"three of one gradient", three_of_one_gradient};
    const lsi_region_machine m = small_net_machine(true);
    ls_graph *g = small_net_graph(&net, LS_TRAIN, 64, &m);

    if (!CHECK_EQ_INT(live(g, &ls_op_sgd), 1)) print(g);
    CHECK_EQ_INT(live(g, &ls_op_region), 1);
    ls_graph_destroy(g);
}

/* Fifteen weights with what Adam remembers of them, and what else comes in and leaves: 97 operands. */
static void deep(ls_step *s)
{
    ls_value h = ls_flatten(ls_input(s, "image", LS_F32, LS_SHAPE(-1, 1, 8, 8)));
    ls_value label = ls_input(s, "label", LS_I32, LS_SHAPE(-1));
    const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};

    for (int i = 0; i < 7; i++) h = ls_relu(ls_linear(s, h, names[i], .out = 16));
    h = ls_cross_entropy(ls_linear(s, h, "last", .out = 10, .no_bias = true), label);
    ls_minimise(s, h, "*", (ls_optimiser){.rule = LS_ADAM, .lr = 0.001});
    ls_metric(s, "loss", h);
}

static void many_operands_have_a_kernel(void)
{
    const small_net net = {"deep", deep};
    const lsi_region_machine m = small_net_machine(true);
    ls_graph *g = small_net_graph(&net, LS_TRAIN, 64, &m);
    static lsi_region r;

    if (!CHECK_EQ_INT(live(g, &ls_op_region_update), 1)) print(g);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_region_attr *a = g->nodes[i]->attr;
        if (!small_net_is_region(g->nodes[i])) continue;
        CHECK(lsi_region_plan(&r, &m, g, 64, a->n, a->members, a->n_in, a->in, a->n_out, a->out));
    }
    ls_graph_destroy(g);
}

/* What reads a sum over all samples, or what no region takes, and what comes of that. */
static void what_comes_after_something_else_is_another_region(void)
{
    const lsi_region_machine m = small_net_machine(true);
    ls_graph *g = small_net_graph(net_called("strides"), LS_TRAIN, 64, &m);
    ls_schedule s = {0};
    ls_err err = {0};

    if (!CHECK_EQ_INT(live(g, &ls_op_conv2d_dx), 1)) print(g); /* of steps of two */
    CHECK(regions(g) >= 1);
    CHECK_OK(ls_pass_schedule(g, &s, &err), &err); /* no cycle */
    ls_schedule_release(&s);
    ls_graph_destroy(g);

    g = small_net_graph(net_called("keras"), LS_TRAIN, 64, &m);
    CHECK_EQ_INT(live(g, &ls_op_conv2d), 2); /* the library is faster */
    CHECK(regions(g) >= 1);
    CHECK_OK(ls_pass_schedule(g, &s, &err), &err);
    if (live(g, NULL) >= 22) print(g);
    CHECK(live(g, NULL) < 22);
    ls_schedule_release(&s);
    ls_graph_destroy(g);
}

/* Without gradients: all of it, with what is fetched. */
static void an_evaluation_is_one_region(void)
{
    const lsi_region_machine m = small_net_machine(true);
    ls_graph *g = small_net_graph(net_called("pools_first"), LS_EVAL, 64, &m);

    if (!CHECK_EQ_INT(live(g, NULL), 1)) print(g);
    ls_graph_destroy(g);
}

/* Of two places that are needed at once, none may lie on the other, and nothing beyond the memory there is.
 */
static void places_do_not_overlap(void)
{
    static lsi_region r;

    for (const small_net *net = small_nets; net->name != NULL; net++) {
        const lsi_region_machine m = small_net_machine(true);
        ls_graph *g = small_net_graph(net, LS_TRAIN, 64, &m);
        const ls_node *n =
            first(g, &ls_op_region) != NULL ? first(g, &ls_op_region) : first(g, &ls_op_region_update);
        const ls_region_attr *a = n != NULL ? n->attr : NULL;
        REQUIRE(a != NULL);
        REQUIRE(lsi_region_plan(&r, &m, g, 64, a->n, a->members, a->n_in, a->in, a->n_out, a->out));
        CHECK(sizeof(float) * (size_t)(r.common + r.each) <= m.shared);
        for (int i = 0; i < r.n_places; i++)
            for (int k = 0; k < i; k++) {
                const lsi_region_place *x = &r.place[i], *y = &r.place[k];
                const int x_end = x->at + (x->bytes ? (x->c * x->h * x->w + 3) / 4 : x->c * x->plane);
                const int y_end = y->at + (y->bytes ? (y->c * y->h * y->w + 3) / 4 : y->c * y->plane);
                if (x->first > y->last || y->first > x->last) continue;
                CHECK(x_end <= y->at || y_end <= x->at);
            }
        ls_graph_destroy(g);
    }
}

/* Many samples: what a library does faster stays outside, such as large products. */
static void many_samples_leave_products_to_the_library(void)
{
    const lsi_region_machine m = small_net_machine(true);
    ls_graph *g = small_net_graph(net_called("pools_first"), LS_TRAIN, 8192, &m);

    if (!CHECK(live(g, &ls_op_matmul) >= 2)) print(g);
    CHECK_EQ_INT(live(g, &ls_op_conv2d) + live(g, &ls_op_conv2d_dx) + live(g, &ls_op_conv2d_dw), 0);
    ls_graph_destroy(g);
}

/* A device with little shared memory has fewer regions, or none. */
static void small_memory_has_small_regions(void)
{
    const lsi_region_machine little = {.processors = 132, .shared = 16384, .rounded = true},
                             none = {.processors = 132, .shared = 64, .rounded = true};
    ls_graph *g = small_net_graph(net_called("pools_first"), LS_TRAIN, 64, &little);
    ls_schedule s = {0};
    ls_err err = {0};

    CHECK(live(g, NULL) > 1);
    CHECK_OK(ls_pass_schedule(g, &s, &err), &err);
    ls_schedule_release(&s);
    ls_graph_destroy(g);
    g = small_net_graph(net_called("pools_first"), LS_TRAIN, 64, &none);
    CHECK_EQ_INT(regions(g), 0);
    ls_graph_destroy(g);
}

int main(void)
{
    CHECK_RUN(a_small_step_is_one_region);
    CHECK_RUN(updates_write_over_what_they_read);
    CHECK_RUN(what_reads_new_weights_comes_after_them);
    CHECK_RUN(what_is_read_behind_a_region_is_not_updated_there);
    CHECK_RUN(variables_of_one_gradient_are_updated_apart);
    CHECK_RUN(many_operands_have_a_kernel);
    CHECK_RUN(what_comes_after_something_else_is_another_region);
    CHECK_RUN(an_evaluation_is_one_region);
    CHECK_RUN(places_do_not_overlap);
    CHECK_RUN(many_samples_leave_products_to_the_library);
    CHECK_RUN(small_memory_has_small_regions);
    return CHECK_DONE();
}
