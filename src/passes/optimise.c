/* optimise.c: optimisers, what they remember, and pools, in the places of the updates that a trial recorded.
 *
 * Needs: the gradients that an update is to get (differentiate, parallel).  Leaves: no macros.  An update is
 * one optimiser node; with several ranks one for every bucket of gradients, so that those can begin whose
 * sums are there. */
#include <string.h>

#include "passes/lower_internal.h"

/* The state tensors of each rule, in the order of the op's inputs. */
static const struct rule {
    const ls_op *op;
    const char *states[2];
} rules[] = {
    {&ls_op_sgd, {"momentum", NULL}},  {&ls_op_adam, {"m", "v"}}, {&ls_op_rmsprop, {"square", "momentum"}},
    {&ls_op_lars, {"momentum", NULL}}, {&ls_op_lamb, {"m", "v"}},
};

enum { LR, SCALE, T, WEIGHTS }; /* the first inputs of an optimiser */

/* One parameter of an update. */
typedef struct trained {
    int index; /* among the update's */
    ls_value weight, grad;
} trained;

typedef struct group {
    const ls_op *op;
    ls_optim_attr attr;
    int n, n_states;
    trained *list;
    ls_value *in; /* room for the inputs of an optimiser node */
    ls_value t;   /* some version of the counter */
} group;

static const char *state_name(const ls_op *op, int k)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].op == op) return rules[i].states[k];
    LS_BUG_IF(true);
    return NULL;
}

/* -- clipping ---------------------------------------------------------------------------------------------
 */

/* The loss scale that makes the optimiser see gradients of at most that norm. */
static ls_value clip(const group *gr, ls_value loss_scale, double most)
{
    ls_graph *g = loss_scale.g;
    const ls_value one = ls_fill(g, LS_SHAPE_SCALAR, LS_F32, 1);
    ls_value squares = {g, -1}, norm;

    for (int i = 0; i < gr->n; i++) {
        const ls_value grad = gr->list[i].grad;
        const ls_value q = ls_reduce_sum(ls_square(grad), (1u << ls_value_shape(grad).rank) - 1, false);
        squares = i == 0 ? q : ls_add(squares, q);
    }
    /* Gradients carry the loss scale; the small number is the one PyTorch adds. */
    norm = ls_div(ls_sqrt(squares), loss_scale);
    return ls_mul(loss_scale, ls_maximum(one, ls_affine(norm, 1 / most, 1e-6 / most)));
}

/* -- optimisers -------------------------------------------------------------------------------------------
 */

/* State k of a parameter, shared with earlier updates of the same optimiser; it lives where the parameter
 * does.
 */
static ls_value state_of(ls_graph *g, const group *gr, ls_value weight, int k)
{
    const ls_var *param = g->vars[g->values[weight.id]->var];
    const char *name =
        ls_arena_printf(g->arena, "%s.%s.%s", param->name, gr->op->name, state_name(gr->op, k));
    ls_value state;

    if (name == NULL) return ls_graph_fail(g, LS_NOMEM, "ls_minimise: no memory");
    state = ls_graph_variable(g, name, LS_VAR_OPTIMIZER, LS_F32, ls_value_shape(weight),
                              (ls_init){LS_INIT_CONST, 0});
    if (ls_value_ok(state)) g->vars[g->values[state.id]->var]->home = param->home;
    return state;
}

/* One optimiser node over the parameters [begin, end). */
static void add_node(ls_graph *g, const group *gr, int begin, int end, ls_value *out)
{
    const trained *list = gr->list + begin;
    const int n = end - begin, n_out = 1 + n * (1 + gr->n_states);
    const int32_t counter = g->values[gr->t.id]->var;
    ls_optim_attr attr = gr->attr;
    ls_value first;

    attr.n = n;
    attr.more = end < gr->n;
    attr.later = begin > 0;
    gr->in[T] = (ls_value){g, g->vars[counter]->current};
    for (int i = 0; i < n; i++) {
        gr->in[WEIGHTS + i] = list[i].weight;
        gr->in[WEIGHTS + n + i] = list[i].grad;
    }
    for (int k = 0; k < gr->n_states; k++)
        for (int i = 0; i < n; i++) gr->in[WEIGHTS + (2 + k) * n + i] = state_of(g, gr, list[i].weight, k);
    first = ls_graph_add(g, gr->op, WEIGHTS + n * (2 + gr->n_states), gr->in, &attr);
    if (!ls_value_ok(first)) return;
    for (int k = 0; k < n_out; k++) /* each takes over the memory of an input */
        ls_graph_advance(g, g->values[gr->in[gr->op->alias(0, &attr, k)].id]->var, ls_graph_out(first, k));
    for (int i = 0; i < n; i++) out[list[i].index] = ls_graph_out(first, 1 + i);
}

static int32_t bucket_of(const ls_graph *g, const trained *t)
{
    return g->values[t->grad.id]->node;
}

/* In the order in which the sums of gradients arrive; insertion sort, since there are few and it keeps the
 * order within a bucket. */
static void sort_by_bucket(const ls_graph *g, group *gr)
{
    for (int i = 1; i < gr->n; i++)
        for (int k = i; k > 0 && bucket_of(g, &gr->list[k - 1]) > bucket_of(g, &gr->list[k]); k--) {
            const trained t = gr->list[k];
            gr->list[k] = gr->list[k - 1];
            gr->list[k - 1] = t;
        }
}

static void update(ls_graph *g, const ls_strategy *how, group *gr, ls_value *out)
{
    const char *counter = ls_arena_printf(g->arena, "%s.t", g->scope);

    if (counter == NULL) {
        ls_graph_fail(g, LS_NOMEM, "ls_minimise: no memory");
        return;
    }
    if (how->clip_norm > 0) gr->in[SCALE] = clip(gr, gr->in[SCALE], how->clip_norm);
    gr->t = ls_graph_variable(g, counter, LS_VAR_OPTIMIZER, LS_I32, LS_SHAPE(1), (ls_init){LS_INIT_CONST, 0});
    if (how->ranks) sort_by_bucket(g, gr);
    for (int begin = 0, end; begin < gr->n && lsi_sound(g); begin = end) {
        const int32_t bucket = bucket_of(g, &gr->list[begin]);
        for (end = begin + 1; end < gr->n && (!how->ranks || bucket_of(g, &gr->list[end]) == bucket);) end++;
        add_node(g, gr, begin, end, out);
    }
}

/* -- the pass ---------------------------------------------------------------------------------------------
 */

static void expand_update(const ls_strategy *how, ls_graph *to, const ls_node *n, const ls_value *in,
                          ls_value *out)
{
    const ls_update_attr *a = n->attr;
    group gr = {.op = a->rule, .attr = a->how, .n = n->n_out, .n_states = ls_optim_states(a->rule, &a->how)};

    gr.list = ls_arena_alloc(to->arena, sizeof *gr.list * (size_t)gr.n);
    gr.in = ls_arena_alloc(to->arena, sizeof *gr.in * (size_t)(WEIGHTS + 4 * gr.n));
    if (gr.list == NULL || gr.in == NULL) {
        ls_graph_fail(to, LS_NOMEM, "ls_minimise: no memory");
        return;
    }
    gr.in[LR] = in[LS_UPDATE_LR];
    gr.in[SCALE] = in[LS_UPDATE_SCALE];
    for (int i = 0; i < gr.n; i++) gr.list[i] = (trained){i, in[LS_UPDATE_W + i], in[LS_UPDATE_W + gr.n + i]};
    update(to, how, &gr, out);
}

static bool expand(void *ctx, ls_graph *to, const ls_node *n, const ls_value *in, ls_value *out)
{
    if (n->op == &ls_op_update)
        expand_update(ctx, to, n, in, out);
    else if (n->op == &ls_op_keep)
        lsi_keep_store(((const ls_keep_attr *)n->attr)->by_place, in, out);
    else
        return false;
    return true;
}

void ls_pass_optimise(ls_graph *g, const ls_strategy *how)
{
    ls_strategy copy = *how;

    ls_graph_rewrite(g, expand, &copy);
}
