/* layout.h: how the elements of a tensor lie in memory on the CPU.
 *
 * LS_LAYOUT_PLAIN is row-major in the logical shape.  LS_LAYOUT_C16 is for rank-4 feature maps (N, C, H, W)
 * with C a multiple of 16: (N, C/16, H, W, 16), the layout in which vector kernels load 16 channels at once
 * (oneDNN calls it nChw16c). */
#ifndef LS_TENSOR_LAYOUT_H
#define LS_TENSOR_LAYOUT_H

#include "lockstep/tensor.h"

typedef enum ls_layout { LS_LAYOUT_PLAIN, LS_LAYOUT_C16, LS_LAYOUT_N } ls_layout;

const char *ls_layout_name(ls_layout l); /* "plain", "c16" */
/* What a tensor of this type and shape takes in layout `l`: elements, and the gaps that the layout leaves
 * (these two leave none).  For shapes that are allowed. */
size_t ls_layout_bytes(ls_layout l, ls_dtype t, ls_shape s);
/* Whether a tensor of this shape and type may be stored in layout `l`. */
bool ls_layout_allowed(ls_layout l, ls_dtype t, ls_shape s);

#endif
