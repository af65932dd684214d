/* attention_rules.c: checks and arithmetic that attention and its gradient share. */
#include "ops/attention_rules.h"

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
