/* op_test.c: what build functions call. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "op_test_internal.h"
#include "ops/type_rules.h"

ls_graph *op_graph(op_test *t)
{
    return t->g;
}

ls_dtype op_dtype(const op_test *t)
{
    return t->dtype;
}

static double draw(const op_test *t, op_range range, int source, int64_t i)
{
    ls_rng_key key = {(uint32_t)t->seed, (uint32_t)(t->seed >> 32), 0, 0};
    uint32_t a = ls_rng_word(&key, (uint32_t)source, 0, (uint64_t)(2 * i));
    uint32_t b = ls_rng_word(&key, (uint32_t)source, 0, (uint64_t)(2 * i + 1));
    double z = ls_rng_normal(a, b, 0);

    switch (range) {
    case OP_NONZERO: return z < 0 ? z - 0.1 : z + 0.1;
    case OP_POSITIVE: return 0.5 + 1.5 * (double)ls_rng_uniform(a);
    default: return z;
    }
}

/* A permutation of -n/2 .. n/2 times 0.05 (exact in bf16 only for small n, which the cases respect). */
static void fill_distinct(const op_test *t, op_source *s, int source)
{
    ls_rng_key key = {(uint32_t)t->seed, (uint32_t)(t->seed >> 32), 1, 0};

    for (int64_t i = 0; i < s->count; i++) s->values[i] = 0.0625 * (double)(i - s->count / 2);
    for (int64_t i = s->count - 1; i > 0; i--) {
        int64_t j = (int64_t)(ls_rng_word(&key, (uint32_t)source, 0, (uint64_t)i) % (uint64_t)(i + 1));
        double x = s->values[i];
        s->values[i] = s->values[j];
        s->values[j] = x;
    }
}

/* The next source: values are made the first time a case is built and kept for its later runs. */
static op_source *next_source(op_test *t, op_source_kind kind, ls_shape shape, bool *fresh)
{
    op_source *s = &t->in[t->n_in];

    if (t->n_in >= OP_MAX_TENSORS) abort();
    *fresh = t->n_in >= t->n_known;
    if (*fresh) {
        snprintf(s->name, sizeof s->name, "in%d", t->n_in);
        s->kind = kind;
        s->shape = shape;
        s->count = ls_shape_count(shape);
        s->values = calloc((size_t)s->count + 1, sizeof *s->values);
        if (s->values == NULL) abort();
        t->n_known = t->n_in + 1;
    }
    t->n_in++;
    return s;
}

static op_source *float_source(op_test *t, op_source_kind kind, op_range range, ls_shape shape)
{
    bool fresh;
    int index = t->n_in;
    op_source *s = next_source(t, kind, shape, &fresh);

    if (fresh && range == OP_DISTINCT)
        fill_distinct(t, s, index);
    else if (fresh)
        for (int64_t i = 0; i < s->count; i++) s->values[i] = draw(t, range, index, i);
    /* Values that every float type can hold: all runs see the same numbers. */
    if (fresh)
        for (int64_t i = 0; i < s->count; i++)
            s->values[i] = (double)ls_bf16_to_f32(ls_bf16_from_f32((float)s->values[i]));
    return s;
}

static ls_value add_input(op_test *t, op_range range, ls_shape shape, ls_dtype dtype, bool differentiated)
{
    op_source *s = float_source(t, OP_SOURCE_FLOAT, range, shape);

    s->differentiated = differentiated;
    return s->v = ls_graph_input(t->g, s->name, dtype, shape);
}

ls_value op_in(op_test *t, op_range range, ls_shape shape)
{
    return add_input(t, range, shape, t->dtype, true);
}

ls_value op_fixed(op_test *t, op_range range, ls_shape shape)
{
    return add_input(t, range, shape, t->dtype, false);
}

ls_value op_in_wide(op_test *t, op_range range, ls_shape shape)
{
    return add_input(t, range, shape, lsi_wide_dtype(t->dtype), true);
}

ls_value op_fixed_wide(op_test *t, op_range range, ls_shape shape)
{
    return add_input(t, range, shape, lsi_wide_dtype(t->dtype), false);
}

ls_value op_index(op_test *t, int64_t limit, ls_shape shape)
{
    bool fresh;
    int index = t->n_in;
    op_source *s = next_source(t, OP_SOURCE_INDEX, shape, &fresh);
    ls_rng_key key = {(uint32_t)t->seed, 7, 2, 0};

    if (fresh)
        for (int64_t i = 0; i < s->count; i++)
            s->values[i] = (double)(ls_rng_word(&key, (uint32_t)index, 0, (uint64_t)i) % (uint64_t)limit);
    return s->v = ls_graph_input(t->g, s->name, LS_I32, shape);
}

ls_value op_key(op_test *t)
{
    bool fresh;
    op_source *s = next_source(t, OP_SOURCE_KEY, LS_SHAPE(4), &fresh);
    static const double key[4] = {12345, 678, 9, 1000};

    for (int i = 0; i < 4; i++) s->values[i] = key[i];
    return s->v = ls_graph_input(t->g, s->name, LS_I32, LS_SHAPE(4));
}

static ls_value add_state(op_test *t, op_range range, ls_shape shape, ls_dtype dtype)
{
    op_source *s = float_source(t, OP_SOURCE_STATE, range, shape);

    return s->v = ls_graph_var(t->g, s->name, LS_VAR_PARAM, dtype, shape, (ls_init){LS_INIT_CONST, 0});
}

ls_value op_state(op_test *t, op_range range, ls_shape shape)
{
    return add_state(t, range, shape, t->dtype);
}

ls_value op_state_wide(op_test *t, op_range range, ls_shape shape)
{
    return add_state(t, range, shape, lsi_wide_dtype(t->dtype));
}

ls_value op_counter(op_test *t, int32_t value)
{
    bool fresh;
    op_source *s = next_source(t, OP_SOURCE_COUNTER, LS_SHAPE(1), &fresh);

    s->values[0] = value;
    return s->v = ls_graph_var(t->g, s->name, LS_VAR_OPTIMIZER, LS_I32, LS_SHAPE(1),
                               (ls_init){LS_INIT_CONST, 0});
}

void op_length(op_test *t, int64_t n)
{
    t->length = n > 1 ? n : 1;
}

static void add_output(op_test *t, ls_value v, bool in_loss)
{
    if (t->n_out >= OP_MAX_TENSORS) abort();
    t->out[t->n_out++] = (op_output){v, in_loss && ls_dtype_is_float(ls_value_dtype(v))};
}

void op_out(op_test *t, ls_value v)
{
    add_output(t, v, true);
}

void op_out_fixed(op_test *t, ls_value v)
{
    add_output(t, v, false);
}
