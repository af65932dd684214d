/* b16.c: whether this processor multiplies bf16 numbers, and whether it does so where we run.
 *
 * Virtual machines may show AMX and not have it, or have it and hide the leaf that describes its tiles: bits
 * are asked first, then the system for its tile registers, and then a product is tried, with a way back where
 * the instruction turns out not to exist. */
#include "backend/cpu/b16.h"

#include <cpuid.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/cpu/isa.h"
#include "base/denormals.h"

enum {
    REQUEST_PERMISSION = 0x1023,
    TILE_DATA = 18
}; /* arch_prctl: ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */

static pthread_once_t asked = PTHREAD_ONCE_INIT;
static bool amx, avx512bf16;
static sigjmp_buf no_such_instruction;
static pthread_t asking;

static bool leaf7(int sub, unsigned *a, unsigned *b, unsigned *c, unsigned *d)
{
    return __get_cpuid_count(7, (unsigned)sub, a, b, c, d) != 0;
}

static bool shows_avx512bf16(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0;

    return __builtin_cpu_supports("avx512f") && leaf7(1, &a, &b, &c, &d) && (a & 1u << 5) != 0;
}

/* The processor has it, and the system knows its registers.  Whether it also grants them to this process is
 * seen when they are tried: not every system that does so has the call that asks for it. */
static bool shows_amx(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0, low, high;

    if (!leaf7(0, &a, &b, &c, &d) || !(d & 1u << 22) || !(d & 1u << 24)) return false;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1u << 27)) return false;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 0x60000u) != 0x60000u) return false;
    (void)syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA);
    return true;
}

/* A fault of another thread, at the same moment, is none of ours: it happens again, and ends the process. */
static void come_back(int number)
{
    if (pthread_equal(pthread_self(), asking)) siglongjmp(no_such_instruction, 1);
    signal(number, SIG_DFL);
}

/* 1.5 times 2 for each of 32, in every element. */
static bool multiplies(const lsi_b16_kernels *k)
{
    static const int64_t off[1] = {0};
    uint16_t a[16 * LSI_B16_DEEP], b[LSI_B16_BLOCK];
    float c[16 * 16];
    bool right = true;

    for (int i = 0; i < 16 * LSI_B16_DEEP; i++) a[i] = 0x3fc0;
    for (int i = 0; i < LSI_B16_BLOCK; i++) b[i] = 0x4000;
    memset(c, 0, sizeof c);
    k->begin();
    k->multiply(16, 1,
                &(lsi_b16_product){
                    .a = a, .a_off = off, .a_row = LSI_B16_DEEP, .b = b, .n_terms = 1, .c = c, .c_row = 16});
    k->end();
    for (int i = 0; i < 16 * 16; i++) right = right && c[i] == 96.0f;
    return right;
}

/* Tries the product; an instruction that is not there, or a fault of its registers, means no. */
static bool survives(const lsi_b16_kernels *k)
{
    static const int signals[] = {SIGILL, SIGSEGV, SIGBUS};
    struct sigaction before[3], ours = {.sa_handler = come_back};
    const unsigned long mode = ls_denormals_mode(); /* the system's handlers begin with its own */
    volatile bool right = false;

    asking = pthread_self();
    sigemptyset(&ours.sa_mask);
    for (int i = 0; i < 3; i++) sigaction(signals[i], &ours, &before[i]);
    if (sigsetjmp(no_such_instruction, 1) == 0) right = multiplies(k);
    for (int i = 0; i < 3; i++) sigaction(signals[i], &before[i], NULL);
    ls_denormals_take(mode);
    return right;
}

static void ask(void)
{
    avx512bf16 = shows_avx512bf16() && survives(&lsi_b16_avx512bf16);
    amx = avx512bf16 && shows_amx() && survives(&lsi_b16_amx);
}

bool lsi_has_avx512bf16(void)
{
    pthread_once(&asked, ask);
    return avx512bf16 && lsi_has_avx512() && !lsi_isa_held_back("avx512");
}

bool lsi_has_amx(void)
{
    return lsi_has_avx512bf16() && amx && !lsi_isa_held_back("avx512bf16");
}

const lsi_b16_kernels *lsi_b16_kernels_here(void)
{
    if (lsi_has_amx()) return &lsi_b16_amx;
    return lsi_has_avx512bf16() ? &lsi_b16_avx512bf16 : NULL;
}
