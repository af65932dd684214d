/* conv_blocked.h: what the implementations for channel-blocked maps share: reordered weights and scratch.
 *
 * Weights come as (co, ci, kh, kw); the kernels want 16 x 16 blocks per tap, [reduced channel][produced
 * channel]. Forward reduces over ci and produces co, the gradient of the input the other way round. */
#ifndef LS_BACKEND_CPU_CONV_BLOCKED_H
#define LS_BACKEND_CPU_CONV_BLOCKED_H

#include <string.h>

#include "backend/cpu/conv_kernels.h"

#define LSI_BLOCK (LSI_LINE * LSI_LINE) /* floats in one 16 x 16 block of weights */

/* Hands out parts of a scratch area in 64-byte units; with base NULL it only counts. */
typedef struct lsi_bump {
    char *base;
    size_t used;
} lsi_bump;

void *lsi_bump_take(lsi_bump *b, size_t bytes);

/* Everything in blocked layout, one group, channels in whole blocks, sizes that make sense, and kernels
 * exist. */
bool lsi_conv_blocked_ok(const lsi_conv_problem *p);

/* to + t * to_tap receives the 16 x 16 block of tap t between output-channel block co_b and input-channel
 * block ci_b, row k at k * to_row: [ci][co] forward, [co][ci] for the gradient of the input.  Taps t with
 * used[t] == 0 are left alone (used NULL: all). */
typedef struct lsi_weight_block {
    const float *w;
    int64_t ci, taps;
    const unsigned char *used;
    float *to;
    int64_t to_tap, to_row;
} lsi_weight_block;

void lsi_weights_fwd(const lsi_conv_kernels *k, const lsi_weight_block *b, int64_t co_b, int64_t ci_b);
void lsi_weights_dx(const lsi_conv_kernels *k, const lsi_weight_block *b, int64_t co_b, int64_t ci_b);
/* The way back for gradients: dw (co, ci, taps) from blocks [ci][co] at from + t * from_tap; taps with
 * used[t] == 0 become zero (used NULL: all are there). */
typedef struct lsi_dw_block {
    float *dw;
    int64_t ci, taps;
    const unsigned char *used;
} lsi_dw_block;

void lsi_weights_from_blocks(const lsi_conv_kernels *k, const float *from, int64_t from_tap,
                             const lsi_dw_block *b, int64_t co_b, int64_t ci_b);

/* Floor and ceiling of a / b for b > 0 and any a. */
static inline int64_t lsi_div_floor(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

static inline int64_t lsi_div_ceil(int64_t a, int64_t b)
{
    return -lsi_div_floor(-a, b);
}

static inline int64_t lsi_min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t lsi_max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
