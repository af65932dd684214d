/* channels_bf16_avx512.c: per-channel kernels of maps stored as bf16 for AVX-512. */
#define CHANNEL_TABLE lsi_channels_bf16_avx512
#define CHANNEL_IMPL  "bf16_avx512"
#define LSI_STORED_BF16
#include "backend/cpu/channels_template.h"
