/* graph.c: building graphs: values, nodes, variables, and the sticky error.
 *
 * Every node is checked by its op's shape rule the moment it is added, so that a mistake is reported at the
 * line that made it, with the op and the shapes in the message. */
#include "graph/graph_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/grow.h"
#include "base/text.h"

ls_status ls_graph_create(ls_graph **out, ls_err *err)
{
    ls_status st = LS_OK;
    ls_graph *g = NULL;

    *out = NULL;
    g = ls_alloc(LS_MEM_GRAPH, sizeof *g);
    if (g == NULL) return ls_fail(err, LS_NOMEM, "graph: no memory");
    LS_TRY(ls_arena_create(&g->arena, LS_MEM_GRAPH, err));
    g->scope = "";
    *out = g;
    g = NULL;
out:
    ls_graph_destroy(g);
    return st;
}

void ls_graph_destroy(ls_graph *g)
{
    if (g == NULL) return;
    ls_arena_destroy(g->arena);
    ls_free(g->values);
    ls_free(g->nodes);
    ls_free(g->vars);
    ls_free(g->edges);
    ls_free(g->units);
    ls_free(g);
}

ls_status ls_graph_status(const ls_graph *g, ls_err *err)
{
    if (g->err.status == LS_OK) return LS_OK;
    return ls_fail(err, g->err.status, "%s", g->err.text);
}

ls_dtype ls_value_dtype(ls_value v)
{
    return ls_value_ok(v) ? v.g->values[v.id]->dtype : LS_F32;
}

ls_shape ls_value_shape(ls_value v)
{
    return ls_value_ok(v) ? v.g->values[v.id]->shape : LS_SHAPE(0);
}

ls_value ls_value_at(ls_value v, const char *file, int line)
{
    if (v.g != NULL) v.g->here = (ls_src){file, line};
    return v;
}

/* -- errors -----------------------------------------------------------------------------------------------
 */

ls_value ls_graph_fail(ls_graph *g, ls_status status, const char *fmt, ...)
{
    char text[LS_ERR_TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (g->err.status == LS_OK) {
        ls_fail(&g->err, status, "%s", text);
        if (g->scope[0] != '\0') ls_fail_in(&g->err, status, "layer \"%s\"", g->scope);
        if (g->here.file != NULL) ls_fail_in(&g->err, status, "%s:%d", g->here.file, g->here.line);
    }
    return (ls_value){g, -1};
}

static ls_value fail_nomem(ls_graph *g)
{
    return ls_graph_fail(g, LS_NOMEM, "graph: no memory for more nodes");
}

/* Appends the shapes of a node's inputs to its error: the first thing its author wants to see. */
static ls_value fail_infer(ls_graph *g, const ls_op *op, int n_in, const ls_shape *in, const ls_err *why)
{
    ls_text shapes = {0};
    ls_value v;
    char buf[LS_SHAPE_TEXT];

    for (int i = 0; i < n_in && i < 8; i++)
        ls_text_add(&shapes, "%s%s", i ? ", " : "", ls_shape_text(in[i], buf));
    if (n_in > 8) ls_text_add(&shapes, ", ... (%d in all)", n_in);
    v = ls_graph_fail(g, why->status, "op %s, input shapes %s: %s", op->name,
                      shapes.data != NULL && shapes.length > 0 ? shapes.data : "none", why->text);
    ls_text_release(&shapes);
    return v;
}

/* -- values ------------------------------------------------------------------------------------------------
 */

ls_vinfo *lsi_graph_new_value(ls_graph *g, ls_dtype dtype, ls_shape shape)
{
    ls_vinfo *v;

    if (!LS_GROW(LS_MEM_GRAPH, g->values, g->n_values + 1, g->cap_values)) return NULL;
    v = ls_arena_alloc(g->arena, sizeof *v);
    if (v == NULL) return NULL;
    v->dtype = dtype;
    v->shape = shape;
    v->layout = &ls_layout_plain;
    v->node = -1;
    v->var = -1;
    v->buffer = -1;
    g->values[g->n_values++] = v;
    return v;
}

ls_value ls_graph_input(ls_graph *g, const char *name, ls_dtype dtype, ls_shape shape)
{
    ls_vinfo *v;
    char buf[LS_SHAPE_TEXT];

    if (g->err.status != LS_OK) return (ls_value){g, -1};
    if (!ls_shape_valid(shape))
        return ls_graph_fail(g, LS_INVALID, "input \"%s\": impossible shape %s", name,
                             ls_shape_text(shape, buf));
    for (int32_t i = 0; i < g->n_values; i++)
        if (g->values[i]->kind == LS_VALUE_INPUT && strcmp(g->values[i]->name, name) == 0)
            return ls_graph_fail(g, LS_INVALID, "input \"%s\" is declared twice", name);
    v = lsi_graph_new_value(g, dtype, shape);
    if (v == NULL || (v->name = ls_arena_strdup(g->arena, name)) == NULL) return fail_nomem(g);
    v->kind = LS_VALUE_INPUT;
    return (ls_value){g, g->n_values - 1};
}

ls_value ls_graph_var(ls_graph *g, const char *name, ls_var_role role, ls_dtype dtype, ls_shape shape,
                      ls_init init)
{
    ls_vinfo *v;
    ls_var *var;
    char buf[LS_SHAPE_TEXT];

    if (g->err.status != LS_OK) return (ls_value){g, -1};
    if (!ls_shape_valid(shape))
        return ls_graph_fail(g, LS_INVALID, "variable \"%s\": impossible shape %s", name,
                             ls_shape_text(shape, buf));
    if (ls_graph_find_var(g, name) >= 0)
        return ls_graph_fail(g, LS_INVALID, "variable \"%s\" exists already; give the layer another name",
                             name);
    v = lsi_graph_new_value(g, dtype, shape);
    var = ls_arena_alloc(g->arena, sizeof *var);
    if (v == NULL || var == NULL || (v->name = ls_arena_strdup(g->arena, name)) == NULL) return fail_nomem(g);
    *var = (ls_var){
        .name = v->name, .role = role, .init = init, .first = g->n_values - 1, .current = g->n_values - 1};
    v->kind = LS_VALUE_VAR;
    v->var = g->n_vars;
    v->category = role == LS_VAR_OPTIMIZER     ? LS_CAT_OPTIMIZER
                  : role == LS_VAR_ACCUMULATED ? LS_CAT_GRADIENT
                                               : LS_CAT_WEIGHT;
    return lsi_graph_append_var(g, var) ? (ls_value){g, var->first} : fail_nomem(g);
}

bool lsi_graph_append_var(ls_graph *g, ls_var *var)
{
    if (!LS_GROW(LS_MEM_GRAPH, g->vars, g->n_vars + 1, g->cap_vars)) return false;
    g->vars[g->n_vars++] = var;
    return true;
}

ls_value ls_graph_variable(ls_graph *g, const char *name, ls_var_role role, ls_dtype dtype, ls_shape shape,
                           ls_init init)
{
    const int32_t var = ls_graph_find_var(g, name);
    char have[LS_SHAPE_TEXT], want[LS_SHAPE_TEXT];
    ls_value v;

    if (var < 0) return ls_graph_var(g, name, role, dtype, shape, init);
    v = (ls_value){g, g->vars[var]->current};
    if (g->vars[var]->role == role && ls_value_dtype(v) == dtype && ls_shape_equal(ls_value_shape(v), shape))
        return v;
    return ls_graph_fail(g, LS_INVALID,
                         "\"%s\" exists as %s %s, but this use needs %s %s; another name makes another one",
                         name, ls_dtype_name(ls_value_dtype(v)), ls_shape_text(ls_value_shape(v), have),
                         ls_dtype_name(dtype), ls_shape_text(shape, want));
}

ls_value ls_graph_scalar(ls_graph *g, const char *name)
{
    for (int32_t i = 0; i < g->n_values; i++) {
        const ls_vinfo *v = g->values[i];
        if (v->kind != LS_VALUE_INPUT || strcmp(v->name, name) != 0) continue;
        if (v->dtype == LS_F32 && v->shape.rank == 0) return (ls_value){g, i};
        return ls_graph_fail(g, LS_INVALID,
                             "the name \"%s\" belongs to a run-time scalar; call the input something else",
                             name);
    }
    return ls_graph_input(g, name, LS_F32, LS_SHAPE_SCALAR);
}

int32_t ls_graph_find_var(const ls_graph *g, const char *name)
{
    for (int32_t i = 0; i < g->n_vars; i++)
        if (strcmp(g->vars[i]->name, name) == 0) return i;
    return -1;
}

void ls_graph_advance(ls_graph *g, int32_t var, ls_value next)
{
    if (g->err.status != LS_OK) return;
    LS_BUG_IF(!ls_value_ok(next) || var < 0 || var >= g->n_vars);
    g->values[next.id]->var = var;
    g->values[next.id]->category = g->values[g->vars[var]->first]->category;
    g->vars[var]->current = next.id;
}

void ls_graph_fetch(ls_value v, const char *name)
{
    ls_vinfo *info;

    if (!ls_value_ok(v)) return;
    info = v.g->values[v.id];
    info->fetch = true;
    info->name = ls_arena_strdup(v.g->arena, name);
    if (info->name == NULL) fail_nomem(v.g);
}

/* -- nodes -------------------------------------------------------------------------------------------------
 */

static ls_node *new_node(ls_graph *g, const ls_op *op, int n_in, const ls_value *in, const void *attr)
{
    ls_node *n = ls_arena_alloc(g->arena, sizeof *n);

    if (n == NULL) return NULL;
    n->op = op;
    n->n_in = n_in;
    n->in = ls_arena_alloc(g->arena, sizeof *n->in * (size_t)(n_in + 1));
    if (n->in == NULL) return NULL;
    for (int i = 0; i < n_in; i++) n->in[i] = in[i].id;
    if (op->attr_size > 0) {
        n->attr = ls_arena_alloc(g->arena, op->attr_size);
        if (n->attr == NULL) return NULL;
        if (attr != NULL) memcpy(n->attr, attr, op->attr_size);
    }
    n->n_out = op->count_out != NULL ? op->count_out(n_in, n->attr) : op->n_out;
    n->out = ls_arena_alloc(g->arena, sizeof *n->out * (size_t)(n->n_out + 1));
    n->src = g->here;
    n->scope = g->scope;
    n->backward = g->backward;
    n->unit = g->unit;
    n->loss = g->loss;
    n->after = -1;
    return n->out != NULL ? n : NULL;
}

/* Runs the shape rule and gives the node its output values. */
static ls_value infer_outputs(ls_graph *g, ls_node *n)
{
    ls_shape *in = ls_arena_alloc(g->arena, sizeof *in * (size_t)(n->n_in + n->n_out + 1));
    ls_dtype *in_dtype = ls_arena_alloc(g->arena, sizeof *in_dtype * (size_t)(n->n_in + n->n_out + 1));
    ls_infer c;
    ls_err why = {0};
    char buf[LS_SHAPE_TEXT];

    if (in == NULL || in_dtype == NULL) return fail_nomem(g);
    for (int i = 0; i < n->n_in; i++) {
        in[i] = g->values[n->in[i]]->shape;
        in_dtype[i] = g->values[n->in[i]]->dtype;
    }
    c = (ls_infer){n->n_in, n->n_out, in_dtype, in, n->attr, in_dtype + n->n_in, in + n->n_in};
    for (int k = 0; k < n->n_out; k++) c.out_dtype[k] = n->n_in > 0 ? in_dtype[0] : LS_F32;
    if (n->op->infer(&c, &why) != LS_OK) return fail_infer(g, n->op, n->n_in, in, &why);
    for (int k = 0; k < n->n_out; k++) {
        ls_vinfo *v;
        if (!ls_shape_valid(c.out[k])) {
            ls_fail(&why, LS_INVALID, "output %d would have the impossible shape %s", k,
                    ls_shape_text(c.out[k], buf));
            return fail_infer(g, n->op, n->n_in, in, &why);
        }
        v = lsi_graph_new_value(g, c.out_dtype[k], c.out[k]);
        if (v == NULL) return fail_nomem(g);
        v->node = n->id;
        v->out = k;
        n->out[k] = g->n_values - 1;
    }
    return (ls_value){g, n->out[0]};
}

ls_value ls_graph_add(ls_graph *g, const ls_op *op, int n_in, const ls_value *in, const void *attr)
{
    ls_node *n;
    ls_value v;

    if (g == NULL) return (ls_value){NULL, -1};
    for (int i = 0; i < n_in; i++) {
        if (!ls_value_ok(in[i])) return (ls_value){g, -1}; /* its own error is already recorded */
        LS_BUG_IF(in[i].g != g);
    }
    if (g->err.status != LS_OK) return (ls_value){g, -1};
    if (n_in < op->min_in || (op->max_in >= 0 && n_in > op->max_in))
        return ls_graph_fail(g, LS_INVALID, "op %s takes %d to %d inputs, was given %d", op->name, op->min_in,
                             op->max_in, n_in);
    n = new_node(g, op, n_in, in, attr);
    if (n == NULL) return fail_nomem(g);
    n->id = g->n_nodes;
    v = infer_outputs(g, n);
    return !ls_value_ok(v) || lsi_graph_append_node(g, n) ? v : fail_nomem(g);
}

bool lsi_graph_append_node(ls_graph *g, ls_node *n)
{
    if (!LS_GROW(LS_MEM_GRAPH, g->nodes, g->n_nodes + 1, g->cap_nodes)) return false;
    n->position = n->id = g->n_nodes;
    n->queue = n->op->queue;
    g->nodes[g->n_nodes++] = n;
    return true;
}

ls_value ls_graph_out(ls_value v, int k)
{
    const ls_node *n;

    if (!ls_value_ok(v)) return v;
    LS_BUG_IF(v.g->values[v.id]->node < 0);
    n = v.g->nodes[v.g->values[v.id]->node];
    LS_BUG_IF(k < 0 || k >= n->n_out);
    return (ls_value){v.g, n->out[k]};
}

/* -- units -------------------------------------------------------------------------------------------------
 */

int32_t ls_graph_add_unit(ls_graph *g, const char *name)
{
    const char *copy;

    if (g->err.status != LS_OK) return 0;
    copy = ls_arena_strdup(g->arena, name);
    if (copy == NULL || !LS_GROW(LS_MEM_GRAPH, g->units, g->n_units + 1, g->cap_units)) {
        fail_nomem(g);
        return 0;
    }
    g->units[g->n_units++] = copy;
    return g->n_units;
}

/* -- control edges ----------------------------------------------------------------------------------------
 */

void ls_graph_order(ls_graph *g, int32_t from, int32_t to, ls_edge_kind kind)
{
    if (g->err.status != LS_OK || from == to) return;
    LS_BUG_IF(from < 0 || to < 0 || from >= g->n_nodes || to >= g->n_nodes);
    for (int32_t i = g->n_edges - 1; i >= 0; i--)
        if (g->edges[i].from == from && g->edges[i].to == to) return;
    if (!LS_GROW(LS_MEM_GRAPH, g->edges, g->n_edges + 1, g->cap_edges)) {
        fail_nomem(g);
        return;
    }
    g->edges[g->n_edges++] = (ls_edge){from, to, kind};
}
