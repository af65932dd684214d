/* conv_b16_dw_few.c: the gradient of a convolution's weights from bf16 numbers, where x has few channels and
 * is plain.
 *
 * As conv_b16_dw.c a product whose depth is pixels, but a row of A is one tap of one channel of x, which is
 * copied for some terms at a time, and columns are those of dy, in pairs of pixels.  Images are dealt to
 * `parts` whose number follows from the problem alone, each with sums of its own, and the sums are added up
 * in their order: threads do not show in the result.  Who takes a part of the images and a block of columns
 * packs what it needs of dy for himself. */
#include <string.h>

#include "backend/cpu/conv_b16.h"
#include "backend/cpu/conv_list.h"
#include "base/parallel.h"

enum {
    GROUP_NUMBERS = 24 << 20, /* of packed images at a time */
    TERMS_AT_ONCE = 16,       /* of rows that are copied together first */
    TASKS_WANTED = 64,
    PARTS_MAX = 16,
    FEW_CHANNELS = 4,
    GIVEN_AT_ONCE = 9, /* blocks of 16 x 16 weights */
    TILE = LSI_B16_ROWS * LSI_B16_WIDE
};

typedef struct job {
    const lsi_conv_problem *p;
    const lsi_conv_args *a;
    const lsi_b16_kernels *kernels;
    lsi_b16_axis y, x;
    int64_t taps, rows;      /* rows of A: taps of channels */
    int64_t row_b, col_b;    /* blocks of 32 rows, of 32 columns */
    int64_t plane_x, terms;  /* of a plane's row; of an image */
    int64_t image_pitch;     /* numbers of one image in a row */
    int64_t group, first, n; /* images at a time; those of now */
    int64_t row_pitch;       /* numbers of a channel's row */
    int parts;
    uint16_t *px; /* [phase][channel][image][pixel] */
    float *sums;  /* [part][row block][column block][32][32] */
    char *own;    /* of each thread: rows of A, then dy of an image: [block of 16][term][512] */
    size_t rows_bytes, own_bytes;
    ls_parallel_pieces to_pack, to_sum, to_give;
} job;

static void job_init(job *j, const lsi_conv_problem *p)
{
    int64_t image;

    *j = (job){.p = p, .kernels = lsi_b16_kernels_here(), .taps = p->kh * p->kw};
    j->y = lsi_b16_axis_forward(p->hi, p->ho, p->kh, p->sh, p->dh, p->pt);
    j->x = lsi_b16_share(lsi_b16_axis_forward(p->wi, p->wo, p->kw, p->sw, p->dw, p->pl));
    j->rows = p->ci * j->taps;
    j->row_b = (j->rows + LSI_B16_ROWS - 1) / LSI_B16_ROWS;
    j->col_b = (p->co + LSI_B16_WIDE - 1) / LSI_B16_WIDE;
    j->plane_x = lsi_round_up(lsi_b16_plane(&j->x), 2); /* pairs do not cross rows */
    j->terms = (j->y.results * j->plane_x + LSI_B16_DEEP - 1) / LSI_B16_DEEP;
    j->image_pitch =
        lsi_round_up(j->terms * LSI_B16_DEEP + j->y.halo * j->plane_x + j->x.halo, LSI_B16_DEEP) +
        LSI_B16_DEEP;
    image = j->image_pitch * p->ci * j->y.in_phases * j->x.in_phases;
    j->group = GROUP_NUMBERS / image;
    if (j->group < 1) j->group = 1;
    if (j->group > p->n) j->group = p->n > 0 ? p->n : 1;
    j->row_pitch = j->group * j->image_pitch + LSI_B16_DEEP;
    j->parts = (int)((TASKS_WANTED + j->col_b - 1) / j->col_b);
    if (j->parts > PARTS_MAX) j->parts = PARTS_MAX;
    if (j->parts > j->group) j->parts = (int)j->group;
    j->rows_bytes = (size_t)(LSI_B16_ROWS * TERMS_AT_ONCE * LSI_B16_DEEP) * 2;
    j->own_bytes = j->rows_bytes + (size_t)(LSI_B16_BLOCKS * j->terms * LSI_B16_BLOCK) * 2;
}

static int64_t px_numbers(const job *j)
{
    return j->y.in_phases * j->x.in_phases * j->p->ci * j->row_pitch;
}
static int64_t tiles(const job *j)
{
    return j->row_b * j->col_b;
}

/* -- packing ----------------------------------------------------------------------------------------------
 */

/* Row `row` of channel c of x, columns of phase fx, at `to`. */
static void fill_row(const job *j, int64_t image, int64_t c, int64_t row, int fx, uint16_t *to)
{
    const lsi_conv_problem *p = j->p;
    int64_t lo = 0, hi = 0, at;

    if (row >= 0 && row < p->hi) lsi_b16_inside(j->x.mul, j->x.base + fx, p->wi, j->plane_x, &lo, &hi);
    memset(to, 0, (size_t)lo * 2);
    memset(to + hi, 0, (size_t)(j->plane_x - hi) * 2);
    at = ((image * p->ci + c) * p->hi + row) * p->wi + lo * j->x.mul + j->x.base + fx;
    lsi_b16_round_every(lsi_b16_at(j->a->x, p->x_type, hi > lo ? at : 0), p->x_type, j->x.mul, hi - lo,
                        to + lo);
}

/* One image of the group, one channel, all phases. */
static void pack_x(const job *j, int64_t image, int64_t c)
{
    const int64_t rows = lsi_b16_plane(&j->y), used = rows * j->plane_x; /* y shares nothing */

    for (int f = 0; f < j->y.in_phases * j->x.in_phases; f++) {
        uint16_t *to = j->px + (f * j->p->ci + c) * j->row_pitch + image * j->image_pitch;
        const int fy = f / j->x.in_phases, fx = f % j->x.in_phases;
        for (int64_t u = 0; u < rows; u++)
            fill_row(j, j->first + image, c, u * j->y.mul + fy + j->y.base, fx, to + u * j->plane_x);
        /* What is multiplied with the zeros behind dy must be a number. */
        memset(to + used, 0, (size_t)(j->image_pitch - used) * 2);
    }
}

/* One image of the group, a block of 16 channels of dy. */
static void pack_y(const job *j, int64_t image, int64_t block, uint16_t *to)
{
    const lsi_conv_problem *p = j->p;
    const int64_t pixels = p->ho * p->wo, paired = lsi_round_up(p->wo, 2);

    if (block >= p->co / 16) { /* the last pair has one block */
        memset(to, 0, (size_t)(j->terms * LSI_B16_BLOCK) * 2);
        return;
    }
    for (int64_t y = 0; y < p->ho; y++) {
        const int64_t at = (((j->first + image) * (p->co / 16) + block) * pixels + y * p->wo) * 16;
        uint16_t *row = to + y * j->plane_x * 16;
        lsi_b16_pair_lines(lsi_b16_at(j->a->y, p->y_type, at), p->y_type, 16, p->wo, row);
        memset(row + paired * 16, 0, (size_t)(j->plane_x - paired) * 16 * 2);
    }
    memset(to + p->ho * j->plane_x * 16, 0, (size_t)(j->terms * LSI_B16_DEEP - p->ho * j->plane_x) * 16 * 2);
}

static void pack_thread(int thread, int n_threads, void *arg)
{
    job *j = arg;

    (void)thread;
    (void)n_threads;
    for (int64_t i; (i = ls_parallel_take(&j->to_pack)) < j->n * j->p->ci;)
        pack_x(j, i / j->p->ci, i % j->p->ci);
}

/* -- sums -------------------------------------------------------------------------------------------------
 */

/* Where a tap of a channel begins in px. */
static int64_t place_of(const job *j, int64_t c, int64_t tap)
{
    int fy, fx, none;
    int64_t dy, dx;

    lsi_b16_tap(&j->y, (int)(tap / j->p->kw), &fy, &dy, &none);
    lsi_b16_tap(&j->x, (int)(tap % j->p->kw), &fx, &dx, &none);
    return ((fy * j->x.in_phases + fx) * j->p->ci + c) * j->row_pitch + dy * j->plane_x + dx;
}

/* A tile's sums over terms [lo, hi) of an image; `rows` is room for what of x they need. */
static void add_terms(const job *j, uint16_t *rows, const uint16_t *py, int64_t image, int64_t rb, int64_t cb,
                      int64_t lo, int64_t hi, float *sums, bool add)
{
    int64_t along[TERMS_AT_ONCE];
    lsi_b16_product q = {.a = rows,
                         .a_off = along,
                         .a_row = LSI_B16_DEEP,
                         .b = py + lo * LSI_B16_BLOCK,
                         .b_block = j->terms * LSI_B16_BLOCK,
                         .n_terms = hi - lo,
                         .c = sums,
                         .c_row = LSI_B16_WIDE,
                         .add = add};
    const int64_t left = j->rows - rb * LSI_B16_ROWS;
    const int n_rows = left < LSI_B16_ROWS ? (int)left : LSI_B16_ROWS;
    const int blocks = j->p->co - cb * LSI_B16_WIDE > LSI_B16_COLS ? 2 : 1;

    for (int64_t t = 0; t < hi - lo; t++) along[t] = t * LSI_B16_ROWS * LSI_B16_DEEP;
    for (int r = 0; r < n_rows; r++) {
        const int64_t at = rb * LSI_B16_ROWS + r;
        const uint16_t *from =
            j->px + place_of(j, at / j->taps, at % j->taps) + image * j->image_pitch + lo * LSI_B16_DEEP;
        for (int64_t t = 0; t < hi - lo; t++)
            memcpy(rows + (t * LSI_B16_ROWS + r) * LSI_B16_DEEP, from + t * LSI_B16_DEEP, LSI_B16_DEEP * 2);
    }
    j->kernels->multiply(n_rows, blocks, &q);
}

/* The images of a part, a block of columns. */
static void sum_task(const job *j, int64_t part, int64_t cb, uint16_t *rows, uint16_t *py)
{
    int64_t lo, hi;

    ls_parallel_range(j->n, (int)part, j->parts, &lo, &hi);
    for (int64_t rb = 0; rb < j->row_b && lo == hi && j->first == 0;
         rb++) /* nothing, but sums there must be */
        add_terms(j, rows, py, 0, rb, cb, 0, 0, j->sums + (part * tiles(j) + rb * j->col_b + cb) * TILE,
                  false);
    for (int64_t image = lo; image < hi; image++) {
        for (int k = 0; k < LSI_B16_BLOCKS; k++)
            pack_y(j, image, cb * LSI_B16_BLOCKS + k, py + k * j->terms * LSI_B16_BLOCK);
        for (int64_t rb = 0; rb < j->row_b; rb++)
            for (int64_t t = 0; t < j->terms; t += TERMS_AT_ONCE)
                add_terms(j, rows, py, image, rb, cb, t,
                          j->terms - t < TERMS_AT_ONCE ? j->terms : t + TERMS_AT_ONCE,
                          j->sums + (part * tiles(j) + rb * j->col_b + cb) * TILE,
                          j->first > 0 || image > lo || t > 0);
    }
}

static void sum_thread(int thread, int n_threads, void *arg)
{
    job *j = arg;
    char *at = j->own + (size_t)thread * j->own_bytes;

    (void)n_threads;
    j->kernels->begin();
    for (int64_t i; (i = ls_parallel_take(&j->to_sum)) < j->parts * j->col_b;)
        sum_task(j, i / j->col_b, i % j->col_b, (uint16_t *)(void *)at,
                 (uint16_t *)(void *)(at + j->rows_bytes));
    j->kernels->end();
}

/* dw[o][c][tap] from the parts' sums: 16 of o from `o` on by n of the rest, at most 16, from r on. */
static void give(const job *j, int64_t o, int64_t r, int64_t n)
{
    const int64_t per_out = j->p->ci * j->taps, size = (int64_t)ls_dtype_size(j->p->w_type);
    const float *from[16];

    for (int64_t i = 0; i < n; i++) {
        const int64_t row = r + i, tile = row / LSI_B16_ROWS * j->col_b + o / LSI_B16_WIDE;
        from[i] = j->sums + tile * TILE + row % LSI_B16_ROWS * LSI_B16_WIDE + o % LSI_B16_WIDE;
    }
    lsi_b16_give(from, n, 16, j->parts, tiles(j) * TILE, j->p->w_type,
                 (char *)j->a->w + (o * per_out + r) * size, per_out);
}

/* Lines of 16 x 16 GIVEN_AT_ONCE at a time: with few channels of dy, one thread for each would be few. */
static void give_thread(int thread, int n_threads, void *arg)
{
    job *j = arg;
    const int64_t per_out = j->p->ci * j->taps, step = 16 * GIVEN_AT_ONCE;
    const int64_t pieces = (per_out + step - 1) / step;

    (void)thread;
    (void)n_threads;
    for (int64_t i; (i = ls_parallel_take(&j->to_give)) < j->p->co / 16 * pieces;) {
        const int64_t lo = i % pieces * step, hi = per_out - lo < step ? per_out : lo + step;
        for (int64_t r = lo; r < hi; r += 16) give(j, i / pieces * 16, r, hi - r < 16 ? hi - r : 16);
    }
}

/* -- interface --------------------------------------------------------------------------------------------
 */

static bool applicable(const lsi_conv_problem *p)
{
    if (p->pass != LSI_CONV_DW || !lsi_b16_conv_fits(p)) return false;
    if (p->n < 1 || p->hi < 1 || p->wi < 1 || p->ho < 1 || p->wo < 1) return false;
    return p->y_layout == &lsi_layout_c16 && p->x_layout == &ls_layout_plain && p->ci <= FEW_CHANNELS;
}

static size_t scratch(const lsi_conv_problem *p)
{
    job j;

    job_init(&j, p);
    return lsi_align64((size_t)px_numbers(&j) * 2) + (size_t)(j.parts * tiles(&j)) * TILE * sizeof(float) +
           (size_t)p->threads * j.own_bytes;
}

static void run(void *state, const lsi_conv_problem *p, const lsi_conv_args *a)
{
    char *at = a->scratch;
    job j;

    (void)state;
    job_init(&j, p);
    j.a = a;
    j.px = (uint16_t *)(void *)at;
    j.sums = (float *)(void *)(at += lsi_align64((size_t)px_numbers(&j) * 2));
    j.own = at + (size_t)(j.parts * tiles(&j)) * TILE * sizeof(float);
    for (; j.first < p->n; j.first += j.group) {
        j.n = p->n - j.first < j.group ? p->n - j.first : j.group;
        j.to_pack = j.to_sum = (ls_parallel_pieces){0};
        ls_parallel_run(p->threads, pack_thread, &j);
        ls_parallel_run(p->threads, sum_thread, &j);
    }
    ls_parallel_run(p->threads, give_thread, &j);
}

const lsi_conv_impl lsi_conv_b16_dw_few = {
    .name = "b16_dw_few", .low = true, .applicable = applicable, .scratch = scratch, .run = run};
