/* plans_test.c: small graphs, compiled. */
#include "plans_test.h"

#include <stdio.h>

#include "check.h"
#include "graph/graph.h"
#include "ops/ops.h"

static ls_value kept(ls_graph *g, const char *name, ls_var_role kind)
{
    return ls_graph_var(g, name, kind, LS_F32, LS_SHAPE(8), (ls_init){LS_INIT_CONST, 1});
}

static ls_value norm(ls_graph *g, ls_value x)
{
    const ls_value mean = kept(g, "mean", LS_VAR_BUFFER), var = kept(g, "var", LS_VAR_BUFFER);
    const ls_value y = ls_batch_norm(x, kept(g, "gamma", LS_VAR_PARAM), kept(g, "beta", LS_VAR_PARAM), mean,
                                     var, (ls_norm_attr){.eps = 1e-5, .momentum = 0.1});
    const ls_value last = kept(g, "kept", LS_VAR_BUFFER), next = ls_assign(last, ls_graph_out(y, 3));

    ls_graph_advance(g, g->values[mean.id]->var, ls_graph_out(y, 3));
    ls_graph_advance(g, g->values[var.id]->var, ls_graph_out(y, 4));
    ls_graph_advance(g, g->values[last.id]->var, next);
    return y;
}

static void build(ls_graph *g, const small_plan *how)
{
    const int64_t rows = how->rows > 0 ? how->rows : 4;
    ls_value a, b, w, h;

    g->scope = how->layer != NULL ? how->layer : "first";
    a = ls_graph_input(g, how->input != NULL ? how->input : "x", LS_F32, LS_SHAPE(rows, 8));
    w = ls_graph_var(g, "w", LS_VAR_PARAM, LS_F32, LS_SHAPE(8, 8), (ls_init){LS_INIT_CONST, 0.5});
    b = ls_leaky_relu(ls_matmul(a, w, false, false), how->slope > 0 ? how->slope : 0.2);
    h = how->swapped ? ls_sub(b, a) : ls_sub(a, b);
    g->scope = "second";
    if (how->more) h = ls_tanh(h);
    if (how->norm) h = norm(g, h);
    for (int i = 0; how->long_chain && i < 400; i++) {
        char *scope = ls_arena_printf(g->arena, "block%d.conv", i / 20);
        if (scope != NULL) g->scope = scope;
        h = i % 2 ? ls_tanh(h) : ls_exp(ls_matmul(h, w, false, false));
    }
    ls_graph_fetch(ls_reduce_mean(ls_square(h), LS_ALL_AXES, false), "loss");
}

void small_plan_document(const small_plan *how, ls_document *d)
{
    ls_err err = {0};
    ls_graph *g;
    ls_device *dev = NULL;
    ls_state *state = NULL;
    ls_plan *plan = NULL;

    REQUIRE_OK(ls_graph_create(&g, &err), &err);
    build(g, how);
    REQUIRE_OK(ls_device_open(&dev, "ref", 1, &err), &err);
    REQUIRE_OK(ls_state_create(&state, dev, &err), &err);
    REQUIRE_OK(ls_plan_compile_take(&plan, g, dev, state, &err), &err);
    REQUIRE_OK(ls_document_make(d, plan, &err), &err);
    d->batch = how->rows > 0 ? how->rows : 4;
    ls_plan_destroy(plan);
    ls_state_destroy(state);
    ls_device_close(dev);
}
