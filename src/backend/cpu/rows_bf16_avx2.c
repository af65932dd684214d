/* rows_bf16_avx2.c: functions of rows stored as bf16 for AVX2. */
#define ROW_TABLE lsi_rows_bf16_avx2
#define ROW_IMPL  "bf16_avx2"
#define LSI_STORED_BF16
#include "backend/cpu/rows_template.h"
