/* conv_kernels_avx512.c: the convolution kernels compiled for AVX-512F (the build passes the flags for this
 * file only). */
#include "backend/cpu/conv_gemm_kernel.h"
#include "backend/cpu/conv_wino_kernel.h"
#include "backend/cpu/conv_wino_row_kernel.h"

const lsi_conv_kernels lsi_conv_kernels_avx512 = {
    .name = "avx512",
    .rows_max = ROWS_MAX,
    .blocks_max = BLOCKS_MAX,
    .gemm_rows = gemm_rows,
    .gemm_outer = gemm_outer,
    .finish = finish,
    .transpose_in = transpose_in,
    .transpose_cols = transpose_cols,
    .transpose_out = transpose_out,
    .wino_fill = wino_fill,
    .wino = {&wino_4x4_3x3, &wino_6_3, &wino_4_5},
};
