/* conv_b16_dw.c: the gradient of a convolution's weights from bf16 numbers: a product whose depth is pixels.
 *
 * Of x there are planes (conv_b16.h), turned round: a row of A is one channel, 32 pixels in a row are a term,
 * and a tap is a distance along the row.  Of dy there are pairs of pixels, with zeros where a plane has its
 * margin. Images follow one another, so that depth is never short.  With few channels of x a row of A is one
 * tap of one channel.  Images are dealt to `parts` whose number follows from the problem alone, each with
 * sums of its own, and the sums are added up in their order: threads do not show in the result. */
#include <string.h>

#include "backend/cpu/conv_b16.h"
#include "backend/cpu/conv_list.h"
#include "base/parallel.h"

enum {
    GROUP_NUMBERS = 24 << 20, /* of packed images at a time */
    TERMS_AT_ONCE = 128,      /* of a pair of blocks: half a mebibyte */
    FEW_TERMS = 32,           /* of rows that are copied together first */
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
    bool few;
    int64_t taps, rows;          /* rows of A: channels, or taps of channels */
    int64_t row_b, col_b;        /* blocks of 32 rows, of 32 columns */
    int64_t tap_tiles;           /* taps, or 1 where rows are taps */
    int64_t plane_x, terms;      /* of a plane's row; of an image */
    int64_t image_pitch;         /* numbers of one image in a row */
    int64_t group, first, n;     /* images at a time; those of now */
    int64_t row_pitch, channels; /* numbers of a channel's row, channels that are stored */
    int parts;
    uint16_t *px, *py; /* [phase][channel][image][pixel]; [block of 16][image][term][512] */
    float *sums;       /* [part][tap][row block][column block][32][32] */
    char *own;
    size_t own_bytes;
    ls_parallel_pieces to_pack, to_sum, to_give;
} job;

static void job_init(job *j, const lsi_conv_problem *p)
{
    int64_t image;

    *j = (job){.p = p, .kernels = lsi_b16_kernels_here(), .taps = p->kh * p->kw};
    j->y = lsi_b16_axis_forward(p->hi, p->ho, p->kh, p->sh, p->dh, p->pt);
    j->x = lsi_b16_share(lsi_b16_axis_forward(p->wi, p->wo, p->kw, p->sw, p->dw, p->pl));
    j->few = p->x_layout != &lsi_layout_c16;
    j->rows = j->few ? p->ci * j->taps : p->ci;
    j->row_b = (j->rows + LSI_B16_ROWS - 1) / LSI_B16_ROWS;
    j->col_b = (p->co + LSI_B16_WIDE - 1) / LSI_B16_WIDE;
    j->tap_tiles = j->few ? 1 : j->taps;
    j->channels = j->few ? p->ci : lsi_round_up(p->ci, LSI_B16_ROWS);
    j->plane_x = lsi_round_up(lsi_b16_plane(&j->x), 2); /* pairs do not cross rows */
    j->terms = (j->y.results * j->plane_x + LSI_B16_DEEP - 1) / LSI_B16_DEEP;
    j->image_pitch =
        lsi_round_up(j->terms * LSI_B16_DEEP + j->y.halo * j->plane_x + j->x.halo, LSI_B16_DEEP) +
        LSI_B16_DEEP;
    image = j->image_pitch * j->channels * j->y.in_phases * j->x.in_phases +
            j->col_b * LSI_B16_BLOCKS * j->terms * LSI_B16_BLOCK;
    j->group = GROUP_NUMBERS / image;
    if (j->group < 1) j->group = 1;
    if (j->group > p->n) j->group = p->n > 0 ? p->n : 1;
    j->row_pitch = j->group * j->image_pitch + LSI_B16_DEEP;
    j->parts = (int)((TASKS_WANTED + j->row_b * j->col_b - 1) / (j->row_b * j->col_b));
    if (j->parts > PARTS_MAX) j->parts = PARTS_MAX;
    if (j->parts > j->group) j->parts = (int)j->group;
    j->own_bytes = lsi_align64((size_t)(j->group * j->terms) * sizeof(int64_t)) +
                   (j->few ? (size_t)(LSI_B16_ROWS * FEW_TERMS * LSI_B16_DEEP) * 2 : 0);
}

static int64_t px_numbers(const job *j)
{
    return j->y.in_phases * j->x.in_phases * j->channels * j->row_pitch;
}
static int64_t py_numbers(const job *j)
{
    return j->col_b * LSI_B16_BLOCKS * j->group * j->terms * LSI_B16_BLOCK;
}
static int64_t tiles(const job *j)
{
    return j->tap_tiles * j->row_b * j->col_b;
}

/* -- packing ----------------------------------------------------------------------------------------------
 */

/* Row `row` of 16 channels of x from channel c on (or of one, with few), columns of phase fx, at `to`. */
static void fill_row(const job *j, int64_t image, int64_t c, int64_t row, int fx, uint16_t *to)
{
    const lsi_conv_problem *p = j->p;
    const int64_t pixels = p->hi * p->wi;
    const int n = j->few ? 1 : 16;
    int64_t lo = 0, hi = 0, first;

    if (row >= 0 && row < p->hi) lsi_b16_inside(j->x.mul, j->x.base + fx, p->wi, j->plane_x, &lo, &hi);
    for (int i = 0; i < n; i++) {
        memset(to + i * j->row_pitch, 0, (size_t)lo * 2);
        memset(to + i * j->row_pitch + hi, 0, (size_t)(j->plane_x - hi) * 2);
    }
    if (lo == hi) return;
    first = row * p->wi + lo * j->x.mul + j->x.base + fx;
    if (j->few) {
        const int64_t at = (image * p->ci + c) * pixels + first;
        for (int64_t i = 0; i < hi - lo; i++) to[lo + i] = lsi_b16_get(j->a->x, p->x_type, at + i * j->x.mul);
    } else {
        const int64_t at = ((image * (p->ci / 16) + c / 16) * pixels + first) * 16;
        lsi_b16_turn_lines(lsi_b16_at(j->a->x, p->x_type, at), p->x_type, j->x.mul * 16, hi - lo, to + lo,
                           j->row_pitch);
    }
}

/* One image of the group, some channels (16, or one with few), all phases. */
static void pack_x(const job *j, int64_t image, int64_t c)
{
    const int64_t rows = lsi_b16_plane(&j->y), used = rows * j->plane_x; /* y shares nothing */
    const int n = j->few ? 1 : 16;

    for (int f = 0; f < j->y.in_phases * j->x.in_phases; f++) {
        uint16_t *to = j->px + (f * j->channels + c) * j->row_pitch + image * j->image_pitch;
        const int fy = f / j->x.in_phases, fx = f % j->x.in_phases;
        for (int64_t u = 0; u < rows; u++)
            fill_row(j, j->first + image, c, u * j->y.mul + fy + j->y.base, fx, to + u * j->plane_x);
        /* What is multiplied with the zeros behind dy must be a number. */
        for (int i = 0; i < n; i++)
            memset(to + i * j->row_pitch + used, 0, (size_t)(j->image_pitch - used) * 2);
    }
}

/* One image of the group, a block of 16 channels of dy. */
static void pack_y(const job *j, int64_t image, int64_t block)
{
    const lsi_conv_problem *p = j->p;
    uint16_t *to = j->py + (block * j->group + image) * j->terms * LSI_B16_BLOCK;
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
    const int64_t step = j->few ? 1 : 16, per_x = j->p->ci / step, per_y = j->col_b * LSI_B16_BLOCKS;

    (void)thread;
    (void)n_threads;
    for (int64_t i; (i = ls_parallel_take(&j->to_pack)) < j->n * (per_x + per_y);) {
        const int64_t image = i / (per_x + per_y), k = i % (per_x + per_y);
        if (k < per_x)
            pack_x(j, image, k * step);
        else
            pack_y(j, image, k - per_x);
    }
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
    return ((fy * j->x.in_phases + fx) * j->channels + c) * j->row_pitch + dy * j->plane_x + dx;
}

/* A tile's sums over terms [lo, hi) of the group, whose places stand in `off`. */
static void add_terms(const job *j, const int64_t *off, uint16_t *rows, int64_t rb, int64_t cb, int64_t lo,
                      int64_t hi, float *sums, bool add)
{
    lsi_b16_product q = {.a_off = off + lo,
                         .a_row = j->row_pitch,
                         .b = j->py + cb * LSI_B16_BLOCKS * j->group * j->terms * LSI_B16_BLOCK +
                              lo * LSI_B16_BLOCK,
                         .b_block = j->group * j->terms * LSI_B16_BLOCK,
                         .n_terms = hi - lo,
                         .c_row = LSI_B16_WIDE,
                         .add = add};
    const int64_t left = j->rows - rb * LSI_B16_ROWS;
    const int n_rows = left < LSI_B16_ROWS ? (int)left : LSI_B16_ROWS;
    const int blocks = j->p->co - cb * LSI_B16_WIDE > LSI_B16_COLS ? 2 : 1;

    if (!j->few) {
        for (int64_t tap = 0; tap < j->taps; tap++) {
            q.a = j->px + place_of(j, rb * LSI_B16_ROWS, tap);
            q.c = sums + (tap * j->row_b * j->col_b) * TILE;
            j->kernels->multiply(n_rows, blocks, &q);
        }
        return;
    }
    for (int r = 0; r < n_rows; r++) {
        const int64_t at = rb * LSI_B16_ROWS + r;
        const uint16_t *from = j->px + place_of(j, at / j->taps, at % j->taps);
        for (int64_t t = lo; t < hi; t++)
            memcpy(rows + (r * FEW_TERMS + t - lo) * LSI_B16_DEEP, from + off[t], LSI_B16_DEEP * 2);
    }
    q.a = rows;
    q.a_row = FEW_TERMS * LSI_B16_DEEP;
    q.c = sums;
    {
        int64_t along[FEW_TERMS];
        for (int64_t t = 0; t < hi - lo; t++) along[t] = t * LSI_B16_DEEP;
        q.a_off = along;
        j->kernels->multiply(n_rows, blocks, &q);
    }
}

static void sum_task(const job *j, int64_t part, int64_t rb, int64_t cb, int64_t *off, uint16_t *rows)
{
    float *sums = j->sums + (part * tiles(j) + rb * j->col_b + cb) * TILE;
    const int64_t step = j->few ? FEW_TERMS : TERMS_AT_ONCE;
    int64_t lo, hi;
    bool add = j->first > 0;

    ls_parallel_range(j->n, (int)part, j->parts, &lo, &hi);
    for (int64_t i = lo; i < hi; i++)
        for (int64_t t = 0; t < j->terms; t++) off[i * j->terms + t] = i * j->image_pitch + t * LSI_B16_DEEP;
    if (lo == hi && !add) /* nothing of this group, but sums there must be */
        add_terms(j, off, rows, rb, cb, 0, 0, sums, false);
    for (int64_t t = lo * j->terms; t < hi * j->terms; t += step, add = true)
        add_terms(j, off, rows, rb, cb, t, t + step < hi * j->terms ? t + step : hi * j->terms, sums, add);
}

static void sum_thread(int thread, int n_threads, void *arg)
{
    job *j = arg;
    const int64_t per_part = j->row_b * j->col_b;
    char *at = j->own + (size_t)thread * j->own_bytes;
    int64_t *off = (int64_t *)(void *)at;
    uint16_t *rows = (uint16_t *)(void *)(at + lsi_align64((size_t)(j->group * j->terms) * sizeof(int64_t)));

    (void)n_threads;
    j->kernels->begin();
    for (int64_t i; (i = ls_parallel_take(&j->to_sum)) < j->parts * per_part;)
        sum_task(j, i / per_part, i % per_part / j->col_b, i % j->col_b, off, rows);
    j->kernels->end();
}

/* dw[o][c][tap] from the parts' sums: 16 of o from `o` on by n of the rest, at most 16, from r on. */
static void give(const job *j, int64_t o, int64_t r, int64_t n)
{
    const int64_t per_out = j->p->ci * j->taps, size = (int64_t)ls_dtype_size(j->p->w_type);
    const float *from[16];

    for (int64_t i = 0; i < n; i++) {
        const int64_t row = j->few ? r + i : (r + i) / j->taps, tap = j->few ? 0 : (r + i) % j->taps;
        const int64_t tile = (tap * j->row_b + row / LSI_B16_ROWS) * j->col_b + o / LSI_B16_WIDE;
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
    return p->y_layout == &lsi_layout_c16 && (p->x_layout == &lsi_layout_c16 || p->ci <= FEW_CHANNELS);
}

static size_t scratch(const lsi_conv_problem *p)
{
    job j;

    job_init(&j, p);
    return lsi_align64((size_t)px_numbers(&j) * 2) + lsi_align64((size_t)py_numbers(&j) * 2) +
           (size_t)(j.parts * tiles(&j)) * TILE * sizeof(float) + (size_t)p->threads * j.own_bytes;
}

static void run(void *state, const lsi_conv_problem *p, const lsi_conv_args *a)
{
    char *at = a->scratch;
    job j;

    (void)state;
    job_init(&j, p);
    j.a = a;
    j.px = (uint16_t *)(void *)at;
    j.py = (uint16_t *)(void *)(at += lsi_align64((size_t)px_numbers(&j) * 2));
    j.sums = (float *)(void *)(at += lsi_align64((size_t)py_numbers(&j) * 2));
    j.own = at + (size_t)(j.parts * tiles(&j)) * TILE * sizeof(float);
    for (; j.first < p->n; j.first += j.group) {
        j.n = p->n - j.first < j.group ? p->n - j.first : j.group;
        j.to_pack = j.to_sum = (ls_parallel_pieces){0};
        ls_parallel_run(p->threads, pack_thread, &j);
        ls_parallel_run(p->threads, sum_thread, &j);
    }
    ls_parallel_run(p->threads, give_thread, &j);
}

const lsi_conv_impl lsi_conv_b16_dw = {
    .name = "b16_dw", .low = true, .applicable = applicable, .scratch = scratch, .run = run};
