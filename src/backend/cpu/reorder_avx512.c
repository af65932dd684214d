/* reorder_avx512.c: layout changes, compiled for AVX-512. */
#include "backend/cpu/reorder_template.h"

const lsi_reorder_kernels lsi_reorder_avx512 = {block, unblock};
