/* region_products.cuh: products of regions: convolutions and their gradients by tensor instructions, and
 * products with a vector (region.cuh).
 *
 * Tensor instructions add up eight products at a time, of which a lane of the warp has two: number t and
 * t + 4, where t is the lane's number modulo 4.  So products are counted in groups of four that lie equally
 * far apart in memory, such as the same pixel of four channels: the lane's part of an address is found once,
 * and what is left of it are constants in the instructions that load. */

struct operand {
#if ROUNDED
    unsigned high;
    template <bool READY> INLINE operand of(float x)
    {
        return {READY ? __float_as_uint(x) : lsi_tf32(x)};
    }
#else
    unsigned high, low;
    template <bool READY> INLINE operand of(float x)
    {
        const unsigned high = lsi_tf32(x);
        return {high, lsi_tf32(x - __uint_as_float(high))};
    }
#endif
};

/* c += a * b of eight products, or of four. */
INLINE void multiply(float (&c)[4], const operand (&a)[4], const operand (&b)[2])
{
#if !ROUNDED
    lsi_mma(c, a[0].low, a[1].low, a[2].low, a[3].low, b[0].high, b[1].high);
    lsi_mma(c, a[0].high, a[1].high, a[2].high, a[3].high, b[0].low, b[1].low);
#endif
    lsi_mma(c, a[0].high, a[1].high, a[2].high, a[3].high, b[0].high, b[1].high);
}

INLINE void multiply_four(float (&c)[4], const operand (&a)[4], const operand (&b)[2])
{
#if !ROUNDED
    lsi_mma_four(c, a[0].low, a[1].low, b[0].high);
    lsi_mma_four(c, a[0].high, a[1].high, b[0].low);
#endif
    lsi_mma_four(c, a[0].high, a[1].high, b[0].high);
}

/* The most of `count`, a divisor of it, that have no more than 32 groups. */
static constexpr __device__ int at_once(int count, int groups)
{
    int most = 1;

    for (int i = 2; i <= count; i++)
        if (count % i == 0 && i * groups <= 32) most = i;
    return most;
}

/* Where the products of a sum lie: L2 times L1 times LANES of them, so far apart in one operand (A2, A1, A0)
 * and in the other (B2, B1, B0).  LANES are counted in groups of four. */
template <int L2_, int A2_, int B2_, int L1_, int A1_, int B1_, int LANES_, int A0_, int B0_> struct walk {
    static constexpr int L2 = L2_, A2 = A2_, B2 = B2_, L1 = L1_, A1 = A1_, B1 = B1_, LANES = LANES_, A0 = A0_,
                         B0 = B0_;
    static constexpr int GROUPS = (LANES + 3) / 4, REST = LANES % 4, RUN = at_once(L1, GROUPS),
                         UNROLL = L1 == RUN && RUN * GROUPS < 16 ? 16 / (RUN * GROUPS) : 1;
};

/* M x N sums over K, a walk, as jobs of one warp each: DOWN times 16 rows, ACROSS times 8 columns, one of
 * SPLIT parts of L2. */
template <int M_, int N_, class K_, int SPLIT_, int DOWN_, int ACROSS_> struct product {
    typedef K_ K;
    static constexpr int M = M_, N = N_, SPLIT = SPLIT_, DOWN = DOWN_, ACROSS = ACROSS_, TALL = 16 * DOWN;
    static constexpr int COLUMNS = ((N + 7) / 8 + ACROSS - 1) / ACROSS,
                         UNITS = (M + TALL - 1) / TALL * COLUMNS;
    static constexpr int EACH = (K::L2 + SPLIT - 1) / SPLIT, JOBS = UNITS * SPLIT,
                         ROUNDS = (JOBS + WARPS - 1) / WARPS;
    static constexpr int COLUMN = (M + 3) / 8 * 8 + 4; /* columns of a part are so far apart */
    typedef float sums[DOWN][ACROSS][4];
};

/* What a lane reads of a job's operands. */
template <class P> struct places {
    int row[P::DOWN][2], column[P::ACROSS];
    int back; /* in the last group of LANES: a lane that has no product there reads another's */
    bool in;  /* and takes it times zero */
};

/* RUN times LANES products more for each sum. */
template <class P, bool A_READY, bool B_READY>
INLINE void add_run(typename P::sums &c, const float *a, const float *b, const places<P> &at)
{
    typedef typename P::K K;
    constexpr int COUNT = K::RUN * K::GROUPS;

#pragma unroll
    for (int k = 0; k < COUNT; k += 2) {
        operand x[P::DOWN][4], y[P::ACROSS][2];
#pragma unroll
        for (int e = 0; e < 2; e++) {
            const int l = (k + e) / K::GROUPS, g = (k + e) % K::GROUPS;
            const bool last = K::REST > 0 && g == K::GROUPS - 1;
            const float *p = a + (l * K::A1 + g * 4 * K::A0), *q = b + (l * K::B1 + g * 4 * K::B0);
            if (k + e >= COUNT) break;
#pragma unroll
            for (int i = 0; i < P::DOWN; i++)
#pragma unroll
                for (int h = 0; h < 2; h++)
                    x[i][e * 2 + h] = operand::of<A_READY>(p[at.row[i][h] - (last ? at.back : 0)]);
#pragma unroll
            for (int j = 0; j < P::ACROSS; j++)
                y[j][e] = operand::of<B_READY>(!last || at.in ? q[at.column[j]] : 0.0f);
        }
#pragma unroll
        for (int j = 0; j < P::ACROSS; j++)
#pragma unroll
            for (int i = 0; i < P::DOWN; i++) {
                if (k + 1 < COUNT)
                    multiply(c[i][j], x[i], y[j]);
                else
                    multiply_four(c[i][j], x[i], y[j]);
            }
    }
}

/* Adds a job's sums to c.  The first product of sum (m, n) is a[row_a(m)] * b[row_b(n)]. */
template <class P, bool A_READY, bool B_READY, class A, class B>
INLINE void job_sums(typename P::sums &c, int job, const float *a, A row_a, const float *b, B row_b)
{
    typedef typename P::K K;
    const int lane = ME % 32, g = lane / 4, t = lane % 4, unit = job % P::UNITS, part = job / P::UNITS;
    const int m = unit / P::COLUMNS * P::TALL + g, n = unit % P::COLUMNS * P::ACROSS * 8 + g;
    const int end = (part + 1) * P::EACH < K::L2 ? (part + 1) * P::EACH : K::L2;
    places<P> at;

#pragma unroll
    for (int i = 0; i < P::DOWN; i++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            const int r = m + i * 16 + e * 8;
            at.row[i][e] = row_a(r < P::M ? r : 0) + t * K::A0;
        }
#pragma unroll
    for (int j = 0; j < P::ACROSS; j++) at.column[j] = row_b(n + j * 8 < P::N ? n + j * 8 : 0) + t * K::B0;
    at.in = K::REST == 0 || t < K::REST;
    at.back = at.in ? 0 : t * K::A0;
#pragma unroll(K::UNROLL)
    for (int l2 = part * P::EACH; l2 < end; l2++)
#pragma unroll 1
        for (int l1 = 0; l1 < K::L1; l1 += K::RUN)
            add_run<P, A_READY, B_READY>(c, a + (l2 * K::A2 + l1 * K::A1), b + (l2 * K::B2 + l1 * K::B1), at);
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

/* Where parts are added up: SPLIT times N columns. */
template <class P> INLINE void leave_part(const typename P::sums &c, int job, float *room)
{
    float *to = room + job / P::UNITS * (P::N * P::COLUMN);

    each_sum<P>(c, job, [&](int m, int n, float x) { to[n * P::COLUMN + m] = x; });
}

template <class P, class F> INLINE void each_total(const float *room, F put)
{
    for (int i = ME; i < P::M * P::N; i += THREADS) {
        const int m = i % P::M, n = i / P::M;
        float x = 0.0f;
#pragma unroll
        for (int part = 0; part < P::SPLIT; part++) x += room[(part * P::N + n) * P::COLUMN + m];
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
template <class P, bool A_READY, bool B_READY, class A, class B, class S, class F>
INLINE void whole_product(const float *a, A row_a, const float *b, B row_b, float *room, S start, F put)
{
#pragma unroll 1
    for (int job = ME / 32; job < P::JOBS; job += WARPS) {
        typename P::sums c = {};
        if (P::SPLIT == 1) begin_sums<P>(c, job, start);
        job_sums<P, A_READY, B_READY>(c, job, a, row_a, b, row_b);
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
 * BY_CHANNELS: groups are four channels of one tap, else four taps of a row of one channel.  READY: weights
 * have been rounded. */

template <int KH_, int KW_, int SH_, int SW_, int DH_, int DW_, int TOP_, int LEFT_> struct taps {
    static constexpr int KH = KH_, KW = KW_, SH = SH_, SW = SW_, DH = DH_, DW = DW_, TOP = TOP_, LEFT = LEFT_,
                         N = KH * KW;
};

template <bool FIRST, class A, class B> struct choice {
    typedef A type;
};
template <class A, class B> struct choice<false, A, B> {
    typedef B type;
};

/* y = x * w: rows are pixels of y, columns its channels. */
template <class X, class Y, class T, int PITCH, bool BY_CHANNELS, int SPLIT, int DOWN, int ACROSS, bool READY,
          class S, class F>
INLINE void conv(float *s, const float *w, float *room, S start, F act)
{
    typedef walk<T::KH, T::DH * X::ROW, T::KW, T::KW, T::DW, 1, X::C, X::PLANE, T::N> channels;
    typedef walk<X::C, X::PLANE, T::N, T::KH, T::DH * X::ROW, T::KW, T::KW, T::DW, 1> tap_rows;
    typedef typename choice<BY_CHANNELS, channels, tap_rows>::type K;
    typedef product<Y::H * Y::W, Y::C, K, SPLIT, DOWN, ACROSS> P;

    whole_product<P, X::READY, READY>(
        s + X::FIRST - T::TOP * X::ROW - T::LEFT,
        [](int m) { return spread<Y::W, T::SH * X::ROW, T::SW>(m); }, w, [](int n) { return n * PITCH; },
        room, start, [&](int m, int n, float x) { s[Y::of(n, m)] = Y::kept(act(x, n * (Y::H * Y::W) + m)); });
}

/* dx of a convolution with steps of 1: rows are pixels of x, columns its channels.  dy has zeros around it.
 */
template <class DX, class DY, class T, int PITCH, bool BY_CHANNELS, int SPLIT, int DOWN, int ACROSS,
          bool READY, class S, class F>
INLINE void conv_dx(float *s, const float *w, float *room, S start, F act)
{
    typedef walk<T::KH, -T::DH * DY::ROW, T::KW, T::KW, -T::DW, 1, DY::C, DY::PLANE, PITCH> channels;
    typedef walk<DY::C, DY::PLANE, PITCH, T::KH, -T::DH * DY::ROW, T::KW, T::KW, -T::DW, 1> tap_rows;
    typedef typename choice<BY_CHANNELS, channels, tap_rows>::type K;
    typedef product<DX::H * DX::W, DX::C, K, SPLIT, DOWN, ACROSS> P;

    whole_product<P, DY::READY, READY>(
        s + DY::FIRST + T::TOP * DY::ROW + T::LEFT, [](int m) { return spread<DX::W, DY::ROW, 1>(m); }, w,
        [](int n) { return n * T::N; }, room, start,
        [&](int m, int n, float x) { s[DX::of(n, m)] = DX::kept(act(x, n * (DX::H * DX::W) + m)); });
}

/* dw, summed over samples: rows are (channel of x, tap), columns channels of dy, groups are pixels of dy. */
template <class X, class DY, class T, int SPLIT, int DOWN, int ACROSS> struct conv_dw {
    typedef walk<DY::H, T::SH * X::ROW, DY::ROW, 1, 0, 0, DY::W, T::SW, 1> K;
    typedef product<X::C * T::N, DY::C, K, SPLIT, DOWN, ACROSS> P;
    typename P::sums c[P::ROUNDS];

    __device__ __forceinline__ conv_dw() : c{}
    {
    }
    __device__ __forceinline__ void add(const float *s)
    {
#pragma unroll
        for (int round = 0; round < P::ROUNDS; round++) {
            const int job = ME / 32 + round * WARPS;
            if (job >= P::JOBS) break;
            job_sums<P, X::READY, DY::READY>(
                c[round], job, s + X::FIRST - T::TOP * X::ROW - T::LEFT,
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
            if (lane == r && first + r < J)
                s[Y::at(first + r)] = Y::kept(act(total + start(first + r), first + r));
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
            s[Y::at(i)] = Y::kept(act(sum + start(i), i));
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
        s[Y::at(ME)] = Y::kept(act(sum + start((int)ME), (int)ME));
    }
}
