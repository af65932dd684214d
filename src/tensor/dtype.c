/* dtype.c: element types, and the 16-bit floating-point formats in software. */
#include <string.h>

#include "lockstep/tensor.h"

static const struct {
    const char *name;
    size_t size;
    bool is_float;
} dtypes[LS_DTYPE_N] = {
    [LS_F32] = {"f32", 4, true},    [LS_BF16] = {"bf16", 2, true}, [LS_F16] = {"f16", 2, true},
    [LS_F64] = {"f64", 8, true},    [LS_I32] = {"i32", 4, false},  [LS_U8] = {"u8", 1, false},
    [LS_BOOL] = {"bool", 1, false},
};

static void check_dtype(ls_dtype t)
{
    LS_BUG_IF((int)t < 0 || t >= LS_DTYPE_N);
}

const char *ls_dtype_name(ls_dtype t)
{
    check_dtype(t);
    return dtypes[t].name;
}

size_t ls_dtype_size(ls_dtype t)
{
    check_dtype(t);
    return dtypes[t].size;
}

bool ls_dtype_is_float(ls_dtype t)
{
    check_dtype(t);
    return dtypes[t].is_float;
}

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* bf16 is the upper half of an f32. */
uint16_t ls_bf16_from_f32(float x)
{
    uint32_t u = bits_of(x);
    /* A NaN whose payload is all in the lower half would round to infinity; set the quiet bit instead. */
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((u >> 16) | 0x0040u);
    /* Adding 0x7fff rounds to nearest; the lowest kept bit breaks ties towards even.  Overflow gives
     * infinity. */
    u += 0x7fffu + ((u >> 16) & 1u);
    return (uint16_t)(u >> 16);
}

float ls_bf16_to_f32(uint16_t x)
{
    return float_of((uint32_t)x << 16);
}

/* f16: 1 sign bit, 5 exponent bits (bias 15), 10 fraction bits. */
uint16_t ls_f16_from_f32(float x)
{
    uint32_t u = bits_of(x), sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | ((magnitude >> 13) & 0x1ffu));
    if (magnitude >= 0x47800000u) return (uint16_t)(sign | 0x7c00u); /* 65536 and above */
    if (magnitude < 0x38800000u) {
        /* Below 2^-14 the result is subnormal: a multiple of 2^-24.  Adding 0.5 puts that unit at the last
         * bit of an f32, and the processor's own rounding does the rest. */
        float shifted = float_of(magnitude) + 0.5f;
        return (uint16_t)(sign | (bits_of(shifted) - bits_of(0.5f)));
    }
    uint32_t rebiased = magnitude - ((127u - 15u) << 23);
    rebiased += 0xfffu + ((rebiased >> 13) & 1u); /* may carry into infinity, which is right from 65520 on */
    return (uint16_t)(sign | (rebiased >> 13));
}

float ls_f16_to_f32(uint16_t x)
{
    uint32_t sign = (uint32_t)(x & 0x8000u) << 16, exponent = (x >> 10) & 0x1fu, fraction = x & 0x3ffu;
    if (exponent == 0) { /* zero or subnormal: fraction * 2^-24, exact in f32 */
        float value = (float)fraction * 0x1p-24f;
        return float_of(bits_of(value) | sign);
    }
    if (exponent == 31) return float_of(sign | 0x7f800000u | (fraction << 13));
    return float_of(sign | ((exponent + 127u - 15u) << 23) | (fraction << 13));
}
