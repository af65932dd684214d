/* pool_bf16_avx2.c: pooling of maps stored as bf16 for AVX2. */
#define POOL_TABLE lsi_pool_bf16_avx2
#define POOL_IMPL  "bf16_avx2"
#define LSI_STORED_BF16
#include "backend/cpu/pool_template.h"
