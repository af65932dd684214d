/* few_to_many.cu: convolutions from few channels to many: of images, and the
 * data gradient of convolutions to them.
 *
 * A product of pixels (rows) and output channels (columns, 64 a block) over k =
 * (ky, pairs of the run of kx and channels).  The run of a pixel's row is
 * contiguous in shared memory, so every register of operand A is one load of 32
 * bits; a run that begins at an odd element is met by a zero weight in front of
 * it, and where odd pixels begin at odd elements, even and odd pixels are tiles
 * of their own with two sets of weights. Output channels are permuted among the
 * columns so that each thread writes 16 bytes.  Bound by the bytes of the
 * result. */
#include "backend/cuda/module/few.cuh"

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    TILES = 2,
    COLUMNS = 8
}; /* 16-pixel tiles and 8-channel columns of a warp */

struct shape {
    int lead, pitch, rows; /* of the slab: rows of the map with few channels */
    int ty;                /* output rows of a slab */
    int pairs, steps;      /* of a tap row; k steps of 16 */
    int across;            /* 16-pixel tiles of an output row, of one parity */
    int bands, slabs;
};

static int parities(const lsi_cuda_few *p)
{
    return p->stride * p->f % 2 == 0 ? 1 : 2;
}

static size_t weights_bytes(const lsi_cuda_few *p, int steps)
{
    return (size_t)parities(p) * (size_t)steps * COLUMNS * 32 * sizeof(uint2);
}

static bool plan(const lsi_cuda_few *p, shape *s, size_t *shared)
{
    const int each = 16 * parities(p);

    s->lead = lsi_few_lead(p);
    s->across = (p->mw + each - 1) / each;
    if (parities(p) == 2) s->across += s->across % 2; /* a warp's two tiles are of one parity */
    s->pitch = lsi_few_pitch(p, s->across * each);
    s->pairs = (p->kw * p->f + 2) / 2;
    s->steps = (p->kh * s->pairs + 7) / 8;
    for (s->ty = 8; s->ty > 0; s->ty /= 2) {
        s->rows = (s->ty - 1) * p->stride + p->kh;
        *shared = weights_bytes(p, s->steps) + 2 * (size_t)(s->rows + 1) * (size_t)s->pitch * 2;
        if (*shared <= LSI_FEW_SHARED) break;
    }
    if (s->ty == 0 || s->steps > 12) return false;
    s->bands = (p->mh + s->ty - 1) / s->ty;
    s->slabs = p->n * s->bands;
    return true;
}

/* The weights as fragments: of parity, step, column and lane. */
static __device__ void pack_weights(const lsi_cuda_few &p, const shape &s, const __nv_bfloat16 *w,
                                    int channel, int sets, uint2 *out)
{
    for (int i = threadIdx.x; i < sets * s.steps * COLUMNS * 32; i += THREADS) {
        const int lane = i % 32, column = i / 32 % COLUMNS, step = i / (32 * COLUMNS) % s.steps;
        const int parity = i / (32 * COLUMNS * s.steps), n = lane / 4, t = lane % 4;
        const int m = channel + column / 4 * 32 + n / 2 * 8 + column % 4 * 2 + n % 2;
        const int front = (s.lead + parity * p.stride * p.f) % 2; /* the zero before an odd run */
        float v[4];
        for (int k = 0; k < 4; k++) {
            const int q = step * 8 + t + k / 2 * 4, ky = q / s.pairs, e = q % s.pairs * 2 + k % 2 - front;
            const bool in = ky < p.kh && e >= 0 && e < p.kw * p.f;
            v[k] = in ? lsi_few_weight(p, w, m, e % p.f, ky, e / p.f) : 0.0f;
        }
        out[i] = make_uint2(lsi_pair(v[0], v[1]), lsi_pair(v[2], v[3]));
    }
}

template <int STEPS, int SETS>
__global__ void __launch_bounds__(THREADS, 2) to_many_kernel(lsi_cuda_few_to_many_args a, shape s)
{
    extern __shared__ __align__(16) char memory[];
    const lsi_cuda_few &p = a.p;
    uint2 *weights = (uint2 *)memory;
    __nv_bfloat16 *slabs = (__nv_bfloat16 *)(memory + SETS * STEPS * COLUMNS * 32 * (int)sizeof(uint2));
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int channel = blockIdx.y * 64;
    __shared__ float bias[64];

    if (threadIdx.x < 64)
        bias[threadIdx.x] =
            a.bias != nullptr ? lsi_get(((const __nv_bfloat16 *)a.bias)[channel + threadIdx.x]) : 0.0f;
    pack_weights(p, s, (const __nv_bfloat16 *)a.weights, channel, SETS, weights);
    for (int i = threadIdx.x; i < 2 * (s.rows + 1) * s.pitch / 8; i += THREADS)
        ((uint4 *)slabs)[i] = make_uint4(0, 0, 0, 0);
    int offset[2 * STEPS]; /* bytes to this thread's pairs */
#pragma unroll
    for (int i = 0; i < 2 * STEPS; i++) {
        const int q = i * 4 + t;
        offset[i] = q < p.kh * s.pairs ? (q / s.pairs * s.pitch + q % s.pairs * 2) * 2 : 0;
    }
    const auto load = [&](int tile, int which) {
        lsi_few_rows(p, (const __nv_bfloat16 *)a.few, tile / s.bands,
                     tile % s.bands * s.ty * p.stride - p.top, s.rows, slabs + which * (s.rows + 1) * s.pitch,
                     s.pitch, s.rows, 0, s.lead);
    };
    __syncthreads(); /* the zeros are there */
    if ((int)blockIdx.x < s.slabs) load(blockIdx.x, 0);
    lsi_copy_commit();
    int which = 0;
    for (int tile = blockIdx.x; tile < s.slabs; tile += gridDim.x, which ^= 1) {
        const int n = tile / s.bands, y0 = tile % s.bands * s.ty;
        const __nv_bfloat16 *slab = slabs + which * (s.rows + 1) * s.pitch;
        lsi_copy_wait<0>();
        __syncthreads(); /* this slab is here, and the other one is read */
        if (tile + (int)gridDim.x < s.slabs) load(tile + gridDim.x, which ^ 1);
        lsi_copy_commit();
        const int tiles = s.ty * s.across * SETS;
        for (int first = warp * TILES; first < tiles; first += WARPS * TILES) {
            float sum[TILES][COLUMNS][4] = {};
            const char *base[TILES];
            int px[TILES], py[TILES];
            /* Tiles of one parity come before those of the other; both of a pair are
             * of one. */
            const int parity = SETS == 1 ? 0 : first >= s.ty * s.across;
#pragma unroll
            for (int i = 0; i < TILES; i++) {
                const int k = first + i - parity * s.ty * s.across;
                py[i] = k / s.across;
                px[i] = (k % s.across * 16 + g) * SETS + parity;
                if (py[i] >= s.ty) py[i] = s.ty; /* none: it reads the spare row and is not written */
                const int e = (px[i] * p.stride * p.f + s.lead) & ~1;
                base[i] = (const char *)(slab + (py[i] < s.ty ? py[i] * p.stride : 0) * s.pitch + e);
            }
            const int below = 8 * SETS * p.stride * p.f * 2; /* bytes from row g to row g + 8 of a tile */
            const uint2 *b = weights + parity * STEPS * COLUMNS * 32 + lane;
#pragma unroll
            for (int k = 0; k < STEPS; k++) {
                uint32_t x[TILES][4];
#pragma unroll
                for (int i = 0; i < TILES; i++) {
                    x[i][0] = *(const uint32_t *)(base[i] + offset[2 * k]);
                    x[i][1] = *(const uint32_t *)(base[i] + offset[2 * k] + below);
                    x[i][2] = *(const uint32_t *)(base[i] + offset[2 * k + 1]);
                    x[i][3] = *(const uint32_t *)(base[i] + offset[2 * k + 1] + below);
                }
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) {
                    const uint2 v = b[(k * COLUMNS + c) * 32];
#pragma unroll
                    for (int i = 0; i < TILES; i++) lsi_mma(sum[i][c], x[i], v.x, v.y);
                }
            }
#pragma unroll
            for (int i = 0; i < TILES; i++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const int y = y0 + py[i], x = px[i] + h * 8 * SETS;
                    if (py[i] >= s.ty || y >= p.mh || x >= p.mw) continue;
                    __nv_bfloat16 *to = (__nv_bfloat16 *)a.many + (((int64_t)n * p.mh + y) * p.mw + x) * p.m +
                                        channel + t * 8;
#pragma unroll
                    for (int q = 0; q < 2; q++) {
                        float f[8];
#pragma unroll
                        for (int k = 0; k < 8; k++)
                            f[k] = lsi_act(a.act, a.slope,
                                           sum[i][4 * q + k / 2][2 * h + k % 2] + bias[q * 32 + t * 8 + k]);
                        lsi_store<8>(to + q * 32, f);
                    }
                }
        }
    }
}

template <int STEPS, int SETS>
static int launch(lsi_cuda_stream st, const lsi_cuda_few_to_many_args *a, shape s, size_t shared)
{
    const int blocks = s.slabs < 2 * 132 ? s.slabs : 2 * 132; /* all that are resident */
    const cudaError_t e = cudaFuncSetAttribute(to_many_kernel<STEPS, SETS>,
                                               cudaFuncAttributeMaxDynamicSharedMemorySize, LSI_FEW_SHARED);

    if (e != cudaSuccess) return (int)e;
    LSI_LAUNCH(st, dim3((unsigned)blocks, (unsigned)(a->p.m / 64)), THREADS, shared,
               (to_many_kernel<STEPS, SETS>), *a, s);
    return 0;
}

template <int STEPS> static int by_parity(lsi_cuda_stream st, const lsi_cuda_few_to_many_args *a, shape s)
{
    const size_t shared = weights_bytes(&a->p, STEPS) + 2 * (size_t)(s.rows + 1) * (size_t)s.pitch * 2;

    s.steps = STEPS; /* steps behind the last tap have zero weights */
    return parities(&a->p) == 1 ? launch<STEPS, 1>(st, a, s, shared) : launch<STEPS, 2>(st, a, s, shared);
}

int lsi_cuda_few_to_many(lsi_cuda_stream st, const lsi_cuda_few_to_many_args *a)
{
    shape s;
    size_t shared;

    if (!plan(&a->p, &s, &shared)) return (int)cudaErrorNotSupported;
    if (a->p.ask) return 0;
    if (s.steps <= 2) return by_parity<2>(st, a, s);
    if (s.steps <= 4) return by_parity<4>(st, a, s);
    if (s.steps <= 7) return by_parity<7>(st, a, s);
    return s.steps <= 10 ? by_parity<10>(st, a, s) : by_parity<12>(st, a, s);
}
