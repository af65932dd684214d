/* b16_amx.c: products of tiles by TDPBF16PS: 2 x 2 tiles of 16 x 16 sums, each pair of loads serves two of
 * them.
 *
 * Tiles 0 to 3 are sums, 4 is of A, 6 and 7 of B.  One tile stays unused: where the other thread of a core is
 * at work, the core has few tiles beyond those in use to load the next operands into while products go on.
 * With two of A, and all eight in use, 16 threads reached 660 to 770 GFLOP/s each from the second-level
 * cache, with one 910 to 960; alone on a core both ways are equal.  All tiles are whole: rows that do not
 * exist are computed and not looked at. */
#include <immintrin.h>

#include "backend/cpu/b16.h"

typedef struct tile_config {
    uint8_t palette, start, reserved[14];
    uint16_t bytes[16]; /* of a row */
    uint8_t rows[16];
} tile_config;

/* Whole tiles.  Not built on the stack: gcc's intrinsic names only the first bytes of what it reads, and the
 * rest would be left out. */
static const tile_config whole __attribute__((aligned(64))) = {
    .palette = 1,
    .bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {16, 16, 16, 16, 16, 16, 16, 16},
};

static void begin(void)
{
    _tile_loadconfig(&whole);
}

static void end(void)
{
    _tile_release();
}

static void two_by_two(const lsi_b16_product *p)
{
    const size_t a_row = (size_t)p->a_row * 2, c_row = (size_t)p->c_row * 4;
    float *c = p->c, *lower = p->c + 16 * p->c_row;

    if (p->add) {
        _tile_loadd(0, c, c_row);
        _tile_loadd(1, c + 16, c_row);
        _tile_loadd(2, lower, c_row);
        _tile_loadd(3, lower + 16, c_row);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t t = 0; t < p->n_terms; t++) {
        const uint16_t *a = p->a + p->a_off[t], *b = p->b + t * LSI_B16_BLOCK;
        _tile_loadd(6, b, 64);
        _tile_loadd(7, b + p->b_block, 64);
        _tile_loadd(4, a, a_row);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(4, a + 16 * p->a_row, a_row);
        _tile_dpbf16ps(2, 4, 6);
        _tile_dpbf16ps(3, 4, 7);
    }
    _tile_stored(0, c, c_row);
    _tile_stored(1, c + 16, c_row);
    _tile_stored(2, lower, c_row);
    _tile_stored(3, lower + 16, c_row);
}

static void one_by_two(const lsi_b16_product *p)
{
    const size_t a_row = (size_t)p->a_row * 2, c_row = (size_t)p->c_row * 4;

    if (p->add) {
        _tile_loadd(0, p->c, c_row);
        _tile_loadd(1, p->c + 16, c_row);
    } else {
        _tile_zero(0);
        _tile_zero(1);
    }
    for (int64_t t = 0; t < p->n_terms; t++) {
        const uint16_t *b = p->b + t * LSI_B16_BLOCK;
        _tile_loadd(4, p->a + p->a_off[t], a_row);
        _tile_loadd(6, b, 64);
        _tile_loadd(7, b + p->b_block, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
    }
    _tile_stored(0, p->c, c_row);
    _tile_stored(1, p->c + 16, c_row);
}

static void two_by_one(const lsi_b16_product *p)
{
    const size_t a_row = (size_t)p->a_row * 2, c_row = (size_t)p->c_row * 4;
    float *lower = p->c + 16 * p->c_row;

    if (p->add) {
        _tile_loadd(0, p->c, c_row);
        _tile_loadd(2, lower, c_row);
    } else {
        _tile_zero(0);
        _tile_zero(2);
    }
    for (int64_t t = 0; t < p->n_terms; t++) {
        const uint16_t *a = p->a + p->a_off[t];
        _tile_loadd(6, p->b + t * LSI_B16_BLOCK, 64);
        _tile_loadd(4, a, a_row);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(4, a + 16 * p->a_row, a_row);
        _tile_dpbf16ps(2, 4, 6);
    }
    _tile_stored(0, p->c, c_row);
    _tile_stored(2, lower, c_row);
}

static void one_by_one(const lsi_b16_product *p)
{
    const size_t a_row = (size_t)p->a_row * 2, c_row = (size_t)p->c_row * 4;

    if (p->add)
        _tile_loadd(0, p->c, c_row);
    else
        _tile_zero(0);
    for (int64_t t = 0; t < p->n_terms; t++) {
        _tile_loadd(4, p->a + p->a_off[t], a_row);
        _tile_loadd(6, p->b + t * LSI_B16_BLOCK, 64);
        _tile_dpbf16ps(0, 4, 6);
    }
    _tile_stored(0, p->c, c_row);
}

static void multiply(int rows, int blocks, const lsi_b16_product *p)
{
    if (rows > 16 && blocks > 1)
        two_by_two(p);
    else if (rows > 16)
        two_by_one(p);
    else if (blocks > 1)
        one_by_two(p);
    else
        one_by_one(p);
}

const lsi_b16_kernels lsi_b16_amx = {.name = "amx", .begin = begin, .end = end, .multiply = multiply};
