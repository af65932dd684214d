/* channels_f16_avx512.c: per-channel kernels of maps stored as f16 for AVX-512. */
#define CHANNEL_TABLE lsi_channels_f16_avx512
#define CHANNEL_IMPL  "f16_avx512"
#define LSI_STORED_F16
#include "backend/cpu/channels_template.h"
