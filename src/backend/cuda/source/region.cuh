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
 * Element (c, y, x) is at FIRST + c * PLANE + y * ROW + x; around every image there may be zeros. */
template <int FIRST_, int C_, int H_, int W_, int PLANE_, int ROW_, int TOP_ = 0, int LEFT_ = 0> struct map {
    static constexpr int FIRST = FIRST_, C = C_, H = H_, W = W_, PLANE = PLANE_, ROW = ROW_, TOP = TOP_,
                         LEFT = LEFT_, COUNT = C * H * W;
    static constexpr bool FLAT = PLANE == H * W && ROW == W;
    /* Pixel r of channel c, and element i of all. */
    INLINE int of(int c, int r)
    {
        return FIRST + c * PLANE + (ROW == W ? r : r / W * ROW + r % W);
    }
    INLINE int at(int i)
    {
        return FLAT ? FIRST + i : of(i / (H * W), i % (H * W));
    }
};

/* Zeros around the images, for those who read beyond them. */
template <class X> INLINE void surround(float *s)
{
    for (int i = ME; i < X::C * X::PLANE; i += THREADS) {
        const int c = i / X::PLANE, r = i - c * X::PLANE, y = r / X::ROW, x = r - y * X::ROW - X::LEFT;
        if ((unsigned)(y - X::TOP) >= (unsigned)X::H || (unsigned)x >= (unsigned)X::W)
            s[X::FIRST - X::TOP * X::ROW - X::LEFT + i] = 0.0f;
    }
}

template <class X> INLINE void fetch(float *s, const float *from)
{
    if (X::FLAT && X::COUNT % 4 == 0)
        for (int i = ME; i < X::COUNT / 4; i += THREADS) copy_four(s + X::FIRST + i * 4, from + i * 4);
    else
        for (int i = ME; i < X::COUNT; i += THREADS) copy_one(s + X::at(i), from + i);
}

template <class X> INLINE void give(const float *s, float *to)
{
    for (int i = ME; i < X::COUNT; i += THREADS) to[i] = s[X::at(i)];
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

/* -- products ---------------------------------------------------------------------------------------------
 */

struct operand {
#if ROUNDED
    unsigned high;
    INLINE operand of(float x)
    {
        return {lsi_tf32(x)};
    }
#else
    unsigned high, low;
    INLINE operand of(float x)
    {
        const unsigned high = lsi_tf32(x);
        return {high, lsi_tf32(x - __uint_as_float(high))};
    }
#endif
};

INLINE void multiply(float (&c)[4], const operand (&a)[4], const operand (&b)[2])
{
#if !ROUNDED
    lsi_mma(c, a[0].low, a[1].low, a[2].low, a[3].low, b[0].high, b[1].high);
    lsi_mma(c, a[0].high, a[1].high, a[2].high, a[3].high, b[0].low, b[1].low);
#endif
    lsi_mma(c, a[0].high, a[1].high, a[2].high, a[3].high, b[0].high, b[1].high);
}

/* M x N sums of K products, as jobs of one warp each: DOWN times 16 rows, up to 32 columns, one of SPLIT
 * parts of K. */
template <int M_, int N_, int K_, int SPLIT_, int DOWN_> struct product {
    static constexpr int M = M_, N = N_, K = K_, SPLIT = SPLIT_, DOWN = DOWN_, TALL = 16 * DOWN;
    static constexpr int TILES = (N + 7) / 8, ACROSS = TILES < 4 ? TILES : 4;
    static constexpr int COLUMNS = (TILES + ACROSS - 1) / ACROSS, UNITS = (M + TALL - 1) / TALL * COLUMNS;
    static constexpr int WHOLE = K / 8, STEPS = (K + 7) / 8, EACH = (STEPS + SPLIT - 1) / SPLIT;
    static constexpr int JOBS = UNITS * SPLIT, ROUNDS = (JOBS + WARPS - 1) / WARPS, WIDE = TILES * 8;
    typedef float sums[DOWN][ACROSS][4];
};

/* Eight products more for each sum of a job, at k and k + 1; PARTLY: they go beyond the end, where all is
 * zero and table holds zeros. */
template <class P, bool PARTLY>
INLINE void step_sums(typename P::sums &c, int k, const unsigned *table, const float *a,
                      const int (&row)[P::DOWN][2], const float *b, const int (&column)[P::ACROSS])
{
    struct alignas(8) pair {
        unsigned x, y;
    };
    const bool in0 = !PARTLY || k < P::K, in1 = !PARTLY || k + 1 < P::K;
    const pair t = *(const pair *)(table + k);
    const float *a0 = a + (t.x & 0xffff), *a1 = a + (t.y & 0xffff), *b0 = b + (t.x >> 16),
                *b1 = b + (t.y >> 16);
    float x[P::DOWN][4], y[P::ACROSS][2];

#pragma unroll
    for (int i = 0; i < P::DOWN; i++) {
        x[i][0] = a0[row[i][0]];
        x[i][1] = a0[row[i][1]];
        x[i][2] = a1[row[i][0]];
        x[i][3] = a1[row[i][1]];
    }
#pragma unroll
    for (int j = 0; j < P::ACROSS; j++) {
        y[j][0] = b0[column[j]];
        y[j][1] = b1[column[j]];
    }
    operand f[P::DOWN][4];
#pragma unroll
    for (int i = 0; i < P::DOWN; i++)
#pragma unroll
        for (int e = 0; e < 4; e++) f[i][e] = operand::of((e < 2 ? in0 : in1) ? x[i][e] : 0.0f);
#pragma unroll
    for (int j = 0; j < P::ACROSS; j++) {
        const operand g[2] = {operand::of(in0 ? y[j][0] : 0.0f), operand::of(in1 ? y[j][1] : 0.0f)};
#pragma unroll
        for (int i = 0; i < P::DOWN; i++) multiply(c[i][j], f[i], g);
    }
}

/* Adds a job's sums to c.  Element (m, k) of one operand is a[row_a(m) + col_a(k)], (k, n) of the other
 * b[row_b(n) + col_b(k)]; table[k] holds col_a in its lower and col_b in its upper half. */
template <class P, class A, class B>
INLINE void job_sums(typename P::sums &c, int job, const unsigned *table, const float *a, A row_a,
                     const float *b, B row_b)
{
    const int lane = ME % 32, g = lane / 4, t = lane % 4, unit = job % P::UNITS, part = job / P::UNITS;
    const int m = unit / P::COLUMNS * P::TALL + g, n = unit % P::COLUMNS * P::ACROSS * 8 + g;
    const int end = (part + 1) * P::EACH < P::STEPS ? (part + 1) * P::EACH : P::STEPS;
    const int last = end < P::WHOLE ? end : P::WHOLE;
    int row[P::DOWN][2], column[P::ACROSS];

#pragma unroll
    for (int i = 0; i < P::DOWN; i++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            const int r = m + i * 16 + e * 8;
            row[i][e] = row_a(r < P::M ? r : 0);
        }
#pragma unroll
    for (int j = 0; j < P::ACROSS; j++) column[j] = row_b(n + j * 8 < P::N ? n + j * 8 : 0);
#pragma unroll 4
    for (int step = part * P::EACH; step < last; step++)
        step_sums<P, false>(c, step * 8 + 2 * t, table, a, row, b, column);
    if (P::WHOLE < P::STEPS && end == P::STEPS)
        step_sums<P, true>(c, P::WHOLE * 8 + 2 * t, table, a, row, b, column);
}

/* Calls put(m, n, sum) for the job's elements. */
template <class P, class F> INLINE void each_sum(const typename P::sums &c, int job, F put)
{
    const int lane = ME % 32, g = lane / 4, t = lane % 4, unit = job % P::UNITS;
    const int m = unit / P::COLUMNS * P::TALL + g, n = unit % P::COLUMNS * P::ACROSS * 8 + 2 * t;

#pragma unroll
    for (int k = 0; k < P::DOWN; k++)
#pragma unroll
        for (int j = 0; j < P::ACROSS; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int row = m + k * 16 + i / 2 * 8, column = n + j * 8 + i % 2;
                const bool in_row = P::M % P::TALL == 0 || row < P::M;
                const bool in_column = (P::COLUMNS == 1 && j * 8 + 8 <= P::N) || column < P::N;
                if (in_row && in_column) put(row, column, c[k][j][i]);
            }
}

/* Where parts of K are added up: SPLIT planes of M x WIDE. */
template <class P> INLINE void leave_part(const typename P::sums &c, int job, float *room)
{
    float *to = room + job / P::UNITS * (P::M * P::WIDE);

    each_sum<P>(c, job, [&](int m, int n, float x) { to[m * P::WIDE + n] = x; });
}

template <class P, class F> INLINE void each_total(const float *room, F put)
{
    for (int i = ME; i < P::M * P::N; i += THREADS) {
        const int m = i % P::M, n = i / P::M;
        float x = 0.0f;
#pragma unroll
        for (int part = 0; part < P::SPLIT; part++) x += room[part * (P::M * P::WIDE) + m * P::WIDE + n];
        put(m, n, x);
    }
}

/* Sums begin with what belongs to their columns. */
template <class P, class S> INLINE void begin_sums(typename P::sums &c, int job, S start)
{
    const int n = job % P::UNITS % P::COLUMNS * P::ACROSS * 8 + 2 * (ME % 4);

#pragma unroll
    for (int j = 0; j < P::ACROSS; j++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            const int column = n + j * 8 + e;
            const bool in = (P::COLUMNS == 1 && j * 8 + 8 <= P::N) || column < P::N;
            const float x = start(in ? column : 0);
#pragma unroll
            for (int i = 0; i < P::DOWN; i++) c[i][j][e] = c[i][j][e + 2] = x;
        }
}

/* All of a product: put(m, n, sum), where the sum has begun with start(n). */
template <class P, class A, class B, class S, class F>
INLINE void whole_product(const unsigned *table, const float *a, A row_a, const float *b, B row_b,
                          float *room, S start, F put)
{
    for (int job = ME / 32; job < P::JOBS; job += WARPS) {
        typename P::sums c = {};
        if (P::SPLIT == 1) begin_sums<P>(c, job, start);
        job_sums<P>(c, job, table, a, row_a, b, row_b);
        if (P::SPLIT == 1)
            each_sum<P>(c, job, put);
        else
            leave_part<P>(c, job, room);
    }
    if (P::SPLIT == 1) return;
    barrier();
    each_total<P>(room, [&](int m, int n, float x) { put(m, n, x + start(n)); });
}

/* Pixel m of rows of W pixels, where rows are ROW apart and pixels STEP. */
template <int W, int ROW, int STEP> INLINE int spread(int m)
{
    return ROW == W * STEP ? m * STEP : m / W * ROW + m % W * STEP;
}

/* -- convolutions: KH x KW taps, steps S, dilation D, padding TOP, LEFT ------------------------------------
 */

template <int KH_, int KW_, int SH_, int SW_, int DH_, int DW_, int TOP_, int LEFT_> struct taps {
    static constexpr int KH = KH_, KW = KW_, SH = SH_, SW = SW_, DH = DH_, DW = DW_, TOP = TOP_, LEFT = LEFT_,
                         N = KH * KW;
};

/* Entries of a table: steps are whole. */
static constexpr __device__ int padded(int k)
{
    return (k + 7) / 8 * 8;
}

/* y = x * w: rows are pixels of y, columns its channels, k counts (channel of x, tap). */
template <class X, class T, int PITCH> INLINE void conv_table(unsigned *table)
{
    for (int k = threadIdx.x; k < padded(X::C * T::N); k += THREADS) {
        const int c = k / T::N, r = k % T::N;
        table[k] = k >= X::C * T::N
                       ? 0
                       : (unsigned)(c * X::PLANE + r / T::KW * T::DH * X::ROW + r % T::KW * T::DW) |
                             (unsigned)k << 16;
    }
}

template <class X, class Y, class T, int PITCH, int SPLIT, int DOWN, class S, class F>
INLINE void conv(float *s, const unsigned *table, const float *w, float *room, S start, F act)
{
    typedef product<Y::H * Y::W, Y::C, X::C * T::N, SPLIT, DOWN> P;

    whole_product<P>(
        table, s + X::FIRST - T::TOP * X::ROW - T::LEFT,
        [](int m) { return spread<Y::W, T::SH * X::ROW, T::SW>(m); }, w, [](int n) { return n * PITCH; },
        room, start, [&](int m, int n, float x) { s[Y::of(n, m)] = act(x); });
}

/* dx of a convolution with steps of 1: rows are pixels of x, columns its channels, k counts (channel of dy,
 * tap).  dy has zeros around it. */
template <class DX, class DY, class T, int PITCH> INLINE void conv_dx_table(unsigned *table)
{
    for (int k = threadIdx.x; k < padded(DY::C * T::N); k += THREADS) {
        const int o = k / T::N, r = k % T::N, ky = r / T::KW, kx = r % T::KW;
        const int at = o * DY::PLANE + (T::KH - 1 - ky) * T::DH * DY::ROW + (T::KW - 1 - kx) * T::DW;
        table[k] = k >= DY::C * T::N ? 0 : (unsigned)at | (unsigned)(o * PITCH + r) << 16;
    }
}

template <class DX, class DY, class T, int PITCH, int SPLIT, int DOWN, class S, class F>
INLINE void conv_dx(float *s, const unsigned *table, const float *w, float *room, S start, F act)
{
    typedef product<DX::H * DX::W, DX::C, DY::C * T::N, SPLIT, DOWN> P;
    constexpr int UP = (T::KH - 1) * T::DH - T::TOP, BACK = (T::KW - 1) * T::DW - T::LEFT;

    whole_product<P>(
        table, s + DY::FIRST - UP * DY::ROW - BACK, [](int m) { return spread<DX::W, DY::ROW, 1>(m); }, w,
        [](int n) { return n * T::N; }, room, start,
        [&](int m, int n, float x) { s[DX::of(n, m)] = act(x); });
}

/* dw, summed over samples: rows are (channel of x, tap), columns channels of dy, k counts pixels of dy. */
template <class X, class DY, class T> INLINE void conv_dw_table(unsigned *table)
{
    for (int k = threadIdx.x; k < padded(DY::H * DY::W); k += THREADS) {
        const int y = k / DY::W, x = k % DY::W;
        table[k] = k >= DY::H * DY::W
                       ? 0
                       : (unsigned)(y * T::SH * X::ROW + x * T::SW) | (unsigned)(y * DY::ROW + x) << 16;
    }
}

template <class X, class DY, class T, int SPLIT, int DOWN> struct conv_dw {
    typedef product<X::C * T::N, DY::C, DY::H * DY::W, SPLIT, DOWN> P;
    typename P::sums c[P::ROUNDS];

    __device__ __forceinline__ conv_dw() : c{}
    {
    }
    __device__ __forceinline__ void add(const float *s, const unsigned *table)
    {
#pragma unroll
        for (int round = 0; round < P::ROUNDS; round++) {
            const int job = ME / 32 + round * WARPS;
            if (job >= P::JOBS) break;
            job_sums<P>(
                c[round], job, table, s + X::FIRST - T::TOP * X::ROW - T::LEFT,
                [](int m) {
                    const int ch = m / T::N, r = m % T::N;
                    return ch * X::PLANE + r / T::KW * T::DH * X::ROW + r % T::KW * T::DW;
                },
                s + DY::FIRST, [](int n) { return n * DY::PLANE; });
        }
    }
    /* Behind a barrier. */
    __device__ __forceinline__ void leave(float *room, float *to)
    {
#pragma unroll
        for (int round = 0; round < P::ROUNDS; round++) {
            const int job = ME / 32 + round * WARPS;
            if (job >= P::JOBS) break;
            if (SPLIT == 1)
                each_sum<P>(c[round], job, [&](int m, int n, float x) { to[n * P::M + m] = x; });
            else
                leave_part<P>(c[round], job, room);
        }
        if (SPLIT == 1) return;
        barrier();
        each_total<P>(room, [&](int m, int n, float x) { to[n * P::M + m] = x; });
        barrier();
    }
};

/* -- products with a vector -------------------------------------------------------------------------------
 */

INLINE float warp_sum(float x)
{
#pragma unroll
    for (int far = 16; far > 0; far /= 2) x += __shfl_xor_sync(~0u, x, far);
    return x;
}

/* y[j] = sum of x[i] * w[j * PITCH + i]: a warp has up to 4 rows of w at once. */
template <class X, class Y, int PITCH, class S, class F>
INLINE void rows_times(float *s, const float *w, S start, F act)
{
    constexpr int J = Y::COUNT, I = X::COUNT, FAIR = (J + WARPS - 1) / WARPS, R = FAIR < 4 ? FAIR : 4;
    const int warp = ME / 32, lane = ME % 32;

    for (int first = warp * R; first < J; first += WARPS * R) {
        float sum[R] = {};
#pragma unroll 4
        for (int i = lane; i < I; i += 32) {
            const float x = s[X::at(i)];
#pragma unroll
            for (int r = 0; r < R; r++) {
                const int j = first + r < J ? first + r : first;
                sum[r] = fmaf(x, w[j * PITCH + i], sum[r]);
            }
        }
#pragma unroll
        for (int r = 0; r < R; r++) {
            const float total = warp_sum(sum[r]);
            if (lane == r && first + r < J) s[Y::at(first + r)] = act(total + start(first + r));
        }
    }
}

/* y[i] = sum of x[j] * w[j * PITCH + i]: a thread has one i; parts of j by groups of threads. */
template <class X, class Y, int PITCH, class S, class F>
INLINE void columns_times(float *s, const float *w, float *room, S start, F act)
{
    constexpr int J = X::COUNT, I = Y::COUNT, ROW = (I + 31) / 32 * 32, MOST = THREADS / ROW;
    constexpr int GROUPS = MOST >= 8 && J >= 64 ? 8 : MOST >= 4 && J >= 32 ? 4 : MOST >= 2 && J >= 16 ? 2 : 1;
    constexpr int EACH = (J + GROUPS - 1) / GROUPS;

    if (GROUPS == 1) {
        for (int i = ME; i < I; i += THREADS) {
            float sum = 0.0f;
#pragma unroll 16
            for (int j = 0; j < J; j++) sum = fmaf(s[X::at(j)], w[j * PITCH + i], sum);
            s[Y::at(i)] = act(sum + start(i));
        }
        return;
    }
    const int group = ME / ROW, i = ME % ROW;
    if (group < GROUPS && i < I) {
        const int end = (group + 1) * EACH < J ? (group + 1) * EACH : J;
        float sum = 0.0f;
#pragma unroll 8
        for (int j = group * EACH; j < end; j++) sum = fmaf(s[X::at(j)], w[j * PITCH + i], sum);
        room[group * ROW + i] = sum;
    }
    barrier();
    if (ME < I) {
        float sum = 0.0f;
#pragma unroll
        for (int k = 0; k < GROUPS; k++) sum += room[k * ROW + ME];
        s[Y::at(ME)] = act(sum + start((int)ME));
    }
}
