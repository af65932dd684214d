/* rows_f16_avx2.c: functions of rows stored as f16 for AVX2. */
#define ROW_TABLE lsi_rows_f16_avx2
#define ROW_IMPL  "f16_avx2"
#define LSI_STORED_F16
#include "backend/cpu/rows_template.h"
