/* flash_90a.cu: the gradient of attention as in flash_heads.cu, up to 208 rows of 64 elements, by
 * instructions that only compute capability 9.0 has: four warps multiply 64 rows at a time, operands come
 * from shared memory as they lie, and products go on while warps compute.
 *
 * A block has one head, four groups of four warps 64 keys each.  They go through the queries 32 at a time:
 * scores and the gradient of probabilities are products of K and V with Q and dout; what follows of them is,
 * in registers, the left operand of dv and dk, and, left in shared memory, that of dq, which the groups then
 * make 64 queries each.  Rows are 128 bytes, 16 bytes of them at a place that the row's number is mixed into,
 * as the instructions want it: so the same rows serve as either operand, turned or not. */
#include "backend/cuda/module/flash.cuh"
#include "backend/cuda/module/warpgroup.cuh"

constexpr int D = 64;

enum {
    KEYS = 208,    /* rows of keys that are kept */
    QUERIES = 224, /* of queries: whole steps */
    STEP = 32,     /* queries at a time */
    WARPS = 16,
    TILE = 64, /* rows of a product */
    ROW = 128, /* bytes */
    CHUNK = 64 /* queries that arrive together */
};

/* -- products -----------------------------------------------------------------------------------------------
 */

/* c (64 x 32) = or, with `more`, += 64 rows of a times 32 rows of b, turned, of 16 elements each. */
static __device__ __forceinline__ void rows_by_rows(float (&c)[16], uint64_t a, uint64_t b, int more,
                                                    const __nv_bfloat16 *)
{
    asm volatile(
        "{.reg .pred p;\n setp.ne.b32 p, %18, 0;\n wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
        "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, %16, %17, p, 1, 1, 0, 0;}"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]),
          "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15])
        : "l"(a), "l"(b), "r"(more));
}
static __device__ __forceinline__ void rows_by_rows(float (&c)[16], uint64_t a, uint64_t b, int more,
                                                    const __half *)
{
    asm volatile(
        "{.reg .pred p;\n setp.ne.b32 p, %18, 0;\n wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
        "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, %16, %17, p, 1, 1, 0, 0;}"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]),
          "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15])
        : "l"(a), "l"(b), "r"(more));
}

/* c (64 x 64) += a (64 x 16, as sums of products are laid out) times 16 rows of b. */
static __device__ __forceinline__ void registers_by_columns(float (&c)[32], const uint32_t (&a)[4],
                                                            uint64_t b, const __nv_bfloat16 *)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"
                 "%25,%26,%27,%28,%29,%30,%31}, {%32,%33,%34,%35}, %36, 1, 1, 1, 1;"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),
                   "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]),
                   "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]),
                   "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]),
                   "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
static __device__ __forceinline__ void registers_by_columns(float (&c)[32], const uint32_t (&a)[4],
                                                            uint64_t b, const __half *)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"
                 "%25,%26,%27,%28,%29,%30,%31}, {%32,%33,%34,%35}, %36, 1, 1, 1, 1;"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),
                   "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]),
                   "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]),
                   "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]),
                   "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

/* c (64 x 64) += 64 columns of 16 rows of a, turned, times 16 rows of b. */
static __device__ __forceinline__ void columns_by_columns(float (&c)[32], uint64_t a, uint64_t b,
                                                          const __nv_bfloat16 *)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"
                 "%25,%26,%27,%28,%29,%30,%31}, %32, %33, 1, 1, 1, 1, 1;"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),
                   "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]),
                   "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]),
                   "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]),
                   "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31])
                 : "l"(a), "l"(b));
}
static __device__ __forceinline__ void columns_by_columns(float (&c)[32], uint64_t a, uint64_t b,
                                                          const __half *)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"
                 "%25,%26,%27,%28,%29,%30,%31}, %32, %33, 1, 1, 1, 1, 1;"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),
                   "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]),
                   "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]),
                   "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]),
                   "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31])
                 : "l"(a), "l"(b));
}

/* -- rows in shared memory ----------------------------------------------------------------------------------
 */

struct memory {
    unsigned char q[QUERIES][ROW], dout[QUERIES][ROW], k[KEYS][ROW], v[KEYS][ROW];
    unsigned char scores[QUERIES / CHUNK + 1][KEYS]
                        [ROW]; /* their gradient by keys, CHUNK queries side by side */
    float lse[QUERIES], dots[QUERIES];
};

static __device__ __forceinline__ int mixed(int row, int byte)
{
    return row * ROW + (byte ^ (row & 7) << 4);
}

/* All threads begin to copy rows first..end-1 of n; those behind the end of the tensor become 0. */
template <typename T>
static __device__ __forceinline__ void fetch_rows(unsigned char *to, const T *from, int64_t pitch, int first,
                                                  int end, int n)
{
    for (int i = first * 8 + (int)threadIdx.x; i < end * 8; i += WARPS * LSI_WARP) {
        const int r = i / 8, c = i % 8;
        copy_16(to + mixed(r, c * 16), from + (r < n ? r * pitch + c * 8 : 0), r < n);
    }
}

static __device__ __forceinline__ float power_of_2(float x)
{
    float y;

    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Scores and the gradient of probabilities of 64 keys and the STEP queries from j on. */
template <typename T>
static __device__ __forceinline__ void score(float (&s)[16], float (&dp)[16], uint32_t k, uint32_t v,
                                             uint32_t q, uint32_t dout)
{
    products_begin();
#pragma unroll
    for (int i = 0; i < D / 16; i++)
        rows_by_rows(s, matrix_at(k + i * 32), matrix_at(q + i * 32), i > 0, (const T *)nullptr);
#pragma unroll
    for (int i = 0; i < D / 16; i++)
        rows_by_rows(dp, matrix_at(v + i * 32), matrix_at(dout + i * 32), i > 0, (const T *)nullptr);
    products_go();
    products_end();
}

/* s becomes probabilities and dp the gradient of scores, both as left operands. */
template <typename T>
static __device__ __forceinline__ void weigh(uint32_t (&p)[2][4], uint32_t (&ds)[2][4], const float (&s)[16],
                                             const float (&dp)[16], const float *lse, const float *dots,
                                             float scale, const bool (&there)[2])
{
    const int two = threadIdx.x % 4 * 2;

#pragma unroll
    for (int h = 0; h < STEP / 8; h++) {
        const float2 log = *(const float2 *)&lse[h * 8 + two], dot = *(const float2 *)&dots[h * 8 + two];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int e = h * 4 + half * 2;
            const float x = power_of_2(fmaf(s[e], scale * LOG2_E, -log.x)),
                        y = power_of_2(fmaf(s[e + 1], scale * LOG2_E, -log.y));
            const float dx = there[half] ? scale * x * (dp[e] - dot.x) : 0.0f,
                        dy = there[half] ? scale * y * (dp[e + 1] - dot.y) : 0.0f;
            p[h / 2][h % 2 * 2 + half] = pair(x, y, (const T *)nullptr);
            ds[h / 2][h % 2 * 2 + half] = pair(dx, dy, (const T *)nullptr);
        }
    }
}

/* Keeps the gradient of the warp's 16 keys from `mine` on and STEP queries from j on. */
static __device__ __forceinline__ void keep(memory &m, const uint32_t (&ds)[2][4], int mine, int j)
{
    const int lane = threadIdx.x % LSI_WARP, row = mine + lane / 4;
    unsigned char *to = &m.scores[j / CHUNK][0][0];

#pragma unroll
    for (int h = 0; h < STEP / 8; h++) {
        const int byte = (j % CHUNK + h * 8 + lane % 4 * 2) * 2;
        *(uint32_t *)(to + mixed(row, byte)) = ds[h / 2][h % 2 * 2];
        *(uint32_t *)(to + mixed(row + 8, byte)) = ds[h / 2][h % 2 * 2 + 1];
    }
}

/* -- the kernel ---------------------------------------------------------------------------------------------
 */

/* A sum as flash.cuh's functions have it. */
template <typename T>
static __device__ __forceinline__ void store_sum(T *to, int64_t pitch, int first, int n, const float (&c)[32])
{
    store<T, D>(to, pitch, first, n, *(const float(*)[D / 8][4]) & c, 1, 1);
}

template <typename T>
__global__ void __launch_bounds__(WARPS *LSI_WARP, 1)
    flash_90a_grad_kernel(const __grid_constant__ lsi_cuda_flash_grad_args a)
{
    lsi_wait();
    extern __shared__ unsigned char shared[];
    memory &m = *(memory *)(shared + (1024 - (uint32_t)__cvta_generic_to_shared(shared) % 1024) % 1024);
    const int t = (int)a.t, lane = threadIdx.x % LSI_WARP, warp = threadIdx.x / LSI_WARP;
    const int mine = warp * GROUP, tile = warp / 4 * TILE;
    const place at = place_of(a);
    const uint32_t q = (uint32_t)__cvta_generic_to_shared(m.q),
                   dout = (uint32_t)__cvta_generic_to_shared(m.dout),
                   k = (uint32_t)__cvta_generic_to_shared(m.k), v = (uint32_t)__cvta_generic_to_shared(m.v);
    const bool there[2] = {mine + lane / 4 < t, mine + lane / 4 + 8 < t};
    const T *type = nullptr;

    fetch_rows(&m.k[0][0], (const T *)a.k + at.q, a.q_rows.row, 0, KEYS, t);
    fetch_rows(&m.v[0][0], (const T *)a.v + at.q, a.q_rows.row, 0, KEYS, t);
    for (int first = 0; first < QUERIES; first += CHUNK) {
        const int end = first + CHUNK < QUERIES ? first + CHUNK : QUERIES;
        fetch_rows(&m.q[0][0], (const T *)a.q + at.q, a.q_rows.row, first, end, t);
        fetch_rows(&m.dout[0][0], (const T *)a.dout + at.out, a.out_rows.row, first, end, t);
        copies_end();
    }
    if (mine < QUERIES) query_numbers<T, D>(a, at, t, mine, m.lse, m.dots);
    float dk[32] = {}, dv[32] = {};
#pragma unroll 1
    for (int j = 0; j < QUERIES; j += STEP) {
        float s[16], dp[16];
        uint32_t p[2][4], ds[2][4];
        if (j % CHUNK == 0) { /* the next queries are there */
            if (j == 0)
                wait_copies<3>();
            else if (j == CHUNK)
                wait_copies<2>();
            else if (j == 2 * CHUNK)
                wait_copies<1>();
            else
                wait_copies<0>();
            stores_seen();
            __syncthreads();
        }
        score<T>(s, dp, k + tile * ROW, v + tile * ROW, q + j * ROW, dout + j * ROW);
        weigh<T>(p, ds, s, dp, m.lse + j, m.dots + j, a.scale, there);
        if (mine < KEYS) keep(m, ds, mine, j);
        products_begin();
#pragma unroll
        for (int i = 0; i < STEP / 16; i++) {
            registers_by_columns(dv, p[i], matrix_at(dout + (j + i * 16) * ROW), type);
            registers_by_columns(dk, ds[i], matrix_at(q + (j + i * 16) * ROW), type);
        }
        products_go();
        products_end(); /* going on meanwhile would take more registers than there are: other groups do */
    }
    stores_seen();
    __syncthreads();
    float dq[32] = {};
    products_begin();
#pragma unroll
    for (int i = 0; i < KEYS / 16; i++)
        columns_by_columns(
            dq, matrix_at((uint32_t)__cvta_generic_to_shared(m.scores[tile / CHUNK][0]) + i * 16 * ROW),
            matrix_at(k + i * 16 * ROW), type);
    products_go();
    store_sum((T *)a.dk + at.q, a.q_rows.row, mine, t, dk);
    store_sum((T *)a.dv + at.q, a.q_rows.row, mine, t, dv);
    products_end();
    store_sum((T *)a.dq + at.q, a.q_rows.row, mine, t, dq);
}

template <typename T> static int backward(lsi_cuda_stream s, const lsi_cuda_flash_grad_args *a)
{
    const size_t bytes = sizeof(memory) + 1024;
    const int code = lsi_flash_allow((const void *)flash_90a_grad_kernel<T>, bytes);

    if (code != 0) return code;
    LSI_LAUNCH(s, dim3(1, (unsigned)(a->samples * a->heads)), WARPS * LSI_WARP, bytes,
               flash_90a_grad_kernel<T>, *a);
    return 0;
}

bool lsi_flash_90a_fits(int64_t t)
{
    int device = 0, major = 0, minor = 0;

    return t <= KEYS && lsi_cuda_enter() == 0 && cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
           cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess &&
           major == 9 && minor == 0;
}

int lsi_flash_90a_grad(lsi_cuda_stream s, const lsi_cuda_flash_grad_args *a)
{
    return a->dtype == LS_BF16 ? backward<__nv_bfloat16>(s, a) : backward<__half>(s, a);
}
