/* matmul: y[m][n] = sum over k of a[m][k] * b[k][n], for every matrix of a batch; either operand may be
 * stored transposed.  A third input is a bias, one number per column, and a fourth, of the result's shape, is
 * added as it is, where there is no activation.  Its gradients are matrix products again. */
#include <stdio.h>

#include "ops/ops.h"

static bool same_batch(ls_shape a, ls_shape b)
{
    if (b.rank == 2) return true;
    if (a.rank != b.rank) return false;
    for (int i = 0; i < a.rank - 2; i++)
        if (a.dim[i] != b.dim[i]) return false;
    return true;
}

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_matmul_attr *t = c->attr;
    ls_shape a = c->in[0], b = c->in[1];
    int64_t k_a, k_b, n;

    if (a.rank < 2 || b.rank < 2) return ls_fail(err, LS_INVALID, "needs matrices: two dimensions or more");
    if (!ls_dtype_is_float(c->in_dtype[0]))
        return ls_fail(err, LS_INVALID, "needs a floating type, got %s", ls_dtype_name(c->in_dtype[0]));
    for (int i = 1; i < c->n_in; i++)
        if (c->in_dtype[i] != c->in_dtype[0])
            return ls_fail(err, LS_INVALID, "types differ: %s and %s; cast one of them",
                           ls_dtype_name(c->in_dtype[0]), ls_dtype_name(c->in_dtype[i]));
    k_a = a.dim[a.rank - (t->trans_a ? 2 : 1)];
    k_b = b.dim[b.rank - (t->trans_b ? 1 : 2)];
    n = b.dim[b.rank - (t->trans_b ? 2 : 1)];
    if (k_a != k_b)
        return ls_fail(err, LS_INVALID, "rows of a%s have %lld elements, columns of b%s have %lld",
                       t->trans_a ? "^T" : "", (long long)k_a, t->trans_b ? "^T" : "", (long long)k_b);
    c->out[0] = a;
    c->out[0].dim[a.rank - 2] = a.dim[a.rank - (t->trans_a ? 1 : 2)];
    c->out[0].dim[a.rank - 1] = n;
    if (!same_batch(a, b))
        return ls_fail(err, LS_INVALID, "leading dimensions differ; b must have those of a, or none");
    if (c->n_in > 2 && (c->in[2].rank != 1 || c->in[2].dim[0] != n))
        return ls_fail(err, LS_INVALID, "the bias must have one entry per column of the result, %lld",
                       (long long)n);
    if (c->n_in > 3 && (t->act != LS_ACT_NONE || !ls_shape_equal(c->in[3], c->out[0])))
        return ls_fail(err, LS_INVALID, "what is added must have the result's shape, without an activation");
    return LS_OK;
}

/* The matrices of x turned round, and all of them as one matrix. */
static ls_value turned(ls_value x)
{
    int rank = ls_value_shape(x).rank, perm[LS_MAX_RANK];

    for (int i = 0; i < rank; i++) perm[i] = i;
    perm[rank - 2] = rank - 1;
    perm[rank - 1] = rank - 2;
    return ls_transpose(x, perm);
}

static ls_value stacked(ls_value x)
{
    ls_shape s = ls_value_shape(x);
    int64_t rows = 1;

    for (int i = 0; i < s.rank - 1; i++) rows *= s.dim[i];
    return ls_reshape(x, LS_SHAPE(rows, s.dim[s.rank - 1]));
}

/* With A, B for the operands as multiplied: dA = dY B^T and dB = A^T dY.  Where an operand is stored
 * transposed, so is its gradient: (dY B^T)^T = B dY^T and (A^T dY)^T = dY^T A, which the flags of a product
 * express without moving anything.  Only a B shared by a batch of transposed A needs a transposition. */
static void grad(ls_grad_call *c)
{
    const ls_matmul_attr *t = c->attr;
    ls_value a = c->in[0], b = c->in[1], dy = c->dout[0];
    bool shared = ls_value_shape(a).rank > 2 && ls_value_shape(b).rank == 2;

    if (c->want[0]) {
        if (!t->trans_a)
            c->din[0] = ls_matmul(dy, b, false, !t->trans_b);
        else if (shared)
            c->din[0] = turned(ls_matmul(dy, b, false, !t->trans_b));
        else
            c->din[0] = ls_matmul(b, dy, t->trans_b, true);
    }
    if (c->want[1]) {
        bool trans_a = t->trans_a;
        if (shared) { /* the sum over the batch is part of the product when all rows form one matrix */
            a = stacked(trans_a ? turned(a) : a);
            dy = stacked(dy);
            trans_a = false;
        }
        c->din[1] = t->trans_b ? ls_matmul(dy, a, true, trans_a) : ls_matmul(a, dy, !trans_a, false);
    }
}

static double flops(const ls_graph *g, const ls_node *n)
{
    const ls_matmul_attr *t = n->attr;
    const ls_shape *a = ls_node_in_shape(g, n, 0);

    return 2.0 * (double)ls_shape_count(*ls_node_out_shape(g, n, 0)) *
           (double)a->dim[a->rank - (t->trans_a ? 2 : 1)];
}

static void ref(const ls_ref_call *c)
{
    const ls_matmul_attr *t = c->attr;
    ls_shape sa = c->in[0].shape, y = c->out[0].shape;
    int64_t M = y.dim[y.rank - 2], N = y.dim[y.rank - 1], K = sa.dim[sa.rank - (t->trans_a ? 2 : 1)];
    bool shared = c->in[1].shape.rank == 2;

    for (int64_t i = 0; i < c->out[0].count; i++) {
        int64_t n = i % N, m = i / N % M, batch = i / N / M;
        const double *a = c->in[0].d + batch * M * K + (t->trans_a ? m : m * K);
        const double *b = c->in[1].d + (shared ? 0 : batch * K * N) + (t->trans_b ? n * K : n);
        double sum = (c->n_in > 2 ? c->in[2].d[n] : 0) + (c->n_in > 3 ? c->in[3].d[i] : 0);
        for (int64_t k = 0; k < K; k++) sum += a[t->trans_a ? k * M : k] * b[t->trans_b ? k : k * N];
        c->out[0].d[i] = ls_act_eval(t->act, t->slope, sum);
    }
}

static void attr_text(const void *attr, char *buf, size_t n)
{
    const ls_matmul_attr *t = attr;

    snprintf(buf, n, "trans=%d%d act=%s:%.9g", t->trans_a, t->trans_b, ls_act_name(t->act), t->slope);
}

const ls_op ls_op_matmul = {
    .name = "matmul",
    .min_in = 2,
    .max_in = 4,
    .n_out = 1,
    .attr_size = sizeof(ls_matmul_attr),
    .infer = infer,
    .grad = grad,
    .flops = flops,
    .ref = ref,
    .attr_text = attr_text,
};

ls_value ls_matmul(ls_value a, ls_value b, bool trans_a, bool trans_b)
{
    return ls_graph_add(a.g, &ls_op_matmul, 2, (ls_value[]){a, b},
                        &(ls_matmul_attr){.trans_a = trans_a, .trans_b = trans_b});
}
