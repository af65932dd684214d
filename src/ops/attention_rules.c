/* attention_rules.c: checks and arithmetic that attention and its gradient share. */
#include "ops/attention_rules.h"

#include <math.h>
#include <stdio.h>

ls_status lsi_attention_check(const ls_infer *c, ls_err *err)
{
    for (int i = 0; i < 3; i++) {
        if (c->in[i].rank != 3 || !ls_shape_equal(c->in[i], c->in[0]))
            return ls_fail(err, LS_INVALID, "needs q, k and v of one shape (B, T, D)");
        if (c->in_dtype[i] != c->in_dtype[0] || !ls_dtype_is_float(c->in_dtype[i]))
            return ls_fail(err, LS_INVALID, "needs q, k and v of one floating type");
    }
    return LS_OK;
}

double lsi_attention_flops(ls_shape q, int products)
{
    return 2.0 * products * (double)ls_shape_count(q) * (double)q.dim[1];
}

void lsi_attention_attr_text(const void *attr, char *buf, size_t n)
{
    const ls_attention_attr *a = attr;

    snprintf(buf, n, "scale=%.9g", a->scale);
}

double lsi_dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* The scores are computed twice, once for their log-sum-exp
 * (in one pass, rescaling the sum whenever the maximum grows) and once for the weighted sum, instead of being
 * kept. */
double lsi_attend(const double *q, const double *k, const double *v, int64_t row, double scale, int64_t T,
                  int64_t D, double *out)
{
    double max = -INFINITY, sum = 0, lse;

    for (int64_t s = 0; s < T; s++) {
        double score = scale * lsi_dot(q, k + s * row, D);
        if (score <= max) {
            sum += exp(score - max);
        } else {
            sum = sum * exp(max - score) + 1;
            max = score;
        }
    }
    lse = max + log(sum);
    for (int64_t d = 0; d < D; d++) out[d] = 0;
    for (int64_t s = 0; s < T; s++) {
        double p = exp(scale * lsi_dot(q, k + s * row, D) - lse);
        for (int64_t d = 0; d < D; d++) out[d] += p * v[s * row + d];
    }
    return lse;
}

void lsi_attend_grad(const lsi_query_grad *x, double scale, int64_t T, int64_t D)
{
    double delta = lsi_dot(x->dout, x->out, D);

    for (int64_t s = 0; s < T; s++) {
        const double *k = x->k + s * x->row, *v = x->v + s * x->row;
        double *dk = x->dk + s * x->row, *dv = x->dv + s * x->row;
        double p = exp(scale * lsi_dot(x->q, k, D) - x->lse);
        double dscore = scale * p * (lsi_dot(x->dout, v, D) - delta);
        for (int64_t d = 0; d < D; d++) {
            x->dq[d] += dscore * k[d];
            dk[d] += dscore * x->q[d];
            dv[d] += p * x->dout[d];
        }
    }
}

lsi_heads lsi_heads_of(ls_shape qkv)
{
    const int64_t H = qkv.dim[3], D = qkv.dim[4];

    return (lsi_heads){.T = qkv.dim[1], .H = H, .D = D, .row = 3 * H * D, .part = H * D};
}

int64_t lsi_heads_at(const lsi_heads *x, int64_t n, int64_t part, int64_t h)
{
    return n * x->T * x->row + part * x->part + h * x->D;
}
