/* batch_norm_pool_grad: batch_norm_grad(act_grad(maxpool2d_grad(dy, index))): every dy goes to the element of
 * x that won its window, if the activation let that through, and from there through the norm.  The two sums
 * that dx needs run over windows alone: dy, and dy times what x was where they were won.  With `sums` a last
 * input is added to dy. */
#include <string.h>

#include "ops/norm_rules.h"
#include "ops/pool_rules.h"

enum { DY, X, GAMMA, BETA, MEAN, INVSTD, INDEX, BEST, MORE };

static ls_status check_pooled(const ls_infer *c, int i, const char *name, ls_dtype dtype, ls_err *err)
{
    if (c->in_dtype[i] == dtype && ls_shape_equal(c->in[i], c->in[DY])) return LS_OK;
    return ls_fail(err, LS_INVALID, "%s must be %s, of the shape of dy", name, ls_dtype_name(dtype));
}

static ls_status infer(ls_infer *c, ls_err *err)
{
    static const char *const stats[] = {"gamma", "beta", "the mean", "invstd"};
    ls_norm_pool_attr *a = c->attr;
    ls_infer norm = *c; /* whose attributes are the first of both */
    ls_status st = LS_OK;

    norm.attr = &a->norm;
    LS_TRY(lsi_norm_check(&norm, X, MORE + a->norm.sums, err));
    if (a->norm.act != LS_ACT_NONE && !lsi_norm_act_by_sign(&a->norm))
        return ls_fail(err, LS_INVALID, "the sign of x tells nothing of this activation's result");
    LS_TRY(lsi_pool_infer_grad(&a->pool, c->in_dtype[DY], c->in[DY], &c->out[0], err));
    if (c->in_dtype[X] != c->in_dtype[DY] || !ls_shape_equal(c->in[X], c->out[0]))
        return ls_fail(err, LS_INVALID, "x must be what was pooled to dy, and of its type");
    for (int i = GAMMA; i <= INVSTD; i++)
        LS_TRY(lsi_norm_check_stat(&norm, X, i, stats[i - GAMMA], LS_SHAPE(c->in[X].dim[1]), err));
    LS_TRY(check_pooled(c, INDEX, "the positions", LS_U8, err));
    LS_TRY(check_pooled(c, BEST, "the winners' x", c->in_dtype[X], err));
    if (a->norm.sums) LS_TRY(check_pooled(c, MORE, "what is added to dy", c->in_dtype[X], err));
    for (int k = 1; k < 3; k++) {
        c->out[k] = LS_SHAPE(c->in[X].dim[1]);
        c->out_dtype[k] = lsi_wide_dtype(c->in_dtype[X]);
    }
out:
    return st;
}

static double flops(const ls_graph *g, const ls_node *n)
{
    /* Normalised x and dx of every element of x, the sums of every one of dy. */
    return 6.0 * (double)ls_shape_count(*ls_node_in_shape(g, n, X)) +
           4.0 * (double)ls_shape_count(*ls_node_in_shape(g, n, DY));
}

/* What comes to the elements of x lies where dx will: an element is read before it is written, and not again.
 */
static void ref(const ls_ref_call *c)
{
    const ls_norm_pool_attr *a = c->attr;
    const lsi_norm_form f = lsi_batch_norm_form(c->in[X].shape);
    const bool act = a->norm.act != LS_ACT_NONE;
    const lsi_norm_grad_data d = {.dy = c->out[0].d,
                                  .x = c->in[X].d,
                                  .gamma = c->in[GAMMA].d,
                                  .mean = c->in[MEAN].d,
                                  .invstd = c->in[INVSTD].d,
                                  .beta = act ? c->in[BETA].d : NULL,
                                  .dx = c->out[0].d,
                                  .dgamma = c->out[1].d,
                                  .dbeta = c->out[2].d};
    ls_norm_attr norm = a->norm;

    memset(c->out[0].d, 0, sizeof(double) * (size_t)c->out[0].count);
    for (int64_t i = 0; i < c->in[DY].count; i++) {
        const lsi_pool_window w = lsi_pool_window_at(&a->pool, c->in[DY].shape, i);
        const int64_t index = (int64_t)c->in[INDEX].d[i];
        const int64_t y = w.top + index / a->pool.kernel[1], x = w.left + index % a->pool.kernel[1];
        c->out[0].d[w.plane + y * a->pool.in[1] + x] += c->in[DY].d[i] + (norm.sums ? c->in[MORE].d[i] : 0);
    }
    norm.by_beta = act;
    lsi_norm_grad_ref(&f, &norm, &d);
}

const ls_op ls_op_batch_norm_pool_grad = {
    .name = "batch_norm_pool_grad",
    .min_in = 8,
    .max_in = 9,
    .n_out = 3,
    .attr_size = sizeof(ls_norm_pool_attr),
    .infer = infer,
    .flops = flops,
    .ref = ref,
    .attr_text = lsi_norm_pool_attr_text,
};
