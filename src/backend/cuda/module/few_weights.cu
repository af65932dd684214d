/* few_weights.cu: the weight gradient of convolutions between few channels and
 * many.
 *
 * A product of 64 of the many channels (rows) and taps (columns) over k =
 * pixels.  Rows of the map with many channels come by asynchronous copies and
 * are read transposed; those of the other map stay as they are in a ring, and
 * the pairs of pixels of a column are gathered by loads of 16 bits.  Each block
 * keeps the sums of all its rows in registers; the blocks' sums are added up as
 * columns at the end, in order. */
#include "backend/cuda/module/few.cuh"
#include "backend/cuda/module/groups.cuh"

enum {
    THREADS = 128,
    WARPS = THREADS / 32,
    GAP = 144
}; /* GAP: bytes a pixel of 64 channels takes, without bank conflicts */

struct shape {
    int lead, pitch;
    int pixels;       /* of a row, rounded up to 16 */
    int taps;         /* kh * kw * f */
    int teams;        /* warps that share the taps; the others share the pixels */
    int columns;      /* taps / 8 of a warp */
    int stages, ring; /* rows that are under way or in use: of many, of few */
};

static size_t shared_bytes(const shape *s)
{
    return (size_t)s->stages * (size_t)s->pixels * GAP + (size_t)(s->ring + 1) * (size_t)s->pitch * 2;
}

static bool plan(const lsi_cuda_few *p, shape *s)
{
    s->lead = lsi_few_lead(p);
    s->pixels = (p->mw + 15) / 16 * 16;
    s->pitch = lsi_few_pitch(p, s->pixels);
    s->taps = p->kh * p->kw * p->f;
    s->columns = s->taps <= 8 * 4 * WARPS ? 4 : 10;
    for (s->teams = 1; s->teams * s->columns * 8 < s->taps && s->teams <= WARPS; s->teams *= 2) {
    }
    for (s->stages = 4; s->stages > 1; s->stages /= 2) {
        s->ring = p->kh + (s->stages - 1) * p->stride;
        if (shared_bytes(s) <= LSI_FEW_SHARED) break;
    }
    return s->teams <= WARPS && s->stages > 1;
}

static __device__ __forceinline__ uint32_t two(const char *p, int apart)
{
    return (uint32_t) * (const uint16_t *)p | (uint32_t) * (const uint16_t *)(p + apart) << 16;
}

template <int COLUMNS, int STAGES>
__global__ void __launch_bounds__(THREADS, 2) weights_kernel(lsi_cuda_few_weights_args a, shape s)
{
    extern __shared__ __align__(16) char memory[];
    const lsi_cuda_few &p = a.p;
    const int row_bytes = s.pixels * GAP, ring_bytes = s.pitch * 2;
    char *many = memory, *few = memory + STAGES * row_bytes;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int team = warp % s.teams, share = warp / s.teams, shares = WARPS / s.teams;
    const int step = p.stride * p.f * 2; /* bytes from a pixel's run to the next */
    const int channel = blockIdx.y * 64, rows = p.n * p.mh;
    /* This block's rows of the map with many channels: whole stretches, so that
     * the ring is of use. */
    const int per = (rows + (int)gridDim.x - 1) / (int)gridDim.x, lo = (int)blockIdx.x * per;
    const int hi = lo + per < rows ? lo + per : rows;
    float sum[COLUMNS][4][4] = {};
    int place[COLUMNS], slot[COLUMNS]; /* of this thread's taps: bytes into a row,
                                          and the row of the ring */

    for (int i = threadIdx.x; i < (STAGES * row_bytes + (s.ring + 1) * ring_bytes) / 16; i += THREADS)
        ((uint4 *)memory)[i] = make_uint4(0, 0, 0, 0); /* what no copy reaches stays zero */
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) {
        const int tap = (team * COLUMNS + j) * 8 + g, in = tap < s.taps ? tap : 0;
        place[j] = (s.lead + in % (p.kw * p.f)) * 2 + 2 * t * step;
    }
    /* Matrices for ldmatrix: pixels 0-7 and 8-15, channels 0-7 and 8-15 of a tile
     * of 16 x 16. */
    const uint32_t lane_at = (uint32_t)(((lane & 7) + (lane >> 4) * 8) * GAP + ((lane >> 3) & 1) * 16);
    __syncthreads();
    for (int at = lo; at < hi;) {
        const int n = at / p.mh, y0 = at % p.mh;
        const int count = hi - at < p.mh - y0 ? hi - at : p.mh - y0; /* rows of one sample */
        const auto load = [&](int r) {
            const __nv_bfloat16 *from =
                (const __nv_bfloat16 *)a.many + (((int64_t)n * p.mh + y0 + r) * p.mw) * p.m + channel;
            char *to = many + r % STAGES * row_bytes;
            for (int i = threadIdx.x; i < p.mw * 8; i += THREADS)
                lsi_copy16(lsi_shared(to + i / 8 * GAP + i % 8 * 16),
                           from + (int64_t)(i / 8) * p.m + i % 8 * 8, true);
            const int q =
                r == 0 ? 0 : r * p.stride + p.kh - p.stride; /* the first row that is not there yet */
            lsi_few_rows(p, (const __nv_bfloat16 *)a.few, n, y0 * p.stride - p.top + q,
                         r * p.stride + p.kh - q, (__nv_bfloat16 *)few, s.pitch, s.ring, q % s.ring, s.lead);
        };
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            const int tap = (team * COLUMNS + j) * 8 + g;
            slot[j] = tap < s.taps ? tap / (p.kw * p.f) : 0;
        }
#pragma unroll
        for (int i = 0; i < STAGES - 1; i++) {
            if (i < count) load(i);
            lsi_copy_commit();
        }
        for (int r = 0; r < count; r++) {
            lsi_copy_wait<STAGES - 2>();
            __syncthreads();
            if (r + STAGES - 1 < count) load(r + STAGES - 1);
            lsi_copy_commit();
            const uint32_t x = lsi_shared(many + r % STAGES * row_bytes) + lane_at;
            for (int k = share; k < s.pixels / 16; k += shares) {
                uint32_t m[4][4];
#pragma unroll
                for (int i = 0; i < 4; i++) lsi_ldmatrix_trans(m[i], x + (uint32_t)(k * 16 * GAP + i * 32));
#pragma unroll
                for (int j = 0; j < COLUMNS; j++) {
                    const char *q = few + slot[j] * ring_bytes + place[j] + k * 16 * step;
                    const uint32_t b0 = two(q, step), b1 = two(q + 8 * step, step);
#pragma unroll
                    for (int i = 0; i < 4; i++) lsi_mma(sum[j][i], m[i], b0, b1);
                }
            }
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                slot[j] += p.stride;
                if (slot[j] >= s.ring) slot[j] -= s.ring;
            }
        }
        lsi_copy_wait<0>();
        __syncthreads();
        at += count;
    }
    /* The warps that share pixels, one after the other, into the block's sums of
     * (tap, channel). */
    float *out = a.partial + (int64_t)blockIdx.x * s.taps * p.m;
    for (int k = 0; k < shares; k++) {
        if (share == k)
#pragma unroll
            for (int j = 0; j < COLUMNS; j++)
#pragma unroll
                for (int i = 0; i < 4; i++)
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        const int tap = (team * COLUMNS + j) * 8 + 2 * t + e % 2;
                        if (tap >= s.taps) continue;
                        float *to = out + (int64_t)tap * p.m + channel + i * 16 + g + e / 2 * 8;
                        *to = k == 0 ? sum[j][i][e] : *to + sum[j][i][e];
                    }
        __syncthreads();
    }
}

/* The blocks' sums, rows of (tap, channel), to the weights where they lie. */
struct total_rule {
    using T = float;
    static constexpr int V = 4, SUMS = 1;
    struct constants {
    };
    lsi_cuda_few p;
    const float *partial;
    __nv_bfloat16 *weights;

    __device__ void begin(int64_t, int64_t, int, constants &) const
    {
    }
    __device__ void add(int64_t at, const constants &, float (&s)[SUMS][V]) const
    {
        float f[V];

        lsi_load<V>(partial + at, f);
#pragma unroll
        for (int k = 0; k < V; k++) s[0][k] += f[k];
    }
    __device__ void finish(int64_t group, int64_t, const float (&s)[SUMS]) const
    {
        const int m = (int)(group % p.m), tap = (int)(group / p.m), f = tap % p.f;
        const int kx = tap / p.f % p.kw, ky = tap / (p.f * p.kw);

        weights[p.w_first + m * p.w_m + f * p.w_f + ky * p.w_ky + kx * p.w_kx] = __float2bfloat16_rn(s[0]);
    }
};

template <int COLUMNS, int STAGES>
static int launch(lsi_cuda_stream st, const lsi_cuda_few_weights_args *a, const shape &s)
{
    const cudaError_t e = cudaFuncSetAttribute(weights_kernel<COLUMNS, STAGES>,
                                               cudaFuncAttributeMaxDynamicSharedMemorySize, LSI_FEW_SHARED);

    if (e != cudaSuccess) return (int)e;
    LSI_LAUNCH(st, dim3((unsigned)a->blocks, (unsigned)(a->p.m / 64)), THREADS, shared_bytes(&s),
               (weights_kernel<COLUMNS, STAGES>), *a, s);
    return 0;
}

int lsi_cuda_few_weights(lsi_cuda_stream st, const lsi_cuda_few_weights_args *a)
{
    const total_rule r = {a->p, a->partial, (__nv_bfloat16 *)a->weights};
    shape s;
    int code;

    if (!plan(&a->p, &s)) return (int)cudaErrorNotSupported;
    if (a->p.ask) return 0;
    if (s.columns == 4)
        code = s.stages == 4 ? launch<4, 4>(st, a, s) : launch<4, 2>(st, a, s);
    else
        code = s.stages == 4 ? launch<10, 4>(st, a, s) : launch<10, 2>(st, a, s);
    const lsi_cuda_groups g = {true, 1, (int64_t)s.taps * a->p.m, a->blocks, 1, nullptr, nullptr};
    return code != 0 ? code : lsi_sum_groups(st, r, g);
}
