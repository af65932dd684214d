/* rows_avx2.c: functions of rows for AVX2. */
#define ROW_TABLE lsi_rows_avx2
#define ROW_IMPL  "avx2"
#include "backend/cpu/rows_template.h"
