/* stages.c: steps that are cut in parts and train in stages.
 *
 * Where gradients of several batches are added up, an update waits for all of them.  A loss that needs
 * parameters after an update (the AAE judges with the critic it has just trained) can be computed only then:
 * the calls of ls_minimise fall into stages, each with a plan for gradients and one for the update.  A trial
 * is built whole for each of them; here everything that belongs to another stage is taken out again, and what
 * is left over dies as dead code.  A stage finds its parameters in the variables, as the stages before have
 * left them, so nothing in it may need an older version: that is refused by name. */
#include <string.h>

#include "nn/nn_internal.h"

typedef struct cut {
    ls_step *s;
    ls_graph *g;
    int32_t n_nodes, n_values; /* of the trial; what is added while cutting does not count */
    /* Per value: the call that makes this version of a parameter, and the one that replaces it; -1: none. */
    int *made_by, *ended_by;
    /* What a walk from some value backwards has met; versions of variables are where it ends. */
    bool *seen;
    int32_t *stack, n_stack;
    int32_t *versions, n_versions;
    bool *of_call;  /* the nodes by which calls of ls_minimise make new versions */
    bool *of_stage; /* n_stages rows: the nodes that the losses of each stage need */
    bool *needed;   /* the nodes that this stage needs */
} cut;

static const char *name_of(const cut *c, int32_t version)
{
    return c->g->vars[c->g->values[version]->var]->name;
}

/* -- what needs what --------------------------------------------------------------------------------------
 */

static void meet(cut *c, int32_t value)
{
    const ls_vinfo *v = c->g->values[value];

    if (v->var >= 0)
        c->versions[c->n_versions++] = value;
    else if (v->node >= 0 && !c->seen[v->node]) {
        c->seen[v->node] = true;
        c->stack[c->n_stack++] = v->node;
    }
}

/* Everything between `value` and versions of variables.  Of a version: what it is made of. */
static void walk(cut *c, int32_t value)
{
    const int32_t node = c->g->values[value]->node;

    memset(c->seen, 0, sizeof *c->seen * (size_t)c->n_nodes);
    c->n_stack = c->n_versions = 0;
    if (node >= 0) {
        c->seen[node] = true;
        c->stack[c->n_stack++] = node;
    }
    while (c->n_stack > 0) {
        const ls_node *n = c->g->nodes[c->stack[--c->n_stack]];
        for (int k = 0; k < n->n_in; k++) meet(c, n->in[k]);
    }
}

static void join(cut *c, bool *to)
{
    for (int32_t i = 0; i < c->n_nodes; i++) to[i] = to[i] || c->seen[i];
}

/* The version that output k of the node replaces, or -1. */
static int32_t version_before(const ls_node *n, int k)
{
    const int in = (n->op->flags & LS_OP_UPDATE) != 0 ? n->op->alias(n->n_in, n->attr, k) : -1;

    return in >= 0 ? n->in[in] : -1;
}

/* The first variable that the node moves on, or -1. */
static int32_t variable_of(const ls_graph *g, const ls_node *n)
{
    for (int k = 0; k < n->n_out; k++)
        if (version_before(n, k) >= 0) return g->values[n->out[k]]->var;
    return -1;
}

static void note_versions(cut *c)
{
    for (int i = 0; i < c->s->n_calls; i++)
        for (int32_t k = c->s->calls[i].first_node; k < c->s->calls[i].end_node; k++) {
            const ls_node *n = c->g->nodes[k];
            c->of_call[k] = true;
            for (int j = 0; j < n->n_out; j++) {
                const int32_t before = version_before(n, j);
                if (before < 0 || c->g->vars[c->g->values[before]->var]->role != LS_VAR_PARAM) continue;
                c->made_by[n->out[j]] = i;
                c->ended_by[before] = i;
            }
        }
}

/* -- which call is in which stage -------------------------------------------------------------------------
 */

static bool raise(cut *c, int call, int stage)
{
    if (c->s->calls[call].stage >= stage) return false;
    c->s->calls[call].stage = stage;
    return true;
}

static void refuse_call(cut *c, int call, int32_t version)
{
    const lsi_call *x = &c->s->calls[call];

    c->g->here = x->at;
    lsi_step_fail(c->s,
                  "gradients of several batches cannot be added up for this model: the loss for \"%s\" uses "
                  "\"%s\" as it was before an update that must come first; compute what depends on it again "
                  "after that update, or use parallel.accumulate=1 and reproducible=false",
                  x->params, name_of(c, version));
}

/* One round of the rules: a loss comes after the updates that it sees, and an update not before a loss that
 * must not see it. */
static bool push_stages(cut *c)
{
    bool changed = false;

    for (int i = 0; i < c->s->n_calls; i++) {
        const lsi_call *x = &c->s->calls[i];
        walk(c, x->loss);
        for (int k = 0; k < x->n; k++) c->versions[c->n_versions++] = x->weights[k].id;
        for (int32_t k = 0; k < c->n_versions; k++) {
            const int made = c->made_by[c->versions[k]];
            if (made >= 0 && raise(c, i, c->s->calls[made].stage + 1)) changed = true;
        }
        for (int32_t k = 0; k < c->n_versions; k++) {
            const int ended = c->ended_by[c->versions[k]];
            if (ended < 0 || !raise(c, ended, x->stage)) continue;
            changed = true;
            if (x->stage < c->s->n_calls) continue;
            refuse_call(c, i, c->versions[k]);
            return false;
        }
    }
    return changed;
}

/* There are at most as many stages as calls; where the rules contradict one another, stages grow beyond. */
static void order_calls(cut *c)
{
    while (lsi_step_open(c->s) && push_stages(c)) continue;
    c->s->n_stages = 1;
    for (int i = 0; i < c->s->n_calls; i++)
        if (c->s->calls[i].stage >= c->s->n_stages) c->s->n_stages = c->s->calls[i].stage + 1;
}

/* -- metrics and statistics -------------------------------------------------------------------------------
 */

/* Where the nodes of the last walk can be computed. */
static bool find_range(cut *c, const char *what, const char *name, int *lo, int *hi)
{
    const lsi_call *calls = c->s->calls;
    int32_t newest = -1, oldest = -1;

    *lo = 0;
    *hi = c->s->n_stages - 1;
    for (int32_t k = 0; k < c->n_versions; k++) {
        const int32_t v = c->versions[k];
        if (c->made_by[v] >= 0 && calls[c->made_by[v]].stage >= *lo) {
            *lo = calls[c->made_by[v]].stage + 1;
            newest = v;
        }
        if (c->ended_by[v] >= 0 && calls[c->ended_by[v]].stage < *hi) {
            *hi = calls[c->ended_by[v]].stage;
            oldest = v;
        }
    }
    if (*lo <= *hi) return true;
    if (oldest < 0)
        lsi_step_fail(c->s,
                      "gradients of several batches are added up: %s \"%s\" cannot use \"%s\" as it is after "
                      "the last update of a step; compute it before, or use parallel.accumulate=1 and "
                      "reproducible=false",
                      what, name, name_of(c, newest));
    else
        lsi_step_fail(c->s,
                      "gradients of several batches are added up: %s \"%s\" cannot use both \"%s\" after its "
                      "update and \"%s\" before; make two of it, or use parallel.accumulate=1 and "
                      "reproducible=false",
                      what, name, name_of(c, newest), name_of(c, oldest));
    return false;
}

/* The stage between lo and hi that computes most of it anyway. */
static int cheapest(const cut *c, int lo, int hi)
{
    int best = lo;
    int32_t least = INT32_MAX;

    for (int stage = lo; stage <= hi; stage++) {
        const bool *has = c->of_stage + (size_t)stage * (size_t)c->n_nodes;
        int32_t more = 0;
        for (int32_t i = 0; i < c->n_nodes; i++) more += c->seen[i] && !has[i];
        if (more >= least) continue;
        least = more;
        best = stage;
    }
    return best;
}

/* The host reads a metric in one stage. */
static void keep_metrics(cut *c)
{
    for (int32_t i = 0; i < c->n_values && lsi_step_open(c->s); i++) {
        ls_vinfo *v = c->g->values[i];
        int lo, hi;
        if (!v->fetch) continue;
        c->g->here = c->g->nodes[v->node]->src;
        walk(c, i);
        if (!find_range(c, "metric", v->name, &lo, &hi)) return;
        v->fetch = cheapest(c, lo, hi) == c->s->how.stage;
        if (v->fetch) join(c, c->needed);
    }
}

static void undo(ls_graph *g, const ls_node *n)
{
    for (int k = 0; k < n->n_out; k++)
        if (version_before(n, k) >= 0) ls_graph_replace(g, n->out[k], version_before(n, k));
}

static void note_changed(cut *c, const ls_node *n)
{
    for (int k = 0; k < n->n_out; k++)
        if (version_before(n, k) >= 0) lsi_note_changed(c->s, c->g->vars[c->g->values[n->out[k]]->var]->name);
}

/* A buffer (or what a layer adds up for the update) is moved on once for every node that the trial has for
 * it, in their order: `at` holds, per variable, the stage of the last one.  Returns the node's stage. */
static int place_buffer(cut *c, const ls_node *n, int32_t var, int *at)
{
    int lo, hi, stage;

    c->g->here = n->src;
    walk(c, n->out[0]);
    if (!find_range(c, "buffer", c->g->vars[var]->name, &lo, &hi)) return -1;
    if (at[var] > hi) {
        lsi_step_fail(c->s,
                      "gradients of several batches are added up: \"%s\" would change in another order; use "
                      "parallel.accumulate=1 and reproducible=false",
                      c->g->vars[var]->name);
        return -1;
    }
    stage = cheapest(c, at[var] > lo ? at[var] : lo, hi);
    at[var] = stage;
    if (stage != c->s->how.stage) return stage;
    join(c, c->needed);
    note_changed(c, n);
    return stage;
}

/* What moves a buffer on in another stage does not do so here.  Batch norms do not depend on their running
 * statistics, so they can still be computed; what depends on its buffer cannot. */
static void rest_buffer(cut *c, ls_node *n, int32_t var)
{
    if (!c->needed[n->id])
        undo(c->g, n);
    else if (n->op == &ls_op_batch_norm)
        ((ls_norm_attr *)n->attr)->momentum = 0;
    else
        lsi_step_fail(c->s,
                      "gradients of several batches are added up: what is made with \"%s\" is needed before "
                      "and after an update; use parallel.accumulate=1 and reproducible=false",
                      c->g->vars[var]->name);
}

static void keep_buffers(cut *c)
{
    const ls_graph *g = c->g;
    int *at = ls_arena_alloc(g->arena, sizeof *at * ((size_t)g->n_vars + 1));
    int *own = ls_arena_alloc(g->arena, sizeof *own * ((size_t)c->n_nodes + 1));

    if (at == NULL || own == NULL) ls_graph_fail(c->g, LS_NOMEM, "step: no memory");
    for (int32_t i = 0; i < c->n_nodes && lsi_step_open(c->s); i++) {
        const int32_t var = c->of_call[i] ? -1 : variable_of(g, g->nodes[i]);
        own[i] = var >= 0 ? place_buffer(c, g->nodes[i], var, at) : -1;
    }
    for (int32_t i = 0; i < c->n_nodes && lsi_step_open(c->s); i++)
        if (own[i] >= 0 && own[i] != c->s->how.stage)
            rest_buffer(c, g->nodes[i], variable_of(g, g->nodes[i]));
}

/* -- cutting ----------------------------------------------------------------------------------------------
 */

static bool open_cut(cut *c)
{
    const size_t nodes = (size_t)c->n_nodes + 1, values = (size_t)c->n_values + 1;
    /* A value may be met by every input that it is. */
    size_t reads = values;
    ls_arena *a = c->g->arena;

    for (int32_t i = 0; i < c->n_nodes; i++) reads += (size_t)c->g->nodes[i]->n_in;
    c->made_by = ls_arena_alloc(a, sizeof *c->made_by * values);
    c->ended_by = ls_arena_alloc(a, sizeof *c->ended_by * values);
    c->seen = ls_arena_alloc(a, sizeof *c->seen * nodes);
    c->stack = ls_arena_alloc(a, sizeof *c->stack * nodes);
    c->versions = ls_arena_alloc(a, sizeof *c->versions * reads);
    c->of_call = ls_arena_alloc(a, sizeof *c->of_call * nodes);
    c->needed = ls_arena_alloc(a, sizeof *c->needed * nodes);
    c->of_stage = ls_arena_alloc(a, sizeof *c->of_stage * nodes * ((size_t)c->s->n_calls + 1));
    if (c->made_by == NULL || c->ended_by == NULL || c->seen == NULL || c->stack == NULL ||
        c->versions == NULL || c->of_call == NULL || c->needed == NULL || c->of_stage == NULL) {
        ls_graph_fail(c->g, LS_NOMEM, "step: no memory");
        return false;
    }
    for (int32_t i = 0; i < c->n_values; i++) c->made_by[i] = c->ended_by[i] = -1;
    return true;
}

/* The gradients of this stage's calls, and what else is made on the way. */
static void keep_gradients(cut *c)
{
    ls_step *s = c->s;

    for (int i = 0; i < s->n_calls; i++) {
        const lsi_call *x = &s->calls[i];
        walk(c, x->loss);
        join(c, c->of_stage + (size_t)x->stage * (size_t)c->n_nodes);
        if (x->stage != s->how.stage) continue;
        join(c, c->needed);
        lsi_accumulate(s, x->n, x->vars, x->grads);
    }
    keep_metrics(c);
    keep_buffers(c);
}

/* Updates of other stages; in a plan for gradients, all.  What else changes with an update, does with the
 * step's last: until then all samples see it as it was. */
static void drop_updates(cut *c)
{
    ls_step *s = c->s;
    const bool update = s->how.part == LS_PART_UPDATE;

    for (int i = 0; i < s->n_calls; i++)
        for (int32_t k = s->calls[i].first_node; k < s->calls[i].end_node; k++)
            if (!update || s->calls[i].stage != s->how.stage) undo(c->g, c->g->nodes[k]);
    for (int32_t i = 0; update && s->how.stage + 1 < s->n_stages && i < c->n_nodes; i++)
        if (!c->of_call[i]) undo(c->g, c->g->nodes[i]);
}

void lsi_cut_stage(ls_step *s)
{
    cut c = {.s = s, .g = s->g, .n_nodes = s->g->n_nodes, .n_values = s->g->n_values};

    if (!open_cut(&c)) return;
    note_versions(&c);
    order_calls(&c);
    if (!lsi_step_open(s)) return;
    if (s->how.part == LS_PART_GRADIENTS) keep_gradients(&c);
    if (lsi_step_open(s)) drop_updates(&c);
}
