/* minimise.c: which loss trains which parameters: recorded as the gradients of the loss and an update by
 * them.
 *
 * What is recorded is checked here, so that an error names the line of the call; passes make nodes of it. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "nn/nn_internal.h"
#include "ops/macros.h"
#include "passes/autodiff.h"

static const ls_op *const rules[] = {[LS_SGD] = &ls_op_sgd,
                                     [LS_ADAM] = &ls_op_adam,
                                     [LS_RMSPROP] = &ls_op_rmsprop,
                                     [LS_LARS] = &ls_op_lars,
                                     [LS_LAMB] = &ls_op_lamb};

#define SCOPE "optimizer." /* of updates, before the optimiser's name */

/* The parameters of a call. */
typedef struct group {
    int n;
    int32_t *vars;
    ls_value *weights; /* their current versions */
    ls_value *in;      /* room for the inputs of a node */
} group;

/* 0 is what a trial has not written. */
static double or_default(double x, double otherwise)
{
    return x != 0 ? x : otherwise;
}

/* Defaults are PyTorch's where it has the rule; trust of LARS is You, Gitman and Ginsburg's (2017) eta, and
 * LAMB's epsilon that of You et al. (2020). */
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
    gr->in = ls_arena_alloc(s->g->arena, (LS_UPDATE_W + 2 * n) * sizeof *gr->in);
    if (gr->vars != NULL && gr->weights != NULL && gr->in != NULL) return true;
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

/* In the order in which the trial made them, whatever the order of the globs: buckets and bits follow it. */
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

static bool is_named(const ls_node *update, const char *name)
{
    return strcmp(update->scope + sizeof SCOPE - 1, name) == 0;
}

/* Whether an update of another name, by the same rule, remembers something of the variable. */
static bool remembered(const ls_graph *g, const ls_update_attr *a, const char *name, int32_t var)
{
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        const ls_update_attr *other = n->attr;
        if (n->op != &ls_op_update || other->rule != a->rule || is_named(n, name) ||
            ls_optim_states(other->rule, &other->how) == 0)
            continue;
        for (int k = 0; k < n->n_out; k++)
            if (g->values[n->out[k]]->var == var) return true;
    }
    return false;
}

/* What is remembered of a parameter belongs to one optimiser. */
static bool check_states(ls_step *s, const group *gr, const ls_update_attr *a, const char *name)
{
    const ls_graph *g = s->g;

    if (ls_optim_states(a->rule, &a->how) == 0) return true;
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->op == &ls_op_update && is_named(g->nodes[i], name)) return true; /* it goes on */
    for (int i = 0; i < gr->n; i++) {
        if (!remembered(g, a, name, gr->vars[i])) continue;
        lsi_step_fail(s, "ls_minimise: \"%s\" is already trained by another optimiser than \"%s\"",
                      g->vars[gr->vars[i]]->name, name);
        return false;
    }
    return true;
}

/* Rates are inputs, so that a schedule changes them without a new plan; optimisers without a name share
 * one. */
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

static bool check_loss(ls_step *s, ls_value loss)
{
    char buf[LS_SHAPE_TEXT];

    if (!ls_value_ok(loss)) return false;
    if (ls_value_shape(loss).rank == 0 && ls_value_dtype(loss) == LS_F32) return true;
    lsi_step_fail(s, "ls_minimise: the loss must be an f32 scalar, got %s %s",
                  ls_dtype_name(ls_value_dtype(loss)), ls_shape_text(ls_value_shape(loss), buf));
    return false;
}

/* The gradients belong to the trial's own scope, the update to the optimiser's. */
static void record(ls_step *s, ls_value loss, const ls_optimiser *o, const char *name, const group *gr,
                   const ls_update_attr *a)
{
    ls_graph *g = s->g;
    const char *scope = g->scope, *lr;
    ls_value grads, next;

    if (!record_lr(s, o, &lr)) return;
    grads = ls_gradients(loss, s->loss_scale, gr->n, gr->weights, gr->in);
    gr->in[LS_UPDATE_LR] = ls_graph_scalar(g, lr);
    gr->in[LS_UPDATE_SCALE] = s->loss_scale;
    for (int i = 0; i < gr->n && ls_value_ok(grads); i++) {
        gr->in[LS_UPDATE_W + i] = gr->weights[i];
        gr->in[LS_UPDATE_W + gr->n + i] = ls_graph_out(grads, i);
    }
    g->scope = ls_arena_printf(g->arena, SCOPE "%s", name);
    if (g->scope == NULL) {
        g->scope = scope;
        ls_graph_fail(g, LS_NOMEM, "ls_minimise: no memory");
        return;
    }
    next = ls_value_ok(grads) ? ls_update(gr->in, a) : grads;
    for (int i = 0; i < gr->n && ls_value_ok(next); i++)
        ls_graph_advance(g, gr->vars[i], ls_graph_out(next, i));
    g->scope = scope;
}

/* Parameters of all calls so far. */
static int count_trained(const ls_graph *g)
{
    int n = 0;

    for (int32_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->op == &ls_op_update) n += g->nodes[i]->n_out;
    return n;
}

void ls_minimise_at(ls_step *s, ls_at at, ls_value loss, const char *params, ls_optimiser o)
{
    group gr = {0};
    ls_update_attr attr = {.how = attr_of(&o)};
    /* Calls without a name are told apart by what they train. */
    const char *name = o.name != NULL ? o.name : params;
    int unreached;

    if (!lsi_step_open(s) || s->mode == LS_EVAL) return;
    lsi_step_at(s, at);
    /* Written so that a rate which is not a number is refused, too. */
    if ((unsigned)o.rule >= sizeof rules / sizeof rules[0] || !(o.lr >= 0)) {
        lsi_step_fail(s, "ls_minimise: unknown rule %d or negative learning rate %g", (int)o.rule, o.lr);
        return;
    }
    if (!check_loss(s, loss) || !check_globs(s, params) || !alloc_group(s, &gr)) return;
    collect(s, params, &gr);
    if (gr.n == 0 && s->spared) return; /* all of it is frozen */
    s->trains = true;
    attr.rule = rules[o.rule];
    attr.how.n = gr.n;
    attr.first = count_trained(s->g);
    snprintf(attr.params, sizeof attr.params, "%s", params);
    unreached = ls_autodiff_unreached(loss, gr.n, gr.weights);
    if (unreached < gr.n) fail_unreached(s, loss, gr.vars[unreached]);
    if (!lsi_step_open(s) || !check_states(s, &gr, &attr, name)) return;
    /* One for all losses of the step: gradients are made of loss_scale * loss, and optimisers divide by it.
     */
    if (!ls_value_ok(s->loss_scale)) s->loss_scale = ls_graph_scalar(s->g, "loss_scale");
    record(s, loss, &o, name, &gr, &attr);
}

ls_value ls_gradient_at(ls_at at, ls_value y, ls_value x)
{
    ls_value in[2];

    if (!ls_value_ok(y) || !ls_value_ok(x)) return (ls_value){y.g, -1};
    y = ls_value_at(y, at.file, at.line);
    if (ls_autodiff_unreached(y, 1, &x) < 1)
        return ls_graph_fail(y.g, LS_INVALID, "ls_gradient: the first value does not depend on the second");
    /* Without a loss scale: such a gradient is a part of a loss (a penalty), not what an optimiser takes. */
    return ls_gradients(y, (ls_value){y.g, -1}, 1, &x, in);
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
    /* A value has one name, inputs and variables change under the reader, and a gradient may turn out to be
     * one of those: they are copied. */
    if (info->fetch || info->kind != LS_VALUE_NODE || info->var >= 0 ||
        s->g->nodes[info->node]->op == &ls_op_gradients)
        v = ls_copy(v);
    ls_graph_fetch(v, name);
}

void ls_metric_at(ls_step *s, ls_at at, const char *name, ls_value v)
{
    if (!lsi_step_open(s) || s->how.images) return; /* steps that draw pictures compute nothing else */
    lsi_step_at(s, at);
    if (lsi_is_fetched(s, name))
        lsi_step_fail(s, "metric \"%s\" is declared twice", name);
    else
        lsi_fetch(s, v, name);
}
