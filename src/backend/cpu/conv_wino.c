/* conv_wino.c: geometry of the Winograd convolutions, and the two implementations made of them:
 * `wino` (3x3, 1x3 and 1x5 stride 1) and `s2d` (kernels up to 6x6 with stride 2, as space to depth). */
#include "backend/cpu/conv_wino.h"

#include "backend/cpu/conv_list.h"

/* Splits kernel index k - pad = stride * t + phase; position s of the filter is t - first forward, and the
 * other way round for the gradient of the input, which reads y at (position - t). */
static bool axis_init(lsi_wino_axis *x, bool reversed, int stride, int taps, int pad, int filter, int points)
{
    const int first = (int)lsi_div_floor(-pad, stride), last = (int)lsi_div_floor(taps - 1 - pad, stride);

    if (last - first >= filter) return false;
    x->phases = stride;
    x->before = reversed ? first + filter - 1 : -first;
    for (int q = 0; q < stride; q++) {
        for (int s = 0; s < filter; s++) {
            const int t = reversed ? first + filter - 1 - s : first + s;
            const int k = stride * t + q + pad;
            x->tap[q][s] = k >= 0 && k < taps ? k : -1;
        }
        x->dead[q] = (x->tap[q][0] < 0 ? 1 : 0) | (x->tap[q][filter - 1] < 0 ? 1 << (points - 1) : 0);
    }
    return true;
}

/* The transforms that fit a kernel, or NULL. */
static const lsi_wino_kernels *transforms_for(const lsi_conv_problem *p, int stride)
{
    const lsi_conv_kernels *k = lsi_conv_kernels_get();

    if (stride == 1 && p->kh == 1 && p->kw == 3) return k->wino[LSI_WINO_6_3];
    if (stride == 1 && p->kh == 1 && p->kw == 5) return k->wino[LSI_WINO_4_5];
    if (p->kh < 3 || p->kw < 3 || p->kh > 3 * stride || p->kw > 3 * stride) return NULL;
    return k->wino[LSI_WINO_4X4_3X3];
}

/* The gradient of the input is a convolution of dy, in tiles of dx; or each step of the forward pass turned
 * around, in tiles of y, whose 6x6 shares of dx are added up.  Without padding y has fewer tiles than dx.
 * Tiles of an image overlap, so every thread needs images of its own. */
static bool wants_adjoint(const lsi_conv_problem *p, const lsi_wino_kernels *t, int stride)
{
    if (p->pass != LSI_CONV_DX || stride != 1 || t->spread == NULL || p->n < p->threads) return false;
    if (p->has_bias || p->act != LSI_ACT_NONE || p->pt != 0 || p->pl != 0) return false;
    return lsi_div_ceil(p->ho, t->tile->h) * lsi_div_ceil(p->wo, t->tile->w) <
           lsi_div_ceil(p->hi, t->tile->h) * lsi_div_ceil(p->wi, t->tile->w);
}

static void add_kind(lsi_wino *w, const lsi_wino_tile *t, int64_t y0, int64_t x0, int64_t ty, int64_t tx)
{
    lsi_wino_kind *k = &w->kind[w->n_kinds];

    if (ty == 0 || tx == 0) return;
    *k = (lsi_wino_kind){t, y0, x0, ty, tx, w->tiles, w->p->n * ty * tx};
    w->tiles += k->tiles;
    w->n_kinds++;
}

/* Covers h x w results of every image with tiles: whole ones, and smaller ones where the last would hang over
 * the edge, if there are any. */
static void choose_kinds(lsi_wino *w, int64_t h, int64_t wd)
{
    const lsi_wino_tile *t = w->t->tile;
    const int64_t ty = h / t->h, tx = wd / t->w, rows = h % t->h, cols = wd % t->w;

    if (w->t->cut[0][0] == NULL || w->adjoint) {
        add_kind(w, t, 0, 0, lsi_div_ceil(h, t->h), lsi_div_ceil(wd, t->w));
        return;
    }
    add_kind(w, t, 0, 0, ty, tx);
    if (cols > 0) add_kind(w, w->t->cut[3][cols - 1], 0, tx * t->w, ty, 1);
    if (rows > 0) add_kind(w, w->t->cut[rows - 1][3], ty * t->h, 0, 1, tx);
    if (rows > 0 && cols > 0) add_kind(w, w->t->cut[rows - 1][cols - 1], ty * t->h, tx * t->w, 1, 1);
}

bool lsi_wino_init(lsi_wino *w, const lsi_conv_problem *p, int stride)
{
    const bool dx = p->pass == LSI_CONV_DX;

    memset(w, 0, sizeof *w);
    if (!lsi_conv_blocked_ok(p) || p->sh != stride || p->sw != stride || p->dh != 1 || p->dw != 1)
        return false;
    const lsi_wino_kernels *t = transforms_for(p, stride);
    if (!t) return false;
    w->adjoint = wants_adjoint(p, t, stride);
    const bool reversed = dx && !w->adjoint;
    if (!axis_init(&w->ay, reversed, stride, p->kh, p->pt, t->taps_h, t->read_h)) return false;
    if (!axis_init(&w->ax, reversed, stride, p->kw, p->pl, t->taps_w, t->read_w)) return false;
    w->p = p;
    w->k = lsi_conv_kernels_get();
    w->t = t;
    w->points = t->read_h * t->read_w;
    w->taps = t->taps_h * t->taps_w;
    const lsi_wino_map x = {NULL, p->ci / LSI_LINE, p->hi, p->wi, stride, dx};
    const lsi_wino_map y = {NULL, p->co / LSI_LINE, p->ho, p->wo, 1, false};
    const lsi_wino_map *tiled = reversed ? &x : &y;
    w->from = dx ? y : x;
    w->to = dx ? x : y;
    w->rb = w->from.blocks * w->from.phases * w->from.phases;
    w->pb = w->to.blocks * w->to.phases * w->to.phases;
    choose_kinds(w, lsi_div_ceil(tiled->h, tiled->phases), lsi_div_ceil(tiled->w, tiled->phases));
    return true;
}

/* The part of [start, start + size) that lies in [0, n), relative to start. */
static void clip(int64_t start, int size, int64_t n, int *lo, int *hi)
{
    *lo = (int)lsi_min64(size, lsi_max64(0, -start));
    *hi = (int)lsi_max64(*lo, lsi_min64(size, n - start));
}

lsi_wino_walk lsi_wino_walk_from(const lsi_wino_kind *kind, const lsi_wino_map *m, int64_t v, int64_t t0,
                                 int64_t before_y, int64_t before_x, int part_h, int part_w)
{
    const int64_t per_image = kind->ty * kind->tx;
    int64_t block;
    int qy, qx;

    lsi_wino_locate(m, v, &block, &qy, &qx);
    lsi_wino_walk k = {
        .image_step = m->blocks * m->h * m->w * LSI_LINE,
        .row = m->w * m->phases * LSI_LINE,
        .col = m->phases * LSI_LINE,
        .h = lsi_div_ceil(m->h - qy, m->phases),
        .w = lsi_div_ceil(m->w - qx, m->phases),
        .y_first = kind->y0 - before_y,
        .x_first = kind->x0 - before_x,
        .part_h = part_h,
        .part_w = part_w,
        .step_h = kind->t->h,
        .step_w = kind->t->w,
    };
    k.y_end = k.y_first + kind->ty * k.step_h;
    k.x_end = k.x_first + kind->tx * k.step_w;
    k.y = k.y_first + t0 % per_image / kind->tx * k.step_h;
    k.x = k.x_first + t0 % kind->tx * k.step_w;
    k.image = m->base + ((t0 / per_image * m->blocks + block) * m->h * m->w + qy * m->w + qx) * LSI_LINE;
    return k;
}

lsi_wino_part lsi_wino_walk_next(lsi_wino_walk *k)
{
    lsi_wino_part part = {.at = k->image + k->y * k->row + k->x * k->col,
                          .row = k->row,
                          .col = k->col,
                          .h = k->part_h,
                          .w = k->part_w};

    clip(k->y, k->part_h, k->h, &part.y_lo, &part.y_hi);
    clip(k->x, k->part_w, k->w, &part.x_lo, &part.x_hi);
    k->x += k->step_w;
    if (k->x == k->x_end) {
        k->x = k->x_first;
        k->y += k->step_h;
        if (k->y == k->y_end) {
            k->y = k->y_first;
            k->image += k->image_step;
        }
    }
    return part;
}

typedef void to_points(const float *from, int64_t row, int64_t col, float *to, int64_t plane);

/* Points of n parts, one line per part and point, by a transform that reads whole parts. */
static void points(const lsi_wino *w, lsi_wino_walk k, int64_t n, to_points *transform, float *to,
                   int64_t plane)
{
    float buffer[LSI_WINO_MAX_POINTS * LSI_LINE];

    for (int64_t t = 0; t < n; t++, to += LSI_LINE) {
        const lsi_wino_part part = lsi_wino_walk_next(&k);
        if (part.y_hi - part.y_lo == part.h && part.x_hi - part.x_lo == part.w) {
            transform(part.at, part.row, part.col, to, plane);
        } else {
            w->k->wino_fill(&part, buffer);
            transform(buffer, part.w * LSI_LINE, LSI_LINE, to, plane);
        }
    }
}

void lsi_wino_grad_tiles(const lsi_wino *w, const lsi_wino_kind *kind, const lsi_wino_map *m, int64_t lo,
                         int64_t hi, int64_t block, float *to, int64_t plane)
{
    points(w, lsi_wino_walk_from(kind, m, block, lo, 0, 0, kind->t->h, kind->t->w), hi - lo, kind->t->grad,
           to, plane);
}

void lsi_wino_read_tiles(const lsi_wino *w, const lsi_wino_kind *kind, int64_t lo, int64_t hi, int64_t block,
                         float *to, int64_t plane)
{
    if (w->adjoint) {
        lsi_wino_grad_tiles(w, kind, &w->from, lo, hi, block, to, plane);
        return;
    }
    points(w,
           lsi_wino_walk_from(kind, &w->from, block, lo, w->ay.before, w->ax.before,
                              kind->t->h + w->t->taps_h - 1, kind->t->w + w->t->taps_w - 1),
           hi - lo, kind->t->read, to, plane);
}

static size_t scratch(const lsi_conv_problem *p, int stride)
{
    lsi_wino w;

    if (!lsi_wino_init(&w, p, stride)) return 0;
    return p->pass == LSI_CONV_DW ? lsi_wino_dw_scratch(&w) : lsi_wino_gather_scratch(&w);
}

static void run(const lsi_conv_problem *p, const lsi_conv_args *a, int stride)
{
    lsi_wino w;

    LS_BUG_IF(!lsi_wino_init(&w, p, stride));
    if (p->pass == LSI_CONV_DW)
        lsi_wino_dw_run(&w, a);
    else
        lsi_wino_gather_run(&w, a);
}

static bool wino_applicable(const lsi_conv_problem *p)
{
    lsi_wino w;

    return lsi_wino_init(&w, p, 1);
}

static size_t wino_scratch(const lsi_conv_problem *p)
{
    return scratch(p, 1);
}

static void wino_run(void *state, const lsi_conv_problem *p, const lsi_conv_args *a)
{
    (void)state;
    run(p, a, 1);
}

static bool s2d_applicable(const lsi_conv_problem *p)
{
    lsi_wino w;

    return lsi_wino_init(&w, p, 2);
}

static size_t s2d_scratch(const lsi_conv_problem *p)
{
    return scratch(p, 2);
}

static void s2d_run(void *state, const lsi_conv_problem *p, const lsi_conv_args *a)
{
    (void)state;
    run(p, a, 2);
}

/* Of small maps most of a tile is padding, and weights are transformed for few pixels. */
const lsi_conv_impl lsi_conv_wino = {
    .name = "wino", .good_from = 5, .applicable = wino_applicable, .scratch = wino_scratch, .run = wino_run};
const lsi_conv_impl lsi_conv_s2d = {
    .name = "s2d", .good_from = 64, .applicable = s2d_applicable, .scratch = s2d_scratch, .run = s2d_run};
