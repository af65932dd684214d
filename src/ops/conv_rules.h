/* conv_rules.h: geometry shared by conv2d and its two gradients. */
#ifndef LS_OPS_CONV_RULES_H
#define LS_OPS_CONV_RULES_H

#include "ops/ops.h"

/* Checks the attributes and computes the output size of conv2d for an input `in` (N, C, H, W) and kernel
 * kh x kw; fails with the reason when the kernel does not fit. */
ls_status lsi_conv_out_size(const ls_conv_attr *a, const int64_t *in, int64_t kh, int64_t kw, int64_t *ho,
                            int64_t *wo, ls_err *err);
void lsi_conv_attr_text(const void *attr, char *buf, size_t n);

/* One term of the sum that defines a convolution: y[yi] += w[wi] * x[xi]. */
typedef void (*lsi_conv_term)(void *ctx, int64_t yi, int64_t wi, int64_t xi);
/* Calls `term` for every (output element, tap) whose input element lies inside the image.  The three
 * reference kernels differ only in which of the three tensors they write. */
void lsi_conv_each(const ls_conv_attr *a, ls_shape x, ls_shape w, ls_shape y, lsi_conv_term term, void *ctx);
/* 2 * N * O * HO * WO * C/groups * KH * KW, edges counted. */
double lsi_conv_flops(ls_shape y, ls_shape w);

#endif
