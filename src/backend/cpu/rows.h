/* rows.h: functions of rows (the last dimension): softmax, layer norm, cross entropy; per instruction set. */
#ifndef LS_BACKEND_CPU_ROWS_H
#define LS_BACKEND_CPU_ROWS_H

#include <stdint.h>

typedef struct lsi_row_table {
    const char *impl;
    /* y = softmax(x) and y = x - log-sum-exp(x) of one row; y may equal x. Return the log-sum-exp. */
    double (*softmax)(const float *x, float *y, int64_t n);
    double (*log_softmax)(const float *x, float *y, int64_t n);
    /* y = (x - mean) * invstd * gamma + beta */
    void (*norm)(const float *x, const float *gamma, const float *beta, double eps, float *y, float *mean,
                 float *invstd, int64_t n);
    /* dx; adds to dgamma and dbeta (n doubles each). */
    void (*norm_back)(const float *dy, const float *x, const float *gamma, float mean, float invstd,
                      float *dx, double *dgamma, double *dbeta, int64_t n);
} lsi_row_table;
extern const lsi_row_table lsi_rows_avx512, lsi_rows_avx2;

#endif
