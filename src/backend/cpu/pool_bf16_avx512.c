/* pool_bf16_avx512.c: pooling of maps stored as bf16 for AVX-512. */
#define POOL_TABLE lsi_pool_bf16_avx512
#define POOL_IMPL  "bf16_avx512"
#define LSI_STORED_BF16
#include "backend/cpu/pool_template.h"
