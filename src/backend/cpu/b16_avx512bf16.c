/* b16_avx512bf16.c: products of pairs by VDPBF16PS, tiles of 12 x 32: 24 of the 32 registers are sums. */
#include <string.h>

#include "backend/cpu/b16.h"
#include "backend/cpu/vec.h"

enum { MR = 12 };

LSI_INLINE __m512bh pair_of(const uint16_t *p)
{
    int32_t both;

    memcpy(&both, p, sizeof both);
    return (__m512bh)_mm512_set1_epi32(both);
}

LSI_INLINE __m512bh pairs(const uint16_t *p)
{
    return (__m512bh)_mm512_loadu_si512(p);
}

/* mr and nb are compile-time constants wherever this is inlined, so acc lives in registers. */
LSI_INLINE void tile(const int mr, const int nb, const lsi_b16_product *p, int64_t row)
{
    float *c = p->c + row * p->c_row;
    vf acc[MR][2];

    V_UNROLL
    for (int i = 0; i < mr; i++) {
        V_UNROLL
        for (int j = 0; j < nb; j++) acc[i][j] = p->add ? v_load(c + i * p->c_row + 16 * j) : v_zero();
    }
    for (int64_t t = 0; t < p->n_terms; t++) {
        const uint16_t *a = p->a + p->a_off[t] + row * p->a_row, *b = p->b + t * LSI_B16_BLOCK;
        for (int k = 0; k < LSI_B16_DEEP / 2; k++) {
            const __m512bh b0 = pairs(b + 32 * k), b1 = nb > 1 ? pairs(b + p->b_block + 32 * k) : b0;
            V_UNROLL
            for (int i = 0; i < mr; i++) {
                const __m512bh ai = pair_of(a + i * p->a_row + 2 * k);
                acc[i][0] = _mm512_dpbf16_ps(acc[i][0], ai, b0);
                if (nb > 1) acc[i][1] = _mm512_dpbf16_ps(acc[i][1], ai, b1);
            }
        }
    }
    V_UNROLL
    for (int i = 0; i < mr; i++) {
        V_UNROLL
        for (int j = 0; j < nb; j++) v_store(c + i * p->c_row + 16 * j, acc[i][j]);
    }
}

typedef void (*tile_fn)(const lsi_b16_product *p, int64_t row);

#define TILE(mr, nb)                                                                                         \
    static void tile_##mr##x##nb(const lsi_b16_product *p, int64_t row)                                      \
    {                                                                                                        \
        tile(mr, nb, p, row);                                                                                \
    }
/* clang-format off */
#define TILES(mr) TILE(mr, 1) TILE(mr, 2)
TILES(1) TILES(2) TILES(3) TILES(4) TILES(5) TILES(6)
TILES(7) TILES(8) TILES(9) TILES(10) TILES(11) TILES(12)

static const tile_fn tiles[MR + 1][2] = {
    {NULL, NULL},
    {tile_1x1, tile_1x2}, {tile_2x1, tile_2x2}, {tile_3x1, tile_3x2}, {tile_4x1, tile_4x2},
    {tile_5x1, tile_5x2}, {tile_6x1, tile_6x2}, {tile_7x1, tile_7x2}, {tile_8x1, tile_8x2},
    {tile_9x1, tile_9x2}, {tile_10x1, tile_10x2}, {tile_11x1, tile_11x2}, {tile_12x1, tile_12x2},
};
/* clang-format on */

/* The rows are shared out evenly over the tiles: 32 rows are 11 + 11 + 10. */
static void multiply(int rows, int blocks, const lsi_b16_product *p)
{
    const int n = (rows + MR - 1) / MR;

    for (int t = 0; t < n; t++) {
        const int from = rows * t / n, to = rows * (t + 1) / n;
        tiles[to - from][blocks - 1](p, from);
    }
}

static void nothing(void)
{
}

const lsi_b16_kernels lsi_b16_avx512bf16 = {
    .name = "avx512bf16", .begin = nothing, .end = nothing, .multiply = multiply};
