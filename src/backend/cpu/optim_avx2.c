/* optim_avx2.c: optimiser updates for AVX2. */
#define OPTIM_TABLE lsi_optim_avx2
#define OPTIM_IMPL  "avx2"
#include "backend/cpu/optim_template.h"
