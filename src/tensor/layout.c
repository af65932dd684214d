/* layout.c: names of layouts, what may be stored in them, and what it takes. */
#include "tensor/layout.h"

#define C16_LANES 16

const char *ls_layout_name(ls_layout l)
{
    LS_BUG_IF((int)l < 0 || l >= LS_LAYOUT_N);
    return l == LS_LAYOUT_C16 ? "c16" : "plain";
}

size_t ls_layout_bytes(ls_layout l, ls_dtype t, ls_shape s)
{
    LS_BUG_IF((int)l < 0 || l >= LS_LAYOUT_N);
    if (l ==
        LS_LAYOUT_C16) { /* blocks of so many channels, each whole: those that are missing would be gaps */
        LS_BUG_IF(s.rank != 4);
        s.dim[1] = (s.dim[1] + C16_LANES - 1) / C16_LANES * C16_LANES;
    }
    return (size_t)ls_shape_count(s) * ls_dtype_size(t);
}

bool ls_layout_allowed(ls_layout l, ls_dtype t, ls_shape s)
{
    switch (l) {
    case LS_LAYOUT_PLAIN: return true;
    case LS_LAYOUT_C16:
        /* Vector kernels exist for the types that networks compute in, and for the indices of their pools. */
        return s.rank == 4 && s.dim[1] > 0 && s.dim[1] % C16_LANES == 0 &&
               (t == LS_F32 || t == LS_BF16 || t == LS_F16 || t == LS_U8);
    case LS_LAYOUT_N: break;
    }
    return false;
}
