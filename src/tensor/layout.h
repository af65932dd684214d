/* layout.h: how the elements of a tensor lie in memory.
 *
 * A layout is data: in which order the axes come, which of them is cut into blocks whose elements lie
 * together, and what rows are rounded up to.  Who asks how many bytes a tensor takes, or where an element is,
 * asks here; so a backend may bring layouts of its own (backend/cpu/c16.h) that nobody else knows.  Each
 * exists once, and they are compared by address.  In gaps, where a layout leaves some, lies anything. */
#ifndef LS_TENSOR_LAYOUT_H
#define LS_TENSOR_LAYOUT_H

#include "lockstep/tensor.h"

typedef struct ls_layout {
    const char *name;       /* as plans print it */
    int rank;               /* of the shapes that it is for; 0: all, their axes in the order they have */
    int order[LS_MAX_RANK]; /* axes, the slowest first */
    /* Not 0: `block_axis` is cut into blocks of so many, and the elements of a block lie innermost.  Where
     * the last block is not full it has gaps, unless only `whole` ones are allowed. */
    int block, block_axis;
    bool whole;
    int row;         /* not 0: what lies innermost is rounded up to a multiple of so many elements */
    unsigned dtypes; /* that it is for, bit 1u << t each; 0: all */
} ls_layout;

/* Row-major in the logical shape: what everybody understands, and what the host sees. */
extern const ls_layout ls_layout_plain;
/* Channels last: (N, C, H, W) as (N, H, W, C), and (N, C, L) as (N, L, C). */
extern const ls_layout ls_layout_nhwc, ls_layout_nlc;

/* Whether a tensor of this type and shape may be stored in layout l. */
bool ls_layout_allowed(const ls_layout *l, ls_dtype t, ls_shape s);
/* What it then takes, gaps included. */
size_t ls_layout_bytes(const ls_layout *l, ls_dtype t, ls_shape s);

/* Where elements lie: for kernels that take any layout. */
typedef struct ls_strides {
    ls_shape shape;
    int64_t of[LS_MAX_RANK]; /* elements from one to the next along each axis; from block to block where the
                                axis is cut */
    int block, block_axis;   /* 1: not cut */
    int64_t count;           /* elements of all, gaps included */
} ls_strides;

ls_strides ls_layout_strides(const ls_layout *l, ls_shape s);
/* The place in memory of element i of the logical, row-major order. */
int64_t ls_strides_place(const ls_strides *s, int64_t i);

#endif
