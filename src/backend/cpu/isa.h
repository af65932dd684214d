/* isa.h: what the processor we run on can do; asked before any *_avx512.c or *_avx2.c code is called. */
#ifndef LS_BACKEND_CPU_ISA_H
#define LS_BACKEND_CPU_ISA_H

#include <stdbool.h>

/* The flags are those the build gives to files named *_avx512.c. */
static inline bool lsi_has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("fma");
}

static inline bool lsi_has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

#endif
