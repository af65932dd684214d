/* pointwise_avx512.c: element-wise functions for AVX-512. */
#define PW_TABLE lsi_pw_avx512
#define PW_IMPL  "avx512"
#include "backend/cpu/pointwise_template.h"
