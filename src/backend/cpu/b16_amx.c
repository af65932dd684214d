/* b16_amx.c: products of tiles by TDPBF16PS: 2 x 2 tiles of 16 x 16 sums, each pair of loads serves two of
 * them.
 *
 * Tiles 0 to 3 are sums, 4 is of A, 6 and 7 of B.  One tile stays unused: where the other thread of a core is
 * at work, the core has few tiles beyond those in use to load the next operands into while products go on.
 * With two of A, and all eight in use, 16 threads reached 660 to 770 GFLOP/s each from the second-level
 * cache, with one 910 to 960; alone on a core both ways are equal.  All tiles are whole: rows that do not
 * exist are computed and not looked at. */
#include <immintrin.h>
#include <stdlib.h>

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

#define INLINE static inline __attribute__((always_inline))

int lsi_b16_try[TRY_N] = {0};

__attribute__((constructor)) static void read_try(void)
{
    const char *text = getenv("LS_B16_TRY");

    for (int i = 0; i < TRY_N && text != NULL && *text; i++) {
        lsi_b16_try[i] = (int)strtol(text, (char **)(uintptr_t)&text, 10);
        if (*text == ',') text++;
    }
}

/* One tile to the first-level cache. */
INLINE void fetch(const uint16_t *at, size_t row)
{
    for (size_t r = 0; r < 16; r++) _mm_prefetch((const char *)at + r * row, _MM_HINT_T0);
}

INLINE void term(const int order, const bool odd, const uint16_t *a, const uint16_t *lower, size_t a_row,
                 const uint16_t *b, const uint16_t *right)
{
    if (order == 0) {
        _tile_loadd(6, b, 64);
        _tile_loadd(7, right, 64);
        _tile_loadd(4, a, a_row);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(4, lower, a_row);
        _tile_dpbf16ps(2, 4, 6);
        _tile_dpbf16ps(3, 4, 7);
    } else if (order == 1 && !odd) {
        _tile_loadd(4, a, a_row);
        _tile_loadd(6, b, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, right, 64);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, lower, a_row);
        _tile_dpbf16ps(3, 5, 7);
        _tile_dpbf16ps(2, 5, 6);
    } else if (order == 1) {
        _tile_loadd(4, a, a_row);
        _tile_loadd(7, right, 64);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(6, b, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(5, lower, a_row);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    } else if (order == 2) {
        _tile_loadd(4, a, a_row);
        _tile_loadd(6, b, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(6, right, 64);
        _tile_dpbf16ps(1, 4, 6);
        _tile_loadd(4, lower, a_row);
        _tile_dpbf16ps(3, 4, 6);
        _tile_loadd(6, b, 64);
        _tile_dpbf16ps(2, 4, 6);
    } else {
        _tile_loadd(4, a, a_row);
        _tile_loadd(6, b, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, right, 64);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(4, lower, a_row);
        _tile_dpbf16ps(2, 4, 6);
        _tile_dpbf16ps(3, 4, 7);
    }
}

INLINE void all_terms(const lsi_b16_product *p, const int order, const int pre)
{
    const size_t a_row = (size_t)p->a_row * 2;
    const int64_t ahead = lsi_b16_try[TRY_AHEAD], n = p->n_terms;
    const uint16_t *next = p->b_next != NULL ? p->b_next : p->b;

    for (int64_t t = 0; t < n; t++) {
        const uint16_t *a = p->a + p->a_off[t], *lower = a + 16 * p->a_row;
        const uint16_t *b = p->b + t * LSI_B16_BLOCK, *right = b + p->b_block;
        if (order == 8) /* how fast it would be with everything in the first-level cache: results are wrong */
            term(3, false, (const uint16_t *)p->c, (const uint16_t *)p->c + 512, 64,
                 (const uint16_t *)p->c + 1024, (const uint16_t *)p->c + 1536);
        else if (order != 9) /* how fast without products */
            term(order, t & 1, a, lower, a_row, b, right);
        if (pre) {
            const bool here = t + ahead < n;
            const int64_t at = here ? t + ahead : t + ahead - n < n ? t + ahead - n : 0;
            const uint16_t *soon = (here ? p->b : next) + at * LSI_B16_BLOCK;
            if (pre & 1) {
                fetch(soon, 64);
                fetch(soon + p->b_block, 64);
            }
            if (pre & 2) {
                fetch(p->a + p->a_off[at], a_row);
                fetch(p->a + p->a_off[at] + 16 * p->a_row, a_row);
            }
        }
        if (p->beside != NULL) p->beside->step(p->beside);
    }
}

#define TERMS(o)                                                                                             \
    {                                                                                                        \
        if (pre == 0)                                                                                        \
            all_terms(p, o, 0);                                                                              \
        else if (pre == 1)                                                                                   \
            all_terms(p, o, 1);                                                                              \
        else                                                                                                 \
            all_terms(p, o, 3);                                                                              \
    }

static void two_by_two(const lsi_b16_product *p)
{
    const size_t c_row = (size_t)p->c_row * 4;
    const int pre = lsi_b16_try[TRY_PRE];
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
    switch (lsi_b16_try[TRY_ORDER]) {
    case 0: TERMS(0) break;
    case 1: TERMS(1) break;
    case 2: TERMS(2) break;
    case 8: TERMS(8) break;
    case 9: TERMS(9) break;
    default: TERMS(3) break;
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
        if (p->beside != NULL) p->beside->step(p->beside);
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
        if (p->beside != NULL) p->beside->step(p->beside);
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
        if (p->beside != NULL) p->beside->step(p->beside);
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
