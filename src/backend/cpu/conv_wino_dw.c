/* conv_wino_dw.c: Winograd gradient of the weights.
 *
 * The adjoint of the forward pass with respect to the weights: x tiles (6x6) and y gradient tiles (4x4) go to
 * 36 points each, per point their outer products are summed over all tiles, and the sums go back to 3x3.
 *
 * With few channels every thread takes tiles of its own, in chunks whose points stay in a cache, and sums of
 * its own; the threads' sums are added at the end.  Threads then share nothing until that moment, which
 * counts where cores are far apart (two cores that do not share their last-level cache exchanged points at
 * half the speed of the whole pass).  With many channels sums are too large for that: the points of a chunk
 * are made by all threads, and blocks of (input x output) channels form groups whose sums stay in the
 * second-level cache of the thread that owns them. */
#include "backend/cpu/conv_wino.h"

#include "base/parallel.h"

#define POINT_BYTES   (2 * 1024 * 1024)  /* of v and z of one chunk of tiles, per thread */
#define OWN_SUM_BYTES (5 * 1024 * 1024)  /* most that sums of its own may take, per thread */
#define OWN_ALL_BYTES (40 * 1024 * 1024) /* and of all threads together */
#define OWN_MIN_TILES 128                /* per thread, so that adding up the sums does not matter */

typedef struct job {
    const lsi_wino *w;
    int64_t tile_n, t0, t1; /* room per chunk, and the current chunk */
    int64_t v_plane, z_plane;
    int64_t gi, go, groups_i,
        groups;     /* blocks per group along both channels; groups along input, and in all */
    bool own;       /* tiles and sums of its own for every thread */
    bool one_chunk; /* sums of a group die with it: one buffer per thread suffices */
    float *v, *z, *sums;
    int64_t sums_size; /* of one group, or of one thread */
} job;

static void choose_groups(job *j)
{
    const lsi_wino *w = j->w;
    const int64_t threads = w->p->threads;

    /* A group holds whole input blocks: all phases of each. */
    const int64_t q2 = (int64_t)w->from.phases * w->from.phases;
    j->gi = q2 > 1 ? q2 : lsi_min64(4, w->rb);
    j->go = lsi_min64(4, w->pb);
    for (;;) {
        j->groups_i = lsi_div_ceil(w->rb, j->gi);
        j->groups = j->groups_i * lsi_div_ceil(w->pb, j->go);
        if (j->groups >= 4 * threads || j->groups % threads == 0) return;
        if (j->go > 1)
            j->go /= 2;
        else if (j->gi > q2)
            j->gi = lsi_max64(q2, j->gi / 2);
        else
            return;
    }
}

/* One group of all channels, if sums of that size are affordable for every thread. */
static bool choose_own(job *j, int64_t per_tile)
{
    const lsi_wino *w = j->w;
    const int64_t threads = w->p->threads, sums = w->points * w->rb * w->pb * LSI_BLOCK;
    const int64_t bytes = sums * (int64_t)sizeof(float);

    j->own = threads > 1 && bytes <= OWN_SUM_BYTES && bytes * threads <= OWN_ALL_BYTES &&
             w->tiles >= threads * OWN_MIN_TILES;
    if (!j->own) return false;
    j->gi = w->rb;
    j->go = w->pb;
    j->groups_i = j->groups = 1;
    j->sums_size = sums;
    j->tile_n = lsi_max64(64, POINT_BYTES / per_tile);
    return true;
}

static void job_init(job *j, const lsi_wino *w)
{
    const int64_t per_tile = w->points * (w->rb + w->pb) * LSI_LINE * (int64_t)sizeof(float);

    memset(j, 0, sizeof *j);
    j->w = w;
    if (choose_own(j, per_tile)) {
        j->v_plane = lsi_wino_plane(w->rb * j->tile_n * LSI_LINE);
        j->z_plane = lsi_wino_plane(w->pb * j->tile_n * LSI_LINE);
        return;
    }
    const int64_t chunks =
        lsi_max64(1, lsi_div_ceil(w->tiles, lsi_max64(128, POINT_BYTES * w->p->threads / per_tile)));
    j->tile_n = lsi_max64(1, lsi_div_ceil(w->tiles, chunks));
    j->one_chunk = j->tile_n >= w->tiles;
    j->v_plane = lsi_wino_plane(w->rb * j->tile_n * LSI_LINE);
    j->z_plane = lsi_wino_plane(w->pb * j->tile_n * LSI_LINE);
    choose_groups(j);
    j->sums_size = w->points * j->gi * j->go * LSI_BLOCK;
}

static void job_take(job *j, lsi_bump *b)
{
    const int64_t threads = j->w->p->threads, buffers = j->own || j->one_chunk ? threads : j->groups;
    const int64_t sharers = j->own ? threads : 1;

    j->v = lsi_bump_take(b, sizeof(float) * (size_t)(sharers * j->w->points * j->v_plane));
    j->z = lsi_bump_take(b, sizeof(float) * (size_t)(sharers * j->w->points * j->z_plane));
    j->sums = lsi_bump_take(b, sizeof(float) * (size_t)(buffers * j->sums_size));
}

/* This thread's part of the points of every kind of tile in the current chunk. */
static void make_points(const job *j, int thread, int n_threads)
{
    const lsi_wino *w = j->w;

    for (const lsi_wino_kind *kind = w->kind; kind < w->kind + w->n_kinds; kind++) {
        int64_t lo, hi, first, end;
        if (!lsi_wino_clip(kind, j->t0, j->t1, &first, &end)) continue;
        ls_parallel_range(end - first, thread, n_threads, &lo, &hi);
        const int64_t at = kind->first + first + lo - j->t0; /* in the chunk */
        lo += first;
        hi += first;
        for (int64_t b = 0; b < w->rb; b++)
            lsi_wino_read_tiles(w, kind, lo, hi, b, j->v + (b * j->tile_n + at) * LSI_LINE, j->v_plane);
        for (int64_t b = 0; b < w->pb; b++)
            lsi_wino_grad_tiles(w, kind, &w->to, lo, hi, b, j->z + (b * j->tile_n + at) * LSI_LINE,
                                j->z_plane);
    }
}

static void points_region(int thread, int n_threads, void *arg)
{
    make_points(arg, thread, n_threads);
}

/* The stretches of the current chunk whose tiles use point xi. */
static int list_runs(const job *j, int xi, lsi_gemm_run *runs)
{
    const lsi_wino *w = j->w;
    int n = 0;

    for (const lsi_wino_kind *kind = w->kind; kind < w->kind + w->n_kinds; kind++) {
        int64_t lo, hi;
        if (!(kind->t->points >> xi & 1) || !lsi_wino_clip(kind, j->t0, j->t1, &lo, &hi)) continue;
        const int64_t at = (kind->first + lo - j->t0) * LSI_LINE;
        runs[n++] = (lsi_gemm_run){at, at, hi - lo};
    }
    return n;
}

/* Adds the current chunk of tiles to the sums [point][output][input] of blocks o0.. and i0... */
static void sum_group(const job *j, int64_t i0, int64_t i1, int64_t o0, int64_t o1, float *sums)
{
    const lsi_wino *w = j->w;
    for (int xi = 0; xi < w->points; xi++) {
        lsi_gemm_run runs[LSI_WINO_MAX_KINDS];
        const int n_runs = list_runs(j, xi, runs);
        for (int64_t o = o0; o < o1; o++) {
            for (int64_t i = i0; i < i1; i++) {
                int64_t block;
                int qy, qx;
                lsi_wino_locate(&w->from, i, &block, &qy, &qx);
                if (!lsi_wino_live(w, xi, qy, qx)) continue;
                w->k->gemm_outer(j->v + xi * j->v_plane + i * j->tile_n * LSI_LINE, LSI_LINE,
                                 j->z + xi * j->z_plane + o * j->tile_n * LSI_LINE, runs, n_runs,
                                 sums + ((xi * j->go + o - o0) * j->gi + i - i0) * LSI_BLOCK);
            }
        }
    }
}

/* The gradient of one real pair of blocks; `sums` is that of its first phase at point 0. */
static void finish_pair(const job *j, int64_t block_i, int64_t o, const float *sums)
{
    const lsi_wino *w = j->w;
    const int q2 = w->from.phases * w->from.phases;
    const int64_t plane = j->go * j->gi * LSI_BLOCK;
    const lsi_dw_block b = {.dw = w->a->w, .ci = w->p->ci, .taps = (int64_t)w->p->kh * w->p->kw};
    float raw[36 * LSI_BLOCK], unused[LSI_LINE];

    for (int q = 0; q < q2; q++) {
        const int qy = q / w->from.phases, qx = q % w->from.phases;
        for (int k = 0; k < LSI_LINE; k++) {
            float *g[LSI_WINO_MAX_TAPS];
            for (int i = 0; i < w->taps; i++) {
                const int tap = lsi_wino_tap(w, i, qy, qx);
                g[i] = tap < 0 ? unused : raw + tap * LSI_BLOCK + k * LSI_LINE;
            }
            w->t->dw(sums + q * LSI_BLOCK + k * LSI_LINE, plane, g);
        }
    }
    lsi_weights_from_blocks(w->k, raw, LSI_BLOCK, &b, o, block_i);
}

static void groups_region(int thread, int n_threads, void *arg)
{
    const job *j = arg;
    const lsi_wino *w = j->w;
    const int64_t q2 = (int64_t)w->from.phases * w->from.phases;
    int64_t lo, hi;

    ls_parallel_range(j->groups, thread, n_threads, &lo, &hi);
    for (int64_t g = lo; g < hi; g++) {
        const int64_t i0 = g % j->groups_i * j->gi, i1 = lsi_min64(w->rb, i0 + j->gi);
        const int64_t o0 = g / j->groups_i * j->go, o1 = lsi_min64(w->pb, o0 + j->go);
        float *sums = j->sums + (j->one_chunk ? thread : g) * j->sums_size;
        if (j->t0 == 0) memset(sums, 0, sizeof(float) * (size_t)j->sums_size);
        sum_group(j, i0, i1, o0, o1, sums);
        if (j->t1 < w->tiles) continue;
        for (int64_t o = o0; o < o1; o++)
            for (int64_t i = i0; i < i1; i += q2)
                finish_pair(j, i / q2, o, sums + ((o - o0) * j->gi + i - i0) * LSI_BLOCK);
    }
}

/* Own tiles: from pixels to the sums of this thread. */
static void own_region(int thread, int n_threads, void *arg)
{
    job j = *(const job *)arg;
    const lsi_wino *w = j.w;
    float *sums = j.sums + thread * j.sums_size;

    j.v += thread * w->points * j.v_plane;
    j.z += thread * w->points * j.z_plane;
    memset(sums, 0, sizeof(float) * (size_t)j.sums_size);
    for (const lsi_wino_kind *kind = w->kind; kind < w->kind + w->n_kinds; kind++) {
        int64_t lo, hi;
        ls_parallel_range(kind->tiles, thread, n_threads, &lo, &hi);
        hi += kind->first;
        for (j.t0 = lo + kind->first; j.t0 < hi; j.t0 = j.t1) {
            j.t1 = lsi_min64(hi, j.t0 + j.tile_n);
            make_points(&j, 0, 1);
            sum_group(&j, 0, w->rb, 0, w->pb, sums);
        }
    }
}

/* Adds all threads' sums of one real pair of blocks to those of thread 0. */
static void add_pair(const job *j, int64_t at, int n_threads)
{
    const int64_t q2 = (int64_t)j->w->from.phases * j->w->from.phases, plane = j->go * j->gi * LSI_BLOCK;

    for (int t = 1; t < n_threads; t++)
        for (int xi = 0; xi < j->w->points; xi++) {
            float *to = j->sums + xi * plane + at;
            const float *from = to + t * j->sums_size;
            for (int64_t i = 0; i < q2 * LSI_BLOCK; i++) to[i] += from[i];
        }
}

/* Own tiles: each thread finishes some of the pairs. */
static void pairs_region(int thread, int n_threads, void *arg)
{
    const job *j = arg;
    const int64_t q2 = (int64_t)j->w->from.phases * j->w->from.phases, blocks = j->gi / q2;
    int64_t lo, hi;

    ls_parallel_range(blocks * j->go, thread, n_threads, &lo, &hi);
    for (int64_t p = lo; p < hi; p++) {
        const int64_t o = p / blocks, i = p % blocks, at = (o * j->gi + i * q2) * LSI_BLOCK;
        add_pair(j, at, n_threads);
        finish_pair(j, i, o, j->sums + at);
    }
}

size_t lsi_wino_dw_scratch(lsi_wino *w)
{
    job j;
    lsi_bump b = {0};

    job_init(&j, w);
    job_take(&j, &b);
    return b.used;
}

void lsi_wino_dw_run(lsi_wino *w, const lsi_conv_args *a)
{
    job j;
    lsi_bump b = {.base = a->scratch};

    w->a = a;
    w->from.base = a->x;
    w->to.base = a->y;
    job_init(&j, w);
    job_take(&j, &b);
    if (j.own) {
        ls_parallel_run(w->p->threads, own_region, &j);
        ls_parallel_run(w->p->threads, pairs_region, &j);
        return;
    }
    do {
        j.t1 = lsi_min64(w->tiles, j.t0 + j.tile_n);
        ls_parallel_run(w->p->threads, points_region, &j);
        ls_parallel_run(w->p->threads, groups_region, &j);
        j.t0 = j.t1;
    } while (j.t0 < w->tiles);
}
