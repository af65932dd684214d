/* region_case.h: made-up operands of a region and what its reference makes of them. */
#ifndef LS_TESTS_BACKEND_REGION_CASE_H
#define LS_TESTS_BACKEND_REGION_CASE_H

#include "backend/cuda/region.h"

typedef struct region_case {
    const ls_graph *g;
    const ls_region_attr *a;
    ls_ref_tensor in[LSI_REGION_POINTERS], out[LSI_REGION_POINTERS];
} region_case;

/* The attributes of a region node of g.  Not `computed`: outputs are what they are. */
void region_case_make(region_case *c, const ls_graph *g, const ls_region_attr *a, bool computed);
void region_case_release(region_case *c);
/* Operand i: inputs, then outputs. */
size_t region_case_bytes(const region_case *c, int i);
/* Its bytes, as a device has them, in memory that the caller frees. */
void *region_case_input(const region_case *c, int i);
/* The largest difference of an output's bytes from what is expected, as a share of its largest element;
 * infinite where one is NaN. */
double region_case_difference(const region_case *c, int k, const void *bytes);

#endif
