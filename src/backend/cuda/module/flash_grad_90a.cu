/* flash_grad_90a.cu: the gradient of attention of heads of 64 elements and up to 256 rows, by compute
 * capability 9.0's instructions (flash_90a.cuh).
 *
 * A block has one head: queries, keys, values and dout are in shared memory, and two blocks are on a
 * processor, so that one computes while the other's rows arrive.  Warps work in fours that never wait for
 * each other: first they take 64 keys at a time through all queries, for dk and dv, then 64 queries at a time
 * through all keys, for dq.  So scores are made twice, seven products in the place of five; but what follows
 * of them is in registers the left operand of the next product as it is, no tile of scores has to lie in
 * shared memory, which would then hold one head only, and nobody adds to what others add to. */
#include "backend/cuda/module/flash_90a.cuh"

template <int ROWS> struct memory {
    unsigned char k[ROWS][ROW], v[ROWS][ROW], q[ROWS][ROW], dout[ROWS][ROW];
    /* Products read whole tiles of 64 rows, here and behind; what becomes of those rows nobody wants. */
    union {
        float numbers[2][ROWS]; /* lse, as a power of 2, and out . dout */
        unsigned char behind[(TILE - ROWS % TILE) % TILE * ROW + 1];
    };
};

/* -- products -----------------------------------------------------------------------------------------------
 */

/* Two matrices in shared memory, from some row on. */
struct two {
    uint64_t first, second;
};

static __device__ __forceinline__ two behind(two m, int rows)
{
    return {behind(m.first, rows, 0), behind(m.second, rows, 0)};
}

/* Begins with scores and the gradient of probabilities: 64 rows of a.first times N of b.first, turned, and of
 * the second ones. */
template <typename T, int N>
static __device__ __forceinline__ void score(float (&s)[N / 2], float (&dp)[N / 2], two a, two b)
{
    const T *type = nullptr;

    products_begin();
#pragma unroll
    for (int i = 0; i < D / GROUP; i++)
        rows_by_rows(s, behind(a.first, 0, i * 32), behind(b.first, 0, i * 32), i > 0, type);
#pragma unroll
    for (int i = 0; i < D / GROUP; i++)
        rows_by_rows(dp, behind(a.second, 0, i * 32), behind(b.second, 0, i * 32), i > 0, type);
    products_go();
}

/* Begins with sum += a times N rows of b. */
template <typename T, int N>
static __device__ __forceinline__ void add(float (&sum)[D / 2], const uint32_t (&a)[N / GROUP][4], uint64_t b)
{
    products_begin();
#pragma unroll
    for (int i = 0; i < N / GROUP; i++)
        registers_by_columns(sum, a[i], behind(b, i * GROUP, 0), 1, (const T *)nullptr);
    products_go();
}

/* What four warps know of their 64 rows, keys or queries, while they go through the other side's. */
struct pass {
    two mine, others; /* these 64 rows; all of the other side's */
    int t;
    bool works;           /* some of the warp's rows are wanted */
    float scale;          /* to a power of 2 */
    const float *numbers; /* keys: of the queries */
    float lse[2], dot[2]; /* queries: of rows row and row + 8 */
};

/* -- keys: dk and dv ----------------------------------------------------------------------------------------
 */

template <typename T, int ROWS> struct sums_of_keys {
    float dk[D / 2], dv[D / 2];

    /* N queries from j on: scores and dp become probabilities and the gradient of scores, but for its factor.
     */
    template <int N>
    static __device__ __forceinline__ void weigh(uint32_t (&p)[N / GROUP][4], uint32_t (&ds)[N / GROUP][4],
                                                 const float (&s)[N / 2], const float (&dp)[N / 2],
                                                 const pass &x, int j)
    {
        const float *of = x.numbers + j + threadIdx.x % 4 * 2;

#pragma unroll
        for (int h = 0; h < N / 8; h++) {
            const float2 lse = *(const float2 *)(of + h * 8), dot = *(const float2 *)(of + ROWS + h * 8);
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int e = h * 4 + half * 2;
                const float p0 = power_of_2(fmaf(s[e], x.scale, -lse.x)),
                            p1 = power_of_2(fmaf(s[e + 1], x.scale, -lse.y));
                p[h / 2][h % 2 * 2 + half] = pair(p0, p1, (const T *)nullptr);
                ds[h / 2][h % 2 * 2 + half] =
                    pair(p0 * (dp[e] - dot.x), p1 * (dp[e + 1] - dot.y), (const T *)nullptr);
            }
        }
    }

    template <int N>
    __device__ __forceinline__ void take(const float (&s)[N / 2], const float (&dp)[N / 2], const pass &x,
                                         int j)
    {
        uint32_t p[N / GROUP][4] = {}, ds[N / GROUP][4] = {};

        if (x.works) weigh<N>(p, ds, s, dp, x, j);
        add<T, N>(dv, p, behind(x.others.second, j, 0));
        add<T, N>(dk, ds, behind(x.others.first, j, 0));
    }
};

/* -- queries: dq --------------------------------------------------------------------------------------------
 */

template <typename T> struct sums_of_queries {
    float dq[D / 2];

    /* N keys from j on; behind the end there is no gradient. */
    template <int N>
    static __device__ __forceinline__ void weigh(uint32_t (&ds)[N / GROUP][4], const float (&s)[N / 2],
                                                 const float (&dp)[N / 2], const pass &x, int j)
    {
        float y[N / 2];

#pragma unroll
        for (int e = 0; e < N / 2; e++) {
            const int half = e / 2 % 2;
            y[e] = power_of_2(fmaf(s[e], x.scale, -x.lse[half])) * (dp[e] - x.dot[half]);
        }
        if (j + N > x.t)
#pragma unroll
            for (int e = 0; e < N / 2; e++)
                if (j + e / 4 * 8 + (int)threadIdx.x % 4 * 2 + e % 2 >= x.t) y[e] = 0;
#pragma unroll
        for (int i = 0; i < N / 4; i++) ds[i / 4][i % 4] = pair(y[2 * i], y[2 * i + 1], (const T *)nullptr);
    }

    template <int N>
    __device__ __forceinline__ void take(const float (&s)[N / 2], const float (&dp)[N / 2], const pass &x,
                                         int j)
    {
        uint32_t ds[N / GROUP][4] = {};

        if (x.works) weigh<N>(ds, s, dp, x, j);
        add<T, N>(dq, ds, behind(x.others.first, j, 0));
    }
};

/* -- through all rows ---------------------------------------------------------------------------------------
 */

/* N rows at a time, and the 16 that N may leave; the next scores are begun behind the products that the last
 * ones are for. */
template <typename T, int ROWS, int N, typename SUMS>
static __device__ __forceinline__ void walk(SUMS &sums, const pass &x)
{
    constexpr int WHOLE = ROWS / N * N;
    static_assert(WHOLE == ROWS || WHOLE + GROUP == ROWS, "what N leaves is one product deep");
    float s[N / 2], dp[N / 2];

#pragma unroll
    for (int j = 0; j < WHOLE; j += N) {
        score<T, N>(s, dp, x.mine, behind(x.others, j));
        products_end();
        sums.template take<N>(s, dp, x, j);
    }
    if constexpr (WHOLE < ROWS) {
        float(&s_16)[GROUP / 2] = part<GROUP / 2>(s, 0), (&dp_16)[GROUP / 2] = part<GROUP / 2>(dp, 0);
        score<T, GROUP>(s_16, dp_16, x.mine, behind(x.others, WHOLE));
        products_end();
        sums.template take<GROUP>(s_16, dp_16, x, WHOLE);
    }
    products_end();
}

/* -- the kernel ---------------------------------------------------------------------------------------------
 */

/* Copies all rows and makes the queries' numbers; a thread reads what of dout it copied itself. */
template <typename T, int ROWS, int THREADS>
static __device__ __forceinline__ void prepare(memory<ROWS> &m, const lsi_cuda_flash_grad_args &a,
                                               const place &at)
{
    constexpr int EACH = ROWS * 8 / THREADS + (ROWS * 8 % THREADS > 0);
    const int t = (int)a.t, me = threadIdx.x;
    lsi_packed<8, T> out[EACH];

    fetch_rows(&m.dout[0][0], (const T *)a.dout + at.out, a.out_rows.row, 0, ROWS, t, me, THREADS);
    copies_end();
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int r = (i * THREADS + me) / 8, c = me % 8;
        out[i].raw = {};
        if (r < t) out[i].fetch((const T *)a.out + at.out + r * a.out_rows.row + c * 8);
    }
    fetch_rows(&m.k[0][0], (const T *)a.k + at.q, a.q_rows.row, 0, ROWS, t, me, THREADS);
    fetch_rows(&m.q[0][0], (const T *)a.q + at.q, a.q_rows.row, 0, ROWS, t, me, THREADS);
    fetch_rows(&m.v[0][0], (const T *)a.v + at.q, a.q_rows.row, 0, ROWS, t, me, THREADS);
    copies_end();
    for (int r = me; r < ROWS; r += THREADS) m.numbers[0][r] = r < t ? a.lse[at.row + r] * LOG2_E : INFINITY;
    wait_copies<1>();
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int r = (i * THREADS + me) / 8, c = me % 8;
        lsi_packed<8, T> dout;
        float x[8], y[8], dot = 0;
        dout.raw = {};
        if (r < ROWS) dout.fetch((const T *)(&m.dout[0][0] + mixed(r, c * 16)));
        out[i].unpack(x);
        dout.unpack(y);
#pragma unroll
        for (int k = 0; k < 8; k++) dot = fmaf(x[k], y[k], dot);
        dot = lsi_warp_sum<8>(dot);
        if (c == 0 && r < ROWS) m.numbers[1][r] = dot;
    }
    wait_copies<0>();
    stores_seen();
    __syncthreads();
}

/* Of more than 208 rows one head only fits on a processor; then twice the warps have it. */
template <int ROWS> constexpr int FOURS = ROWS > 208 ? 2 : 1;

template <typename T, int ROWS>
__global__ void __launch_bounds__(FOURS<ROWS> *FOUR, 2 / FOURS<ROWS>)
    flash_grad_kernel(const __grid_constant__ lsi_cuda_flash_grad_args a)
{
    lsi_wait();
    constexpr int ALL = FOURS<ROWS>, N = ALL == 1 ? TILE : TILE / 2; /* queries that keys go by */
    extern __shared__ __align__(ALIGNED) unsigned char shared[];
    memory<ROWS> &m = *(memory<ROWS> *)aligned(shared);
    const int t = (int)a.t, four = ALL == 1 ? 0 : __shfl_sync(LSI_FULL, (int)threadIdx.x / FOUR, 0);
    const int warp = threadIdx.x % FOUR / LSI_WARP * GROUP, row = warp + threadIdx.x % LSI_WARP / 4;
    const place at = place_of(a);
    const two keys = {matrix_at(m.k), matrix_at(m.v)}, queries = {matrix_at(m.q), matrix_at(m.dout)};
    pass x = {.t = t, .scale = a.scale * LOG2_E, .numbers = m.numbers[0]};

    prepare<T, ROWS, ALL * FOUR>(m, a, at);
#pragma unroll 1
    for (int first = four * TILE; first < t; first += ALL * TILE) {
        sums_of_keys<T, ROWS> sums = {};
        x.mine = behind(keys, first);
        x.others = queries;
        x.works = first + warp < t;
        walk<T, ROWS, N>(sums, x);
        store_sums((T *)a.dk + at.q, a.q_rows.row, first + warp, t, sums.dk, a.scale, a.scale);
        store_sums((T *)a.dv + at.q, a.q_rows.row, first + warp, t, sums.dv, 1, 1);
    }
#pragma unroll 1
    for (int first = four * TILE; first < t; first += ALL * TILE) {
        sums_of_queries<T> sums = {};
        x.mine = behind(queries, first);
        x.others = keys;
        x.works = first + warp < t;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int r = first + row + half * 8;
            x.lse[half] = r < t ? m.numbers[0][r] : INFINITY;
            x.dot[half] = r < t ? m.numbers[1][r] : 0;
        }
        walk<T, ROWS, TILE>(sums, x);
        store_sums((T *)a.dq + at.q, a.q_rows.row, first + warp, t, sums.dq, a.scale, a.scale);
    }
}

/* -- launching ----------------------------------------------------------------------------------------------
 */

template <typename T, int ROWS> static int start(lsi_cuda_stream s, const lsi_cuda_flash_grad_args *a)
{
    const auto kernel = flash_grad_kernel<T, ROWS>;
    const size_t bytes = sizeof(memory<ROWS>) + ALIGNED;
    const int code = lsi_flash_allow((const void *)kernel, bytes);

    if (code != 0) return code;
    LSI_LAUNCH(s, dim3(1, (unsigned)(a->samples * a->heads)), FOURS<ROWS> * FOUR, bytes, kernel, *a);
    return 0;
}

template <typename T> static int by_rows(lsi_cuda_stream s, const lsi_cuda_flash_grad_args *a)
{
    if (a->t <= 64) return start<T, 64>(s, a);
    if (a->t <= 128) return start<T, 128>(s, a);
    if (a->t <= 208) return start<T, 208>(s, a);
    return start<T, 256>(s, a);
}

int lsi_flash_grad_90a(lsi_cuda_stream s, const lsi_cuda_flash_grad_args *a)
{
    return a->dtype == LS_BF16 ? by_rows<__nv_bfloat16>(s, a) : by_rows<__half>(s, a);
}
