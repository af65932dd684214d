/* gemm_template.h: the packed matrix product, compiled once per instruction set (gemm_avx512.c, gemm_avx2.c).
 *
 * The includer defines GEMM_MR: a tile of C is GEMM_MR rows by two vectors and stays in registers while k
 * runs. Blocks of B are packed into panels two vectors wide that stay in L2; GEMM_MR rows of A are packed
 * just before their use and stay in L1, used for every panel.  With few rows, B is read where it lies when
 * its rows are contiguous along n; and when both matrices are contiguous along k and one side is thin, dot
 * products along k need no packing at all. */
#include "backend/cpu/conv_util.h"
#include "backend/cpu/gemm_internal.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/vec.h"
#include "backend/cpu/vec_transpose.h"

/* A panel of A takes 24 KiB of a first-level cache of 32 or 48 (12 with AVX2), a block of B 768 KiB of a
 * second-level cache of 1 MiB or more (384).  STREAM_FLOATS: 16 MiB, beyond what a core finds again in the
 * last one. */
enum {
    VL = LSI_VL,
    MR = GEMM_MR,
    NR = 2 * LSI_VL,
    KC = 384,
    NC = 16 * NR,
    STREAM_FLOATS = 4 << 20,
    AHEAD = 8,          /* rows of B fetched in advance */
    A_FLOATS = KC * VL, /* one panel of A: MR <= VL rows, stored VL apart */
    B_FLOATS = KC * NC,
};

/* --- packing --- */

/* dst[l * pitch + r] = src[r * ld + l] for r < rows <= VL (zero above) and l < k. */
static void pack_transposed(const float *src, int64_t ld, int64_t rows, int64_t k, float *dst, int64_t pitch)
{
    for (int64_t l = 0; l < k; l += VL) {
        const int64_t left = k - l < VL ? k - l : VL;
        vf r[VL];
        if (rows == VL && left == VL) {
            for (int i = 0; i < VL; i++) r[i] = v_load(src + i * ld + l);
        } else {
            for (int i = 0; i < VL; i++) r[i] = i < rows ? v_load_n(src + i * ld + l, left) : v_zero();
        }
        v_transpose(r);
        if (left == VL)
            for (int i = 0; i < VL; i++) v_store(dst + (l + i) * pitch, r[i]);
        else
            for (int i = 0; i < left; i++) v_store(dst + (l + i) * pitch, r[i]);
    }
}

/* dst[l * pitch + i] = src[l * ld + i] for i < cols <= VL (zero above) and l < k. */
static void pack_copied(const float *src, int64_t ld, int64_t cols, int64_t k, float *dst, int64_t pitch)
{
    if (cols == VL)
        for (int64_t l = 0; l < k; l++) v_store(dst + l * pitch, v_load(src + l * ld));
    else
        for (int64_t l = 0; l < k; l++) v_store(dst + l * pitch, v_load_n(src + l * ld, cols));
}

static void pack_a(const lsi_gemm_block *g, int64_t m, int64_t rows, int64_t l, int64_t k, float *dst)
{
    const lsi_gemm_problem *p = g->p;

    if (p->trans_a)
        pack_copied(g->a + l * p->lda + m, p->lda, rows, k, dst, VL);
    else
        pack_transposed(g->a + m * p->lda + l, p->lda, rows, k, dst, VL);
}

/* One panel of one slice of k: columns n.. of B, `cols` <= NR of them. */
static void pack_panel(const lsi_gemm_problem *p, const float *b, int64_t cols, int64_t k, float *dst)
{
    for (int64_t half = 0; half < NR; half += VL) {
        const int64_t left = cols - half <= 0 ? 0 : cols - half < VL ? cols - half : VL;
        if (p->trans_b)
            pack_transposed(b + half * p->ldb, p->ldb, left, k, dst + half, NR);
        else
            pack_copied(b + half, p->ldb, left, k, dst + half, NR);
    }
}

/* Columns [n, n_end) as panels of NR columns and k rows.  Stored rows of B are long, so they are read a few
 * at a time over all panels: each is then a forward stream in one page at a time. */
static void pack_b(const lsi_gemm_block *g, int64_t n, int64_t n_end, int64_t l, int64_t k, float *dst)
{
    const lsi_gemm_problem *p = g->p;
    const int64_t slice = p->trans_b ? k : 8;

    for (int64_t s = 0; s < k; s += slice) {
        const int64_t rows = k - s < slice ? k - s : slice;
        for (int64_t j = n; j < n_end; j += NR) {
            const float *from = g->b + (p->trans_b ? j * p->ldb + l + s : (l + s) * p->ldb + j);
            pack_panel(p, from, n_end - j < NR ? n_end - j : NR, rows, dst + (j - n) * k + s * NR);
        }
    }
}

/* --- the tile in registers --- */

/* What becomes of a tile: it replaces what C holds, is added to it, or replaces it past the caches (full,
 * aligned vectors only), which spares reading lines that are about to be overwritten. */
typedef enum tile_end { TILE_SET, TILE_ADD, TILE_STREAM } tile_end;

LSI_INLINE void end_vector(float *to, vf v, tile_end end)
{
    if (end == TILE_SET) {
        v_store(to, v);
    } else if (end == TILE_ADD) {
        v_store(to, v_add(v, v_load(to)));
    } else {
        v_stream(to, v);
    }
}

/* mr and nv are compile-time constants wherever this is inlined, so acc lives in registers. */
LSI_INLINE void tile(const int mr, const int nv, int64_t k, const float *a, const float *b, int64_t ldb,
                     float *c, int64_t ldc, int64_t cols, tile_end end)
{
    vf acc[MR][2];

    V_UNROLL
    for (int i = 0; i < mr; i++) {
        V_UNROLL
        for (int j = 0; j < nv; j++) acc[i][j] = v_zero();
    }
    for (int64_t l = 0; l < k; l++) {
        const vf b0 = v_load(b + l * ldb), b1 = nv > 1 ? v_load(b + l * ldb + VL) : b0;
        V_UNROLL
        for (int i = 0; i < mr; i++) {
            const vf ai = v_set1(a[l * VL + i]);
            acc[i][0] = v_fma(ai, b0, acc[i][0]);
            if (nv > 1) acc[i][1] = v_fma(ai, b1, acc[i][1]);
        }
    }
    const int64_t last = cols - (nv - 1) * VL; /* columns of the last vector */
    V_UNROLL
    for (int i = 0; i < mr; i++) {
        float *to = c + i * ldc;
        if (nv > 1) end_vector(to, acc[i][0], end);
        to += (nv - 1) * VL;
        if (last == VL)
            end_vector(to, acc[i][nv - 1], end);
        else
            v_store_n(to, end == TILE_ADD ? v_add(acc[i][nv - 1], v_load_n(to, last)) : acc[i][nv - 1], last);
    }
}

/* Bias and activation of a finished tile, which is still in L1. */
static void finish_tile(const lsi_gemm_block *g, int64_t m, int64_t rows, int64_t n, int64_t cols)
{
    const lsi_gemm_problem *p = g->p;

    for (int64_t j = 0; j < cols; j += VL) {
        const int64_t left = cols - j < VL ? cols - j : VL;
        const vf bias = g->bias ? v_load_n(g->bias + n + j, left) : v_zero();
        float *c = g->c + m * p->ldc + n + j;
        for (int64_t i = 0; i < rows; i++, c += p->ldc)
            v_store_n(c, v_act(v_add(v_load_n(c, left), bias), p->act, p->slope), left);
    }
}

typedef void (*tile_fn)(int64_t k, const float *a, const float *b, int64_t ldb, float *c, int64_t ldc,
                        int64_t cols, tile_end end);

#define TILE(mr, nv)                                                                                         \
    static void tile_##mr##x##nv(int64_t k, const float *a, const float *b, int64_t ldb, float *c,           \
                                 int64_t ldc, int64_t cols, tile_end end)                                    \
    {                                                                                                        \
        tile(mr, nv, k, a, b, ldb, c, ldc, cols, end);                                                       \
    }
/* clang-format off */
#define TILES(mr) TILE(mr, 1) TILE(mr, 2)
TILES(1) TILES(2) TILES(3) TILES(4) TILES(5) TILES(6)
#if GEMM_MR == 14
TILES(7) TILES(8) TILES(9) TILES(10) TILES(11) TILES(12) TILES(13) TILES(14)
#endif

static const tile_fn tiles[MR + 1][2] = {
    {NULL, NULL},
    {tile_1x1, tile_1x2}, {tile_2x1, tile_2x2}, {tile_3x1, tile_3x2},
    {tile_4x1, tile_4x2}, {tile_5x1, tile_5x2}, {tile_6x1, tile_6x2},
#if GEMM_MR == 14
    {tile_7x1, tile_7x2}, {tile_8x1, tile_8x2}, {tile_9x1, tile_9x2}, {tile_10x1, tile_10x2},
    {tile_11x1, tile_11x2}, {tile_12x1, tile_12x2}, {tile_13x1, tile_13x2}, {tile_14x1, tile_14x2},
#endif
};
/* clang-format on */

/* --- loops over blocks --- */

/* Whether C is written once, is too large to be found in a cache by whoever reads it next, and is aligned. */
static bool wants_stream(const lsi_gemm_block *g)
{
    const lsi_gemm_problem *p = g->p;

    return p->m * p->n >= STREAM_FLOATS && p->n % VL == 0 && p->ldc % VL == 0 &&
           (uintptr_t)g->c % sizeof(vf) == 0;
}

/* All rows against columns [n, n_end) and one block of k. */
static void rows_times_panels(const lsi_gemm_block *g, int64_t n, int64_t n_end, int64_t l, int64_t k,
                              bool direct, float *a_pack, float *b_pack)
{
    const lsi_gemm_problem *p = g->p;
    const bool finish = l + k >= p->k && (g->bias || p->act != LSI_ACT_NONE);
    const tile_end end = p->accumulate || l > 0                    ? TILE_ADD
                         : k >= p->k && !finish && wants_stream(g) ? TILE_STREAM
                                                                   : TILE_SET;

    const int64_t in_place_end = direct ? n_end - (n_end - n) % NR : n; /* whole panels only */

    pack_b(g, in_place_end, n_end, l, k, b_pack);
    /* The rows are shared out evenly over the tiles: 16 rows are 8 + 8, not 14 + 2. */
    const int64_t rows = g->m_hi - g->m_lo, n_tiles = (rows + MR - 1) / MR;
    for (int64_t t = 0; t < n_tiles; t++) {
        const int64_t i = g->m_lo + rows * t / n_tiles, mr = g->m_lo + rows * (t + 1) / n_tiles - i;
        pack_a(g, i, mr, l, k, a_pack);
        for (int64_t j = n; j < n_end; j += NR) {
            const int64_t cols = n_end - j < NR ? n_end - j : NR;
            const bool in_place = j < in_place_end;
            tiles[mr][cols > VL](k, a_pack,
                                 in_place ? g->b + l * p->ldb + j : b_pack + (j - in_place_end) * k,
                                 in_place ? p->ldb : NR, g->c + i * p->ldc + j, p->ldc, cols, end);
            if (finish) finish_tile(g, i, mr, j, cols);
        }
    }
}

static void packed_block(const lsi_gemm_block *g)
{
    const lsi_gemm_problem *p = g->p;
    float *a_pack = g->scratch, *b_pack = a_pack + A_FLOATS;
    /* Copying B pays only when its copy is read several times. */
    const bool direct = !p->trans_b && g->m_hi - g->m_lo <= 2 * MR;

    for (int64_t n = g->n_lo; n < g->n_hi; n += NC) {
        const int64_t n_end = g->n_hi - n < NC ? g->n_hi : n + NC;
        int64_t l = 0;
        do { /* once even for k == 0, which must still write C */
            const int64_t k = p->k - l < KC ? p->k - l : KC;
            rows_times_panels(g, n, n_end, l, k, direct, a_pack, b_pack);
            l += KC;
        } while (l < p->k);
    }
    v_stream_done();
}

/* --- dot products along k --- */

enum { DOT = 4 }; /* rows of A by rows of B at a time: 16 sums */

LSI_INLINE void dot_tile(const int mr, const int nr, const lsi_gemm_block *g, int64_t m, int64_t n)
{
    const lsi_gemm_problem *p = g->p;
    const float *a = g->a + m * p->lda, *b = g->b + n * p->ldb;
    vf acc[DOT][DOT];
    int64_t l = 0;

    V_UNROLL
    for (int i = 0; i < mr; i++) {
        V_UNROLL
        for (int j = 0; j < nr; j++) acc[i][j] = v_zero();
    }
    for (; l < p->k; l += VL) {
        const int64_t left = p->k - l;
        vf bv[DOT];
        V_UNROLL
        for (int j = 0; j < nr; j++)
            bv[j] = left >= VL ? v_load(b + j * p->ldb + l) : v_load_n(b + j * p->ldb + l, left);
        V_UNROLL
        for (int i = 0; i < mr; i++) {
            const vf av = left >= VL ? v_load(a + i * p->lda + l) : v_load_n(a + i * p->lda + l, left);
            V_UNROLL
            for (int j = 0; j < nr; j++) acc[i][j] = v_fma(av, bv[j], acc[i][j]);
        }
    }
    V_UNROLL
    for (int i = 0; i < mr; i++) {
        V_UNROLL
        for (int j = 0; j < nr; j++) {
            float *c = g->c + (m + i) * p->ldc + n + j;
            const float sum = v_sum(acc[i][j]) + (p->accumulate ? *c : 0) + (g->bias ? g->bias[n + j] : 0);
            *c = lsi_act(sum, p->act, p->slope);
        }
    }
}

static void dot_tile_any(const lsi_gemm_block *g, int64_t m, int64_t n)
{
    const int64_t mr = g->m_hi - m < DOT ? g->m_hi - m : DOT, nr = g->n_hi - n < DOT ? g->n_hi - n : DOT;

    if (mr == 4 && nr == 4) {
        dot_tile(4, 4, g, m, n);
    } else if (mr == 4 && nr == 1) {
        dot_tile(4, 1, g, m, n);
    } else if (mr == 1 && nr == 4) {
        dot_tile(1, 4, g, m, n);
    } else {
        for (int64_t i = 0; i < mr; i++)
            for (int64_t j = 0; j < nr; j++) dot_tile(1, 1, g, m + i, n + j);
    }
}

static void dot_block(const lsi_gemm_block *g)
{
    for (int64_t n = g->n_lo; n < g->n_hi; n += DOT)
        for (int64_t m = g->m_lo; m < g->m_hi; m += DOT) dot_tile_any(g, m, n);
}

/* --- interface --- */

static bool wants_dots(const lsi_gemm_problem *p)
{
    const bool along_k = !p->trans_a && (p->trans_b || (p->n == 1 && p->ldb == 1));

    return along_k && (p->m <= 8 || p->n <= 8) && p->k >= 16 * VL;
}

static ls_status run(const lsi_gemm_problem *p, const void *a, const void *b, void *c, const void *bias,
                     void *scratch)
{
    static const lsi_gemm_tiling packed = {packed_block, MR, NR, (A_FLOATS + B_FLOATS) * sizeof(float)};
    static const lsi_gemm_tiling dots = {dot_block, DOT, DOT, 0};

    lsi_gemm_drive(wants_dots(p) ? &dots : &packed, p, a, b, c, bias, scratch);
    return LS_OK;
}

static size_t scratch(const lsi_gemm_problem *p)
{
    return wants_dots(p) ? 0 : (size_t)p->threads * (A_FLOATS + B_FLOATS) * sizeof(float);
}
