/* move.h: conversions to and from 16-bit floats, and transposes; per instruction set. */
#ifndef LS_BACKEND_CPU_MOVE_H
#define LS_BACKEND_CPU_MOVE_H

#include <stdint.h>

typedef struct lsi_move_table {
    const char *impl;
    void (*bf16_to_f32)(float *to, const uint16_t *from, int64_t n);
    void (*bf16_from_f32)(uint16_t *to, const float *from, int64_t n); /* to nearest, ties to even */
    void (*f16_to_f32)(float *to, const uint16_t *from, int64_t n);
    void (*f16_from_f32)(uint16_t *to, const float *from, int64_t n);
    /* to[b * to_stride + a] = from[a * from_stride + b] for a in 0..na-1, b in 0..nb-1; 4-byte elements. */
    void (*transpose)(float *to, int64_t to_stride, const float *from, int64_t from_stride, int64_t na,
                      int64_t nb);
} lsi_move_table;
extern const lsi_move_table lsi_move_avx512, lsi_move_avx2;

#endif
