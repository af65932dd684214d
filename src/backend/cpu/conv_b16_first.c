/* conv_b16_first.c: forward convolution of few plain channels to many blocked ones, from bf16 numbers.
 *
 * A row of A is one pixel of the result: for each channel and row of the filter 8 neighbours of x, or 16 for
 * a wide filter (one that cuts images into patches), as they lie, of which the filter's width counts.  They
 * are copied from rows of bf16 with zeros around them. */
#include <string.h>

#include "backend/cpu/conv_b16.h"
#include "backend/cpu/conv_list.h"
#include "base/parallel.h"

enum {
    NEIGHBOURS = 8,
    NEIGHBOURS_MAX = 16,
    ROWS_AT_ONCE = 8,
    PIXELS_AT_ONCE = 128,
    DEEP_MAX = 1024,
    CHANNELS_MAX = 4
};

typedef struct job {
    const lsi_conv_problem *p;
    const lsi_conv_args *a;
    const lsi_b16_kernels *kernels;
    int64_t neighbours;   /* 8 or 16 */
    int64_t deep, blocks; /* numbers of a row of A; blocks of 16 channels */
    int64_t rows, width;  /* of x, for ROWS_AT_ONCE rows of results, with zeros */
    uint16_t *weights;    /* [block][term][512] */
    char *own;
    size_t own_bytes;
    ls_parallel_pieces to_make; /* ROWS_AT_ONCE rows of results of an image, or the rest of them */
} job;

static int64_t neighbours_of(const lsi_conv_problem *p)
{
    return p->kw <= NEIGHBOURS ? NEIGHBOURS : NEIGHBOURS_MAX;
}

static void job_init(job *j, const lsi_conv_problem *p)
{
    *j = (job){.p = p, .kernels = lsi_b16_kernels_here(), .neighbours = neighbours_of(p)};
    j->deep = lsi_round_up(p->ci * p->kh * j->neighbours, LSI_B16_DEEP);
    j->blocks = (p->co + LSI_B16_COLS - 1) / LSI_B16_COLS;
    j->rows = (ROWS_AT_ONCE - 1) * p->sh + (int64_t)(p->kh - 1) * p->dh + 1;
    j->width = lsi_round_up((p->wo - 1) * p->sw + j->neighbours, 32);
    j->own_bytes = lsi_align64((size_t)(p->ci * j->rows * j->width) * 2) +
                   lsi_align64((size_t)(PIXELS_AT_ONCE * j->deep) * 2) +
                   LSI_B16_ROWS * LSI_B16_WIDE * sizeof(float);
}

static void pack_thread(int thread, int n_threads, void *arg)
{
    const job *j = arg;
    const lsi_conv_problem *p = j->p;
    int64_t b, end;

    ls_parallel_range(j->blocks, thread, n_threads, &b, &end);
    for (; b < end; b++)
        for (int64_t k = 0; k < j->deep; k++)
            for (int64_t c = 0; c < LSI_B16_COLS; c++) {
                const int64_t line = k / j->neighbours, kx = k % j->neighbours, o = b * LSI_B16_COLS + c;
                const bool there = line < p->ci * p->kh && kx < p->kw && o < p->co;
                uint16_t *to = j->weights + (b * j->deep + k / LSI_B16_DEEP * LSI_B16_DEEP) * LSI_B16_COLS;
                to[k % LSI_B16_DEEP / 2 * 32 + 2 * c + k % 2] =
                    there ? lsi_b16_get(j->a->w, p->w_type, (o * p->ci * p->kh + line) * p->kw + kx) : 0;
            }
}

/* Rows first.. of x, as far as n rows of results need them. */
static void fill(const job *j, int64_t image, int64_t first, int64_t n, uint16_t *to)
{
    const lsi_conv_problem *p = j->p;
    const int64_t rows = (n - 1) * p->sh + (int64_t)(p->kh - 1) * p->dh + 1;
    const int64_t count = p->wi < j->width - p->pl ? p->wi : j->width - p->pl;

    for (int64_t c = 0; c < p->ci; c++)
        for (int64_t r = 0; r < rows; r++) {
            uint16_t *row = to + (c * j->rows + r) * j->width;
            const int64_t y = first + r;
            memset(row, 0, (size_t)j->width * 2);
            if (y < 0 || y >= p->hi || count <= 0) continue;
            lsi_b16_round(lsi_b16_at(j->a->x, p->x_type, ((image * p->ci + c) * p->hi + y) * p->wi),
                          p->x_type, row + p->pl, count);
        }
}

/* n results, counted through rows from `at` on. */
static void gather(const job *j, const uint16_t *rows, int64_t at, int64_t n, uint16_t *to)
{
    const lsi_conv_problem *p = j->p;
    int64_t y = at / p->wo, x = at % p->wo;

    for (int64_t i = 0; i < n; i++, to += j->deep) {
        const uint16_t *from = rows + y * p->sh * j->width + x * p->sw;
        uint16_t *line = to;
        for (int64_t c = 0; c < p->ci; c++, from += j->rows * j->width)
            for (int ky = 0; ky < p->kh; ky++)
                for (int64_t k = 0; k < j->neighbours; k += NEIGHBOURS, line += NEIGHBOURS)
                    memcpy(line, from + ky * p->dh * j->width + k, NEIGHBOURS * 2);
        if (++x == p->wo) x = 0, y++;
    }
}

/* Results `at`.. of an image's rows from `y` on, of all channels. */
static void make_pixels(const job *j, const int64_t *off, const uint16_t *a, float *tile, int64_t image,
                        int64_t pixel, int64_t n)
{
    const lsi_conv_problem *p = j->p;
    lsi_b16_product q = {.a = a,
                         .a_off = off,
                         .a_row = j->deep,
                         .b_block = j->deep * LSI_B16_COLS,
                         .n_terms = j->deep / LSI_B16_DEEP,
                         .c = tile,
                         .c_row = LSI_B16_WIDE};

    for (int64_t b = 0; b < j->blocks; b += LSI_B16_BLOCKS) {
        const int blocks = j->blocks - b < LSI_B16_BLOCKS ? 1 : LSI_B16_BLOCKS;
        q.b = j->weights + b * q.b_block;
        j->kernels->multiply((int)n, blocks, &q);
        for (int k = 0; k < blocks; k++) {
            const int64_t at = ((image * j->blocks + b + k) * p->ho * p->wo + pixel) * 16;
            lsi_b16_end e = {.type = p->y_type, .bias_type = p->bias_type, .act = p->act, .slope = p->slope};
            if (p->has_bias) e.bias = lsi_b16_at(j->a->bias, p->bias_type, (b + k) * LSI_B16_COLS);
            lsi_b16_store(&e, tile + 16 * k, LSI_B16_WIDE, n, 16,
                          (char *)j->a->y + at * (int64_t)ls_dtype_size(p->y_type), 16);
        }
    }
}

static void make_thread(int thread, int n_threads, void *arg)
{
    job *j = arg;
    const lsi_conv_problem *p = j->p;
    const int64_t per_image = (p->ho + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;
    char *at = j->own + (size_t)thread * j->own_bytes;
    uint16_t *rows = (uint16_t *)(void *)at, *a;
    float *tile;
    int64_t off[DEEP_MAX / LSI_B16_DEEP];

    (void)n_threads;
    a = (uint16_t *)(void *)(at += lsi_align64((size_t)(p->ci * j->rows * j->width) * 2));
    tile = (float *)(void *)(at + lsi_align64((size_t)(PIXELS_AT_ONCE * j->deep) * 2));
    memset(a, 0, (size_t)(PIXELS_AT_ONCE * j->deep) * 2); /* behind the last line stays zero */
    for (int64_t t = 0; t < j->deep / LSI_B16_DEEP; t++) off[t] = t * LSI_B16_DEEP;
    j->kernels->begin();
    for (int64_t k; (k = ls_parallel_take(&j->to_make)) < p->n * per_image;) {
        const int64_t image = k / per_image, y = k % per_image * ROWS_AT_ONCE;
        const int64_t n = p->ho - y < ROWS_AT_ONCE ? p->ho - y : ROWS_AT_ONCE;
        fill(j, image, y * p->sh - p->pt, n, rows);
        /* Many are gathered before the first are multiplied: small stores must have left the core before a
         * tile can be loaded from them. */
        for (int64_t i = 0; i < n * p->wo; i += PIXELS_AT_ONCE) {
            const int64_t some = n * p->wo - i < PIXELS_AT_ONCE ? n * p->wo - i : PIXELS_AT_ONCE;
            gather(j, rows, i, some, a);
            for (int64_t m = 0; m < some; m += LSI_B16_ROWS)
                make_pixels(j, off, a + m * j->deep, tile, image, y * p->wo + i + m,
                            some - m < LSI_B16_ROWS ? some - m : LSI_B16_ROWS);
        }
    }
    j->kernels->end();
}

static size_t weights_bytes(const job *j)
{
    return lsi_align64((size_t)(j->blocks * j->deep * LSI_B16_COLS) * 2);
}

static bool applicable(const lsi_conv_problem *p)
{
    if (p->pass != LSI_CONV_FWD || !lsi_b16_conv_fits(p)) return false;
    if (p->n < 1 || p->ho < 1 || p->wo < 1 || p->wi < 1 || p->kw > NEIGHBOURS_MAX || p->dw != 1) return false;
    return p->x_layout == &ls_layout_plain && p->y_layout == &lsi_layout_c16 && p->ci <= CHANNELS_MAX &&
           p->ci * p->kh * neighbours_of(p) <= DEEP_MAX;
}

static size_t scratch(const lsi_conv_problem *p)
{
    job j;

    job_init(&j, p);
    return weights_bytes(&j) + (size_t)p->threads * j.own_bytes;
}

static void run(void *state, const lsi_conv_problem *p, const lsi_conv_args *a)
{
    job j;

    (void)state;
    job_init(&j, p);
    j.a = a;
    j.weights = a->scratch;
    j.own = (char *)a->scratch + weights_bytes(&j);
    ls_parallel_run(p->threads, pack_thread, &j);
    ls_parallel_run(p->threads, make_thread, &j);
}

const lsi_conv_impl lsi_conv_b16_first = {
    .name = "b16_first", .low = true, .applicable = applicable, .scratch = scratch, .run = run};
