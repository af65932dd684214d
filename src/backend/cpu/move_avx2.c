/* move_avx2.c: conversions and transposes for AVX2. */
#define MOVE_TABLE lsi_move_avx2
#define MOVE_IMPL  "avx2"
#include "backend/cpu/move_template.h"
