/* Numbers on narrow wires: what is used on this processor gives the bits of the plain conversions. */
#include <string.h>

#include "check.h"
#include "comm/comm_internal.h"
#include "lockstep/tensor.h"

enum { PATTERNS = 1 << 16 };
static const ls_wire wires[] = {LS_WIRE_BF16, LS_WIRE_F16};
static uint16_t narrow[PATTERNS], want_narrow[PATTERNS];
static float wide[PATTERNS], want_wide[PATTERNS];

static void every_narrow_number(void)
{
    for (int w = 0; w < 2; w++) {
        for (int i = 0; i < PATTERNS; i++) {
            narrow[i] = (uint16_t)i;
            want_wide[i] = wires[w] == LS_WIRE_BF16 ? ls_bf16_to_f32(narrow[i]) : ls_f16_to_f32(narrow[i]);
        }
        memset(wide, 0x55, sizeof wide);
        lsi_narrow_loops_best(wires[w])->widen(wide, narrow, PATTERNS);
        CHECK(memcmp(wide, want_wide, sizeof wide) == 0);
    }
}

static float float_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static int narrow_differs(ls_wire wire)
{
    for (int i = 0; i < PATTERNS; i++)
        want_narrow[i] = wire == LS_WIRE_BF16 ? ls_bf16_from_f32(wide[i]) : ls_f16_from_f32(wide[i]);
    memset(narrow, 0x55, sizeof narrow);
    lsi_narrow_loops_best(wire)->narrow(narrow, wide, PATTERNS);
    return memcmp(narrow, want_narrow, sizeof narrow) != 0;
}

/* Every upper half, so every exponent and NaNs of both kinds, with lower halves around ties of both formats
 * and some in between: subnormal numbers, overflow, payloads that are in the lower half alone. */
static void wide_numbers(void)
{
    static const uint32_t lower[] = {0,      1,      0x0fff, 0x1000, 0x1001, 0x1fff, 0x2fff, 0x3000,
                                     0x3001, 0x5a5a, 0x7fff, 0x8000, 0x8001, 0xb3c4, 0xf000, 0xffff};

    for (int w = 0; w < 2; w++)
        for (size_t k = 0; k < sizeof lower / sizeof *lower; k++) {
            for (uint32_t i = 0; i < PATTERNS; i++) wide[i] = float_of(i << 16 | lower[k]);
            CHECK(!narrow_differs(wires[w]));
        }
}

/* Lengths that vectors do not fit, from any place; what lies behind stays. */
static void any_length_and_place(void)
{
    for (int i = 0; i < PATTERNS; i++) wide[i] = (float)(i - 30000) * 0.37f;
    for (int w = 0; w < 2; w++) {
        const lsi_narrow_loops *loops = lsi_narrow_loops_best(wires[w]);
        CHECK(!narrow_differs(wires[w])); /* want_narrow is filled */
        for (int at = 0; at < 9; at++)
            for (int n = 0; n < 40; n++) {
                memset(narrow, 0x55, sizeof narrow);
                memset(want_wide, 0x55, sizeof want_wide);
                loops->narrow(narrow + at, wide + 100 + at, n);
                CHECK(memcmp(narrow + at, want_narrow + 100 + at, (size_t)n * sizeof *narrow) == 0);
                CHECK(narrow[at + n] == 0x5555);
                loops->widen(want_wide + at, narrow + at, n);
                for (int i = at; i < at + n; i++)
                    CHECK(want_wide[i] ==
                          (wires[w] == LS_WIRE_BF16 ? ls_bf16_to_f32(narrow[i]) : ls_f16_to_f32(narrow[i])));
                CHECK(want_wide[at + n] == float_of(0x55555555));
            }
    }
}

int main(void)
{
    CHECK_RUN(every_narrow_number);
    CHECK_RUN(wide_numbers);
    CHECK_RUN(any_length_and_place);
    return CHECK_DONE();
}
