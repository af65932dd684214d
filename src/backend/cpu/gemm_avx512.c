/* gemm_avx512.c: the matrix product of gemm_template.h with tiles of 14 x 32: 28 of the 32 registers are
 * sums. */
#define GEMM_MR 14
#include "backend/cpu/gemm_template.h"

static bool applicable(const lsi_gemm_problem *p)
{
    return lsi_gemm_is_f32(p) && lsi_has_avx512();
}

const lsi_gemm_impl lsi_gemm_avx512 = {
    .name = "avx512", .applicable = applicable, .scratch = scratch, .run = run};
