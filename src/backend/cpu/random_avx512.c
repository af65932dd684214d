/* random_avx512.c: random words for AVX-512. */
#define RANDOM_TABLE lsi_random_avx512
#define RANDOM_IMPL  "avx512"
#include "backend/cpu/random_template.h"
