/* c16.h: the blocked layout of this backend's feature maps.
 *
 * (N, C, H, W) with C a multiple of 16 as (N, C/16, H, W, 16), so that vector kernels load 16 channels at
 * once (oneDNN calls it nChw16c).  It leaves no gaps. */
#ifndef LS_BACKEND_CPU_C16_H
#define LS_BACKEND_CPU_C16_H

#include "tensor/layout.h"

extern const ls_layout lsi_layout_c16;

#endif
