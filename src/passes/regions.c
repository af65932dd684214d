/* regions.c: parts of the graph that a device computes sample by sample become one node each.
 *
 * Needs: nodes as they will run, all values plain (fuse).  Leaves: `region` nodes (ops/region.c); what they
 * consist of is dead.
 *
 * Nodes are visited producers first.  One that the device takes joins the region that makes most of what it
 * reads, if the two can be one node: no path may lead from the region out and back into it, by values or by
 * control (turns.c).  Where regions depend on one another, a set per region says on which; a node outside has
 * such a set, too.
 *
 * Optimisers come last: one whose gradients are all made in one region becomes a part of it, if nobody has to
 * read after that region what it writes over. */
#include <string.h>

#include "ops/ops.h"
#include "passes/passes.h"

enum { MAX_REGIONS = 64, MAX_MEMBERS = 64, MAX_OPERANDS = 64 };

typedef struct region {
    const ls_node *member[MAX_MEMBERS];
    int n;
    uint64_t after; /* the regions that it depends on, without those that these depend on */
} region;

typedef struct finder {
    ls_graph *g;
    const ls_region_rule *rule;
    const ls_device *dev;
    int64_t samples;
    region regions[MAX_REGIONS];
    int n;
    int *region_of;       /* per node, or -1 */
    bool *tied;           /* per node: it has edges by control, and stays by itself */
    uint64_t *after;      /* per node outside of regions: those it depends on */
    ls_region_kind *kind; /* per value, in the region that makes it */
} finder;

/* -- dependences ------------------------------------------------------------------------------------------
 */

/* With all that the regions of the set depend on. */
static uint64_t closure(const finder *f, uint64_t set)
{
    for (uint64_t before = 0; before != set;) {
        before = set;
        for (int i = 0; i < f->n; i++)
            if (set >> i & 1) set |= f->regions[i].after;
    }
    return set;
}

/* The regions that who comes after the node depends on. */
static uint64_t behind(const finder *f, int32_t node)
{
    return f->region_of[node] >= 0 ? (uint64_t)1 << f->region_of[node] : f->after[node];
}

/* The regions, but for `but`, that node n depends on. */
static uint64_t needs(const finder *f, const ls_node *n, int but)
{
    const ls_graph *g = f->g;
    uint64_t set = 0;

    for (int i = 0; i < n->n_in; i++) {
        const int32_t producer = g->values[n->in[i]]->node;
        if (producer >= 0 && (but < 0 || f->region_of[producer] != but)) set |= behind(f, producer);
    }
    if (n->after >= 0 && g->values[n->after]->node >= 0) /* what it waits for counts as well */
        set |= behind(f, g->values[n->after]->node);
    for (int32_t i = 0; f->tied[n->id] && i < g->n_edges; i++)
        if (g->edges[i].to == n->id) set |= behind(f, g->edges[i].from);
    return closure(f, set);
}

/* -- joining ----------------------------------------------------------------------------------------------
 */

static bool takes(const finder *f, const ls_node *n, int r, ls_region_kind *out)
{
    ls_region_kind in[MAX_OPERANDS];

    /* A region could not wait for what some of its nodes wait for. */
    if (n->n_in > MAX_OPERANDS || n->n_out > MAX_OPERANDS || n->after >= 0 || f->tied[n->id]) return false;
    for (int i = 0; i < n->n_in; i++) {
        const int32_t producer = f->g->values[n->in[i]]->node;
        const bool inside = r >= 0 && producer >= 0 && f->region_of[producer] == r;
        in[i] = inside ? f->kind[n->in[i]] : LS_REGION_OUTSIDE;
    }
    return f->rule->takes(f->dev, f->g, n, f->samples, in, out);
}

/* How many of the node's inputs the region makes or reads as well. */
static int in_common(const finder *f, const ls_node *n, int r)
{
    int made = 0, read = 0;

    for (int i = 0; i < n->n_in; i++) {
        const int32_t producer = f->g->values[n->in[i]]->node;
        if (producer >= 0 && f->region_of[producer] == r) made++;
        for (int k = 0; k < f->regions[r].n; k++)
            for (int j = 0; j < f->regions[r].member[k]->n_in; j++)
                read += f->regions[r].member[k]->in[j] == n->in[i] && f->g->values[n->in[i]]->var < 0;
    }
    return made > 0 ? MAX_OPERANDS + made : read > 0;
}

static bool joins(finder *f, const ls_node *n, int r)
{
    region *to = &f->regions[r];
    ls_region_kind out[MAX_OPERANDS];
    const uint64_t set = needs(f, n, r);

    if (to->n == MAX_MEMBERS || (set >> r & 1) || !takes(f, n, r, out)) return false;
    to->member[to->n] = n;
    if (!f->rule->fits(f->dev, f->g, f->samples, to->n + 1, to->member)) return false;
    to->n++;
    to->after |= set;
    f->region_of[n->id] = r;
    for (int k = 0; k < n->n_out; k++) f->kind[n->out[k]] = out[k];
    return true;
}

static void visit(finder *f, const ls_node *n)
{
    ls_region_kind out[MAX_OPERANDS];
    int order[MAX_REGIONS], common[MAX_REGIONS], k = 0;

    f->region_of[n->id] = -1;
    if (takes(f, n, -1, out) ||
        n->op->pw != LS_PW_NONE) { /* a sum of a region may be taken where it is made */
        for (int r = 0; r < f->n; r++) {
            int at = k;
            const int score = in_common(f, n, r);
            if (score == 0) continue;
            for (; at > 0 && common[at - 1] < score; at--) {
                common[at] = common[at - 1];
                order[at] = order[at - 1];
            }
            common[at] = score;
            order[at] = r;
            k++;
        }
        for (int i = 0; i < k; i++)
            if (joins(f, n, order[i])) return;
        if (f->n < MAX_REGIONS && takes(f, n, -1, out)) {
            f->regions[f->n] = (region){.n = 0};
            if (joins(f, n, f->n++)) return;
            f->n--;
        }
    }
    f->after[n->id] = needs(f, n, -1);
}

/* -- updates ----------------------------------------------------------------------------------------------
 */

static bool depends_on(const finder *f, int32_t node, int r)
{
    return (closure(f, behind(f, node)) >> r & 1) != 0 && f->region_of[node] != r;
}

/* Whether somebody who comes after the region reads what node n writes over: it would have to be copied. */
static bool is_read_behind(const finder *f, const ls_node *n, int r)
{
    const ls_graph *g = f->g;

    for (int k = 0; k < n->n_out; k++) {
        const int32_t old = n->in[n->op->alias(n->n_in, n->attr, k)];
        for (int32_t i = 0; i < g->n_nodes; i++) {
            if (g->nodes[i]->dead || i == n->id || !depends_on(f, i, r)) continue;
            for (int j = 0; j < g->nodes[i]->n_in; j++)
                if (g->nodes[i]->in[j] == old) return true;
        }
    }
    return false;
}

static void join_update(finder *f, const ls_node *n)
{
    for (int r = 0; r < f->n; r++)
        if (f->regions[r].n > 0 && in_common(f, n, r) > MAX_OPERANDS && !is_read_behind(f, n, r) &&
            joins(f, n, r))
            return;
}

/* -- replacing --------------------------------------------------------------------------------------------
 */

static bool is_listed(const int32_t *list, int n, int32_t value)
{
    for (int i = 0; i < n; i++)
        if (list[i] == value) return true;
    return false;
}

/* Whether anybody else sees the value. */
static bool leaves(const finder *f, int r, int32_t value)
{
    const ls_vinfo *v = f->g->values[value];

    if (v->fetch || (v->var >= 0 && f->g->vars[v->var]->current == value)) return true;
    for (int32_t i = 0; i < f->g->n_nodes; i++) {
        const ls_node *n = f->g->nodes[i];
        if (!n->dead && f->region_of[i] != r && is_listed(n->in, n->n_in, value)) return true;
    }
    return false;
}

/* Room for the lists of a region, in the graph's memory. */
static bool list_operands(const finder *f, int r, ls_region_attr *a)
{
    const region *from = &f->regions[r];
    size_t operands = 0;
    int32_t *in, *out;
    const ls_node **members;

    for (int i = 0; i < from->n; i++)
        operands += (size_t)from->member[i]->n_in + (size_t)from->member[i]->n_out;
    in = ls_arena_alloc(f->g->arena, sizeof *in * (operands + 1));
    out = ls_arena_alloc(f->g->arena, sizeof *out * (operands + 1));
    members = ls_arena_alloc(f->g->arena, sizeof *members * (size_t)from->n);
    if (in == NULL || out == NULL || members == NULL) return false;
    memcpy(members, from->member, sizeof *members * (size_t)from->n);
    *a = (ls_region_attr){f->g, f->samples, from->n, 0, 0, members, in, out};
    for (int i = 0; i < from->n; i++) {
        const ls_node *n = from->member[i];
        for (int k = 0; k < n->n_in; k++) {
            const int32_t producer = f->g->values[n->in[k]]->node;
            const bool inside = producer >= 0 && f->region_of[producer] == r;
            if (!inside && !is_listed(in, a->n_in, n->in[k])) in[a->n_in++] = n->in[k];
        }
        for (int k = 0; k < n->n_out; k++)
            if ((n->op->flags & LS_OP_UPDATE) || leaves(f, r, n->out[k])) out[a->n_out++] = n->out[k];
    }
    return true;
}

static bool has_updates(const ls_region_attr *a)
{
    for (int i = 0; i < a->n; i++)
        if (a->members[i]->op->flags & LS_OP_UPDATE) return true;
    return false;
}

/* Whether its last member that is no update is of the backward pass. */
static bool is_backward(const ls_region_attr *a)
{
    int last = a->n - 1;

    while (last > 0 && (a->members[last]->op->flags & LS_OP_UPDATE)) last--;
    return a->members[last]->backward;
}

static void replace(finder *f, int r)
{
    ls_graph *g = f->g;
    const ls_node *first = f->regions[r].member[0];
    ls_region_attr a;
    ls_value *in, v;
    ls_node *n;

    if (!list_operands(f, r, &a) || (in = ls_arena_alloc(g->arena, sizeof *in * (size_t)a.n_in)) == NULL) {
        ls_graph_fail(g, LS_NOMEM, "region pass: no memory");
        return;
    }
    for (int i = 0; i < a.n_in; i++) in[i] = (ls_value){g, a.in[i]};
    g->here = first->src;
    g->scope = first->scope;
    v = ls_graph_add(g, has_updates(&a) ? &ls_op_region_update : &ls_op_region, a.n_in, in, &a);
    if (!ls_value_ok(v)) return;
    n = g->nodes[g->values[v.id]->node];
    ls_graph_stand_for(n, first);
    n->backward = is_backward(&a);
    for (int i = 0; i < a.n; i++) ((ls_node *)a.members[i])->dead = true; /* before readers change */
    for (int k = 0; k < a.n_out; k++) {
        g->values[n->out[k]]->var = g->values[a.out[k]]->var;
        g->values[n->out[k]]->category = g->values[a.out[k]]->category;
        ls_graph_replace(g, a.out[k], n->out[k]);
    }
}

/* -- the pass ---------------------------------------------------------------------------------------------
 */

/* The batch: what the largest input from outside has in dimension 0. */
static int64_t batch_of(const ls_graph *g)
{
    int64_t most = 0, samples = 0;

    for (int32_t i = 0; i < g->n_values; i++) {
        const ls_vinfo *v = g->values[i];
        if (v->kind != LS_VALUE_INPUT || v->shape.rank < 2 || ls_shape_count(v->shape) <= most) continue;
        most = ls_shape_count(v->shape);
        samples = v->shape.dim[0];
    }
    return samples;
}

static bool is_worth_it(const finder *f, const region *r)
{
    int n = 0;

    for (int i = 0; i < r->n; i++) n += !(r->member[i]->op->flags & LS_OP_VIEW);
    return n >= f->rule->least;
}

static ls_status find(finder *f, ls_err *err)
{
    const size_t nodes = (size_t)f->g->n_nodes + MAX_REGIONS, values = (size_t)f->g->n_values + 1;
    ls_schedule s = {0};
    ls_status st = LS_OK;

    f->region_of = ls_arena_alloc(f->g->arena, sizeof *f->region_of * nodes);
    f->after = ls_arena_alloc(f->g->arena, sizeof *f->after * nodes);
    f->kind = ls_arena_alloc(f->g->arena, sizeof *f->kind * values);
    f->tied = ls_arena_alloc(f->g->arena, sizeof *f->tied * nodes);
    if (f->region_of == NULL || f->after == NULL || f->kind == NULL || f->tied == NULL)
        return ls_fail(err, LS_NOMEM, "region pass: no memory");
    memset(f->region_of, -1, sizeof *f->region_of * nodes);
    memset(f->tied, 0, sizeof *f->tied * nodes);
    for (int32_t i = 0; i < f->g->n_edges; i++)
        f->tied[f->g->edges[i].from] = f->tied[f->g->edges[i].to] = true;
    LS_TRY(ls_pass_topological(f->g, &s, err));
    for (int32_t i = 0; i < s.n; i++) visit(f, f->g->nodes[s.order[i]]);
    for (int r = 0; r < f->n; r++) {
        if (is_worth_it(f, &f->regions[r])) continue;
        for (int i = 0; i < f->regions[r].n; i++) {
            f->region_of[f->regions[r].member[i]->id] = -1;
            f->after[f->regions[r].member[i]->id] = f->regions[r].after;
        }
        f->regions[r].n = 0;
    }
    for (int32_t i = 0; i < s.n; i++)
        if (ls_optim_is(f->g->nodes[s.order[i]]->op)) join_update(f, f->g->nodes[s.order[i]]);
out:
    ls_schedule_release(&s);
    return st;
}

void ls_pass_regions(ls_graph *g, const ls_region_rule *rule, const ls_device *dev)
{
    finder *f;
    ls_err err = {0};

    if (rule == NULL || g->err.status != LS_OK) return;
    f = ls_arena_alloc(g->arena, sizeof *f);
    if (f == NULL) {
        ls_graph_fail(g, LS_NOMEM, "region pass: no memory");
        return;
    }
    f->g = g;
    f->rule = rule;
    f->dev = dev;
    f->samples = batch_of(g);
    if (f->samples < 1) return;
    if (find(f, &err) != LS_OK) {
        ls_graph_fail(g, err.status, "%s", err.text);
        return;
    }
    for (int r = 0; r < f->n && g->err.status == LS_OK; r++)
        if (f->regions[r].n > 0) replace(f, r);
}
