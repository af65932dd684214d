/* gelu.h: functions of bf16 numbers by a table of all 65,536 of them. */
#ifndef LS_BACKEND_CPU_GELU_H
#define LS_BACKEND_CPU_GELU_H

#include <stdint.h>

/* y[i] = table[x[i]], to nearest even; gelu_avx512.c */
void lsi_look_up_avx512(uint16_t *y, const uint16_t *x, const float *table, int64_t n);
/* y[i] = dy[i] * table[x[i]] */
void lsi_times_looked_up_avx512(uint16_t *y, const uint16_t *dy, const uint16_t *x, const float *table,
                                int64_t n);

#endif
