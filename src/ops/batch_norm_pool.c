/* batch_norm_pool: maxpool2d(act(batch_norm(x))), of which nothing but the pooled map is written.
 *
 * The norm and its activation keep the order of a channel's elements, or turn it around where gamma is
 * negative: so of a window that element wins for which gamma * x is largest, of equal ones the first.  Where
 * a channel has a NaN its mean is one, and so is every result.  Beside the winners' positions (as maxpool2d
 * has them) it leaves what x was there: the sums of the gradient need no other elements of x. */
#include <math.h>

#include "ops/norm_rules.h"
#include "ops/pool_rules.h"

enum { X, GAMMA, BETA, RUNNING_MEAN, RUNNING_VAR };
enum { Y, MEAN, INVSTD };

static bool tracks(int n_in)
{
    return n_in > RUNNING_VAR;
}

/* y, mean, invstd[, new running mean and variance], index, the winners' x. */
static int count_out(int n_in, const void *attr)
{
    (void)attr;
    return tracks(n_in) ? 7 : 5;
}

static ls_status infer(ls_infer *c, ls_err *err)
{
    static const char *const names[] = {"x", "gamma", "beta", "the running mean", "the running variance"};
    ls_norm_pool_attr *a = c->attr;
    const ls_shape x = c->in[X];
    ls_infer norm = *c; /* whose attributes are the first of both */
    ls_status st = LS_OK;

    norm.attr = &a->norm;
    LS_TRY(lsi_norm_check(&norm, X, tracks(c->n_in) ? 5 : 3, err));
    if (a->norm.act != LS_ACT_NONE && !lsi_norm_act_by_sign(&a->norm))
        return ls_fail(err, LS_INVALID, "this activation does not keep the order of elements");
    LS_TRY(lsi_pool_infer(&a->pool, c->in_dtype[X], x, &c->out[Y], err));
    LS_TRY(lsi_pool_check_positions(&a->pool, err));
    for (int i = GAMMA; i < c->n_in; i++)
        LS_TRY(lsi_norm_check_stat(&norm, X, i, names[i], LS_SHAPE(x.dim[1]), err));
    for (int k = MEAN; k < c->n_out - 2; k++) {
        c->out[k] = LS_SHAPE(x.dim[1]);
        c->out_dtype[k] = lsi_wide_dtype(c->in_dtype[X]);
    }
    c->out[c->n_out - 2] = c->out[c->n_out - 1] = c->out[Y];
    c->out_dtype[c->n_out - 2] = LS_U8;
out:
    return st;
}

static double flops(const ls_graph *g, const ls_node *n)
{
    const ls_norm_pool_attr *a = n->attr;

    return lsi_norm_flops(g, n) +
           (double)ls_shape_count(*ls_node_out_shape(g, n, Y)) * (double)lsi_pool_window_size(&a->pool);
}

static int alias(int n_in, const void *attr, int k)
{
    (void)attr;
    return tracks(n_in) && (k == RUNNING_MEAN || k == RUNNING_VAR) ? k : -1; /* as in batch_norm */
}

static void pool(const ls_ref_call *c, int64_t i)
{
    const ls_norm_pool_attr *a = c->attr;
    const lsi_pool_window w = lsi_pool_window_at(&a->pool, c->out[Y].shape, i);
    const int64_t channel = w.plane / (a->pool.in[0] * a->pool.in[1]) % c->in[X].shape.dim[1];
    const double gamma = c->in[GAMMA].d[channel];
    double best = 0, y;
    int64_t index = -1;

    for (int64_t row = w.y0; row < w.y1; row++)
        for (int64_t col = w.x0; col < w.x1; col++) {
            const double v = c->in[X].d[w.plane + row * a->pool.in[1] + col];
            if (index >= 0 && !(v * gamma > best * gamma)) continue;
            best = v;
            index = (row - w.top) * a->pool.kernel[1] + (col - w.left);
        }
    y = (best - c->out[MEAN].d[channel]) * c->out[INVSTD].d[channel] * gamma + c->in[BETA].d[channel];
    c->out[Y].d[i] = ls_act_eval(a->norm.act, a->norm.slope, y);
    c->out[c->n_out - 2].d[i] = (double)index;
    c->out[c->n_out - 1].d[i] = best;
}

static void ref(const ls_ref_call *c)
{
    const ls_norm_pool_attr *a = c->attr;
    const lsi_norm_form f = lsi_batch_norm_form(c->in[X].shape);

    for (int64_t i = 0; i < f.groups; i++) {
        double var = 0;
        lsi_norm_moments(&f, c->in[X].d, i, &c->out[MEAN].d[i], &var);
        c->out[INVSTD].d[i] = 1 / sqrt(var + a->norm.eps);
    }
    if (tracks(c->n_in)) lsi_batch_norm_track(c, &a->norm, &f);
    for (int64_t i = 0; i < c->out[Y].count; i++) pool(c, i);
}

const ls_op ls_op_batch_norm_pool = {
    .name = "batch_norm_pool",
    .min_in = 3,
    .max_in = 5,
    .count_out = count_out,
    .attr_size = sizeof(ls_norm_pool_attr),
    .flags = LS_OP_UPDATE,
    .infer = infer,
    .flops = flops,
    .alias = alias,
    .ref = ref,
    .attr_text = lsi_norm_pool_attr_text,
};
