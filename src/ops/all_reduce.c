/* all_reduce_start and all_reduce_wait: the weighted sum over ranks of one bucket of tensors, in two nodes,
 * so that a plan can compute between them.
 *
 * start: in weight, x1..xn; out a token.  wait: in token, x1..xn; out y1..yn, where yk is the sum over all
 * ranks of weight * xk; of the last `plain` tensors, of xk.  The tensors are inputs of both, which keeps them
 * in place until they have arrived. What is below is the case of one rank: the token is the weight.  With
 * more ranks the communicator plans these nodes (exec/peers.c), because an exchange belongs to it and not to
 * a device. */
#include <stdio.h>

#include "ops/ops.h"

static ls_status check_tensors(const ls_infer *c, ls_err *err)
{
    const ls_dtype type = c->in_dtype[0];

    if ((type != LS_F32 && type != LS_F64) || ls_shape_count(c->in[0]) != 1)
        return ls_fail(err, LS_INVALID, "the weight (or token) must be one floating-point number");
    for (int i = 1; i < c->n_in; i++)
        if (c->in_dtype[i] != type)
            return ls_fail(err, LS_INVALID, "tensor %d is %s, but a bucket of %s takes no other type", i,
                           ls_dtype_name(c->in_dtype[i]), ls_dtype_name(type));
    return LS_OK;
}

static ls_status infer_start(ls_infer *c, ls_err *err)
{
    c->out[0] = LS_SHAPE_SCALAR;
    c->out_dtype[0] = c->in_dtype[0];
    return check_tensors(c, err);
}

static ls_status infer_wait(ls_infer *c, ls_err *err)
{
    for (int k = 0; k < c->n_out; k++) {
        c->out[k] = c->in[1 + k];
        c->out_dtype[k] = c->in_dtype[1 + k];
    }
    return check_tensors(c, err);
}

static int count_out(int n_in, const void *attr)
{
    (void)attr;
    return n_in - 1;
}

static void attr_text(const void *attr, char *buf, size_t n)
{
    const ls_all_reduce_attr *a = attr;

    snprintf(buf, n, "bucket=%d%s%.0d", a->bucket, a->plain > 0 ? " plain=" : "", a->plain);
}

static double flops(const ls_graph *g, const ls_node *n)
{
    double count = 0;

    for (int k = 1; k < n->n_in; k++) count += (double)ls_shape_count(*ls_node_in_shape(g, n, k));
    return 2 * count;
}

/* Ranks' losses are weighted like their tensors, so the gradient of the sum is the same sum of gradients. */
static void grad_wait(ls_grad_call *c)
{
    const ls_node *start = c->g->nodes[c->g->values[c->in[0].id]->node];
    ls_value *dout = ls_arena_alloc(c->g->arena, sizeof *dout * (size_t)(2 * c->n_out + 1)), sum;
    const int first_plain = c->n_out - ((const ls_all_reduce_attr *)start->attr)->plain;
    int n = 0, plain = 0;

    if (dout == NULL) {
        ls_graph_fail(c->g, LS_NOMEM, "autodiff: no memory");
        return;
    }
    for (int k = 0; k < c->n_out; k++)
        if (c->want[1 + k] && ls_value_ok(c->dout[k])) {
            dout[n++] = c->dout[k];
            plain += k >= first_plain;
        }
    if (n == 0) return;
    sum = ls_all_reduce((ls_value){c->g, start->in[0]}, n, plain, dout, dout + n);
    for (int k = 0, i = 0; ls_value_ok(sum) && k < c->n_out; k++)
        if (c->want[1 + k] && ls_value_ok(c->dout[k])) c->din[1 + k] = ls_graph_out(sum, i++);
}

static void ref_start(const ls_ref_call *c)
{
    c->out[0].d[0] = c->in[0].d[0];
}

static void ref_wait(const ls_ref_call *c)
{
    const int plain = ((const ls_all_reduce_attr *)c->attr)->plain;

    for (int k = 0; k < c->n_out; k++)
        for (int64_t i = 0; i < c->out[k].count; i++)
            c->out[k].d[i] = (k < c->n_out - plain ? c->in[0].d[0] : 1) * c->in[1 + k].d[i];
}

const ls_op ls_op_all_reduce_start = {
    .name = "all_reduce_start",
    .min_in = 2,
    .max_in = -1,
    .n_out = 1,
    .attr_size = sizeof(ls_all_reduce_attr),
    .flags = LS_OP_NO_GRAD | LS_OP_COLLECTIVE | LS_OP_EAGER,
    .queue = LS_QUEUE_COMM,
    .infer = infer_start,
    .ref = ref_start,
    .attr_text = attr_text,
};

const ls_op ls_op_all_reduce_wait = {
    .name = "all_reduce_wait",
    .min_in = 2,
    .max_in = -1,
    .attr_size = sizeof(ls_all_reduce_attr),
    .flags = LS_OP_COLLECTIVE | LS_OP_WAIT,
    .count_out = count_out,
    .infer = infer_wait,
    .grad = grad_wait,
    .flops = flops,
    .ref = ref_wait,
    .attr_text = attr_text,
};

ls_value ls_all_reduce(ls_value weight, int n, int plain, const ls_value *x, ls_value *in)
{
    ls_all_reduce_attr attr;
    ls_value token;

    if (!ls_value_ok(weight)) return weight;
    attr = (ls_all_reduce_attr){weight.g->n_collectives++, plain};
    in[0] = weight;
    for (int i = 0; i < n; i++) {
        if (!ls_value_ok(x[i])) return x[i];
        in[1 + i] = x[i];
    }
    token = ls_graph_add(weight.g, &ls_op_all_reduce_start, 1 + n, in, &attr);
    if (!ls_value_ok(token)) return token;
    in[0] = token;
    return ls_graph_add(weight.g, &ls_op_all_reduce_wait, 1 + n, in, &attr);
}
