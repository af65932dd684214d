/* replay_rules.h: which slot of a replay pool an image takes, for the reference and for backends. */
#ifndef LS_OPS_REPLAY_RULES_H
#define LS_OPS_REPLAY_RULES_H

#include "base/rng.h"
#include "ops/ops.h"

/* What one image does.  `slot` is -1 when it leaves the pool alone; with `swap` the image of the slot is
 * shown instead of it. */
typedef struct lsi_replay_turn {
    int64_t slot;
    bool swap;
} lsi_replay_turn;

/* Whether a slot is empty; `filled` is the caller's. */
typedef bool (*lsi_slot_empty)(const void *filled, int64_t slot);

/* The turn of the image at `place` of the update.  Everything is a function of places in the whole update, so
 * that no two of its images get the same slot, however the update is cut. */
lsi_replay_turn lsi_replay_choose(const ls_rng_key *key, uint32_t stream, int64_t capacity,
                                  const void *filled, lsi_slot_empty is_empty, int64_t place);

#endif
