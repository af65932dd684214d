#include "backend/cpu/reorder_template.h"

const lsi_reorder_kernels lsi_reorder_avx2 = {block, unblock};
