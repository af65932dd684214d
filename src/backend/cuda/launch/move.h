/* move.h: what the kernels that move, fill and convert are called with (module/move.cu, module/rows.cu). */
#ifndef LS_BACKEND_CUDA_LAUNCH_MOVE_H
#define LS_BACKEND_CUDA_LAUNCH_MOVE_H

#include "lockstep/tensor.h"

/* count elements of `value`. */
typedef struct lsi_cuda_fill_args {
    void *out;
    ls_dtype dtype;
    int64_t count;
    double value;
} lsi_cuda_fill_args;

/* out[i] = in[i], rounded once. */
typedef struct lsi_cuda_cast_args {
    void *out;
    const void *in;
    ls_dtype to, from;
    int64_t count;
} lsi_cuda_cast_args;

/* Elements of `size` bytes (1, 2, 4, 8, 16) go from one set of strides to another; strides count elements,
 * dimensions are in the order of the output, the slowest first. */
typedef struct lsi_cuda_move_args {
    void *out;
    const void *in;
    int size, rank;
    int64_t dim[LS_MAX_RANK], from[LS_MAX_RANK], to[LS_MAX_RANK];
} lsi_cuda_move_args;

/* out[b][i][j] = in[b][j][i]: rows i, columns j of the output. */
typedef struct lsi_cuda_turn_args {
    void *out;
    const void *in;
    int size; /* of an element: 1, 2, 4, 8 */
    int64_t batch, rows, columns;
    int64_t out_batch, out_row, in_batch, in_column; /* strides; within a row of each they are 1 */
} lsi_cuda_turn_args;

/* (outer, h, w, inner) with zeros or a mirror image around h and w; or the adjoint of that, whose `out` is
 * the smaller one. */
typedef struct lsi_cuda_pad_args {
    void *out;
    const void *in;
    ls_dtype dtype;
    int64_t outer, h, w, inner; /* without the padding */
    int64_t pad[4];             /* top, left, bottom, right */
    bool reflect, adjoint;
} lsi_cuda_pad_args;

/* Bytes from one place to another, of the device or of pinned host memory. */
typedef struct lsi_cuda_copied {
    void *to;
    const void *from;
    int64_t bytes;
} lsi_cuda_copied;

enum { LSI_CUDA_COPIES = 32 };

/* All of them at once: no place that one writes is another's. */
typedef struct lsi_cuda_copies_args {
    lsi_cuda_copied of[LSI_CUDA_COPIES];
    int n;
} lsi_cuda_copies_args;

/* Rows of d elements by index: what is done with them is the launcher's. */
typedef struct lsi_cuda_gather_rows_args {
    void *out;
    const void *table;
    const int32_t *index;
    ls_dtype dtype;
    int64_t n, v, d; /* rows of the result, of the table, elements of a row */
} lsi_cuda_gather_rows_args;

typedef struct lsi_cuda_scatter_rows_args {
    void *out; /* v rows */
    const void *rows;
    const int32_t *index;
    ls_dtype dtype;
    int64_t n, v, d;
} lsi_cuda_scatter_rows_args;

typedef struct lsi_cuda_store_rows_args {
    void *table;
    const void *rows;
    const int32_t *index;
    int size; /* of an element */
    int64_t n, v, d;
} lsi_cuda_store_rows_args;

#endif
