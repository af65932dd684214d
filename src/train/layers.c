/* layers.c: gathers the nodes of plans by layer, folds, and prints. */
#include "train/layers.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "bench/flops.h"
#include "events/table.h"
#include "exec/document.h"

#define OTHER "other"

/* -- gathering --------------------------------------------------------------------------------------------
 */

/* Copies the first `depth` dotted parts of `name`. */
static void prefix_of(const char *name, int depth, char out[LS_LAYER_NAME])
{
    size_t n = 0;

    for (; name[n] != '\0' && n + 1 < LS_LAYER_NAME; n++)
        if (name[n] == '.' && --depth == 0) break;
    memcpy(out, name, n);
    out[n] = '\0';
}

static int depth_of(const char *name)
{
    int depth = 1;

    for (; *name != '\0'; name++) depth += *name == '.';
    return depth;
}

static bool is_inside(const char *name, const char *outer)
{
    size_t n = strlen(outer);

    return strncmp(name, outer, n) == 0 && name[n] == '.';
}

static ls_layer *find(ls_layers *l, const char *name)
{
    for (int i = 0; i < l->n; i++)
        if (strcmp(l->rows[i].name, name) == 0) return &l->rows[i];
    return NULL;
}

static ls_layer *find_or_add(ls_layers *l, const char *name)
{
    ls_layer *row = find(l, name);

    if (row != NULL) return row;
    row = &l->rows[l->n++];
    *row = (ls_layer){.n = 1};
    snprintf(row->name, sizeof row->name, "%s", name);
    return row;
}

/* One row per scope.  There is room for as many as there are nodes, and one. */
static void gather(ls_layers *l, const ls_document *d)
{
    for (int32_t i = 0; i < d->n_nodes; i++) {
        const ls_doc_node *node = &d->nodes[i];
        const double flops = ls_product_flops(node->op, node->flops) / (double)l->batch;
        const bool named = node->layer[0] != '\0';
        ls_layer *row;
        l->step += flops;
        if (!node->backward) l->forward += flops;
        if (named && strncmp(node->layer, "optimizer.", 10) == 0) continue;
        if (!named && flops == 0) continue; /* activations and losses */
        row = find_or_add(l, named ? node->layer : OTHER);
        row->step += flops;
        if (node->backward) continue;
        row->forward += flops;
        if (named && node->n_out > 0) row->shape = d->values[node->out[0]].shape;
    }
}

/* Parameters by the layers' names.  A scope around layers is none itself: it goes, unless it counts. */
static void settle(ls_layers *l, const ls_step *step)
{
    int64_t left = l->params;
    int n = 0;

    for (int i = 0; i < l->n; i++) {
        ls_layer row = l->rows[i];
        char glob[2 * LS_LAYER_NAME + 8];
        bool outer = false;
        for (int k = 0; k < l->n; k++) outer = outer || is_inside(l->rows[k].name, row.name);
        snprintf(glob, sizeof glob, "%s %s.*", row.name, row.name);
        if (!outer) row.params = ls_step_count_params(step, glob);
        if (outer && row.step == 0) row.n = 0; /* kept until folding: it has the last word on the shape */
        left -= row.params;
        l->rows[n++] = row;
    }
    l->n = n;
    if (left > 0) find_or_add(l, OTHER)->params = left; /* of no layer: a table that is only added */
}

/* -- folding ----------------------------------------------------------------------------------------------
 */

static void add(ls_layer *to, const ls_layer *from)
{
    to->n += from->n;
    to->params += from->params;
    to->forward += from->forward;
    to->step += from->step;
}

/* Rows that remain when names are cut to `depth` parts; in place, unless only counting. */
static int fold(ls_layers *l, int depth, bool count_only)
{
    ls_layers to = {.rows = l->rows};
    int n = 0;

    for (int i = 0; i < l->n; i++) {
        const ls_layer row = l->rows[i];
        char name[LS_LAYER_NAME], before[LS_LAYER_NAME];
        ls_layer *at;
        prefix_of(row.name, depth, name);
        if (count_only) {
            bool seen = row.n == 0 && depth_of(row.name) < depth;
            for (int k = 0; k < i && !seen; k++) {
                prefix_of(l->rows[k].name, depth, before);
                seen = strcmp(name, before) == 0;
            }
            n += !seen;
            continue;
        }
        at = find(&to, name);
        if (at == NULL) {
            at = &to.rows[to.n++];
            *at = row;
            snprintf(at->name, sizeof at->name, "%s", name);
            continue;
        }
        add(at, &row);
        if (row.shape.rank > 0) at->shape = row.shape;
    }
    if (count_only) return n;
    l->n = to.n;
    return to.n;
}

/* Scopes that are no layers have done their part. */
static void drop_empty(ls_layers *l)
{
    int n = 0;

    for (int i = 0; i < l->n; i++)
        if (l->rows[i].n > 0) l->rows[n++] = l->rows[i];
    l->n = n;
}

/* The rows in the middle become one. */
static void cut_middle(ls_layers *l, int max_rows)
{
    const int head = max_rows / 2, tail = max_rows - head - 1, cut = l->n - head - tail;
    ls_layer *middle = &l->rows[head];

    for (int i = head + 1; i < head + cut; i++) add(middle, &l->rows[i]);
    snprintf(middle->name, sizeof middle->name, "...");
    middle->shape = (ls_shape){0};
    memmove(middle + 1, &l->rows[l->n - tail], (size_t)tail * sizeof *l->rows);
    l->n = max_rows;
}

static ls_status layers_of(ls_layers *out, const ls_step *step, int n_plans, const ls_plan *const *plans,
                           int max_rows, ls_err *err)
{
    size_t nodes = 0;
    int depth = 1;

    *out = (ls_layers){.batch = ls_step_batch(step), .params = ls_step_count_params(step, "*")};
    for (int i = 0; i < n_plans; i++) nodes += (size_t)ls_plan_node_count(plans[i]);
    out->rows = ls_alloc(LS_MEM_CLI, (nodes + 1) * sizeof *out->rows);
    if (out->rows == NULL) return ls_fail(err, LS_NOMEM, "layers: no memory");
    for (int i = 0; i < n_plans; i++) {
        ls_document d;
        const ls_status st = ls_document_make(&d, plans[i], err);
        if (st == LS_OK) gather(out, &d);
        ls_document_release(&d);
        if (st != LS_OK) return st;
    }
    settle(out, step);
    for (int i = 0; i < out->n; i++)
        if (depth_of(out->rows[i].name) > depth) depth = depth_of(out->rows[i].name);
    while (max_rows > 0 && depth > 1 && fold(out, depth, true) > max_rows) depth--;
    fold(out, depth, false);
    drop_empty(out);
    if (max_rows > 0 && out->n > max_rows) cut_middle(out, max_rows);
    return LS_OK;
}

ls_status ls_layers_of(ls_layers *out, const ls_step *step, const ls_plan *plan, int max_rows, ls_err *err)
{
    return layers_of(out, step, 1, (const ls_plan *const[]){plan}, max_rows, err);
}

ls_status ls_layers_of_session(ls_layers *out, const ls_session *s, int max_rows, ls_err *err)
{
    const ls_plan *plans[LS_SESSION_STAGES];

    for (int i = 0; i < s->n_stages; i++) plans[i] = ls_session_usual(s, i)->plan;
    return layers_of(out, ls_session_usual(s, 0)->step, s->n_stages, plans, max_rows, err);
}

void ls_layers_release(ls_layers *l)
{
    ls_free(l->rows);
    *l = (ls_layers){0};
}

/* -- showing ----------------------------------------------------------------------------------------------
 */

/* "10x24x24": of one sample, where the first dimension is the batch. */
static void shape_text(ls_shape s, int64_t batch, char *buf, size_t size)
{
    const int first = s.rank > 1 && s.dim[0] == batch ? 1 : 0;
    size_t at = 0;

    buf[0] = '\0';
    for (int i = first; i < s.rank && at < size; i++)
        at += (size_t)snprintf(buf + at, size - at, "%s%lld", i > first ? "x" : "", (long long)s.dim[i]);
}

static void add_row(ls_table *t, const char *name, const char *shape, int64_t params, double forward,
                    double step)
{
    char a[32], b[32], c[32];

    ls_table_row(t, (const char *[]){name, shape, ls_text_count(params, a), ls_text_si(forward, b),
                                     ls_text_si(step, c)});
}

ls_status ls_layers_table(const ls_layers *l, ls_text *out, ls_err *err)
{
    ls_table *t = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_table_create(&t, "llrrr", err));
    ls_table_row(t, (const char *[]){"layer", "output", "parameters", "FLOP forward", "FLOP step"});
    ls_table_rule(t);
    for (int i = 0; i < l->n; i++) {
        const ls_layer *row = &l->rows[i];
        char name[LS_LAYER_NAME + 32], shape[96];
        snprintf(name, sizeof name, row->n > 1 ? "%s (%d layers)" : "%s", row->name, row->n);
        shape_text(row->shape, l->batch, shape, sizeof shape);
        add_row(t, name, shape, row->params, row->forward, row->step);
    }
    ls_table_rule(t);
    add_row(t, "total, per sample", "", l->params, l->forward, l->step);
    LS_TRY(ls_table_print(t, out, err));
out:
    ls_table_destroy(t);
    return st;
}

json_t *ls_layers_json(const ls_layers *l)
{
    json_t *list = json_array();

    for (int i = 0; i < l->n; i++) {
        const ls_layer *row = &l->rows[i];
        json_t *shape = json_array();
        for (int k = 0; k < row->shape.rank; k++)
            json_array_append_new(shape, json_integer((json_int_t)row->shape.dim[k]));
        json_array_append_new(list, json_pack("{s:s, s:o, s:I, s:f, s:f}", "name", row->name, "shape", shape,
                                              "parameters", (json_int_t)row->params, "forward_flops",
                                              row->forward, "step_flops", row->step));
    }
    return json_pack("{s:s, s:o, s:I, s:f, s:f}", "event", "model", "layers", list, "parameters",
                     (json_int_t)l->params, "forward_flops", l->forward, "step_flops", l->step);
}
