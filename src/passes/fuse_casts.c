/* fuse_casts.c: casts between floating types disappear in what makes or reads their operand.
 *
 * A kernel that converts while it reads or writes needs no pass over memory for that.  No op changes: the
 * *value* gets another type than the op's rule would give it, and the kernel of the node that makes or reads
 * it is planned for the types that it finds.  So this comes after all patterns that add nodes, whose rules
 * would refuse such values.  What is summed up of several such results is summed up in fp32. */
#include "passes/fuse_internal.h"

static bool is_float_cast(const ls_graph *g, const ls_node *n)
{
    return n->op == &ls_op_cast && ls_dtype_is_float(g->values[n->in[0]]->dtype) &&
           ls_dtype_is_float(g->values[n->out[0]]->dtype);
}

static bool is_view(const ls_node *n)
{
    return (n->op->flags & LS_OP_VIEW) != 0;
}

/* -- into what makes the operand
 * -------------------------------------------------------------------------------- */

/* Whether every reader of the value is a cast to `to`. */
static bool only_cast_to(const lsi_fuser *f, int32_t value, ls_dtype to)
{
    const ls_graph *g = f->g;

    if (g->values[value]->fetch || g->values[value]->var >= 0 || g->values[value]->kind != LS_VALUE_NODE)
        return false;
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; !g->nodes[i]->dead && k < g->nodes[i]->n_in; k++)
            if (g->nodes[i]->in[k] == value &&
                (g->nodes[i]->op != &ls_op_cast || g->values[g->nodes[i]->out[0]]->dtype != to))
                return false;
    return true;
}

/* The node that computes the value, views that nobody else looks through left out; NULL: none may be changed.
 */
static ls_node *maker_of(const lsi_fuser *f, int32_t value)
{
    ls_node *n = lsi_fuse_producer(f, value);

    while (n != NULL && is_view(n)) {
        if (f->uses[n->in[0]] != 1 || f->g->values[n->in[0]]->fetch) return NULL;
        n = lsi_fuse_producer(f, n->in[0]);
    }
    return n;
}

static void set_type_back(const lsi_fuser *f, int32_t value, ls_dtype to)
{
    const ls_node *n = lsi_fuse_producer(f, value);

    f->g->values[value]->dtype = to;
    if (n != NULL && is_view(n)) set_type_back(f, n->in[0], to);
}

static bool is_sum(const ls_node *n)
{
    const ls_pointwise_attr *a = n->attr;

    if (n->op == &ls_op_add) return true;
    if (n->op != &ls_op_pointwise) return false;
    for (int i = 0; i < a->n_steps; i++)
        if (a->step[i].pw != LS_PW_ADD) return false;
    return true;
}

/* The terms of a sum that is fp32 now: fp32 as well, where they are made for it alone. */
static void widen_terms(lsi_fuser *f, const ls_node *sum, const ls_node *cast)
{
    for (int k = 0; k < sum->n_in; k++) {
        const ls_node *p = lsi_fuse_producer(f, sum->in[k]);
        const ls_vinfo *v = f->g->values[sum->in[k]];
        if (p == NULL || is_view(p) || v->dtype == LS_F32 || !lsi_fuse_single_use(f, sum->in[k])) continue;
        if (!lsi_fuse_wanted(f, (ls_fusion){.pattern = LS_FUSE_CAST_OUT, .inner = p, .outer = cast}))
            continue;
        f->g->values[sum->in[k]]->dtype = LS_F32;
        if (is_sum(p)) widen_terms(f, p, cast);
    }
}

static bool fold_into_maker(lsi_fuser *f, ls_node *cast)
{
    ls_graph *g = f->g;
    const int32_t value = cast->in[0];
    const ls_dtype to = g->values[cast->out[0]]->dtype;
    const ls_node *p = maker_of(f, value);

    if (p == NULL || p->op == &ls_op_cast || !only_cast_to(f, value, to)) return false;
    if (!lsi_fuse_wanted(f, (ls_fusion){.pattern = LS_FUSE_CAST_OUT, .inner = p, .outer = cast}))
        return false;
    set_type_back(f, value, to);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        ls_node *n = g->nodes[i];
        /* Not a cast back that reads what one of these gave: it reads the value now. */
        if (n->dead || n->op != &ls_op_cast || n->in[0] != value || g->values[n->out[0]]->dtype != to)
            continue;
        f->uses[value] += f->uses[n->out[0]] - 1;
        lsi_fuse_bypass(f, n, value);
    }
    if (to == LS_F32 && is_sum(p)) widen_terms(f, p, cast);
    return true;
}

/* -- into what reads it
 * ----------------------------------------------------------------------------------------- */

/* Whether every reader of the value, through views, takes it as the cast found it. */
static bool all_take(const lsi_fuser *f, const ls_node *cast, int32_t value)
{
    const ls_graph *g = f->g;
    bool any = false;

    if (g->values[value]->fetch || g->values[value]->var >= 0) return false;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        for (int k = 0; !n->dead && k < n->n_in; k++) {
            if (n->in[k] != value) continue;
            any = true;
            if (is_view(n)) {
                if (!all_take(f, cast, n->out[0])) return false;
            } else if (!lsi_fuse_wanted(f,
                                        (ls_fusion){.pattern = LS_FUSE_CAST_IN, .inner = cast, .outer = n})) {
                return false;
            }
        }
    }
    return any;
}

static void set_type_forward(const lsi_fuser *f, int32_t value, ls_dtype to)
{
    const ls_graph *g = f->g;

    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *n = g->nodes[i];
        if (n->dead || !is_view(n) || n->in[0] != value) continue;
        g->values[n->out[0]]->dtype = to;
        set_type_forward(f, n->out[0], to);
    }
}

static void fold_into_readers(lsi_fuser *f, ls_node *cast)
{
    if (!all_take(f, cast, cast->out[0])) return;
    set_type_forward(f, cast->out[0], f->g->values[cast->in[0]]->dtype);
    f->uses[cast->in[0]] += f->uses[cast->out[0]] - 1;
    lsi_fuse_bypass(f, cast, cast->in[0]);
}

void lsi_fuse_casts(lsi_fuser *f)
{
    ls_graph *g = f->g;

    for (int32_t i = 0; i < g->n_nodes; i++) {
        ls_node *n = g->nodes[i];
        if (n->dead || !is_float_cast(g, n)) continue;
        if (!fold_into_maker(f, n)) fold_into_readers(f, n);
    }
}
