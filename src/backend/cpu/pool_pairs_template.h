/* pool_pairs_template.h: maximum over windows of 2x2 side by side, without padding; part of pool_template.h.
 *
 * A pair of image rows makes one row of windows, and both lie in memory one behind the other.  In lines a
 * map's rows are mostly no multiple of a vector: all vectors are whole nevertheless, and what the last one of
 * a row reads and writes behind it belongs to the following rows, which are written later.  Only where that
 * would leave the rows lo..hi-1, tails are masked. */

/* Floats that whole vectors cover which begin at the first of n. */
LSI_INLINE int64_t covered(int64_t n)
{
    return (n + LSI_VL - 1) / LSI_VL * LSI_VL;
}

/* The maxima of the windows whose elements in order are a to d. */
LSI_INLINE void max_of_4(const lsi_pool *p, vf a, vf b, vf c, vf d, stored *y, uint8_t *index, int64_t n)
{
    vf at = v_zero();

    v_contest(&a, &at, b, v_set1(1));
    v_contest(&a, &at, c, v_set1(2));
    v_contest(&a, &at, d, v_set1(3));
    s_store_upto(y, p->relu ? v_max(v_zero(), a) : a, n);
    v_store_bytes(index, at, n < LSI_VL ? n : LSI_VL);
}

#if LSI_VL == 16

/* Rows of four windows: a pair of image rows is one vector, and four pairs make a vector of windows. */
static void max_pairs_of_4(const lsi_pool *p, const stored *x, stored *y, uint8_t *index, int64_t rows)
{
    /* Of two pairs: their upper rows' elements 0, 2, 4, 6, then 1, 3, 5, 7; 8 more: of the lower rows. */
    const __m512i upper = _mm512_setr_epi32(0, 2, 4, 6, 16, 18, 20, 22, 1, 3, 5, 7, 17, 19, 21, 23);
    const __m512i lower = _mm512_add_epi32(upper, _mm512_set1_epi32(8));

    for (int64_t r = 0; r < rows; r += 4, x += 64, y += 16, index += 16) {
        const vf pair0 = s_load(x), pair1 = s_load(x + 16), pair2 = s_load(x + 32), pair3 = s_load(x + 48);
        const vf u0 = _mm512_permutex2var_ps(pair0, upper, pair1);
        const vf u1 = _mm512_permutex2var_ps(pair2, upper, pair3);
        const vf l0 = _mm512_permutex2var_ps(pair0, lower, pair1);
        const vf l1 = _mm512_permutex2var_ps(pair2, lower, pair3);
        max_of_4(p, _mm512_shuffle_f32x4(u0, u1, 0x44), _mm512_shuffle_f32x4(u0, u1, 0xee),
                 _mm512_shuffle_f32x4(l0, l1, 0x44), _mm512_shuffle_f32x4(l0, l1, 0xee), y, index, LSI_VL);
    }
}

/* The gradient: every window's dy and index go to the four places of their vector, and one of them keeps it.
 */
static void max_back_pairs_of_4(const lsi_pool *p, const stored *dy, const uint8_t *index, const stored *y,
                                stored *dx, int64_t rows)
{
    const __m512i place = _mm512_setr_epi32(0, 1, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 2, 3);
    const __m512i source = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 0, 0, 1, 1, 2, 2, 3, 3);

    for (int64_t at = 0; at < 4 * rows; at += 16) {
        const __m512i where = _mm512_cvtepu8_epi32(v_load_bytes(index + at, LSI_VL));
        vf d = s_load(dy + at);
        if (p->relu) d = v_select_gt(s_load(y + at), v_zero(), d, v_zero());
        V_UNROLL for (int r = 0; r < 4; r++)
        {
            const __m512i from = _mm512_add_epi32(source, _mm512_set1_epi32(4 * r));
            const __mmask16 here = _mm512_cmpeq_epi32_mask(_mm512_permutexvar_epi32(from, where), place);
            s_store(dx + 4 * at + 16 * r, _mm512_maskz_permutexvar_ps(here, from, d));
        }
    }
}

#endif

/* n windows of one row (whole vectors: LSI_VL), the upper left element of the first at x. */
LSI_INLINE void max_pair_run(const lsi_pool *p, const stored *x, stored *y, uint8_t *index, int64_t n)
{
    vf left, right, lower_left, lower_right;

    v_load_pairs(x, n, &left, &right);
    v_load_pairs(x + p->w, n, &lower_left, &lower_right);
    max_of_4(p, left, right, lower_left, lower_right, y, index, n);
}

static void max_pairs(const lsi_pool *p, const stored *x, stored *y, uint8_t *index, int64_t lo, int64_t hi)
{
#if LSI_VL == 16
    if (p->wo == 4 && p->w == 8) {
        const int64_t rows = (hi - lo) / 4 * 4;
        max_pairs_of_4(p, x + lo * 16, y + lo * 4, index + lo * 4, rows);
        lo += rows;
    }
#endif
    for (int64_t oy = lo; oy < hi; oy++) {
        const stored *from = x + 2 * oy * p->w;
        stored *row = y + oy * p->wo;
        uint8_t *index_row = index + oy * p->wo;
        if (covered(p->wo) <= (hi - oy) * p->wo)
            for (int64_t ox = 0; ox < p->wo; ox += LSI_VL)
                max_pair_run(p, from + 2 * ox, row + ox, index_row + ox, LSI_VL);
        else
            for (int64_t ox = 0; ox < p->wo; ox += LSI_VL)
                max_pair_run(p, from + 2 * ox, row + ox, index_row + ox, p->wo - ox);
    }
}

/* What n windows send to the rows at `upper` and `lower`, either of which may be NULL. */
LSI_INLINE void max_back_pair_run(const lsi_pool *p, const stored *dy, const uint8_t *index, const stored *y,
                                  stored *upper, stored *lower, int64_t n)
{
    const vb bytes = v_load_bytes(index, n < LSI_VL ? n : LSI_VL);
    stored *const row[2] = {upper, lower};
    vf d = s_load_upto(dy, n), first, second;

    if (p->relu) d = v_select_gt(s_load_upto(y, n), v_zero(), d, v_zero());
    V_UNROLL for (int ky = 0; ky < 2; ky++)
    {
        if (row[ky] == NULL) continue;
        v_interleave(v_pick(d, bytes, 2 * ky), v_pick(d, bytes, 2 * ky + 1), &first, &second);
        s_store_upto(row[ky], first, 2 * n);
        if (2 * n > LSI_VL) s_store_upto(row[ky] + LSI_VL, second, 2 * n - LSI_VL);
    }
}

/* The image is at most one column wider than its windows. */
static void max_back_pairs(const lsi_pool *p, const stored *dy, const uint8_t *index, const stored *y,
                           stored *dx, int64_t lo, int64_t hi)
{
#if LSI_VL == 16
    if (p->wo == 4 && p->w == 8 && lo % 2 == 0) {
        const int64_t last = hi / 2 < p->ho ? hi / 2 : p->ho;
        const int64_t rows = last > lo / 2 ? (last - lo / 2) / 4 * 4 : 0, at = lo / 2 * 4;
        max_back_pairs_of_4(p, dy + at, index + at, p->relu ? y + at : NULL, dx + lo * 8, rows);
        lo += 2 * rows;
    }
#endif
    for (int64_t iy = lo, next; iy < hi; iy = next) {
        const int64_t oy = iy / 2, at = oy * p->wo;
        next = 2 * oy + 2 < hi ? 2 * oy + 2 : hi;
        if (oy >= p->ho) {
            memset(dx + iy * p->w, 0, sizeof(stored) * (size_t)((next - iy) * p->w));
            continue;
        }
        stored *const upper = iy % 2 == 0 ? dx + iy * p->w : NULL;
        stored *const lower = next == 2 * oy + 2 ? dx + (next - 1) * p->w : NULL;
        const bool whole =
            covered(p->wo) <= (p->ho - oy) * p->wo && 2 * covered(p->wo) <= (hi - next + 1) * p->w;
        for (int64_t ox = 0; ox < p->wo; ox += LSI_VL) {
            const stored *y_at = p->relu ? y + at + ox : NULL;
            stored *u = upper != NULL ? upper + 2 * ox : NULL, *l = lower != NULL ? lower + 2 * ox : NULL;
            /* Behind a row of several vectors lies a lower row that is partly written already. */
            const bool over = p->wo > LSI_VL && ox + LSI_VL > p->wo;
            if (whole && !over && u != NULL && l != NULL)
                max_back_pair_run(p, dy + at + ox, index + at + ox, y_at, u, l, LSI_VL);
            else
                max_back_pair_run(p, dy + at + ox, index + at + ox, y_at, u, l, p->wo - ox);
        }
        for (int64_t row = iy; row < next && p->w > 2 * p->wo; row++) dx[row * p->w + p->w - 1] = 0;
    }
}

/* In lanes: each window is read once and sends to its four pixels, or to two of them. */
LSI_INLINE void max_back_window(const lsi_pool *p, const stored *dy, const uint8_t *index, const stored *y,
                                stored *dx, int ky0, int ky1)
{
    for (int half = 0; half < 16; half += LSI_VL) {
        const vb bytes = v_load_bytes(index + half, LSI_VL);
        vf d = s_load(dy + half);
        if (p->relu) d = v_select_gt(s_load(y + half), v_zero(), d, v_zero());
        for (int ky = ky0; ky < ky1; ky++)
            for (int kx = 0; kx < 2; kx++)
                s_store(dx + ((ky - ky0) * p->w + kx) * 16 + half, v_pick(d, bytes, 2 * ky + kx));
    }
}

static void max_back_pairs_lanes(const lsi_pool *p, const stored *dy, const uint8_t *index, const stored *y,
                                 stored *dx, int64_t lo, int64_t hi)
{
    for (int64_t iy = lo, next; iy < hi; iy = next) {
        const int64_t oy = iy / 2;
        next = 2 * oy + 2 < hi ? 2 * oy + 2 : hi;
        if (oy >= p->ho) {
            memset(dx + iy * p->w * 16, 0, sizeof(stored) * (size_t)((next - iy) * p->w * 16));
            continue;
        }
        for (int64_t ox = 0; ox < p->wo; ox++) {
            const int64_t at = (oy * p->wo + ox) * 16;
            const stored *y_at = p->relu ? y + at : NULL;
            stored *to = dx + (iy * p->w + 2 * ox) * 16;
            if (next - iy == 2)
                max_back_window(p, dy + at, index + at, y_at, to, 0, 2);
            else
                max_back_window(p, dy + at, index + at, y_at, to, (int)(iy % 2), (int)(iy % 2) + 1);
        }
        for (int64_t row = iy; row < next && p->w > 2 * p->wo; row++)
            memset(dx + (row * p->w + p->w - 1) * 16, 0, sizeof(stored) * 16);
    }
}
