/* conv_few_avx512.c: the kernels of conv_few.h with 32 registers of 16 floats. */
#define WIDE_T      14
#define WIDE_NV     2
#define WEIGHTS_KW  7
#define WEIGHTS_NV  4
#define THIN_KH     7
#define THIN_NB_MAX 4
#include "backend/cpu/conv_few_template.h"

const lsi_few_kernels lsi_few_avx512 = {lsi_has_avx512, can, scratch_floats, to_wide, to_thin, weights};
