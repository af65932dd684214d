/* check_variables.c: proves that versions of variables are read and written in their order. */
#include <stdlib.h>

#include "ops/ops.h"
#include "passes/check_internal.h"

/* A node that reads or writes a version of a variable.  Versions are counted from 0, the value at the start
 * of the step; the writer of version k reads k - 1. */
typedef struct touch {
    int32_t node, var;
    int version;
    bool writes;
} touch;

typedef struct proof {
    const ls_graph *g;
    lsi_relation r;
    int *version;   /* per value: its number; -1: no version of a variable */
    int32_t *var;   /* and the variable */
    touch *touches; /* by variable */
    int32_t n, *barriers, n_barriers;
} proof;

/* -- who touches what ---------------------------------------------------------------------------------------
 */

/* The version that output k of the node replaces, or -1. */
static int32_t replaced(const ls_node *n, int k)
{
    const int in =
        n->op->alias != NULL && (n->op->flags & LS_OP_UPDATE) ? n->op->alias(n->n_in, n->attr, k) : -1;

    return in >= 0 ? n->in[in] : -1;
}

/* Numbers of versions; updates may be listed in any order, so until nothing changes. */
static void number_versions(proof *p)
{
    const ls_graph *g = p->g;
    bool changed = true;

    for (int32_t i = 0; i < g->n_values; i++) {
        p->version[i] = g->values[i]->kind == LS_VALUE_VAR ? 0 : -1;
        p->var[i] = g->values[i]->var;
    }
    while (changed) {
        changed = false;
        for (int32_t i = 0; i < g->n_nodes; i++) {
            const ls_node *n = g->nodes[i];
            for (int k = 0; !n->dead && k < n->n_out; k++) {
                const int32_t old = replaced(n, k);
                if (old < 0 || p->version[old] < 0 || p->version[n->out[k]] == p->version[old] + 1) continue;
                p->version[n->out[k]] = p->version[old] + 1;
                p->var[n->out[k]] = p->var[old];
                changed = true;
            }
        }
    }
}

static void add_touch(proof *p, int32_t node, int32_t value, bool writes)
{
    const int32_t root = writes ? value : ls_graph_storage(p->g, value);

    if (p->version[root] < 0) return;
    p->touches[p->n++] = (touch){node, p->var[root], p->version[root], writes};
}

static void find_touches(proof *p)
{
    for (int32_t i = 0; i < p->g->n_nodes; i++) {
        const ls_node *n = p->g->nodes[i];
        if (n->dead || (n->op->flags & LS_OP_VIEW)) continue;
        for (int k = 0; k < n->n_in; k++) add_touch(p, i, n->in[k], false);
        for (int k = 0; k < n->n_out; k++) add_touch(p, i, n->out[k], true);
        if (n->op == &ls_op_barrier) p->barriers[p->n_barriers++] = i;
    }
}

/* -- proofs -----------------------------------------------------------------------------------------------
 */

static ls_status refuse(const proof *p, const touch *a, const touch *b, const char *what, ls_err *err)
{
    char first[LSI_NODE_NAME], second[LSI_NODE_NAME];

    return ls_fail(err, LS_INVALID,
                   "plan check: variable \"%s\": %s, which %s version %d, and %s, which %s version %d: %s",
                   p->g->vars[a->var]->name, lsi_node_name(p->g, a->node, first),
                   a->writes ? "writes" : "reads", a->version, lsi_node_name(p->g, b->node, second),
                   b->writes ? "writes" : "reads", b->version, what);
}

/* Whether some barrier comes after a; whether some comes before it. */
static bool barrier_after(const proof *p, int32_t a)
{
    for (int32_t i = 0; i < p->n_barriers; i++)
        if (lsi_before(&p->r, a, p->barriers[i])) return true;
    return false;
}

static bool barrier_before(const proof *p, int32_t a)
{
    for (int32_t i = 0; i < p->n_barriers; i++)
        if (lsi_before(&p->r, p->barriers[i], a)) return true;
    return false;
}

static bool barrier_between(const proof *p, int32_t a, int32_t b)
{
    for (int32_t i = 0; i < p->n_barriers; i++)
        if (lsi_before(&p->r, a, p->barriers[i]) && lsi_before(&p->r, p->barriers[i], b)) return true;
    return false;
}

/* `a` is to be over before `b`: here, and where the variable is common to ranks, a on any before b on
 * another. In the next step, a comes after this step's b. */
static ls_status prove_pair(const proof *p, const touch *a, const touch *b, ls_err *err)
{
    const bool common = p->g->vars[a->var]->home == LS_HOME_MACHINE;

    if (!lsi_before(&p->r, a->node, b->node))
        return refuse(p, a, b, "no edge puts the first before the second", err);
    if (!common) return LS_OK;
    if (!barrier_between(p, a->node, b->node))
        return refuse(p, a, b, "no barrier lies between one rank's first and another's second", err);
    if (!barrier_after(p, b->node) && !barrier_before(p, a->node))
        return refuse(p, a, b,
                      "no barrier lies between one rank's second and another's first in the next step", err);
    return LS_OK;
}

/* Of two nodes that touch a variable, one at least writing, the one with the older version comes first; where
 * a version is written by one and read by the other, the writer. */
static ls_status prove_touches(const proof *p, const touch *a, const touch *b, ls_err *err)
{
    if (a->var != b->var || a->node == b->node || (!a->writes && !b->writes)) return LS_OK;
    if (a->writes && b->writes && a->version == b->version)
        return refuse(p, a, b, "a version has one writer", err);
    if (a->version < b->version || (a->version == b->version && a->writes)) return prove_pair(p, a, b, err);
    return prove_pair(p, b, a, err);
}

/* The host reads after the step, when the newest version is what is there. */
static ls_status prove_fetches(const proof *p, ls_err *err)
{
    for (int32_t i = 0; i < p->n; i++)
        for (int32_t v = 0; p->touches[i].writes && v < p->g->n_values; v++) {
            const int32_t root = p->g->values[v]->fetch ? ls_graph_storage(p->g, v) : -1;
            if (root < 0 || p->version[root] < 0 || p->var[root] != p->touches[i].var ||
                p->version[root] >= p->touches[i].version)
                continue;
            return ls_fail(err, LS_INVALID,
                           "plan check: \"%s\" shows variable \"%s\" as it was before an update that writes "
                           "over it",
                           p->g->values[v]->name, p->g->vars[p->var[root]]->name);
        }
    return LS_OK;
}

static int by_variable(const void *a, const void *b)
{
    const touch *x = a, *y = b;

    return x->var != y->var ? (x->var < y->var ? -1 : 1) : 0;
}

static ls_status prove(const proof *p, ls_err *err)
{
    ls_status st = prove_fetches(p, err);

    for (int32_t i = 0; i < p->n && st == LS_OK; i++)
        for (int32_t k = i + 1; k < p->n && p->touches[k].var == p->touches[i].var && st == LS_OK; k++)
            st = prove_touches(p, &p->touches[i], &p->touches[k], err);
    return st;
}

ls_status ls_check_variables(const ls_graph *g, ls_err *err)
{
    proof p = {.g = g};
    size_t most = 1;
    ls_status st = LS_OK;

    for (int32_t i = 0; i < g->n_nodes; i++) most += (size_t)g->nodes[i]->n_in + (size_t)g->nodes[i]->n_out;
    p.version = ls_alloc(LS_MEM_PLAN, sizeof *p.version * ((size_t)g->n_values + 1));
    p.var = ls_alloc(LS_MEM_PLAN, sizeof *p.var * ((size_t)g->n_values + 1));
    p.touches = ls_alloc(LS_MEM_PLAN, sizeof *p.touches * most);
    p.barriers = ls_alloc(LS_MEM_PLAN, sizeof *p.barriers * ((size_t)g->n_nodes + 1));
    if (p.version == NULL || p.var == NULL || p.touches == NULL || p.barriers == NULL) {
        st = ls_fail(err, LS_NOMEM, "plan check: no memory");
        goto out;
    }
    LS_TRY(lsi_relation_make(&p.r, g, NULL, err));
    number_versions(&p);
    find_touches(&p);
    qsort(p.touches, (size_t)p.n, sizeof *p.touches, by_variable);
    st = prove(&p, err);
out:
    lsi_relation_release(&p.r);
    ls_free(p.version);
    ls_free(p.var);
    ls_free(p.touches);
    ls_free(p.barriers);
    return st;
}
