/* move_avx512.c: conversions and transposes for AVX-512. */
#define MOVE_TABLE lsi_move_avx512
#define MOVE_IMPL  "avx512"
#include "backend/cpu/move_template.h"
