/* rows.h: functions of rows (the last dimension): softmax, layer norm, cross entropy; per instruction set. */
#ifndef LS_BACKEND_CPU_ROWS_H
#define LS_BACKEND_CPU_ROWS_H

#include <stdint.h>

/* Rows behind void pointers are of the type that the table is for. */
typedef struct lsi_row_table {
    const char *impl;
    /* y = softmax(x) and y = x - log-sum-exp(x) of one row; y may equal x where that is f32. Return the
     * log-sum-exp. */
    double (*softmax)(const void *x, float *y, int64_t n);
    double (*log_softmax)(const void *x, float *y, int64_t n);
    /* y = (x - mean) * invstd * gamma + beta */
    void (*norm)(const void *x, const float *gamma, const float *beta, double eps, void *y, float *mean,
                 float *invstd, int64_t n);
    /* dx; adds to dgamma and dbeta (n doubles each). */
    void (*norm_back)(const void *dy, const void *x, const float *gamma, float mean, float invstd, void *dx,
                      double *dgamma, double *dbeta, int64_t n);
} lsi_row_table;
extern const lsi_row_table lsi_rows_avx512, lsi_rows_avx2;
extern const lsi_row_table lsi_rows_bf16_avx512, lsi_rows_bf16_avx2;
extern const lsi_row_table lsi_rows_f16_avx512, lsi_rows_f16_avx2;

#endif
