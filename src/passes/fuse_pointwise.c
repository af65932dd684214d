/* fuse_pointwise.c: chains of element-wise nodes become one node that runs them tile by tile.
 *
 * Nodes are visited last first, so that each chain grows from its end: an operand joins when its only reader
 * is the chain and its shape is the chain's. */
#include <string.h>

#include "passes/fuse_internal.h"

typedef struct chain {
    lsi_fuser *f;
    ls_shape shape;
    ls_node
        *member[LS_PW_MAX_STEPS]; /* readers before what they read; reversed when the program is written */
    int n;
    int32_t input[LS_PW_MAX_INPUTS];
    int n_inputs;
} chain;

static bool fusable(const chain *c, const ls_node *n)
{
    if (n->op->pw == LS_PW_NONE || n->op->pw == LS_PW_COPY || n->op == &ls_op_pointwise) return false;
    if (!ls_shape_equal(*ls_node_out_shape(c->f->g, n, 0), c->shape)) return false;
    for (int i = 0; i < n->n_in; i++) {
        ls_shape s = *ls_node_in_shape(c->f->g, n, i);
        /* Anything but whole tensors and single elements needs the general broadcasting kernel. */
        if (!ls_shape_equal(s, c->shape) && ls_shape_count(s) != 1) return false;
        if (c->f->g->values[n->in[i]]->dtype != c->f->g->values[n->out[0]]->dtype) return false;
    }
    return true;
}

static int member_of(const chain *c, int32_t value)
{
    for (int i = 0; i < c->n; i++)
        if (c->member[i]->out[0] == value) return i;
    return -1;
}

/* How many inputs the chain would have with `extra` as a member. */
static int count_inputs(const chain *c, const ls_node *extra)
{
    int32_t seen[LS_PW_MAX_STEPS * 2 + 4];
    int n = 0;

    for (int i = 0; i <= c->n; i++) {
        const ls_node *m = i < c->n ? c->member[i] : extra;
        if (m == NULL) continue;
        for (int k = 0; k < m->n_in; k++) {
            bool known = member_of(c, m->in[k]) >= 0 || (extra != NULL && extra->out[0] == m->in[k]);
            for (int j = 0; j < n && !known; j++) known = seen[j] == m->in[k];
            if (!known) seen[n++] = m->in[k];
        }
    }
    return n;
}

static bool wanted(const chain *c, const ls_node *extra)
{
    const ls_fusion f = {.pattern = LS_FUSE_POINTWISE,
                         .inner = extra,
                         .outer = c->member[0],
                         .n_in = count_inputs(c, extra),
                         .n_steps = c->n + 1};

    return f.n_in <= LS_PW_MAX_INPUTS && lsi_fuse_wanted(c->f, f);
}

static void grow(chain *c)
{
    for (int i = 0; i < c->n; i++) {
        for (int k = 0; k < c->member[i]->n_in; k++) {
            int32_t v = c->member[i]->in[k];
            ls_node *p = lsi_fuse_producer(c->f, v);
            if (c->n == LS_PW_MAX_STEPS) return;
            if (p == NULL || !lsi_fuse_single_use(c->f, v) || !fusable(c, p)) continue;
            if (!wanted(c, p)) continue;
            c->member[c->n++] = p;
        }
    }
}

static int input_register(chain *c, int32_t value)
{
    for (int i = 0; i < c->n_inputs; i++)
        if (c->input[i] == value) return i;
    c->input[c->n_inputs] = value;
    return c->n_inputs++;
}

/* Members in an order in which operands come first: by position in the program. */
static void sort_members(chain *c)
{
    for (int i = 1; i < c->n; i++)
        for (int j = i; j > 0 && c->member[j]->position < c->member[j - 1]->position; j--) {
            ls_node *t = c->member[j];
            c->member[j] = c->member[j - 1];
            c->member[j - 1] = t;
        }
}

static void write_program(chain *c, ls_pointwise_attr *a)
{
    memset(a, 0, sizeof *a);
    for (int i = 0; i < c->n; i++)
        for (int k = 0; k < c->member[i]->n_in; k++)
            if (member_of(c, c->member[i]->in[k]) < 0) input_register(c, c->member[i]->in[k]);
    a->n_steps = c->n;
    for (int i = 0; i < c->n; i++) {
        const ls_node *m = c->member[i];
        int reg[2] = {0, 0};
        for (int k = 0; k < m->n_in; k++) {
            int j = member_of(c, m->in[k]);
            reg[k] = j >= 0 ? c->n_inputs + j : input_register(c, m->in[k]);
        }
        a->step[i].pw = m->op->pw;
        a->step[i].a = reg[0];
        a->step[i].b = reg[1];
        if (m->attr != NULL) memcpy(a->step[i].p, ((const ls_pw_attr *)m->attr)->p, sizeof a->step[i].p);
    }
}

void lsi_fuse_pointwise(lsi_fuser *f)
{
    ls_graph *g = f->g;

    for (int32_t i = g->n_nodes - 1; i >= 0 && g->err.status == LS_OK; i--) {
        ls_node *n = g->nodes[i];
        chain c = {.f = f};
        ls_pointwise_attr a;
        ls_node *last;
        if (n->dead) continue;
        c.shape = *ls_node_out_shape(g, n, 0);
        if (!fusable(&c, n) || ls_shape_count(c.shape) == 0) continue;
        c.member[c.n++] = n;
        grow(&c);
        if (c.n < 2) continue;
        sort_members(&c);
        write_program(&c, &a);
        last = c.member[c.n - 1];
        LS_BUG_IF(last != n); /* everything else in the chain is read by it, directly or not */
        for (int k = 0; k < c.n - 1; k++) c.member[k]->dead = true;
        lsi_fuse_substitute(f, n, &ls_op_pointwise, c.n_inputs, c.input, &a);
    }
}
