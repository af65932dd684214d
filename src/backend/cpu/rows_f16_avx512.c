/* rows_f16_avx512.c: functions of rows stored as f16 for AVX-512. */
#define ROW_TABLE lsi_rows_f16_avx512
#define ROW_IMPL  "f16_avx512"
#define LSI_STORED_F16
#include "backend/cpu/rows_template.h"
