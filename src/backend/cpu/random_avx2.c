/* random_avx2.c: random words for AVX2. */
#define RANDOM_TABLE lsi_random_avx2
#define RANDOM_IMPL  "avx2"
#include "backend/cpu/random_template.h"
