/* conv_kernels.c: which instruction set the convolution kernels use. */
#include "backend/cpu/conv_kernels.h"

#include "backend/cpu/isa.h"

const lsi_conv_kernels *lsi_conv_kernels_get(void)
{
    if (lsi_has_avx512()) return &lsi_conv_kernels_avx512;
    if (lsi_has_avx2()) return &lsi_conv_kernels_avx2;
    return NULL;
}
