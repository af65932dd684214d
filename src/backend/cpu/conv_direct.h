/* conv_direct.h: the two halves of the direct convolution on channel-blocked maps. */
#ifndef LS_BACKEND_CPU_CONV_DIRECT_H
#define LS_BACKEND_CPU_CONV_DIRECT_H

#include "backend/cpu/conv_blocked.h"

/* Forward and gradient of the input (conv_direct.c). */
size_t lsi_direct_gather_scratch(const lsi_conv_problem *p);
void lsi_direct_gather_run(const lsi_conv_problem *p, const lsi_conv_args *a);

/* Gradient of the weights (conv_direct_dw.c). */
size_t lsi_direct_dw_scratch(const lsi_conv_problem *p);
void lsi_direct_dw_run(const lsi_conv_problem *p, const lsi_conv_args *a);

#endif
