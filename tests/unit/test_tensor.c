/* Element types, shapes, layouts, and both 16-bit formats over all their patterns. */
#include <math.h>
#include <string.h>

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

static void layouts(void)
{
    CHECK_EQ_STR(ls_layout_name(LS_LAYOUT_PLAIN), "plain");
    CHECK_EQ_STR(ls_layout_name(LS_LAYOUT_C16), "c16");
    CHECK(ls_layout_allowed(LS_LAYOUT_PLAIN, LS_BOOL, LS_SHAPE_SCALAR));
    CHECK(ls_layout_allowed(LS_LAYOUT_C16, LS_F32, LS_SHAPE(1, 32, 7, 7)));
    CHECK(!ls_layout_allowed(LS_LAYOUT_C16, LS_F32, LS_SHAPE(1, 24, 7, 7)));
    CHECK(!ls_layout_allowed(LS_LAYOUT_C16, LS_F32, LS_SHAPE(1, 0, 7, 7)));
    CHECK(!ls_layout_allowed(LS_LAYOUT_C16, LS_F32, LS_SHAPE(1, 32, 7)));
    CHECK(!ls_layout_allowed(LS_LAYOUT_C16, LS_I32, LS_SHAPE(1, 32, 7, 7)));
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
    CHECK_RUN(layouts);
    CHECK_RUN(bf16_all_patterns);
    CHECK_RUN(f16_all_patterns);
    CHECK_RUN(extremes);
    return CHECK_DONE();
}
