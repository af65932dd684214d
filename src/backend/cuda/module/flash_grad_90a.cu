/* flash_grad_90a.cu: the gradient of attention of heads of 64 elements and up to 256 rows, by compute
 * capability 9.0's instructions (flash_90a.cuh).
 *
 * A block works on one head: queries, keys, values and dout are in shared memory.  Warps work in fours that
 * never wait for each other: some take 64 keys at a time through all queries, for dk and dv, some 64 queries
 * through all keys, for dq.  So scores are made twice, seven products in the place of five; but what follows
 * of them is in registers the left operand of the next product as it is, no tile of scores has to lie in
 * shared memory, which has the next head's rows instead, and nobody adds to what others add to.
 *
 * Either a block goes from head to head, and the rows of the next one arrive meanwhile; or it has one, and
 * more blocks are on a processor. */
#include "backend/cuda/module/flash_90a.cuh"

template <int ROWS> struct head_rows {
    unsigned char k[ROWS][ROW], v[ROWS][ROW], q[ROWS][ROW], dout[ROWS][ROW];
};

/* What is known of a head's queries. */
template <int ROWS> struct query_numbers_of {
    float lse[ROWS], dot[ROWS]; /* lse, as a power of 2, and out . dout */
};

template <int ROWS, int KEPT> struct memory {
    head_rows<ROWS> head[KEPT];
    /* Products read whole tiles of 64 rows, here and behind; what becomes of those rows nobody wants. */
    union {
        query_numbers_of<ROWS> numbers[KEPT];
        unsigned char behind[(TILE - ROWS % TILE) % TILE * ROW + 1];
    };
};

/* -- products -----------------------------------------------------------------------------------------------
 */

/* Two matrices in shared memory, from some row on. */
struct two {
    uint32_t first, second;
};

static __device__ __forceinline__ two behind(two m, int rows)
{
    return {behind(m.first, rows, 0), behind(m.second, rows, 0)};
}

/* Begins with scores and, as products of their own, the gradient of probabilities: 64 rows of a.first times N
 * of b.first, turned, and of the second ones. */
template <typename T, int N>
static __device__ __forceinline__ void score(float (&s)[N / 2], float (&dp)[N / 2], two a, two b)
{
    const T *type = nullptr;

    products_begin();
#pragma unroll
    for (int i = 0; i < D / GROUP; i++)
        rows_by_rows(s, behind(a.first, 0, i * 32), behind(b.first, 0, i * 32), i > 0, type);
    products_go();
#pragma unroll
    for (int i = 0; i < D / GROUP; i++)
        rows_by_rows(dp, behind(a.second, 0, i * 32), behind(b.second, 0, i * 32), i > 0, type);
    products_go();
}

/* Begins with sum += a times N rows of b. */
template <typename T, int N>
static __device__ __forceinline__ void add(float (&sum)[D / 2], const uint32_t (&a)[N / GROUP][4], uint32_t b)
{
    products_begin();
#pragma unroll
    for (int i = 0; i < N / GROUP; i++)
        registers_by_columns(sum, a[i], behind(b, i * GROUP, 0), 1, (const T *)nullptr);
    products_go();
}

/* This thread, so that what is computed of it is computed where it is used: kept from head to head, it would
 * take registers that sums need. */
static __device__ __forceinline__ int thread_here()
{
    int i = (int)threadIdx.x;

    asm volatile("" : "+r"(i));
    return i;
}

/* What four warps know of their 64 rows, keys or queries, while they go through the other side's. */
struct pass {
    two others; /* all of the other side's */
    int t;
    bool works;               /* some of the warp's rows are wanted */
    float scale;              /* to a power of 2 */
    const float *lses, *dots; /* keys: of the queries */
    float lse[2], dot[2];     /* queries: of rows row and row + 8 */
};

/* -- keys: dk and dv ----------------------------------------------------------------------------------------
 */

template <typename T> struct sums_of_keys {
    float dk[D / 2], dv[D / 2];

    /* N queries from j on: scores become probabilities, which stay in s, too. */
    template <int N>
    static __device__ __forceinline__ void weigh(uint32_t (&p)[N / GROUP][4], float (&s)[N / 2],
                                                 const pass &x, int j)
    {
#pragma unroll
        for (int h = 0; h < N / 8; h++) {
            const float2 lse = *(const float2 *)(x.lses + j + threadIdx.x % 4 * 2 + h * 8);
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int e = h * 4 + half * 2;
                s[e] = power_of_2(fmaf(s[e], x.scale, -lse.x));
                s[e + 1] = power_of_2(fmaf(s[e + 1], x.scale, -lse.y));
                p[h / 2][h % 2 * 2 + half] = pair(s[e], s[e + 1], (const T *)nullptr);
            }
        }
    }

    /* Probabilities and their gradient become that of scores, but for its factor. */
    template <int N>
    static __device__ __forceinline__ void differ(uint32_t (&ds)[N / GROUP][4], const float (&p)[N / 2],
                                                  const float (&dp)[N / 2], const pass &x, int j)
    {
#pragma unroll
        for (int h = 0; h < N / 8; h++) {
            const float2 dot = *(const float2 *)(x.dots + j + threadIdx.x % 4 * 2 + h * 8);
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int e = h * 4 + half * 2;
                ds[h / 2][h % 2 * 2 + half] =
                    pair(p[e] * (dp[e] - dot.x), p[e + 1] * (dp[e + 1] - dot.y), (const T *)nullptr);
            }
        }
    }

    /* Exponentials are computed while dp is multiplied, and its gradient while dv is. */
    template <int N>
    __device__ __forceinline__ void take(float (&s)[N / 2], const float (&dp)[N / 2], const pass &x, int j)
    {
        uint32_t p[N / GROUP][4] = {}, ds[N / GROUP][4] = {};

        products_end<1>();
        if (x.works) weigh<N>(p, s, x, j);
        add<T, N>(dv, p, behind(x.others.second, j, 0));
        products_end<1>();
        if (x.works) differ<N>(ds, s, dp, x, j);
        add<T, N>(dk, ds, behind(x.others.first, j, 0));
    }
};

/* -- queries: dq --------------------------------------------------------------------------------------------
 */

template <typename T> struct sums_of_queries {
    float dq[D / 2];

    /* N keys from j on; behind the end there is no gradient. */
    template <int N>
    static __device__ __forceinline__ void differ(uint32_t (&ds)[N / GROUP][4], float (&p)[N / 2],
                                                  const float (&dp)[N / 2], const pass &x, int j)
    {
#pragma unroll
        for (int e = 0; e < N / 2; e++) p[e] *= dp[e] - x.dot[e / 2 % 2];
        if (j + N > x.t)
#pragma unroll
            for (int e = 0; e < N / 2; e++)
                if (j + e / 4 * 8 + (int)threadIdx.x % 4 * 2 + e % 2 >= x.t) p[e] = 0;
#pragma unroll
        for (int i = 0; i < N / 4; i++) ds[i / 4][i % 4] = pair(p[2 * i], p[2 * i + 1], (const T *)nullptr);
    }

    template <int N>
    __device__ __forceinline__ void take(float (&s)[N / 2], const float (&dp)[N / 2], const pass &x, int j)
    {
        uint32_t ds[N / GROUP][4] = {};

        products_end<1>();
        if (x.works)
#pragma unroll
            for (int e = 0; e < N / 2; e++) s[e] = power_of_2(fmaf(s[e], x.scale, -x.lse[e / 2 % 2]));
        products_end<0>();
        if (x.works) differ<N>(ds, s, dp, x, j);
        add<T, N>(dq, ds, behind(x.others.first, j, 0));
    }
};

/* -- through all rows ---------------------------------------------------------------------------------------
 */

/* N rows at a time, and the 16 that N may leave. */
template <typename T, int ROWS, int N, typename SUMS>
static __device__ __forceinline__ void walk(SUMS &sums, two mine, const pass &x)
{
    constexpr int WHOLE = ROWS / N;
    static_assert(ROWS % N == 0 || ROWS % N == GROUP, "what N leaves is one product deep");
    float s[N / 2], dp[N / 2];

#pragma unroll
    for (int i = 0; i < WHOLE; i++) {
        score<T, N>(s, dp, mine, behind(x.others, i * N));
        sums.template take<N>(s, dp, x, i * N);
    }
    if constexpr (ROWS % N != 0) {
        float(&s_16)[GROUP / 2] = part<GROUP / 2>(s, 0), (&dp_16)[GROUP / 2] = part<GROUP / 2>(dp, 0);
        score<T, GROUP>(s_16, dp_16, mine, behind(x.others, WHOLE * N));
        sums.template take<GROUP>(s_16, dp_16, x, WHOLE * N);
    }
    products_end<0>();
}

/* The gradients of 64 keys and their values, from row `first` on. */
template <typename T, int ROWS, int N>
static __device__ __forceinline__ void keys_from(int first, const head_rows<ROWS> &m,
                                                 const query_numbers_of<ROWS> &of,
                                                 const lsi_cuda_flash_grad_args &a, const place &at)
{
    const int t = (int)a.t, mine = first + thread_here() % FOUR / LSI_WARP * GROUP;
    const pass x = {.others = {matrix_at(m.q), matrix_at(m.dout)},
                    .t = t,
                    .works = mine < t,
                    .scale = a.scale * LOG2_E,
                    .lses = of.lse,
                    .dots = of.dot};
    sums_of_keys<T> sums = {};

    walk<T, ROWS, N>(sums, behind(two{matrix_at(m.k), matrix_at(m.v)}, first), x);
    store_sums((T *)a.dk + at.q, a.q_rows.row, mine, t, sums.dk, a.scale, a.scale);
    store_sums((T *)a.dv + at.q, a.q_rows.row, mine, t, sums.dv, 1, 1);
}

/* And of 64 queries. */
template <typename T, int ROWS>
static __device__ __forceinline__ void queries_from(int first, const head_rows<ROWS> &m,
                                                    const query_numbers_of<ROWS> &of,
                                                    const lsi_cuda_flash_grad_args &a, const place &at)
{
    const int t = (int)a.t, mine = first + thread_here() % FOUR / LSI_WARP * GROUP;
    pass x = {
        .others = {matrix_at(m.k), matrix_at(m.v)}, .t = t, .works = mine < t, .scale = a.scale * LOG2_E};
    sums_of_queries<T> sums = {};

#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int r = mine + threadIdx.x % LSI_WARP / 4 + half * 8;
        x.lse[half] = r < t ? of.lse[r] : INFINITY;
        x.dot[half] = r < t ? of.dot[r] : 0;
    }
    walk<T, ROWS, TILE>(sums, behind(two{matrix_at(m.q), matrix_at(m.dout)}, first), x);
    store_sums((T *)a.dq + at.q, a.q_rows.row, mine, t, sums.dq, a.scale, a.scale);
}

/* -- a head -------------------------------------------------------------------------------------------------
 */

/* Threads 0..all-1 begin to copy a head's rows. */
template <typename T, int ROWS>
static __device__ __forceinline__ void fetch_head(head_rows<ROWS> &to, const lsi_cuda_flash_grad_args &a,
                                                  const place &at, int all)
{
    const int t = (int)a.t, me = thread_here();

    fetch_rows(&to.dout[0][0], (const T *)a.dout + at.out, a.out_rows.row, 0, ROWS, t, me, all);
    fetch_rows(&to.k[0][0], (const T *)a.k + at.q, a.q_rows.row, 0, ROWS, t, me, all);
    fetch_rows(&to.q[0][0], (const T *)a.q + at.q, a.q_rows.row, 0, ROWS, t, me, all);
    fetch_rows(&to.v[0][0], (const T *)a.v + at.q, a.q_rows.row, 0, ROWS, t, me, all);
    copies_end();
}

/* BY threads make the queries' numbers; what they read of dout here is on its way to the processor anyhow. */
template <typename T, int BY, int ROWS>
static __device__ __forceinline__ void make_numbers(query_numbers_of<ROWS> &of,
                                                    const lsi_cuda_flash_grad_args &a, const place &at)
{
    constexpr int EACH = 8, STEP = BY / EACH, AT_ONCE = 4; /* threads of a row; rows; of a thread */
    const int t = (int)a.t, me = thread_here() % BY, c = me % EACH * 8;

    for (int r = me; r < ROWS; r += BY) of.lse[r] = r < t ? a.lse[at.row + r] * LOG2_E : INFINITY;
#pragma unroll 1
    for (int first = me / EACH; first < ROWS; first += AT_ONCE * STEP) {
        lsi_packed<8, T> out[AT_ONCE], dout[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            const int r = first + i * STEP;
            out[i].raw = dout[i].raw = {};
            if (r >= t) continue;
            out[i].fetch((const T *)a.out + at.out + r * a.out_rows.row + c);
            dout[i].fetch((const T *)a.dout + at.out + r * a.out_rows.row + c);
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            float x[8], y[8], dot = 0;
            out[i].unpack(x);
            dout[i].unpack(y);
#pragma unroll
            for (int k = 0; k < 8; k++) dot = fmaf(x[k], y[k], dot);
            dot = lsi_warp_sum<EACH>(dot);
            if (c == 0 && first + i * STEP < ROWS) of.dot[first + i * STEP] = dot;
        }
    }
}

/* What of a head these four warps of FOURS have: with 4 tiles of 64 rows for 3, the last take two tiles of
 * keys, the others two of queries and one of keys, which leaves the last some time for the next head's
 * numbers. */
template <typename T, int ROWS, int FOURS, int N>
static __device__ __forceinline__ void share_of(int four, const head_rows<ROWS> &m,
                                                const query_numbers_of<ROWS> &of,
                                                const lsi_cuda_flash_grad_args &a, const place &at)
{
    const int tiles = ((int)a.t + TILE - 1) / TILE, each = (tiles + FOURS - 1) / FOURS;
    const int keys = FOURS == 3 ? four : four * each, queries = four * each;
    const int keys_end = four == FOURS - 1 ? tiles : min(keys + (FOURS == 3 ? 1 : each), tiles);
    const int queries_end = min(queries + each, tiles);

#pragma unroll 1
    for (int i = keys; i < keys_end; i++) keys_from<T, ROWS, N>(i * TILE, m, of, a, at);
#pragma unroll 1
    for (int i = queries; i < queries_end; i++) queries_from<T, ROWS>(i * TILE, m, of, a, at);
}

/* -- the kernel ---------------------------------------------------------------------------------------------
 */

/* FOURS: times four warps; of 12 warps the last four make all numbers (share_of), else all do.  N: queries
 * that 64 keys meet at a time.  KEPT: heads whose rows are in shared memory; with two a block goes from head
 * to head. */
template <typename T, int ROWS, int FOURS, int KEPT, int N, int BLOCKS>
__global__ void __launch_bounds__(FOURS *FOUR, BLOCKS)
    flash_grad_kernel(const __grid_constant__ lsi_cuda_flash_grad_args a)
{
    extern __shared__ __align__(ALIGNED) unsigned char shared[];
    memory<ROWS, KEPT> &m = *(memory<ROWS, KEPT> *)aligned(shared);
    constexpr int COUNT = FOURS == 3 ? 1 : FOURS;
    const int heads = (int)(a.samples * a.heads);
    const int four = FOURS == 1 ? 0 : __shfl_sync(LSI_FULL, (int)threadIdx.x / FOUR, 0);

    const auto begin = [&](int head, int i) {
        const place at = place_of(a, (unsigned)head);
        fetch_head<T>(m.head[i], a, at, FOURS * FOUR);
        if (four >= FOURS - COUNT) make_numbers<T, COUNT * FOUR>(m.numbers[i], a, at);
    };

    lsi_wait();
    begin((int)blockIdx.x, 0);
#pragma unroll 1
    for (int head = (int)blockIdx.x, i = 0; head < heads; head += (int)gridDim.x, i ^= KEPT - 1) {
        wait_copies<0>();
        stores_seen();
        __syncthreads();
        if (KEPT > 1 && head + (int)gridDim.x < heads) begin(head + (int)gridDim.x, i ^ 1);
        share_of<T, ROWS, FOURS, N>(four, m.head[i], m.numbers[i], a, place_of(a, (unsigned)head));
    }
}

/* -- launching ----------------------------------------------------------------------------------------------
 */

template <typename T, int ROWS, int FOURS, int KEPT, int N, int BLOCKS>
static int start(lsi_cuda_stream s, const lsi_cuda_flash_grad_args *a)
{
    const auto kernel = flash_grad_kernel<T, ROWS, FOURS, KEPT, N, BLOCKS>;
    const size_t bytes = sizeof(memory<ROWS, KEPT>) + ALIGNED;
    const int64_t heads = a->samples * a->heads;
    int device = 0, processors = 1, code = lsi_flash_allow((const void *)kernel, bytes);

    if (code == 0) code = (int)cudaGetDevice(&device);
    if (code == 0) code = (int)cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (code != 0) return code;
    LSI_LAUNCH(s, (unsigned)(KEPT > 1 && heads > processors ? processors : heads), FOURS * FOUR, bytes,
               kernel, *a);
    return 0;
}

template <typename T> static int by_rows(lsi_cuda_stream s, const lsi_cuda_flash_grad_args *a)
{
    if (a->t <= 64) return start<T, 64, 1, 1, 64, 3>(s, a);
    if (a->t <= 128) return start<T, 128, 1, 1, 64, 2>(s, a);
    if (a->t > 208) return start<T, 256, 2, 1, 64, 1>(s, a);
    switch (a->way) {
    case LSI_FLASH_90A_B: return start<T, 208, 2, 2, 64, 1>(s, a);
    case LSI_FLASH_90A_C: return start<T, 208, 3, 2, 32, 1>(s, a);
    default: return start<T, 208, 1, 1, 64, 2>(s, a);
    }
}

bool lsi_flash_grad_90a_fits(const lsi_cuda_flash_grad_args *a)
{
    return a->d == D && a->t <= 256 && lsi_flash_90a();
}

int lsi_flash_grad_90a(lsi_cuda_stream s, const lsi_cuda_flash_grad_args *a)
{
    return a->dtype == LS_BF16 ? by_rows<__nv_bfloat16>(s, a) : by_rows<__half>(s, a);
}
