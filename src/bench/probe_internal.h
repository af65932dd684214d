/* probe_internal.h: loops for each instruction set.  Each makes `rounds` rounds and returns something that
 * depends on all of them, so that none can be left out. */
#ifndef LS_BENCH_PROBE_INTERNAL_H
#define LS_BENCH_PROBE_INTERNAL_H

#include <stdint.h>

float lsi_probe_fma_avx512(int64_t rounds);
float lsi_probe_fma_avx2(int64_t rounds);
float lsi_probe_fma_c(int64_t rounds);

/* Multiply-adds in one round. */
#define LSI_PROBE_CHAINS                                                                                     \
    24 /* enough independent chains to hide the latency on any core; fits 32 registers                       \
        */
#define LSI_FMA_AVX512 (LSI_PROBE_CHAINS * 16)
#define LSI_FMA_AVX2   (12 * 8) /* 16 registers only */
#define LSI_FMA_C      4

#endif
