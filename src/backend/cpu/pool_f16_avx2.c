/* pool_f16_avx2.c: pooling of maps stored as f16 for AVX2. */
#define POOL_TABLE lsi_pool_f16_avx2
#define POOL_IMPL  "f16_avx2"
#define LSI_STORED_F16
#include "backend/cpu/pool_template.h"
