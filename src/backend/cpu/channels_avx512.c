/* channels_avx512.c: per-channel kernels for AVX-512. */
#define CHANNEL_TABLE lsi_channels_avx512
#define CHANNEL_IMPL  "avx512"
#include "backend/cpu/channels_template.h"
