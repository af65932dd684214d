/* make_internal.h: what the writers of synthetic sets share. */
#ifndef LS_DATA_MAKE_INTERNAL_H
#define LS_DATA_MAKE_INTERNAL_H

#include "data/make.h"

/* The training samples or the test samples of a set that is being written. */
typedef struct lsi_make_part {
    const ls_data_make_options *options; /* complete */
    const ls_dataset *set;
    int64_t first, end; /* samples of the set */
    int64_t pixels;
    float *image; /* room for one */
    bool test;
} lsi_make_part;

/* Sample `index` of the set: its pixels as bytes and its label; either may be NULL. */
ls_status lsi_make_load(const lsi_make_part *p, int64_t index, uint8_t *bytes, int32_t *label,
                        ls_err *err) LS_MUST_CHECK;

/* Picture `index` of a seed as bytes of `shape` (1 or 3, H, W), channel by channel. */
void lsi_make_scene(uint64_t seed, int64_t index, bool striped, ls_shape shape, uint8_t *bytes);

/* Map `index`: options->maps rows of as many floats. */
void lsi_make_map(const lsi_make_part *p, int64_t index, float *out);

ls_status lsi_make_hdf5(const lsi_make_part *p, ls_err *err) LS_MUST_CHECK;

#endif
