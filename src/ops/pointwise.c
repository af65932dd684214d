/* pointwise: a chain of element-wise functions in one pass over memory.  Fusion makes it after
 * differentiation, so it has no gradient.  The functions stand in the files of the ops they come from; this
 * file finds them by their code. */
#include "ops/pointwise_rules.h"

#include <stdio.h>

static const ls_op *find_op(ls_pw pw)
{
    int n;
    const ls_op *const *ops = ls_ops_all(&n);

    for (int i = 0; i < n; i++)
        if (ops[i]->pw == pw && pw != LS_PW_NONE) return ops[i];
    LS_BUG_IF(true);
}

double ls_pw_eval(ls_pw pw, double a, double b, const double *p)
{
    return find_op(pw)->pw_eval(a, b, p);
}

bool ls_pw_is_binary(ls_pw pw)
{
    return find_op(pw)->min_in == 2;
}

const char *ls_pw_name(ls_pw pw)
{
    return find_op(pw)->name;
}

static ls_status check_steps(const ls_pointwise_attr *a, int n_in, ls_err *err)
{
    if (a->n_steps < 1 || a->n_steps > LS_PW_MAX_STEPS)
        return ls_fail(err, LS_INVALID, "%d steps, must be 1..%d", a->n_steps, LS_PW_MAX_STEPS);
    for (int i = 0; i < a->n_steps; i++) {
        int last = n_in + i - 1; /* the newest register that holds something */
        if (a->step[i].pw <= LS_PW_NONE || a->step[i].pw >= LS_PW_N)
            return ls_fail(err, LS_INVALID, "step %d: there is no function number %d", i, (int)a->step[i].pw);
        if (a->step[i].a < 0 || a->step[i].a > last || a->step[i].b < 0 || a->step[i].b > last)
            return ls_fail(err, LS_INVALID, "step %d (%s) reads registers %d and %d, must be 0..%d", i,
                           ls_pw_name(a->step[i].pw), a->step[i].a, a->step[i].b, last);
    }
    return LS_OK;
}

static ls_status infer(ls_infer *c, ls_err *err)
{
    char text[LS_SHAPE_TEXT];

    c->out[0] = c->in[0];
    for (int i = 0; i < c->n_in; i++) {
        if (!ls_dtype_is_float(c->in_dtype[i]) || c->in_dtype[i] != c->in_dtype[0])
            return ls_fail(err, LS_INVALID, "needs one floating type, got %s and %s",
                           ls_dtype_name(c->in_dtype[0]), ls_dtype_name(c->in_dtype[i]));
        if (!ls_shape_broadcast(c->out[0], c->in[i], &c->out[0]))
            return ls_fail(err, LS_INVALID, "the shapes cannot be broadcast together");
    }
    for (int i = 0; i < c->n_in; i++)
        if (ls_shape_count(c->in[i]) != 1 && !ls_shape_equal(c->in[i], c->out[0]))
            return ls_fail(err, LS_INVALID,
                           "input %d is neither of the result's shape %s nor a single element", i,
                           ls_shape_text(c->out[0], text));
    return check_steps(c->attr, c->n_in, err);
}

static double flops(const ls_graph *g, const ls_node *n)
{
    const ls_pointwise_attr *a = n->attr;
    int counted = 0;

    for (int i = 0; i < a->n_steps; i++)
        if (a->step[i].pw != LS_PW_COPY) counted++;
    return counted * (double)ls_shape_count(*ls_node_out_shape(g, n, 0));
}

static void ref(const ls_ref_call *c)
{
    const ls_pointwise_attr *a = c->attr;
    const ls_op *op[LS_PW_MAX_STEPS];
    double reg[LS_PW_MAX_INPUTS + LS_PW_MAX_STEPS];

    for (int k = 0; k < a->n_steps; k++) op[k] = find_op(a->step[k].pw);
    for (int64_t i = 0; i < c->out[0].count; i++) {
        for (int k = 0; k < c->n_in; k++) reg[k] = c->in[k].d[c->in[k].count == 1 ? 0 : i];
        for (int k = 0; k < a->n_steps; k++)
            reg[c->n_in + k] = op[k]->pw_eval(reg[a->step[k].a], reg[a->step[k].b], a->step[k].p);
        c->out[0].d[i] = reg[c->n_in + a->n_steps - 1];
    }
}

/* "add 0 1; affine 2 0.5 1; relu 3": the functions with their registers, and parameters where they have any.
 */
static void attr_text(const void *attr, char *buf, size_t n)
{
    const ls_pointwise_attr *a = attr;
    size_t used = 0;

    buf[0] = '\0';
    for (int i = 0; i < a->n_steps && used < n; i++) {
        const ls_op *op = find_op(a->step[i].pw);
        used += (size_t)snprintf(buf + used, n - used, "%s%s %d", i ? "; " : "", op->name, a->step[i].a);
        if (op->min_in == 2 && used < n) used += (size_t)snprintf(buf + used, n - used, " %d", a->step[i].b);
        if (op->attr_size > 0 && used < n)
            used += (size_t)snprintf(buf + used, n - used, " %.9g %.9g", a->step[i].p[0], a->step[i].p[1]);
    }
}

const ls_op ls_op_pointwise = {
    .name = "pointwise",
    .min_in = 1,
    .max_in = LS_PW_MAX_INPUTS,
    .n_out = 1,
    .attr_size = sizeof(ls_pointwise_attr),
    .flags = LS_OP_INPLACE,
    .infer = infer,
    .flops = flops,
    .ref = ref,
    .attr_text = attr_text,
};
