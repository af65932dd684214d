/* search_avx2.c: searches for AVX2. */
#define SEARCH_TABLE lsi_search_avx2
#define SEARCH_IMPL  "avx2"
#include "backend/cpu/search_template.h"
