/* reorder_avx2.c: layout changes, compiled for AVX2. */
#include "backend/cpu/reorder_template.h"

const lsi_reorder_kernels lsi_reorder_avx2 = {block, unblock};
