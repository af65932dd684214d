/* conv_kernels.c: which instruction set the convolution kernels use. */
#include "backend/cpu/conv_kernels.h"

#include <stdlib.h>
#include <string.h>

#include "backend/cpu/isa.h"

const lsi_conv_kernels *lsi_conv_kernels_get(void)
{
    const char *limit = getenv("LOCKSTEP_CPU_ISA");
    const bool none = limit && strcmp(limit, "none") == 0;
    const bool avx2_only = limit && strcmp(limit, "avx2") == 0;

    if (none) return NULL;
    if (!avx2_only && lsi_has_avx512()) return &lsi_conv_kernels_avx512;
    if (lsi_has_avx2()) return &lsi_conv_kernels_avx2;
    return NULL;
}
