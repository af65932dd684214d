/* optimise.c: optimisers, what they remember, and pools, in the places of the updates that a trial recorded.
 *
 * Needs: the gradients that an update is to get (differentiate, parallel).  Leaves: no macros of a trial's.
 * An update is one optimiser node; with several ranks one for every bucket of gradients, so that those can
 * begin whose sums are there.
 *
 * Where ranks keep pieces of what an optimiser remembers (decision 24), it works on pieces: this rank's of
 * the gradients and of the weights.  Weights that every rank has whole are gathered behind it.  Of lars and
 * lamb, layerwise.c makes sgd and adam then. */
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
    ls_value weight;    /* the parameter */
    ls_value old, grad; /* what the optimiser works on: all of it and its gradient, or pieces of both */
    int32_t bucket;     /* the node that its gradient comes from */
    ls_value *next;     /* where the parameter's next version goes */
} trained;

typedef struct group {
    const ls_strategy *how;
    const ls_op *op;   /* the rule, by which states are named */
    const ls_op *node; /* what works on them; the rule itself, but for lars and lamb on pieces */
    ls_optim_attr attr;
    int n, n_states;
    trained *list;
    ls_value *in;     /* room for the inputs of an optimiser node */
    ls_value *pieces; /* and for 2 n + 1 more */
    ls_value t;       /* some version of the counter */
} group;

static const char *state_name(const ls_op *op, int k)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].op == op) return rules[i].states[k];
    LS_BUG_IF(true);
    return NULL;
}

/* Whether the optimiser works on pieces. */
static bool in_pieces(const group *gr)
{
    return lsi_in_pieces(gr->how, gr->op);
}

/* -- clipping ---------------------------------------------------------------------------------------------
 */

/* The loss scale that makes the optimiser see gradients of at most that norm: the true one of all gradients,
 * wherever their pieces are. */
static ls_value clip(const group *gr, ls_value loss_scale, double most)
{
    ls_graph *g = loss_scale.g;
    const ls_value one = ls_fill(g, LS_SHAPE_SCALAR, LS_F32, 1);
    ls_value squares = {g, -1}, norm, room[2];

    for (int i = 0; i < gr->n; i++) {
        const ls_value grad = gr->list[i].grad;
        const ls_value q = ls_reduce_sum(ls_square(grad), (1u << ls_value_shape(grad).rank) - 1, false);
        squares = i == 0 ? q : ls_add(squares, q);
    }
    if (in_pieces(gr) && ls_strategy_scatters(gr->how))
        squares = ls_all_reduce(one, 1, &squares, (ls_collective_attr){.bucket = -1}, room);
    /* Gradients carry the loss scale; the small number is the one PyTorch adds. */
    norm = ls_div(ls_sqrt(squares), loss_scale);
    return ls_mul(loss_scale, ls_maximum(one, ls_affine(norm, 1 / most, 1e-6 / most)));
}

/* -- optimisers -------------------------------------------------------------------------------------------
 */

/* State k of a parameter, shared with earlier updates of the same optimiser; it lives where the parameter
 * does, or in pieces.
 */
static ls_value state_of(ls_graph *g, const group *gr, const trained *p, int k)
{
    const ls_var *param = g->vars[g->values[p->weight.id]->var];
    ls_var *var;
    const char *name =
        ls_arena_printf(g->arena, "%s.%s.%s", param->name, gr->op->name, state_name(gr->op, k));
    ls_value state;

    if (name == NULL) return ls_graph_fail(g, LS_NOMEM, "ls_minimise: no memory");
    state = ls_graph_variable(g, name, LS_VAR_OPTIMIZER, LS_F32, ls_value_shape(p->old),
                              (ls_init){LS_INIT_CONST, 0});
    if (!ls_value_ok(state)) return state;
    var = g->vars[g->values[state.id]->var];
    var->home = param->home;
    if (in_pieces(gr)) lsi_cut(var, gr->how, lsi_whole(g, param));
    return state;
}

/* -- pieces -----------------------------------------------------------------------------------------------
 */

/* This rank's piece of `x`.  It is there for one optimiser node, and a copy: it is not made before `after`.
 */
static ls_value take_piece(const group *gr, ls_value x, int32_t after)
{
    const ls_value piece = ls_own_piece(x, gr->how->pieces, gr->how->group);

    if (ls_value_ok(piece)) piece.g->nodes[piece.g->values[piece.id]->node]->after = after;
    return piece;
}

/* The value, if something is computed for it; else -1: it is there at any time. */
static int32_t computed(const ls_graph *g, int32_t value)
{
    const int32_t node = g->values[value]->node;

    return node >= 0 && g->nodes[node]->n_in > 0 ? value : -1;
}

/* What the optimiser works on, of parameters [begin, end), when the node before it is over. */
static void take_pieces(const group *gr, int begin, int end)
{
    const ls_graph *g = gr->t.g;
    const int32_t counter = g->values[gr->t.id]->var;
    const int32_t after = computed(g, begin > 0 ? g->vars[counter]->current : gr->in[SCALE].id);

    for (int i = begin; i < end && in_pieces(gr) && lsi_sound(g); i++) {
        trained *p = &gr->list[i];
        const ls_var *param = g->vars[g->values[p->weight.id]->var];
        if (param->home != LS_HOME_SHARDED) p->old = take_piece(gr, p->weight, after);
        if (!ls_strategy_scatters(gr->how)) p->grad = take_piece(gr, p->grad, after);
    }
}

/* The next versions of parameters that every rank has whole, from what each has made of its piece. */
static void gather(ls_graph *g, const group *gr, int n, const trained *list, const ls_value *pieces)
{
    const ls_collective_attr attr = {.bucket = -1, .group = gr->how->group, .ranks = gr->how->pieces};
    const ls_value all = ls_all_gather(n, pieces, attr, gr->pieces + gr->n);

    for (int i = 0; i < n && ls_value_ok(all); i++) {
        const int32_t var = g->values[list[i].weight.id]->var;
        const ls_value now = {g, g->vars[var]->current};
        const ls_value next = ls_assign(now, lsi_gathered(ls_graph_out(all, i), ls_value_shape(now)));
        if (!ls_value_ok(next)) return;
        ls_graph_advance(g, var, next);
        *list[i].next = next;
    }
}

/* One optimiser node over the parameters [begin, end). */
static void add_node(ls_graph *g, const group *gr, int begin, int end)
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
        gr->in[WEIGHTS + i] = list[i].old;
        gr->in[WEIGHTS + n + i] = list[i].grad;
    }
    for (int k = 0; k < gr->n_states; k++)
        for (int i = 0; i < n; i++) gr->in[WEIGHTS + (2 + k) * n + i] = state_of(g, gr, &list[i], k);
    first = ls_graph_add(g, gr->node, WEIGHTS + n * (2 + gr->n_states), gr->in, &attr);
    if (!ls_value_ok(first)) return;
    for (int k = 0; k < n_out; k++) { /* each takes over the memory of an input */
        const int32_t var = g->values[gr->in[gr->node->alias(0, &attr, k)].id]->var;
        if (var >= 0) ls_graph_advance(g, var, ls_graph_out(first, k));
    }
    for (int i = 0; i < n; i++) *list[i].next = ls_graph_out(first, 1 + i);
    if (in_pieces(gr) && gr->how->sharding == LS_SHARD_STATE) {
        for (int i = 0; i < n; i++) gr->pieces[i] = *list[i].next;
        gather(g, gr, n, list, gr->pieces);
    }
}

/* In the order in which the sums of gradients arrive; insertion sort, since there are few and it keeps the
 * order within a bucket. */
static void sort_by_bucket(group *gr)
{
    for (int i = 1; i < gr->n; i++)
        for (int k = i; k > 0 && gr->list[k - 1].bucket > gr->list[k].bucket; k--) {
            const trained t = gr->list[k];
            gr->list[k] = gr->list[k - 1];
            gr->list[k - 1] = t;
        }
}

/* Unless all gradients are finite the optimiser is to leave everything as it is, on all ranks. */
static void guard_update(lsi_guard *guard, const ls_update_attr *a, group *gr, const ls_value *grads)
{
    ls_value found = ls_all_finite(gr->n, grads, a->first);

    if (in_pieces(gr) && ls_strategy_scatters(gr->how)) found = lsi_guard_everywhere(found);
    if (!lsi_guard_note(guard, found) || gr->how->guard != LS_GUARD_SKIP) return;
    gr->in[SCALE] = ls_unless(found, gr->in[SCALE]);
    gr->in[LR] = lsi_guard_rate(gr->in[LR]);
}

/* -- lars and lamb on pieces --------------------------------------------------------------------------------
 */

/* What sgd, or adam, is to work on. */
static void begin_layerwise(ls_graph *g, group *gr)
{
    ls_value *weights = gr->pieces, *grads = gr->pieces + gr->n;
    bool *adapts = ls_arena_alloc(g->arena, sizeof *adapts * (size_t)gr->n);

    if (gr->op == gr->node || !lsi_sound(g)) return;
    if (adapts == NULL) {
        lsi_no_memory(g);
        return;
    }
    for (int i = 0; i < gr->n; i++) {
        weights[i] = ls_copy(gr->list[i].old); /* nobody but gathers and updates reads pieces themselves */
        grads[i] = gr->list[i].grad;
        adapts[i] = lsi_whole(g, g->vars[g->values[gr->list[i].weight.id]->var]).rank > 1;
        if (gr->node == &ls_op_adam) gr->list[i].old = ls_fill(g, ls_value_shape(grads[i]), LS_F32, 0);
    }
    if (gr->node == &ls_op_sgd) {
        lsi_lars_gradients(gr->how, &gr->attr, gr->in[SCALE], gr->n, adapts, weights, grads);
        for (int i = 0; i < gr->n; i++) gr->list[i].grad = grads[i];
    }
}

/* What adam has made of zeros becomes the next versions of the weights. */
static void end_layerwise(ls_graph *g, const group *gr, ls_value lr, double weight_decay)
{
    ls_value *weights = gr->pieces, *steps = gr->pieces + gr->n;
    const ls_optim_attr attr = {.weight_decay = weight_decay};

    if (gr->op == gr->node || gr->node != &ls_op_adam || !lsi_sound(g)) return;
    for (int i = 0; i < gr->n; i++) {
        weights[i] = ls_copy(gr->list[i].weight);
        steps[i] = *gr->list[i].next;
    }
    lsi_lamb_step(gr->how, &attr, lr, gr->in[SCALE], gr->n, weights, steps);
    for (int i = 0; i < gr->n && lsi_sound(g); i++) {
        const ls_value piece = gr->list[i].weight;
        *gr->list[i].next = ls_assign(piece, steps[i]);
        if (lsi_sound(g)) ls_graph_advance(g, g->values[piece.id]->var, *gr->list[i].next);
    }
}

static void update(ls_graph *g, group *gr)
{
    const ls_strategy *how = gr->how;
    const ls_value lr = gr->in[LR];
    const double weight_decay = gr->attr.weight_decay;
    const char *counter = ls_arena_printf(g->arena, "%s.t", g->scope);

    if (counter == NULL) {
        ls_graph_fail(g, LS_NOMEM, "ls_minimise: no memory");
        return;
    }
    gr->t = ls_graph_variable(g, counter, LS_VAR_OPTIMIZER, LS_I32, LS_SHAPE(1), (ls_init){LS_INIT_CONST, 0});
    if (lsi_sound(g) && gr->op != gr->node) take_pieces(gr, 0, gr->n); /* norms are of all of them */
    begin_layerwise(g, gr);
    if (!lsi_sound(g)) return;
    if (gr->op != gr->node) {
        gr->attr.weight_decay = 0;
        gr->attr.form = LS_ADAM_TORCH;
    }
    if (gr->op != gr->node && gr->node == &ls_op_adam) gr->in[LR] = ls_fill(g, LS_SHAPE_SCALAR, LS_F32, 1);
    if (how->ranks) sort_by_bucket(gr);
    for (int begin = 0, end; begin < gr->n && lsi_sound(g); begin = end) {
        const int32_t bucket = gr->list[begin].bucket;
        for (end = begin + 1; end < gr->n && (!how->ranks || gr->list[end].bucket == bucket);) end++;
        if (gr->op == gr->node) take_pieces(gr, begin, end);
        if (lsi_sound(g)) add_node(g, gr, begin, end);
    }
    end_layerwise(g, gr, lr, weight_decay);
}

/* -- the pass ---------------------------------------------------------------------------------------------
 */

/* What works element by element in the place of a rule that does not. */
static const ls_op *on_pieces(const ls_strategy *how, const ls_op *rule)
{
    if (!lsi_in_pieces(how, rule) || ls_optim_by_element(rule)) return rule;
    return rule == &ls_op_lars ? &ls_op_sgd : &ls_op_adam;
}

typedef struct optimising {
    ls_strategy how;
    lsi_guard guard;
} optimising;

static void expand_update(optimising *o, ls_graph *to, const ls_node *n, const ls_value *in, ls_value *out)
{
    const ls_strategy *how = &o->how;
    const ls_update_attr *a = n->attr;
    group gr = {.how = how,
                .op = a->rule,
                .node = on_pieces(how, a->rule),
                .attr = a->how,
                .n = n->n_out,
                .n_states = ls_optim_states(a->rule, &a->how)};

    if (gr.op == &ls_op_lars && gr.node != gr.op && a->how.momentum == 0) {
        ls_graph_fail(to, LS_INVALID,
                      "ls_minimise: lars without momentum cannot work on pieces of parameters; set "
                      "optimizer.momentum above 0, or parallel.strategy to ddp or zero1");
        return;
    }
    gr.list = ls_arena_alloc(to->arena, sizeof *gr.list * (size_t)gr.n);
    gr.in = ls_arena_alloc(to->arena, sizeof *gr.in * (size_t)(WEIGHTS + 6 * gr.n + 1));
    if (gr.list == NULL || gr.in == NULL) {
        ls_graph_fail(to, LS_NOMEM, "ls_minimise: no memory");
        return;
    }
    gr.in[LR] = in[LS_UPDATE_LR];
    gr.in[SCALE] = in[LS_UPDATE_SCALE];
    gr.pieces = gr.in + WEIGHTS + 4 * gr.n;
    for (int i = 0; i < gr.n; i++) {
        const ls_value weight = in[LS_UPDATE_W + i], grad = in[LS_UPDATE_W + gr.n + i];
        gr.list[i] = (trained){weight, weight, grad, to->values[grad.id]->node, &out[i]};
    }
    if (how->clip_norm > 0) gr.in[SCALE] = clip(&gr, gr.in[SCALE], how->clip_norm);
    if (how->guard != LS_GUARD_NONE) guard_update(&o->guard, a, &gr, in + LS_UPDATE_W + gr.n);
    update(to, &gr);
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
    optimising o = {.how = *how};

    ls_graph_rewrite(g, expand, &o);
    lsi_guard_conclude(g, how, &o.guard);
}
