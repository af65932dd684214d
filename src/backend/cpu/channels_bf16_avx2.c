/* channels_bf16_avx2.c: per-channel kernels of maps stored as bf16 for AVX2. */
#define CHANNEL_TABLE lsi_channels_bf16_avx2
#define CHANNEL_IMPL  "bf16_avx2"
#define LSI_STORED_BF16
#include "backend/cpu/channels_template.h"
