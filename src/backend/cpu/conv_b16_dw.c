/* conv_b16_dw.c: the gradient of a convolution's weights from bf16 numbers: a product whose depth is pixels.
 *
 * The planes of all images (conv_b16.h) follow one another in one long line of pixels, and dy has zeros where
 * they have a margin.  Of dy, turned round, come the rows: a row is one channel, 32 pixels a term.  Of x come
 * the columns, in pairs of pixels; a tap is a distance along the line, and for odd distances there is a
 * second copy whose pairs begin one pixel later: so whatever tiles are loaded from begins with a line of the
 * cache, which halves their time.
 * The line is cut into `parts` whose number follows from the problem alone, each with sums of its own, and
 * the sums are added up in their order: threads do not show in the result.  A task is a part of the line and
 * some blocks of channels of both; who takes it packs what it needs for himself, a chunk at a time that stays
 * in his cache, although others pack the same for other blocks: what many cores have read is slow to write
 * again (gemm_b16.c).  conv_b16_dw_few.c is for few channels of x. */
#include <string.h>

#include "backend/cpu/conv_b16.h"
#include "backend/cpu/conv_list.h"
#include "base/parallel.h"

enum {
    SUMS_BYTES = 10 << 20,   /* of all parts, about */
    CHUNK_BYTES = 768 << 10, /* of what is packed at a time, about */
    TERMS_MAX = 128,         /* of it */
    TASKS_PER_THREAD = 2,
    PARTS_MAX = 48,
    PART_TERMS = 8,    /* at least, but for the only part */
    ROOM = 1024,       /* pixels that are turned or paired at a time */
    GIVEN_AT_ONCE = 4, /* of dy's channels, 32 of x */
    TAPS_MAX = 128,
    PHASES_MAX = 64,
    TILE = LSI_B16_ROWS * LSI_B16_WIDE,
    A_TERM = LSI_B16_ROWS * LSI_B16_DEEP
};

/* A map in blocks of 16 channels, as a line of planes: row r and column c of a plane show row r * mul_y +
 * base_y and column c * mul_x + base_x of the map, and zeros outside of it. */
typedef struct source {
    const void *map;
    ls_dtype type;
    int64_t blocks, h, w;
    int64_t mul_y, base_y, mul_x, base_x;
} source;

typedef struct job {
    const lsi_conv_problem *p;
    const lsi_conv_args *a;
    const lsi_b16_kernels *kernels;
    lsi_b16_axis y, x;
    int64_t taps, row_b, col_b; /* blocks of 32 rows, of 32 columns */
    int64_t plane_y, plane_x;   /* of an image; plane_x is even */
    int64_t terms;              /* of the line */
    int copies_x, copies;       /* of x: of all phases of columns, of all */
    int first_copy[PHASES_MAX]; /* of a phase of columns; that for odd distances follows, if there is one */
    bool odd[PHASES_MAX];
    int parts;                               /* of the line */
    int row_groups, col_groups;              /* of blocks */
    int64_t rows, cols;                      /* most blocks of a group */
    int64_t chunk, pixels;                   /* terms packed at a time, and pixels of x that they need */
    float *sums;                             /* [part][tap][row block][column block][32][32] */
    char *own;                               /* of each thread: py, px */
    int64_t off[TERMS_MAX];                  /* of terms of A */
    int32_t places[TAPS_MAX * LSI_B16_WIDE]; /* of the weights of one channel of dy and 32 of x, [c][tap], in
                                                [tap][GIVEN_AT_ONCE][c] */
    ls_parallel_pieces to_sum, to_give;
} job;

/* What a thread has packed of the chunk of now. */
typedef struct own {
    uint16_t *py;               /* [block of 32][term][row][pixel] */
    uint16_t *px;               /* [copy][block of 16][pair][16][2] */
    int64_t rb, rows, cb, cols; /* the blocks */
} own;

/* Which copies of x there are. */
static void count_copies(job *j)
{
    for (int kx = 0; kx < j->p->kw; kx++) {
        int phase, none;
        int64_t distance;
        lsi_b16_tap(&j->x, kx, &phase, &distance, &none);
        if (distance % 2) j->odd[phase] = true;
    }
    for (int f = 0; f < j->x.in_phases; f++) {
        j->first_copy[f] = j->copies_x;
        j->copies_x += j->odd[f] ? 2 : 1;
    }
    j->copies = j->copies_x * j->y.in_phases;
}

static int64_t tiles(const job *j)
{
    return j->taps * j->row_b * j->col_b;
}

static void choose_parts(job *j)
{
    int64_t parts = SUMS_BYTES / (tiles(j) * TILE * (int64_t)sizeof(float));

    if (parts > PARTS_MAX) parts = PARTS_MAX;
    if (parts > j->terms / PART_TERMS) parts = j->terms / PART_TERMS;
    j->parts = parts < 1 ? 1 : (int)parts;
}

/* Groups of blocks, until there are tasks enough: the more of one kind, the more often the other is packed.
 */
static void choose_groups(job *j)
{
    int64_t numbers; /* of a term of a task */

    j->row_groups = j->col_groups = 1;
    while (j->parts * j->row_groups * j->col_groups < TASKS_PER_THREAD * j->p->threads) {
        const bool more_rows = j->row_groups < j->row_b, more_cols = j->col_groups < j->col_b;
        if (!more_rows && !more_cols) break;
        if (more_cols && (!more_rows || j->col_groups * j->row_b <= j->row_groups * j->copies * j->col_b))
            j->col_groups = j->col_groups * 2 < j->col_b ? j->col_groups * 2 : (int)j->col_b;
        else
            j->row_groups = j->row_groups * 2 < j->row_b ? j->row_groups * 2 : (int)j->row_b;
    }
    j->rows = (j->row_b + j->row_groups - 1) / j->row_groups;
    j->cols = (j->col_b + j->col_groups - 1) / j->col_groups;
    numbers = (j->rows + j->copies * j->cols) * A_TERM;
    j->chunk = CHUNK_BYTES / 2 / numbers;
    if (j->chunk < PART_TERMS) j->chunk = PART_TERMS;
    if (j->chunk > TERMS_MAX) j->chunk = TERMS_MAX;
    if (j->chunk > j->terms) j->chunk = j->terms;
    j->pixels = lsi_round_up(j->chunk * LSI_B16_DEEP + j->y.halo * j->plane_x + j->x.halo + 1, 2);
}

static void job_init(job *j, const lsi_conv_problem *p)
{
    *j = (job){.p = p, .kernels = lsi_b16_kernels_here(), .taps = p->kh * p->kw};
    j->y = lsi_b16_share(lsi_b16_axis_forward(p->hi, p->ho, p->kh, p->sh, p->dh, p->pt));
    j->x = lsi_b16_share(lsi_b16_axis_forward(p->wi, p->wo, p->kw, p->sw, p->dw, p->pl));
    j->row_b = (p->co + LSI_B16_ROWS - 1) / LSI_B16_ROWS;
    j->col_b = (p->ci + LSI_B16_WIDE - 1) / LSI_B16_WIDE;
    j->plane_y = lsi_b16_plane(&j->y);
    j->plane_x = lsi_round_up(lsi_b16_plane(&j->x), 2);
    j->terms = (p->n * j->plane_y * j->plane_x + LSI_B16_DEEP - 1) / LSI_B16_DEEP;
    count_copies(j);
    choose_parts(j);
    choose_groups(j);
}

static size_t py_bytes(const job *j)
{
    return (size_t)(j->rows * j->chunk * A_TERM) * 2;
}
static size_t own_bytes(const job *j)
{
    return py_bytes(j) + lsi_align64((size_t)(j->copies * j->cols * LSI_B16_WIDE * j->pixels) * 2);
}
static size_t sums_bytes(const job *j)
{
    return (size_t)(j->parts * tiles(j)) * TILE * sizeof(float);
}

/* -- packing ----------------------------------------------------------------------------------------------
 */

/* Pixels c, c + 1, ... of one row of a plane, of a block of channels, as lines of 16. */
static void copy_row(const source *s, int64_t image, int64_t block, int64_t row, int64_t c, int64_t n,
                     uint16_t *to)
{
    const int64_t y = row * s->mul_y + s->base_y, x = c * s->mul_x + s->base_x;
    int64_t lo = 0, hi = 0;

    if (y >= 0 && y < s->h) lsi_b16_inside(s->mul_x, x, s->w, n, &lo, &hi);
    if (lo >= hi) lo = hi = n;
    memset(to, 0, (size_t)lo * 32);
    if (lo < hi)
        lsi_b16_copy_lines(
            lsi_b16_at(s->map, s->type,
                       (((image * s->blocks + block) * s->h + y) * s->w + x + lo * s->mul_x) * 16),
            s->type, s->mul_x * 16, hi - lo, to + lo * 16, 16);
    memset(to + hi * 16, 0, (size_t)(n - hi) * 32);
}

/* Pixels [lo, hi) of the line; zeros behind the last image. */
static void copy_line(const job *j, const source *s, int64_t block, int64_t lo, int64_t hi, uint16_t *to)
{
    const int64_t size = j->plane_y * j->plane_x;

    while (lo < hi) {
        const int64_t image = lo / size, row = lo % size / j->plane_x, c = lo % j->plane_x;
        const int64_t n = j->plane_x - c < hi - lo ? j->plane_x - c : hi - lo;
        if (image < j->p->n && block < s->blocks)
            copy_row(s, image, block, row, c, n, to);
        else
            memset(to, 0, (size_t)n * 32);
        lo += n;
        to += n * 16;
    }
}

/* Pixels [lo, hi) of a block of 16 channels of x, of phases fy and fx, in pairs. */
static void pack_x(const job *j, int fy, int fx, int64_t block, int64_t lo, int64_t hi, uint16_t *room,
                   uint16_t *to, uint16_t *to_odd)
{
    const lsi_conv_problem *p = j->p;
    const source s = {.map = j->a->x,
                      .type = p->x_type,
                      .blocks = p->ci / 16,
                      .h = p->hi,
                      .w = p->wi,
                      .mul_y = j->y.mul,
                      .base_y = j->y.base + fy,
                      .mul_x = j->x.mul,
                      .base_x = j->x.base + fx};

    for (int64_t n; lo < hi; lo += n, to += n * 16, to_odd += n * 16) {
        n = hi - lo < ROOM ? hi - lo : ROOM;
        copy_line(j, &s, block, lo, lo + n + 1, room);
        lsi_b16_pair_lines(room, LS_BF16, 16, n, to);
        if (j->odd[fx]) lsi_b16_pair_lines(room + 16, LS_BF16, 16, n, to_odd);
    }
}

/* Terms of a block of 16 channels of dy, turned. */
static void pack_y(const job *j, int64_t block, int64_t lo, int64_t hi, uint16_t *room, uint16_t *to)
{
    const lsi_conv_problem *p = j->p;
    const source s = {.map = j->a->y,
                      .type = p->y_type,
                      .blocks = p->co / 16,
                      .h = p->ho,
                      .w = p->wo,
                      .mul_y = 1,
                      .mul_x = 1};

    for (int64_t n; lo < hi; lo += n) {
        n = hi - lo < ROOM ? hi - lo : ROOM;
        copy_line(j, &s, block, lo, lo + n, room);
        for (int64_t at = 0; at < n; at += LSI_B16_DEEP, to += A_TERM)
            lsi_b16_turn_lines(room + at * 16, LS_BF16, 16, LSI_B16_DEEP, to, LSI_B16_DEEP);
    }
}

/* Terms [lo, hi) of the line, of a task's blocks. */
static void pack_chunk(const job *j, const own *o, int64_t lo, int64_t hi)
{
    const int64_t copy = j->cols * LSI_B16_WIDE * j->pixels, from = lo * LSI_B16_DEEP;
    const int64_t end = from + j->pixels - (j->chunk - (hi - lo)) * LSI_B16_DEEP;
    uint16_t room[(ROOM + 2) * 16] __attribute__((aligned(64)));

    for (int64_t k = 0; k < o->rows * 2; k++)
        if (o->rb * 2 + k < j->p->co / 16)
            pack_y(j, o->rb * 2 + k, from, hi * LSI_B16_DEEP, room,
                   o->py + k / 2 * j->chunk * A_TERM + k % 2 * A_TERM / 2);
    for (int64_t k = 0; k < o->cols * 2; k++)
        for (int f = 0; f < j->y.in_phases * j->x.in_phases && o->cb * 2 + k < j->p->ci / 16; f++) {
            const int fy = f / j->x.in_phases, fx = f % j->x.in_phases;
            uint16_t *to = o->px + (fy * j->copies_x + j->first_copy[fx]) * copy + k * 16 * j->pixels;
            pack_x(j, fy, fx, o->cb * 2 + k, from, end, room, to, j->odd[fx] ? to + copy : to);
        }
}

/* -- sums -------------------------------------------------------------------------------------------------
 */

/* Where the columns of a tap begin in px, of the first block. */
static int64_t place_of(const job *j, int64_t tap)
{
    int fy, fx, none;
    int64_t dy, dx;

    lsi_b16_tap(&j->y, (int)(tap / j->p->kw), &fy, &dy, &none);
    lsi_b16_tap(&j->x, (int)(tap % j->p->kw), &fx, &dx, &none);
    return (fy * j->copies_x + j->first_copy[fx] + dx % 2) * j->cols * LSI_B16_WIDE * j->pixels +
           (dy * j->plane_x + dx - dx % 2) * 16;
}

/* All taps of one block of 32 x 32 weights: sums of `terms` terms of the chunk. */
static void sum_block(const job *j, const own *o, int64_t part, int64_t r, int64_t c, int64_t terms, bool add)
{
    const int64_t rb = o->rb + r, cb = o->cb + c, left = j->p->co - rb * LSI_B16_ROWS;
    const int n_rows = left < LSI_B16_ROWS ? (int)left : LSI_B16_ROWS;
    const int blocks = j->p->ci - cb * LSI_B16_WIDE > LSI_B16_COLS ? 2 : 1;
    lsi_b16_product q = {.a = o->py + r * j->chunk * A_TERM,
                         .a_off = j->off,
                         .a_row = LSI_B16_DEEP,
                         .b_block = LSI_B16_COLS * j->pixels,
                         .n_terms = terms,
                         .c_row = LSI_B16_WIDE,
                         .add = add};

    for (int64_t tap = 0; tap < j->taps; tap++) {
        q.b = o->px + place_of(j, tap) + c * LSI_B16_WIDE * j->pixels;
        q.c = j->sums + ((part * j->taps + tap) * j->row_b * j->col_b + rb * j->col_b + cb) * TILE;
        j->kernels->multiply(n_rows, blocks, &q);
    }
}

static void sum_task(const job *j, own *o, int part, int row_group, int col_group)
{
    int64_t lo, hi;
    bool add = false;

    ls_parallel_range(j->row_b, row_group, j->row_groups, &o->rb, &o->rows);
    ls_parallel_range(j->col_b, col_group, j->col_groups, &o->cb, &o->cols);
    o->rows -= o->rb;
    o->cols -= o->cb;
    ls_parallel_range(j->terms, part, j->parts, &lo, &hi);
    for (int64_t n; lo < hi; lo += n, add = true) {
        n = hi - lo < j->chunk ? hi - lo : j->chunk;
        pack_chunk(j, o, lo, lo + n);
        for (int64_t c = 0; c < o->cols; c++)
            for (int64_t r = 0; r < o->rows; r++) sum_block(j, o, part, r, c, n, add);
    }
}

static void sum_thread(int thread, int n_threads, void *arg)
{
    job *j = arg;
    char *at = j->own + (size_t)thread * own_bytes(j);
    const int groups = j->row_groups * j->col_groups;
    own o = {.py = (uint16_t *)(void *)at, .px = (uint16_t *)(void *)(at + py_bytes(j))};

    (void)n_threads;
    j->kernels->begin();
    for (int64_t i; (i = ls_parallel_take(&j->to_sum)) < (int64_t)j->parts * groups;)
        sum_task(j, &o, (int)(i / groups), (int)(i % groups) / j->col_groups, (int)(i % j->col_groups));
    j->kernels->end();
}

/* Sums of GIVEN_AT_ONCE channels of dy from o on, for a block of 32 of x: added up in the order of parts,
 * then turned so that taps are together. */
static void give(const job *j, int64_t o, int64_t cb)
{
    const lsi_conv_problem *p = j->p;
    const int64_t per_out = p->ci * j->taps, left = p->ci - cb * LSI_B16_WIDE;
    const int64_t n = (left < LSI_B16_WIDE ? left : LSI_B16_WIDE) * j->taps;
    float all[TAPS_MAX * GIVEN_AT_ONCE * LSI_B16_WIDE] __attribute__((aligned(64)));

    for (int64_t tap = 0; tap < j->taps; tap++) {
        const int64_t tile = (tap * j->row_b + o / LSI_B16_ROWS) * j->col_b + cb;
        lsi_b16_sum_parts(j->sums + tile * TILE + o % LSI_B16_ROWS * LSI_B16_WIDE,
                          GIVEN_AT_ONCE * LSI_B16_WIDE, j->parts, tiles(j) * TILE,
                          all + tap * GIVEN_AT_ONCE * LSI_B16_WIDE);
    }
    for (int64_t i = 0; i < GIVEN_AT_ONCE; i++) {
        const int64_t at = (o + i) * per_out + cb * LSI_B16_WIDE * j->taps;
        lsi_b16_pick(all + i * LSI_B16_WIDE, j->places, n, p->w_type,
                     (char *)j->a->w + at * (int64_t)ls_dtype_size(p->w_type));
    }
}

static void give_thread(int thread, int n_threads, void *arg)
{
    job *j = arg;

    (void)thread;
    (void)n_threads;
    for (int64_t i; (i = ls_parallel_take(&j->to_give)) < j->p->co / GIVEN_AT_ONCE * j->col_b;)
        give(j, i / j->col_b * GIVEN_AT_ONCE, i % j->col_b);
}

/* -- interface --------------------------------------------------------------------------------------------
 */

static bool applicable(const lsi_conv_problem *p)
{
    if (p->pass != LSI_CONV_DW || !lsi_b16_conv_fits(p) || p->sw > PHASES_MAX) return false;
    if (p->n < 1 || p->hi < 1 || p->wi < 1 || p->ho < 1 || p->wo < 1) return false;
    return p->kh * p->kw <= TAPS_MAX && p->y_layout == &lsi_layout_c16 && p->x_layout == &lsi_layout_c16;
}

static size_t scratch(const lsi_conv_problem *p)
{
    job j;

    job_init(&j, p);
    return sums_bytes(&j) + (size_t)p->threads * own_bytes(&j);
}

static void run(void *state, const lsi_conv_problem *p, const lsi_conv_args *a)
{
    job j;

    (void)state;
    job_init(&j, p);
    j.a = a;
    j.sums = a->scratch;
    j.own = (char *)a->scratch + sums_bytes(&j);
    for (int64_t t = 0; t < TERMS_MAX; t++) j.off[t] = t * A_TERM;
    for (int64_t c = 0; c < LSI_B16_WIDE; c++)
        for (int64_t tap = 0; tap < j.taps; tap++)
            j.places[c * j.taps + tap] = (int32_t)(tap * GIVEN_AT_ONCE * LSI_B16_WIDE + c);
    ls_parallel_run(p->threads, sum_thread, &j);
    ls_parallel_run(p->threads, give_thread, &j);
}

const lsi_conv_impl lsi_conv_b16_dw = {
    .name = "b16_dw", .low = true, .applicable = applicable, .scratch = scratch, .run = run};
