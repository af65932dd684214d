/* conv_lanes.h: convolutions of plain maps with few channels on both sides, a batch at a time.
 *
 * Neither channels nor rows fill vectors well in small plain maps, but the batch does: a group of samples is
 * transposed so that every vector holds one pixel of several samples ("lanes"), weights are broadcast, and
 * results are transposed back.  The gradient with respect to the input (stride 1) is the same with the filter
 * turned around, so a view names its maps source and destination. */
#ifndef LS_BACKEND_CPU_CONV_LANES_H
#define LS_BACKEND_CPU_CONV_LANES_H

#include "backend/cpu/conv.h"

/* dst[s][d][y][x] = act(sum of w(d, c, ky, kx) * src[s][c][y*sh + ky*dh - pt][x*sw + kx*dw - pl] + bias[d]),
 * where w(d, c, ky, kx) is w[d*w_d + c*w_c + ky*w_y + kx*w_x]. */
typedef struct lsi_lanes {
    int64_t n, src_c, src_h, src_w, dst_c, dst_h, dst_w;
    int64_t kh, kw, sh, sw, dh, dw, pt, pl;
    int64_t w_d, w_c, w_y, w_x;
    int64_t pad_h,
        pad_w; /* the part of the source that is used, with its zeros: pt, pl before it and some behind */
    float *src, *dst, *w, *bias; /* w points at the element (0, 0, 0, 0); bias or NULL */
    lsi_conv_act act;
    float slope;
} lsi_lanes;

/* One pass, in two steps: what `prepare` transposes is read by all threads of `run`, so it must be finished
 * before; both are called by every thread with the same scratch. */
typedef struct lsi_lanes_pass {
    size_t (*floats)(const lsi_lanes *l, int threads); /* of scratch */
    void (*prepare)(const lsi_lanes *l, int thread, int n_threads, float *scratch);
    void (*run)(const lsi_lanes *l, int thread, int n_threads, float *scratch);
} lsi_lanes_pass;

typedef struct lsi_lanes_kernels {
    bool (*usable)(void);             /* whether this processor has the instructions */
    bool (*fits)(const lsi_lanes *l); /* whether the kernels can do this view; NULL: every one */
    lsi_lanes_pass map;               /* src, w -> dst */
    lsi_lanes_pass weights;           /* src, dst -> w; may be missing */
} lsi_lanes_kernels;

extern const lsi_lanes_kernels lsi_lanes_avx512;   /* conv_lanes_avx512.c */
extern const lsi_lanes_kernels lsi_lanes_avx2;     /* conv_lanes_avx2.c */
extern const lsi_lanes_kernels lsi_conv_rows_avx2; /* conv_rows_avx2.c: rows instead of lanes, same views */

#endif
