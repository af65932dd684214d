/* optim_avx512.c: optimiser updates for AVX-512. */
#define OPTIM_TABLE lsi_optim_avx512
#define OPTIM_IMPL  "avx512"
#include "backend/cpu/optim_template.h"
