/* isa.h: which vector instructions to use; asked before any *_avx512.c or *_avx2.c code is called.
 *
 * The answer is what the processor can do, unless LOCKSTEP_CPU_ISA in the environment holds something back:
 * "avx512bf16" leaves AMX unused, "avx512" also products of bf16 numbers (b16.h), "avx2" all of AVX-512,
 * "none" everything.  That is for tests and comparisons. */
#ifndef LS_BACKEND_CPU_ISA_H
#define LS_BACKEND_CPU_ISA_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool lsi_isa_held_back(const char *to)
{
    const char *limit = getenv("LOCKSTEP_CPU_ISA");

    return limit != NULL && strcmp(limit, to) == 0;
}

/* The flags are those the build gives to files named *_avx512.c. */
static inline bool lsi_has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("fma") &&
           !lsi_isa_held_back("avx2") && !lsi_isa_held_back("none");
}

static inline bool lsi_has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && !lsi_isa_held_back("none");
}

#endif
