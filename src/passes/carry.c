/* carry.c: sums of gradients that are on their way when a run ends, and the update by them, left to the next.
 *
 * Needs: optimisers, one for every bucket of sums.  Leaves: waits for those buckets and the optimisers before
 * all that reads the weights, marked as carried (ls_node.carried); the starts where they were.  Or everything
 * as it is, where the program itself reads a weight after its update.
 *
 * A step that ends with its updates cannot be shorter than its forward pass and its wire: nothing travels
 * before the first gradient is made, and no forward pass begins before the last sum has come.  But weights
 * are read in the order of the layers, and their gradients are made in the opposite one: what comes last is
 * needed first.  So a run ends when its gradients are made and their sums are on their way, and the next one
 * begins with the update of the first layers, as soon as that can be made; later layers' sums travel while
 * earlier ones compute.  What each update is made of, and in which order it is added up, stays the same: so
 * do the bits (decision 37).
 *
 * A plan thus has nodes of two updates.  The executor leaves out those that are carried where no sums are on
 * their way, and runs them alone where an update must be complete (ls_plan_complete). */
#include <string.h>

#include "passes/lower_internal.h"

enum { LR, SCALE, T, WEIGHTS }; /* the first inputs of an optimiser */

typedef struct carrying {
    const ls_graph *from;
    int32_t *updates; /* optimisers */
    int n;
    int32_t *value; /* per value of `from` that a carried node makes: its number in the new graph; else -1 */
    ls_value *in;   /* room for the inputs of a node */
    bool emitted;
} carrying;

static bool is_carried(const ls_node *n, ls_coll_op what)
{
    return (n->op->flags & LS_OP_COLLECTIVE) && n->op->coll_op == what &&
           ((const ls_collective_attr *)n->attr)->carried;
}

static const ls_node *maker_of(const ls_graph *g, int32_t value)
{
    const int32_t node = g->values[value]->node;

    return node >= 0 ? g->nodes[node] : NULL;
}

/* -- whether it can be -------------------------------------------------------------------------------------
 */

/* Whether the value follows from inputs and constants alone. */
static bool is_given(const ls_graph *g, int32_t value)
{
    const ls_node *n = maker_of(g, value);

    if (n == NULL) return g->values[value]->kind == LS_VALUE_INPUT;
    for (int k = 0; k < n->n_in; k++)
        if (!is_given(g, n->in[k])) return false;
    return !(n->op->flags & (LS_OP_COLLECTIVE | LS_OP_EFFECT));
}

static bool is_first_version(const ls_graph *g, int32_t value)
{
    const ls_vinfo *v = g->values[value];

    return v->kind == LS_VALUE_VAR && !v->fetch;
}

/* Sums come from buckets that are carried; all else is there when a run begins. */
static bool can_carry_update(const ls_graph *g, const ls_node *n)
{
    const int all = ((const ls_optim_attr *)n->attr)->n;
    const ls_node *counter = maker_of(g, n->in[T]);

    if (!is_given(g, n->in[LR]) || !is_given(g, n->in[SCALE])) return false;
    if (counter != NULL ? !ls_optim_is(counter->op) : !is_first_version(g, n->in[T])) return false;
    for (int k = WEIGHTS; k < n->n_in; k++) {
        const ls_node *sum = maker_of(g, n->in[k]);
        const bool grad = k >= WEIGHTS + all && k < WEIGHTS + 2 * all;
        if (grad ? sum == NULL || !is_carried(sum, LS_COLL_OP_WAIT) : !is_first_version(g, n->in[k]))
            return false;
    }
    for (int k = 0; k < n->n_out; k++)
        if (g->values[n->out[k]]->fetch) return false;
    return true;
}

/* What others read must not be what a carried node makes: neither sums nor weights after the update. */
static bool reads_carried(const ls_graph *g, const ls_node *n)
{
    for (int k = 0; k < n->n_in; k++) {
        const ls_node *maker = maker_of(g, n->in[k]);
        if (maker != NULL && (ls_optim_is(maker->op) || is_carried(maker, LS_COLL_OP_WAIT))) return true;
    }
    return false;
}

static bool can_carry(const ls_graph *g)
{
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        if (n->dead) continue;
        if (ls_optim_is(n->op) ? !can_carry_update(g, n) : reads_carried(g, n)) return false;
        if (is_carried(n, LS_COLL_OP_WAIT) && n->op != &ls_op_all_reduce_wait) return false;
    }
    return true;
}

static void leave_as_it_is(ls_graph *g)
{
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (is_carried(g->nodes[i], LS_COLL_OP_START) || is_carried(g->nodes[i], LS_COLL_OP_WAIT))
            ((ls_collective_attr *)g->nodes[i]->attr)->carried = false;
}

/* -- the new beginning -------------------------------------------------------------------------------------
 */

/* What stands for an old value before the first node: a variable, an input, or what is made of inputs. */
static ls_value given(carrying *c, ls_graph *to, int32_t value)
{
    const ls_node *n = maker_of(c->from, value);
    ls_value in[8], first;

    if (c->value[value] >= 0) return (ls_value){to, c->value[value]};
    if (n == NULL) return (ls_value){to, to->numbers[value]};
    if (n->n_in > (int)(sizeof in / sizeof in[0])) return ls_graph_fail(to, LS_UNSUPPORTED, "carry pass");
    for (int k = 0; k < n->n_in; k++) in[k] = given(c, to, n->in[k]);
    if (!lsi_sound(to)) return (ls_value){to, -1};
    first = ls_graph_add(to, n->op, n->n_in, in, n->attr);
    return ls_value_ok(first) ? ls_graph_out(first, c->from->values[value]->out) : first;
}

/* The weight that the sum is for says what shape it has: the tensors that travel are made later in the run.
 */
static int32_t weight_of(const ls_node *update, int32_t sum)
{
    const int all = ((const ls_optim_attr *)update->attr)->n;

    for (int k = WEIGHTS; k < WEIGHTS + all; k++)
        if (update->in[k + all] == sum) return update->in[k];
    LS_BUG_IF(true);
    return -1;
}

static void emit_wait(carrying *c, ls_graph *to, const ls_node *wait, const ls_node *update)
{
    ls_value first;

    c->in[0] = ls_fill(to, LS_SHAPE_SCALAR, LS_F32, 1);
    for (int k = 0; k < wait->n_out; k++) c->in[1 + k] = given(c, to, weight_of(update, wait->out[k]));
    if (!lsi_sound(to)) return;
    first = ls_graph_add(to, wait->op, 1 + wait->n_out, c->in, wait->attr);
    for (int k = 0; k < wait->n_out && ls_value_ok(first); k++) {
        const ls_value sum = ls_graph_out(first, k);
        to->values[sum.id]->category = LS_CAT_COMM;
        c->value[wait->out[k]] = sum.id;
    }
}

static const char *counter_of(const ls_graph *g, const ls_node *update)
{
    return g->vars[g->values[update->in[T]]->var]->name;
}

/* Whether one of the optimisers [begin, end) has the same counter. */
static bool shares_counter(const carrying *c, const ls_node *update, int begin, int end)
{
    for (int i = begin; i < end; i++)
        if (strcmp(counter_of(c->from, c->from->nodes[c->updates[i]]), counter_of(c->from, update)) == 0)
            return true;
    return false;
}

static void emit_update(carrying *c, ls_graph *to, int i)
{
    const ls_node *n = c->from->nodes[c->updates[i]];
    const int32_t counter = ls_graph_find_var(to, counter_of(c->from, n));
    ls_optim_attr attr = *(const ls_optim_attr *)n->attr;
    ls_value first;

    for (int k = WEIGHTS; k < n->n_in; k++) {
        const ls_node *wait = maker_of(c->from, n->in[k]);
        if (wait != NULL && c->value[n->in[k]] < 0 && lsi_sound(to)) emit_wait(c, to, wait, n);
    }
    for (int k = 0; k < n->n_in && lsi_sound(to); k++)
        if (k != T) c->in[k] = given(c, to, n->in[k]);
    if (!lsi_sound(to)) return;
    /* The last one that has the counter moves it on; they come in the opposite order now. */
    c->in[T] = (ls_value){to, to->vars[counter]->current};
    attr.later = shares_counter(c, n, i + 1, c->n);
    attr.more = shares_counter(c, n, 0, i);
    first = ls_graph_add(to, n->op, n->n_in, c->in, &attr);
    for (int k = 0; k < n->n_out && ls_value_ok(first); k++) {
        const ls_value out = ls_graph_out(first, k);
        ls_graph_advance(to, to->values[c->in[n->op->alias(0, &attr, k)].id]->var, out);
        c->value[n->out[k]] = out.id;
    }
}

/* The layers' order is the opposite of that in which gradients are made. */
static void emit_all(carrying *c, ls_graph *to)
{
    const ls_src here = to->here;
    const char *scope = to->scope;
    const int32_t unit = to->unit, loss = to->loss;

    to->unit = to->loss = 0;
    for (int i = c->n - 1; i >= 0 && lsi_sound(to); i--) {
        const ls_node *n = c->from->nodes[c->updates[i]];
        to->here = n->src;
        to->scope = n->scope[0] == '\0' ? "" : ls_arena_strdup(to->arena, n->scope);
        if (to->scope == NULL) lsi_no_memory(to);
        if (lsi_sound(to)) emit_update(c, to, i);
    }
    for (int32_t i = 0; i < to->n_nodes; i++) to->nodes[i]->carried = true;
    to->here = here;
    to->scope = scope;
    to->unit = unit;
    to->loss = loss;
}

static bool expand(void *ctx, ls_graph *to, const ls_node *n, const ls_value *in, ls_value *out)
{
    carrying *c = ctx;

    (void)in;
    if (!c->emitted) emit_all(c, to);
    c->emitted = true;
    if (!ls_optim_is(n->op) && !is_carried(n, LS_COLL_OP_WAIT)) return false;
    for (int k = 0; k < n->n_out && lsi_sound(to); k++) out[k] = (ls_value){to, c->value[n->out[k]]};
    return true;
}

static bool find_updates(carrying *c)
{
    const ls_graph *g = c->from;
    int most = 1;

    for (int32_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->n_in + g->nodes[i]->n_out > most) most = g->nodes[i]->n_in + g->nodes[i]->n_out;
    c->updates = ls_alloc(LS_MEM_PLAN, sizeof *c->updates * ((size_t)g->n_nodes + 1));
    c->value = ls_alloc(LS_MEM_PLAN, sizeof *c->value * ((size_t)g->n_values + 1));
    c->in = ls_alloc(LS_MEM_PLAN, sizeof *c->in * (size_t)(most + 1));
    if (c->updates == NULL || c->value == NULL || c->in == NULL) return false;
    for (int32_t i = 0; i < g->n_values; i++) c->value[i] = -1;
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i]->dead && ls_optim_is(g->nodes[i]->op)) c->updates[c->n++] = i;
    return true;
}

/* -- what follows from it ----------------------------------------------------------------------------------
 */

/* Whoever has read a weight as the run found it reads what the carried update leaves. */
static void read_updated(ls_graph *g)
{
    for (int32_t i = 0; i < g->n_vars; i++) {
        const ls_var *v = g->vars[i];
        const ls_node *update = maker_of(g, v->current);
        if (update == NULL || !update->carried) continue;
        for (int32_t k = 0; k < g->n_nodes; k++)
            for (int j = 0; !g->nodes[k]->carried && j < g->nodes[k]->n_in; j++)
                if (g->nodes[k]->in[j] == v->first) g->nodes[k]->in[j] = v->current;
    }
}

/* A bucket is free when the wait is over and what came is read.  What is made in it before that lies
 * elsewhere (exec/collectives.c). */
static void order_buckets(ls_graph *g)
{
    for (int32_t i = 0; i < g->n_nodes; i++) {
        ls_node *start = g->nodes[i];
        const ls_node *wait;
        if (!is_carried(start, LS_COLL_OP_START)) continue;
        start->kept = true;
        wait = ls_carried_wait(g, start);
        LS_BUG_IF(wait == NULL);
        ls_graph_order(g, wait->id, i, LS_EDGE_OVERWRITE);
        for (int32_t k = 0; k < g->n_nodes; k++)
            for (int j = 0; j < g->nodes[k]->n_in; j++)
                if (maker_of(g, g->nodes[k]->in[j]) == wait) ls_graph_order(g, k, i, LS_EDGE_OVERWRITE);
    }
}

void ls_pass_carry(ls_graph *g, const ls_strategy *how)
{
    carrying c = {.from = g};

    if (!lsi_sound(g) || !how->carry) return;
    if (!can_carry(g)) {
        leave_as_it_is(g);
        return;
    }
    if (!find_updates(&c)) lsi_no_memory(g);
    if (lsi_sound(g) && c.n > 0) ls_graph_rewrite_fed(g, expand, &c);
    if (lsi_sound(g) && c.n > 0) read_updated(g);
    if (lsi_sound(g) && c.n > 0) order_buckets(g);
    ls_free(c.updates);
    ls_free(c.value);
    ls_free(c.in);
}
