/* conv.h: the convolution implementations of the CPU backend, and how one is chosen.
 *
 * A problem is one pass of one layer: forward, gradient with respect to the input (which is also transposed
 * convolution), or gradient with respect to the weights.  Several implementations can usually do a problem
 * and differ in speed by up to 16x, so the backend times the applicable ones once, when a plan is made, and
 * keeps the winner.  Planning may allocate; running allocates nothing and takes its scratch from the plan's
 * arena. */
#ifndef LS_BACKEND_CPU_CONV_H
#define LS_BACKEND_CPU_CONV_H

#include "backend/cpu/c16.h"
#include "backend/stream.h"
#include "lockstep/status.h"
#include "lockstep/tensor.h"

typedef enum lsi_conv_pass {
    LSI_CONV_FWD, /* y  = act(conv(x, w) + bias[co]) */
    LSI_CONV_DX,  /* dx = act(adjoint of conv applied to dy + bias[ci]); bias and act serve transposed
                     convolution */
    LSI_CONV_DW   /* dw = sum over the batch */
} lsi_conv_pass;

typedef enum lsi_conv_act { LSI_ACT_NONE, LSI_ACT_RELU, LSI_ACT_LEAKY, LSI_ACT_TANH } lsi_conv_act;

/* y[n][o][oy][ox] = sum over i, ky, kx of w[o][i][ky][kx] * x[n][i][oy*sh + ky*dh - pt][ox*sw + kx*dw - pl],
 * with x = 0 outside 0..hi-1, 0..wi-1.  Padding below and to the right is whatever ho, wo imply. */
typedef struct lsi_conv_problem {
    lsi_conv_pass pass;
    int64_t n, ci, hi, wi; /* x, dx: (n, ci, hi, wi) */
    int64_t co, ho, wo;    /* y, dy: (n, co, ho, wo) */
    int kh, kw, sh, sw, dh, dw, pt, pl, groups;
    const ls_layout *x_layout,
        *y_layout; /* of x/dx and of y/dy; weights are always plain (co, ci/groups, kh, kw) */
    ls_dtype x_type, y_type, w_type,
        bias_type;    /* LS_F32 (which is 0) or, with implementations that say so, LS_BF16;
                         f32 operands are then rounded, and sums are fp32 */
    bool has_bias;    /* never set for DW */
    lsi_conv_act act; /* LSI_ACT_NONE for DW */
    float slope;      /* of LSI_ACT_LEAKY */
    int threads;
} lsi_conv_problem;

/* Whether all of it is fp32, as most implementations want it. */
static inline bool lsi_conv_is_f32(const lsi_conv_problem *p)
{
    return p->x_type == LS_F32 && p->y_type == LS_F32 && p->w_type == LS_F32 && p->bias_type == LS_F32;
}

/* x, y stand for dx, dy where the pass has them.  Outputs are overwritten, never accumulated into. */
typedef struct lsi_conv_args {
    float *x;          /* FWD, DW: read; DX: written; like the others of the type that the problem says */
    float *w;          /* FWD, DX: read; DW: written (dw) */
    float *bias;       /* or NULL; co entries in FWD, ci entries in DX */
    float *y;          /* FWD: written; DX, DW: read */
    void *scratch;     /* aligned to 64 bytes; scratch(p) bytes */
    ls_stream *stream; /* is told when it fails; or NULL */
} lsi_conv_args;

typedef struct lsi_conv_impl {
    const char *name;
    int64_t good_from; /* pixels of y; a poor guess for smaller maps (0: for none) */
    bool low;          /* takes problems that are not all fp32, and only those */
    /* Truthful: the test suite runs everything this says yes to. */
    bool (*applicable)(const lsi_conv_problem *p);
    size_t (*scratch)(const lsi_conv_problem *p); /* bytes; may be NULL for none */
    /* State made at planning time (primitives, tables); all three may be NULL for an implementation without.
     */
    ls_status (*create)(void **state, const lsi_conv_problem *p, ls_err *err);
    void (*destroy)(void *state);
    void (*run)(void *state, const lsi_conv_problem *p, const lsi_conv_args *a);
} lsi_conv_impl;

/* The list of implementations, best guess first among those that are good for the map, ended by NULL
 * (conv_list.c: the only list). */
extern const lsi_conv_impl *const lsi_conv_impls[];

#endif
