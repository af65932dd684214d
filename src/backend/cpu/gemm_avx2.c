/* gemm_avx2.c: the matrix product of gemm_template.h with tiles of 6 x 16: 12 of the 16 registers are sums.
 */
#define GEMM_MR 6
#include "backend/cpu/gemm_template.h"

static bool applicable(const lsi_gemm_problem *p)
{
    return lsi_gemm_is_f32(p) && lsi_has_avx2();
}

const lsi_gemm_impl lsi_gemm_avx2 = {
    .name = "avx2", .applicable = applicable, .scratch = scratch, .run = run};
