/* conv_direct.c: direct convolution on channel-blocked maps, forward and gradient of the input.
 *
 * Both passes are "gather" problems: every produced pixel is a sum over taps of one read pixel times one
 * block of weights, and a strip of up to 14 produced pixels is one call of the row product with a list of
 * (pixel, weights) terms.  Two ways to lay strips: along the row (large maps), or along the batch at one
 * fixed pixel (small maps); the latter reads a copy of the input with the batch innermost, and leaves out
 * every tap that would only see padding, so a 3x3 kernel on a 1x1 map costs what a 1x1 kernel costs. */
#include "backend/cpu/conv_direct.h"

#include "backend/cpu/conv_list.h"
#include "base/parallel.h"

#define GROUP_BYTES   (192 * 1024)
#define WEIGHTS_BYTES (4 * 1024 * 1024)

/* One axis of the gather: where tap k reads for produced position o. */
typedef struct axis {
    bool fwd;
    int64_t stride, dil, pad, n_read;
} axis;

typedef struct gather {
    const lsi_conv_problem *p;
    const lsi_conv_args *a;
    const lsi_conv_kernels *k;
    int64_t rb, pb;         /* channel blocks read and produced */
    int64_t hr, wr, hp, wp; /* map sizes read and produced */
    axis ay, ax;
    int kh, kw;
    bool batch;       /* strips along the batch */
    int64_t pad_left; /* columns of zeros before and ... */
    int64_t wr_pad;   /* ... row length of the padded copy (strips along the row) */
    bool copy;        /* strips read `in`, a copy; otherwise the tensor itself */
    int64_t step;     /* read pixels between neighbours of a strip */
    int64_t phases;   /* produced columns between neighbours of a strip */
    int64_t columns;  /* positions per row: pixels (batch) or phases */
    int64_t strips;   /* strips per position, along the row or the batch */
    const float *src;
    float *dst;
    unsigned char *used; /* by tap: whether any pixel reads it */
    float *weights;      /* [chunk][read block][tap][16][16 * blocks in chunk] */
    float *in;
    int64_t *offsets; /* per thread: 2 * max_terms */
    int64_t max_terms;
} gather;

/* Where tap k of produced position o reads, or -1. */
static int64_t axis_read(const axis *x, int64_t o, int64_t k)
{
    int64_t r;

    if (x->fwd) {
        r = o * x->stride + k * x->dil - x->pad;
    } else {
        const int64_t t = o + x->pad - k * x->dil;
        if (t < 0 || t % x->stride != 0) return -1;
        r = t / x->stride;
    }
    return r >= 0 && r < x->n_read ? r : -1;
}

/* Where tap k reads for the first column of a phase; false when this phase never uses the tap. */
static bool axis_phase_start(const axis *x, int64_t phase, int64_t k, int64_t *start)
{
    if (x->fwd) {
        *start = k * x->dil - x->pad;
        return true;
    }
    const int64_t t = phase + x->pad - k * x->dil;
    *start = lsi_div_floor(t, x->stride);
    return t - *start * x->stride == 0;
}

/* A 1x1 stride-1 convolution without padding sees pixels, not rows: one row of h * w pixels. */
static bool is_pointwise(const lsi_conv_problem *p)
{
    return p->kh == 1 && p->kw == 1 && p->sh == 1 && p->sw == 1 && p->pt == 0 && p->pl == 0 &&
           p->hi == p->ho && p->wi == p->wo;
}

/* Fraction of the row product's capacity that strips of at most `max` out of `n` pixels use. */
static double strip_fill(int64_t n, int64_t max)
{
    return n == 0 ? 0 : (double)n / (double)(lsi_div_ceil(n, max) * max);
}

static void choose_strips(gather *g)
{
    const lsi_conv_problem *p = g->p;
    const int64_t max = g->k->rows_max;
    const double row = strip_fill(lsi_div_ceil(g->wp, g->phases), max);
    const double batch = strip_fill(p->n, max);
    /* The row product's constant steps are one and two pixels. */
    const bool row_possible = g->step <= 2;
    /* Taps that fall on padding cost nothing with strips along the batch. */
    const double hit = g->wr >= 8 ? 1.0 : 0.75;

    g->batch = !row_possible || (g->wp < 2 * max && batch * 0.9 > row * hit);
    if (g->batch) {
        g->copy = true;
        g->wr_pad = g->wr;
        return;
    }
    int64_t lo = 0, hi = g->wr - 1;
    for (int64_t ph = 0; ph < g->phases; ph++) {
        const int64_t n = lsi_div_ceil(g->wp - ph, g->phases);
        for (int64_t k = 0; k < g->kw && n > 0; k++) {
            int64_t s;
            if (!axis_phase_start(&g->ax, ph, k, &s)) continue;
            lo = lsi_min64(lo, s);
            hi = lsi_max64(hi, s + (n - 1) * g->step);
        }
    }
    g->pad_left = -lo;
    g->wr_pad = hi - lo + 1;
    g->copy = lo < 0 || hi >= g->wr;
}

static void gather_init(gather *g, const lsi_conv_problem *p)
{
    const bool fwd = p->pass == LSI_CONV_FWD;

    memset(g, 0, sizeof *g);
    g->p = p;
    g->k = lsi_conv_kernels_get();
    g->rb = (fwd ? p->ci : p->co) / LSI_LINE;
    g->pb = (fwd ? p->co : p->ci) / LSI_LINE;
    g->hr = fwd ? p->hi : p->ho;
    g->wr = fwd ? p->wi : p->wo;
    g->hp = fwd ? p->ho : p->hi;
    g->wp = fwd ? p->wo : p->wi;
    if (is_pointwise(p)) {
        g->wr *= g->hr;
        g->hr = 1;
        g->wp = g->wr;
        g->hp = 1;
    }
    g->ay = (axis){fwd, p->sh, p->dh, p->pt, g->hr};
    g->ax = (axis){fwd, p->sw, p->dw, p->pl, g->wr};
    g->kh = p->kh;
    g->kw = p->kw;
    g->step = fwd ? p->sw : 1;
    g->phases = fwd ? 1 : p->sw;
    g->max_terms = g->rb * g->kh * g->kw;
    choose_strips(g);
    g->columns = g->batch ? g->wp : lsi_min64(g->phases, g->wp);
    g->strips = lsi_div_ceil(g->batch ? p->n : lsi_div_ceil(g->wp, g->phases), g->k->rows_max);
}

static void gather_take(gather *g, lsi_bump *b)
{
    const lsi_conv_problem *p = g->p;
    const int64_t taps = (int64_t)g->kh * g->kw;

    g->used = lsi_bump_take(b, (size_t)taps);
    g->weights = lsi_bump_take(b, sizeof(float) * (size_t)(g->pb * g->rb * taps * LSI_BLOCK));
    g->offsets = lsi_bump_take(b, sizeof(int64_t) * (size_t)(2 * g->max_terms * p->threads));
    if (g->copy) {
        const int64_t lines = p->n * g->rb * g->hr * g->wr_pad;
        g->in = lsi_bump_take(b, sizeof(float) * (size_t)(lines * LSI_LINE));
    }
}

size_t lsi_direct_gather_scratch(const lsi_conv_problem *p)
{
    gather g;
    lsi_bump b = {0};

    gather_init(&g, p);
    gather_take(&g, &b);
    return b.used;
}

static void find_used_taps(gather *g)
{
    for (int ky = 0; ky < g->kh; ky++) {
        bool row = false;
        for (int64_t o = 0; o < g->hp && !row; o++) row = axis_read(&g->ay, o, ky) >= 0;
        for (int kx = 0; kx < g->kw; kx++) {
            bool col = false;
            for (int64_t o = 0; o < g->wp && !col; o++) col = axis_read(&g->ax, o, kx) >= 0;
            g->used[ky * g->kw + kx] = row && col;
        }
    }
}

/* Produced blocks come in chunks of blocks_max; the last may be smaller. */
static int chunk_blocks(const gather *g, int64_t chunk)
{
    return (int)lsi_min64(g->k->blocks_max, g->pb - chunk * g->k->blocks_max);
}

static void reorder_weights(const gather *g, int thread, int n_threads)
{
    const int64_t taps = (int64_t)g->kh * g->kw;
    int64_t lo, hi;

    ls_parallel_range(g->pb * g->rb, thread, n_threads, &lo, &hi);
    for (int64_t u = lo; u < hi; u++) {
        const int64_t pb = u / g->rb, rb = u % g->rb;
        const int64_t chunk = pb / g->k->blocks_max, first = chunk * g->k->blocks_max;
        const int64_t row = LSI_LINE * chunk_blocks(g, chunk);
        const lsi_weight_block b = {
            .w = g->a->w,
            .ci = g->p->ci,
            .taps = taps,
            .used = g->used,
            .to = g->weights + first * g->rb * taps * LSI_BLOCK + rb * taps * LSI_LINE * row +
                  (pb - first) * LSI_LINE,
            .to_tap = LSI_LINE * row,
            .to_row = row,
        };
        if (g->p->pass == LSI_CONV_FWD)
            lsi_weights_fwd(g->k, &b, pb, rb);
        else
            lsi_weights_dx(g->k, &b, rb, pb);
    }
}

/* in[n][block][row][pad_left + column], zeros around. */
static void copy_padded(const gather *g, int thread, int n_threads)
{
    const int64_t rows = g->p->n * g->rb * g->hr;
    const int64_t right = g->wr_pad - g->pad_left - g->wr;
    const size_t line = sizeof(float) * LSI_LINE;
    int64_t lo, hi;

    ls_parallel_range(rows, thread, n_threads, &lo, &hi);
    for (int64_t r = lo; r < hi; r++) {
        float *to = g->in + r * g->wr_pad * LSI_LINE;
        memset(to, 0, (size_t)g->pad_left * line);
        to += g->pad_left * LSI_LINE;
        memcpy(to, g->src + r * g->wr * LSI_LINE, (size_t)g->wr * line);
        if (right > 0) memset(to + g->wr * LSI_LINE, 0, (size_t)right * line);
    }
}

/* in[block][row][column][n]. */
static void copy_batch_inner(const gather *g, int thread, int n_threads)
{
    const int64_t n = g->p->n, pixels = g->hr * g->wr;
    int64_t lo, hi;

    ls_parallel_range(g->rb * pixels, thread, n_threads, &lo, &hi);
    for (int64_t u = lo; u < hi; u++) {
        float *to = g->in + u * n * LSI_LINE;
        const float *from = g->src + u * LSI_LINE;
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * LSI_LINE, from + i * g->rb * pixels * LSI_LINE, sizeof(float) * LSI_LINE);
    }
}

/* The terms of one strip position: for row oy and either one column (batch) or one phase (row). */
static int64_t list_terms(const gather *g, int blocks, int64_t oy, int64_t ox, int64_t *a_off, int64_t *b_off)
{
    const int64_t taps = (int64_t)g->kh * g->kw;
    const int64_t line_n = g->batch ? g->p->n : 1;
    const int64_t row = g->wr_pad * line_n * LSI_LINE;
    const int64_t b_tap = LSI_BLOCK * blocks;
    int64_t n = 0;

    for (int ky = 0; ky < g->kh; ky++) {
        const int64_t ry = axis_read(&g->ay, oy, ky);
        if (ry < 0) continue;
        for (int kx = 0; kx < g->kw; kx++) {
            int64_t rx;
            if (g->batch) {
                rx = axis_read(&g->ax, ox, kx);
                if (rx < 0) continue;
            } else {
                const int tap_used = g->used[ky * g->kw + kx];
                if (!axis_phase_start(&g->ax, ox, kx, &rx) || !tap_used) continue;
                rx += g->pad_left;
            }
            for (int64_t rb = 0; rb < g->rb; rb++, n++) {
                a_off[n] = (rb * g->hr + ry) * row + rx * line_n * LSI_LINE;
                b_off[n] = (rb * taps + ky * g->kw + kx) * b_tap;
            }
        }
    }
    return n;
}

static void finish_strip(const gather *g, int64_t pb, int blocks, int rows, const lsi_gemm_rows *r)
{
    const lsi_conv_problem *p = g->p;

    if (!p->has_bias && p->act == LSI_ACT_NONE) return;
    for (int j = 0; j < blocks; j++) {
        const float *bias = p->has_bias ? g->a->bias + (pb + j) * LSI_LINE : NULL;
        g->k->finish(r->c + j * r->c_block, rows, r->c_row, bias, p->act, p->slope);
    }
}

/* Strips i0..i1-1 of all strips, for one chunk of produced channels.  Strips are counted along the row (or
 * batch) first, then over columns (phases, or pixels), rows and images; the list of terms is made once per
 * position. */
static void produce(const gather *g, int64_t chunk, int64_t i0, int64_t i1, int64_t *offsets)
{
    const int64_t taps = (int64_t)g->kh * g->kw, pb = chunk * g->k->blocks_max;
    const int64_t map = g->hp * g->wp * LSI_LINE;
    const int blocks = chunk_blocks(g, chunk);
    const float *in = g->copy ? g->in : g->src;
    const int64_t a_step = (g->batch ? 1 : g->step) * LSI_LINE;
    int64_t at = -1, oy = 0, ox = 0, image = 0, pixels = 0;
    lsi_gemm_rows r = {
        .b = g->weights + pb * g->rb * taps * LSI_BLOCK,
        .a_off = offsets,
        .b_off = offsets + g->max_terms,
        .c_row = g->batch ? g->pb * map : g->phases * LSI_LINE,
        .c_block = map,
    };

    for (int64_t i = i0; i < i1; i++) {
        if (i / g->strips != at) {
            at = i / g->strips;
            ox = at % g->columns;
            oy = at / g->columns % g->hp;
            image = at / g->columns / g->hp;
            pixels = g->batch ? g->p->n : lsi_div_ceil(g->wp - ox, g->phases);
            r.n_terms = list_terms(g, blocks, oy, ox, offsets, offsets + g->max_terms);
        }
        const int64_t s = i % g->strips;
        const int64_t m0 = pixels * s / g->strips, m1 = pixels * (s + 1) / g->strips;
        r.a = in + (g->batch ? 0 : image * g->rb * g->hr * g->wr_pad * LSI_LINE) + m0 * a_step;
        r.c = g->dst + (image * g->pb + pb) * map + (oy * g->wp + ox) * LSI_LINE + m0 * r.c_row;
        if (m1 == m0) continue;
        g->k->gemm_rows((int)(m1 - m0), blocks, a_step, &r);
        finish_strip(g, pb, blocks, (int)(m1 - m0), &r);
    }
}

static void prepare_region(int thread, int n_threads, void *arg)
{
    const gather *g = arg;

    reorder_weights(g, thread, n_threads);
    if (g->copy && g->batch)
        copy_batch_inner(g, thread, n_threads);
    else if (g->copy)
        copy_padded(g, thread, n_threads);
}

/* Strips are taken in groups whose input stays in the second-level cache while all chunks of channels pass
 * over it; with weights so large that they would come from memory each time, all strips are one group. */
static int64_t group_strips(const gather *g)
{
    const int64_t strip = g->k->rows_max * g->rb * LSI_LINE * (int64_t)sizeof(float);
    const int64_t weights = g->pb * g->rb * g->kh * g->kw * LSI_BLOCK * (int64_t)sizeof(float);

    return weights > WEIGHTS_BYTES ? INT64_MAX : lsi_max64(8, GROUP_BYTES / strip);
}

static void produce_region(int thread, int n_threads, void *arg)
{
    const gather *g = arg;
    const int64_t chunks = lsi_div_ceil(g->pb, g->k->blocks_max);
    const int64_t total = (g->batch ? 1 : g->p->n) * g->hp * g->columns * g->strips;
    const int64_t group = lsi_max64(1, lsi_min64(group_strips(g), total));
    /* With few strips the threads share them and cut the channels. */
    const bool cut_chunks = total < 2 * group * n_threads && chunks >= n_threads;
    int64_t *offsets = g->offsets + 2 * g->max_terms * thread;
    int64_t i_lo = 0, i_hi = total, c_lo = 0, c_hi = chunks;

    if (cut_chunks)
        ls_parallel_range(chunks, thread, n_threads, &c_lo, &c_hi);
    else
        ls_parallel_range(total, thread, n_threads, &i_lo, &i_hi);
    for (int64_t i0 = i_lo; i0 < i_hi; i0 += group)
        for (int64_t c = c_lo; c < c_hi; c++) produce(g, c, i0, lsi_min64(i_hi, i0 + group), offsets);
}

void lsi_direct_gather_run(const lsi_conv_problem *p, const lsi_conv_args *a)
{
    gather g;
    lsi_bump b = {.base = a->scratch};

    if (p->n == 0) return;
    gather_init(&g, p);
    gather_take(&g, &b);
    g.a = a;
    g.src = p->pass == LSI_CONV_FWD ? a->x : a->y;
    g.dst = p->pass == LSI_CONV_FWD ? a->y : a->x;
    find_used_taps(&g);
    ls_parallel_run(p->threads, prepare_region, &g);
    ls_parallel_run(p->threads, produce_region, &g);
}

static bool direct_applicable(const lsi_conv_problem *p)
{
    return lsi_conv_blocked_ok(p);
}

static size_t direct_scratch(const lsi_conv_problem *p)
{
    return p->pass == LSI_CONV_DW ? lsi_direct_dw_scratch(p) : lsi_direct_gather_scratch(p);
}

static void direct_run(void *state, const lsi_conv_problem *p, const lsi_conv_args *a)
{
    (void)state;
    if (p->pass == LSI_CONV_DW)
        lsi_direct_dw_run(p, a);
    else
        lsi_direct_gather_run(p, a);
}

const lsi_conv_impl lsi_conv_direct_c16 = {
    .name = "direct_c16",
    .applicable = direct_applicable,
    .scratch = direct_scratch,
    .run = direct_run,
};
