/* attention_rules.h: what attention and its gradient share. */
#ifndef LS_OPS_ATTENTION_RULES_H
#define LS_OPS_ATTENTION_RULES_H

#include "ops/ops.h"

/* Checks that inputs 0..2 (q, k, v) are of one floating type and one shape (B, T, D). */
ls_status lsi_attention_check(const ls_infer *c, ls_err *err);
/* `products` multiply-adds for each (query, key, channel). */
double lsi_attention_flops(ls_shape q, int products);
void lsi_attention_attr_text(const void *attr, char *buf, size_t n);
/* -- reference kernels, query by query: k and v (and their gradients) have rows every `row` elements
 * -------------
 */

/* The result of one query against T keys in out; returns the log-sum-exp of its scores. */
double lsi_attend(const double *q, const double *k, const double *v, int64_t row, double scale, int64_t T,
                  int64_t D, double *out);

/* What one query adds to all three gradients. */
typedef struct lsi_query_grad {
    const double *q, *k, *v, *out, *dout;
    double *dq, *dk, *dv;
    double lse;
    int64_t row;
} lsi_query_grad;
void lsi_attend_grad(const lsi_query_grad *x, double scale, int64_t T, int64_t D);

/* Heads that lie as (N, T, 3, H, D): from row to row, and from queries to keys to values. */
typedef struct lsi_heads {
    int64_t T, H, D, row, part;
} lsi_heads;
lsi_heads lsi_heads_of(ls_shape qkv);
/* Where row 0 of head h of part 0, 1 or 2 of sample n begins. */
int64_t lsi_heads_at(const lsi_heads *x, int64_t n, int64_t part, int64_t h);

/* sum of a[i] * b[i] */
double lsi_dot(const double *a, const double *b, int64_t n);

#endif
