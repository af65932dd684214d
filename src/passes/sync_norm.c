/* sync_norm.c: batch norm over the samples of all ranks.
 *
 * Needs: a graph that is not differentiated yet.  Leaves: plain ops and sums over ranks in the places of its
 * batch norms.
 *
 * Mean and variance are weighted sums over ranks of each rank's own, taken in two exchanges: the second about
 * the common mean, since a difference of large squares would lose what matters.  It is written in plain ops;
 * their gradients, and that of a sum over ranks, make the backward pass. */
#include "passes/lower_internal.h"

enum { X, WEIGHT, BIAS, MEAN, VAR };                     /* inputs of a batch norm */
enum { Y, BATCH_MEAN, BATCH_INVSTD, NEW_MEAN, NEW_VAR }; /* and outputs */

/* (C) as (1, C, 1, 1) or (1, C). */
static ls_value along_channels(ls_value v, ls_shape like)
{
    ls_shape to = {.rank = like.rank, .dim = {1, 1, 1, 1}};

    to.dim[1] = like.dim[1];
    return ls_reshape(v, to);
}

/* The mean over all but channels of this rank's samples, summed over ranks by their shares. */
static ls_value mean_over_ranks(ls_value x)
{
    const ls_shape shape = ls_value_shape(x);
    const double count = (double)(ls_shape_count(shape) / (shape.dim[1] > 0 ? shape.dim[1] : 1));
    const ls_value own = ls_scale(ls_reduce_sum(x, shape.rank == 4 ? 0xdu : 0x1u, false), 1.0 / count);
    ls_value room[2];

    return ls_all_reduce(ls_graph_scalar(x.g, "rank.weight"), 1, &own, (ls_collective_attr){.bucket = -1},
                         room);
}

/* running = (1 - momentum) * running + momentum * batch; one that rests in this stage stays what it is. */
static ls_value moved(ls_value running, ls_value batch, double momentum)
{
    if (momentum == 0) return running;
    return ls_assign(running, ls_detach(ls_add(ls_scale(running, 1 - momentum), ls_scale(batch, momentum))));
}

static bool expand(void *ctx, ls_graph *to, const ls_node *n, const ls_value *in, ls_value *out)
{
    const ls_norm_attr *a = n->attr;
    const ls_shape shape = ls_value_shape(in[0]);
    const double pixels = shape.rank == 4 ? (double)(shape.dim[2] * shape.dim[3]) : 1;
    ls_value x, mean, centred, var, invstd, spread;

    (void)ctx;
    if (n->op != &ls_op_batch_norm) return false;
    x = ls_cast(in[X], ls_value_dtype(in[MEAN])); /* statistics are not kept in fewer bits */
    mean = mean_over_ranks(x);
    centred = ls_sub(x, along_channels(mean, shape));
    spread = var = mean_over_ranks(ls_square(centred));
    invstd = ls_rsqrt(ls_affine(var, 1, a->eps));
    out[Y] = ls_mul(in[WEIGHT], invstd);
    if (a->unbiased_running) { /* count / (count - 1), the count being that of all ranks */
        const ls_value count = ls_scale(ls_graph_scalar(to, "rank.samples"), pixels);
        const ls_value one = ls_fill(to, LS_SHAPE_SCALAR, LS_F32, 1);
        spread = ls_mul(var, ls_div(count, ls_maximum(ls_affine(count, 1, -1), one)));
    }
    out[BATCH_MEAN] = mean;
    out[BATCH_INVSTD] = invstd;
    out[NEW_MEAN] = moved(in[MEAN], mean, a->momentum);
    out[NEW_VAR] = moved(in[VAR], spread, a->momentum);
    out[Y] = ls_bias(ls_mul(centred, along_channels(out[Y], shape)), in[BIAS], 1);
    out[Y] = ls_cast(out[Y], ls_value_dtype(in[X]));
    return true;
}

void ls_pass_sync_norm(ls_graph *g)
{
    ls_graph_rewrite(g, expand, NULL);
}
