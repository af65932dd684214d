/* tensor.h: what a tensor is made of: element type and logical shape.
 *
 * The logical shape is row-major and never changes with the device; how elements lie in memory (the layout)
 * belongs to the backend.  Feature maps are (N, C, H, W). */
#ifndef LOCKSTEP_TENSOR_H
#define LOCKSTEP_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef enum ls_dtype {
    LS_F32,
    LS_BF16,
    LS_F16,
    LS_F64, /* used by the reference backend to check gradients; no fast kernels exist for it */
    LS_I32,
    LS_U8,
    LS_BOOL,
    LS_DTYPE_N
} ls_dtype;

const char *ls_dtype_name(ls_dtype t); /* "f32", "bf16", ... */
size_t ls_dtype_size(ls_dtype t);      /* bytes per element */
bool ls_dtype_is_float(ls_dtype t);

#define LS_MAX_RANK 6

/* Rank 0 is a scalar (one element).  A dimension may be 0: the tensor is then empty. */
typedef struct ls_shape {
    int rank;
    int64_t dim[LS_MAX_RANK];
} ls_shape;

ls_shape ls_shape_make(int rank, const int64_t *dim);
/* LS_SHAPE(2, 3) is the shape (2, 3); LS_SHAPE_SCALAR has rank 0. */
#ifdef __cplusplus /* which has no addresses of temporary arrays */
extern "C++" {
template <typename... sizes> inline ls_shape ls_shape_of(sizes... s)
{
    const int64_t dim[] = {static_cast<int64_t>(s)...};
    return ls_shape_make(static_cast<int>(sizeof...(s)), dim);
}
}
#define LS_SHAPE(...) ls_shape_of(__VA_ARGS__)
#else
#define LS_SHAPE(...)                                                                                        \
    ls_shape_make((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})
#endif
#define LS_SHAPE_SCALAR ls_shape_make(0, NULL)

/* Product of the dimensions; 1 for a scalar.  For valid shapes. */
int64_t ls_shape_count(ls_shape s);
/* False when a dimension is negative or the element count times 8 bytes would overflow int64_t, where a
 * dimension of 0 counts as 1: parts of an empty shape can be multiplied too. */
bool ls_shape_valid(ls_shape s);
bool ls_shape_equal(ls_shape a, ls_shape b);
/* "(64, 1, 28, 28)" into buf of at least LS_SHAPE_TEXT bytes; returns buf. */
#define LS_SHAPE_TEXT 160
const char *ls_shape_text(ls_shape s, char *buf);
/* NumPy broadcasting of a and b; false when they do not fit. */
bool ls_shape_broadcast(ls_shape a, ls_shape b, ls_shape *out);

/* Round to nearest, ties to even; NaN stays NaN. */
uint16_t ls_bf16_from_f32(float x);
float ls_bf16_to_f32(uint16_t x);
uint16_t ls_f16_from_f32(float x);
float ls_f16_to_f32(uint16_t x);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
