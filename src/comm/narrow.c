/* narrow.c: numbers as they travel on narrow wires: 16 bits each, to nearest, ties to even; a NaN stays one.
 */
#include "comm/comm_internal.h"
#include "lockstep/tensor.h"

static void to_bf16(uint16_t *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = ls_bf16_from_f32(from[i]);
}

static void of_bf16(float *to, const uint16_t *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = ls_bf16_to_f32(from[i]);
}

static void to_f16(uint16_t *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = ls_f16_from_f32(from[i]);
}

static void of_f16(float *to, const uint16_t *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = ls_f16_to_f32(from[i]);
}

static const lsi_narrow_loops bf16 = {to_bf16, of_bf16}, f16 = {to_f16, of_f16};

const lsi_narrow_loops *lsi_narrow_loops_plain(ls_wire wire)
{
    return wire == LS_WIRE_BF16 ? &bf16 : wire == LS_WIRE_F16 ? &f16 : NULL;
}

const lsi_narrow_loops *lsi_narrow_loops_best(ls_wire wire)
{
    const lsi_narrow_loops *plain = lsi_narrow_loops_plain(wire);

    /* The flags are those the build gives to files named *_avx2.c; f16c is older than these. */
    if (plain == NULL || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return plain;
    return wire == LS_WIRE_BF16 ? &lsi_narrow_bf16_avx2 : &lsi_narrow_f16_avx2;
}
