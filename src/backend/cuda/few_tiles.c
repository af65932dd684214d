/* few_tiles.c: see few_tiles.h.  Sizes here are those of the kernels, which check them when they compile. */
#include "backend/cuda/few_tiles.h"

/* Bytes of shared memory for a block that has a processor to itself, and for each of two.  A processor has
 * 1024 more than a block can have, and each block takes 1024 of them. */
static size_t one(const lsi_few_machine *m)
{
    return m->shared - 1024;
}
static size_t two(const lsi_few_machine *m)
{
    return (m->shared + 1024) / 2 - 2048;
}

static int min(int a, int b)
{
    return a < b ? a : b;
}
static int max(int a, int b)
{
    return a > b ? a : b;
}
static int parts(int64_t a, int64_t b) /* of size b that hold a */
{
    return (int)((a + b - 1) / b);
}

static int size_of(const lsi_few_problem *f)
{
    return (int)ls_dtype_size(f->dtype);
}

/* Elements from row to row of the map with few channels: all of it, or all that is seen of it. */
static int pitch(const lsi_few_problem *f, int seen)
{
    const int per16 = 16 / size_of(f), lead = (per16 - f->p.left * f->p.f % per16) % per16;

    return (max(lead + (f->p.left + f->p.w) * f->p.f, lead + seen) + per16) / per16 * per16;
}

/* -- to many ----------------------------------------------------------------------------------------------
 */

static size_t shared_to_many(const lsi_few_problem *f, int rows)
{
    const int run = f->p.kw * f->p.f, unit = 4 / size_of(f);
    const int sets = unit == 2 && f->p.stride * f->p.f % 2 != 0 ? 2 : 1;
    const int units = unit == 2 ? (run + 2) / 2 : run, dense = parts(f->p.kh * units, 4);
    const int slots = dense <= 8 ? dense : f->p.kh * parts(units, 4), steps = parts(slots, 2);
    const int all = parts(f->p.mw, 16 * sets), across = sets == 1 ? all : parts(all, 2) * 2;
    const int seen = (across * 16 * sets - 1) * f->p.stride * f->p.f + parts(units, 4) * 4 * unit;
    const int slab = (rows - 1) * f->p.stride + f->p.kh;

    return (size_t)(sets * steps * 8 * 32 * 8) +
           2 * (size_t)((slab + 1) * pitch(f, seen)) * (size_t)size_of(f);
}

static int tiles_to_many(const lsi_few_problem *f, const lsi_few_machine *m, lsi_few_tile *out)
{
    const int share = max((int)((int64_t)f->p.n * f->p.mh / (2 * m->processors)), 1);
    int rows = min(8, share); /* so that every processor has two blocks */

    while (rows > 1 && shared_to_many(f, rows) > two(m)) rows--;
    if (shared_to_many(f, rows) > two(m)) return 0;
    out[0] = (lsi_few_tile){.warps = 8, .blocks = 2, .rows = rows};
    return 1;
}

/* -- from many --------------------------------------------------------------------------------------------
 */

/* Pixels of the map with many channels that a strip of so many columns needs. */
static int needed(const lsi_cuda_few *p, int strip)
{
    return min((strip + p->kw - 2) / p->stride + 2, p->mw);
}

static size_t shared_from_many(const lsi_few_problem *f, const lsi_few_tile *t)
{
    const int columns = parts(f->p.kw * f->p.f, 8), pixels = t->warps * t->tiles * 16;
    const size_t weights = (size_t)(f->p.kh * (f->p.m * size_of(f) / 32) * columns) * 256;

    return (size_t)t->stages * (size_t)pixels * 128 + weights +
           (size_t)(2 * f->p.stride * pixels * (columns * 8 + 1)) * 4;
}

/* Rows of the result of a block: as many as make the rows that the last block to finish reads the fewest. */
static int best_band(const lsi_few_problem *f, const lsi_few_tile *t, int processors)
{
    const int64_t across = (int64_t)f->p.n * parts(f->p.w, t->strip), slots = (int64_t)processors * t->blocks;
    int64_t least = INT64_MAX;
    int best = f->p.h;

    for (int band = f->p.stride; band <= f->p.h + f->p.stride; band += f->p.stride) {
        const int64_t waves = (across * parts(f->p.h, band) + slots - 1) / slots;
        const int64_t cost =
            waves * (parts(band + f->p.kh - 1, f->p.stride) + 4); /* 4: weights, first rows */
        if (cost >= least) continue;
        least = cost;
        best = band;
    }
    return best;
}

/* A row in so many strips, warps with so many tiles; false: no block is large enough. */
static bool divide_row(const lsi_few_problem *f, int strips, int tiles, const lsi_few_machine *m,
                       lsi_few_tile *t)
{
    const int sums = f->p.kh * parts(f->p.kw * f->p.f, 8) * 4 * tiles;

    *t = (lsi_few_tile){.tiles = tiles, .strip = parts(f->p.w, strips)};
    t->warps = parts(needed(&f->p, t->strip), 16 * tiles);
    if (t->warps > (sums > 90 ? 9 : 16) || sums > 170) return false;
    /* Two blocks, one of which multiplies while the other folds, are worth more than many stages. */
    t->blocks = t->warps * 32 * 2 * (sums + 44) <= 65536 ? 2 : 1;
    for (; t->blocks > 0; t->blocks--)
        for (t->stages = 4; t->stages > 1; t->stages--)
            if (shared_from_many(f, t) <= (t->blocks == 2 ? two(m) : one(m))) {
                t->band = best_band(f, t, m->processors);
                return true;
            }
    return false;
}

static int tiles_from_many(const lsi_few_problem *f, const lsi_few_machine *m, lsi_few_tile *out)
{
    int n = 0;

    if (f->p.stride > 2 || f->p.kh < f->p.stride) return 0;
    for (int tiles = 1; tiles <= 2; tiles++) {
        int found = 0;
        for (int strips = 1; strips <= 8 && found < 2 && n < LSI_FEW_TILES; strips++) {
            if (!divide_row(f, strips, tiles, m, &out[n])) continue;
            n++;
            found++;
        }
    }
    return n;
}

/* -- weights ----------------------------------------------------------------------------------------------
 */

static int teams_of(const lsi_few_problem *f, const lsi_few_tile *t)
{
    return parts(f->p.kh * f->p.kw * f->p.f, t->columns * 8);
}

static size_t shared_weights(const lsi_few_problem *f, const lsi_few_tile *t)
{
    const int segments = parts(f->p.mw, t->segment), ahead = parts(t->stages - 1, segments);
    const int seen = (segments * t->segment - 1) * f->p.stride * f->p.f + f->p.kw * f->p.f;
    const int ring = f->p.kh + ahead * f->p.stride, gap = size_of(f) == 2 ? 144 : 288;
    const size_t rows =
        (size_t)(t->stages * t->segment * gap) + (size_t)((ring + 1) * pitch(f, seen)) * (size_t)size_of(f);
    const size_t sums = (size_t)(teams_of(f, t) * t->columns * 8 * 64) * 4;

    return rows > sums ? rows : sums;
}

/* A row in so many segments, `most` blocks on a processor; false: that does not fit. */
static bool divide_pixels(const lsi_few_problem *f, int segments, int warps, int most,
                          const lsi_few_machine *m, lsi_few_tile *t)
{
    const int taps = f->p.kh * f->p.kw * f->p.f, deep = size_of(f) == 2 ? 16 : 8;
    int64_t rows = (int64_t)f->p.n * f->p.mh;
    int teams = 1;

    while (parts(taps, teams * 8) > 10) teams *= 2;
    *t = (lsi_few_tile){.warps = max(warps, teams), .columns = parts(taps, teams * 8)};
    t->segment = parts(f->p.mw, (int64_t)segments * deep) * deep;
    if (t->warps > 16 || teams_of(f, t) != teams) return false;
    t->blocks = min(most, 65536 / (t->warps * 32 * min(t->columns * 16 + 60, 255)));
    for (; t->blocks > 0; t->blocks--)
        for (t->stages = 4; t->stages > 1; t->stages--)
            if (shared_weights(f, t) <= one(m) / (size_t)t->blocks - 1024) {
                const int64_t slots = (int64_t)t->blocks * m->processors / (f->p.m / 64);
                t->rows = max(parts(rows, slots > 0 ? slots : 1), 2);
                return true;
            }
    return false;
}

static int tiles_weights(const lsi_few_problem *f, const lsi_few_machine *m, lsi_few_tile *out)
{
    int n = 0;

    if (f->exact) return 0; /* sums over all pixels are too long for what the matrix units add up with */
    /* The longest segments that leave room for two more stages; small blocks make do with two, since others
     * are there while one waits. */
    for (int way = 0; way < 3; way++) {
        static const int warps[] = {4, 2, 8}, blocks[] = {2, 4, 2}, stages[] = {3, 2, 3};
        for (int segments = 1; segments <= 16; segments++) {
            const bool fits = divide_pixels(f, segments, warps[way], blocks[way], m, &out[n]);
            if (!fits || out[n].stages < stages[way] || (way == 1 && out[n].blocks < 3)) continue;
            n++;
            break;
        }
    }
    return n;
}

/* -- all of them ------------------------------------------------------------------------------------------
 */

int lsi_few_tiles(const lsi_few_problem *f, const lsi_few_machine *m, lsi_few_tile out[LSI_FEW_TILES])
{
    switch (f->pass) {
    case LSI_FEW_TO_MANY: return tiles_to_many(f, m, out);
    case LSI_FEW_FROM_MANY: return tiles_from_many(f, m, out);
    case LSI_FEW_WEIGHTS: break;
    }
    return tiles_weights(f, m, out);
}

size_t lsi_few_shared(const lsi_few_problem *f, const lsi_few_tile *t)
{
    switch (f->pass) {
    case LSI_FEW_TO_MANY: return shared_to_many(f, t->rows);
    case LSI_FEW_FROM_MANY: return shared_from_many(f, t);
    case LSI_FEW_WEIGHTS: break;
    }
    return shared_weights(f, t);
}

int lsi_few_sums(const lsi_few_problem *f, const lsi_few_tile *t)
{
    return f->pass == LSI_FEW_WEIGHTS ? parts((int64_t)f->p.n * f->p.mh, t->rows) : 0;
}

size_t lsi_few_scratch(const lsi_few_problem *f, const lsi_few_tile *t)
{
    if (f->pass != LSI_FEW_WEIGHTS) return 0;
    return (size_t)lsi_few_sums(f, t) * (size_t)(f->p.kh * f->p.kw * f->p.f) * (size_t)f->p.m * sizeof(float);
}

lsi_cuda_start lsi_few_start(const lsi_few_problem *f, const lsi_few_tile *t, int processors)
{
    const lsi_cuda_few *p = &f->p;
    lsi_cuda_start s = {.blocks = {1, 1}, .threads = (unsigned)t->warps * 32, .shared = lsi_few_shared(f, t)};

    if (f->pass == LSI_FEW_FROM_MANY) {
        s.blocks[0] = (unsigned)(p->n * parts(p->w, t->strip) * parts(p->h, t->band));
        return s;
    }
    s.blocks[1] = (unsigned)(p->m / 64);
    if (f->pass == LSI_FEW_TO_MANY) /* all that are resident go on with slab after slab */
        s.blocks[0] = (unsigned)min(p->n * parts(p->mh, t->rows), t->blocks * processors);
    else
        s.blocks[0] = (unsigned)lsi_few_sums(f, t);
    return s;
}

lsi_cuda_few lsi_few_square(int n, int h, int w, int f, int m, int k, int stride, int pad)
{
    return (lsi_cuda_few){.n = n,
                          .h = h,
                          .w = w,
                          .f = f,
                          .m = m,
                          .kh = k,
                          .kw = k,
                          .stride = stride,
                          .mh = (h + 2 * pad - k) / stride + 1,
                          .mw = (w + 2 * pad - k) / stride + 1,
                          .top = pad,
                          .left = pad,
                          .w_m = (int64_t)k * k * f,
                          .w_f = 1,
                          .w_ky = (int64_t)k * f,
                          .w_kx = f};
}
