/* test_fuse.c: which nodes fusion leaves of known graphs.  That fused graphs compute the same is checked by
 * the op tests, which run every case through this pass on the CPU backend. */
#include <stdio.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "check.h"
#include "ops/ops.h"
#include "passes/autodiff.h"
#include "passes/passes.h"

static ls_graph *g;
static const ls_fusion_rule *rules = lsi_cpu_fusions; /* of the device that is fused for */

static void begin(void)
{
    REQUIRE_OK(ls_graph_create(&g, NULL), NULL);
}

static ls_value param(const char *name, ls_shape shape)
{
    return ls_graph_var(g, name, LS_VAR_PARAM, LS_F32, shape, (ls_init){LS_INIT_CONST, 1});
}

/* Gradients of `loss` with respect to all parameters, fetched so that they stay alive. */
static void differentiate(ls_value loss)
{
    ls_value wrt[16] = {0}, grads[16];
    int n = 0;

    for (int32_t i = 0; i < g->n_vars; i++)
        if (g->vars[i]->role == LS_VAR_PARAM) wrt[n++] = (ls_value){g, g->vars[i]->first};
    ls_autodiff(loss, (ls_value){g, -1}, n, wrt, grads);
    for (int i = 0; i < n; i++) ls_graph_fetch(grads[i], g->values[wrt[i].id]->name);
}

static void finish(void)
{
    ls_err err = {0};

    REQUIRE_OK(ls_graph_status(g, &err), &err);
    ls_pass_dead(g);
    ls_pass_fuse(g, rules, NULL);
    ls_pass_dead(g);
    REQUIRE_OK(ls_graph_status(g, &err), &err);
}

static int count(const ls_op *op)
{
    int n = 0;

    for (int32_t i = 0; i < g->n_nodes; i++) n += !g->nodes[i]->dead && g->nodes[i]->op == op;
    return n;
}

static const ls_node *only(const ls_op *op)
{
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i]->dead && g->nodes[i]->op == op) return g->nodes[i];
    return NULL;
}

static ls_conv_attr conv3x3(void)
{
    return (ls_conv_attr){.stride = {1, 1}, .dilation = {1, 1}, .pad = {1, 1, 1, 1}, .groups = 1};
}

static void bias_and_activation_join_the_convolution(void)
{
    ls_value x, y;

    begin();
    x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(2, 3, 8, 8));
    y = ls_conv2d(x, param("w", LS_SHAPE(4, 3, 3, 3)), conv3x3());
    y = ls_leaky_relu(ls_bias(y, param("b", LS_SHAPE(4)), 1), 0.2);
    differentiate(ls_reduce_sum(ls_square(y), LS_ALL_AXES, false));
    finish();
    CHECK_EQ_INT(count(&ls_op_conv2d), 1);
    CHECK_EQ_INT(count(&ls_op_bias), 0);
    CHECK_EQ_INT(count(&ls_op_leaky_relu), 0);
    CHECK_EQ_INT(only(&ls_op_conv2d)->n_in, 3);
    CHECK_EQ_INT(((const ls_conv_attr *)only(&ls_op_conv2d)->attr)->act, LS_ACT_LEAKY);
    /* backward: the mask and the bias gradient are one pass */
    CHECK_EQ_INT(count(&ls_op_bias_act_grad), 1);
    CHECK_EQ_INT(count(&ls_op_leaky_relu_grad), 0);
    CHECK_EQ_INT(count(&ls_op_conv2d_dx), 0); /* nobody asked for the gradient of the input */
    ls_graph_destroy(g);
}

/* y = relu(bn(conv(x)) + x), the end of a residual block. */
static void residual_block_is_one_norm_each_way(void)
{
    ls_value x, h, y, rm, rv;
    ls_norm_attr a = {.eps = 1e-5, .momentum = 0.1};

    begin();
    x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(2, 4, 8, 8));
    x = ls_relu(ls_conv2d(x, param("w0", LS_SHAPE(4, 4, 3, 3)), conv3x3()));
    rm = ls_graph_var(g, "rm", LS_VAR_BUFFER, LS_F32, LS_SHAPE(4), (ls_init){LS_INIT_CONST, 0});
    rv = ls_graph_var(g, "rv", LS_VAR_BUFFER, LS_F32, LS_SHAPE(4), (ls_init){LS_INIT_CONST, 1});
    h = ls_conv2d(x, param("w", LS_SHAPE(4, 4, 3, 3)), conv3x3());
    h = ls_batch_norm(h, param("gamma", LS_SHAPE(4)), param("beta", LS_SHAPE(4)), rm, rv, a);
    ls_graph_advance(g, ls_graph_find_var(g, "rm"), ls_graph_out(h, 3));
    ls_graph_advance(g, ls_graph_find_var(g, "rv"), ls_graph_out(h, 4));
    y = ls_relu(ls_add(h, x));
    differentiate(ls_reduce_sum(ls_square(y), LS_ALL_AXES, false));
    finish();
    CHECK_EQ_INT(count(&ls_op_batch_norm), 1);
    CHECK(((const ls_norm_attr *)only(&ls_op_batch_norm)->attr)->residual);
    CHECK_EQ_INT(((const ls_norm_attr *)only(&ls_op_batch_norm)->attr)->act, LS_ACT_RELU);
    CHECK_EQ_INT(only(&ls_op_batch_norm_grad)->n_out, 4); /* hands the masked gradient to the shortcut */
    CHECK_EQ_INT(count(&ls_op_relu), 0);
    CHECK_EQ_INT(g->vars[ls_graph_find_var(g, "rm")]->current, only(&ls_op_batch_norm)->out[3]);
    ls_graph_destroy(g);
}

/* A first layer conv, relu, pool or conv, pool, relu: backward, nothing of the convolution's size is left. */
static void pooled_first_layer_works_on_pooled_tensors(void)
{
    const ls_pool_attr half = {.kernel = {2, 2}, .stride = {2, 2}};

    for (int relu_first = 0; relu_first < 2; relu_first++) {
        ls_value x, y;
        begin();
        x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(2, 1, 8, 8));
        y = ls_conv2d(x, param("w", LS_SHAPE(5, 1, 3, 3)), conv3x3());
        y = ls_bias(y, param("b", LS_SHAPE(5)), 1);
        y = relu_first ? ls_maxpool2d(ls_relu(y), half) : ls_relu(ls_maxpool2d(y, half));
        differentiate(ls_reduce_sum(ls_square(y), LS_ALL_AXES, false));
        finish();
        CHECK_EQ_INT(count(&ls_op_conv2d_dw_pooled), 1);
        CHECK_EQ_INT(count(&ls_op_maxpool2d_grad), 0);
        CHECK_EQ_INT(count(&ls_op_conv2d_dw), 0);
        CHECK_EQ_INT(count(&ls_op_relu_grad), 0);
        CHECK_EQ_INT(ls_node_in_shape(g, only(&ls_op_bias_act_grad), 0)->dim[2], 4);
        ls_graph_destroy(g);
    }
}

static void chains_of_small_ops_become_one(void)
{
    ls_value x, y;

    begin();
    x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(5, 7));
    y = ls_exp(ls_affine(ls_mul(ls_tanh(x), ls_sigmoid(x)), 2, 1));
    ls_graph_fetch(y, "y");
    finish();
    CHECK_EQ_INT(count(&ls_op_pointwise), 1);
    CHECK_EQ_INT(((const ls_pointwise_attr *)only(&ls_op_pointwise)->attr)->n_steps, 5);
    CHECK_EQ_INT(only(&ls_op_pointwise)->n_in, 1);
    ls_graph_destroy(g);
}

static void what_is_read_elsewhere_stays(void)
{
    ls_value x, c;

    begin();
    x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(1, 3, 8, 8));
    c = ls_conv2d(x, param("w", LS_SHAPE(4, 3, 3, 3)), conv3x3());
    ls_graph_fetch(ls_relu(c), "y");
    ls_graph_fetch(c, "before");
    finish();
    CHECK_EQ_INT(count(&ls_op_relu), 1);
    CHECK_EQ_INT(((const ls_conv_attr *)only(&ls_op_conv2d)->attr)->act, LS_ACT_NONE);
    ls_graph_destroy(g);
}

/* -- what devices want --------------------------------------------------------------------------------------
 */

/* relu(bn(conv(x) + b) + x) and its gradients, a max pool, and a chain of element-wise ops at the end. */
static void some_of_everything(void)
{
    const ls_pool_attr half = {.kernel = {2, 2}, .stride = {2, 2}};
    ls_value x, h, rm, rv;
    ls_norm_attr a = {.eps = 1e-5, .momentum = 0.1};

    begin();
    x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(2, 1, 8, 8));
    x = ls_maxpool2d(ls_relu(ls_conv2d(x, param("w0", LS_SHAPE(4, 1, 3, 3)), conv3x3())), half);
    rm = ls_graph_var(g, "rm", LS_VAR_BUFFER, LS_F32, LS_SHAPE(4), (ls_init){LS_INIT_CONST, 0});
    rv = ls_graph_var(g, "rv", LS_VAR_BUFFER, LS_F32, LS_SHAPE(4), (ls_init){LS_INIT_CONST, 1});
    h = ls_bias(ls_conv2d(x, param("w", LS_SHAPE(4, 4, 3, 3)), conv3x3()), param("b", LS_SHAPE(4)), 1);
    h = ls_batch_norm(h, param("gamma", LS_SHAPE(4)), param("beta", LS_SHAPE(4)), rm, rv, a);
    h = ls_relu(ls_add(h, x));
    differentiate(ls_reduce_sum(ls_exp(ls_affine(ls_square(h), 0.5, 1)), LS_ALL_AXES, false));
    finish();
}

static int norms_with_residual(void)
{
    return ((const ls_norm_attr *)only(&ls_op_batch_norm)->attr)->residual;
}

/* Of each pattern what only it leaves. */
static int found(ls_pattern p)
{
    int n = 0;

    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *x = g->nodes[i];
        if (x->dead) continue;
        switch (p) {
        case LS_FUSE_BIAS: n += x->op == &ls_op_conv2d && x->n_in == 3; break;
        case LS_FUSE_ACT:
            n += x->op == &ls_op_conv2d && ((const ls_conv_attr *)x->attr)->act != LS_ACT_NONE;
            break;
        case LS_FUSE_NORM_GRAD:
            n += x->op == &ls_op_batch_norm_grad && ((const ls_norm_attr *)x->attr)->act != LS_ACT_NONE;
            break;
        case LS_FUSE_POOLED_WEIGHTS: n += x->op == &ls_op_conv2d_dw_pooled; break;
        case LS_FUSE_POINTWISE: n += x->op == &ls_op_pointwise; break;
        default: break;
        }
    }
    return p == LS_FUSE_RESIDUAL ? norms_with_residual() : n;
}

static const ls_pattern seen[] = {LS_FUSE_BIAS, LS_FUSE_RESIDUAL, LS_FUSE_ACT, LS_FUSE_NORM_GRAD,
                                  LS_FUSE_POINTWISE};
enum { N_SEEN = sizeof seen / sizeof seen[0] };

static void a_device_gets_only_the_pattern_it_wants(void)
{
    for (int i = 0; i < N_SEEN; i++) {
        const ls_fusion_rule one[] = {{seen[i], NULL}, {LS_FUSE_NONE, NULL}};
        rules = one;
        some_of_everything();
        for (int k = 0; k < N_SEEN; k++)
            if (!CHECK(k == i ? found(seen[k]) > 0 : found(seen[k]) == 0))
                printf("  wanted pattern %d: %d of pattern %d\n", (int)seen[i], found(seen[k]), (int)seen[k]);
        CHECK_EQ_INT(found(LS_FUSE_POOLED_WEIGHTS), 0);
        ls_graph_destroy(g);
    }
    rules = NULL;
    some_of_everything();
    for (int k = 0; k < N_SEEN; k++) CHECK_EQ_INT(found(seen[k]), 0);
    ls_graph_destroy(g);
    rules = lsi_cpu_fusions;
}

/* ReLU in matrix products and convolutions, no other activation, nowhere else. */
static bool relu_of_products(const ls_device *dev, const ls_graph *graph, const ls_fusion *f)
{
    (void)dev;
    (void)graph;
    return f->act == LS_ACT_RELU && (f->inner->op == &ls_op_conv2d || f->inner->op == &ls_op_matmul);
}

static bool two_inputs(const ls_device *dev, const ls_graph *graph, const ls_fusion *f)
{
    (void)dev;
    CHECK(graph == g);
    return f->n_in <= 2 && f->n_steps <= 3;
}

static void a_rule_sees_the_place(void)
{
    static const ls_fusion_rule some[] = {
        {LS_FUSE_ACT, relu_of_products}, {LS_FUSE_POINTWISE, two_inputs}, {LS_FUSE_NONE, NULL}};
    ls_value x, y;

    rules = some;
    begin();
    x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(2, 3, 8, 8));
    y = ls_relu(ls_conv2d(x, param("w", LS_SHAPE(3, 3, 3, 3)), conv3x3()));
    y = ls_tanh(ls_conv2d(y, param("v", LS_SHAPE(3, 3, 3, 3)), conv3x3()));
    y = ls_relu(ls_maxpool2d(y, (ls_pool_attr){.kernel = {2, 2}, .stride = {2, 2}}));
    ls_graph_fetch(y, "y");
    /* Four inputs, five functions. */
    y = ls_mul(ls_add(x, ls_graph_input(g, "b", LS_F32, LS_SHAPE(2, 3, 8, 8))),
               ls_graph_input(g, "c", LS_F32, LS_SHAPE(2, 3, 8, 8)));
    ls_graph_fetch(ls_exp(ls_exp(ls_sub(y, ls_graph_input(g, "d", LS_F32, LS_SHAPE(2, 3, 8, 8))))), "z");
    finish();
    CHECK_EQ_INT(found(LS_FUSE_ACT), 1);
    CHECK_EQ_INT(count(&ls_op_tanh), 1);
    CHECK_EQ_INT(count(&ls_op_relu), 1);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i]->dead || g->nodes[i]->op != &ls_op_pointwise) continue;
        CHECK(g->nodes[i]->n_in <= 2);
        CHECK(((const ls_pointwise_attr *)g->nodes[i]->attr)->n_steps <= 3);
    }
    CHECK(count(&ls_op_pointwise) > 0);
    ls_graph_destroy(g);
    rules = lsi_cpu_fusions;
}

/* Many channels, a stride or blocked maps: the CPU's kernel for pooled weights would lose. */
static void the_cpu_wants_pooled_weights_of_first_layers(void)
{
    static const struct {
        int64_t in, out;
        int stride, pooled;
    } cases[] = {{1, 5, 1, 1}, {4, 5, 1, 1}, {5, 5, 1, 0}, {1, 16, 1, 0}, {1, 5, 2, 0}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ls_conv_attr a = conv3x3();
        ls_value y;
        a.stride[0] = a.stride[1] = cases[i].stride;
        begin();
        y = ls_graph_input(g, "x", LS_F32, LS_SHAPE(2, cases[i].in, 8, 8));
        y = ls_conv2d(y, param("w", LS_SHAPE(cases[i].out, cases[i].in, 3, 3)), a);
        y = ls_maxpool2d(y, (ls_pool_attr){.kernel = {2, 2}, .stride = {2, 2}});
        differentiate(ls_reduce_sum(ls_square(y), LS_ALL_AXES, false));
        finish();
        CHECK_EQ_INT(found(LS_FUSE_POOLED_WEIGHTS), cases[i].pooled);
        ls_graph_destroy(g);
    }
}

/* batch_norm_grad under a ReLU, or with a residual, whose sign is not x's. */
static int norms_by_beta(bool residual, ls_act act, const ls_fusion_rule *wanted)
{
    const ls_norm_attr a = {.eps = 1e-5, .momentum = 0.1};
    const ls_node *n;
    ls_value x, y, rm, rv;
    int by_beta;

    rules = wanted;
    begin();
    x = param("x", LS_SHAPE(2, 4, 6, 6));
    rm = ls_graph_var(g, "rm", LS_VAR_BUFFER, LS_F32, LS_SHAPE(4), (ls_init){LS_INIT_CONST, 0});
    rv = ls_graph_var(g, "rv", LS_VAR_BUFFER, LS_F32, LS_SHAPE(4), (ls_init){LS_INIT_CONST, 1});
    y = ls_batch_norm(x, param("gamma", LS_SHAPE(4)), param("beta", LS_SHAPE(4)), rm, rv, a);
    if (residual) y = ls_add(y, x);
    y = act == LS_ACT_TANH ? ls_tanh(y) : act == LS_ACT_LEAKY ? ls_leaky_relu(y, 0.2) : ls_relu(y);
    differentiate(ls_reduce_sum(ls_square(y), LS_ALL_AXES, false));
    finish();
    n = only(&ls_op_batch_norm_grad);
    by_beta = ((const ls_norm_attr *)n->attr)->by_beta;
    CHECK_EQ_INT(n->n_in, 6);
    /* The last input is beta, or the map that the norm made. */
    CHECK_EQ_INT(g->values[n->in[5]]->shape.rank, by_beta ? 1 : 4);
    CHECK_EQ_INT(n->in[5] == only(&ls_op_batch_norm)->in[2], by_beta);
    ls_graph_destroy(g);
    rules = lsi_cpu_fusions;
    return by_beta;
}

static void the_sign_of_a_norm_is_read_off_x(void)
{
    static const ls_fusion_rule with[] = {{LS_FUSE_RESIDUAL, NULL},
                                          {LS_FUSE_ACT, NULL},
                                          {LS_FUSE_NORM_GRAD, NULL},
                                          {LS_FUSE_NORM_SIGN, NULL},
                                          {LS_FUSE_NONE, NULL}};

    CHECK_EQ_INT(norms_by_beta(false, LS_ACT_RELU, with), 1);
    CHECK_EQ_INT(norms_by_beta(false, LS_ACT_LEAKY, with), 1);
    CHECK_EQ_INT(norms_by_beta(false, LS_ACT_TANH, with), 0);
    CHECK_EQ_INT(norms_by_beta(true, LS_ACT_RELU, with), 0);
    CHECK_EQ_INT(norms_by_beta(false, LS_ACT_RELU, lsi_cpu_fusions), 0);
}

/* The y of an instance norm is no input of its gradient then: nobody keeps it that long. */
static void an_instance_norm_need_not_keep_its_result(void)
{
    static const ls_fusion_rule with[] = {{LS_FUSE_RESIDUAL, NULL},
                                          {LS_FUSE_ACT, NULL},
                                          {LS_FUSE_NORM_GRAD, NULL},
                                          {LS_FUSE_NORM_SIGN, NULL},
                                          {LS_FUSE_NONE, NULL}};

    rules = with;
    for (int residual = 0; residual < 2; residual++) {
        ls_value x, y;
        const ls_node *n;
        begin();
        x = param("x", LS_SHAPE(2, 4, 6, 6));
        y = ls_instance_norm(x, (ls_norm_attr){.eps = 1e-5});
        if (residual) y = ls_add(y, x);
        differentiate(ls_reduce_sum(ls_square(ls_relu(y)), LS_ALL_AXES, false));
        finish();
        n = only(&ls_op_instance_norm_grad);
        CHECK_EQ_INT(((const ls_norm_attr *)n->attr)->by_beta, !residual);
        CHECK_EQ_INT(n->n_in, residual ? 5 : 4);
        ls_graph_destroy(g);
    }
    rules = lsi_cpu_fusions;
}

/* norm(bias(conv(x))): the bias's gradient is 0, and before an instance norm the bias itself is nothing. */
static void what_a_norm_takes_away_is_not_added(void)
{
    static const ls_fusion_rule both[] = {
        {LS_FUSE_NORM_BIAS, NULL}, {LS_FUSE_NORM_SUM, NULL}, {LS_FUSE_NONE, NULL}};
    const ls_norm_attr a = {.eps = 1e-5, .momentum = 0.1};

    for (int batch = 0; batch < 2; batch++) {
        ls_value x, y, rm, rv;
        rules = both;
        begin();
        x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(2, 3, 8, 8));
        y = ls_bias(ls_conv2d(x, param("w", LS_SHAPE(4, 3, 3, 3)), conv3x3()), param("b", LS_SHAPE(4)), 1);
        rm = ls_graph_var(g, "rm", LS_VAR_BUFFER, LS_F32, LS_SHAPE(4), (ls_init){LS_INIT_CONST, 0});
        rv = ls_graph_var(g, "rv", LS_VAR_BUFFER, LS_F32, LS_SHAPE(4), (ls_init){LS_INIT_CONST, 1});
        y = batch ? ls_batch_norm(y, param("gamma", LS_SHAPE(4)), param("beta", LS_SHAPE(4)), rm, rv, a)
                  : ls_instance_norm(y, a);
        differentiate(ls_reduce_sum(ls_square(ls_tanh(y)), LS_ALL_AXES, false));
        finish();
        CHECK_EQ_INT(count(&ls_op_bias), batch); /* running statistics see it */
        CHECK(only(&ls_op_fill) != NULL);
        CHECK_EQ_INT(count(&ls_op_reduce_sum), 0);
        ls_graph_destroy(g);
    }
    rules = lsi_cpu_fusions;
}

/* relu(batch_norm(conv) + x) whose result two read: the gradient of the sum of both is never there. */
static void a_norm_adds_up_the_gradients_of_two_readers(void)
{
    static const ls_fusion_rule wanted[] = {{LS_FUSE_RESIDUAL, NULL},
                                            {LS_FUSE_ACT, NULL},
                                            {LS_FUSE_NORM_GRAD, NULL},
                                            {LS_FUSE_GRAD_SUM, NULL},
                                            {LS_FUSE_NONE, NULL}};
    const ls_norm_attr a = {.eps = 1e-5, .momentum = 0.1};
    ls_value x, y, rm, rv;
    const ls_node *n;

    rules = wanted;
    begin();
    x = param("x", LS_SHAPE(2, 4, 6, 6));
    rm = ls_graph_var(g, "rm", LS_VAR_BUFFER, LS_F32, LS_SHAPE(4), (ls_init){LS_INIT_CONST, 0});
    rv = ls_graph_var(g, "rv", LS_VAR_BUFFER, LS_F32, LS_SHAPE(4), (ls_init){LS_INIT_CONST, 1});
    y = ls_batch_norm(x, param("gamma", LS_SHAPE(4)), param("beta", LS_SHAPE(4)), rm, rv, a);
    y = ls_relu(ls_add(y, x));
    y = ls_add(ls_conv2d(y, param("w", LS_SHAPE(4, 4, 3, 3)), conv3x3()), ls_tanh(y));
    differentiate(ls_reduce_sum(ls_square(y), LS_ALL_AXES, false));
    finish();
    n = only(&ls_op_batch_norm_grad);
    CHECK_EQ_INT(((const ls_norm_attr *)n->attr)->sums, 1);
    CHECK_EQ_INT(n->n_in, 7);
    ls_graph_destroy(g);
    rules = lsi_cpu_fusions;
}

static int most_inputs(const ls_op *op)
{
    int most = 0;

    for (int32_t i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i]->dead && g->nodes[i]->op == op && g->nodes[i]->n_in > most) most = g->nodes[i]->n_in;
    return most;
}

/* x + linear(layer_norm(x)): sums of 16 bits or not, the pattern is the same. */
static void what_goes_around_a_layer_is_added_in_it(void)
{
    static const ls_fusion_rule sums[] = {
        {LS_FUSE_BIAS, NULL}, {LS_FUSE_PRODUCT_ADD, NULL}, {LS_FUSE_GRAD_ADD, NULL}, {LS_FUSE_NONE, NULL}};

    for (int k = 0; k < 2; k++) {
        const ls_norm_attr a = {.eps = 1e-6};
        ls_value x, y;
        rules = k == 0 ? sums : lsi_cpu_fusions;
        begin();
        x = param("x", LS_SHAPE(2, 3, 8));
        y = ls_layer_norm(x, param("gamma", LS_SHAPE(8)), param("beta", LS_SHAPE(8)), a);
        y = ls_bias(ls_matmul(y, param("w", LS_SHAPE(8, 8)), false, false), param("b", LS_SHAPE(8)), 2);
        y = ls_add(x, y);
        differentiate(ls_reduce_sum(ls_square(y), LS_ALL_AXES, false));
        finish();
        CHECK_EQ_INT(most_inputs(&ls_op_matmul), k == 0 ? 4 : 3);
        CHECK_EQ_INT(only(&ls_op_layer_norm_grad)->n_in, k == 0 ? 6 : 5);
        if (k == 0) CHECK_EQ_INT(count(&ls_op_add), 0);
        ls_graph_destroy(g);
    }
    rules = lsi_cpu_fusions;
}

/* As the attention layer writes it (nn/layers.c); `start` of the keys is 1 where it is right. */
static void attention_layer(int start, bool gradients)
{
    const int forth[] = {2, 0, 3, 1, 4}, back[] = {0, 2, 1, 3};
    ls_value x, third[3], y;

    begin();
    x = ls_transpose(ls_reshape(param("qkv", LS_SHAPE(2, 5, 24)), LS_SHAPE(2, 5, 3, 2, 4)), forth);
    for (int i = 0; i < 3; i++)
        third[i] = ls_reshape(ls_slice(x, 0, i == 1 ? start : i, 1), LS_SHAPE(4, 5, 4));
    y = ls_reshape(ls_attention(third[0], third[1], third[2], 0.5), LS_SHAPE(2, 2, 5, 4));
    y = ls_reshape(ls_transpose(y, back), LS_SHAPE(2, 5, 8));
    if (gradients)
        differentiate(ls_reduce_sum(ls_square(y), LS_ALL_AXES, false));
    else
        ls_graph_fetch(y, "y");
    finish();
}

static void heads_are_read_where_they_lie(void)
{
    static const ls_fusion_rule heads[] = {{LS_FUSE_HEADS, NULL}, {LS_FUSE_NONE, NULL}};

    rules = heads;
    for (int gradients = 0; gradients < 2; gradients++) {
        attention_layer(1, gradients);
        CHECK_EQ_INT(count(&ls_op_self_attention), 1);
        CHECK_EQ_INT(count(&ls_op_self_attention_grad), gradients);
        CHECK_EQ_INT(count(&ls_op_attention) + count(&ls_op_attention_grad), 0);
        CHECK_EQ_INT(count(&ls_op_transpose) + count(&ls_op_slice) + count(&ls_op_concat), 0);
        CHECK_EQ_INT(count(&ls_op_add), 0);
        ls_graph_destroy(g);
    }
    attention_layer(0, true); /* the queries stand for the keys, too: other thirds are not these heads */
    CHECK_EQ_INT(count(&ls_op_self_attention), 0);
    CHECK_EQ_INT(count(&ls_op_attention_grad), 1);
    ls_graph_destroy(g);
    rules = lsi_cpu_fusions;
    attention_layer(1, true);
    CHECK_EQ_INT(count(&ls_op_self_attention), 0);
    ls_graph_destroy(g);
}

/* Through the maximum over points of a convolution of 1 x 1 nothing but the winners' gradients goes on. */
static void what_lost_a_maximum_is_not_multiplied(void)
{
    static const ls_fusion_rule max[] = {{LS_FUSE_MAX, NULL}, {LS_FUSE_NONE, NULL}};
    ls_conv_attr a = {.stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
    ls_value y;

    for (int kernel = 1; kernel < 3; kernel++) {
        rules = max;
        begin();
        y = ls_conv2d(param("x", LS_SHAPE(2, 3, 1, 8)), param("w", LS_SHAPE(4, 3, 1, kernel)), a);
        y = ls_reduce_max(ls_bias(y, param("b", LS_SHAPE(4)), 1), 3);
        differentiate(ls_reduce_sum(ls_square(y), LS_ALL_AXES, false));
        finish();
        CHECK_EQ_INT(count(&ls_op_conv_max_dx), kernel == 1);
        CHECK_EQ_INT(count(&ls_op_conv_max_dw), kernel == 1);
        CHECK_EQ_INT(count(&ls_op_reduce_max_grad), kernel != 1); /* the products of wider filters need it */
        CHECK_EQ_INT(ls_node_in_shape(g, only(&ls_op_reduce_sum), 0)->rank, 3);
        ls_graph_destroy(g);
    }
    rules = lsi_cpu_fusions;
}

/* How a network goes through norm, activation and pool: with the pool before the activation, with one that
 * does not keep the sign of x, with a second reader of the norm, and with the pooled map read twice. */
typedef enum pooled { PLAIN, POOL_FIRST, TANH, READ_TWICE, TWO_READERS, N_POOLED } pooled;

static void pooled_norm(pooled how)
{
    const ls_pool_attr pool = {.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1, 1, 1}};
    const ls_norm_attr a = {.eps = 1e-5, .momentum = 0.1};
    ls_value x, y, z, rm, rv, loss;

    begin();
    x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(2, 3, 8, 8));
    rm = ls_graph_var(g, "rm", LS_VAR_BUFFER, LS_F32, LS_SHAPE(4), (ls_init){LS_INIT_CONST, 0});
    rv = ls_graph_var(g, "rv", LS_VAR_BUFFER, LS_F32, LS_SHAPE(4), (ls_init){LS_INIT_CONST, 1});
    x = ls_conv2d(x, param("w", LS_SHAPE(4, 3, 3, 3)), conv3x3());
    y = ls_batch_norm(x, param("gamma", LS_SHAPE(4)), param("beta", LS_SHAPE(4)), rm, rv, a);
    if (how != POOL_FIRST) y = how == TANH ? ls_tanh(y) : ls_relu(y);
    z = ls_maxpool2d(y, pool);
    if (how == POOL_FIRST) z = ls_relu(z);
    if (how == TWO_READERS) z = ls_add(ls_conv2d(z, param("v", LS_SHAPE(4, 4, 3, 3)), conv3x3()), z);
    loss = ls_reduce_sum(ls_square(ls_conv2d(z, param("u", LS_SHAPE(4, 4, 3, 3)), conv3x3())), LS_ALL_AXES,
                         false);
    if (how == READ_TWICE) loss = ls_add(loss, ls_reduce_sum(ls_square(y), LS_ALL_AXES, false));
    differentiate(loss);
    finish();
}

/* Of a norm under a max pool nothing of the norm's size is written, forward or backward. */
static void a_norm_writes_only_what_is_pooled(void)
{
    static const ls_fusion_rule wanted[] = {{LS_FUSE_ACT, NULL},       {LS_FUSE_POOL_MASK, NULL},
                                            {LS_FUSE_NORM_GRAD, NULL}, {LS_FUSE_NORM_SIGN, NULL},
                                            {LS_FUSE_POOL_GRAD, NULL}, {LS_FUSE_NORM_POOL, NULL},
                                            {LS_FUSE_NONE, NULL}};

    rules = wanted;
    for (pooled how = PLAIN; how < N_POOLED; how++) {
        const bool fits = how == PLAIN || how == POOL_FIRST || how == TWO_READERS;
        pooled_norm(how);
        CHECK_EQ_INT(count(&ls_op_batch_norm_pool), fits);
        CHECK_EQ_INT(count(&ls_op_batch_norm_pool_grad), fits);
        CHECK_EQ_INT(count(&ls_op_maxpool2d) + count(&ls_op_maxpool2d_grad), fits ? 0 : 2);
        CHECK_EQ_INT(count(&ls_op_batch_norm) + count(&ls_op_batch_norm_grad), fits ? 0 : 2);
        if (fits) {
            const ls_norm_pool_attr *a = only(&ls_op_batch_norm_pool_grad)->attr;
            CHECK_EQ_INT(a->norm.act, LS_ACT_RELU);
            CHECK_EQ_INT(a->norm.sums, how == TWO_READERS); /* the gradients of both are added up there */
            CHECK_EQ_INT(count(&ls_op_relu) + count(&ls_op_relu_grad), 0);
        }
        ls_graph_destroy(g);
    }
    rules = lsi_cpu_fusions;
    pooled_norm(PLAIN);
    CHECK_EQ_INT(count(&ls_op_batch_norm_pool), 0);
    ls_graph_destroy(g);
}

int main(void)
{
    CHECK_RUN(bias_and_activation_join_the_convolution);
    CHECK_RUN(residual_block_is_one_norm_each_way);
    CHECK_RUN(pooled_first_layer_works_on_pooled_tensors);
    CHECK_RUN(chains_of_small_ops_become_one);
    CHECK_RUN(what_is_read_elsewhere_stays);
    CHECK_RUN(a_device_gets_only_the_pattern_it_wants);
    CHECK_RUN(a_rule_sees_the_place);
    CHECK_RUN(the_cpu_wants_pooled_weights_of_first_layers);
    CHECK_RUN(the_sign_of_a_norm_is_read_off_x);
    CHECK_RUN(an_instance_norm_need_not_keep_its_result);
    CHECK_RUN(what_a_norm_takes_away_is_not_added);
    CHECK_RUN(a_norm_adds_up_the_gradients_of_two_readers);
    CHECK_RUN(what_goes_around_a_layer_is_added_in_it);
    CHECK_RUN(heads_are_read_where_they_lie);
    CHECK_RUN(what_lost_a_maximum_is_not_multiplied);
    CHECK_RUN(a_norm_writes_only_what_is_pooled);
    return CHECK_DONE();
}
