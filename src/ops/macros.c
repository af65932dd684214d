/* macros.c: gradients, update, keep: shape rules of what passes expand. */
#include "ops/macros.h"

#include <stdio.h>

#include "ops/optim_rules.h"
#include "ops/type_rules.h"

/* -- gradients --------------------------------------------------------------------------------------------
 */

static int count_gradients(int n_in, const void *attr)
{
    (void)n_in;
    return ((const ls_gradients_attr *)attr)->n;
}

static ls_status infer_gradients(ls_infer *c, ls_err *err)
{
    const int first = ((const ls_gradients_attr *)c->attr)->seeded ? 2 : 1;
    const bool wide = ((const ls_gradients_attr *)c->attr)->wide;

    if (c->n_in != first + c->n_out)
        return ls_fail(err, LS_INVALID, "%d gradients need %d inputs, got %d", c->n_out, first + c->n_out,
                       c->n_in);
    for (int k = 0; k < c->n_out; k++) {
        c->out[k] = c->in[first + k];
        c->out_dtype[k] = wide ? lsi_wide_dtype(c->in_dtype[first + k]) : c->in_dtype[first + k];
    }
    return LS_OK;
}

static void gradients_text(const void *attr, char *buf, size_t n)
{
    const ls_gradients_attr *a = attr;

    snprintf(buf, n, "n=%d%s%s", a->n, a->seeded ? " seeded" : "", a->wide ? " wide" : "");
}

const ls_op ls_op_gradients = {
    .name = "gradients",
    .min_in = 2,
    .max_in = -1,
    .attr_size = sizeof(ls_gradients_attr),
    .count_out = count_gradients,
    .infer = infer_gradients,
    .attr_text = gradients_text,
};

ls_value ls_gradients(ls_value y, ls_value seed, int n, const ls_value *x, ls_value *in)
{
    const ls_gradients_attr a = {.n = n, .seeded = ls_value_ok(seed)};
    int n_in = 0;

    in[n_in++] = y;
    if (a.seeded) in[n_in++] = seed;
    for (int i = 0; i < n; i++) in[n_in++] = x[i];
    return ls_graph_add(y.g, &ls_op_gradients, n_in, in, &a);
}

/* -- update -----------------------------------------------------------------------------------------------
 */

static int count_weights(int n_in, const void *attr)
{
    (void)n_in;
    return ((const ls_update_attr *)attr)->how.n;
}

static ls_status infer_update(ls_infer *c, ls_err *err)
{
    const ls_update_attr *a = c->attr;

    if (c->n_in != LS_UPDATE_W + 2 * a->how.n)
        return ls_fail(err, LS_INVALID, "%d weights need %d inputs, got %d", a->how.n,
                       LS_UPDATE_W + 2 * a->how.n, c->n_in);
    for (int k = 0; k < c->n_out; k++) {
        c->out[k] = c->in[LS_UPDATE_W + k];
        c->out_dtype[k] = c->in_dtype[LS_UPDATE_W + k];
    }
    return lsi_optim_check(&a->how, a->rule, err);
}

static int update_alias(int n_in, const void *attr, int k)
{
    (void)n_in;
    (void)attr;
    return LS_UPDATE_W + k;
}

static void update_text(const void *attr, char *buf, size_t n)
{
    const ls_update_attr *a = attr;
    const int used = snprintf(buf, n, "%s ", a->rule->name);

    if ((size_t)used < n) lsi_optim_attr_text(&a->how, buf + used, n - (size_t)used);
}

const ls_op ls_op_update = {
    .name = "update",
    .min_in = LS_UPDATE_W + 2,
    .max_in = -1,
    .attr_size = sizeof(ls_update_attr),
    .flags = LS_OP_UPDATE | LS_OP_NO_GRAD,
    .count_out = count_weights,
    .infer = infer_update,
    .alias = update_alias,
    .attr_text = update_text,
};

ls_value ls_update(const ls_value *in, const ls_update_attr *a)
{
    return ls_graph_add(in[0].g, &ls_op_update, LS_UPDATE_W + 2 * a->how.n, in, a);
}

int32_t ls_update_weight(const ls_node *update, int k)
{
    return update->in[LS_UPDATE_W + k];
}

int32_t ls_update_gradient(const ls_node *update, int k)
{
    return update->in[LS_UPDATE_W + update->n_out + k];
}

const ls_node *ls_update_gradients(const ls_graph *g, const ls_node *update)
{
    const int32_t node = g->values[ls_update_gradient(update, 0)]->node;

    return node >= 0 && g->nodes[node]->op == &ls_op_gradients ? g->nodes[node] : NULL;
}

const char *ls_update_parameter(const ls_graph *record, int64_t k)
{
    for (int32_t i = 0; i < record->n_nodes && k >= 0; i++) {
        const ls_node *n = record->nodes[i];
        if (n->op != &ls_op_update) continue;
        if (k < n->n_out) return record->vars[record->values[n->out[k]]->var]->name;
        k -= n->n_out;
    }
    return NULL;
}

/* -- keep -------------------------------------------------------------------------------------------------
 */

static ls_status infer_keep(ls_infer *c, ls_err *err)
{
    const bool by_place = ((const ls_keep_attr *)c->attr)->by_place;

    if (c->n_in != (by_place ? LS_KEEP_PLACES : LS_KEEP_PLACES + 1) ||
        c->in[LS_KEEP_X].dim[0] != c->in[LS_KEEP_SLOTS].dim[0])
        return ls_fail(err, LS_INVALID, "every row needs a slot");
    for (int k = 0; k < 2; k++) {
        c->out[k] = c->in[k];
        c->out_dtype[k] = c->in_dtype[k];
    }
    return LS_OK;
}

static int keep_alias(int n_in, const void *attr, int k)
{
    (void)n_in;
    (void)attr;
    return k;
}

static void keep_text(const void *attr, char *buf, size_t n)
{
    snprintf(buf, n, "%s", ((const ls_keep_attr *)attr)->by_place ? "by_place" : "");
}

const ls_op ls_op_keep = {
    .name = "keep",
    .min_in = LS_KEEP_PLACES,
    .max_in = LS_KEEP_PLACES + 1,
    .n_out = 2,
    .attr_size = sizeof(ls_keep_attr),
    .flags = LS_OP_UPDATE | LS_OP_NO_GRAD,
    .infer = infer_keep,
    .alias = keep_alias,
    .attr_text = keep_text,
};

ls_value ls_keep(const ls_value *in, ls_keep_attr a)
{
    return ls_graph_add(in[0].g, &ls_op_keep, a.by_place ? LS_KEEP_PLACES : LS_KEEP_PLACES + 1, in, &a);
}
