/* region_take.c: which nodes can be a part of a region, and are worth it.
 *
 * All values of samples are f32, but for labels and the positions of pooling.  An op is described by what a
 * sample's slice of its result follows from: slices (`sliced`), or something that all samples share. */
#include "backend/cuda/region.h"

enum {
    MAX_ELEMENTS = 32768, /* of a sample's value */
    MAX_WEIGHTS = 16384,  /* of a convolution, in shared memory */
    MAX_OUTER = 256       /* samples whose outer products the second kernel adds up */
};

typedef struct query {
    const lsi_region_machine *m;
    const ls_graph *g;
    const ls_node *n;
    int64_t samples;
    const ls_region_kind *in;
    ls_region_kind *out;
} query;

static const ls_vinfo *input(const query *q, int i)
{
    return q->g->values[q->n->in[i]];
}

static bool has_slices(const query *q, const ls_vinfo *v)
{
    return v->shape.rank >= 1 && v->shape.dim[0] == q->samples &&
           ls_shape_count(v->shape) / q->samples <= MAX_ELEMENTS && ls_shape_count(v->shape) > 0;
}

static bool sliced_as(const query *q, int i, ls_dtype type)
{
    const ls_vinfo *v = input(q, i);

    if (v->dtype != type || q->in[i] == LS_REGION_SUM || q->in[i] == LS_REGION_NEXT) return false;
    return q->in[i] == LS_REGION_SAMPLE || (v->var < 0 && has_slices(q, v));
}

static bool sliced(const query *q, int i)
{
    return sliced_as(q, i, LS_F32);
}

static bool shared_as(const query *q, int i, ls_dtype type)
{
    return q->in[i] == LS_REGION_OUTSIDE && input(q, i)->dtype == type;
}

static bool shared(const query *q, int i)
{
    return shared_as(q, i, LS_F32);
}

/* Labels are read where they lie. */
static bool labelled(const query *q, int i)
{
    return shared_as(q, i, LS_I32) && input(q, i)->shape.rank == 1 && input(q, i)->shape.dim[0] == q->samples;
}

static bool one_sample(const query *q, int k)
{
    q->out[k] = LS_REGION_SAMPLE;
    return has_slices(q, q->g->values[q->n->out[k]]);
}

static bool one_sum(const query *q, int k)
{
    q->out[k] = LS_REGION_SUM;
    return q->g->values[q->n->out[k]]->dtype == LS_F32;
}

static bool has_act(ls_act a)
{
    return a == LS_ACT_NONE || a == LS_ACT_RELU || a == LS_ACT_LEAKY || a == LS_ACT_TANH;
}

/* -- ops --------------------------------------------------------------------------------------------------
 */

static bool take_conv(const query *q)
{
    const ls_conv_attr *a = q->n->attr;
    const bool dx = q->n->op == &ls_op_conv2d_dx;

    if (!sliced(q, 0) || !shared(q, 1) || (q->n->n_in > 2 && !shared(q, 2))) return false;
    if (dx && (a->stride[0] != 1 || a->stride[1] != 1)) return false;
    return a->groups == 1 && has_act(a->act) && ls_shape_count(input(q, 1)->shape) <= MAX_WEIGHTS &&
           one_sample(q, 0);
}

static bool take_conv_dw(const query *q)
{
    const ls_conv_attr *a = q->n->attr;

    return a->groups == 1 && sliced(q, 0) && sliced(q, 1) && one_sum(q, 0) &&
           ls_shape_count(q->g->values[q->n->out[0]]->shape) <= MAX_WEIGHTS;
}

static bool take_matmul(const query *q)
{
    const ls_matmul_attr *a = q->n->attr;

    if (input(q, 0)->shape.rank != 2 || input(q, 1)->shape.rank != 2) return false;
    if (lsi_region_is_outer(q->n))
        return q->n->n_in == 2 && a->act == LS_ACT_NONE && sliced(q, 0) && sliced(q, 1) && one_sum(q, 0) &&
               q->samples <= MAX_OUTER;
    return !a->trans_a && sliced(q, 0) && shared(q, 1) && (q->n->n_in < 3 || shared(q, 2)) &&
           has_act(a->act) && one_sample(q, 0);
}

static bool take_maxpool(const query *q)
{
    return sliced(q, 0) && one_sample(q, 0) && one_sample(q, 1);
}

static bool take_maxpool_grad(const query *q)
{
    return sliced(q, 0) && sliced_as(q, 1, LS_U8) && (q->n->n_in < 3 || sliced(q, 2)) && one_sample(q, 0);
}

static bool take_same(const query *q)
{
    return sliced(q, 0) && one_sample(q, 0);
}

static bool take_view(const query *q)
{
    return (sliced(q, 0) || sliced_as(q, 0, LS_U8)) && one_sample(q, 0);
}

static bool take_dropout(const query *q)
{
    return sliced(q, 0) && shared_as(q, 1, LS_I32) && one_sample(q, 0);
}

static bool take_cross_entropy(const query *q)
{
    return sliced(q, 0) && labelled(q, 1) && one_sum(q, 0) && one_sample(q, 1);
}

static bool take_cross_entropy_grad(const query *q)
{
    return shared(q, 0) && sliced(q, 1) && labelled(q, 2) && one_sample(q, 0);
}

static bool take_accuracy(const query *q)
{
    return sliced(q, 0) && labelled(q, 1) && one_sum(q, 0);
}

/* Over everything but dimension 1. */
static bool take_sum(const query *q)
{
    const ls_reduce_attr *a = q->n->attr;
    const int rank = input(q, 0)->shape.rank;

    return (rank == 2 || rank == 4) && a->axes == ((1u << rank) - 1 - 2u) && sliced(q, 0) && one_sum(q, 0);
}

static bool take_bias_act_grad(const query *q)
{
    const ls_bias_act_attr *a = q->n->attr;
    const int rank = input(q, 0)->shape.rank;

    return (rank == 2 || rank == 4) && a->axis == 1 && has_act(a->act) && sliced(q, 0) && sliced(q, 1) &&
           one_sample(q, 0) && one_sum(q, 1);
}

static bool take_bias(const query *q)
{
    const ls_axis_attr *a = q->n->attr;

    return a->axis == 1 && sliced(q, 0) && shared(q, 1) && one_sample(q, 0);
}

/* Operands have the result's elements or one for all; what is made of sums alone follows them. */
static bool take_pointwise(const query *q)
{
    const ls_vinfo *y = q->g->values[q->n->out[0]];

    if (q->n->op->pw == LS_PW_COPY || y->dtype != LS_F32) return false;
    if (q->n->n_in == 1 && q->in[0] == LS_REGION_SUM && q->n->op != &ls_op_pointwise) return one_sum(q, 0);
    if (!has_slices(q, y)) return false;
    for (int i = 0; i < q->n->n_in; i++) {
        const bool single = ls_shape_count(input(q, i)->shape) == 1 && shared(q, i);
        if (!single && !(ls_shape_equal(input(q, i)->shape, y->shape) && sliced(q, i))) return false;
    }
    return one_sample(q, 0);
}

/* Gradients are sums of this region, and nobody else has a part in the update. */
static bool take_update(const query *q)
{
    const ls_optim_attr *a = q->n->attr;

    if (q->m->updates_apart || q->n->carried || a->pieces > 0 || a->more || a->later) return false;
    for (int i = 0; i < q->n->n_in; i++) {
        const bool gradient = i >= LSI_REGION_UPDATE_W + a->n && i < LSI_REGION_UPDATE_W + 2 * a->n;
        const int32_t var = input(q, i)->var;
        if (gradient ? q->in[i] != LS_REGION_SUM : q->in[i] != LS_REGION_OUTSIDE) return false;
        if (input(q, i)->dtype != (i == LSI_REGION_UPDATE_T ? LS_I32 : LS_F32)) return false;
        if (var >= 0 && q->g->vars[var]->home == LS_HOME_MACHINE) return false;
    }
    for (int k = 0; k < q->n->n_out; k++) q->out[k] = LS_REGION_NEXT;
    return true;
}

static const struct {
    const ls_op *op;
    bool (*takes)(const query *q);
} ops[] = {
    {&ls_op_conv2d, take_conv},
    {&ls_op_conv2d_dx, take_conv},
    {&ls_op_conv2d_dw, take_conv_dw},
    {&ls_op_matmul, take_matmul},
    {&ls_op_maxpool2d, take_maxpool},
    {&ls_op_maxpool2d_grad, take_maxpool_grad},
    {&ls_op_avgpool2d, take_same},
    {&ls_op_avgpool2d_grad, take_same},
    {&ls_op_reshape, take_view},
    {&ls_op_detach, take_view},
    {&ls_op_dropout, take_dropout},
    {&ls_op_cross_entropy, take_cross_entropy},
    {&ls_op_cross_entropy_grad, take_cross_entropy_grad},
    {&ls_op_accuracy, take_accuracy},
    {&ls_op_reduce_sum, take_sum},
    {&ls_op_bias_act_grad, take_bias_act_grad},
    {&ls_op_bias, take_bias},
    {&ls_op_pointwise, take_pointwise},
    {&ls_op_sgd, take_update},
    {&ls_op_adam, take_update},
    {&ls_op_rmsprop, take_update},
};

/* -- what it is worth -------------------------------------------------------------------------------------
 *
 * Microseconds, from measurements on an H200: a launch of a kernel of its own with what it reads and writes,
 * against the time of one processor for its samples. */

static double alone(const query *q)
{
    const double launch = 5, flops = ls_node_flops(q->g, q->n), bytes = ls_node_bytes(q->g, q->n);
    const bool conv =
        q->n->op == &ls_op_conv2d || q->n->op == &ls_op_conv2d_dx || q->n->op == &ls_op_conv2d_dw;
    const ls_conv_attr *a = q->n->attr;
    int64_t channels;

    if (q->n->op == &ls_op_matmul) return launch + flops / 30e6;
    if (!conv) return launch + bytes / 2.5e6;
    channels = q->n->op == &ls_op_conv2d      ? q->g->values[q->n->out[0]]->shape.dim[1]
               : q->n->op == &ls_op_conv2d_dx ? input(q, 0)->shape.dim[1]
                                              : input(q, 1)->shape.dim[1];
    return launch + flops / (a->in[1] < 16 || channels < 32 ? 6e6 : 100e6);
}

static double in_region(const query *q)
{
    const double rounds = (double)((q->samples + q->m->processors - 1) / q->m->processors);
    const double flops = ls_node_flops(q->g, q->n) / (double)q->samples;

    if (q->n->op == &ls_op_matmul && !lsi_region_is_outer(q->n))
        return rounds * (flops / 400e3 + (double)ls_shape_count(input(q, 1)->shape) * 4 / 110e3);
    if (lsi_region_is_outer(q->n)) return 1 + ls_node_flops(q->g, q->n) / 4e6;
    return rounds * flops / 200e3;
}

bool lsi_region_takes(const lsi_region_machine *m, const ls_graph *g, const ls_node *n, int64_t samples,
                      const ls_region_kind *in, ls_region_kind *out)
{
    const query q = {m, g, n, samples, in, out};

    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (ops[i].op == n->op) return ops[i].takes(&q) && in_region(&q) <= alone(&q);
    return n->op->pw != LS_PW_NONE && take_pointwise(&q);
}
