/* channels.h: tensors seen channel by channel: norms, biases, and sums over everything but the channels.
 *
 * Two ways of lying in memory are told apart.  In *lines* (plain feature maps) the elements of one channel of
 * one image are contiguous, and a vector holds elements of one channel.  In *lanes* (blocked feature maps,
 * and plain tensors whose channels come last) neighbouring channels are contiguous, and a vector holds one
 * element of each of several channels.  Kernels work on a unit of channels (one in lines, a vector of them in
 * lanes) and a range of positions; a position counts through images and pixels. */
#ifndef LS_BACKEND_CPU_CHANNELS_H
#define LS_BACKEND_CPU_CHANNELS_H

#include "backend/cpu/c16.h"
#include "ops/ops.h"

typedef struct lsi_channels {
    bool lanes;
    int64_t n, c, s;    /* images, channels, pixels of an image */
    int64_t sn, sb, sp; /* lanes: floats from image to image, from 16 channels to the next 16, from pixel to
                           pixel */
} lsi_channels;

/* The view of `shape` along `axis`.  With `merge` and no pixels, images count as pixels of one image, which
 * is the better view unless images must be told apart. */
lsi_channels lsi_channels_of(ls_shape shape, int axis, const ls_layout *layout, bool merge);

/* What the norms need per channel; arrays are indexed by channel.  Maps are of the type that the table is
 * for, the rest is f32. */
typedef struct lsi_norm_apply {
    const void *x, *residual; /* residual may be NULL */
    void *y;
    const float *mean, *scale, *beta; /* beta may be NULL */
    ls_act act;
    float slope;
} lsi_norm_apply;

typedef struct lsi_norm_back {
    const void *dy, *x, *y; /* y may be NULL when act is LS_ACT_NONE */
    void *dx, *dresidual;   /* dresidual may be NULL */
    const float *mean;
    const float *a, *b, *c; /* dx = a dz + b (x - mean) + c */
    ls_act act;
    float slope;
} lsi_norm_back;

typedef struct lsi_act_back {
    const void *dy, *y;
    void *dz; /* NULL: not wanted */
    ls_act act;
    float slope;
} lsi_act_back;

/* All functions take the unit that begins at channel `ch` and positions lo..hi-1.  Sums are added to `sums`:
 * one double per channel of the unit for the first sum, then as many for the second. */
typedef struct lsi_channel_table {
    int unit; /* channels of a unit in lanes */
    const char *impl;
    /* sum of x - shift and of its square; shift has an entry for every channel of the unit. */
    void (*moments)(const lsi_channels *v, const void *x, int64_t ch, int64_t lo, int64_t hi,
                    const float *shift, double *sums);
    /* y = act((x - mean) * scale + beta + residual) */
    void (*norm)(const lsi_channels *v, const lsi_norm_apply *d, int64_t ch, int64_t lo, int64_t hi);
    /* sum of dz = act'(y) dy and of dz (x - mean) */
    void (*norm_sums)(const lsi_channels *v, const lsi_norm_back *d, int64_t ch, int64_t lo, int64_t hi,
                      double *sums);
    void (*norm_back)(const lsi_channels *v, const lsi_norm_back *d, int64_t ch, int64_t lo, int64_t hi);
    /* dz = act'(y) dy, and its sum; with act none and dz NULL it is the sum of dy alone. */
    void (*act_back)(const lsi_channels *v, const lsi_act_back *d, int64_t ch, int64_t lo, int64_t hi,
                     double *sums);
    /* y = x + b */
    void (*bias)(const lsi_channels *v, const void *x, const float *b, void *y, int64_t ch, int64_t lo,
                 int64_t hi);
} lsi_channel_table;
extern const lsi_channel_table lsi_channels_avx512, lsi_channels_avx2;
extern const lsi_channel_table lsi_channels_bf16_avx512, lsi_channels_bf16_avx2;
extern const lsi_channel_table lsi_channels_f16_avx512, lsi_channels_f16_avx2;

/* A reduction per channel, followed where wanted by a pass that uses its result, cut among threads.
 *
 * A task is a unit of channels in one of `groups` equal ranges of positions.  Enough tasks: every thread
 * reduces, finishes and applies its own, so that the second pass finds the data in the cache.  Too few: all
 * threads share every task, and partial sums meet in scratch in a fixed order. */
#define LSI_UNIT_MAX 16
#define LSI_SUMS_MAX 2
typedef struct lsi_channel_job {
    lsi_channels view;
    int64_t groups;
    int unit, n_sums, threads;
    void (*reduce)(const void *ctx, int64_t group, int64_t ch, int64_t lo, int64_t hi, double *sums);
    void (*finish)(const void *ctx, int64_t group, int64_t ch, int n_ch, const double *sums);
    void (*apply)(const void *ctx, int64_t group, int64_t ch, int64_t lo, int64_t hi); /* may be NULL */
} lsi_channel_job;
/* Bytes of scratch that the run needs, a multiple of 64. */
size_t lsi_channel_job_scratch(const lsi_channel_job *j);
void lsi_channel_job_run(const lsi_channel_job *j, const void *ctx, void *scratch);
/* Calls job->apply for every unit and position, cut evenly among threads; nothing is reduced. */
void lsi_channel_job_apply(const lsi_channel_job *j, const void *ctx);

#endif
