/* channels_avx2.c: per-channel kernels for AVX2. */
#define CHANNEL_TABLE lsi_channels_avx2
#define CHANNEL_IMPL  "avx2"
#include "backend/cpu/channels_template.h"
