/* split.c: one part and one stage of a step.
 *
 * Needs: the record.  Leaves: n_stages; for LS_PART_GRADIENTS what adds the gradients of one stage to sums,
 * for LS_PART_UPDATE its updates by those sums; which variables a plan for gradients moves on.  Where shards
 * are added up instead of batches, sums are no variables: updates stay for leaves.c and parallel.c.  A whole
 * step stays as it is.
 *
 * Where gradients of several batches are added up, an update waits for all of them.  A loss that needs
 * parameters after an update (the AAE judges with the critic it has just trained) can be computed only then:
 * the calls of ls_minimise fall into stages, each with a plan for gradients and one for the update.  What
 * belongs to another stage is taken out of the record, and what is left over dies as dead code.  A stage
 * finds its parameters in the variables, as the stages before have left them, so nothing in it may need an
 * older version: that is refused by name. */
#include <stdio.h>
#include <string.h>

#include "passes/lower_internal.h"

enum { LS_SPLIT_NAME = 128 };

/* A call of ls_minimise. */
typedef struct training {
    const ls_node *update;
    int32_t loss;
    int stage;
} training;

typedef struct cut {
    ls_graph *g;
    const ls_strategy *how;
    training *calls;
    int n_calls;
    int32_t n_nodes, n_values;
    /* Per value: the call that makes this version of a parameter, and the one that replaces it; -1: none. */
    int *made_by, *ended_by;
    /* What a walk from some value backwards has met; versions of variables are where it ends. */
    bool *seen;
    int32_t *stack, n_stack;
    int32_t *versions, n_versions;
    bool *dropped;  /* the nodes whose variables stay as they are */
    bool *of_stage; /* n_stages rows: the nodes that the losses of each stage need */
    bool *needed;   /* the nodes that this stage needs */
    int n_metrics;
    char (*metrics)[LS_SPLIT_NAME]; /* of an update by sums of shards: those of this stage */
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
    for (int i = 0; i < c->n_calls; i++)
        for (int k = 0; k < c->calls[i].update->n_out; k++) {
            c->made_by[c->calls[i].update->out[k]] = i;
            c->ended_by[ls_update_weight(c->calls[i].update, k)] = i;
        }
}

/* -- which call is in which stage -------------------------------------------------------------------------
 */

static bool raise(cut *c, int call, int stage)
{
    if (c->calls[call].stage >= stage) return false;
    c->calls[call].stage = stage;
    return true;
}

static void refuse_call(cut *c, int call, int32_t version)
{
    const training *x = &c->calls[call];

    c->g->here = x->update->src;
    ls_graph_fail(c->g, LS_INVALID,
                  "gradients of several batches cannot be added up for this model: the loss for \"%s\" uses "
                  "\"%s\" as it was before an update that must come first; compute what depends on it again "
                  "after that update, or use parallel.accumulate=1 and reproducible=false",
                  ((const ls_update_attr *)x->update->attr)->params, name_of(c, version));
}

/* One round of the rules: a loss comes after the updates that it sees, and an update not before a loss that
 * must not see it. */
static bool push_stages(cut *c)
{
    bool changed = false;

    for (int i = 0; i < c->n_calls; i++) {
        const training *x = &c->calls[i];
        walk(c, x->loss);
        for (int k = 0; k < x->update->n_out; k++)
            c->versions[c->n_versions++] = ls_update_weight(x->update, k);
        for (int32_t k = 0; k < c->n_versions; k++) {
            const int made = c->made_by[c->versions[k]];
            if (made >= 0 && raise(c, i, c->calls[made].stage + 1)) changed = true;
        }
        for (int32_t k = 0; k < c->n_versions; k++) {
            const int ended = c->ended_by[c->versions[k]];
            if (ended < 0 || !raise(c, ended, x->stage)) continue;
            changed = true;
            if (x->stage < c->n_calls) continue;
            refuse_call(c, i, c->versions[k]);
            return false;
        }
    }
    return changed;
}

/* There are at most as many stages as calls; where the rules contradict one another, stages grow beyond. */
static void order_calls(cut *c)
{
    while (lsi_sound(c->g) && push_stages(c)) continue;
    c->g->n_stages = 1;
    for (int i = 0; i < c->n_calls; i++)
        if (c->calls[i].stage >= c->g->n_stages) c->g->n_stages = c->calls[i].stage + 1;
}

/* -- metrics and statistics -------------------------------------------------------------------------------
 */

/* Where the nodes of the last walk can be computed. */
static bool find_range(cut *c, const char *what, const char *name, int *lo, int *hi)
{
    const training *calls = c->calls;
    int32_t newest = -1, oldest = -1;

    *lo = 0;
    *hi = c->g->n_stages - 1;
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
        ls_graph_fail(c->g, LS_INVALID,
                      "gradients of several batches are added up: %s \"%s\" cannot use \"%s\" as it is after "
                      "the last update of a step; compute it before, or use parallel.accumulate=1 and "
                      "reproducible=false",
                      what, name, name_of(c, newest));
    else
        ls_graph_fail(c->g, LS_INVALID,
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
    for (int32_t i = 0; i < c->n_values && lsi_sound(c->g); i++) {
        ls_vinfo *v = c->g->values[i];
        int lo, hi;
        if (!v->fetch) continue;
        c->g->here = c->g->nodes[v->node]->src;
        walk(c, i);
        if (!find_range(c, "metric", v->name, &lo, &hi)) return;
        v->fetch = cheapest(c, lo, hi) == c->how->stage;
        if (v->fetch) join(c, c->needed);
    }
}

/* What is kept of samples moves on in its sum, all else itself. */
static void note_moved(const cut *c, const ls_node *n)
{
    for (int k = 0; k < n->n_out; k++)
        if (version_before(n, k) >= 0 && n->op != &ls_op_keep)
            c->g->vars[c->g->values[n->out[k]]->var]->moved = true;
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
        ls_graph_fail(c->g, LS_INVALID,
                      "gradients of several batches are added up: \"%s\" would change in another order; use "
                      "parallel.accumulate=1 and reproducible=false",
                      c->g->vars[var]->name);
        return -1;
    }
    stage = cheapest(c, at[var] > lo ? at[var] : lo, hi);
    at[var] = stage;
    if (stage != c->how->stage) return stage;
    join(c, c->needed);
    note_moved(c, n);
    return stage;
}

/* What moves a buffer on in another stage does not do so here.  Batch norms do not depend on their running
 * statistics, so they can still be computed; what depends on its buffer cannot. */
static void rest_buffer(cut *c, ls_node *n, int32_t var)
{
    if (!c->needed[n->id])
        c->dropped[n->id] = true;
    else if (n->op == &ls_op_batch_norm)
        ((ls_norm_attr *)n->attr)->momentum = 0;
    else
        ls_graph_fail(c->g, LS_INVALID,
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
    for (int32_t i = 0; i < c->n_nodes && lsi_sound(c->g); i++) {
        const int32_t var = g->nodes[i]->op == &ls_op_update ? -1 : variable_of(g, g->nodes[i]);
        own[i] = var >= 0 ? place_buffer(c, g->nodes[i], var, at) : -1;
    }
    for (int32_t i = 0; i < c->n_nodes && lsi_sound(c->g); i++)
        if (own[i] >= 0 && own[i] != c->how->stage) rest_buffer(c, g->nodes[i], variable_of(g, g->nodes[i]));
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
    c->calls = ls_arena_alloc(a, sizeof *c->calls * nodes);
    c->made_by = ls_arena_alloc(a, sizeof *c->made_by * values);
    c->ended_by = ls_arena_alloc(a, sizeof *c->ended_by * values);
    c->seen = ls_arena_alloc(a, sizeof *c->seen * nodes);
    c->stack = ls_arena_alloc(a, sizeof *c->stack * nodes);
    c->versions = ls_arena_alloc(a, sizeof *c->versions * reads);
    c->dropped = ls_arena_alloc(a, sizeof *c->dropped * nodes);
    c->needed = ls_arena_alloc(a, sizeof *c->needed * nodes);
    if (c->calls == NULL || c->made_by == NULL || c->ended_by == NULL || c->seen == NULL ||
        c->stack == NULL || c->versions == NULL || c->dropped == NULL || c->needed == NULL)
        return false;
    for (int32_t i = 0; i < c->n_values; i++) c->made_by[i] = c->ended_by[i] = -1;
    for (int32_t i = 0; i < c->n_nodes; i++)
        if (c->g->nodes[i]->op == &ls_op_update)
            c->calls[c->n_calls++] = (training){.update = c->g->nodes[i],
                                                .loss = ls_update_gradients(c->g, c->g->nodes[i])->in[0]};
    c->of_stage = ls_arena_alloc(a, sizeof *c->of_stage * nodes * ((size_t)c->n_calls + 1));
    return c->of_stage != NULL;
}

/* What the gradients of this stage's calls need, and what else is made on the way. */
static void keep_gradients(cut *c)
{
    for (int i = 0; i < c->n_calls; i++) {
        walk(c, c->calls[i].loss);
        join(c, c->of_stage + (size_t)c->calls[i].stage * (size_t)c->n_nodes);
        if (c->calls[i].stage == c->how->stage) join(c, c->needed);
    }
    keep_metrics(c);
    keep_buffers(c);
}

/* What shards give of metrics, the update makes known. */
static void note_metric(cut *c, const ls_vinfo *v)
{
    if (c->how->shards > 0 && v->fetch && v->dtype == LS_F32 && v->shape.rank == 0)
        snprintf(c->metrics[c->n_metrics++], LS_SPLIT_NAME, "%s", v->name);
}

/* An update needs no samples: their statistics and metrics are in the other part.  What else changes with an
 * update, does with the step's last: until then all samples see it as it was. */
static void keep_update(cut *c)
{
    const bool last = c->how->stage + 1 == c->g->n_stages;

    if (c->how->shards > 0) keep_gradients(c); /* which metrics and buffers are this stage's */
    memset(c->dropped, 0, sizeof *c->dropped * (size_t)c->n_nodes);
    for (int32_t i = 0; i < c->n_values; i++) {
        note_metric(c, c->g->values[i]);
        c->g->values[i]->fetch = false;
    }
    for (int32_t i = 0; i < c->n_nodes; i++) {
        const ls_node *n = c->g->nodes[i];
        const int32_t var = n->op == &ls_op_update ? -1 : variable_of(c->g, n);
        if (var >= 0 && (!last || c->g->vars[var]->role == LS_VAR_BUFFER)) c->dropped[i] = true;
    }
}

/* Updates of other stages. */
static void drop_updates(cut *c)
{
    for (int i = 0; i < c->n_calls; i++)
        if (c->calls[i].stage != c->how->stage) c->dropped[c->calls[i].update->id] = true;
}

/* -- the part's own nodes ---------------------------------------------------------------------------------
 */

static ls_value sum_of(ls_graph *g, ls_value weight)
{
    return lsi_sum_variable(g, g->vars[g->values[weight.id]->var]->name, ls_value_shape(weight));
}

/* The variables of node n stay as they are; what else it makes can still be had. */
static bool drop(ls_graph *to, const ls_node *n, const ls_value *in, ls_value *out)
{
    ls_value all = {to, -1};

    for (int k = 0; k < n->n_out; k++) {
        if (version_before(n, k) >= 0) {
            out[k] = in[n->op->alias(n->n_in, n->attr, k)];
            continue;
        }
        if (!ls_value_ok(all)) all = ls_graph_add(to, n->op, n->n_in, in, n->attr);
        out[k] = ls_graph_out(all, k);
    }
    return true;
}

static bool add_up(const cut *c, ls_graph *to, const ls_node *n, const ls_value *in, ls_value *out)
{
    const ls_value *weights = in + LS_UPDATE_W;

    if (n->op == &ls_op_keep)
        lsi_keep_add_up(to, c->how, in);
    else
        for (int k = 0; k < n->n_out && lsi_sound(to); k++)
            lsi_add_to_sum(to, sum_of(to, weights[k]), weights[n->n_out + k],
                           ls_graph_scalar(to, "gradient.weight"));
    return drop(to, n, in, out);
}

static bool by_sums(const cut *c, ls_graph *to, const ls_node *n, const ls_value *in, ls_value *out)
{
    ls_value *sums = ls_arena_alloc(to->arena, sizeof *sums * (size_t)(n->n_in + 1)), first;

    if (sums == NULL) {
        lsi_no_memory(to);
        return true;
    }
    memcpy(sums, in, sizeof *sums * (size_t)n->n_in);
    if (n->op == &ls_op_keep) {
        lsi_keep_added_up(to, c->how, sums);
        first = ls_keep(sums, (ls_keep_attr){true, ((const ls_keep_attr *)n->attr)->number});
    } else {
        /* A sum of shards has the shape of the weight; parallel.c finds it by its number. */
        for (int k = 0; k < n->n_out && lsi_sound(to); k++)
            sums[LS_UPDATE_W + n->n_out + k] =
                c->how->shards > 0 ? in[LS_UPDATE_W + k] : sum_of(to, in[LS_UPDATE_W + k]);
        first = ls_update(sums, n->attr);
    }
    for (int k = 0; k < n->n_out; k++) out[k] = ls_graph_out(first, k);
    return true;
}

static bool expand(void *ctx, ls_graph *to, const ls_node *n, const ls_value *in, ls_value *out)
{
    const cut *c = ctx;

    if (c->dropped[n->id]) return drop(to, n, in, out);
    if (n->op != &ls_op_update && n->op != &ls_op_keep) return false;
    if (c->how->part == LS_PART_GRADIENTS && c->how->shards > 0) return false; /* for leaves.c */
    return c->how->part == LS_PART_UPDATE ? by_sums(c, to, n, in, out) : add_up(c, to, n, in, out);
}

/* An update is not given data. */
static void drop_inputs(ls_graph *g)
{
    int32_t *uses = ls_arena_alloc(g->arena, sizeof *uses * ((size_t)g->n_values + 1));

    if (uses == NULL) {
        lsi_no_memory(g);
        return;
    }
    ls_graph_count_uses(g, uses);
    for (int32_t i = 0; i < g->n_values; i++)
        if (g->values[i]->kind == LS_VALUE_INPUT && uses[i] == 0) g->values[i]->kind = LS_VALUE_GONE;
}

/* Both parts find the sums of shards by the same numbers; the first are for what comes with each stage. */
static void number_buckets(const ls_graph *g)
{
    int next = g->n_stages;

    for (int32_t i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i]->op == &ls_op_update) ((ls_update_attr *)g->nodes[i]->attr)->number = next++;
        if (g->nodes[i]->op == &ls_op_keep) ((ls_keep_attr *)g->nodes[i]->attr)->number = next++;
    }
}

/* In the place of each a number, whose sum over shards the host is to see. */
static void add_metrics(const cut *c)
{
    for (int i = 0; i < c->n_metrics && lsi_sound(c->g); i++)
        ls_graph_fetch(ls_fill(c->g, LS_SHAPE_SCALAR, LS_F32, 0), c->metrics[i]);
}

static void cut_step(cut *c)
{
    ls_graph *g = c->g;
    const ls_strategy *how = c->how;

    if (!open_cut(c) || c->metrics == NULL) lsi_no_memory(g);
    if (lsi_sound(g)) note_versions(c);
    if (lsi_sound(g)) order_calls(c);
    if (lsi_sound(g) && how->stage >= g->n_stages)
        ls_graph_fail(g, LS_INVALID, "stage %d of a step that has %d", how->stage, g->n_stages);
    if (!lsi_sound(g)) return;
    number_buckets(g);
    if (how->part == LS_PART_GRADIENTS)
        keep_gradients(c);
    else
        keep_update(c);
    if (lsi_sound(g)) drop_updates(c);
    ls_graph_rewrite(g, expand, c);
    if (lsi_sound(g)) add_metrics(c);
    if (lsi_sound(g)) ls_pass_dead(g);
    if (lsi_sound(g) && how->part == LS_PART_UPDATE) drop_inputs(g);
}

void ls_pass_split(ls_graph *g, const ls_strategy *how)
{
    cut c = {.g = g, .how = how, .n_nodes = g->n_nodes, .n_values = g->n_values};

    g->n_stages = 1;
    if (!lsi_sound(g) || how->part == LS_PART_ALL) return;
    /* Names outlive the graph's arena, which rewriting makes anew. */
    c.metrics = ls_alloc(LS_MEM_GRAPH, sizeof *c.metrics * ((size_t)g->n_values + 1));
    cut_step(&c);
    ls_free(c.metrics);
}
