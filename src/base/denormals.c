/* denormals.c: the bits of the processors that have them. */
#include "base/denormals.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define FLUSH 0x8040u /* MXCSR: flush to zero, denormals are zero */

unsigned long ls_denormals_mode(void)
{
    return _mm_getcsr() & ~0x3fu; /* without the flags of what has happened */
}

void ls_denormals_take(unsigned long mode)
{
    const unsigned have = _mm_getcsr();

    if ((have & ~0x3fu) != mode) _mm_setcsr((unsigned)mode | (have & 0x3fu));
}

void ls_denormals_flush(void)
{
    ls_denormals_take(ls_denormals_mode() | FLUSH);
}

#elif defined(__aarch64__)

#define FLUSH (1ul << 24) /* FPCR: FZ */

unsigned long ls_denormals_mode(void)
{
    unsigned long mode;

    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}

void ls_denormals_take(unsigned long mode)
{
    if (ls_denormals_mode() != mode) __asm__ volatile("msr fpcr, %0" : : "r"(mode));
}

void ls_denormals_flush(void)
{
    ls_denormals_take(ls_denormals_mode() | FLUSH);
}

#else

unsigned long ls_denormals_mode(void)
{
    return 0;
}

void ls_denormals_take(unsigned long mode)
{
    (void)mode;
}

void ls_denormals_flush(void)
{
}

#endif
