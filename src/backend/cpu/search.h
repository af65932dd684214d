/* search.h: kernels that look for the best of many: maxima along an axis, nearest points; per instruction
 * set. */
#ifndef LS_BACKEND_CPU_SEARCH_H
#define LS_BACKEND_CPU_SEARCH_H

#include <stdint.h>

/* Positions travel in floats beside the values they belong to, which are exact up to here. */
#define LSI_SEARCH_MAX ((int64_t)1 << 24)

typedef struct lsi_search_table {
    const char *impl;
    int points; /* that nearest() takes at a time */
    /* The largest of x[0..n-1], the first of equals, a NaN before all; *at is its position. */
    float (*row_max)(const float *x, int64_t n, int32_t *at);
    /* The same for `width` columns of n rows. */
    void (*column_max)(const float *x, int64_t n, int64_t stride, int64_t width, float *y, int32_t *at);
    /* For `count` points of p (three rows of P), the nearest of all Q points of q (three rows of Q): its
     * number into index, the sum of the squared distances as result. */
    double (*nearest)(const float *p, int64_t P, int64_t count, const float *q, int64_t Q, int32_t *index);
} lsi_search_table;
extern const lsi_search_table lsi_search_avx512, lsi_search_avx2;

#endif
