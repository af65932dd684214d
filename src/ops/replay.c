/* replay: shows images of earlier steps in place of new ones (Shrivastava et al., 2017).
 *
 * A pool holds images of earlier updates.  While slots are empty, every new image takes one and is shown.
 * Then, with probability one half, an image is shown that is taken from a random slot, where the new one
 * takes its place; else the new one is shown and not kept.  This op only chooses and shows: the pool is as it
 * was at the beginning of the update, and store_rows writes what is chosen here at its end.
 *
 * The image at place p of an update takes slot (start + p) mod capacity, where `start` is drawn once for the
 * update; an update has no more than `capacity` images that take part.  Of an update of one image this is the
 * published buffer. */
#include "ops/replay_rules.h"

#include <stdio.h>

#include "ops/random_rules.h"
#include "ops/type_rules.h"

enum { POOL, FILLED, X, KEY };
enum { SHOWN, SLOT, PLACE };
enum { COIN, START }; /* words of a place's draws */

lsi_replay_turn lsi_replay_choose(const ls_rng_key *key, uint32_t stream, int64_t capacity,
                                  const void *filled, lsi_slot_empty is_empty, int64_t place)
{
    const ls_rng_key update = {key->seed_lo, key->seed_hi, key->step, 0};
    int64_t n_empty = 0;
    uint64_t start;

    for (int64_t slot = 0; slot < capacity; slot++)
        if (is_empty(filled, slot) && n_empty++ == place) return (lsi_replay_turn){slot, false};
    if (n_empty > 0 || place >= capacity ||
        ls_rng_uniform(ls_rng_word(&update, stream, (uint32_t)place, COIN)) < 0.5F)
        return (lsi_replay_turn){-1, false};
    start = (uint64_t)ls_rng_word(&update, stream, 0, START) * (uint64_t)capacity >> 32;
    return (lsi_replay_turn){((int64_t)start + place) % capacity, true};
}

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_shape pool = c->in[POOL], x = c->in[X];

    if (pool.rank != 2 || x.rank != 2 || pool.dim[0] < 1 || pool.dim[0] > INT32_MAX ||
        pool.dim[1] != x.dim[1])
        return ls_fail(err, LS_INVALID, "needs a pool (C, D) of at least one slot and images (N, D)");
    if (!ls_dtype_is_float(c->in_dtype[X]) || c->in_dtype[POOL] != c->in_dtype[X])
        return ls_fail(err, LS_INVALID, "pool and images must be of one floating type, got %s and %s",
                       ls_dtype_name(c->in_dtype[POOL]), ls_dtype_name(c->in_dtype[X]));
    if (!ls_shape_equal(c->in[FILLED], LS_SHAPE(pool.dim[0], 1)) ||
        c->in_dtype[FILLED] != lsi_wide_dtype(c->in_dtype[X]))
        return ls_fail(err, LS_INVALID, "needs one %s number for each of %lld slots",
                       ls_dtype_name(lsi_wide_dtype(c->in_dtype[X])), (long long)pool.dim[0]);
    c->out[SHOWN] = x;
    c->out_dtype[SHOWN] = c->in_dtype[X];
    c->out[SLOT] = c->out[PLACE] = LS_SHAPE(x.dim[0]);
    c->out_dtype[SLOT] = c->out_dtype[PLACE] = LS_I32;
    return lsi_check_key(c, KEY, err);
}

static bool is_empty(const void *filled, int64_t slot)
{
    return ((const double *)filled)[slot] == 0;
}

static void ref(const ls_ref_call *c)
{
    const ls_replay_attr *a = c->attr;
    const ls_rng_key key = lsi_random_key(&c->in[KEY]);
    const int64_t capacity = c->in[POOL].shape.dim[0], D = c->in[POOL].shape.dim[1];

    for (int64_t i = 0; i < c->in[X].shape.dim[0]; i++) {
        const int64_t place = (int64_t)key.sample_base + i;
        const lsi_replay_turn t =
            lsi_replay_choose(&key, a->stream, capacity, c->in[FILLED].d, is_empty, place);
        const double *from = t.swap ? c->in[POOL].d + t.slot * D : c->in[X].d + i * D;
        for (int64_t k = 0; k < D; k++) c->out[SHOWN].d[i * D + k] = from[k];
        c->out[SLOT].d[i] = (double)t.slot;
        c->out[PLACE].d[i] = t.slot >= 0 ? (double)place : -1;
    }
}

static void attr_text(const void *attr, char *buf, size_t n)
{
    snprintf(buf, n, "stream=%08x", (unsigned)((const ls_replay_attr *)attr)->stream);
}

const ls_op ls_op_replay = {
    .name = "replay",
    .min_in = 4,
    .max_in = 4,
    .n_out = 3,
    .attr_size = sizeof(ls_replay_attr),
    .flags = LS_OP_RANDOM | LS_OP_NO_GRAD,
    .infer = infer,
    .ref = ref,
    .attr_text = attr_text,
};

ls_value ls_replay_choice(ls_value pool, ls_value filled, ls_value x, ls_value key, const char *stream)
{
    return ls_graph_add(x.g, &ls_op_replay, 4, (ls_value[]){pool, filled, x, key},
                        &(ls_replay_attr){ls_rng_stream(stream)});
}
