/* gemm_90a.cu: products of matrices of bf16 with what follows them, by instructions that only compute
 * capability 9.0 has.
 *
 * As many blocks as there are processors go through the tiles of the result, 128 rows of WIDE columns.  The
 * warps of a block work side by side: one has the operands brought, 64 of the sums' terms at a time; two
 * groups of four multiply, 64 rows each; and when they have their sums, these are rounded, left in shared
 * memory, and taken over by three more, which compute what follows and write it to memory while the others
 * are at the next tile.  So what follows costs no time as long as it takes less than the product.
 *
 * With CLUSTER 2 two blocks have tiles below each other and share the right operand: each has half of it
 * brought, to both.
 *
 * The sums are in an order that the sizes alone give, and those of columns are left tile by tile and added up
 * by a second kernel: bits repeat. */
#include <cuda.h>

#include <cuda_runtime.h>

#define BFLOAT16 /* functions.cuh: as the kernels of chains have them for results of 16 bits */
#include "backend/cuda/launch/gemm.h"
#include "backend/cuda/module/vector.cuh"
#include "backend/cuda/module/warpgroup.cuh"

using bf16 = __nv_bfloat16;

enum {
    ROWS = LSI_GEMM_ROWS, /* of a tile */
    HALF = ROWS / 2,      /* of them, for one group of warps that multiplies */
    DEEP = 64,            /* terms that are brought at once: rows of 128 bytes */
    LINE = 128,           /* bytes */
    GROUP = 128,          /* threads of four warps: the first, then two that multiply */
    THREADS = 3 * GROUP,
    FINISHERS = 96,   /* threads of the first group, but for the warp that has operands brought */
    BOX = DEEP * LINE /* bytes of 64 rows */
};

/* What a kernel is compiled for. */
template <int Wide, int Cluster, bool TurnA, bool TurnB, lsi_gemm_after After> struct way {
    static constexpr int WIDE = Wide, CLUSTER = Cluster;
    static constexpr bool TURN_A = TurnA, TURN_B = TurnB; /* operands lie with the sums' terms as rows */
    static constexpr lsi_gemm_after AFTER = After;
    static constexpr int A = ROWS * LINE, B = WIDE * LINE, STAGE = A + B; /* bytes */
    static constexpr int STAGES = WIDE > 192 ? 3 : 4;
    static constexpr int PIECES = WIDE / 8, AT_ONCE = FINISHERS / PIECES; /* 16 bytes of a row; rows */
};

struct problem {
    CUtensorMap a, b, more;
    bf16 *c, *y;
    const bf16 *bias, *z;
    float *partial;
    int m, n, k, columns, tiles; /* tiles side by side; tiles, or pairs of them, in all */
};

template <typename W> struct memory {
    unsigned char stage[W::STAGES][W::STAGE];     /* left operand, right operand */
    unsigned char sums[W::WIDE / 64][ROWS][LINE]; /* 64 columns each, lines mixed as operands' are */
    float columns[W::AT_ONCE][W::WIDE];
    bf16 bias[LSI_GEMM_MOST];
    /* Of stages: that they have arrived, and that nobody reads them any more.  Of each half of the sums: that
     * they are there, that they are read, and that what is added to them has arrived. */
    uint64_t full[W::STAGES], empty[W::STAGES], left[2], taken[2], added[2];
};

/* A block's place in the cluster. */
static __device__ __forceinline__ int rank_of()
{
    uint32_t rank;

    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return (int)rank;
}

template <int CLUSTER> static __device__ __forceinline__ void blocks_sync()
{
    if constexpr (CLUSTER > 1) {
        asm volatile("barrier.cluster.arrive.release.aligned;\n barrier.cluster.wait.acquire.aligned;" ::
                         : "memory");
    } else {
        __syncthreads();
    }
}

/* The tiles of a block, one after the other: all roles walk through them alike. */
template <typename W> struct walk {
    const problem &p;
    int tile, row, column; /* the first row and column of the tile */

    __device__ __forceinline__ walk(const problem &problem) : p(problem), tile((int)blockIdx.x / W::CLUSTER)
    {
        place();
    }
    __device__ __forceinline__ bool there() const
    {
        return tile < p.tiles;
    }
    __device__ __forceinline__ void next()
    {
        tile += (int)gridDim.x / W::CLUSTER;
        place();
    }
    __device__ __forceinline__ void place()
    {
        row = (tile / p.columns * W::CLUSTER + (W::CLUSTER > 1 ? rank_of() : 0)) * ROWS;
        column = tile % p.columns * W::WIDE;
    }
};

/* Where the ring of stages is. */
template <typename W> struct ring {
    int stage = 0, phase = 0;

    __device__ __forceinline__ void next()
    {
        if (++stage < W::STAGES) return;
        stage = 0;
        phase ^= 1;
    }
};

/* -- bringing operands --------------------------------------------------------------------------------------
 */

template <typename W>
static __device__ __forceinline__ void fetch_stage(const problem &p, uint32_t at, uint32_t full,
                                                   const walk<W> &t, int k, int rank)
{
    const uint32_t b = at + W::A;

    if constexpr (W::TURN_A) {
        fetch_tile(at, &p.a, t.row, k, full);
        fetch_tile(at + BOX, &p.a, t.row + HALF, k, full);
    } else {
        fetch_tile(at, &p.a, k, t.row, full);
    }
    if constexpr (W::CLUSTER == 1) {
        if constexpr (W::TURN_B) {
#pragma unroll
            for (int i = 0; i < W::WIDE / 64; i++) fetch_tile(b + i * BOX, &p.b, t.column + i * 64, k, full);
        } else {
            fetch_tile(b, &p.b, k, t.column, full);
        }
    } else if constexpr (W::TURN_B) { /* each block has half of the rows of every box brought */
        constexpr int PART = DEEP / W::CLUSTER;
#pragma unroll
        for (int i = 0; i < W::WIDE / 64; i++)
            fetch_tile_for((1 << W::CLUSTER) - 1, b + i * BOX + rank * PART * LINE, &p.b, t.column + i * 64,
                           k + rank * PART, full);
    } else {
        constexpr int PART = W::WIDE / W::CLUSTER;
        fetch_tile_for((1 << W::CLUSTER) - 1, b + rank * PART * LINE, &p.b, k, t.column + rank * PART, full);
    }
}

/* What is added to the sums of a tile, to the place where these will be left. */
template <typename W>
static __device__ __forceinline__ void fetch_added(const problem &p, memory<W> &s, const walk<W> &t,
                                                   int phase)
{
    for (int half = 0; half < 2; half++) {
        const uint32_t added = lsi_shared(&s.added[half]);
        barrier_wait(lsi_shared(&s.taken[half]), phase ^ 1);
        barrier_expect(added, W::WIDE / 64 * BOX);
        for (int i = 0; i < W::WIDE / 64; i++)
            fetch_tile(lsi_shared(s.sums[i][half * HALF]), &p.more, t.column + i * 64, t.row + half * HALF,
                       added);
    }
}

/* One thread's work. */
template <typename W> static __device__ void fetch_operands(const problem &p, memory<W> &s)
{
    const int rank = W::CLUSTER > 1 ? rank_of() : 0;
    ring<W> r;
    int phase = 0;

    for (walk<W> t(p); t.there(); t.next(), phase ^= 1) {
        for (int k = 0; k < p.k; k += DEEP, r.next()) {
            const uint32_t full = lsi_shared(&s.full[r.stage]);
            barrier_wait(lsi_shared(&s.empty[r.stage]), r.phase ^ 1);
            barrier_expect(full, W::STAGE);
            fetch_stage<W>(p, lsi_shared(s.stage[r.stage]), full, t, k, rank);
        }
        if constexpr (W::AFTER == LSI_GEMM_ADD) fetch_added<W>(p, s, t, phase);
    }
}

/* -- multiplying --------------------------------------------------------------------------------------------
 */

#define F4(i)  "+f"(c[i]), "+f"(c[(i) + 1]), "+f"(c[(i) + 2]), "+f"(c[(i) + 3])
#define F16(i) F4(i), F4((i) + 4), F4((i) + 8), F4((i) + 12)
#define F32(i) F16(i), F16((i) + 16)
#define TEXT_0                                                                                               \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"                 \
    "%24,%25,%26,%27,%28,%29,%30,%31"
#define TEXT_1                                                                                               \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,"               \
    "%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define TEXT_2                                                                                               \
    "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,"               \
    "%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define TEXT_3                                                                                               \
    "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,"                 \
    "%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
/* c (64 x 256 or 64 x 192) = or, with `more`, += 64 x 16 of a times 16 x 256 of b. */
template <bool TURN_A, bool TURN_B>
static __device__ __forceinline__ void multiply(float (&c)[128], uint64_t a, uint64_t b, int more)
{
    asm volatile("{.reg .pred p;\n setp.ne.b32 p, %130, 0;\n "
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" TEXT_0 "," TEXT_1 "," TEXT_2
                 "," TEXT_3 "}, %128, %129, p, 1, 1, %131, %132;}"
                 : F32(0), F32(32), F32(64), F32(96)
                 : "l"(a), "l"(b), "r"(more), "n"(TURN_A), "n"(TURN_B));
}
template <bool TURN_A, bool TURN_B>
static __device__ __forceinline__ void multiply(float (&c)[96], uint64_t a, uint64_t b, int more)
{
    asm volatile("{.reg .pred p;\n setp.ne.b32 p, %98, 0;\n "
                 "wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 {" TEXT_0 "," TEXT_1 "," TEXT_2
                 "}, %96, %97, p, 1, 1, %99, %100;}"
                 : F32(0), F32(32), F32(64)
                 : "l"(a), "l"(b), "r"(more), "n"(TURN_A), "n"(TURN_B));
}

/* Nobody of this warp reads the stage any more: the blocks that bring its operands are told. */
template <typename W> static __device__ __forceinline__ void release(memory<W> &s, int stage)
{
    const int lane = threadIdx.x % LSI_WARP;

    if constexpr (W::CLUSTER == 1) {
        if (lane == 0) barrier_arrive(lsi_shared(&s.empty[stage]));
    } else {
        if (lane < W::CLUSTER) barrier_arrive_at(lsi_shared(&s.empty[stage]), lane);
    }
}

/* Sums of one tile, this group's half of the rows. */
template <typename W>
static __device__ __forceinline__ void add_products(memory<W> &s, float (&c)[W::WIDE / 2], ring<W> &r, int k,
                                                    int half)
{
    constexpr int STEP_A = W::TURN_A ? 16 * LINE : 32, STEP_B = W::TURN_B ? 16 * LINE : 32;
    int before = 0;

#pragma unroll 1
    for (int done = 0; done < k; done += DEEP, r.next()) {
        const uint32_t a = lsi_shared(s.stage[r.stage]) + half * BOX, b = lsi_shared(s.stage[r.stage]) + W::A;
        barrier_wait(lsi_shared(&s.full[r.stage]), r.phase);
        products_begin();
#pragma unroll
        for (int i = 0; i < DEEP / 16; i++)
            multiply<W::TURN_A, W::TURN_B>(c, matrix_at(a + i * STEP_A), matrix_at(b + i * STEP_B, BOX),
                                           done > 0 || i > 0);
        products_go();
        if (done > 0) { /* while these are under way, those before are over */
            products_wait<1>();
            release<W>(s, before);
        }
        before = r.stage;
    }
    products_end();
    release<W>(s, before);
}

static __device__ __forceinline__ uint32_t pair(float x, float y)
{
    const __nv_bfloat162 p = __floats2bfloat162_rn(x, y);

    return *(const uint32_t *)&p;
}

/* Leaves the sums, with bias and what is added, where the warps that finish tiles look for them. */
template <typename W>
static __device__ __forceinline__ void leave_sums(memory<W> &s, const float (&c)[W::WIDE / 2], int column,
                                                  int half)
{
    const int lane = threadIdx.x % LSI_WARP, warp = threadIdx.x % GROUP / LSI_WARP;
    /* Four matrices of 8 x 8 at once, the lower two below each other: this lane has a row of one of them. */
    const int row = half * HALF + warp * 16 + lane % 16, piece = lane / 16;
    const bf16 *bias = s.bias + column + lane % 4 * 2;

#pragma unroll
    for (int j = 0; j < W::WIDE / 8; j += 2) {
        const int mine = (j + piece) % 8 ^ (row & 7);
        const uint32_t at = lsi_shared(&s.sums[j / 8][row][mine * 16]);
        uint32_t r[4] = {};
        if constexpr (W::AFTER == LSI_GEMM_ADD)
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                         : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                         : "r"(at)
                         : "memory");
#pragma unroll
        for (int i = 0; i < 4; i++) { /* rows 0-7, 8-15; then the same of the next 8 columns */
            const int e = (j + i / 2) * 4 + i % 2 * 2;
            const float2 b = __bfloat1622float2(*(const __nv_bfloat162 *)(bias + (j + i / 2) * 8));
            const float2 more = __bfloat1622float2(*(const __nv_bfloat162 *)&r[i]);
            r[i] = W::AFTER == LSI_GEMM_ADD ? pair(c[e] + b.x + more.x, c[e + 1] + b.y + more.y)
                                            : pair(c[e] + b.x, c[e + 1] + b.y);
        }
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(r[0]),
                     "r"(r[1]), "r"(r[2]), "r"(r[3])
                     : "memory");
    }
}

template <typename W> static __device__ void multiply_tiles(const problem &p, memory<W> &s, int half)
{
    float c[W::WIDE / 2];
    ring<W> r;
    int phase = 0;

    for (walk<W> t(p); t.there(); t.next(), phase ^= 1) {
        add_products<W>(s, c, r, p.k, half);
        if constexpr (W::AFTER == LSI_GEMM_ADD)
            barrier_wait(lsi_shared(&s.added[half]), phase);
        else
            barrier_wait(lsi_shared(&s.taken[half]), phase ^ 1);
        leave_sums<W>(s, c, t.column, half);
        if constexpr (W::AFTER == LSI_GEMM_ADD) stores_seen(); /* before more is brought to the same place */
        barrier_arrive(lsi_shared(&s.left[half]));
    }
}

/* -- what follows -------------------------------------------------------------------------------------------
 */

/* A thread's part of a tile: 8 columns of every AT_ONCE-th row, of which it handles some at a time. */
template <typename W> struct part {
    static constexpr int SOME = 4, STEPS = (HALF + W::AT_ONCE * SOME - 1) / (W::AT_ONCE * SOME);
    int piece, first, rows; /* of 8 columns; row; rows of the half that are there */
    int64_t at, next;       /* where its columns of the half's first row are in the result; row to row */
    bool there;

    __device__ __forceinline__ part(const problem &p, const walk<W> &t, int half)
    {
        const int thread = (int)threadIdx.x - LSI_WARP, row = t.row + half * HALF;
        piece = thread % W::PIECES;
        first = thread / W::PIECES;
        there = first < W::AT_ONCE && t.column + piece * 8 < p.n;
        rows = p.m - row < HALF ? p.m - row : HALF;
        next = p.n;
        at = row * next + t.column + piece * 8;
    }
    __device__ __forceinline__ int row(int step, int i) const
    {
        return first + (step * SOME + i) * W::AT_ONCE;
    }
    __device__ __forceinline__ bool has(int step, int i) const
    {
        return there && row(step, i) < rows;
    }
};

template <typename W>
static __device__ __forceinline__ void fetch_z(const problem &p, const part<W> &mine, int step,
                                               uint4 (&z)[part<W>::SOME])
{
#pragma unroll
    for (int i = 0; i < part<W>::SOME; i++)
        if (mine.has(step, i)) z[i] = __ldg((const uint4 *)(p.z + mine.at + mine.row(step, i) * mine.next));
}

/* One access to the result. */
template <typename W>
static __device__ __forceinline__ void finish(const problem &p, int64_t at, const uint4 &left, const uint4 &z,
                                              float (&sums)[8])
{
    lsi_packed<8, bf16> in, beside;
    float x[8], b[8];

    in.raw = left;
    if constexpr (W::AFTER == LSI_GEMM_GELU_GRAD) {
        beside.raw = z;
        in.unpack(x);
        beside.unpack(b);
#pragma unroll
        for (int k = 0; k < 8; k++) {
            x[k] = lsi_pw_gelu_grad(x[k], b[k]);
            sums[k] += x[k];
        }
        lsi_store<8>(p.c + at, x);
    } else {
        *(uint4 *)(p.c + at) = left;
    }
    if constexpr (W::AFTER == LSI_GEMM_GELU) {
        in.unpack(x);
#pragma unroll
        for (int k = 0; k < 8; k++) x[k] = lsi_pw_gelu(x[k]);
        lsi_store<8>(p.y + at, x);
    }
}

template <typename W>
static __device__ __forceinline__ void finish_half(const problem &p, memory<W> &s, const walk<W> &t, int half,
                                                   int phase, float (&sums)[8])
{
    constexpr int SOME = part<W>::SOME;
    constexpr bool BESIDE = W::AFTER == LSI_GEMM_GELU_GRAD;
    const part<W> mine(p, t, half);
    uint4 z[SOME] = {}, z_next[SOME] = {}, left[SOME] = {};

    if constexpr (BESIDE) fetch_z<W>(p, mine, 0, z);
    barrier_wait(lsi_shared(&s.left[half]), phase);
#pragma unroll 1
    for (int step = 0; step < part<W>::STEPS; step++) {
        if constexpr (BESIDE) fetch_z<W>(p, mine, step + 1, z_next);
#pragma unroll
        for (int i = 0; i < SOME; i++) {
            const int row = half * HALF + mine.row(step, i);
            if (mine.has(step, i))
                left[i] = *(const uint4 *)&s.sums[mine.piece / 8][row][(mine.piece % 8 ^ (row & 7)) * 16];
        }
#pragma unroll
        for (int i = 0; i < SOME; i++)
            if (mine.has(step, i)) finish<W>(p, mine.at + mine.row(step, i) * mine.next, left[i], z[i], sums);
        if constexpr (BESIDE)
#pragma unroll
            for (int i = 0; i < SOME; i++) z[i] = z_next[i];
    }
    if constexpr (W::AFTER == LSI_GEMM_ADD) stores_seen();
    barrier_arrive(lsi_shared(&s.taken[half]));
}

static __device__ __forceinline__ void finishers_sync()
{
    asm volatile("bar.sync 1, %0;" ::"n"((int)FINISHERS) : "memory");
}

/* The sums of the tile's columns, from those of the threads that finish it. */
template <typename W>
static __device__ __forceinline__ void leave_columns(const problem &p, memory<W> &s, const walk<W> &t,
                                                     const float (&sums)[8])
{
    const int thread = (int)threadIdx.x - LSI_WARP, first = thread / W::PIECES;

    if (first < W::AT_ONCE)
#pragma unroll
        for (int k = 0; k < 8; k += 4)
            *(float4 *)&s.columns[first][thread % W::PIECES * 8 + k] =
                make_float4(sums[k], sums[k + 1], sums[k + 2], sums[k + 3]);
    finishers_sync();
    for (int i = thread; i < W::WIDE; i += FINISHERS) {
        float sum = 0;
#pragma unroll
        for (int r = 0; r < W::AT_ONCE; r++) sum += s.columns[r][i];
        if (t.column + i < p.n && t.row < p.m) p.partial[(int64_t)(t.row / ROWS) * p.n + t.column + i] = sum;
    }
    finishers_sync();
}

template <typename W> static __device__ void finish_tiles(const problem &p, memory<W> &s)
{
    int phase = 0;

    for (walk<W> t(p); t.there(); t.next(), phase ^= 1) {
        float sums[8] = {};
        finish_half<W>(p, s, t, 0, phase, sums);
        finish_half<W>(p, s, t, 1, phase, sums);
        if constexpr (W::AFTER == LSI_GEMM_GELU_GRAD) leave_columns<W>(p, s, t, sums);
    }
}

/* -- the kernel ---------------------------------------------------------------------------------------------
 */

template <typename W> static __device__ void begin(const problem &p, memory<W> &s)
{
    const int warps = 2 * GROUP / LSI_WARP; /* that multiply */

    for (int i = threadIdx.x; i < p.columns * W::WIDE; i += THREADS)
        s.bias[i] = p.bias != nullptr && i < p.n ? p.bias[i] : __float2bfloat16_rn(0.0f);
    if (threadIdx.x == 0) {
        for (int i = 0; i < W::STAGES; i++) {
            barrier_init(lsi_shared(&s.full[i]), 1);
            barrier_init(lsi_shared(&s.empty[i]), warps * W::CLUSTER);
        }
        for (int i = 0; i < 2; i++) {
            barrier_init(lsi_shared(&s.left[i]), GROUP);
            barrier_init(lsi_shared(&s.taken[i]), FINISHERS);
            barrier_init(lsi_shared(&s.added[i]), 1);
        }
        barriers_seen();
    }
    __syncthreads();
    if constexpr (W::CLUSTER > 1) blocks_sync<W::CLUSTER>(); /* before anybody sends anything */
}

template <typename W>
__global__ void __launch_bounds__(THREADS, 1) gemm_90a_kernel(const __grid_constant__ problem p)
{
    extern __shared__ unsigned char shared[];
    memory<W> &s = *(memory<W> *)(shared + (1024 - lsi_shared(shared) % 1024) % 1024);
    const int group = threadIdx.x / GROUP;

    begin<W>(p, s);
    if (group == 0) {
        give_registers<120>();
        if (threadIdx.x == 0) fetch_operands<W>(p, s);
        if (threadIdx.x >= LSI_WARP) finish_tiles<W>(p, s);
        __syncwarp();
    } else {
        take_registers<192>();
        multiply_tiles<W>(p, s, group - 1);
    }
    if constexpr (W::CLUSTER > 1) blocks_sync<W::CLUSTER>(); /* a block that has ended can be told nothing */
}

/* A warp has 32 columns, a block some of the tiles. */
template <typename T>
__global__ void __launch_bounds__(1024) gemm_columns_kernel(T *sums, const float *partial, int tiles, int n)
{
    __shared__ float part[32][LSI_WARP];
    const int column = (int)(blockIdx.x * LSI_WARP + threadIdx.x % LSI_WARP), warp = threadIdx.x / LSI_WARP;
    float sum = 0;

    if (column < n)
        for (int i = warp; i < tiles; i += 32) sum += partial[(int64_t)i * n + column];
    part[warp][threadIdx.x % LSI_WARP] = sum;
    __syncthreads();
    if (warp != 0 || column >= n) return;
    for (int i = 1; i < 32; i++) sum += part[i][threadIdx.x];
    sums[column] = lsi_put<T>(sum);
}

/* -- launching ----------------------------------------------------------------------------------------------
 */

typedef CUresult (*encoder)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                            const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                            CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

/* The driver's function that describes tensors to the device. */
static int find_encoder(encoder *out)
{
    static encoder found;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
    void *f = nullptr;

    if (found == nullptr) {
        const cudaError_t e =
            cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault, &result);
        if (e != cudaSuccess) return (int)e;
        if (result != cudaDriverEntryPointSuccess || f == nullptr) return (int)cudaErrorNotSupported;
        found = (encoder)f;
    }
    *out = found;
    return 0;
}

/* A matrix of `rows` rows of `width` elements, from which boxes of 64 elements of box_rows rows are taken. */
static int describe(CUtensorMap *map, const void *at, int64_t rows, int64_t width, int box_rows)
{
    const cuuint64_t size[2] = {(cuuint64_t)width, (cuuint64_t)rows}, pitch[1] = {(cuuint64_t)width * 2};
    const cuuint32_t box[2] = {64, (cuuint32_t)box_rows}, each[2] = {1, 1};
    encoder encode;
    int code = find_encoder(&encode);

    if (code == 0)
        code = (int)encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, (void *)at, size, pitch, box, each,
                           CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                           CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return code; /* the driver's errors are numbered as the runtime's */
}

template <typename W> static int describe_all(problem *p, const lsi_cuda_gemm_args *a)
{
    int code = W::TURN_A ? describe(&p->a, a->a, a->k, a->m, DEEP) : describe(&p->a, a->a, a->m, a->k, ROWS);

    if (code == 0)
        code = W::TURN_B ? describe(&p->b, a->b, a->k, a->n, DEEP / W::CLUSTER)
                         : describe(&p->b, a->b, a->n, a->k, W::WIDE / W::CLUSTER);
    if (code == 0 && W::AFTER == LSI_GEMM_ADD) code = describe(&p->more, a->more, a->m, a->n, HALF);
    return code;
}

template <typename W> static int start(cudaStream_t stream, const problem &p, int processors)
{
    const int all = p.tiles * W::CLUSTER, most = processors / W::CLUSTER * W::CLUSTER;
    const size_t bytes = sizeof(memory<W>) + 1024;
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute cluster;
    cudaError_t e =
        cudaFuncSetAttribute(gemm_90a_kernel<W>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);

    static_assert(sizeof(memory<W>) + 1024 <= 232448, "a block has no more");
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {(unsigned)W::CLUSTER, 1, 1};
    config.gridDim = dim3((unsigned)(all < most ? all : most));
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = bytes;
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = 1;
    if (e == cudaSuccess) e = cudaLaunchKernelEx(&config, gemm_90a_kernel<W>, p);
    return (int)e;
}

template <typename W> static int run(cudaStream_t stream, const lsi_cuda_gemm_args *a, int processors)
{
    const int64_t rows = LSI_GEMM_PARTIAL(a->m), columns = (a->n + W::WIDE - 1) / W::WIDE;
    problem p = {};
    int code = describe_all<W>(&p, a);

    if (columns * W::WIDE > LSI_GEMM_MOST) return (int)cudaErrorNotSupported;
    p.c = (bf16 *)a->c;
    p.y = (bf16 *)a->y;
    p.bias = (const bf16 *)a->bias;
    p.z = (const bf16 *)a->more;
    p.partial = a->partial;
    p.m = (int)a->m;
    p.n = (int)a->n;
    p.k = (int)a->k;
    p.columns = (int)columns;
    p.tiles = (int)((rows + W::CLUSTER - 1) / W::CLUSTER * columns);
    return code != 0 ? code : start<W>(stream, p, processors);
}

template <int WIDE, int CLUSTER>
static int run_after(cudaStream_t stream, const lsi_cuda_gemm_args *a, int processors)
{
    switch (a->after) {
    case LSI_GEMM_GELU: return run<way<WIDE, CLUSTER, false, false, LSI_GEMM_GELU>>(stream, a, processors);
    case LSI_GEMM_GELU_GRAD:
        return run<way<WIDE, CLUSTER, false, true, LSI_GEMM_GELU_GRAD>>(stream, a, processors);
    case LSI_GEMM_ADD: return run<way<WIDE, CLUSTER, false, false, LSI_GEMM_ADD>>(stream, a, processors);
    default: break;
    }
    if (a->trans_a) return run<way<WIDE, CLUSTER, true, true, LSI_GEMM_BIAS>>(stream, a, processors);
    return a->trans_b ? run<way<WIDE, CLUSTER, false, false, LSI_GEMM_BIAS>>(stream, a, processors)
                      : run<way<WIDE, CLUSTER, false, true, LSI_GEMM_BIAS>>(stream, a, processors);
}

/* How many multiprocessors the device has, if it is one that these kernels are for. */
static int processors_of(int *out)
{
    int device = 0, major = 0, minor = 0, code = lsi_cuda_enter();

    if (code == 0) code = (int)cudaGetDevice(&device);
    if (code == 0) code = (int)cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (code == 0) code = (int)cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    if (code == 0) code = (int)cudaDeviceGetAttribute(out, cudaDevAttrMultiProcessorCount, device);
    return code == 0 && (major != 9 || minor != 0) ? (int)cudaErrorNotSupported : code;
}

static int total_columns(lsi_cuda_stream s, const lsi_cuda_gemm_args *a)
{
    LSI_FLOAT_TYPES(a->sums_dtype, LSI_LAUNCH(s, (unsigned)((a->n + LSI_WARP - 1) / LSI_WARP), 1024, 0,
                                              gemm_columns_kernel<T>, (T *)a->sums, a->partial,
                                              (int)LSI_GEMM_PARTIAL(a->m), (int)a->n));
    return 0;
}

int lsi_cuda_gemm(lsi_cuda_stream s, const lsi_cuda_gemm_args *a)
{
    int processors = 0, code = processors_of(&processors);

    if (code != 0) return code;
    if (!lsi_gemm_fits(a)) return (int)cudaErrorNotSupported;
    switch (a->way) {
    case 0: code = run_after<256, 2>((cudaStream_t)s, a, processors); break;
    case 1: code = run_after<192, 2>((cudaStream_t)s, a, processors); break;
    case 2: code = run_after<256, 1>((cudaStream_t)s, a, processors); break;
    case 3: code = run_after<192, 1>((cudaStream_t)s, a, processors); break;
    default: return (int)cudaErrorNotSupported;
    }
    return code == 0 && a->after == LSI_GEMM_GELU_GRAD ? total_columns(s, a) : code;
}
