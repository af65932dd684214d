/* keep.c: how the pool of the replay layer stays the same on all ranks.
 *
 * Every sample of an update that is kept has a slot of its own (ops/replay.c), so what an update adds to the
 * pool is a set of rows that no two batches, shards or ranks have in common.  They wait like gradients, one
 * row for each place of the update, zero where nothing is kept: adding up is then exact, whatever is added in
 * which order, and the machinery of gradients carries them.  The pool changes only with the update, so all
 * samples of an update see it as it was at its beginning. */
#include <stddef.h>
#include <string.h>

#include "passes/lower_internal.h"

/* Places of an update that can be kept. */
static int64_t rows_of(const ls_strategy *how, const ls_value *in)
{
    const int64_t capacity = ls_value_shape(in[LS_KEEP_POOL]).dim[0];

    return how->update > 0 && how->update < capacity ? how->update : capacity;
}

/* What is kept, by place: the samples and their slots plus one. */
static void by_place(int64_t rows, const ls_value *in, ls_value *x)
{
    const ls_value numbers = ls_affine(ls_cast(in[LS_KEEP_SLOTS], LS_F32), 1, 1);
    const int64_t batch = ls_value_shape(in[LS_KEEP_X]).dim[0];

    x[0] = ls_scatter_rows(in[LS_KEEP_X], in[LS_KEEP_PLACES], rows);
    x[1] = ls_scatter_rows(ls_reshape(numbers, LS_SHAPE(batch, 1)), in[LS_KEEP_PLACES], rows);
}

/* A rank without samples takes part with one that does not count: its weight is 0. */
static ls_value counts(ls_graph *g)
{
    return ls_sign(ls_graph_scalar(g, "gradient.weight"));
}

/* The two sums of the pool, which is called <name>.images. */
static void sums(ls_graph *g, const ls_strategy *how, const ls_value *in, ls_value *sum)
{
    static const char images[] = ".images";
    const ls_value pool = in[LS_KEEP_POOL];
    const char *name = g->vars[g->values[pool.id]->var]->name, *end = strstr(name, images);
    const int length = (int)(end != NULL ? end - name : (ptrdiff_t)strlen(name));
    const char *slots = ls_arena_printf(g->arena, "%.*s.slots", length, name);
    const int64_t rows = rows_of(how, in);

    if (slots == NULL) lsi_no_memory(g);
    sum[0] = sum[1] = (ls_value){g, -1};
    if (!lsi_sound(g)) return;
    sum[0] = lsi_sum_variable(g, name, LS_SHAPE(rows, ls_value_shape(pool).dim[1]));
    sum[1] = lsi_sum_variable(g, slots, LS_SHAPE(rows, 1));
}

void lsi_keep_add_up(ls_graph *g, const ls_strategy *how, const ls_value *in)
{
    ls_value x[2], sum[2];

    by_place(rows_of(how, in), in, x);
    sums(g, how, in, sum);
    for (int i = 0; i < 2; i++) lsi_add_to_sum(g, sum[i], x[i], counts(g));
}

ls_value lsi_keep_leaf(ls_graph *g, const ls_strategy *how, const ls_value *in, ls_value x[2])
{
    by_place(rows_of(how, in), in, x);
    return counts(g);
}

/* Sums of shards are made later; here is what shape they have. */
void lsi_keep_added_up(ls_graph *g, const ls_strategy *how, ls_value *in)
{
    const int64_t rows = rows_of(how, in);

    if (how->shards == 0) {
        sums(g, how, in, in + LS_KEEP_X);
        return;
    }
    in[LS_KEEP_X] = ls_fill(g, LS_SHAPE(rows, ls_value_shape(in[LS_KEEP_POOL]).dim[1]), LS_F32, 0);
    in[LS_KEEP_SLOTS] = ls_fill(g, LS_SHAPE(rows, 1), LS_F32, 0);
}

void lsi_keep_exchange(ls_graph *g, const ls_strategy *how, const ls_keep_attr *a, ls_value *in)
{
    const bool update = how->part == LS_PART_UPDATE;
    ls_value x[2] = {in[LS_KEEP_X], in[LS_KEEP_SLOTS]};

    if (!a->by_place) by_place(rows_of(how, in), in, x);
    lsi_exchange(g, how, a->number, update ? ls_fill(g, LS_SHAPE_SCALAR, LS_F32, 1) : counts(g), 2, 0, x);
    in[LS_KEEP_X] = x[0];
    in[LS_KEEP_SLOTS] = x[1];
}

void lsi_keep_store(bool placed, const ls_value *in, ls_value *out)
{
    const ls_value rows = in[LS_KEEP_X];
    const int64_t n = ls_value_shape(rows).dim[0];
    ls_value slots = in[LS_KEEP_SLOTS], ones;

    if (placed) slots = ls_cast(ls_affine(ls_reshape(slots, LS_SHAPE(n)), 1, -1), LS_I32);
    ones = ls_fill(rows.g, LS_SHAPE(n, 1), LS_F32, 1);
    out[0] = ls_store_rows(in[LS_KEEP_POOL], rows, slots);
    out[1] = ls_store_rows(in[LS_KEEP_FILLED], ones, slots);
}
