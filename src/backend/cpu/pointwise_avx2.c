/* pointwise_avx2.c: element-wise functions for AVX2. */
#define PW_TABLE lsi_pw_avx2
#define PW_IMPL  "avx2"
#include "backend/cpu/pointwise_template.h"
