/* pointwise.h: element-wise functions on runs of elements, one function per code, per instruction set. */
#ifndef LS_BACKEND_CPU_POINTWISE_H
#define LS_BACKEND_CPU_POINTWISE_H

#include "ops/ops.h"

/* o[i] = f(a[i * sa], b[i * sb]) for i in 0..n-1; sa and sb are 0 (one element serves all) or 1.  o may equal
 * a or b exactly. */
typedef void (*lsi_pw_fn)(float *o, const float *a, const float *b, int sa, int sb, int64_t n, float p0,
                          float p1);
typedef struct lsi_pw_table {
    lsi_pw_fn fn[LS_PW_N]; /* by code; NULL for LS_PW_NONE */
    const char *impl;
} lsi_pw_table;
extern const lsi_pw_table lsi_pw_avx512, lsi_pw_avx2;

#endif
