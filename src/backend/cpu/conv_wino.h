/* conv_wino.h: Winograd convolution on channel-blocked maps, shared by its passes.
 *
 * F(4x4, 3x3) computes 4x4 results of a 3x3 stride-1 convolution from 6x6 pixels with 36 products per channel
 * pair instead of 144.  A stride-2 convolution becomes one of stride 1 by taking the four interleaved quarter
 * maps
 * ("phases") of x as separate channel blocks ("space to depth"): a kernel of up to 6 taps then has at most 3
 * in every phase.  Phases with 2 or 1 taps have transformed weights that vanish at the points 0 or infinity;
 * those products are left out, which brings 5x5 stride 2 from 144 to 121 products per tile and 3x3 stride 2
 * to 81. */
#ifndef LS_BACKEND_CPU_CONV_WINO_H
#define LS_BACKEND_CPU_CONV_WINO_H

#include "backend/cpu/conv_blocked.h"

/* One axis of the problem as `phases` stride-1 problems with the filter length of the transform. */
typedef struct lsi_wino_axis {
    int phases;    /* the stride: 1 or 2 */
    int before;    /* pixels that a tile reads before its first result */
    int tap[2][5]; /* by phase and position in the filter: the kernel's tap, or -1 */
    int dead[2];   /* by phase: bit i set when point i always has zero weights */
} lsi_wino_axis;

/* A map split into phases.  Virtual block v is phase `v mod phases^2` of block `v / phases^2`, or,
 * phase_major, phase `v / blocks` of block `v mod blocks`. */
typedef struct lsi_wino_map {
    float *base;
    int64_t blocks, h, w; /* of the real map */
    int phases;
    bool phase_major;
} lsi_wino_map;

/* Tiles of one size: a rectangle of them in every image.  They are numbered from `first` on, image by image;
 * the numbers of all kinds together run from 0 to tiles - 1. */
typedef struct lsi_wino_kind {
    const lsi_wino_tile *t;
    int64_t y0, x0; /* where the rectangle begins, in results */
    int64_t ty, tx; /* tiles per column and row of the rectangle */
    int64_t first, tiles;
} lsi_wino_kind;

enum { LSI_WINO_MAX_KINDS = 4 }; /* whole tiles, those at the right, at the bottom and in the corner */

typedef struct lsi_wino {
    const lsi_conv_problem *p;
    const lsi_conv_args *a;
    const lsi_conv_kernels *k;
    const lsi_wino_kernels *t; /* the transforms */
    int points, taps;          /* of a tile and of a filter */
    bool adjoint;              /* gradient of the input by the forward pass's tiles, backwards */
    lsi_wino_axis ay, ax;
    lsi_wino_map from, to; /* read and produced; x and y for the gradient of the weights */
    int64_t rb, pb;        /* virtual blocks of each */
    lsi_wino_kind kind[LSI_WINO_MAX_KINDS];
    int n_kinds;
    int64_t tiles; /* in the batch */
} lsi_wino;

/* Fills everything but `a` and the base pointers.  False when the problem cannot be done this way. */
bool lsi_wino_init(lsi_wino *w, const lsi_conv_problem *p, int stride);

/* Block and phase of a virtual block. */
static inline void lsi_wino_locate(const lsi_wino_map *m, int64_t v, int64_t *block, int *qy, int *qx)
{
    const int q2 = m->phases * m->phases;
    const int q = (int)(m->phase_major ? v / m->blocks : v % q2);

    *block = m->phase_major ? v % m->blocks : v / q2;
    *qy = q / m->phases;
    *qx = q % m->phases;
}

/* Whether point xi has non-zero weights for phase (qy, qx). */
static inline bool lsi_wino_live(const lsi_wino *w, int xi, int qy, int qx)
{
    return !(w->ay.dead[qy] >> (xi / w->t->read_w) & 1) && !(w->ax.dead[qx] >> (xi % w->t->read_w) & 1);
}

/* The kernel's tap (ky * kw + kx) at position i of the filter of phase (qy, qx), or -1. */
static inline int lsi_wino_tap(const lsi_wino *w, int i, int qy, int qx)
{
    const int ky = w->ay.tap[qy][i / w->t->taps_w], kx = w->ax.tap[qx][i % w->t->taps_w];

    return ky < 0 || kx < 0 ? -1 : ky * w->p->kw + kx;
}

/* Goes through the tiles of one virtual block in order of their numbers. */
typedef struct lsi_wino_walk {
    float *image;                                 /* pixel (0, 0) of the block in the current image */
    int64_t image_step, row, col, h, w;           /* distances in floats, and the size of the phase's map */
    int64_t y, x, y_first, x_first, y_end, x_end; /* of the current part, and where they start and turn */
    int part_h, part_w, step_h, step_w;
} lsi_wino_walk;

/* From tile t0 of a kind on: parts of `part_h` x `part_w` pixels of map m that begin (before_y, before_x)
 * before the tile. */
lsi_wino_walk lsi_wino_walk_from(const lsi_wino_kind *kind, const lsi_wino_map *m, int64_t v, int64_t t0,
                                 int64_t before_y, int64_t before_x, int part_h, int part_w);
/* The current part; goes on to the next tile. */
lsi_wino_part lsi_wino_walk_next(lsi_wino_walk *k);

/* The part of tiles t0..t1-1 that is of this kind, in the kind's own numbers; false when there is none. */
static inline bool lsi_wino_clip(const lsi_wino_kind *kind, int64_t t0, int64_t t1, int64_t *lo, int64_t *hi)
{
    *lo = (t0 > kind->first ? t0 : kind->first) - kind->first;
    *hi = (t1 < kind->first + kind->tiles ? t1 : kind->first + kind->tiles) - kind->first;
    return *lo < *hi;
}

/* Points of tiles lo..hi-1 of a kind, one virtual block of the map that is read: to[point][tile][16], `plane`
 * floats between points; points that the kind does not use are left alone. */
void lsi_wino_read_tiles(const lsi_wino *w, const lsi_wino_kind *kind, int64_t lo, int64_t hi, int64_t block,
                         float *to, int64_t plane);
/* The same for tiles of an output gradient, map m. */
void lsi_wino_grad_tiles(const lsi_wino *w, const lsi_wino_kind *kind, const lsi_wino_map *m, int64_t lo,
                         int64_t hi, int64_t block, float *to, int64_t plane);

/* A distance of about n floats between planes that does not map all planes to the same cache sets. */
static inline int64_t lsi_wino_plane(int64_t n)
{
    return n + (n / LSI_LINE % 2 == 0 ? LSI_LINE : 0);
}

/* The passes: forward and gradient of the input, and gradient of the weights. */
size_t lsi_wino_gather_scratch(lsi_wino *w);
void lsi_wino_gather_run(lsi_wino *w, const lsi_conv_args *a);
size_t lsi_wino_dw_scratch(lsi_wino *w);
void lsi_wino_dw_run(lsi_wino *w, const lsi_conv_args *a);

#endif
