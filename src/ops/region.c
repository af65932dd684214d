/* region: nodes that a device computes as one (ops.h).  The reference runs its members one after the other.
 */
#include <stdio.h>
#include <string.h>

#include "ops/pointwise_rules.h"

static int count_out(int n_in, const void *attr)
{
    (void)n_in;
    return ((const ls_region_attr *)attr)->n_out;
}

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_region_attr *a = c->attr;

    if (c->n_in != a->n_in)
        return ls_fail(err, LS_INVALID, "its members read %d values, not %d", a->n_in, c->n_in);
    for (int k = 0; k < a->n_out; k++) {
        c->out[k] = a->g->values[a->out[k]]->shape;
        c->out_dtype[k] = a->g->values[a->out[k]]->dtype;
    }
    return LS_OK;
}

static int place_in(const int32_t *list, int n, int32_t value)
{
    for (int i = 0; i < n; i++)
        if (list[i] == value) return i;
    return -1;
}

/* What an optimiser among the members writes over. */
static int alias(int n_in, const void *attr, int k)
{
    const ls_region_attr *a = attr;
    const ls_node *maker = a->g->nodes[a->g->values[a->out[k]]->node];

    (void)n_in;
    if (!(maker->op->flags & LS_OP_UPDATE)) return -1;
    return place_in(
        a->in, a->n_in,
        maker->in[maker->op->alias(maker->n_in, maker->attr, place_in(maker->out, maker->n_out, a->out[k]))]);
}

static double flops(const ls_graph *g, const ls_node *n)
{
    const ls_region_attr *a = n->attr;
    double sum = 0;

    for (int i = 0; i < a->n; i++) sum += ls_node_flops(g, a->members[i]);
    return sum;
}

/* -- the reference ----------------------------------------------------------------------------------------
 */

/* Values of members: what the region reads and makes, and what is only inside. */
typedef struct values {
    const ls_region_attr *a;
    const ls_ref_call *call;
    double **inside; /* by number; memory of its own */
} values;

static ls_ref_tensor value_of(const values *v, int32_t id)
{
    const ls_shape shape = v->a->g->values[id]->shape;

    for (int i = 0; i < v->a->n_in; i++)
        if (v->a->in[i] == id) return v->call->in[i];
    for (int k = 0; k < v->a->n_out; k++)
        if (v->a->out[k] == id) return v->call->out[k];
    if (v->inside[id] == NULL)
        v->inside[id] = ls_alloc(LS_MEM_PLAN, sizeof(double) * ((size_t)ls_shape_count(shape) + 1));
    LS_BUG_IF(v->inside[id] == NULL);
    return (ls_ref_tensor){v->inside[id], shape, ls_shape_count(shape)};
}

static void run_member(const values *v, const ls_node *n)
{
    ls_ref_tensor *t = ls_alloc(LS_MEM_PLAN, sizeof *t * (size_t)(n->n_in + n->n_out));
    ls_ref_call c = {n->n_in, n->n_out, t, t + n->n_in, n->attr};

    LS_BUG_IF(t == NULL);
    for (int i = 0; i < n->n_in; i++) t[i] = value_of(v, n->in[i]);
    for (int k = 0; k < n->n_out; k++) t[n->n_in + k] = value_of(v, n->out[k]);
    if (n->op->flags & LS_OP_VIEW)
        memcpy(c.out[0].d, c.in[0].d, sizeof(double) * (size_t)c.out[0].count);
    else if (n->op->ref != NULL)
        n->op->ref(&c);
    else
        lsi_ref_pointwise(n->op, &c);
    ls_free(t);
}

static void ref(const ls_ref_call *c)
{
    const ls_region_attr *a = c->attr;
    values v = {a, c, ls_alloc(LS_MEM_PLAN, sizeof *v.inside * ((size_t)a->g->n_values + 1))};

    LS_BUG_IF(v.inside == NULL);
    for (int i = 0; i < a->n; i++) run_member(&v, a->members[i]);
    for (int32_t i = 0; i < a->g->n_values; i++) ls_free(v.inside[i]);
    ls_free(v.inside);
}

static void attr_text(const void *attr, char *buf, size_t n)
{
    const ls_region_attr *a = attr;
    size_t at = (size_t)snprintf(buf, n, "samples=%lld members=%d", (long long)a->samples, a->n);

    for (int i = 0; i < a->n && at < n; i++)
        at += (size_t)snprintf(buf + at, n - at, "%c%s", i == 0 ? ' ' : ',', a->members[i]->op->name);
}

const ls_op ls_op_region = {
    .name = "region",
    .min_in = 1,
    .max_in = -1,
    .n_out = 1,
    .attr_size = sizeof(ls_region_attr),
    .flags = LS_OP_NO_GRAD,
    .count_out = count_out,
    .infer = infer,
    .flops = flops,
    .ref = ref,
    .attr_text = attr_text,
};

const ls_op ls_op_region_update = {
    .name = "region_update",
    .min_in = 1,
    .max_in = -1,
    .n_out = 1,
    .attr_size = sizeof(ls_region_attr),
    .flags = LS_OP_NO_GRAD | LS_OP_UPDATE,
    .count_out = count_out,
    .infer = infer,
    .flops = flops,
    .alias = alias,
    .ref = ref,
    .attr_text = attr_text,
};
