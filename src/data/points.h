/* points.h: what is done to point clouds: arrays (channels, points), whose first three channels are x, y and
 * z.
 *
 * The box: one least and one greatest value over all coordinates of all clouds together; coordinates are
 * brought to 0..1 by these two, so that all axes and all clouds keep one scale.  The subset: fewer points
 * than are stored, a choice at random in which every set of that many points is equally likely; the points
 * keep their order, which along a chain of atoms means something. */
#ifndef LS_DATA_POINTS_H
#define LS_DATA_POINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "lockstep/status.h"

typedef struct ls_box {
    bool on;
    float lo, hi;
} ls_box;

/* "LO:HI" to a box; LS_INVALID unless LO < HI, both finite. */
ls_status ls_box_parse(ls_box *box, const char *text, ls_err *err) LS_MUST_CHECK;
/* x to (x - lo) / (hi - lo), for n values. */
void ls_box_apply(const ls_box *box, float *x, int64_t n);

/* Chooses `wanted` of `n` points: chosen[0] < chosen[1] < ... < n.  The choice is a function of the key and
 * of `sample`: with the key of an augmented sample (see ls_dataset_read) it changes from epoch to epoch. */
void ls_points_choose(const ls_rng_key *key, uint32_t sample, int64_t n, int64_t wanted, int64_t *chosen);
/* (channels, n) to (channels, wanted): the chosen points. */
void ls_points_take(const float *in, int64_t channels, int64_t n, const int64_t *chosen, int64_t wanted,
                    float *out);

#endif
