/* conv_case.h: a convolution to be tested, by its sizes. */
#ifndef LS_TESTS_BACKEND_CONV_CASE_H
#define LS_TESTS_BACKEND_CONV_CASE_H

#include "backend/cpu/conv.h"

/* name, n, ci, hi, wi, co, kernel h w, stride h w, dilation h w, padding top left below right, groups */
typedef struct conv_case {
    const char *name;
    int64_t n, ci, hi, wi, co;
    int kh, kw, sh, sw, dh, dw, pt, pl, pb, pr, groups;
} conv_case;

/* Of plain maps of fp32 and no threads; the caller sets what else there is to a problem. */
static inline lsi_conv_problem conv_problem_of(const conv_case *c, lsi_conv_pass pass)
{
    return (lsi_conv_problem){.pass = pass,
                              .n = c->n,
                              .ci = c->ci,
                              .hi = c->hi,
                              .wi = c->wi,
                              .co = c->co,
                              .ho = (c->hi + c->pt + c->pb - (c->kh - 1) * c->dh - 1) / c->sh + 1,
                              .wo = (c->wi + c->pl + c->pr - (c->kw - 1) * c->dw - 1) / c->sw + 1,
                              .kh = c->kh,
                              .kw = c->kw,
                              .sh = c->sh,
                              .sw = c->sw,
                              .dh = c->dh,
                              .dw = c->dw,
                              .pt = c->pt,
                              .pl = c->pl,
                              .groups = c->groups,
                              .slope = 0.2f};
}

#endif
