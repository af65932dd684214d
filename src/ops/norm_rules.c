/* norm_rules.c: forms, checks, costs and reference kernels of the three norms. */
#include "ops/norm_rules.h"

#include "ops/pool_rules.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* -- forms
 * -------------------------------------------------------------------------------------------------------- */

/* The shape of x with ones in the dimensions outside of `keep`. */
static ls_shape row_shape(ls_shape x, unsigned keep)
{
    for (int i = 0; i < x.rank; i++)
        if (!(keep & 1u << i)) x.dim[i] = 1;
    return x;
}

static int64_t count_from(ls_shape s, int first)
{
    int64_t n = 1;

    for (int i = first; i < s.rank; i++) n *= s.dim[i];
    return n;
}

lsi_norm_form lsi_batch_norm_form(ls_shape x)
{
    unsigned all = (1u << x.rank) - 1;
    lsi_norm_form f = {x.dim[0], x.dim[1], count_from(x, 2), LSI_AFFINE_GROUP, all & ~2u, {0}, {0}, {0}};

    f.stat = LS_SHAPE(x.dim[1]);
    f.stat_row = row_shape(x, 2u);
    f.affine_row = f.stat_row;
    return f;
}

lsi_norm_form lsi_instance_norm_form(ls_shape x)
{
    lsi_norm_form f = {1, x.dim[0] * x.dim[1], count_from(x, 2), LSI_AFFINE_NONE, 12u, {0}, {0}, {0}};

    f.stat = LS_SHAPE(x.dim[0], x.dim[1]);
    f.stat_row = row_shape(x, 3u);
    return f;
}

lsi_norm_form lsi_layer_norm_form(ls_shape x)
{
    int last = x.rank - 1;
    unsigned axis = 1u << last, all = (1u << x.rank) - 1;
    lsi_norm_form f = {1, 1, x.dim[last], LSI_AFFINE_INNER, axis, {0}, {0}, {0}};

    f.stat = ls_shape_make(last, x.dim);
    f.groups = ls_shape_count(f.stat);
    f.stat_row = row_shape(x, all & ~axis);
    f.affine_row = row_shape(x, axis);
    return f;
}

/* -- shape rules
 * -------------------------------------------------------------------------------------------------- */

ls_status lsi_norm_check(const ls_infer *c, int x, int n_in, ls_err *err)
{
    const ls_norm_attr *a = c->attr;

    if (!ls_dtype_is_float(c->in_dtype[x]))
        return ls_fail(err, LS_INVALID, "needs a floating type, got %s", ls_dtype_name(c->in_dtype[x]));
    if (!(a->eps >= 0)) return ls_fail(err, LS_INVALID, "eps must not be negative, got %g", a->eps);
    if (c->n_in != n_in)
        return ls_fail(err, LS_INVALID, "with these attributes takes %d inputs, was given %d", n_in, c->n_in);
    return LS_OK;
}

static ls_status check_input(const ls_infer *c, int i, const char *name, ls_dtype dtype, ls_shape shape,
                             ls_err *err)
{
    char want[LS_SHAPE_TEXT], got[LS_SHAPE_TEXT];

    if (c->in_dtype[i] == dtype && ls_shape_equal(c->in[i], shape)) return LS_OK;
    return ls_fail(err, LS_INVALID, "%s must be %s %s, got %s %s", name, ls_dtype_name(dtype),
                   ls_shape_text(shape, want), ls_dtype_name(c->in_dtype[i]), ls_shape_text(c->in[i], got));
}

ls_status lsi_norm_check_like(const ls_infer *c, int x, int i, const char *name, ls_err *err)
{
    return check_input(c, i, name, c->in_dtype[x], c->in[x], err);
}

ls_status lsi_norm_check_stat(const ls_infer *c, int x, int i, const char *name, ls_shape shape, ls_err *err)
{
    return check_input(c, i, name, lsi_wide_dtype(c->in_dtype[x]), shape, err);
}

ls_status lsi_norm_check_act(const ls_norm_attr *a, ls_err *err)
{
    if (a->act == LS_ACT_GELU)
        return ls_fail(err, LS_INVALID, "the gradient of %s does not follow from its result",
                       ls_act_name(a->act));
    return LS_OK;
}

bool lsi_norm_act_by_sign(const ls_norm_attr *a)
{
    return a->act == LS_ACT_RELU || (a->act == LS_ACT_LEAKY && a->slope > 0);
}

ls_status lsi_norm_check_unfused(const ls_norm_attr *a, ls_err *err)
{
    if (a->act != LS_ACT_NONE || a->residual)
        return ls_fail(err, LS_INVALID, "carries neither activation nor residual");
    return LS_OK;
}

void lsi_norm_attr_text(const void *attr, char *buf, size_t n)
{
    const ls_norm_attr *a = attr;

    snprintf(buf, n, "eps=%.9g momentum=%.9g%s act=%s:%.9g%s%s%s", a->eps, a->momentum,
             a->unbiased_running ? " unbiased" : "", ls_act_name(a->act), a->slope,
             a->residual ? " residual" : "", a->by_beta ? " by_beta" : "", a->sums ? " sums" : "");
}

void lsi_norm_pool_attr_text(const void *attr, char *buf, size_t n)
{
    const ls_norm_pool_attr *a = attr;
    char norm[160], pool[128];

    lsi_norm_attr_text(&a->norm, norm, sizeof norm);
    lsi_pool_attr_text(&a->pool, pool, sizeof pool);
    snprintf(buf, n, "%s pool: %s", norm, pool);
}

/* -- costs
 * ----------------------------------------------------------------------------------------------------------
 */

double lsi_norm_flops(const ls_graph *g, const ls_node *n)
{
    return 6.0 * (double)ls_shape_count(*ls_node_in_shape(g, n, 0));
}

double lsi_norm_grad_flops(const ls_graph *g, const ls_node *n)
{
    return 9.0 * (double)ls_shape_count(*ls_node_in_shape(g, n, 0));
}

/* -- reference kernels
 * ------------------------------------------------------------------------------------------------ */

static int64_t offset(const lsi_norm_form *f, int64_t outer, int64_t group, int64_t inner)
{
    return (outer * f->groups + group) * f->inner + inner;
}

/* Which gamma and beta belong to an element. */
static int64_t affine_index(const lsi_norm_form *f, int64_t group, int64_t inner)
{
    return f->affine == LSI_AFFINE_GROUP ? group : inner;
}

void lsi_norm_moments(const lsi_norm_form *f, const double *x, int64_t group, double *mean, double *var)
{
    double n = (double)(f->outer * f->inner), sum = 0, squares = 0;

    *mean = *var = 0;
    if (n == 0) return;
    for (int64_t o = 0; o < f->outer; o++)
        for (int64_t i = 0; i < f->inner; i++) sum += x[offset(f, o, group, i)];
    *mean = sum / n;
    for (int64_t o = 0; o < f->outer; o++)
        for (int64_t i = 0; i < f->inner; i++) {
            double d = x[offset(f, o, group, i)] - *mean;
            squares += d * d;
        }
    *var = squares / n;
}

void lsi_norm_ref(const lsi_norm_form *f, const ls_norm_attr *a, const lsi_norm_data *d)
{
    for (int64_t g = 0; g < f->groups; g++) {
        double var = 0;
        lsi_norm_moments(f, d->x, g, &d->mean[g], &var);
        d->invstd[g] = 1 / sqrt(var + a->eps);
        for (int64_t o = 0; o < f->outer; o++)
            for (int64_t i = 0; i < f->inner; i++) {
                int64_t at = offset(f, o, g, i), j = affine_index(f, g, i);
                double y = (d->x[at] - d->mean[g]) * d->invstd[g];
                if (d->gamma != NULL) y = y * d->gamma[j] + d->beta[j];
                if (d->residual != NULL) y += d->residual[at];
                d->y[at] = ls_act_eval(a->act, a->slope, y);
            }
    }
}

/* The gradient that reaches the affine map: dy through the fused activation. */
static double through_act(const ls_norm_attr *a, const lsi_norm_grad_data *d, int64_t g, int64_t at)
{
    if (a->by_beta) {
        double y = (d->x[at] - d->mean[g]) * d->invstd[g];
        if (d->beta != NULL) y = y * d->gamma[g] + d->beta[g];
        return ls_act_grad_from_y(a->act, a->slope, y, d->dy[at]);
    }
    return d->y != NULL ? ls_act_grad_from_y(a->act, a->slope, d->y[at], d->dy[at]) : d->dy[at];
}

/* With h = gamma * dz and xhat = (x - mean) * invstd:  dx = invstd * (h - mean(h) - xhat * mean(h * xhat)).
 */
static void group_grad(const lsi_norm_form *f, const ls_norm_attr *a, const lsi_norm_grad_data *d, int64_t g)
{
    double n = (double)(f->outer * f->inner), sum_h = 0, sum_hx = 0;

    for (int64_t o = 0; o < f->outer; o++)
        for (int64_t i = 0; i < f->inner; i++) {
            int64_t at = offset(f, o, g, i), j = affine_index(f, g, i);
            double dz = through_act(a, d, g, at), xhat = (d->x[at] - d->mean[g]) * d->invstd[g];
            double h = d->gamma != NULL ? d->gamma[j] * dz : dz;
            sum_h += h;
            sum_hx += h * xhat;
            if (d->dgamma != NULL) d->dgamma[j] += dz * xhat;
            if (d->dbeta != NULL) d->dbeta[j] += dz;
            if (d->dresidual != NULL) d->dresidual[at] = dz;
        }
    for (int64_t o = 0; o < f->outer; o++)
        for (int64_t i = 0; i < f->inner; i++) {
            int64_t at = offset(f, o, g, i);
            double dz = through_act(a, d, g, at), xhat = (d->x[at] - d->mean[g]) * d->invstd[g];
            double h = d->gamma != NULL ? d->gamma[affine_index(f, g, i)] * dz : dz;
            d->dx[at] = d->invstd[g] * (h - sum_h / n - xhat * sum_hx / n);
        }
}

void lsi_norm_grad_ref(const lsi_norm_form *f, const ls_norm_attr *a, const lsi_norm_grad_data *d)
{
    size_t n_affine = (size_t)(f->affine == LSI_AFFINE_GROUP ? f->groups : f->inner);

    if (d->dgamma != NULL) memset(d->dgamma, 0, sizeof(double) * n_affine);
    if (d->dbeta != NULL) memset(d->dbeta, 0, sizeof(double) * n_affine);
    for (int64_t g = 0; g < f->groups; g++) group_grad(f, a, d, g);
}

void lsi_batch_norm_track(const ls_ref_call *c, const ls_norm_attr *a, const lsi_norm_form *f)
{
    enum { RUNNING_MEAN = 3, RUNNING_VAR }; /* in and out */
    const double n = (double)(f->outer * f->inner), m = n > 0 ? a->momentum : 0;

    for (int64_t i = 0; i < f->groups; i++) {
        double mean, var;
        lsi_norm_moments(f, c->in[0].d, i, &mean, &var);
        if (a->unbiased_running && n > 1) var *= n / (n - 1);
        c->out[RUNNING_MEAN].d[i] = (1 - m) * c->in[RUNNING_MEAN].d[i] + m * mean;
        c->out[RUNNING_VAR].d[i] = (1 - m) * c->in[RUNNING_VAR].d[i] + m * var;
    }
}
