/* conv_wino_gather.c: Winograd forward and gradient of the input.
 *
 * Three steps: pixels to points (v), weights to points (u), per point a product of v and u over channels (m)
 * and back to pixels.  Normally u is made once for all, and every thread takes its tiles in chunks whose v
 * and m stay in cache.  With few tiles and many channels it is the other way round: v is made for all tiles,
 * and every thread makes u for one chunk of produced channels at a time, so that the fourfold larger
 * transformed weights never go to memory.
 *
 * The gradient of the input of an unpadded convolution goes through the forward pass backwards (`adjoint`):
 * tiles of dy to points, per point the product with the same u, and each tile's share added to dx. */
#include "backend/cpu/conv_wino.h"

#include "base/parallel.h"

#define V_CHUNK_BYTES (544 * 1024)
#define U_LARGE_BYTES (32 * 1024 * 1024)
#define FEW_TILES     96

typedef struct job {
    const lsi_wino *w;
    bool v_shared;
    int64_t tile_n;  /* tiles per chunk */
    int64_t v_tiles; /* room for tiles in v: tile_n, or all when shared */
    int64_t v_plane, m_plane;
    int64_t chunks;   /* of produced blocks */
    float *u, *v, *m; /* v or u, and m, one per thread */
    int64_t v_size, u_size, m_size;
    int64_t *a_off, *b_off; /* [point][read block], without dead ones; b_off for one produced block */
    int64_t *n_terms;       /* [point] */
} job;

/* Tiles per chunk: as many as keep v near the second-level cache; more when u comes from memory, since u is
 * read once per chunk. */
static int64_t choose_tiles(const lsi_wino *w, int64_t u_bytes)
{
    const int64_t strip = w->points * w->rb * LSI_LINE * (int64_t)sizeof(float) * w->k->rows_max;
    const int64_t strips = u_bytes > U_LARGE_BYTES ? 4 : lsi_min64(2, V_CHUNK_BYTES / strip);

    return lsi_max64(1, strips) * w->k->rows_max;
}

static void job_init(job *j, const lsi_wino *w)
{
    const int64_t u_bytes = w->points * w->rb * w->pb * LSI_BLOCK * (int64_t)sizeof(float);

    memset(j, 0, sizeof *j);
    j->w = w;
    j->v_shared = !w->adjoint && w->tiles <= FEW_TILES && w->tiles < w->pb * LSI_LINE;
    j->tile_n = lsi_max64(1, lsi_min64(choose_tiles(w, u_bytes), w->tiles));
    j->v_tiles = j->v_shared ? w->tiles : j->tile_n;
    j->v_plane = lsi_wino_plane(w->rb * j->v_tiles * LSI_LINE);
    j->m_plane = lsi_wino_plane(w->k->blocks_max * j->tile_n * LSI_LINE);
    j->chunks = lsi_div_ceil(w->pb, w->k->blocks_max);
    j->v_size = w->points * j->v_plane;
    j->m_size = w->points * j->m_plane;
    j->u_size = w->points * w->rb * LSI_BLOCK * (j->v_shared ? w->k->blocks_max : w->pb);
}

static void job_take(job *j, lsi_bump *b)
{
    const lsi_wino *w = j->w;
    const int64_t threads = w->p->threads, lists = w->points * w->rb;

    j->u = lsi_bump_take(b, sizeof(float) * (size_t)(j->u_size * (j->v_shared ? threads : 1)));
    j->v = lsi_bump_take(b, sizeof(float) * (size_t)(j->v_size * (j->v_shared ? 1 : threads)));
    j->m = lsi_bump_take(b, sizeof(float) * (size_t)(j->m_size * threads));
    j->a_off = lsi_bump_take(b, sizeof(int64_t) * (size_t)lists);
    j->b_off = lsi_bump_take(b, sizeof(int64_t) * (size_t)(2 * lists));
    j->n_terms = lsi_bump_take(b, sizeof(int64_t) * (size_t)w->points);
}

static void list_terms(job *j)
{
    const lsi_wino *w = j->w;
    const int64_t lists = w->points * w->rb;

    for (int xi = 0; xi < w->points; xi++) {
        int64_t n = 0;
        for (int64_t v = 0; v < w->rb; v++) {
            int64_t block;
            int qy, qx;
            lsi_wino_locate(&w->from, v, &block, &qy, &qx);
            if (w->from.phases > 1 && !lsi_wino_live(w, xi, qy, qx)) continue;
            const int64_t at = xi * w->rb + n++;
            j->a_off[at] = v * j->v_tiles * LSI_LINE;
            j->b_off[at] = v * LSI_BLOCK;
            j->b_off[lists + at] = 2 * v * LSI_BLOCK;
        }
        j->n_terms[xi] = n;
    }
}

static int chunk_blocks(const job *j, int64_t chunk)
{
    return (int)lsi_min64(j->w->k->blocks_max, j->w->pb - chunk * j->w->k->blocks_max);
}

/* The taps of a filter for phase (qy, qx), as lines of one reduced channel; missing taps are zero. */
static void filter_lines(const lsi_wino *w, int qy, int qx, const float *raw, const float *zero,
                         const float **lines)
{
    for (int i = 0; i < w->taps; i++) {
        const int tap = lsi_wino_tap(w, i, qy, qx);
        lines[i] = tap < 0 ? zero : raw + tap * LSI_BLOCK;
    }
}

/* The points of all filters between produced virtual block pv and real read block rb; u is the chunk's. */
static void transform_filters(const job *j, int64_t pv, int64_t rb, float *u)
{
    const lsi_wino *w = j->w;
    const int64_t chunk = pv / w->k->blocks_max;
    const int64_t row = chunk_blocks(j, chunk) * LSI_LINE, plane = w->rb * LSI_LINE * row;
    const int q2 = w->from.phases * w->from.phases;
    float raw[36 * LSI_BLOCK];
    const float zero[LSI_LINE] = {0};
    unsigned char used[36];
    int64_t block;
    int qy, qx;

    lsi_wino_locate(&w->to, pv, &block, &qy, &qx);
    const lsi_weight_block b = {.w = w->a->w,
                                .ci = w->p->ci,
                                .taps = (int64_t)w->p->kh * w->p->kw,
                                .used = used,
                                .to = raw,
                                .to_tap = LSI_BLOCK,
                                .to_row = LSI_LINE};
    memset(used, w->to.phases == 1, sizeof used);
    if (w->to.phases > 1) {
        for (int i = 0; i < w->taps; i++) {
            const int tap = lsi_wino_tap(w, i, qy, qx);
            if (tap >= 0) used[tap] = 1;
        }
    }
    if (w->p->pass == LSI_CONV_FWD)
        lsi_weights_fwd(w->k, &b, block, rb);
    else
        lsi_weights_dx(w->k, &b, rb, block);
    for (int q = 0; q < q2; q++) {
        const float *g[LSI_WINO_MAX_TAPS];
        float *to = u + (rb * q2 + q) * LSI_LINE * row + (pv - chunk * w->k->blocks_max) * LSI_LINE;
        if (q2 > 1)
            filter_lines(w, q / w->from.phases, q % w->from.phases, raw, zero, g);
        else
            filter_lines(w, qy, qx, raw, zero, g);
        for (int k = 0; k < LSI_LINE; k++) {
            w->t->weights(g, to + k * row, plane);
            for (int i = 0; i < w->taps; i++) g[i] += g[i] == zero ? 0 : LSI_LINE;
        }
    }
}

static bool chunk_live(const lsi_wino *w, int xi, int64_t pv0, int blocks)
{
    if (w->to.phases == 1) return true;
    for (int j = 0; j < blocks; j++) {
        int64_t block;
        int qy, qx;
        lsi_wino_locate(&w->to, pv0 + j, &block, &qy, &qx);
        if (lsi_wino_live(w, xi, qy, qx)) return true;
    }
    return false;
}

/* m[point][block][tile][16] of one chunk of produced blocks and `n` tiles that use `points`, whose v starts
 * at `v`. */
static void multiply(const job *j, int64_t chunk, const float *u, const float *v, int64_t n, uint64_t points,
                     float *m)
{
    const lsi_wino *w = j->w;
    const int blocks = chunk_blocks(j, chunk);
    const int64_t u_plane = w->rb * LSI_BLOCK * blocks;
    const int64_t strips = lsi_div_ceil(n, w->k->rows_max);

    for (int xi = 0; xi < w->points; xi++) {
        if (!(points >> xi & 1)) continue;
        lsi_gemm_rows r = {
            .b = u + xi * u_plane,
            .a_off = j->a_off + xi * w->rb,
            .b_off = j->b_off + (blocks - 1) * w->points * w->rb + xi * w->rb,
            .n_terms = chunk_live(w, xi, chunk * w->k->blocks_max, blocks) ? j->n_terms[xi] : 0,
            .c_row = LSI_LINE,
            .c_block = j->tile_n * LSI_LINE,
        };
        for (int64_t s = 0; s < strips; s++) {
            const int64_t m0 = n * s / strips, m1 = n * (s + 1) / strips;
            r.a = v + xi * j->v_plane + m0 * LSI_LINE;
            r.c = m + xi * j->m_plane + m0 * LSI_LINE;
            w->k->gemm_rows((int)(m1 - m0), blocks, LSI_LINE, &r);
        }
    }
}

static void write_tiles(const job *j, const lsi_wino_kind *kind, int64_t pv, int64_t lo, int64_t hi,
                        const float *m)
{
    const lsi_wino *w = j->w;
    const lsi_conv_problem *p = w->p;
    int64_t block;
    int qy, qx;

    lsi_wino_locate(&w->to, pv, &block, &qy, &qx);
    lsi_wino_out o = {
        .bias = p->has_bias ? w->a->bias + block * LSI_LINE : NULL, .act = p->act, .slope = p->slope};
    lsi_wino_walk k = w->adjoint ? lsi_wino_walk_from(kind, &w->to, pv, lo, 0, 0, w->t->read_h, w->t->read_w)
                                 : lsi_wino_walk_from(kind, &w->to, pv, lo, 0, 0, kind->t->h, kind->t->w);
    for (int64_t t = lo; t < hi; t++, m += LSI_LINE) {
        const lsi_wino_part part = lsi_wino_walk_next(&k);
        o.y = part.at;
        o.row = part.row;
        o.col = part.col;
        o.rows = part.y_hi;
        o.cols = part.x_hi;
        (w->adjoint ? w->t->spread : kind->t->write)(m, j->m_plane, &o);
    }
}

/* One chunk of produced blocks of tiles lo..hi-1 of a kind. */
static void produce(const job *j, const lsi_wino_kind *kind, int64_t chunk, const float *u, const float *v,
                    int64_t lo, int64_t hi, float *m)
{
    multiply(j, chunk, u, v, hi - lo, kind->t->points, m);
    for (int b = 0; b < chunk_blocks(j, chunk); b++)
        write_tiles(j, kind, chunk * j->w->k->blocks_max + b, lo, hi, m + b * j->tile_n * LSI_LINE);
}

/* u shared: all filters first ... */
static void filters_region(int thread, int n_threads, void *arg)
{
    const job *j = arg;
    const lsi_wino *w = j->w;
    const int64_t rb_n = w->from.blocks;
    int64_t lo, hi;

    ls_parallel_range(w->pb * rb_n, thread, n_threads, &lo, &hi);
    for (int64_t i = lo; i < hi; i++) {
        const int64_t pv = i / rb_n, first = pv / w->k->blocks_max * w->k->blocks_max;
        transform_filters(j, pv, i % rb_n, j->u + first * w->points * w->rb * LSI_BLOCK);
    }
}

/* Images that begin with one of the tiles lo..hi-1 are set to zero, just before shares are added to them. */
static void clear_images(const lsi_wino *w, const lsi_wino_kind *kind, int64_t lo, int64_t hi)
{
    const int64_t per_image = kind->ty * kind->tx, floats = w->to.blocks * w->to.h * w->to.w * LSI_LINE;
    const int64_t from = lsi_div_ceil(lo, per_image), to = lsi_div_ceil(hi, per_image);

    memset(w->to.base + from * floats, 0, sizeof(float) * (size_t)((to - from) * floats));
}

/* ... then each thread its tiles of every kind. */
static void tiles_region(int thread, int n_threads, void *arg)
{
    const job *j = arg;
    const lsi_wino *w = j->w;
    float *v = j->v + j->v_size * thread, *m = j->m + j->m_size * thread;

    for (const lsi_wino_kind *kind = w->kind; kind < w->kind + w->n_kinds; kind++) {
        int64_t first, end;
        ls_parallel_range_grain(kind->tiles, w->adjoint ? kind->ty * kind->tx : 1, thread, n_threads, &first,
                                &end);
        for (int64_t lo = first; lo < end; lo += j->tile_n) {
            const int64_t hi = lsi_min64(end, lo + j->tile_n);
            if (w->adjoint) clear_images(w, kind, lo, hi);
            for (int64_t b = 0; b < w->rb; b++)
                lsi_wino_read_tiles(w, kind, lo, hi, b, v + b * j->v_tiles * LSI_LINE, j->v_plane);
            for (int64_t c = 0; c < j->chunks; c++)
                produce(j, kind, c, j->u + c * w->k->blocks_max * w->points * w->rb * LSI_BLOCK, v, lo, hi,
                        m);
        }
    }
}

/* v shared: all pixels first ... */
static void pixels_region(int thread, int n_threads, void *arg)
{
    const job *j = arg;
    const lsi_wino *w = j->w;

    for (const lsi_wino_kind *kind = w->kind; kind < w->kind + w->n_kinds; kind++) {
        int64_t lo, hi;
        ls_parallel_range(kind->tiles, thread, n_threads, &lo, &hi);
        for (int64_t b = 0; b < w->rb; b++)
            lsi_wino_read_tiles(w, kind, lo, hi, b, j->v + (b * j->v_tiles + kind->first + lo) * LSI_LINE,
                                j->v_plane);
    }
}

/* ... then each thread its produced channels. */
static void channels_region(int thread, int n_threads, void *arg)
{
    const job *j = arg;
    const lsi_wino *w = j->w;
    float *u = j->u + j->u_size * thread, *m = j->m + j->m_size * thread;
    int64_t first, end;

    ls_parallel_range(j->chunks, thread, n_threads, &first, &end);
    for (int64_t c = first; c < end; c++) {
        for (int b = 0; b < chunk_blocks(j, c); b++)
            for (int64_t rb = 0; rb < w->from.blocks; rb++)
                transform_filters(j, c * w->k->blocks_max + b, rb, u);
        for (const lsi_wino_kind *kind = w->kind; kind < w->kind + w->n_kinds; kind++)
            for (int64_t lo = 0; lo < kind->tiles; lo += j->tile_n)
                produce(j, kind, c, u, j->v + (kind->first + lo) * LSI_LINE, lo,
                        lsi_min64(kind->tiles, lo + j->tile_n), m);
    }
}

size_t lsi_wino_gather_scratch(lsi_wino *w)
{
    job j;
    lsi_bump b = {0};

    job_init(&j, w);
    job_take(&j, &b);
    return b.used;
}

void lsi_wino_gather_run(lsi_wino *w, const lsi_conv_args *a)
{
    job j;
    lsi_bump b = {.base = a->scratch};
    const bool fwd = w->p->pass == LSI_CONV_FWD;

    if (w->tiles == 0) return;
    w->a = a;
    w->from.base = fwd ? a->x : a->y;
    w->to.base = fwd ? a->y : a->x;
    job_init(&j, w);
    job_take(&j, &b);
    list_terms(&j);
    ls_parallel_run(w->p->threads, j.v_shared ? pixels_region : filters_region, &j);
    ls_parallel_run(w->p->threads, j.v_shared ? channels_region : tiles_region, &j);
}
