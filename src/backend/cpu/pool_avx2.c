/* pool_avx2.c: pooling for AVX2. */
#define POOL_TABLE lsi_pool_avx2
#define POOL_IMPL  "avx2"
#include "backend/cpu/pool_template.h"
