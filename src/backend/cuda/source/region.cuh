/* region.cuh: what kernels of regions are made of, in front of what region_source.c writes.
 *
 * A block computes one sample after another.  What a sample's nodes make lies in shared memory as a `map`
 * says; every node is one call of a function below, in which all threads take part, and barriers stand
 * between.  What is summed over samples stays in registers until the block has no more samples, and leaves as
 * its part of the sum (region_finish.cuh).  Before this file stand
 *   THREADS   of a block
 *   ROUNDED   products round their operands to tf32; else each is three products of rounded parts, which
 *             leaves an error of about 2^-21 of the product
 * With LSI_ON_HOST, which tests define, the host has functions in the place of instructions. */

#define WARPS  (THREADS / 32)
#define ME     threadIdx.x
#define INLINE static __device__ __forceinline__

#ifndef LSI_ON_HOST
INLINE void barrier()
{
    __syncthreads();
}

INLINE unsigned lsi_tf32(float x)
{
    unsigned bits;

    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

/* c += a * b: 16 x 8 by 8 x 8, spread over the lanes of a warp. */
INLINE void lsi_mma(float (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                    unsigned b1)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/* The same of 16 x 4 by 4 x 8. */
INLINE void lsi_mma_four(float (&c)[4], unsigned a0, unsigned a1, unsigned b0)
{
    asm("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(b0));
}

/* Copies that run by themselves, of one float, two or four that are aligned.  A thread's copies before
 * `bundle` are one bundle: `arrived` waits for all, `arrived_but_one` for all but the last bundle. */
INLINE void copy_one(float *to, const float *from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                 "l"(from));
}

INLINE void copy_two(float *to, const float *from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                 "l"(from));
}

INLINE void copy_four(float *to, const float *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                 "l"(from));
}

INLINE void bundle()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

INLINE void arrived()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

INLINE void arrived_but_one()
{
    asm volatile("cp.async.wait_group 1;" ::: "memory");
}
#endif

/* -- where a sample's value lies ---------------------------------------------------------------------------
 * Element (c, y, x) is at FIRST + c * PLANE + y * ROW + x; around every image there may be zeros.  KEPT: what
 * products read of it has been rounded for them: when it was stored, or afterwards. */
enum { AS_IT_IS, WHEN_STORED, AFTERWARDS };

template <int FIRST_, int C_, int H_, int W_, int PLANE_, int ROW_, int TOP_ = 0, int LEFT_ = 0,
          int KEPT_ = AS_IT_IS>
struct map {
    static constexpr int FIRST = FIRST_, C = C_, H = H_, W = W_, PLANE = PLANE_, ROW = ROW_, TOP = TOP_,
                         LEFT = LEFT_, COUNT = C * H * W;
    static constexpr bool FLAT = PLANE == H * W && ROW == W, READY = KEPT_ != AS_IT_IS;
    /* Pixel r of channel c, and element i of all. */
    INLINE int of(int c, int r)
    {
        return FIRST + c * PLANE + (ROW == W ? r : r / W * ROW + r % W);
    }
    INLINE int at(int i)
    {
        return FLAT ? FIRST + i : of(i / (H * W), i % (H * W));
    }
    INLINE float kept(float x)
    {
        return KEPT_ == WHEN_STORED ? __uint_as_float(lsi_tf32(x)) : x;
    }
};

/* put(i, value(i)) for a thread's elements, ME, ME + THREADS, and so on.  Several values are found before the
 * first is put, so that loads do not wait for one another. */
template <int COUNT, class V, class P> INLINE void each(V value, P put)
{
    constexpr int ROUNDS = (COUNT + THREADS - 1) / THREADS, AT_ONCE = ROUNDS < 6 ? ROUNDS : 6;

#pragma unroll 1
    for (int first = ME; first < COUNT; first += AT_ONCE * THREADS) {
        decltype(value(0)) x[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (first + k * THREADS < COUNT) x[k] = value(first + k * THREADS);
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (first + k * THREADS < COUNT) put(first + k * THREADS, x[k]);
    }
}

/* Zeros everywhere, before the images are made: every place is a whole number of fours. */
template <class X> INLINE void clear(float *s)
{
    float *at = s + (X::FIRST - X::TOP * X::ROW - X::LEFT);

    for (int i = ME; i < (X::C * X::PLANE + 3) / 4; i += THREADS)
        ((float4 *)at)[i] = float4{0.0f, 0.0f, 0.0f, 0.0f};
}

/* Zeros around images that are being copied. */
template <class X> INLINE void surround(float *s)
{
    for (int i = ME; i < X::C * X::PLANE; i += THREADS) {
        const int c = i / X::PLANE, r = i - c * X::PLANE, y = r / X::ROW, x = r - y * X::ROW - X::LEFT;
        if ((unsigned)(y - X::TOP) >= (unsigned)X::H || (unsigned)x >= (unsigned)X::W)
            s[X::FIRST - X::TOP * X::ROW - X::LEFT + i] = 0.0f;
    }
}

INLINE void round_one(float *x)
{
    *x = __uint_as_float(lsi_tf32(*x));
}

INLINE void round_four(float *x)
{
    float4 v = *(float4 *)x;

    round_one(&v.x);
    round_one(&v.y);
    round_one(&v.z);
    round_one(&v.w);
    *(float4 *)x = v;
}

template <class X> INLINE void fetch(float *s, const float *from)
{
    if (X::FLAT && X::COUNT % 4 == 0)
        for (int i = ME; i < X::COUNT / 4; i += THREADS) copy_four(s + X::FIRST + i * 4, from + i * 4);
    else
        for (int i = ME; i < X::COUNT; i += THREADS) copy_one(s + X::at(i), from + i);
}

/* What a thread has copied, or makes of every THREADS-th element, rounded where it lies. */
template <class X> INLINE void round_fetched(float *s)
{
    if (X::FLAT && X::COUNT % 4 == 0)
        for (int i = ME; i < X::COUNT / 4; i += THREADS) round_four(s + X::FIRST + i * 4);
    else
        for (int i = ME; i < X::COUNT; i += THREADS) round_one(s + X::at(i));
}

template <class X> INLINE void round_all(float *s)
{
    each<X::COUNT>([&](int i) { return __uint_as_float(lsi_tf32(s[X::at(i)])); },
                   [&](int i, float x) { s[X::at(i)] = x; });
}

template <class X> INLINE void give(const float *s, float *to)
{
    each<X::COUNT>([&](int i) { return s[X::at(i)]; }, [&](int i, float x) { to[i] = x; });
}

template <class X> INLINE void give_bytes(const float *s, unsigned char *to)
{
    const unsigned char *bytes = (const unsigned char *)(s + X::FIRST);

    for (int i = ME; i < X::COUNT; i += THREADS) to[i] = bytes[i];
}

template <class X> INLINE void fetch_bytes(float *s, const unsigned char *from)
{
    unsigned char *bytes = (unsigned char *)(s + X::FIRST);

    for (int i = ME; i < X::COUNT; i += THREADS) bytes[i] = from[i];
}

/* Rows of weights, PITCH apart so that lanes find them in different banks. */
template <int ROWS, int WIDTH, int PITCH> INLINE void stage(float *to, const float *from)
{
    if (PITCH == WIDTH && ROWS * WIDTH % 4 == 0)
        for (int i = threadIdx.x; i < ROWS * WIDTH / 4; i += THREADS) copy_four(to + i * 4, from + i * 4);
    else if (PITCH % 2 == 0 && WIDTH % 2 == 0)
        for (int i = threadIdx.x; i < ROWS * WIDTH / 2; i += THREADS)
            copy_two(to + i / (WIDTH / 2) * PITCH + i % (WIDTH / 2) * 2, from + i * 2);
    else
        for (int i = threadIdx.x; i < ROWS * WIDTH; i += THREADS)
            copy_one(to + i / WIDTH * PITCH + i % WIDTH, from + i);
}

/* What a thread has copied of them, rounded. */
template <int ROWS, int WIDTH, int PITCH> INLINE void round_staged(float *at)
{
    if (PITCH == WIDTH && ROWS * WIDTH % 4 == 0)
        for (int i = threadIdx.x; i < ROWS * WIDTH / 4; i += THREADS) round_four(at + i * 4);
    else if (PITCH % 2 == 0 && WIDTH % 2 == 0)
        for (int i = threadIdx.x; i < ROWS * WIDTH / 2; i += THREADS) {
            round_one(at + i / (WIDTH / 2) * PITCH + i % (WIDTH / 2) * 2);
            round_one(at + i / (WIDTH / 2) * PITCH + i % (WIDTH / 2) * 2 + 1);
        }
    else
        for (int i = threadIdx.x; i < ROWS * WIDTH; i += THREADS)
            round_one(at + i / WIDTH * PITCH + i % WIDTH);
}
