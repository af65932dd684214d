/* test_b16_emulated.c: test_b16.c on a processor that has AVX-512 and no instructions for bf16 numbers: the
 * kernels are those of the backend, compiled with b16_emulated.h, by tiles and by pairs. */
#define MIX_STRIDE 4
#define main       test_main
#include "test_b16.c"
#undef main

#include "backend/cpu/isa.h"

static const lsi_b16_kernels *here;

/* In the place of b16.c, which asks the processor. */
bool lsi_has_amx(void)
{
    return here == &lsi_b16_amx;
}
bool lsi_has_avx512bf16(void)
{
    return true;
}
const lsi_b16_kernels *lsi_b16_kernels_here(void)
{
    return here;
}

int main(void)
{
    int failed = 0;

    if (!lsi_has_avx512()) {
        printf("skipped: this processor has no AVX-512\n");
        return 77;
    }
    here = &lsi_b16_avx512bf16;
    failed |= test_main();
    here = &lsi_b16_amx;
    return failed | test_main();
}
