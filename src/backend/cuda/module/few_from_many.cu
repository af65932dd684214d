/* few_from_many.cu: convolutions from many channels to few: to images, and the data gradient of convolutions
 * of them.
 *
 * A row of the map with many channels adds to kh rows of the other: for each of them a product of pixels
 * (rows) and (kx, few channel) (columns) over the many channels.  Rows stream through shared memory once; the
 * sums of the kh rows under way stay in registers, and whenever a row can get no more, only kx is left to be
 * folded, through shared memory.  A block has 144 pixels across, so what two blocks both read is a few pixels
 * at the seams. */
#include "backend/cuda/module/few.cuh"

enum {
    WARPS = 9,
    THREADS = WARPS * 32,
    PIXELS = WARPS * 16,
    STAGES = 3,
    ROW = PIXELS * 128
}; /* ROW: bytes of 64 channels */

struct shape {
    int strip, strips; /* columns of the result that a block owns */
    int band, bands;   /* rows likewise */
    int chunks;        /* of 64 channels */
};

/* Pixels of the map with many channels that a strip of so many columns needs. */
static int needed(const lsi_cuda_few *p, int strip)
{
    const int n = (strip + p->kw - 2) / p->stride + 2;

    return n < p->mw ? n : p->mw;
}

static int columns_of(const lsi_cuda_few *p)
{
    return (p->kw * p->f + 7) / 8;
}

static size_t shared_bytes(const lsi_cuda_few *p, int kh, int columns)
{
    const size_t weights = (size_t)kh * (size_t)(p->m / 16) * (size_t)columns * 256;
    const size_t folds = (size_t)(2 * p->stride * PIXELS * (columns * 8 + 1)) * 4;

    return weights + folds + (size_t)STAGES * ROW * (size_t)(p->m / 64) + 128;
}

static bool plan(const lsi_cuda_few *p, shape *s)
{
    s->strips = 1;
    s->strip = p->w;
    while (needed(p, s->strip) > PIXELS && s->strips < p->w) {
        s->strips++;
        s->strip = (p->w + s->strips - 1) / s->strips;
    }
    s->band = 32 * p->stride;
    s->bands = (p->h + s->band - 1) / s->band;
    s->chunks = p->m / 64;
    return p->stride <= 2 && p->kh >= p->stride && p->kh <= 7 && columns_of(p) <= 3 &&
           shared_bytes(p, p->kh <= 5 ? 5 : 7, columns_of(p) == 1 ? 1 : 3) <= LSI_FEW_SHARED + 12 * 1024;
}

static __device__ __forceinline__ int floor_div(int a, int b)
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/* Fragments of the weights, of tap row, 16 channels, column and lane. */
template <int KH, int COLUMNS>
static __device__ void pack_weights(const lsi_cuda_few &p, const __nv_bfloat16 *w, uint2 *out)
{
    const int sixteens = p.m / 16;

    for (int i = threadIdx.x; i < KH * sixteens * COLUMNS * 32; i += THREADS) {
        const int lane = i % 32, column = i / 32 % COLUMNS, k = i / (32 * COLUMNS) % sixteens;
        const int ky = i / (32 * COLUMNS * sixteens), e = column * 8 + lane / 4, m = k * 16 + lane % 4 * 2;
        const bool in = ky < p.kh && e < p.kw * p.f;
        float v[4];
        for (int j = 0; j < 4; j++)
            v[j] = in ? lsi_few_weight(p, w, m + j / 2 * 8 + j % 2, e % p.f, ky, e / p.f) : 0.0f;
        out[i] = make_uint2(lsi_pair(v[0], v[1]), lsi_pair(v[2], v[3]));
    }
}

template <int KH, int COLUMNS, int STRIDE>
__global__ void __launch_bounds__(THREADS) from_many_kernel(lsi_cuda_few_from_many_args a, shape s)
{
    constexpr int WIDE = COLUMNS * 8 + 1; /* floats of a pixel in `folds`: odd, against bank conflicts */
    extern __shared__ __align__(128) char memory[];
    const lsi_cuda_few &p = a.p;
    char *rows = memory;
    uint2 *weights = (uint2 *)(memory + STAGES * ROW * s.chunks);
    float *folds = (float *)(weights + KH * (p.m / 16) * COLUMNS * 32); /* [2][STRIDE][PIXELS][WIDE] */
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int strip = blockIdx.x % s.strips, band = blockIdx.x / s.strips % s.bands,
              n = blockIdx.x / (s.strips * s.bands);
    /* What this block owns of the result, and what of the other map it needs for it. */
    const int fx0 = strip * s.strip, fx1 = min(fx0 + s.strip, p.w), fy0 = band * s.band,
              fy1 = min(fy0 + s.band, p.h);
    const int x0 = max(floor_div(fx0 + p.left - p.kw + STRIDE, STRIDE), 0);
    const int x1 = min((fx1 - 1 + p.left) / STRIDE, p.mw - 1) + 1;
    const int y0 = floor_div(fy0 + p.top - p.kh + STRIDE, STRIDE), y1 = (fy1 - 1 + p.top) / STRIDE + 1;
    float sum[KH][COLUMNS][4] = {};

    pack_weights<KH, COLUMNS>(p, (const __nv_bfloat16 *)a.weights, weights);
    for (int i = threadIdx.x; i < STAGES * ROW * s.chunks / 16; i += THREADS)
        ((uint4 *)rows)[i] = make_uint4(0, 0, 0, 0);
    __syncthreads();
    /* 16-byte pieces of a pixel are permuted by its number, so that eight pixels are in all banks. */
    const auto load = [&](int r) {
        const int y = y0 + r, each = s.chunks * 8;
        const bool ok = y >= 0 && y < p.mh;
        const __nv_bfloat16 *from =
            (const __nv_bfloat16 *)a.many + ((int64_t)(n * p.mh + (ok ? y : 0)) * p.mw + x0) * p.m;
        char *to = rows + r % STAGES * ROW * s.chunks;
        for (int i = threadIdx.x; i < (x1 - x0) * each; i += THREADS) {
            const int q = i / each, c = i % each;
            lsi_copy16(lsi_shared(to + c / 8 * ROW + q * 128 + ((c % 8) ^ (q & 7)) * 16),
                       from + (int64_t)q * p.m + c * 8, ok);
        }
    };
    /* Row r of the other map is done with rows (y0 + r) * STRIDE - top + q of the result. */
    const auto fold = [&](int r) {
        const int count = (fx1 - fx0) * p.f;
        for (int i = threadIdx.x; i < STRIDE * count; i += THREADS) {
            const int q = i / count, e = i % count, f = e % p.f, fx = fx0 + e / p.f;
            const int fy = (y0 + r) * STRIDE - p.top + q;
            if (fy < fy0 || fy >= fy1) continue;
            const float *from = folds + ((r & 1) * STRIDE + q) * PIXELS * WIDE;
            float v = a.bias != nullptr ? lsi_get(((const __nv_bfloat16 *)a.bias)[f]) : 0.0f;
            for (int kx = (fx + p.left) % STRIDE; kx < p.kw; kx += STRIDE) {
                const int x = fx + p.left - kx; /* a multiple of STRIDE */
                if (x >= x0 * STRIDE && x < x1 * STRIDE) v += from[(x / STRIDE - x0) * WIDE + kx * p.f + f];
            }
            ((__nv_bfloat16 *)a.few)[(((int64_t)n * p.h + fy) * p.w + fx) * p.f + f] =
                __float2bfloat16_rn(lsi_act(a.act, a.slope, v));
        }
    };
    const int count = y1 - y0;
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) {
        if (i < count) load(i);
        lsi_copy_commit();
    }
    for (int r = 0; r < count; r++) {
        lsi_copy_wait<STAGES - 2>();
        __syncthreads(); /* row r is here, and the sums of row r - 1 are in `folds` */
        if (r + STAGES - 1 < count) load(r + STAGES - 1);
        lsi_copy_commit();
        const int pixel = warp * 16 + (lane & 15), half = lane >> 4;
        const uint32_t x = lsi_shared(rows + r % STAGES * ROW * s.chunks);
        for (int k = 0; k < p.m / 16; k++) {
            uint32_t m[4];
            lsi_ldmatrix(
                m, x + (uint32_t)(k / 4 * ROW + pixel * 128 + (((k % 4 * 2 + half) ^ (pixel & 7)) * 16)));
#pragma unroll
            for (int ky = 0; ky < KH; ky++)
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) {
                    const uint2 b = weights[((ky * (p.m / 16) + k) * COLUMNS + c) * 32 + lane];
                    lsi_mma(sum[ky][c], m, b.x, b.y);
                }
        }
        if (r > 0) fold(r - 1);
#pragma unroll
        for (int q = 0; q < STRIDE; q++) {
            float *to = folds + (((r & 1) * STRIDE + q) * PIXELS + warp * 16 + g) * WIDE + 2 * t;
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                to[c * 8] = sum[q][c][0];
                to[c * 8 + 1] = sum[q][c][1];
                to[8 * WIDE + c * 8] = sum[q][c][2];
                to[8 * WIDE + c * 8 + 1] = sum[q][c][3];
            }
        }
#pragma unroll
        for (int ky = 0; ky < KH; ky++)
#pragma unroll
            for (int c = 0; c < COLUMNS; c++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    sum[ky][c][e] = ky + STRIDE < KH ? sum[min(ky + STRIDE, KH - 1)][c][e] : 0.0f;
    }
    __syncthreads();
    if (count > 0) fold(count - 1);
}

template <int KH, int COLUMNS, int STRIDE>
static int launch(lsi_cuda_stream st, const lsi_cuda_few_from_many_args *a, const shape &s)
{
    const size_t shared = shared_bytes(&a->p, KH, COLUMNS);
    const cudaError_t e = cudaFuncSetAttribute(from_many_kernel<KH, COLUMNS, STRIDE>,
                                               cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);

    if (e != cudaSuccess) return (int)e;
    LSI_LAUNCH(st, (unsigned)(a->p.n * s.bands * s.strips), THREADS, shared,
               (from_many_kernel<KH, COLUMNS, STRIDE>), *a, s);
    return 0;
}

template <int KH, int COLUMNS>
static int by_stride(lsi_cuda_stream st, const lsi_cuda_few_from_many_args *a, const shape &s)
{
    return a->p.stride == 1 ? launch<KH, COLUMNS, 1>(st, a, s) : launch<KH, COLUMNS, 2>(st, a, s);
}

int lsi_cuda_few_from_many(lsi_cuda_stream st, const lsi_cuda_few_from_many_args *a)
{
    shape s;

    if (!plan(&a->p, &s)) return (int)cudaErrorNotSupported;
    if (a->p.ask) return 0;
    if (a->p.kh <= 5) return columns_of(&a->p) == 1 ? by_stride<5, 1>(st, a, s) : by_stride<5, 3>(st, a, s);
    return columns_of(&a->p) == 1 ? by_stride<7, 1>(st, a, s) : by_stride<7, 3>(st, a, s);
}
