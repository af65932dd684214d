/* chamfer: sum over batch and points of the squared distance to the nearest point of the other cloud, taken
 * both ways.
 *
 * Distances are sums of squared differences: the expanded form |p|^2 + |q|^2 - 2pq cancels exactly where it
 * matters, at near points.  Of equally near points the first counts. */
#include "ops/chamfer_rules.h"
#include "ops/type_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    ls_status st = lsi_chamfer_check(c, 0, 1, err);

    if (st != LS_OK) return st;
    c->out[0] = LS_SHAPE_SCALAR;
    c->out_dtype[0] = lsi_wide_dtype(c->in_dtype[0]);
    for (int i = 0; i < 2; i++) {
        c->out[1 + i] = LS_SHAPE(c->in[i].dim[0], c->in[i].dim[2]);
        c->out_dtype[1 + i] = LS_I32;
    }
    return LS_OK;
}

static void grad(ls_grad_call *c)
{
    ls_value p = c->in[0], q = c->in[1], ip = c->out[1], iq = c->out[2];

    if (c->want[0]) c->din[0] = ls_chamfer_grad(c->dout[0], p, q, ip, iq);
    if (c->want[1]) c->din[1] = ls_chamfer_grad(c->dout[0], q, p, iq, ip);
}

static double flops(const ls_graph *g, const ls_node *n)
{
    ls_shape p = *ls_node_in_shape(g, n, 0), q = *ls_node_in_shape(g, n, 1);

    /* Three differences, three squares, two sums for each pair; both directions use the same distances. */
    return 8.0 * (double)p.dim[0] * (double)p.dim[2] * (double)q.dim[2];
}

/* Sum of the squared distances from each of the P points of p to the nearest of the Q points of q. */
static double one_way(const double *p, int64_t P, const double *q, int64_t Q, double *index)
{
    double sum = 0;

    for (int64_t i = 0; i < P; i++) {
        double best = 0;
        for (int64_t j = 0; j < Q; j++) {
            double x = p[i] - q[j], y = p[P + i] - q[Q + j], z = p[2 * P + i] - q[2 * Q + j];
            double d = x * x + y * y + z * z;
            if (j > 0 && !(d < best)) continue;
            best = d;
            index[i] = (double)j;
        }
        sum += best;
    }
    return sum;
}

static void ref(const ls_ref_call *c)
{
    int64_t P = c->in[0].shape.dim[2], Q = c->in[1].shape.dim[2];
    double sum = 0;

    for (int64_t b = 0; b < c->in[0].shape.dim[0]; b++) {
        const double *p = c->in[0].d + b * 3 * P, *q = c->in[1].d + b * 3 * Q;
        sum += one_way(p, P, q, Q, c->out[1].d + b * P);
        sum += one_way(q, Q, p, P, c->out[2].d + b * Q);
    }
    c->out[0].d[0] = sum;
}

const ls_op ls_op_chamfer = {
    .name = "chamfer",
    .min_in = 2,
    .max_in = 2,
    .n_out = 3,
    .infer = infer,
    .grad = grad,
    .flops = flops,
    .ref = ref,
};

ls_value ls_chamfer(ls_value p, ls_value q)
{
    return ls_graph_add(p.g, &ls_op_chamfer, 2, (ls_value[]){p, q}, NULL);
}
