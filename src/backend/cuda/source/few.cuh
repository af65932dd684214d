/* few.cuh: convolutions between a map of few channels and one of many, as three kernels, behind what
 * few_source.c writes for one problem:
 *   ELEMENT                     float, or the bits of BFLOAT16 or FLOAT16
 *   EXACT                       1: f32 products are as exact as f32; 0: their operands are rounded to 19 bits
 *   H, W, F / MH, MW, M         the map with few channels, and the one with many
 *   KH, KW, STRIDE, TOP, LEFT   pixel (y, x) of many meets (y * STRIDE + ky - TOP, x * STRIDE + kx - LEFT)
 *   WEIGHT(m, f, ky, kx)        where a weight lies
 *   activate(x), BIASED         what follows on the result
 *   TO_MANY, FROM_MANY or WEIGHTS, with the tile: WARPS, BLOCKS (a processor's), and
 *     TO_MANY     ROWS of the result that a slab gives
 *     FROM_MANY   TILES of 16 pixels a warp, STAGES, STRIP columns and BAND rows of the result a block
 *     WEIGHTS     COLUMNS of 8 taps a warp, STAGES, SEGMENT pixels a stage, ROWS a block
 *
 * Every number is known to the compiler, so that the places of operands are constants and loops unroll: with
 * numbers known at run time these kernels took two to six times as long. */

struct arguments {
    const ELEMENT *few, *many, *weights, *bias; /* the pass's result is out */
    ELEMENT *out;
    float *partial;
    int n; /* samples */
};

constexpr int SIZE = (int)sizeof(ELEMENT), PER16 = 16 / SIZE, UNIT = 4 / SIZE; /* elements of 16 and 4 bytes */
constexpr bool NARROW = SIZE == 2;
constexpr int RUN = KW * F; /* elements of a tap row, which lie together */
constexpr int THREADS = WARPS * 32;
constexpr int LEAD = (PER16 - LEFT * F % PER16) % PER16; /* before a row's padding: its pixels begin at 16 bytes */

/* -- elements ---------------------------------------------------------------------------------------------
 */

static __device__ __forceinline__ float get(ELEMENT x)
{
#if defined(BFLOAT16)
    return __uint_as_float((unsigned)x << 16);
#elif defined(FLOAT16)
    float f;

    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x));
    return f;
#else
    return x;
#endif
}

static __device__ __forceinline__ ELEMENT put(float f)
{
#if defined(BFLOAT16)
    unsigned short x;

    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(x) : "f"(f));
    return x;
#elif defined(FLOAT16)
    unsigned short x;

    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(x) : "f"(f));
    return x;
#else
    return f;
#endif
}

/* The 4 bytes of elements that lie together; f32 has one of them. */
static __device__ __forceinline__ unsigned together(float low, float high)
{
    unsigned r;

#if defined(BFLOAT16)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
#elif defined(FLOAT16)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
#else
    r = __float_as_uint(low);
#endif
    return r;
}

/* -- the matrix units --------------------------------------------------------------------------------------
 *
 * A tile is 16 x 8 over k of 32 bytes: 16 elements, or 8 of f32.  Lane 4 g + t has of the result columns 2 t
 * and 2 t + 1 of rows g and g + 8; of the left operand 4 bytes at 4 t of rows g, g + 8, then both at 16 + 4 t;
 * of the right one 4 bytes at 4 t and 16 + 4 t of column g. */

static __device__ __forceinline__ unsigned rounded(unsigned x)
{
#if !defined(BFLOAT16) && !defined(FLOAT16)
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(x) : "f"(__uint_as_float(x)));
#endif
    return x;
}

static __device__ __forceinline__ unsigned rest(unsigned x, unsigned big)
{
    return rounded(__float_as_uint(__uint_as_float(x) - __uint_as_float(big)));
}

static __device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
#if defined(BFLOAT16)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
#elif defined(FLOAT16)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
#else
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
#endif
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* The left operand, ready: exact products are sums of three, of the first 11 and the next 11 bits. */
struct operand {
    unsigned big[4], small[EXACT ? 4 : 1];

    __device__ __forceinline__ void take(const unsigned (&x)[4])
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            big[i] = rounded(x[i]);
            if (EXACT) small[EXACT ? i : 0] = rest(x[i], big[i]);
        }
    }
};

/* d += a * b.  Weights are rounded where they are packed, unless the products are exact. */
static __device__ __forceinline__ void add_product(float (&d)[4], const operand &a, unsigned b0, unsigned b1)
{
#if EXACT
    const unsigned big0 = rounded(b0), big1 = rounded(b1);

    multiply(d, a.small, big0, big1);
    multiply(d, a.big, rest(b0, big0), rest(b1, big1));
    multiply(d, a.big, big0, big1);
#else
    multiply(d, a.big, b0, b1);
#endif
}

/* -- memory ------------------------------------------------------------------------------------------------
 */

static __device__ __forceinline__ unsigned shared(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

/* Four 8 x 16 bytes; lane l gives the address of row l % 8 of the (l / 8)th. */
static __device__ __forceinline__ void load_matrix(unsigned (&r)[4], unsigned at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}
static __device__ __forceinline__ void load_turned(unsigned (&r)[4], unsigned at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

/* BYTES from memory, or zeros, by themselves. */
template <int BYTES> static __device__ __forceinline__ void copy(unsigned to, const void *from, bool ok)
{
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(ok ? 16 : 0)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(BYTES),
                     "r"(ok ? BYTES : 0)
                     : "memory");
}
static __device__ __forceinline__ void commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int LEFT_OVER> static __device__ __forceinline__ void wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT_OVER) : "memory");
}

static __device__ __forceinline__ void clear(char *memory, int bytes)
{
    for (int i = threadIdx.x; i < bytes / 16; i += THREADS) ((uint4 *)memory)[i] = make_uint4(0, 0, 0, 0);
}

/* Rows iy..iy+count-1 of a sample of the map with few channels to a ring of rows, `slot` first; zeros where
 * there is none.  A row's element (x, f) is at LEAD + (x + LEFT) * F + f; padding is left alone. */
template <int PITCH, int RING>
static __device__ __forceinline__ void load_rows(const ELEMENT *few, int n, int iy, int count, ELEMENT *rows,
                                                 int slot)
{
    constexpr int LENGTH = W * F, BYTES = LENGTH * SIZE;
    constexpr int EACH = BYTES % 16 == 0 ? 16 : BYTES % 8 == 0 ? 8 : 4, PIECES = BYTES / EACH;

    if (BYTES % 4 != 0) {
        for (int i = threadIdx.x; i < count * LENGTH; i += THREADS) {
            const int r = i / LENGTH, e = i % LENGTH, y = iy + r;
            rows[(slot + r) % RING * PITCH + LEAD + LEFT * F + e] =
                y >= 0 && y < H ? few[((long long)n * H + y) * LENGTH + e] : put(0.0f);
        }
        return;
    }
    for (int i = threadIdx.x; i < count * PIECES; i += THREADS) {
        const int r = i / PIECES, e = i % PIECES * (EACH / SIZE), y = iy + r;
        const bool ok = y >= 0 && y < H;
        copy<EACH>(shared(rows + (slot + r) % RING * PITCH + LEAD + LEFT * F + e),
                   few + ((long long)n * H + (ok ? y : 0)) * LENGTH + e, ok);
    }
}

static __device__ __forceinline__ float weight(const ELEMENT *w, int m, int f, int ky, int kx)
{
    return get(w[WEIGHT(m, f, ky, kx)]);
}

/* Elements of k as the matrix units have them. */
static __device__ __forceinline__ unsigned packed(float low, float high)
{
    return EXACT ? together(low, high) : rounded(together(low, high));
}

extern __shared__ __align__(128) char memory[];
