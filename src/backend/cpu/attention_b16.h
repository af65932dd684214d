/* attention_b16.h: attention of one head of one sample from bf16 numbers, all queries at once.
 *
 * For sequences that are short enough for the weights of all queries (t x t) to stay in the second-level
 * cache. Scores stand in fp32 for 32 queries at a time; weights are rounded once, where the next product
 * reads them. attention.c deals entries to threads and has the way for longer sequences and other types. */
#ifndef LS_BACKEND_CPU_ATTENTION_B16_H
#define LS_BACKEND_CPU_ATTENTION_B16_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LSI_ATTENTION_B16_TOKENS = 512 }; /* at most */

typedef struct lsi_attention_b16 {
    int64_t t, d;            /* tokens, numbers of a head */
    int64_t row_in, row_out; /* numbers from a token to the next: of q, k, v and their gradients; of out */
    float scale;
} lsi_attention_b16;

/* Bytes of scratch memory, aligned to 64. */
size_t lsi_attention_b16_scratch(const lsi_attention_b16 *s, bool backward);
/* out, and the log-sum-exp of each query's scores. */
void lsi_attention_b16_forward(const lsi_attention_b16 *s, const uint16_t *q, const uint16_t *k,
                               const uint16_t *v, uint16_t *out, float *lse, void *scratch);

typedef struct lsi_attention_b16_grads {
    const uint16_t *q, *k, *v, *out, *dout;
    const float *lse;
    uint16_t *dq, *dk, *dv;
} lsi_attention_b16_grads;
void lsi_attention_b16_backward(const lsi_attention_b16 *s, const lsi_attention_b16_grads *g, void *scratch);

/* -- rows of scores (attention_rows_avx512bf16.c); n columns exist, up to `whole` zeros are written ----- */

/* p = softmax(scale * x), with x as scratch; returns the log of the sum of exponentials. */
float lsi_attention_softmax_row(float *x, float scale, int64_t n, int64_t whole, uint16_t *p);
/* p = exp(scale * x - lse), ds = scale * p * (dp - delta). */
void lsi_attention_back_row(const float *x, const float *dp, float scale, float lse, float delta, int64_t n,
                            int64_t whole, uint16_t *p, uint16_t *ds);
/* Sum of products of bf16 numbers. */
float lsi_attention_dot(const uint16_t *a, const uint16_t *b, int64_t n);

#endif
