/* replay.c: the layer that shows samples of earlier steps.
 *
 * Each sample has a place in its update and, where it is kept, a slot of the pool (ops/replay.c); `keep`
 * records that the pool takes them in.  How that is done for several batches or ranks is up to passes/keep.c.
 */
#include "nn/nn_internal.h"
#include "ops/macros.h"

enum { MAX_CAPACITY = 256 }; /* numbers of slots are exact in any type that gradients travel in */

/* Of the optimiser's role: it goes into checkpoints, since a run goes on with the same bits, but not into
 * weights, for a model that has been trained does not need it. */
static ls_value pool_variable(ls_step *s, const char *layer, const char *what, ls_shape shape)
{
    return lsi_variable(s, layer, what, LS_VAR_OPTIMIZER, LS_F32, shape, (ls_init){LS_INIT_CONST, 0});
}

static ls_value show(ls_step *s, ls_value x, const char *name, int64_t capacity)
{
    const ls_shape shape = ls_value_shape(x);
    const ls_dtype dtype = ls_value_dtype(x);
    ls_value pool, filled, flat, shown, kept;
    int64_t width;

    if (capacity < 1 || capacity > MAX_CAPACITY || shape.rank < 1 || shape.dim[0] != s->batch)
        return lsi_step_fail(s,
                             "replay: needs a sample in each row of its input and room for 1 to %d, got %lld",
                             MAX_CAPACITY, (long long)capacity);
    width = ls_shape_count(shape) / s->batch;
    pool = pool_variable(s, name, "images", LS_SHAPE(capacity, width));
    filled = pool_variable(s, name, "filled", LS_SHAPE(capacity, 1));
    if (!lsi_step_open(s)) return lsi_step_none(s);
    flat = ls_reshape(ls_cast(x, LS_F32), LS_SHAPE(s->batch, width));
    shown = ls_replay_choice(pool, filled, flat, ls_random_key(s), name);
    if (!ls_value_ok(shown)) return shown;
    kept = ls_keep((ls_value[]){pool, filled, flat, ls_graph_out(shown, 1), ls_graph_out(shown, 2)},
                   (ls_keep_attr){0});
    if (!ls_value_ok(kept)) return kept;
    ls_graph_advance(s->g, s->g->values[pool.id]->var, kept);
    ls_graph_advance(s->g, s->g->values[filled.id]->var, ls_graph_out(kept, 1));
    return ls_cast(ls_reshape(shown, shape), dtype);
}

ls_value ls_replay_layer(ls_step *s, ls_at at, ls_value x, const char *name, int64_t capacity)
{
    const char *full = lsi_layer_enter(s, at, name), *variable;

    if (full == NULL) return lsi_step_none(s);
    x = ls_detach(x); /* what was made by earlier weights has no gradient to them, and neither has the rest */
    variable = ls_arena_printf(s->arena, "%s.images", full);
    if (!ls_value_ok(x))
        x = lsi_step_none(s);
    else if (variable == NULL)
        x = ls_graph_fail(s->g, LS_NOMEM, "step: no memory");
    else if (ls_graph_find_var(s->g, variable) >= 0)
        x = lsi_step_fail(s, "replay: the pool \"%s\" is used already; another name makes another one", name);
    else if (s->mode == LS_TRAIN) /* an evaluation shows what it was given */
        x = show(s, x, full, capacity);
    lsi_layer_leave(s);
    return x;
}
