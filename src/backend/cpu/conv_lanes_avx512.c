/* conv_lanes_avx512.c: the kernels of conv_lanes.h with tiles of 5x5 sums. */
#define LANES_TILE 5
#include "backend/cpu/conv_lanes_template.h"

const lsi_lanes_kernels lsi_lanes_avx512 = {.usable = lsi_has_avx512,
                                            .map = {map_floats, prepare_map, map},
                                            .weights = {weights_floats, prepare_weights, weights}};
