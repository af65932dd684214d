/* sum_template.h: the loops of sum.c, compiled once for every instruction set; defines SUM_LOOPS.
 *
 * Products are rounded before they are added (the build forbids contraction), so every set gives the same
 * bits. */
#include "comm/comm_internal.h"

static void scale(float *restrict out, const float *restrict a, float w, int64_t n)
{
    for (int64_t i = 0; i < n; i++) out[i] = w * a[i];
}

static void pair(float *restrict out, const float *restrict a, float wa, const float *restrict b, float wb,
                 int64_t n)
{
    for (int64_t i = 0; i < n; i++) out[i] = wa * a[i] + wb * b[i];
}

static void add_scaled(float *restrict to, const float *restrict a, float w, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = to[i] + w * a[i];
}

static void add(float *restrict to, const float *restrict a, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = to[i] + a[i];
}

const lsi_sum_loops SUM_LOOPS = {scale, pair, add_scaled, add, scale, pair};
