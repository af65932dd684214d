/* chamfer_grad: dloss, p, q, index_p, index_q -> dp; with the roles of p and q exchanged it gives dq.
 *
 * A point of p is pulled to its own nearest point of q and to every point of q whose nearest it is. */
#include <string.h>

#include "ops/chamfer_rules.h"
#include "ops/index_rules.h"
#include "ops/loss_rules.h"
#include "ops/type_rules.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    ls_status st = lsi_chamfer_check(c, 1, 2, err);

    if (st == LS_OK) st = lsi_check_dloss(c, 0, lsi_wide_dtype(c->in_dtype[1]), err);
    if (st != LS_OK) return st;
    for (int i = 0; i < 2; i++) {
        ls_shape cloud = c->in[1 + i];
        if (c->in_dtype[3 + i] != LS_I32 ||
            !ls_shape_equal(c->in[3 + i], LS_SHAPE(cloud.dim[0], cloud.dim[2])))
            return ls_fail(err, LS_INVALID, "the nearest points of %s must be i32, one per point",
                           i == 0 ? "p" : "q");
    }
    c->out[0] = c->in[1];
    c->out_dtype[0] = c->in_dtype[1];
    return LS_OK;
}

static double flops(const ls_graph *g, const ls_node *n)
{
    ls_shape p = *ls_node_in_shape(g, n, 1), q = *ls_node_in_shape(g, n, 2);

    return 9.0 * (double)p.dim[0] *
           (double)(p.dim[2] + q.dim[2]); /* subtract, scale, add; three coordinates */
}

/* dp_i += 2 * dloss * (p_i - q_j) */
static void pull(double dloss, const double *p, int64_t P, int64_t i, const double *q, int64_t Q, int64_t j,
                 double *dp)
{
    for (int64_t k = 0; k < 3; k++) dp[k * P + i] += 2 * dloss * (p[k * P + i] - q[k * Q + j]);
}

static void ref(const ls_ref_call *c)
{
    int64_t P = c->in[1].shape.dim[2], Q = c->in[2].shape.dim[2];
    double dloss = c->in[0].d[0];

    memset(c->out[0].d, 0, sizeof(double) * (size_t)c->out[0].count);
    for (int64_t b = 0; b < c->in[1].shape.dim[0]; b++) {
        const double *p = c->in[1].d + b * 3 * P, *q = c->in[2].d + b * 3 * Q;
        const double *ip = c->in[3].d + b * P, *iq = c->in[4].d + b * Q;
        double *dp = c->out[0].d + b * 3 * P;
        for (int64_t i = 0; i < P; i++)
            if (lsi_index_ok(ip[i], Q)) pull(dloss, p, P, i, q, Q, (int64_t)ip[i], dp);
        for (int64_t j = 0; j < Q; j++)
            if (lsi_index_ok(iq[j], P)) pull(dloss, p, P, (int64_t)iq[j], q, Q, j, dp);
    }
}

const ls_op ls_op_chamfer_grad = {
    .name = "chamfer_grad",
    .min_in = 5,
    .max_in = 5,
    .n_out = 1,
    .infer = infer,
    .flops = flops,
    .ref = ref,
};

ls_value ls_chamfer_grad(ls_value dloss, ls_value p, ls_value q, ls_value index_p, ls_value index_q)
{
    return ls_graph_add(dloss.g, &ls_op_chamfer_grad, 5, (ls_value[]){dloss, p, q, index_p, index_q}, NULL);
}
