/* region_on_host.h: runs the generated kernels of a region on the host, thread by thread, for tests without a
 * GPU.  It stands in front of the generated source, which is then C++ of the host.
 *
 * Every thread of a block is a fibre that runs until it waits: for its block or its warp.  What
 * runs first is turned round by a second argument, so that a missing barrier gives other numbers.  Shared
 * memory begins as NaN.
 *
 *   PROGRAM FILE [turned]: FILE holds numbers (int32): blocks, threads, finish blocks, floats of parts, of
 *   spills, samples, pointers; of each pointer its bytes and whether it is an input; then the inputs'
 *   bytes.  The outputs' bytes are written to FILE.out. */
#define LSI_ON_HOST
#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__
#define LSI_SHARED static

struct float2 {
    float x, y;
};
struct float4 {
    float x, y, z, w;
};
struct triple {
    unsigned x, y, z;
};
static triple threadIdx, blockIdx;
float4 memory[65536]; /* 1 MiB */

static float __uint_as_float(unsigned x)
{
    float f;
    memcpy(&f, &x, 4);
    return f;
}
static unsigned __float_as_uint(float f)
{
    unsigned x;
    memcpy(&x, &f, 4);
    return x;
}
static float __int_as_float(int x)
{
    return __uint_as_float((unsigned)x);
}
static unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}

/* -- fibres -----------------------------------------------------------------------------------------------
 */

enum { STACK = 1 << 17, MOST = 1024 };
struct group { /* who waits for one another */
    int size, come;
    unsigned turn;
};
struct fibre {
    ucontext_t context; /* it begins with this, and goes on by a jump, which takes no call of the system */
    jmp_buf place;
    char *stack;
    bool begun, over;
    const group *waits; /* NULL: it can run */
    unsigned turn;
};
static fibre fibres[MOST];
static jmp_buf host;
static group block_group, warp_groups[MOST / 32];
static int n_threads;
static void (*body)();

static void wait_for(group *g)
{
    fibre *f = &fibres[threadIdx.x];
    const unsigned me = threadIdx.x;

    if (++g->come == g->size) {
        g->come = 0;
        g->turn++;
        return;
    }
    f->waits = g;
    f->turn = g->turn;
    if (_setjmp(f->place) == 0) _longjmp(host, 1);
    threadIdx.x = me;
}

static void start()
{
    body();
    fibres[threadIdx.x].over = true;
    _longjmp(host, 1);
}

static void go_on(fibre *f)
{
    if (_setjmp(host) != 0) return;
    if (f->begun) _longjmp(f->place, 1);
    f->begun = true;
    setcontext(&f->context);
}

static void run_block(bool turned)
{
    block_group = {n_threads, 0, 0};
    for (int i = 0; i < n_threads / 32; i++) warp_groups[i] = {32, 0, 0};
    for (int i = 0; i < n_threads; i++) {
        fibre *f = &fibres[i];
        if (f->stack == NULL) f->stack = (char *)malloc(STACK);
        f->begun = f->over = false;
        f->waits = NULL;
        getcontext(&f->context);
        f->context.uc_stack.ss_sp = f->stack;
        f->context.uc_stack.ss_size = STACK;
        f->context.uc_link = NULL;
        makecontext(&f->context, start, 0);
    }
    for (bool any = true; any;) {
        any = false;
        for (int k = 0; k < n_threads; k++) {
            const int i = turned ? n_threads - 1 - k : k;
            fibre *f = &fibres[i];
            if (f->over || (f->waits != NULL && f->waits->turn == f->turn)) continue;
            f->waits = NULL;
            threadIdx.x = (unsigned)i;
            go_on(f);
            any = true;
        }
    }
    for (int i = 0; i < n_threads; i++)
        if (!fibres[i].over) {
            printf("thread %d waits for ever\n", i);
            exit(1);
        }
}

/* -- what the sources call --------------------------------------------------------------------------------
 */

static void __syncthreads()
{
    wait_for(&block_group);
}
static void barrier()
{
    wait_for(&block_group);
}
static group *warp()
{
    return &warp_groups[threadIdx.x / 32];
}
static float shown[MOST];
static float __shfl_xor_sync(unsigned, float x, int far)
{
    shown[threadIdx.x] = x;
    wait_for(warp());
    const float y = shown[threadIdx.x ^ (unsigned)far];
    wait_for(warp());
    return y;
}
static bool __all_sync(unsigned, bool x)
{
    bool all = true;
    shown[threadIdx.x] = x ? 1.0f : 0.0f;
    wait_for(warp());
    for (int i = 0; i < 32; i++) all = all && shown[threadIdx.x / 32 * 32 + (unsigned)i] != 0.0f;
    wait_for(warp());
    return all;
}
/* To the nearest with 10 bits behind the point, ties away from zero. */
static unsigned lsi_tf32(float x)
{
    return (__float_as_uint(x) + 0x1000u) & ~0x1fffu;
}
static unsigned operands[MOST][6];
static void lsi_mma(float (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                    unsigned b1)
{
    const unsigned lane = threadIdx.x % 32, base = threadIdx.x - lane, g = lane / 4, t = lane % 4;
    const unsigned mine[6] = {a0, a1, a2, a3, b0, b1};
    memcpy(operands[threadIdx.x], mine, sizeof mine);
    wait_for(warp());
    for (unsigned i = 0; i < 4; i++) {
        const unsigned row = g + i / 2 * 8, column = 2 * t + i % 2;
        for (unsigned k = 0; k < 8; k++)
            c[i] += __uint_as_float(operands[base + row % 8 * 4 + k % 4][row / 8 + k / 4 * 2]) *
                    __uint_as_float(operands[base + column * 4 + k % 4][4 + k / 4]);
    }
    wait_for(warp());
}
static void lsi_mma_four(float (&c)[4], unsigned a0, unsigned a1, unsigned b0)
{
    lsi_mma(c, a0, a1, 0, 0, b0, 0);
}
static void copy_one(float *to, const float *from)
{
    *to = *from;
}
static void copy_two(float *to, const float *from)
{
    memcpy(to, from, 8);
}
static void copy_four(float *to, const float *from)
{
    memcpy(to, from, 16);
}
static void bundle()
{
}
static void arrived()
{
}
static void arrived_but_one()
{
}

/* -- the program ------------------------------------------------------------------------------------------
 */

struct pointers;
static void run_region(const pointers &p, int blocks, int threads, int finish_blocks, bool turned);

static int32_t number(FILE *f)
{
    int32_t x = 0;
    if (fread(&x, 4, 1, f) != 1) exit(2);
    return x;
}

#define LSI_MAIN                                                                                             \
    static const pointers *given;                                                                            \
    static void call_region()                                                                                \
    {                                                                                                        \
        region(*given);                                                                                      \
    }                                                                                                        \
    static void call_finish()                                                                                \
    {                                                                                                        \
        finish(*given);                                                                                      \
    }                                                                                                        \
    int main(int argc, char **argv)                                                                          \
    {                                                                                                        \
        FILE *f = fopen(argv[1], "rb");                                                                      \
        if (f == NULL) return 2;                                                                             \
        const int blocks = number(f), threads = number(f), finish_blocks = number(f), parts = number(f),     \
                  spills = number(f), samples = number(f), n = number(f);                                    \
        std::vector<int32_t> bytes, input;                                                                   \
        pointers p = {};                                                                                     \
        for (int i = 0; i < n; i++) {                                                                        \
            bytes.push_back(number(f));                                                                      \
            input.push_back(number(f));                                                                      \
            p.at[i] = aligned_alloc(64, ((size_t)bytes[i] + 127) / 64 * 64);                                 \
            memset(p.at[i], 0xff, ((size_t)bytes[i] + 127) / 64 * 64);                                       \
        }                                                                                                    \
        for (int i = 0; i < n; i++)                                                                          \
            if (input[i] && fread(p.at[i], 1, (size_t)bytes[i], f) != (size_t)bytes[i]) return 2;            \
        fclose(f);                                                                                           \
        std::vector<float> part((size_t)parts + 1, NAN), spill((size_t)spills + 1, NAN);                     \
        p.parts = part.data();                                                                               \
        p.spills = spill.data();                                                                             \
        p.samples = samples;                                                                                 \
        p.blocks = blocks;                                                                                   \
        given = &p;                                                                                          \
        for (int b = 0; b < blocks; b++) {                                                                   \
            memset(memory, 0xff, sizeof memory);                                                             \
            blockIdx.x = (unsigned)b;                                                                        \
            n_threads = threads;                                                                             \
            body = call_region;                                                                              \
            run_block(argc > 2);                                                                             \
        }                                                                                                    \
        for (int b = 0; b < finish_blocks; b++) {                                                            \
            blockIdx.x = (unsigned)b;                                                                        \
            n_threads = FINISH;                                                                              \
            body = call_finish;                                                                              \
            run_block(argc > 2);                                                                             \
        }                                                                                                    \
        char name[4096];                                                                                     \
        snprintf(name, sizeof name, "%s.out", argv[1]);                                                      \
        f = fopen(name, "wb");                                                                               \
        for (int i = 0; i < n; i++)                                                                          \
            if (!input[i]) fwrite(p.at[i], 1, (size_t)bytes[i], f);                                          \
        return fclose(f);                                                                                    \
    }
