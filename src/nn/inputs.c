/* inputs.c: what the host writes before a step: declared inputs, the random key, run-time scalars, and the
 * made-up data of benchmarks. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "nn/nn_internal.h"

enum { SYNTHETIC_PIECE = 1024 }; /* elements that are made up at a time */

ls_shape lsi_with_batch(const ls_step *s, ls_shape shape)
{
    for (int i = 0; i < shape.rank; i++)
        if (shape.dim[i] == -1) shape.dim[i] = s->batch;
    return shape;
}

ls_value ls_input_at(ls_step *s, ls_at at, const char *name, ls_dtype dtype, ls_shape shape)
{
    ls_value v;
    const char *copy;

    if (!lsi_step_open(s)) return lsi_step_none(s);
    lsi_step_at(s, at);
    v = ls_graph_input(s->g, name, dtype, lsi_with_batch(s, shape));
    copy = ls_arena_strdup(s->arena, name);
    if (!ls_value_ok(v) ||
        !lsi_step_grow(s, (void **)&s->inputs, s->n_inputs, &s->cap_inputs, sizeof *s->inputs))
        return lsi_step_none(s);
    if (copy == NULL) return ls_graph_fail(s->g, LS_NOMEM, "step: no memory");
    s->inputs[s->n_inputs++] = (lsi_input_info){.name = copy};
    return v;
}

void ls_input_range(ls_step *s, const char *name, double lo, double hi)
{
    if (!lsi_step_open(s)) return;
    for (int i = 0; i < s->n_inputs; i++)
        if (strcmp(s->inputs[i].name, name) == 0) {
            s->inputs[i].ranged = true;
            s->inputs[i].lo = lo;
            s->inputs[i].hi = hi;
            return;
        }
    lsi_step_fail(s, "ls_input_range: there is no input \"%s\"", name);
}

ls_value ls_constant(ls_step *s, ls_shape shape, double value)
{
    if (!lsi_step_open(s)) return lsi_step_none(s);
    return ls_fill(s->g, lsi_with_batch(s, shape), LS_F32, value);
}

ls_value ls_random_key(ls_step *s)
{
    if (!lsi_step_open(s)) return lsi_step_none(s);
    /* Two words of the seed, the step, the first sample's place in the update (ls_step_write_rng): all that a
     * draw depends on besides its stream and the element (base/rng.h). */
    if (!ls_value_ok(s->rng)) s->rng = ls_graph_input(s->g, "rng", LS_I32, LS_SHAPE(4));
    return s->rng;
}

/* A name that no earlier draw had: draws of the same layer called twice must differ. */
static const char *fresh_stream(ls_step *s, const char *full)
{
    const char *name = full;
    int i = 0;

    while (i < s->n_streams && strcmp(s->streams[i].name, full) != 0) i++;
    if (i == s->n_streams) {
        if (!lsi_step_grow(s, (void **)&s->streams, s->n_streams, &s->cap_streams, sizeof *s->streams))
            return NULL;
        s->streams[s->n_streams++] = (lsi_stream){full, 0};
    }
    if (++s->streams[i].uses > 1) name = ls_arena_printf(s->arena, "%s#%d", full, s->streams[i].uses);
    if (name == NULL) ls_graph_fail(s->g, LS_NOMEM, "step: no memory");
    return name;
}

ls_value ls_drop_layer(ls_step *s, ls_at at, ls_value x, const char *name, double p, bool channels)
{
    const char *full = lsi_layer_enter(s, at, name), *stream;

    if (full == NULL) return lsi_step_none(s);
    /* Taken in any mode: whether this layer drops does not change what later ones of its name draw. */
    stream = fresh_stream(s, full);
    if (stream == NULL)
        x = lsi_step_none(s);
    else if (!(p >= 0 && p < 1))
        x = lsi_step_fail(s, "dropout: the probability of dropping must be in [0, 1), got %g", p);
    else if (s->mode == LS_TRAIN && p > 0)
        x = ls_dropout(x, ls_random_key(s), p, channels, stream);
    lsi_layer_leave(s);
    return x;
}

ls_value ls_draw_normal_at(ls_step *s, ls_at at, const char *name, ls_shape shape, double stddev)
{
    const char *full = lsi_layer_enter(s, at, name), *stream;
    ls_value v = lsi_step_none(s);

    if (full == NULL) return v;
    stream = fresh_stream(s, full);
    if (stream != NULL) v = ls_random_normal(ls_random_key(s), lsi_with_batch(s, shape), stddev, stream);
    lsi_layer_leave(s);
    return v;
}

ls_value ls_draw_uniform_at(ls_step *s, ls_at at, const char *name, ls_shape shape)
{
    const char *full = lsi_layer_enter(s, at, name), *stream;
    ls_value v = lsi_step_none(s);

    if (full == NULL) return v;
    stream = fresh_stream(s, full);
    if (stream != NULL) v = ls_random_uniform(ls_random_key(s), lsi_with_batch(s, shape), stream);
    lsi_layer_leave(s);
    return v;
}

/* -- writing ----------------------------------------------------------------------------------------------
 */

bool ls_step_input_range(const ls_step *s, const char *name, double *lo, double *hi)
{
    for (int i = 0; i < s->n_inputs; i++) {
        if (strcmp(s->inputs[i].name, name) != 0 || !s->inputs[i].ranged) continue;
        *lo = s->inputs[i].lo;
        *hi = s->inputs[i].hi;
        return true;
    }
    return false;
}

/* What a plan needs that nobody has to write: a scale that changes nothing, and the rates of the trial. */
void ls_step_write_defaults(const ls_step *s, ls_plan *p)
{
    ls_plan_write_scalar(p, "loss_scale", 1.0);
    for (int i = 0; i < s->n_lrs; i++) ls_plan_write_scalar(p, s->lrs[i].input, s->lrs[i].value);
}

void ls_step_write_rng(ls_plan *p, uint64_t seed, uint32_t step, uint32_t sample_base)
{
    const uint32_t key[4] = {(uint32_t)seed, (uint32_t)(seed >> 32), step, sample_base};

    ls_plan_write_input(p, "rng", 0, key, sizeof key);
}

/* Two words per element, also where one is used: element i is the same whatever the range of the input. */
static double made_up(const lsi_input_info *in, const ls_rng_key *key, uint32_t stream, uint64_t i)
{
    uint32_t word = ls_rng_word(key, stream, 0, 2 * i);

    if (in->ranged) return in->lo + (in->hi - in->lo) * (double)ls_rng_uniform(word);
    return ls_rng_normal(word, ls_rng_word(key, stream, 0, 2 * i + 1), 0);
}

/* Elements [first, first + n) of an input, through a piece of memory of its own. */
static void write_made_up(const lsi_input_info *in, ls_plan *p, ls_dtype dtype, const ls_rng_key *key,
                          int64_t first, int64_t n)
{
    const uint32_t stream = ls_rng_stream(in->name);
    union {
        float f32[SYNTHETIC_PIECE];
        int32_t i32[SYNTHETIC_PIECE];
    } piece;

    for (int64_t i = 0; i < n; i++) {
        if (dtype == LS_F32)
            piece.f32[i] = (float)made_up(in, key, stream, (uint64_t)(first + i));
        else
            /* Whole numbers from lo to below hi, as labels are; without a range 0, which any table has. */
            piece.i32[i] = in->ranged ? (int32_t)floor(made_up(in, key, stream, (uint64_t)(first + i))) : 0;
    }
    ls_plan_write_input(p, in->name, sizeof(float) * (size_t)first, &piece, sizeof(float) * (size_t)n);
}

void ls_step_write_synthetic(const ls_step *s, ls_plan *p, uint64_t seed)
{
    const ls_rng_key key = {(uint32_t)seed, (uint32_t)(seed >> 32), 0, 0};

    for (int k = 0; k < s->n_inputs; k++) {
        const ls_tensor *t = ls_plan_input(p, s->inputs[k].name);
        const int64_t n = t != NULL ? ls_shape_count(t->shape) : 0;
        if (n == 0 || (t->dtype != LS_F32 && t->dtype != LS_I32)) continue;
        for (int64_t i = 0; i < n; i += SYNTHETIC_PIECE)
            write_made_up(&s->inputs[k], p, t->dtype, &key, i,
                          n - i < SYNTHETIC_PIECE ? n - i : SYNTHETIC_PIECE);
    }
}
