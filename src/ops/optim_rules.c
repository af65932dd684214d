/* optim_rules.c: the layout of an optimiser's inputs and outputs, its checks, and the loop over a group. */
#include "ops/optim_rules.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/type_rules.h"

int ls_optim_states(const ls_op *op, const ls_optim_attr *a)
{
    int with_momentum = a->momentum != 0 ? 1 : 0;

    if (op == &ls_op_sgd) return with_momentum;
    if (op == &ls_op_rmsprop) return 1 + with_momentum;
    if (op == &ls_op_lars) return 1;
    LS_BUG_IF(op != &ls_op_adam && op != &ls_op_lamb);
    return 2;
}

bool ls_optim_by_element(const ls_op *op)
{
    return op == &ls_op_sgd || op == &ls_op_adam || op == &ls_op_rmsprop;
}

bool ls_optim_is(const ls_op *op)
{
    return ls_optim_by_element(op) || op == &ls_op_lars || op == &ls_op_lamb;
}

/* -- shape rule ---------------------------------------------------------------------------------------------
 */

ls_status lsi_optim_check(const ls_optim_attr *a, const ls_op *op, ls_err *err)
{
    if (!(a->momentum >= 0) || !(a->weight_decay >= 0) || !(a->eps >= 0) || !(a->trust >= 0))
        return ls_fail(err, LS_INVALID, "momentum, weight decay, eps and trust must not be negative");
    if (!(a->beta1 >= 0 && a->beta1 < 1) || !(a->beta2 >= 0 && a->beta2 < 1) ||
        !(a->alpha >= 0 && a->alpha < 1))
        return ls_fail(err, LS_INVALID, "beta1, beta2 and alpha must be in [0, 1)");
    if (a->nesterov && (op != &ls_op_sgd || a->momentum == 0))
        return ls_fail(err, LS_INVALID, "nesterov needs sgd with momentum");
    return LS_OK;
}

static ls_status check_scalars(const ls_infer *c, ls_dtype wide, ls_err *err)
{
    for (int i = LSI_OPTIM_LR; i <= LSI_OPTIM_SCALE; i++)
        if (c->in_dtype[i] != wide || c->in[i].rank > 1 || ls_shape_count(c->in[i]) != 1)
            return ls_fail(err, LS_INVALID, "the %s must be a scalar of type %s",
                           i == LSI_OPTIM_LR ? "learning rate" : "loss scale", ls_dtype_name(wide));
    if (c->in_dtype[LSI_OPTIM_T] != LS_I32 || !ls_shape_equal(c->in[LSI_OPTIM_T], LS_SHAPE(1)))
        return ls_fail(err, LS_INVALID, "the count of updates must be i32 (1)");
    return LS_OK;
}

/* Checks that input `i`, called `what` in the message, fits weight number `p` of the group. */
static ls_status check_like_weight(const ls_infer *c, int p, int i, ls_dtype want, const char *what,
                                   ls_err *err)
{
    ls_shape w = c->in[LSI_OPTIM_W + p];
    char a[LS_SHAPE_TEXT], b[LS_SHAPE_TEXT];

    if (c->in_dtype[i] == want && ls_shape_equal(c->in[i], w)) return LS_OK;
    return ls_fail(err, LS_INVALID, "parameter %d: its %s must be %s %s like the weight, but is %s %s", p,
                   what, ls_dtype_name(want), ls_shape_text(w, a), ls_dtype_name(c->in_dtype[i]),
                   ls_shape_text(c->in[i], b));
}

static ls_status check_param(const ls_infer *c, int p, int n, int n_states, ls_err *err)
{
    ls_dtype type = c->in_dtype[LSI_OPTIM_W + p], wide = lsi_wide_dtype(c->in_dtype[LSI_OPTIM_W]);
    ls_status st;

    if (!ls_dtype_is_float(type) || lsi_wide_dtype(type) != wide)
        return ls_fail(err, LS_INVALID, "parameter %d: its type %s does not fit a group of %s weights", p,
                       ls_dtype_name(type), ls_dtype_name(c->in_dtype[LSI_OPTIM_W]));
    st = check_like_weight(c, p, LSI_OPTIM_W + n + p, type, "gradient", err);
    for (int s = 0; s < n_states && st == LS_OK; s++)
        st =
            check_like_weight(c, p, LSI_OPTIM_W + (2 + s) * n + p, wide, s == 0 ? "state 0" : "state 1", err);
    return st;
}

ls_status lsi_optim_infer(ls_infer *c, const ls_op *op, ls_err *err)
{
    const ls_optim_attr *a = c->attr;
    int n_states = ls_optim_states(op, a);
    ls_status st = lsi_optim_check(a, op, err);

    if (st != LS_OK) return st;
    if (a->n < 1 || c->n_in != LSI_OPTIM_W + (2 + n_states) * a->n)
        return ls_fail(
            err, LS_INVALID,
            "%d parameters with %d states each need %d inputs (lr, loss scale, t, weights, gradients, "
            "states), got %d",
            a->n, n_states, LSI_OPTIM_W + (2 + n_states) * a->n, c->n_in);
    st = check_scalars(c, lsi_wide_dtype(c->in_dtype[LSI_OPTIM_W]), err);
    for (int p = 0; p < a->n && st == LS_OK; p++) st = check_param(c, p, a->n, n_states, err);
    for (int k = 0; k < c->n_out && st == LS_OK; k++) {
        int i = lsi_optim_alias(c->n_in, a, k);
        c->out[k] = c->in[i];
        c->out_dtype[k] = c->in_dtype[i];
    }
    return st;
}

int lsi_optim_count_out(int n_in, const void *attr)
{
    const ls_optim_attr *a = attr;
    int n = n_in - LSI_OPTIM_SCALE - 1 - a->n; /* all inputs but lr, loss scale and the gradients */

    return n > 1 ? n : 1; /* a wrong number of inputs is the shape rule's to report */
}

int lsi_optim_alias(int n_in, const void *attr, int k)
{
    const ls_optim_attr *a = attr;

    (void)n_in;
    return LSI_OPTIM_T + k + (k > a->n ? a->n : 0); /* states lie behind the gradients */
}

void lsi_optim_attr_text(const void *attr, char *buf, size_t n)
{
    static const char *const forms[] = {"torch", "tf", "adamw"};
    const ls_optim_attr *a = attr;

    const int used = snprintf(
        buf, n,
        "n=%d momentum=%.9g weight_decay=%.9g beta=%.9g,%.9g eps=%.9g alpha=%.9g trust=%.9g nesterov=%d "
        "form=%s%s%s",
        a->n, a->momentum, a->weight_decay, a->beta1, a->beta2, a->eps, a->alpha, a->trust,
        a->nesterov ? 1 : 0, (unsigned)a->form < 3 ? forms[a->form] : "?", a->more ? " part" : "",
        a->later ? " later" : "");
    if (a->pieces > 0 && (size_t)used < n)
        snprintf(buf + used, n - (size_t)used, " piece=%d/%d", a->piece, a->pieces);
}

double lsi_optim_flops(const ls_graph *g, const ls_node *node, double per_element)
{
    const ls_optim_attr *a = node->attr;
    double count = 0;

    for (int p = 0; p < a->n; p++)
        count += (double)ls_shape_count(*ls_node_in_shape(g, node, LSI_OPTIM_W + p));
    return per_element * count;
}

/* -- reference kernels
 * ---------------------------------------------------------------------------------------- */

/* Everything as it was. */
static void leave_out(const ls_ref_call *c)
{
    for (int k = 0; k < c->n_out; k++)
        memcpy(c->out[k].d, c->in[lsi_optim_alias(c->n_in, c->attr, k)].d,
               sizeof(double) * (size_t)c->out[k].count);
}

void lsi_ref_optim(const ls_ref_call *c, lsi_optim_update update)
{
    const ls_optim_attr *a = c->attr;
    int n = a->n, n_states = (c->n_in - LSI_OPTIM_W) / n - 2;
    lsi_optim_step step = {a, c->in[LSI_OPTIM_LR].d[0], c->in[LSI_OPTIM_SCALE].d[0],
                           c->in[LSI_OPTIM_T].d[0] + 1};

    if (step.loss_scale == 0) {
        leave_out(c);
        return;
    }
    c->out[0].d[0] = step.attr->more ? step.t - 1 : step.t;
    for (int i = 0; i < n; i++) {
        const ls_ref_tensor *w = &c->in[LSI_OPTIM_W + i];
        lsi_param p = {
            .count = w->count, .rank = w->shape.rank, .w = w->d, .g = w[n].d, .w_new = c->out[1 + i].d};
        for (int s = 0; s < n_states; s++) {
            p.s[s] = w[(2 + s) * n].d;
            p.s_new[s] = c->out[1 + i + (1 + s) * n].d;
        }
        update(&step, &p);
    }
}

void lsi_optim_moments(const lsi_optim_step *step, const lsi_param *p, int64_t i, double g)
{
    double b1 = step->attr->beta1, b2 = step->attr->beta2;

    p->s_new[0][i] = b1 * p->s[0][i] + (1 - b1) * g;
    p->s_new[1][i] = b2 * p->s[1][i] + (1 - b2) * g * g;
}

double lsi_norm(const double *x, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sqrt(sum);
}
