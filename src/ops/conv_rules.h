/* conv_rules.h: geometry shared by conv2d and its two gradients. */
#ifndef LS_OPS_CONV_RULES_H
#define LS_OPS_CONV_RULES_H

#include "ops/ops.h"

/* Checks what the three ops have in common: two inputs of rank 4 (`what` names them in the message) and of
 * one floating type. */
ls_status lsi_conv_check_inputs(const ls_infer *c, const char *what, ls_err *err);
/* Checks that c input and o output channels fit weights (o, cg, ...) in a->groups groups. */
ls_status lsi_conv_check_channels(const ls_conv_attr *a, int64_t c, int64_t o, int64_t cg, ls_err *err);
/* Checks the fused bias (input 2), where there is one: floating, of length n. */
ls_status lsi_conv_check_bias(const ls_infer *c, int64_t n, ls_err *err);
/* Checks the attributes and computes the output size of conv2d for an input `in` (N, C, H, W) and kernel
 * kh x kw; fails with the reason when the kernel does not fit. */
ls_status lsi_conv_out_size(const ls_conv_attr *a, const int64_t *in, int64_t kh, int64_t kw, int64_t *ho,
                            int64_t *wo, ls_err *err);
/* Checks that conv2d of a->in with kernel kh x kw has the height and width of dy. */
ls_status lsi_conv_check_dy(const ls_conv_attr *a, ls_shape dy, int64_t kh, int64_t kw, ls_err *err);
void lsi_conv_attr_text(const void *attr, char *buf, size_t n);

/* Sets output 0 of a reference kernel to the bias (input 2), or to zero without one. */
void lsi_conv_start(const ls_ref_call *c);
/* Applies the fused activation to output 0. */
void lsi_conv_finish(const ls_ref_call *c);
/* One term of the sum that defines a convolution: y[yi] += w[wi] * x[xi]. */
typedef struct lsi_conv_data {
    double *x, *w, *y;
} lsi_conv_data;
typedef void (*lsi_conv_term)(const lsi_conv_data *t, int64_t yi, int64_t wi, int64_t xi);
/* Calls `term` for every (output element, tap) whose input element lies inside the image.  The three
 * reference kernels differ only in which of the three tensors they write. */
void lsi_conv_each(const ls_conv_attr *a, ls_shape x, ls_shape w, ls_shape y, lsi_conv_term term,
                   const lsi_conv_data *t);
/* 2 * N * O * HO * WO * C/groups * KH * KW, edges counted. */
double lsi_conv_flops(ls_shape y, ls_shape w);

#endif
