/* rows_avx512.c: functions of rows for AVX-512. */
#define ROW_TABLE lsi_rows_avx512
#define ROW_IMPL  "avx512"
#include "backend/cpu/rows_template.h"
