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

bool lsi_wino_init(lsi_wino *w, const lsi_conv_problem *p, int stride)
{
    const bool reversed = p->pass == LSI_CONV_DX;

    memset(w, 0, sizeof *w);
    if (!lsi_conv_blocked_ok(p) || p->sh != stride || p->sw != stride || p->dh != 1 || p->dw != 1)
        return false;
    const lsi_wino_kernels *t = transforms_for(p, stride);
    if (!t) return false;
    if (!axis_init(&w->ay, reversed, stride, p->kh, p->pt, t->taps_h, t->read_h)) return false;
    if (!axis_init(&w->ax, reversed, stride, p->kw, p->pl, t->taps_w, t->read_w)) return false;
    w->p = p;
    w->k = lsi_conv_kernels_get();
    w->t = t;
    w->points = t->read_h * t->read_w;
    w->taps = t->taps_h * t->taps_w;
    const lsi_wino_map x = {NULL, p->ci / LSI_LINE, p->hi, p->wi, stride, reversed};
    const lsi_wino_map y = {NULL, p->co / LSI_LINE, p->ho, p->wo, 1, false};
    w->from = reversed ? y : x;
    w->to = reversed ? x : y;
    w->rb = w->from.blocks * w->from.phases * w->from.phases;
    w->pb = w->to.blocks * w->to.phases * w->to.phases;
    w->ty = lsi_div_ceil(w->to.h, (int64_t)w->to.phases * t->tile_h);
    w->tx = lsi_div_ceil(w->to.w, (int64_t)w->to.phases * t->tile_w);
    w->tiles = p->n * w->ty * w->tx;
    return true;
}

/* The part of [start, start + size) that lies in [0, n), relative to start. */
static void clip(int64_t start, int size, int64_t n, int *lo, int *hi)
{
    *lo = (int)lsi_min64(size, lsi_max64(0, -start));
    *hi = (int)lsi_max64(*lo, lsi_min64(size, n - start));
}

lsi_wino_tile lsi_wino_tile_at(const lsi_wino_map *m, int64_t image, int64_t v, int64_t y0, int64_t x0, int h,
                               int w)
{
    lsi_wino_tile t = {.h = h, .w = w};
    int64_t block;
    int qy, qx;

    lsi_wino_locate(m, v, &block, &qy, &qx);
    const int64_t y = y0 * m->phases + qy, x = x0 * m->phases + qx;
    t.at = m->base + (((image * m->blocks + block) * m->h + y) * m->w + x) * LSI_LINE;
    t.row = m->w * m->phases * LSI_LINE;
    t.col = m->phases * LSI_LINE;
    clip(y0, h, lsi_div_ceil(m->h - qy, m->phases), &t.y_lo, &t.y_hi);
    clip(x0, w, lsi_div_ceil(m->w - qx, m->phases), &t.x_lo, &t.x_hi);
    return t;
}

lsi_wino_tile lsi_wino_tile_whole(const lsi_wino_tile *t, float *buffer)
{
    if (t->y_hi - t->y_lo == t->h && t->x_hi - t->x_lo == t->w) return *t;
    memset(buffer, 0, sizeof(float) * LSI_LINE * (size_t)(t->h * t->w));
    for (int y = t->y_lo; y < t->y_hi; y++)
        for (int x = t->x_lo; x < t->x_hi; x++)
            memcpy(buffer + (y * t->w + x) * LSI_LINE, t->at + y * t->row + x * t->col,
                   sizeof(float) * LSI_LINE);
    return (lsi_wino_tile){.at = buffer, .row = t->w * LSI_LINE, .col = LSI_LINE, .h = t->h, .w = t->w};
}

void lsi_wino_read_tiles(const lsi_wino *w, int64_t t0, int64_t t1, int64_t block, float *v, int64_t tile_n,
                         int64_t plane)
{
    const lsi_wino_kernels *f = w->t;
    float buffer[LSI_WINO_MAX_POINTS * LSI_LINE];

    for (int64_t t = t0; t < t1; t++) {
        int64_t image, ty, tx;
        lsi_wino_tile_place(w, t, &image, &ty, &tx);
        const lsi_wino_tile part = lsi_wino_tile_at(&w->from, image, block, ty * f->tile_h - w->ay.before,
                                                    tx * f->tile_w - w->ax.before, f->read_h, f->read_w);
        const lsi_wino_tile tile = lsi_wino_tile_whole(&part, buffer);
        f->read(tile.at, tile.row, tile.col, v + (block * tile_n + t - t0) * LSI_LINE, plane);
    }
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

const lsi_conv_impl lsi_conv_wino = {
    .name = "wino", .applicable = wino_applicable, .scratch = wino_scratch, .run = wino_run};
const lsi_conv_impl lsi_conv_s2d = {
    .name = "s2d", .applicable = s2d_applicable, .scratch = s2d_scratch, .run = s2d_run};
