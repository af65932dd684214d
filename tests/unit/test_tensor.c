/* Element types, shapes, layouts, and both 16-bit formats over all their patterns. */
#include <math.h>
#include <string.h>

#include "backend/cpu/c16.h"
#include "check.h"
#include "lockstep/tensor.h"
#include "tensor/layout.h"

static void dtypes(void)
{
    static const size_t size[LS_DTYPE_N] = {4, 2, 2, 8, 4, 1, 1};
    static const char *const name[LS_DTYPE_N] = {"f32", "bf16", "f16", "f64", "i32", "u8", "bool"};
    for (int t = 0; t < LS_DTYPE_N; t++) {
        CHECK_EQ_INT(ls_dtype_size((ls_dtype)t), size[t]);
        CHECK_EQ_STR(ls_dtype_name((ls_dtype)t), name[t]);
        CHECK_EQ_INT(ls_dtype_is_float((ls_dtype)t), t <= LS_F64);
    }
}

static void shapes(void)
{
    char buf[LS_SHAPE_TEXT];
    CHECK_EQ_STR(ls_shape_text(LS_SHAPE(64, 1, 28, 28), buf), "(64, 1, 28, 28)");
    CHECK_EQ_STR(ls_shape_text(LS_SHAPE(5), buf), "(5,)");
    CHECK_EQ_STR(ls_shape_text(LS_SHAPE_SCALAR, buf), "()");
    ls_shape widest = LS_SHAPE(INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN);
    CHECK(strlen(ls_shape_text(widest, buf)) < LS_SHAPE_TEXT);
    CHECK_EQ_INT(buf[strlen(buf) - 1], ')');

    CHECK_EQ_INT(ls_shape_count(LS_SHAPE_SCALAR), 1);
    CHECK_EQ_INT(ls_shape_count(LS_SHAPE(2, 3, 5)), 30);
    CHECK_EQ_INT(ls_shape_count(LS_SHAPE(2, 0, 5)), 0);
    CHECK_EQ_INT(ls_shape_count(LS_SHAPE(65536, 65536)), INT64_C(1) << 32);

    CHECK(ls_shape_valid(LS_SHAPE_SCALAR));
    CHECK(ls_shape_valid(LS_SHAPE(0, 7)));
    CHECK(!ls_shape_valid(LS_SHAPE(-1, 7)));
    CHECK(ls_shape_valid(LS_SHAPE((INT64_C(1) << 60) - 1)));
    CHECK(!ls_shape_valid(LS_SHAPE(INT64_C(1) << 60)));
    CHECK(!ls_shape_valid(LS_SHAPE(INT64_C(1) << 40, INT64_C(1) << 40)));
    CHECK(!ls_shape_valid(LS_SHAPE(INT64_C(1) << 40, INT64_C(1) << 40, 0)));

    CHECK(ls_shape_equal(LS_SHAPE(2, 3), LS_SHAPE(2, 3)));
    CHECK(!ls_shape_equal(LS_SHAPE(2, 3), LS_SHAPE(3, 2)));
    CHECK(!ls_shape_equal(LS_SHAPE(2, 3), LS_SHAPE(2, 3, 1)));
}

static void broadcasting(void)
{
    ls_shape s, untouched = LS_SHAPE(9, 9);
    CHECK(ls_shape_broadcast(LS_SHAPE(4, 1, 3), LS_SHAPE(5, 1), &s) && ls_shape_equal(s, LS_SHAPE(4, 5, 3)));
    CHECK(ls_shape_broadcast(LS_SHAPE(5, 1), LS_SHAPE(4, 1, 3), &s) && ls_shape_equal(s, LS_SHAPE(4, 5, 3)));
    CHECK(ls_shape_broadcast(LS_SHAPE_SCALAR, LS_SHAPE(2, 2), &s) && ls_shape_equal(s, LS_SHAPE(2, 2)));
    CHECK(ls_shape_broadcast(LS_SHAPE(0, 3), LS_SHAPE(1, 3), &s) && ls_shape_equal(s, LS_SHAPE(0, 3)));
    s = untouched;
    CHECK(!ls_shape_broadcast(LS_SHAPE(2, 3), LS_SHAPE(2, 4), &s));
    CHECK(!ls_shape_broadcast(LS_SHAPE(0, 3), LS_SHAPE(2, 3), &s));
    CHECK(ls_shape_equal(s, untouched));
}

static void layouts_allowed(void)
{
    CHECK(ls_layout_allowed(&ls_layout_plain, LS_BOOL, LS_SHAPE_SCALAR));
    CHECK(ls_layout_allowed(&lsi_layout_c16, LS_F32, LS_SHAPE(1, 32, 7, 7)));
    CHECK(!ls_layout_allowed(&lsi_layout_c16, LS_F32, LS_SHAPE(1, 24, 7, 7)));
    CHECK(!ls_layout_allowed(&lsi_layout_c16, LS_F32, LS_SHAPE(1, 0, 7, 7)));
    CHECK(!ls_layout_allowed(&lsi_layout_c16, LS_F32, LS_SHAPE(1, 32, 7)));
    CHECK(!ls_layout_allowed(&lsi_layout_c16, LS_I32, LS_SHAPE(1, 32, 7, 7)));
    CHECK(ls_layout_allowed(&ls_layout_nhwc, LS_BF16, LS_SHAPE(1, 3, 7, 7)));
    CHECK(!ls_layout_allowed(&ls_layout_nhwc, LS_BF16, LS_SHAPE(1, 3, 7)));
    CHECK(ls_layout_allowed(&ls_layout_nlc, LS_F32, LS_SHAPE(1, 3, 7)));
}

/* Layouts with gaps: rows of whole eights; blocks of four channels, the last not full; blocks in wide rows.
 */
static const ls_layout rows_of_8 = {.name = "rows8", .row = 8};
static const ls_layout blocks_of_4 = {
    .name = "c4", .rank = 4, .order = {0, 1, 2, 3}, .block = 4, .block_axis = 1};
static const ls_layout wide_blocks = {
    .name = "c3x4", .rank = 3, .order = {2, 0, 1}, .block = 3, .block_axis = 0, .row = 4};

static int64_t place(const ls_layout *l, ls_shape s, int64_t i)
{
    const ls_strides strides = ls_layout_strides(l, s);

    return ls_strides_place(&strides, i);
}

static void layouts_with_bytes(void)
{
    const ls_shape s = LS_SHAPE(2, 6, 3, 5);

    CHECK_EQ_INT(ls_layout_bytes(&ls_layout_plain, LS_F32, LS_SHAPE_SCALAR), 4);
    CHECK_EQ_INT(ls_layout_bytes(&ls_layout_plain, LS_F32, s), 2 * 6 * 3 * 5 * 4);
    CHECK_EQ_INT(ls_layout_bytes(&ls_layout_nhwc, LS_BF16, s), 2 * 6 * 3 * 5 * 2);
    CHECK_EQ_INT(ls_layout_bytes(&lsi_layout_c16, LS_U8, LS_SHAPE(2, 32, 3, 5)), 2 * 32 * 3 * 5);
    CHECK_EQ_INT(ls_layout_bytes(&rows_of_8, LS_F32, s), 2 * 6 * 3 * 8 * 4);
    CHECK_EQ_INT(ls_layout_bytes(&rows_of_8, LS_F32, LS_SHAPE(5, 0)), 0);
    CHECK_EQ_INT(ls_layout_bytes(&blocks_of_4, LS_F32, s), 2 * 8 * 3 * 5 * 4);
    CHECK_EQ_INT(ls_layout_bytes(&wide_blocks, LS_F16, LS_SHAPE(7, 2, 5)), 5 * 3 * 2 * 4 * 2);
    /* Element (1, 4, 2, 3) and its like. */
    const int64_t i = ((1 * 6 + 4) * 3 + 2) * 5 + 3;
    CHECK_EQ_INT(place(&ls_layout_plain, s, i), i);
    CHECK_EQ_INT(place(&ls_layout_nhwc, s, i), ((1 * 3 + 2) * 5 + 3) * 6 + 4);
    CHECK_EQ_INT(place(&ls_layout_nlc, LS_SHAPE(2, 6, 5), (1 * 6 + 4) * 5 + 3), (1 * 5 + 3) * 6 + 4);
    CHECK_EQ_INT(place(&rows_of_8, s, i), ((1 * 6 + 4) * 3 + 2) * 8 + 3);
    CHECK_EQ_INT(place(&blocks_of_4, s, i), (((1 * 2 + 1) * 3 + 2) * 5 + 3) * 4 + 0);
    CHECK_EQ_INT(place(&wide_blocks, LS_SHAPE(7, 2, 5), (5 * 2 + 1) * 5 + 3), ((3 * 3 + 1) * 2 + 1) * 4 + 2);
}

/* Every element has a place of its own, within the bytes. */
static void layouts_lose_nothing(void)
{
    static const ls_layout *const all[] = {&ls_layout_plain, &ls_layout_nhwc, &lsi_layout_c16, &rows_of_8,
                                           &blocks_of_4};
    const ls_shape s = LS_SHAPE(2, 32, 3, 5);
    bool taken[2 * 32 * 3 * 8];

    for (size_t l = 0; l < sizeof all / sizeof all[0]; l++) {
        const size_t bytes = ls_layout_bytes(all[l], LS_U8, s);
        REQUIRE(bytes <= sizeof taken);
        memset(taken, 0, sizeof taken);
        for (int64_t i = 0; i < ls_shape_count(s); i++) {
            const int64_t at = place(all[l], s, i);
            REQUIRE(at >= 0 && (size_t)at < bytes && !taken[at]);
            taken[at] = true;
        }
    }
}

/* The value of a pattern with `e` exponent and `f` fraction bits, straight from the definition. */
static double value_of(unsigned pattern, int e, int f)
{
    int bias = (1 << (e - 1)) - 1;
    int exponent = (int)(pattern >> f) & ((1 << e) - 1);
    int fraction = (int)pattern & ((1 << f) - 1);
    double sign = pattern >> 15 ? -1 : 1;
    if (exponent == (1 << e) - 1) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(fraction, 1 - bias - f);
    return sign * ldexp((1 << f) + fraction, exponent - bias - f);
}

typedef struct format {
    int e, f;
    uint16_t (*from)(float);
    float (*to)(uint16_t);
} format;

/* Checks one pattern: its value, its way back, and the rounding of what lies between it and the next one.
 * Returns what went wrong, or NULL. */
static const char *pattern_fault(const format *fm, unsigned p)
{
    uint16_t h = (uint16_t)p;
    double value = value_of(p, fm->e, fm->f);
    float x = fm->to(h);
    if (isnan(value)) {
        if (!isnan(x)) return "NaN became a number";
        return isnan(fm->to(fm->from(x))) ? NULL : "NaN was lost on the way back";
    }
    if ((double)x != value || !signbit(x) != !signbit(value)) return "wrong value";
    if (fm->from(x) != h) return "did not come back";
    if (isinf(value)) return NULL;

    /* The next pattern away from zero; past the largest number, rounding works as if the exponent went on. */
    uint16_t up = (uint16_t)(p + 1);
    double next = value_of(up, fm->e, fm->f);
    if (isinf(next)) next = 2 * value - value_of(p - 1, fm->e, fm->f);
    float middle = (float)((value + next) / 2); /* exact: f32 has more fraction bits than either format */
    if (fm->from(middle) != (p & 1 ? up : h)) return "tie did not go to even";
    if (fm->from(nextafterf(middle, 0)) != h) return "just below the middle";
    if (fm->from(nextafterf(middle, (float)copysign(INFINITY, value))) != up) return "just above the middle";
    return NULL;
}

static void all_patterns(const format *fm)
{
    for (unsigned p = 0; p < 65536; p++) {
        const char *fault = pattern_fault(fm, p);
        if (!CHECK_EQ_STR(fault, NULL)) {
            CHECK_EQ_INT(p, -1); /* prints the pattern */
            return;
        }
    }
}

static void bf16_all_patterns(void)
{
    all_patterns(&(format){8, 7, ls_bf16_from_f32, ls_bf16_to_f32});
}

static void f16_all_patterns(void)
{
    all_patterns(&(format){5, 10, ls_f16_from_f32, ls_f16_to_f32});
}

static void extremes(void)
{
    CHECK_EQ_INT(ls_f16_from_f32(3.4e38f), 0x7c00);
    CHECK_EQ_INT(ls_f16_from_f32(-65536.0f), 0xfc00);
    CHECK_EQ_INT(ls_f16_from_f32(1e-45f), 0);
    CHECK_EQ_INT(ls_f16_from_f32(-1e-45f), 0x8000);
    /* A NaN whose payload lies only in the bits that are dropped. */
    uint32_t bits = 0x7f800001u;
    float nan;
    memcpy(&nan, &bits, sizeof nan);
    CHECK(isnan(ls_bf16_to_f32(ls_bf16_from_f32(nan))));
    CHECK(isnan(ls_f16_to_f32(ls_f16_from_f32(nan))));
}

int main(void)
{
    CHECK_RUN(dtypes);
    CHECK_RUN(shapes);
    CHECK_RUN(broadcasting);
    CHECK_RUN(layouts_allowed);
    CHECK_RUN(layouts_with_bytes);
    CHECK_RUN(layouts_lose_nothing);
    CHECK_RUN(bf16_all_patterns);
    CHECK_RUN(f16_all_patterns);
    CHECK_RUN(extremes);
    return CHECK_DONE();
}
