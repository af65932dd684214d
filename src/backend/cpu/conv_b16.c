/* conv_b16.c: convolution of bf16 numbers on blocked maps, forward and gradient of the input.
 *
 * Threads share the blocks of channels out among themselves, pack their weights, each for itself (gemm_b16.c
 * says why), and those that have the same ones take pieces of the rows of results, which they go through in
 * chunks whose planes (conv_b16.h) stay in the second-level cache; whoever has done his own goes on with what
 * others have left, and their weights.  Sums do not depend on the cutting. */
#include "backend/cpu/conv_b16.h"

#include <string.h>

#include "backend/cpu/conv_list.h"
#include "base/parallel.h"

enum {
    CHUNK_BYTES = 640 << 10, /* of planes */
    SEGMENTS_MAX = 32,       /* of a chunk */
    PIECES_PER_THREAD = 4,   /* at least, where they are not too small for it */
    PIECE_ROWS = 14,         /* of results, or an image: fewer would copy the rows between pieces too often */
    TAPS_MAX = 128
};

/* Rows [lo, hi) of results of one image. */
typedef struct segment {
    int64_t image, lo, hi;
} segment;

typedef struct job {
    const lsi_conv_problem *p;
    const lsi_conv_args *a;
    const lsi_b16_kernels *kernels;
    lsi_b16_axis y, x;
    int64_t read_c, made_c;  /* channels */
    int64_t read_b, made_b;  /* blocks: of 32, of 16 */
    int64_t plane_x;         /* of a row of a plane */
    int64_t rows, pitch;     /* of a segment: most rows of results, pixels of one plane */
    int64_t segment_numbers; /* of all its planes */
    int64_t segments;        /* of a chunk */
    int64_t terms;           /* most of an output phase */
    int grid_m, grid_n;      /* threads along rows of results and channels */
    int64_t part_blocks; /* most blocks of channels of one of grid_n parts; thread i has part i % grid_n */
    int64_t piece, small, large_ones; /* rows of results that a thread takes; how often the first */
    ls_parallel_pieces *to_make;      /* of each part */
    lsi_b16_packed *packed;           /* of each thread: its weights */
    const void *src;
    void *dst;
    ls_dtype src_type, dst_type;
    const ls_layout *dst_layout;
    char *own; /* per thread: weights, [output phase][block of 16][term][512], and the rest */
    size_t own_bytes;
} job;

/* Of packed weights of one part of the channels. */
static int64_t phase_numbers(const job *j)
{
    return j->part_blocks * j->terms * LSI_B16_BLOCK;
}
static size_t weights_bytes(const job *j)
{
    return lsi_align64((size_t)(j->y.out_phases * j->x.out_phases * phase_numbers(j)) * 2);
}

/* Threads along rows and along channels, so that each reads least: its share of the planes and of the
 * weights. */
static void choose_grid(job *j)
{
    const double planes = (double)(j->p->n * j->read_c * j->y.read * j->x.read);
    const double weights = (double)(j->made_c * j->read_c * j->p->kh * j->p->kw);
    const int64_t rows = j->p->n * j->y.results, blocks = (j->made_b + 1) / 2;
    double best = INFINITY;

    for (int m = 1; m <= j->p->threads; m++) {
        const int n = j->p->threads / m;
        double cost;
        if (j->p->threads % m) continue;
        /* What the slowest thread computes weighs more than what it reads. */
        cost = 16 * (double)lsi_round_up(rows, m) / m * (double)(lsi_round_up(blocks, n) / n) /
                   ((double)rows * (double)blocks) * (planes + weights) +
               planes / m + weights / n;
        if (cost < best) {
            best = cost;
            j->grid_m = m;
            j->grid_n = n;
        }
    }
    j->piece = rows / (j->grid_m * PIECES_PER_THREAD);
    if (j->piece < PIECE_ROWS) j->piece = j->y.results < PIECE_ROWS ? j->y.results : PIECE_ROWS;
    /* The last third in halves, so that no slow core is waited for as long. */
    j->small = (j->piece + 1) / 2;
    j->large_ones = rows * 2 / 3 / j->piece;
}

static void job_init(job *j, const lsi_conv_problem *p)
{
    const bool fwd = p->pass == LSI_CONV_FWD;
    int64_t most;

    *j = (job){.p = p, .kernels = lsi_b16_kernels_here()};
    j->y = fwd ? lsi_b16_axis_forward(p->hi, p->ho, p->kh, p->sh, p->dh, p->pt)
               : lsi_b16_axis_back(p->hi, p->ho, p->kh, p->sh, p->dh, p->pt);
    j->x = fwd ? lsi_b16_axis_forward(p->wi, p->wo, p->kw, p->sw, p->dw, p->pl)
               : lsi_b16_axis_back(p->wi, p->wo, p->kw, p->sw, p->dw, p->pl);
    j->x = lsi_b16_share(j->x);
    j->read_c = fwd ? p->ci : p->co;
    j->made_c = fwd ? p->co : p->ci;
    j->read_b = (j->read_c + LSI_B16_DEEP - 1) / LSI_B16_DEEP;
    j->made_b = (j->made_c + LSI_B16_COLS - 1) / LSI_B16_COLS;
    j->plane_x = lsi_b16_plane(&j->x);
    j->src_type = fwd ? p->x_type : p->y_type;
    j->dst_type = fwd ? p->y_type : p->x_type;
    j->dst_layout = fwd ? p->y_layout : p->x_layout;
    j->terms = p->kh * p->kw * j->read_b;
    /* One row of results costs so much; a chunk has as many rows of an image as fit, then more images. */
    most = CHUNK_BYTES / 2 / (j->read_b * j->y.in_phases * j->x.in_phases * j->plane_x * LSI_B16_DEEP) -
           j->y.halo;
    j->rows = most < 1 ? 1 : most > j->y.results ? j->y.results : most;
    j->pitch = (j->rows + j->y.halo) * j->plane_x + j->x.halo + LSI_B16_ROWS;
    j->segment_numbers = j->read_b * j->y.in_phases * j->x.in_phases * j->pitch * LSI_B16_DEEP;
    j->segments = CHUNK_BYTES / 2 / j->segment_numbers;
    if (j->segments < 1) j->segments = 1;
    if (j->segments > SEGMENTS_MAX) j->segments = SEGMENTS_MAX;
    if (j->segments > p->n) j->segments = p->n > 0 ? p->n : 1;
    choose_grid(j);
    j->part_blocks = ((j->made_b + 1) / 2 + j->grid_n - 1) / j->grid_n * 2;
    j->own_bytes = weights_bytes(j) + lsi_align64((size_t)(j->segments * j->segment_numbers) * 2) +
                   lsi_align64((size_t)j->terms * sizeof(int64_t)) +
                   LSI_B16_ROWS * LSI_B16_WIDE * sizeof(float) * 2;
}

/* The rows of piece number i; false when there is none. */
static bool piece_rows(const job *j, int64_t i, int64_t *lo, int64_t *hi)
{
    const int64_t rows = j->p->n * j->y.results, size = i < j->large_ones ? j->piece : j->small;

    *lo = i < j->large_ones ? i * size : j->large_ones * j->piece + (i - j->large_ones) * size;
    *hi = rows - *lo < size ? rows : *lo + size;
    return *lo < rows;
}

/* -- weights ----------------------------------------------------------------------------------------------
 */

/* Taps of an output phase, and where they read. */
typedef struct tap {
    int number; /* ky * kw + kx */
    int64_t offset;
} tap;

static int taps_of(const job *j, int ry, int rx, tap *to)
{
    int n = 0;

    for (int ky = 0; ky < j->p->kh; ky++)
        for (int kx = 0; kx < j->p->kw; kx++) {
            int fy, fx, oy, ox;
            int64_t dy, dx;
            lsi_b16_tap(&j->y, ky, &fy, &dy, &oy);
            lsi_b16_tap(&j->x, kx, &fx, &dx, &ox);
            if (oy != ry || ox != rx) continue;
            to[n++] = (tap){ky * j->p->kw + kx, (fy * j->x.in_phases + fx) * j->pitch + dy * j->plane_x + dx};
        }
    return n;
}

/* One block of 16 columns, 32 numbers deep, of all taps, to place `at_block` of `weights`. */
static void pack_block(const job *j, int64_t block, int64_t b, int64_t at_block, uint16_t *weights)
{
    const lsi_conv_problem *p = j->p;
    const int all = p->kh * p->kw;
    const int64_t first = block * LSI_B16_COLS, r = b * LSI_B16_DEEP;
    const bool fwd = p->pass == LSI_CONV_FWD;
    const int64_t at = ((fwd ? first : r) * p->ci + (fwd ? r : first)) * all;
    uint16_t *to[TAPS_MAX];

    for (int phase = 0; phase < j->y.out_phases * j->x.out_phases; phase++) {
        tap taps[TAPS_MAX];
        const int n = taps_of(j, phase / j->x.out_phases, phase % j->x.out_phases, taps);
        for (int t = 0; t < n; t++)
            to[taps[t].number] = weights + phase * phase_numbers(j) +
                                 (at_block * j->terms + t * j->read_b + b) * LSI_B16_BLOCK;
    }
    lsi_b16_pack_taps(lsi_b16_at(j->a->w, p->w_type, at), p->w_type, fwd ? all : p->ci * all,
                      fwd ? p->ci * all : all,
                      j->made_c - first < LSI_B16_COLS ? j->made_c - first : LSI_B16_COLS,
                      j->read_c - r < LSI_B16_DEEP ? j->read_c - r : LSI_B16_DEEP, all, to);
}

/* -- planes -----------------------------------------------------------------------------------------------
 */

/* One row of a plane: a block of 32 channels of the row `row` of an image, or zeros. */
static void fill_row(const job *j, int64_t image, int64_t b, int64_t row, int fx, uint16_t *to)
{
    const int64_t blocks = j->read_c / 16, pixels = j->y.read * j->x.read;
    int64_t lo = 0, hi = 0;

    if (row >= 0 && row < j->y.read)
        lsi_b16_inside(j->x.mul, j->x.base + fx, j->x.read, j->plane_x, &lo, &hi);
    if (lo == hi) {
        memset(to, 0, (size_t)j->plane_x * LSI_B16_DEEP * 2);
        return;
    }
    memset(to, 0, (size_t)lo * LSI_B16_DEEP * 2);
    for (int half = 0; half < 2; half++) {
        const int64_t block = 2 * b + half, first = lo * j->x.mul + j->x.base + fx;
        uint16_t *at = to + lo * LSI_B16_DEEP + 16 * half;
        if (block < blocks)
            lsi_b16_copy_lines(lsi_b16_at(j->src, j->src_type,
                                          ((image * blocks + block) * pixels + row * j->x.read + first) * 16),
                               j->src_type, j->x.mul * 16, hi - lo, at, LSI_B16_DEEP);
        else
            for (int64_t i = lo; i < hi; i++, at += LSI_B16_DEEP) memset(at, 0, 32);
    }
    memset(to + hi * LSI_B16_DEEP, 0, (size_t)(j->plane_x - hi) * LSI_B16_DEEP * 2);
}

static void fill_planes(const job *j, const segment *s, uint16_t *to)
{
    const int64_t rows = s->hi - s->lo + j->y.halo;

    for (int64_t b = 0; b < j->read_b; b++)
        for (int fy = 0; fy < j->y.in_phases; fy++)
            for (int fx = 0; fx < j->x.in_phases; fx++, to += j->pitch * LSI_B16_DEEP) {
                for (int64_t u = 0; u < rows; u++)
                    fill_row(j, s->image, b, (s->lo + u) * j->y.mul + fy + j->y.base, fx,
                             to + u * j->plane_x * LSI_B16_DEEP);
                memset(to + rows * j->plane_x * LSI_B16_DEEP, 0, (size_t)(j->x.shared * LSI_B16_DEEP) * 2);
            }
}

/* -- results ----------------------------------------------------------------------------------------------
 */

/* What a thread has for itself. */
typedef struct own {
    const uint16_t *weights; /* its own or another thread's, from block first_block on */
    int64_t first_block;
    uint16_t *planes;
    int64_t *off;
    float *tile, *plain;
} own;

static own own_of(const job *j, int thread)
{
    char *at = j->own + (size_t)thread * j->own_bytes + weights_bytes(j);
    own o = {.planes = (uint16_t *)(void *)at};

    at += lsi_align64((size_t)(j->segments * j->segment_numbers) * 2);
    o.off = (int64_t *)(void *)at;
    at += lsi_align64((size_t)j->terms * sizeof(int64_t));
    o.tile = (float *)(void *)at;
    o.plain = o.tile + LSI_B16_ROWS * LSI_B16_WIDE;
    return o;
}

/* n results of one row, from a tile: pixels `step` apart from (y, x) on, of block `block` of channels. */
static void store_run(const job *j, const own *o, int64_t image, int64_t block, int64_t y, int64_t x,
                      int64_t n, const float *c)
{
    const lsi_conv_problem *p = j->p;
    const int64_t pixels = j->y.made * j->x.made, pixel = y * j->x.made + x, step = j->x.out_mul;
    const int64_t first = block * 16, cols = j->made_c - first < 16 ? j->made_c - first : 16;
    lsi_b16_end e = {.type = j->dst_type, .bias_type = p->bias_type, .act = p->act, .slope = p->slope};
    char *dst = j->dst;

    if (p->has_bias) e.bias = lsi_b16_at(j->a->bias, p->bias_type, first);
    if (j->dst_layout == &lsi_layout_c16) {
        const int64_t at = ((image * j->made_b + block) * pixels + pixel) * 16;
        lsi_b16_store(&e, c, LSI_B16_WIDE, n, cols, dst + at * (int64_t)ls_dtype_size(j->dst_type),
                      step * 16);
        return;
    }
    e.type = LS_F32;
    lsi_b16_store(&e, c, LSI_B16_WIDE, n, cols, o->plain, 16);
    for (int64_t k = 0; k < cols; k++) {
        const int64_t at = (image * j->made_c + first + k) * pixels + pixel;
        for (int64_t i = 0; i < n; i++)
            if (j->dst_type == LS_F32)
                ((float *)j->dst)[at + i * step] = o->plain[i * 16 + k];
            else
                ((uint16_t *)j->dst)[at + i * step] = lsi_b16_of(o->plain[i * 16 + k]);
    }
}

/* The results of `rows` pixels from plane position `at` on that exist. */
static void store_tile(const job *j, const own *o, const segment *s, int ry, int rx, int64_t block,
                       int blocks, int64_t at, int64_t rows)
{
    int64_t lo, hi;

    lsi_b16_inside(j->x.out_mul, j->x.out_base + rx, j->x.made, j->x.results, &lo, &hi);
    for (int64_t r = 0; r < rows;) {
        const int64_t q = s->lo + (at + r) / j->plane_x, qx = (at + r) % j->plane_x;
        const int64_t left = j->plane_x - qx < rows - r ? j->plane_x - qx : rows - r;
        const int64_t from = qx > lo ? qx : lo, to = qx + left < hi ? qx + left : hi;
        const int64_t y = q * j->y.out_mul + ry + j->y.out_base;
        if (y >= 0 && y < j->y.made && from < to)
            for (int b = 0; b < blocks; b++)
                store_run(j, o, s->image, block + b, y, from * j->x.out_mul + rx + j->x.out_base, to - from,
                          o->tile + (r + from - qx) * LSI_B16_WIDE + 16 * b);
        r += left;
    }
}

/* Two blocks of channels of one output phase, for all segments. */
static void make_blocks(const job *j, const own *o, const segment *s, int64_t n, int phase, int64_t terms,
                        int64_t block, int blocks)
{
    lsi_b16_product q = {.a_off = o->off,
                         .a_row = LSI_B16_DEEP,
                         .b = o->weights + phase * phase_numbers(j) +
                              (block - o->first_block) * j->terms * LSI_B16_BLOCK,
                         .b_block = j->terms * LSI_B16_BLOCK,
                         .n_terms = terms,
                         .c = o->tile,
                         .c_row = LSI_B16_WIDE};

    for (int64_t i = 0; i < n; i++) {
        const int64_t pixels = (s[i].hi - s[i].lo) * j->plane_x;
        for (int64_t at = 0; at < pixels; at += LSI_B16_ROWS) {
            const int64_t rows = pixels - at < LSI_B16_ROWS ? pixels - at : LSI_B16_ROWS;
            q.a = o->planes + i * j->segment_numbers + at * LSI_B16_DEEP;
            j->kernels->multiply((int)rows, blocks, &q);
            store_tile(j, o, &s[i], phase / j->x.out_phases, phase % j->x.out_phases, block, blocks, at,
                       rows);
        }
    }
}

static void make_chunk(const job *j, const own *o, const segment *s, int64_t n, int64_t block_lo,
                       int64_t block_hi)
{
    for (int64_t i = 0; i < n; i++) fill_planes(j, &s[i], o->planes + i * j->segment_numbers);
    for (int phase = 0; phase < j->y.out_phases * j->x.out_phases; phase++) {
        tap taps[TAPS_MAX];
        const int n_taps = taps_of(j, phase / j->x.out_phases, phase % j->x.out_phases, taps);
        const int64_t plane = j->y.in_phases * j->x.in_phases * j->pitch;
        for (int t = 0; t < n_taps; t++)
            for (int64_t b = 0; b < j->read_b; b++)
                o->off[t * j->read_b + b] = (b * plane + taps[t].offset) * LSI_B16_DEEP;
        for (int64_t b = block_lo; b < block_hi; b += LSI_B16_BLOCKS)
            make_blocks(j, o, s, n, phase, n_taps * j->read_b, b,
                        block_hi - b < LSI_B16_BLOCKS ? 1 : LSI_B16_BLOCKS);
    }
}

/* Rows [row, end) of results, counted through all images, of blocks [lo, hi) of channels. */
static void make_piece(const job *j, const own *o, int64_t row, int64_t end, int64_t lo, int64_t hi)
{
    segment s[SEGMENTS_MAX];
    int64_t n = 0;

    while (row < end) {
        const int64_t q = row % j->y.results;
        int64_t rows = j->y.results - q < end - row ? j->y.results - q : end - row;
        if (rows > j->rows) rows = j->rows;
        s[n++] = (segment){row / j->y.results, q, q + rows};
        row += rows;
        if (n < j->segments && row < end) continue;
        make_chunk(j, o, s, n, lo, hi);
        n = 0;
    }
}

static uint16_t *weights_of(const job *j, int thread)
{
    return (uint16_t *)(void *)(j->own + (size_t)thread * j->own_bytes);
}

/* Of a thread's part of the channels. */
static void part_blocks(const job *j, int thread, int64_t *lo, int64_t *hi)
{
    ls_parallel_range_grain(j->made_b, LSI_B16_BLOCKS, thread % j->grid_n, j->grid_n, lo, hi);
}

static void make_thread(int thread, int n_threads, void *arg)
{
    const job *j = arg;
    own o = own_of(j, thread);
    int64_t lo, hi, row, end;

    part_blocks(j, thread, &lo, &hi);
    for (int64_t i = lo; i < hi; i++)
        for (int64_t b = 0; b < j->read_b; b++) pack_block(j, i, b, i - lo, weights_of(j, thread));
    atomic_store_explicit(&j->packed[thread].whole, true, memory_order_release);
    j->kernels->begin();
    /* Its own part first.  Who has not packed yet will do his part himself. */
    for (int i = 0; i < n_threads; i++) {
        const int owner = (thread + i) % n_threads;
        if (!atomic_load_explicit(&j->packed[owner].whole, memory_order_acquire)) continue;
        part_blocks(j, owner, &lo, &hi);
        o.weights = weights_of(j, owner);
        o.first_block = lo;
        while (lo < hi && piece_rows(j, ls_parallel_take(&j->to_make[owner % j->grid_n]), &row, &end))
            make_piece(j, &o, row, end, lo, hi);
    }
    j->kernels->end();
}

/* -- interface --------------------------------------------------------------------------------------------
 */

static bool applicable(const lsi_conv_problem *p)
{
    const bool fwd = p->pass == LSI_CONV_FWD;
    const ls_layout *read = fwd ? p->x_layout : p->y_layout;

    if (p->pass == LSI_CONV_DW || !lsi_b16_conv_fits(p)) return false;
    if (p->kh * p->kw > TAPS_MAX || p->hi < 1 || p->wi < 1 || p->ho < 1 || p->wo < 1) return false;
    return read == &lsi_layout_c16;
}

static size_t scratch(const lsi_conv_problem *p)
{
    job j;

    job_init(&j, p);
    return (size_t)p->threads * (sizeof(ls_parallel_pieces) + sizeof(lsi_b16_packed) + j.own_bytes);
}

static void run(void *state, const lsi_conv_problem *p, const lsi_conv_args *a)
{
    job j;

    (void)state;
    job_init(&j, p);
    j.a = a;
    j.src = p->pass == LSI_CONV_FWD ? a->x : a->y;
    j.dst = p->pass == LSI_CONV_FWD ? a->y : a->x;
    j.to_make = a->scratch;
    j.packed = (lsi_b16_packed *)(void *)(j.to_make + p->threads);
    j.own = (char *)(j.packed + p->threads);
    if (p->n == 0) return;
    for (int i = 0; i < p->threads; i++) {
        j.to_make[i] = (ls_parallel_pieces){0};
        atomic_init(&j.packed[i].whole, false);
    }
    ls_parallel_run(p->threads, make_thread, &j);
}

const lsi_conv_impl lsi_conv_b16 = {
    .name = "b16", .low = true, .applicable = applicable, .scratch = scratch, .run = run};
