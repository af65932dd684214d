/* autodiff.c: reverse-mode differentiation, graph to graph. */
#include "passes/autodiff.h"

#include "ops/macros.h"

typedef struct adjoint {
    ls_graph *g;
    int32_t n_values; /* values that existed before gradients were added */
    bool *depends;    /* value depends on some wrt */
    ls_value *grad;   /* accumulated gradient of each value; invalid while none has arrived */
    ls_autodiff_how how;
} adjoint;

/* A value carries gradient when it depends on wrt and is of floating type. */
static void mark_dependent(adjoint *a, int n, const ls_value *wrt)
{
    const ls_graph *g = a->g;

    for (int i = 0; i < n; i++) a->depends[wrt[i].id] = true;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_node *node = g->nodes[i];
        bool any = false;
        if (node->op->flags & LS_OP_NO_GRAD) continue;
        for (int k = 0; k < node->n_in; k++) any = any || a->depends[node->in[k]];
        if (!any) continue;
        for (int k = 0; k < node->n_out; k++)
            if (ls_dtype_is_float(g->values[node->out[k]]->dtype)) a->depends[node->out[k]] = true;
    }
}

static void accumulate(adjoint *a, int32_t id, ls_value d)
{
    if (!ls_value_ok(d)) return;
    a->grad[id] = ls_value_ok(a->grad[id]) ? ls_add(a->grad[id], d) : d;
}

static void fail_without_rule(ls_graph *g, const ls_node *node)
{
    ls_graph_fail(g, LS_UNSUPPORTED, "op %s has no gradient, but the loss depends on parameters through it",
                  node->op->name);
}

/* Calls the node's gradient rule and hands its results to the inputs. */
static void visit(adjoint *a, const ls_node *node)
{
    ls_graph *g = a->g;
    size_t n_in = (size_t)node->n_in, n_out = (size_t)node->n_out;
    ls_value *v = ls_arena_alloc(g->arena, sizeof *v * (2 * n_in + 2 * n_out + 1));
    bool *want = ls_arena_alloc(g->arena, n_in + 1);
    bool any_in = false, any_out = false;
    ls_grad_call c;

    if (v == NULL || want == NULL) {
        ls_graph_fail(g, LS_NOMEM, "autodiff: no memory");
        return;
    }
    c = (ls_grad_call){g,        node->attr,       node->n_in, node->n_out,         v,
                       v + n_in, v + n_in + n_out, want,       v + n_in + 2 * n_out};
    for (int i = 0; i < node->n_in; i++) {
        v[i] = (ls_value){g, node->in[i]};
        want[i] = a->depends[node->in[i]];
        c.din[i] = (ls_value){g, -1};
        any_in = any_in || want[i];
    }
    for (int k = 0; k < node->n_out; k++) {
        v[node->n_in + k] = (ls_value){g, node->out[k]};
        v[node->n_in + node->n_out + k] = a->grad[node->out[k]];
        any_out = any_out || ls_value_ok(a->grad[node->out[k]]);
    }
    if (!any_in || !any_out) return;
    g->here = node->src;
    g->scope = node->scope;
    g->unit = node->unit;
    if (node->op->grad == NULL) {
        fail_without_rule(g, node);
        return;
    }
    for (int i = 0; a->how.again != NULL && i < node->n_in; i++) v[i] = a->how.again(a->how.ctx, v[i]);
    if (g->err.status != LS_OK) return;
    node->op->grad(&c);
    for (int i = 0; i < node->n_in; i++)
        if (want[i]) accumulate(a, node->in[i], c.din[i]);
}

/* After a visit of `node`: it may have been the first that read a wrt, and so the last to add to its
 * gradient. */
static void widen(adjoint *a, int n, const ls_value *wrt, const int32_t *first, int32_t node)
{
    for (int i = 0; i < n && a->how.wide; i++) {
        ls_value *grad = &a->grad[wrt[i].id];
        if (first[i] != node || !ls_value_ok(*grad)) continue;
        if (ls_value_dtype(*grad) == LS_BF16 || ls_value_dtype(*grad) == LS_F16)
            *grad = ls_cast(*grad, LS_F32);
    }
}

/* The first node that reads each wrt, or -1. */
static int32_t *find_first(const adjoint *a, int n, const ls_value *wrt)
{
    const ls_graph *g = a->g;
    int32_t *first = ls_arena_alloc(g->arena, sizeof *first * ((size_t)n + 1));

    for (int i = 0; first != NULL && i < n; i++) {
        first[i] = -1;
        for (int32_t k = 0; a->how.wide && first[i] < 0 && k < g->n_nodes; k++)
            for (int j = 0; !(g->nodes[k]->op->flags & LS_OP_NO_GRAD) && j < g->nodes[k]->n_in; j++)
                if (g->nodes[k]->in[j] == wrt[i].id) first[i] = k;
    }
    return first;
}

void ls_autodiff(ls_value loss, ls_value seed, int n, const ls_value *wrt, ls_value *grads)
{
    ls_autodiff_with(loss, seed, n, wrt, &(ls_autodiff_how){0}, grads);
}

void ls_autodiff_with(ls_value loss, ls_value seed, int n, const ls_value *wrt, const ls_autodiff_how *how,
                      ls_value *grads)
{
    int32_t *first;
    ls_graph *g = loss.g;
    ls_src here = g != NULL ? g->here : (ls_src){NULL, 0};
    const char *scope = g != NULL ? g->scope : "";
    const int32_t unit = g != NULL ? g->unit : 0, loss_before = g != NULL ? g->loss : 0;
    int32_t n_nodes;
    adjoint a;

    for (int i = 0; i < n; i++) grads[i] = (ls_value){g, -1};
    if (!ls_value_ok(loss) || g->err.status != LS_OK) return;
    n_nodes = g->n_nodes;
    a = (adjoint){.g = g, .n_values = g->n_values, .how = *how};
    a.depends = ls_arena_alloc(g->arena, (size_t)a.n_values);
    a.grad = ls_arena_alloc(g->arena, sizeof *a.grad * (size_t)a.n_values);
    first = find_first(&a, n, wrt);
    if (a.depends == NULL || a.grad == NULL || first == NULL) {
        ls_graph_fail(g, LS_NOMEM, "autodiff: no memory");
        return;
    }
    for (int32_t i = 0; i < a.n_values; i++) a.grad[i] = (ls_value){g, -1};
    mark_dependent(&a, n, wrt);
    if (!a.depends[loss.id]) return;
    g->backward = true;
    if (ls_value_ok(seed)) g->loss = ++g->n_losses;
    a.grad[loss.id] = ls_value_ok(seed) ? seed : ls_fill(g, ls_value_shape(loss), ls_value_dtype(loss), 1.0);
    /* Creation order is topological, so the reverse of it visits every user before its producer. */
    for (int32_t i = n_nodes - 1; i >= 0 && g->err.status == LS_OK; i--) {
        if ((g->nodes[i]->op->flags & LS_OP_NO_GRAD) || g->nodes[i]->dead) continue;
        visit(&a, g->nodes[i]);
        widen(&a, n, wrt, first, i);
    }
    g->backward = false;
    g->here = here;
    g->scope = scope;
    g->unit = unit;
    g->loss = loss_before;
    for (int i = 0; i < n; i++) grads[i] = a.grad[wrt[i].id];
}

/* What `loss` depends on, as far as gradients flow; false, with the error, where they cannot. */
static bool mark_reached(adjoint *a, bool *reaches)
{
    ls_graph *g = a->g;

    for (int32_t i = g->n_nodes - 1; i >= 0; i--) {
        const ls_node *node = g->nodes[i];
        bool any = false, want = false;
        if (node->op->flags & LS_OP_NO_GRAD) continue;
        for (int k = 0; k < node->n_out; k++)
            any = any || (reaches[node->out[k]] && ls_dtype_is_float(g->values[node->out[k]]->dtype));
        for (int k = 0; any && k < node->n_in; k++) {
            reaches[node->in[k]] = true;
            want = want || a->depends[node->in[k]];
        }
        /* That of `gradients` is known when it has been expanded. */
        if (!want || node->op->grad != NULL || node->op == &ls_op_gradients) continue;
        g->here = node->src;
        g->scope = node->scope;
        fail_without_rule(g, node);
        return false;
    }
    return true;
}

int ls_autodiff_unreached(ls_value loss, int n, const ls_value *wrt)
{
    ls_graph *g = loss.g;
    bool *reaches = ls_arena_alloc(g->arena, (size_t)g->n_values);
    adjoint a = {.g = g, .depends = ls_arena_alloc(g->arena, (size_t)g->n_values)};

    if (reaches == NULL || a.depends == NULL) {
        ls_graph_fail(g, LS_NOMEM, "autodiff: no memory");
        return n;
    }
    mark_dependent(&a, n, wrt);
    reaches[loss.id] = true;
    if (!mark_reached(&a, reaches)) return n;
    for (int i = 0; i < n; i++)
        if (!reaches[wrt[i].id]) return i;
    return n;
}
