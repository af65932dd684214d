/* conv_wino.c: geometry of the Winograd convolutions, and the two implementations made of them:
 * `wino` (3x3 stride 1) and `s2d` (kernels up to 6x6 with stride 2, as space to depth). */
#include "backend/cpu/conv_wino.h"

#include "backend/cpu/conv_list.h"

/* Splits kernel index k - pad = stride * t + phase; position s of the 3-tap filter is t - first forward, and
 * the other way round for the gradient of the input, which reads y at (position - t). */
static bool axis_init(lsi_wino_axis *x, bool reversed, int stride, int taps, int pad)
{
    const int first = (int)lsi_div_floor(-pad, stride), last = (int)lsi_div_floor(taps - 1 - pad, stride);

    if (last - first > 2) return false;
    x->phases = stride;
    x->before = reversed ? first + 2 : -first;
    for (int q = 0; q < stride; q++) {
        for (int s = 0; s < 3; s++) {
            const int t = reversed ? first + 2 - s : first + s;
            const int k = stride * t + q + pad;
            x->tap[q][s] = k >= 0 && k < taps ? k : -1;
        }
        x->dead[q] = (x->tap[q][0] < 0 ? 1 : 0) | (x->tap[q][2] < 0 ? 1 << (LSI_WINO_READ - 1) : 0);
    }
    return true;
}

bool lsi_wino_init(lsi_wino *w, const lsi_conv_problem *p, int stride)
{
    const bool reversed = p->pass == LSI_CONV_DX;

    memset(w, 0, sizeof *w);
    if (!lsi_conv_blocked_ok(p) || p->sh != stride || p->sw != stride || p->dh != 1 || p->dw != 1)
        return false;
    if (p->kh < 3 || p->kw < 3 || p->kh > 3 * stride || p->kw > 3 * stride) return false;
    if (!axis_init(&w->ay, reversed, stride, p->kh, p->pt)) return false;
    if (!axis_init(&w->ax, reversed, stride, p->kw, p->pl)) return false;
    w->p = p;
    w->k = lsi_conv_kernels_get();
    const lsi_wino_map x = {NULL, p->ci / LSI_LINE, p->hi, p->wi, stride, reversed};
    const lsi_wino_map y = {NULL, p->co / LSI_LINE, p->ho, p->wo, 1, false};
    w->from = reversed ? y : x;
    w->to = reversed ? x : y;
    w->rb = w->from.blocks * w->from.phases * w->from.phases;
    w->pb = w->to.blocks * w->to.phases * w->to.phases;
    w->ty = lsi_div_ceil(w->to.h, (int64_t)w->to.phases * LSI_WINO_TILE);
    w->tx = lsi_div_ceil(w->to.w, (int64_t)w->to.phases * LSI_WINO_TILE);
    w->tiles = p->n * w->ty * w->tx;
    return true;
}

/* The part of [start, start + size) that lies in [0, n), relative to start. */
static void clip(int64_t start, int size, int64_t n, int *lo, int *hi)
{
    *lo = (int)lsi_min64(size, lsi_max64(0, -start));
    *hi = (int)lsi_max64(*lo, lsi_min64(size, n - start));
}

lsi_wino_tile lsi_wino_tile_at(const lsi_wino_map *m, int64_t image, int64_t v, int64_t y0, int64_t x0,
                               int size)
{
    lsi_wino_tile t;
    int64_t block;
    int qy, qx;

    lsi_wino_locate(m, v, &block, &qy, &qx);
    const int64_t y = y0 * m->phases + qy, x = x0 * m->phases + qx;
    t.at = m->base + (((image * m->blocks + block) * m->h + y) * m->w + x) * LSI_LINE;
    t.row = m->w * m->phases * LSI_LINE;
    t.col = m->phases * LSI_LINE;
    clip(y0, size, lsi_div_ceil(m->h - qy, m->phases), &t.y_lo, &t.y_hi);
    clip(x0, size, lsi_div_ceil(m->w - qx, m->phases), &t.x_lo, &t.x_hi);
    return t;
}

lsi_wino_tile lsi_wino_tile_whole(const lsi_wino_tile *t, int size, float *buffer)
{
    if (t->y_hi - t->y_lo == size && t->x_hi - t->x_lo == size) return *t;
    memset(buffer, 0, sizeof(float) * LSI_LINE * (size_t)(size * size));
    for (int y = t->y_lo; y < t->y_hi; y++)
        for (int x = t->x_lo; x < t->x_hi; x++)
            memcpy(buffer + (y * size + x) * LSI_LINE, t->at + y * t->row + x * t->col,
                   sizeof(float) * LSI_LINE);
    return (lsi_wino_tile){.at = buffer, .row = size * LSI_LINE, .col = LSI_LINE};
}

void lsi_wino_read_tiles(const lsi_wino *w, int64_t t0, int64_t t1, int64_t block, float *v, int64_t tile_n,
                         int64_t plane)
{
    float buffer[LSI_WINO_POINTS * LSI_LINE];

    for (int64_t t = t0; t < t1; t++) {
        int64_t image, ty, tx;
        lsi_wino_tile_place(w, t, &image, &ty, &tx);
        const lsi_wino_tile part = lsi_wino_tile_at(&w->from, image, block, ty * LSI_WINO_TILE - w->ay.before,
                                                    tx * LSI_WINO_TILE - w->ax.before, LSI_WINO_READ);
        const lsi_wino_tile tile = lsi_wino_tile_whole(&part, LSI_WINO_READ, buffer);
        w->k->wino_read(tile.at, tile.row, tile.col, v + (block * tile_n + t - t0) * LSI_LINE, plane);
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
