/* conv_kernels.c: which instruction set the convolution kernels use. */
#include "backend/cpu/conv_kernels.h"

#include <stdlib.h>
#include <string.h>

/* What the build's flags for *_avx512.c and *_avx2.c let the compiler use. */
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd");
}

const lsi_conv_kernels *lsi_conv_kernels_get(void)
{
    const char *limit = getenv("LOCKSTEP_CPU_ISA");
    const bool none = limit && strcmp(limit, "none") == 0;
    const bool avx2_only = limit && strcmp(limit, "avx2") == 0;

    if (none) return NULL;
    if (!avx2_only && has_avx512()) return &lsi_conv_kernels_avx512;
    if (has_avx2()) return &lsi_conv_kernels_avx2;
    return NULL;
}
