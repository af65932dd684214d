/* minimise.c: which loss trains which parameters: gradients, one optimiser node per call, new versions. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "nn/nn_internal.h"
#include "passes/autodiff.h"

/* The state tensors of each rule, in the order of the op's inputs; `with_momentum` ones exist only then. */
typedef struct rule_info {
    const ls_op *op;
    const char *name;
    const char *states[2];
} rule_info;

static const rule_info rules[] = {
    [LS_SGD] = {&ls_op_sgd, "sgd", {"momentum", NULL}},
    [LS_ADAM] = {&ls_op_adam, "adam", {"m", "v"}},
    [LS_RMSPROP] = {&ls_op_rmsprop, "rmsprop", {"square", "momentum"}},
    [LS_LARS] = {&ls_op_lars, "lars", {"momentum", NULL}},
    [LS_LAMB] = {&ls_op_lamb, "lamb", {"m", "v"}},
};

typedef struct group {
    const rule_info *rule;
    ls_optim_attr attr;
    int n, n_states;
    int32_t *vars;     /* the matched parameters */
    ls_value *weights; /* their current versions */
    ls_value *grads;
    ls_value *in; /* inputs of the optimiser node */
} group;

static double or_default(double x, double otherwise)
{
    return x != 0 ? x : otherwise;
}

static ls_optim_attr attr_of(const ls_optimiser *o)
{
    return (ls_optim_attr){.momentum = o->momentum,
                           .weight_decay = o->weight_decay,
                           .beta1 = or_default(o->beta1, 0.9),
                           .beta2 = or_default(o->beta2, 0.999),
                           .eps = or_default(o->eps, o->rule == LS_LAMB ? 1e-6 : 1e-8),
                           .alpha = or_default(o->alpha, 0.99),
                           .trust = or_default(o->trust, 0.001),
                           .nesterov = o->nesterov,
                           .form = o->form};
}

static bool alloc_group(ls_step *s, group *gr)
{
    size_t n = (size_t)s->g->n_vars + 1;

    gr->vars = ls_arena_alloc(s->g->arena, n * sizeof *gr->vars);
    gr->weights = ls_arena_alloc(s->g->arena, n * sizeof *gr->weights);
    gr->grads = ls_arena_alloc(s->g->arena, n * sizeof *gr->grads);
    gr->in = ls_arena_alloc(s->g->arena, (3 + 4 * n) * sizeof *gr->in);
    if (gr->vars != NULL && gr->weights != NULL && gr->grads != NULL && gr->in != NULL) return true;
    ls_graph_fail(s->g, LS_NOMEM, "ls_minimise: no memory");
    return false;
}

/* Every glob must find something: a misspelt one would silently leave a network untrained. */
static bool check_globs(ls_step *s, const char *params)
{
    const char *at = params;
    char glob[LSI_WORD];
    int n_globs = 0;

    for (; lsi_next_word(&at, glob); n_globs++) {
        int hits = 0;
        for (int i = 0; i < s->n_params; i++) hits += ls_text_glob(glob, s->params[i].name);
        if (hits > 0) continue;
        lsi_step_fail(s, "ls_minimise: no parameter matches \"%s\" (there are %d, the first is \"%s\")", glob,
                      s->n_params, s->n_params > 0 ? s->params[0].name : "none");
        return false;
    }
    if (n_globs == 0) lsi_step_fail(s, "ls_minimise: which parameters?  The pattern is empty");
    return n_globs > 0;
}

static void collect(ls_step *s, const char *params, group *gr)
{
    for (int32_t i = 0; i < s->g->n_vars; i++) {
        const ls_var *var = s->g->vars[i];
        if (var->role != LS_VAR_PARAM || !lsi_match_any(params, var->name)) continue;
        if (lsi_is_frozen(s, var->name)) {
            s->spared = true;
            continue;
        }
        gr->vars[gr->n] = i;
        gr->weights[gr->n++] = (ls_value){s->g, var->current};
    }
}

/* Whether `loss` depends on any version of variable `var` at all. */
static bool reaches_some_version(const ls_graph *g, ls_value loss, int32_t var, bool *depends)
{
    for (int32_t i = 0; i < g->n_values; i++) depends[i] = g->values[i]->var == var;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        bool any = false;
        if (n->op->flags & LS_OP_NO_GRAD) continue;
        for (int k = 0; k < n->n_in; k++) any = any || depends[n->in[k]];
        for (int k = 0; k < n->n_out; k++) depends[n->out[k]] = depends[n->out[k]] || any;
    }
    return depends[loss.id];
}

static void fail_unreached(ls_step *s, ls_value loss, int32_t var)
{
    const char *name = s->g->vars[var]->name;
    bool *depends = ls_arena_alloc(s->g->arena, (size_t)s->g->n_values);

    if (depends != NULL && reaches_some_version(s->g, loss, var, depends))
        lsi_step_fail(
            s,
            "ls_minimise: the loss uses \"%s\" only as it was before an earlier ls_minimise; build the "
            "loss after that call, or update both with one",
            name);
    else
        lsi_step_fail(s, "ls_minimise: the loss does not depend on the parameter \"%s\"", name);
}

static bool differentiate(ls_step *s, ls_value loss, group *gr)
{
    ls_autodiff(loss, s->loss_scale, gr->n, gr->weights, gr->grads);
    if (!lsi_step_open(s)) return false;
    for (int i = 0; i < gr->n; i++) {
        if (!ls_value_ok(gr->grads[i])) {
            fail_unreached(s, loss, gr->vars[i]);
            return false;
        }
        s->g->values[gr->grads[i].id]->category = LS_CAT_GRADIENT;
    }
    return true;
}

/* The state tensors, shared with earlier calls of the same optimiser on the same parameters. */
static bool add_states(ls_step *s, group *gr, bool continued, const char *optimiser)
{
    for (int k = 0; k < gr->n_states; k++)
        for (int i = 0; i < gr->n; i++) {
            const char *param = s->g->vars[gr->vars[i]]->name;
            const char *name =
                ls_arena_printf(s->g->arena, "%s.%s.%s", param, gr->rule->name, gr->rule->states[k]);
            if (name == NULL) {
                ls_graph_fail(s->g, LS_NOMEM, "ls_minimise: no memory");
                return false;
            }
            if (!continued && ls_graph_find_var(s->g, name) >= 0) {
                lsi_step_fail(s, "ls_minimise: \"%s\" is already trained by another optimiser than \"%s\"",
                              param, optimiser);
                return false;
            }
            const ls_value state = lsi_variable(s, name, NULL, LS_VAR_OPTIMIZER, LS_F32,
                                                ls_value_shape(gr->weights[i]), (ls_init){LS_INIT_CONST, 0});
            if (!ls_value_ok(state)) return false;
            gr->in[3 + (2 + k) * gr->n + i] = state;
        }
    return lsi_step_open(s);
}

static void advance(ls_step *s, const group *gr, ls_value out)
{
    /* Output k takes over the memory of input alias(k): t, the weights, the states. */
    ls_graph *g = s->g;
    int n_out = 1 + gr->n * (1 + gr->n_states);

    for (int k = 0; k < n_out; k++) {
        int in = gr->rule->op->alias(0, &gr->attr, k);
        ls_graph_advance(g, g->values[gr->in[in].id]->var, ls_graph_out(out, k));
    }
}

static bool record_lr(ls_step *s, const ls_optimiser *o, const char **input)
{
    char name[LSI_WORD];

    snprintf(name, sizeof name, "lr%s%s", o->name != NULL ? "." : "", o->name != NULL ? o->name : "");
    for (int i = 0; i < s->n_lrs; i++)
        if (strcmp(s->lrs[i].input, name) == 0) {
            *input = s->lrs[i].input;
            if (s->lrs[i].value == o->lr) return true;
            lsi_step_fail(s, "ls_minimise: \"%s\" is %g already; optimisers with another rate need a .name",
                          name, s->lrs[i].value);
            return false;
        }
    *input = ls_arena_strdup(s->arena, name);
    if (*input == NULL || !lsi_step_grow(s, (void **)&s->lrs, s->n_lrs, &s->cap_lrs, sizeof *s->lrs)) {
        ls_graph_fail(s->g, LS_NOMEM, "ls_minimise: no memory");
        return false;
    }
    s->lrs[s->n_lrs++] = (lsi_lr){*input, o->lr};
    return true;
}

static bool same_bucket(const ls_step *s, const group *gr, int i, int k)
{
    return s->g->values[gr->grads[i].id]->node == s->g->values[gr->grads[k].id]->node;
}

/* In the order in which the sums of gradients arrive; insertion sort, since there are few and it keeps the
 * order within a bucket. */
static void sort_by_bucket(const ls_step *s, group *gr)
{
    for (int i = 1; i < gr->n; i++)
        for (int k = i; k > 0; k--) {
            const int32_t var = gr->vars[k];
            const ls_value weight = gr->weights[k], grad = gr->grads[k];
            if (s->g->values[gr->grads[k - 1].id]->node <= s->g->values[grad.id]->node) break;
            gr->vars[k] = gr->vars[k - 1];
            gr->weights[k] = gr->weights[k - 1];
            gr->grads[k] = gr->grads[k - 1];
            gr->vars[k - 1] = var;
            gr->weights[k - 1] = weight;
            gr->grads[k - 1] = grad;
        }
}

/* One optimiser node over the parameters [begin, end), and its outputs as the new versions. */
static void add_node(ls_step *s, const group *all, int begin, int end, ls_value t, bool continued,
                     const char *name)
{
    group gr = *all;
    ls_value out;

    gr.n = gr.attr.n = end - begin;
    gr.attr.part = end < all->n;
    gr.attr.later = begin > 0;
    gr.vars += begin;
    gr.weights += begin;
    gr.grads += begin;
    gr.in[2] = (ls_value){s->g, s->g->vars[s->g->values[t.id]->var]->current};
    for (int i = 0; i < gr.n; i++) {
        gr.in[3 + i] = gr.weights[i];
        gr.in[3 + gr.n + i] = gr.grads[i];
    }
    if (!add_states(s, &gr, continued, name)) return;
    out = ls_graph_add(s->g, gr.rule->op, 3 + gr.n * (2 + gr.n_states), gr.in, &gr.attr);
    if (!ls_value_ok(out)) return;
    advance(s, &gr, out);
}

/* The optimiser: one node for all parameters, or with several ranks one for every bucket of gradients. */
static void update(ls_step *s, const ls_optimiser *o, const char *name, group *gr)
{
    const char *t_name = ls_arena_printf(s->g->arena, "optimizer.%s.t", name), *lr;
    const bool continued = t_name != NULL && ls_graph_find_var(s->g, t_name) >= 0;
    ls_value t;

    if (t_name == NULL) {
        ls_graph_fail(s->g, LS_NOMEM, "ls_minimise: no memory");
        return;
    }
    if (!record_lr(s, o, &lr)) return;
    gr->in[0] = lsi_scalar_input(s, lr);
    gr->in[1] = s->how.clip_norm > 0 ? lsi_clip(s, gr->n, gr->grads) : s->loss_scale;
    t = lsi_variable(s, t_name, NULL, LS_VAR_OPTIMIZER, LS_I32, LS_SHAPE(1), (ls_init){LS_INIT_CONST, 0});
    if (s->how.ranks) sort_by_bucket(s, gr);
    for (int begin = 0, end; begin < gr->n && lsi_step_open(s); begin = end) {
        for (end = begin + 1; end < gr->n && (!s->how.ranks || same_bucket(s, gr, begin, end));) end++;
        add_node(s, gr, begin, end, t, continued, name);
    }
}

static bool check_loss(ls_step *s, ls_value loss)
{
    char buf[LS_SHAPE_TEXT];

    if (!ls_value_ok(loss)) return false;
    if (ls_value_shape(loss).rank == 0 && ls_value_dtype(loss) == LS_F32) return true;
    lsi_step_fail(s, "ls_minimise: the loss must be an f32 scalar, got %s %s",
                  ls_dtype_name(ls_value_dtype(loss)), ls_shape_text(ls_value_shape(loss), buf));
    return false;
}

/* What the optimiser gets. */
static bool gradients(ls_step *s, ls_value loss, const char *scope, group *gr)
{
    const char *own = s->g->scope;

    if (s->how.part == LS_PART_UPDATE) {
        lsi_accumulated(s, gr->n, gr->vars, gr->grads);
    } else {
        s->g->scope = scope; /* gradients belong to the layers */
        if (!differentiate(s, loss, gr)) return false;
        s->g->scope = own;
    }
    if (s->how.ranks && s->how.part != LS_PART_GRADIENTS) lsi_reduce(s, gr->n, gr->grads);
    return lsi_step_open(s);
}

/* Where the update is another plan's, a new version stands for its result until the stages are known. */
static void stand_in(ls_step *s, const group *gr)
{
    for (int i = 0; i < gr->n && lsi_step_open(s); i++) {
        const ls_value next = ls_assign(gr->weights[i], gr->grads[i]);
        if (ls_value_ok(next)) ls_graph_advance(s->g, gr->vars[i], next);
    }
}

static void record_call(ls_step *s, ls_value loss, const char *params, const group *gr, int32_t first_node)
{
    const char *copy = ls_arena_strdup(s->arena, params);

    if (copy == NULL) ls_graph_fail(s->g, LS_NOMEM, "ls_minimise: no memory");
    if (!lsi_step_open(s) ||
        !lsi_step_grow(s, (void **)&s->calls, s->n_calls, &s->cap_calls, sizeof *s->calls))
        return;
    s->calls[s->n_calls++] = (lsi_call){.params = copy,
                                        .at = s->g->here,
                                        .loss = loss.id,
                                        .n = gr->n,
                                        .by_element = ls_optim_by_element(gr->rule->op),
                                        .vars = gr->vars,
                                        .weights = gr->weights,
                                        .grads = gr->grads,
                                        .first_node = first_node,
                                        .end_node = s->g->n_nodes};
}

void ls_minimise_at(ls_step *s, ls_at at, ls_value loss, const char *params, ls_optimiser o)
{
    group gr = {0};
    const char *scope;
    /* Calls without a name are told apart by what they train. */
    const char *name = o.name != NULL ? o.name : params;

    if (!lsi_step_open(s) || s->mode == LS_EVAL) return;
    lsi_step_at(s, at);
    if ((unsigned)o.rule >= sizeof rules / sizeof rules[0] || !(o.lr >= 0)) {
        lsi_step_fail(s, "ls_minimise: unknown rule %d or negative learning rate %g", (int)o.rule, o.lr);
        return;
    }
    if (!check_loss(s, loss) || !check_globs(s, params) || !alloc_group(s, &gr)) return;
    gr.rule = &rules[o.rule];
    collect(s, params, &gr);
    if (gr.n == 0 && s->spared) return; /* all of it is frozen */
    s->trains = true;
    gr.attr = attr_of(&o);
    gr.attr.n = gr.n;
    gr.n_states = ls_optim_states(gr.rule->op, &gr.attr);
    if (!ls_value_ok(s->loss_scale)) s->loss_scale = lsi_scalar_input(s, "loss_scale");
    scope = s->g->scope;
    s->g->scope = ls_arena_printf(s->g->arena, "optimizer.%s", name);
    if (s->g->scope == NULL) s->g->scope = "optimizer";
    if (gradients(s, loss, scope, &gr)) {
        const int32_t first_node = s->g->n_nodes;
        if (s->how.part == LS_PART_GRADIENTS)
            stand_in(s, &gr);
        else
            update(s, &o, name, &gr);
        record_call(s, loss, params, &gr, first_node);
    }
    s->g->scope = scope;
}

ls_value ls_gradient_at(ls_at at, ls_value y, ls_value x)
{
    ls_value dx;

    if (!ls_value_ok(y) || !ls_value_ok(x)) return (ls_value){y.g, -1};
    y = ls_value_at(y, at.file, at.line);
    ls_autodiff(y, (ls_value){y.g, -1}, 1, &x, &dx);
    if (!ls_value_ok(dx) && y.g->err.status == LS_OK)
        return ls_graph_fail(y.g, LS_INVALID, "ls_gradient: the first value does not depend on the second");
    return dx;
}

bool lsi_is_fetched(const ls_step *s, const char *name)
{
    for (int32_t i = 0; i < s->g->n_values; i++)
        if (s->g->values[i]->fetch && strcmp(s->g->values[i]->name, name) == 0) return true;
    return false;
}

void lsi_fetch(ls_step *s, ls_value v, const char *name)
{
    const ls_vinfo *info;

    if (!ls_value_ok(v)) return;
    info = s->g->values[v.id];
    /* A value has one name, and inputs and variables change under the reader: those are copied. */
    if (info->fetch || info->kind != LS_VALUE_NODE || info->var >= 0) v = ls_copy(v);
    ls_graph_fetch(v, name);
}

void ls_metric_at(ls_step *s, ls_at at, const char *name, ls_value v)
{
    if (!lsi_step_open(s) || s->how.part == LS_PART_UPDATE || s->how.images) return;
    lsi_step_at(s, at);
    if (lsi_is_fetched(s, name))
        lsi_step_fail(s, "metric \"%s\" is declared twice", name);
    else
        lsi_fetch(s, v, name);
}
