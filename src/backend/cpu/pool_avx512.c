/* pool_avx512.c: pooling for AVX-512. */
#define POOL_TABLE lsi_pool_avx512
#define POOL_IMPL  "avx512"
#include "backend/cpu/pool_template.h"
