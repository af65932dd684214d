/* norm_grad_grad.c: the gradient of the gradient of a norm, written in ops once for batch, instance and layer
 * norm.
 *
 * Per group, with xhat = (x - mean) * s, g = gamma * dy, <.> the mean over the group and
 *     P(h) = h - <h> - xhat * <h * xhat>,
 * the *_grad ops compute dx = s * P(g), dgamma = sum(dy * xhat), dbeta = sum(dy).  P is its own adjoint, s *
 * P(h) is what a *_grad op with gamma = 1 computes, and it is also how a gradient h of xhat reaches x.  For
 * gradients v, vg, vb that flow into dx, dgamma and dbeta this gives dy:    gamma * s * P(v) + vg * xhat + vb
 *     gamma: sum of dy * s * P(v)
 *     x:     s * P(h) - s^2 * xhat * (<v g> - <v> <g> - A B),
 *            h = vg * dy - s * (B v + A g),  A = <v * xhat>,  B = <g * xhat>;
 * the last term of x is how s itself moves with x. */
#include "ops/norm_rules.h"

typedef struct second {
    ls_grad_call *c;
    const ls_op *op;
    const lsi_norm_form *f;
    ls_dtype dtype;       /* everything is computed in the type of the statistics */
    ls_value dy, xhat, s; /* s broadcasts against x */
    ls_value gamma;       /* broadcasts against x; invalid without one */
    ls_value v, vg, vb;   /* incoming; vg and vb broadcast against x; invalid where nothing flows */
} second;

/* a + b, where an invalid value stands for zero. */
static ls_value plus(ls_value a, ls_value b)
{
    if (!ls_value_ok(a)) return b;
    return ls_value_ok(b) ? ls_add(a, b) : a;
}

static ls_value scaled(ls_value x, ls_value gamma)
{
    return ls_value_ok(gamma) ? ls_mul(x, gamma) : x;
}

static ls_value mean(const second *t, ls_value x)
{
    return ls_reduce_mean(x, t->f->axes, true);
}

/* s * P(h), by the op itself with gamma = 1. */
static ls_value project(const second *t, ls_value h)
{
    const ls_grad_call *c = t->c;
    ls_dtype x_dtype = ls_value_dtype(c->in[1]);
    ls_value in[5];
    int n = 0;

    in[n++] = ls_cast(h, x_dtype);
    in[n++] = c->in[1];
    if (ls_value_ok(t->gamma)) in[n++] = ls_fill(c->g, ls_value_shape(c->in[2]), t->dtype, 1.0);
    in[n++] = c->in[c->n_in - 2];
    in[n++] = c->in[c->n_in - 1];
    return ls_cast(ls_graph_add(c->g, t->op, n, in, c->attr), t->dtype);
}

static second prepare(ls_grad_call *c, const ls_op *op, const lsi_norm_form *f)
{
    ls_value none = {c->g, -1};
    second t = {c, op, f, lsi_wide_dtype(ls_value_dtype(c->in[1])), none, none, none, none, none, none, none};
    ls_value x = ls_cast(c->in[1], t.dtype);

    t.dy = ls_cast(c->in[0], t.dtype);
    t.s = ls_reshape(c->in[c->n_in - 1], f->stat_row);
    t.xhat = ls_mul(ls_sub(x, ls_reshape(c->in[c->n_in - 2], f->stat_row)), t.s);
    if (ls_value_ok(c->dout[0])) t.v = ls_cast(c->dout[0], t.dtype);
    if (f->affine == LSI_AFFINE_NONE) return t;
    t.gamma = ls_reshape(c->in[2], f->affine_row);
    if (ls_value_ok(c->dout[1])) t.vg = ls_reshape(c->dout[1], f->affine_row);
    if (ls_value_ok(c->dout[2])) t.vb = ls_reshape(c->dout[2], f->affine_row);
    return t;
}

static ls_value grad_x(const second *t)
{
    ls_value h = {t->c->g, -1}, tail = h, dx;

    if (ls_value_ok(t->vg)) h = ls_mul(t->vg, t->dy);
    if (ls_value_ok(t->v)) {
        ls_value g = scaled(t->dy, t->gamma);
        ls_value a = mean(t, ls_mul(t->v, t->xhat)), b = mean(t, ls_mul(g, t->xhat));
        ls_value ab = ls_add(ls_mul(b, t->v), ls_mul(a, g));
        ls_value e = ls_sub(mean(t, ls_mul(t->v, g)), ls_mul(mean(t, t->v), mean(t, g)));
        h = plus(h, ls_neg(ls_mul(t->s, ab)));
        tail = ls_mul(ls_mul(ls_square(t->s), ls_sub(e, ls_mul(a, b))), t->xhat);
    }
    if (!ls_value_ok(h)) return h; /* dbeta does not depend on x */
    dx = project(t, h);
    return ls_value_ok(tail) ? ls_sub(dx, tail) : dx;
}

void lsi_norm_grad_grad(ls_grad_call *c, const ls_op *op, const lsi_norm_form *f)
{
    const ls_norm_attr *a = c->attr;
    second t;
    ls_value q;
    bool affine = f->affine != LSI_AFFINE_NONE;

    LS_BUG_IF(a->act != LS_ACT_NONE || a->residual);
    t = prepare(c, op, f);
    q = t.v;
    if (ls_value_ok(q) && (c->want[0] || (affine && c->want[2]))) q = project(&t, q);
    if (c->want[0]) {
        ls_value d = ls_value_ok(q) ? scaled(q, t.gamma) : q;
        if (ls_value_ok(t.vg)) d = plus(d, ls_mul(t.vg, t.xhat));
        d = plus(d, t.vb);
        if (!ls_value_ok(q) && !ls_value_ok(t.vg)) d = ls_broadcast_to(d, ls_value_shape(c->in[0]));
        c->din[0] = ls_cast(d, ls_value_dtype(c->in[0]));
    }
    if (c->want[1]) {
        ls_value dx = grad_x(&t);
        if (ls_value_ok(dx)) c->din[1] = ls_cast(dx, ls_value_dtype(c->in[1]));
    }
    if (affine && c->want[2] && ls_value_ok(q))
        c->din[2] = ls_reshape(ls_sum_to(ls_mul(t.dy, q), f->affine_row), ls_value_shape(c->in[2]));
}
