/* layerwise.c: lars and lamb where ranks have pieces of parameters.
 *
 * Both scale the step of each parameter by norms of all of it, so that no piece can be updated by itself.
 * What is left besides the norms works element by element: lars is sgd by a gradient that was scaled, and
 * lamb scales the step that adam would take.  So squares of pieces are added up over ranks, all parameters in
 * one small exchange, and the rest is those two (optimise.c). */
#include "passes/lower_internal.h"

static ls_value square_sum(ls_value x)
{
    return ls_reduce_sum(ls_square(x), (1u << ls_value_shape(x).rank) - 1, false);
}

/* Squares of n pairs of pieces, added up over the ranks that have the others: sums[2 i] of a[i], sums[2 i +
 * 1] of b[i]. */
static bool add_up(const ls_strategy *how, int n, const ls_value *a, const ls_value *b, ls_value *sums)
{
    ls_graph *g = a[0].g;
    const ls_collective_attr attr = {.bucket = -1, .group = how->group, .exact = true};
    ls_value *parts = ls_arena_alloc(g->arena, sizeof *parts * (size_t)(2 * n)), all, room[2];

    if (parts == NULL) {
        lsi_no_memory(g);
        return false;
    }
    for (int i = 0; i < 2 * n; i++)
        parts[i] = ls_reshape(square_sum(i % 2 == 0 ? a[i / 2] : b[i / 2]), LS_SHAPE(1));
    all = ls_concat(2 * n, parts, 0);
    all = ls_all_reduce(ls_fill(g, LS_SHAPE_SCALAR, LS_F32, 1), 1, &all, attr, room);
    for (int i = 0; i < 2 * n; i++) sums[i] = ls_reshape(ls_slice(all, 0, i, 1), LS_SHAPE_SCALAR);
    return lsi_sound(g);
}

/* a / b where `there` is 1, and 1 where it is 0 and so may b be. */
static ls_value ratio(ls_value a, ls_value b, ls_value there)
{
    const ls_value none = ls_affine(there, -1, 1);

    return ls_add(ls_mul(there, ls_div(a, ls_add(b, none))), none);
}

void lsi_lars_gradients(const ls_strategy *how, const ls_optim_attr *attr, ls_value scale, int n,
                        const bool *adapts, const ls_value *weights, ls_value *grads)
{
    ls_graph *g = scale.g;
    ls_value *sums = ls_arena_alloc(g->arena, sizeof *sums * (size_t)(2 * n));

    if (sums == NULL) lsi_no_memory(g);
    if (!lsi_sound(g) || !add_up(how, n, weights, grads, sums)) return;
    for (int i = 0; i < n && lsi_sound(g); i++) {
        const ls_value w = ls_sqrt(sums[2 * i]), d = ls_div(ls_sqrt(sums[2 * i + 1]), scale);
        const ls_value there = ls_mul(ls_sign(sums[2 * i]), ls_sign(sums[2 * i + 1]));
        const double decay = attr->weight_decay;
        if (!adapts[i]) continue;
        grads[i] = ls_add(grads[i], ls_mul(weights[i], ls_scale(scale, decay)));
        grads[i] = ls_mul(grads[i], ratio(ls_scale(w, attr->trust), ls_add(d, ls_scale(w, decay)), there));
    }
}

void lsi_lamb_step(const ls_strategy *how, const ls_optim_attr *attr, ls_value lr, ls_value scale, int n,
                   const ls_value *weights, ls_value *steps)
{
    ls_graph *g = scale.g;
    ls_value *sums = ls_arena_alloc(g->arena, sizeof *sums * (size_t)(2 * n));

    if (sums == NULL) lsi_no_memory(g);
    for (int i = 0; i < n && lsi_sound(g); i++) /* adam has gone down from 0 */
        steps[i] = ls_sub(ls_scale(weights[i], attr->weight_decay), steps[i]);
    if (!lsi_sound(g) || !add_up(how, n, weights, steps, sums)) return;
    lr = ls_mul(lr, ls_sign(scale)); /* a scale of 0 leaves the update out */
    for (int i = 0; i < n && lsi_sound(g); i++) {
        const ls_value there = ls_mul(ls_sign(sums[2 * i]), ls_sign(sums[2 * i + 1]));
        const ls_value trust = ratio(ls_sqrt(sums[2 * i]), ls_sqrt(sums[2 * i + 1]), there);
        steps[i] = ls_sub(weights[i], ls_mul(steps[i], ls_mul(lr, trust)));
    }
}
