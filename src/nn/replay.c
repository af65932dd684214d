/* replay.c: the layer that shows samples of earlier steps, and how its pool stays the same on all ranks.
 *
 * Every sample of an update that is kept has a slot of its own (ops/replay.c), so what an update adds to the
 * pool is a set of rows that no two batches, shards or ranks have in common.  They wait like gradients, one
 * row for each place of the update, zero where nothing is kept: adding up is then exact, whatever is added in
 * which order, and the machinery of gradients carries them.  The pool changes only with the update, so all
 * samples of an update see it as it was at its beginning. */
#include "nn/nn_internal.h"

enum { MAX_CAPACITY = 256 }; /* numbers of slots are exact in any type that gradients travel in */

typedef struct pool {
    const char *name;
    int32_t images, filled; /* variables */
    int64_t capacity, width;
    int64_t rows; /* places of an update that can be kept */
} pool;

static ls_value current(const ls_step *s, int32_t var)
{
    return (ls_value){s->g, s->g->vars[var]->current};
}

static int32_t pool_variable(ls_step *s, const char *layer, const char *what, ls_shape shape)
{
    const ls_value v =
        lsi_variable(s, layer, what, LS_VAR_OPTIMIZER, LS_F32, shape, (ls_init){LS_INIT_CONST, 0});

    return ls_value_ok(v) ? s->g->values[v.id]->var : -1;
}

/* The rows become the pool's, where their slots are not -1. */
static void store(ls_step *s, const pool *p, ls_value rows, ls_value slots)
{
    const ls_value ones = ls_fill(s->g, LS_SHAPE(ls_value_shape(rows).dim[0], 1), LS_F32, 1);
    const ls_value images = ls_store_rows(current(s, p->images), rows, slots),
                   filled = ls_store_rows(current(s, p->filled), ones, slots);

    if (!ls_value_ok(images) || !ls_value_ok(filled)) return;
    ls_graph_advance(s->g, p->images, images);
    ls_graph_advance(s->g, p->filled, filled);
}

/* What is kept, by place: the samples and their slots plus one. */
typedef struct kept {
    ls_value rows, slots;
} kept;

static kept by_place(const pool *p, ls_value x, ls_value slots, ls_value places)
{
    const ls_value numbers = ls_affine(ls_cast(slots, LS_F32), 1, 1);

    return (kept){
        ls_scatter_rows(x, places, p->rows),
        ls_scatter_rows(ls_reshape(numbers, LS_SHAPE(ls_value_shape(x).dim[0], 1)), places, p->rows)};
}

/* A rank without samples takes part with one that does not count: its weight is 0. */
static ls_value counts(ls_step *s)
{
    return ls_sign(lsi_scalar_input(s, "gradient.weight"));
}

static kept sums(ls_step *s, const pool *p)
{
    const char *rows = ls_arena_printf(s->g->arena, "%s.images", p->name),
               *slots = ls_arena_printf(s->g->arena, "%s.slots", p->name);

    if (rows == NULL || slots == NULL) ls_graph_fail(s->g, LS_NOMEM, "step: no memory");
    if (!lsi_step_open(s)) return (kept){lsi_step_none(s), lsi_step_none(s)};
    return (kept){lsi_sum_variable(s, rows, LS_SHAPE(p->rows, p->width)),
                  lsi_sum_variable(s, slots, LS_SHAPE(p->rows, 1))};
}

static void add_up(ls_step *s, ls_value sum, ls_value x)
{
    const ls_value next = ls_accumulate(sum, x, lsi_scalar_input(s, "gradient.keep"), counts(s));

    if (ls_value_ok(next)) ls_graph_advance(s->g, s->g->values[sum.id]->var, next);
}

static void exchange(ls_step *s, kept *k)
{
    ls_value x[] = {k->rows, k->slots};
    const ls_value weight =
        s->how.part == LS_PART_UPDATE ? ls_fill(s->g, LS_SHAPE_SCALAR, LS_F32, 1) : counts(s);

    lsi_exchange(s, weight, 2, 0, x);
    *k = (kept){x[0], x[1]};
}

/* Keeps samples x where `slots` says so, now or at the update that ends a row of batches. */
static void keep(ls_step *s, const pool *p, ls_value x, ls_value slots, ls_value places)
{
    kept now;

    if (s->how.part == LS_PART_ALL && !s->how.ranks) {
        store(s, p, x, slots);
        return;
    }
    now = s->how.part == LS_PART_UPDATE ? sums(s, p) : by_place(p, x, slots, places);
    if (s->how.part == LS_PART_GRADIENTS) {
        const kept sum = sums(s, p);
        add_up(s, sum.rows, now.rows);
        add_up(s, sum.slots, now.slots);
        return;
    }
    if (s->how.ranks) exchange(s, &now);
    if (!lsi_step_open(s)) return;
    store(s, p, now.rows, ls_cast(ls_affine(ls_reshape(now.slots, LS_SHAPE(p->rows)), 1, -1), LS_I32));
}

static ls_value show(ls_step *s, ls_value x, const char *name, int64_t capacity)
{
    const ls_shape shape = ls_value_shape(x);
    const ls_dtype dtype = ls_value_dtype(x);
    pool p = {.name = name, .capacity = capacity, .rows = capacity};
    ls_value flat, shown;

    if (capacity < 1 || capacity > MAX_CAPACITY || shape.rank < 1 || shape.dim[0] != s->batch)
        return lsi_step_fail(s,
                             "replay: needs a sample in each row of its input and room for 1 to %d, got %lld",
                             MAX_CAPACITY, (long long)capacity);
    p.width = ls_shape_count(shape) / s->batch;
    if (s->how.update > 0 && s->how.update < capacity) p.rows = s->how.update;
    p.images = pool_variable(s, name, "images", LS_SHAPE(capacity, p.width));
    p.filled = pool_variable(s, name, "filled", LS_SHAPE(capacity, 1));
    if (!lsi_step_open(s)) return lsi_step_none(s);
    flat = ls_reshape(ls_cast(x, LS_F32), LS_SHAPE(s->batch, p.width));
    shown = ls_replay_choice(current(s, p.images), current(s, p.filled), flat, ls_random_key(s), name);
    if (!ls_value_ok(shown)) return shown;
    keep(s, &p, flat, ls_graph_out(shown, 1), ls_graph_out(shown, 2));
    return ls_cast(ls_reshape(shown, shape), dtype);
}

ls_value ls_replay_layer(ls_step *s, ls_at at, ls_value x, const char *name, int64_t capacity)
{
    const char *full = lsi_layer_enter(s, at, name), *variable;

    if (full == NULL) return lsi_step_none(s);
    x = ls_detach(x);
    variable = ls_arena_printf(s->arena, "%s.images", full);
    if (!ls_value_ok(x))
        x = lsi_step_none(s);
    else if (variable == NULL)
        x = ls_graph_fail(s->g, LS_NOMEM, "step: no memory");
    else if (ls_graph_find_var(s->g, variable) >= 0)
        x = lsi_step_fail(s, "replay: the pool \"%s\" is used already; another name makes another one", name);
    else if (s->mode == LS_TRAIN)
        x = show(s, x, full, capacity);
    lsi_layer_leave(s);
    return x;
}
