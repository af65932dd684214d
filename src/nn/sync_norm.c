/* sync_norm.c: batch norm over the samples of all ranks.
 *
 * Mean and variance are weighted sums over ranks of each rank's own, taken in two exchanges: the second about
 * the common mean, since a difference of large squares would lose what matters.  It is written in plain ops;
 * their gradients, and that of a sum over ranks, make the backward pass. */
#include "nn/nn_internal.h"

/* (C) as (1, C, 1, 1) or (1, C). */
static ls_value along_channels(ls_value v, ls_shape like)
{
    ls_shape to = {.rank = like.rank, .dim = {1, 1, 1, 1}};

    to.dim[1] = like.dim[1];
    return ls_reshape(v, to);
}

/* The mean over all but channels of this rank's samples, summed over ranks by their shares. */
static ls_value mean_over_ranks(ls_step *s, ls_value x)
{
    const ls_shape shape = ls_value_shape(x);
    const double count = (double)(ls_shape_count(shape) / (shape.dim[1] > 0 ? shape.dim[1] : 1));
    const ls_value own = ls_scale(ls_reduce_sum(x, shape.rank == 4 ? 0xdu : 0x1u, false), 1.0 / count);
    ls_value room[2];

    return ls_all_reduce(lsi_scalar_input(s, "rank.weight"), 1, 0, &own, room);
}

/* running = (1 - momentum) * running + momentum * batch */
static void move_running(ls_step *s, ls_value running, ls_value batch, double momentum)
{
    const ls_value next =
        ls_assign(running, ls_detach(ls_add(ls_scale(running, 1 - momentum), ls_scale(batch, momentum))));

    if (ls_value_ok(next)) ls_graph_advance(s->g, s->g->values[running.id]->var, next);
}

ls_value lsi_sync_batch_norm(ls_step *s, ls_value x, const lsi_norm_vars *v, const ls_norm_attr *a)
{
    const ls_shape shape = ls_value_shape(x);
    const double pixels = shape.rank == 4 ? (double)(shape.dim[2] * shape.dim[3]) : 1;
    const ls_value mean = mean_over_ranks(s, x);
    const ls_value centred = ls_sub(x, along_channels(mean, shape));
    const ls_value var = mean_over_ranks(s, ls_square(centred));
    const ls_value scale = ls_mul(v->weight, ls_rsqrt(ls_affine(var, 1, a->eps)));
    ls_value spread = var;

    if (a->unbiased_running) { /* count / (count - 1), the count being that of all ranks */
        const ls_value count = ls_scale(lsi_scalar_input(s, "rank.samples"), pixels);
        const ls_value one = ls_fill(s->g, LS_SHAPE_SCALAR, LS_F32, 1);
        spread = ls_mul(var, ls_div(count, ls_maximum(ls_affine(count, 1, -1), one)));
    }
    move_running(s, v->mean, mean, a->momentum);
    move_running(s, v->var, spread, a->momentum);
    return ls_bias(ls_mul(centred, along_channels(scale, shape)), v->bias, 1);
}
