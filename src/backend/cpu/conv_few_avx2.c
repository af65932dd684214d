/* conv_few_avx2.c: the kernels of conv_few.h with 16 registers of 8 floats. */
#define WIDE_T      6
#define WIDE_NV     2
#define WEIGHTS_KW  6
#define WEIGHTS_NV  2
#define THIN_KH     7
#define THIN_NB_MAX 4
#include "backend/cpu/conv_few_template.h"

const lsi_few_kernels lsi_few_avx2 = {lsi_has_avx2, can, scratch_floats, to_wide, to_thin, weights};
