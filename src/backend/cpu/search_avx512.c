/* search_avx512.c: searches for AVX-512. */
#define SEARCH_TABLE lsi_search_avx512
#define SEARCH_IMPL  "avx512"
#include "backend/cpu/search_template.h"
