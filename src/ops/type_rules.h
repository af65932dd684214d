/* type_rules.h: types of results that must be wider than the data they come from. */
#ifndef LS_OPS_TYPE_RULES_H
#define LS_OPS_TYPE_RULES_H

#include "lockstep/tensor.h"

/* The type of losses, statistics, learning rates and optimiser states beside tensors of type `t`: 16 bits are
 * too few to accumulate in, so it is f32, and f64 in the runs that check gradients. */
static inline ls_dtype lsi_wide_dtype(ls_dtype t)
{
    return t == LS_F64 ? LS_F64 : LS_F32;
}

#endif
