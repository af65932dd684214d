/* conv_lanes_avx2.c: the kernels of conv_lanes.h with tiles of 3x3 sums. */
#define LANES_TILE 3
#include "backend/cpu/conv_lanes_template.h"

const lsi_lanes_kernels lsi_lanes_avx2 = {.usable = lsi_has_avx2,
                                          .map = {map_floats, prepare_map, map},
                                          .weights = {weights_floats, prepare_weights, weights}};
