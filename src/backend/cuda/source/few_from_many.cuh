/* few_from_many.cuh: from many channels to few: convolutions to images, and data gradients of those of images.
 *
 * A row of the map with many channels adds to KH rows of the other: for each of them a product of pixels
 * (rows) and (kx, few channel) (columns) over the many channels.  Rows stream through shared memory once, 128
 * bytes of each pixel a stage; the sums of the KH rows under way stay in registers, and whenever a row can get
 * no more, only kx is left to be folded, through shared memory. */

constexpr int COLUMNS = (RUN + 7) / 8, WIDE = COLUMNS * 8 + 1; /* floats of a pixel in `folds`, without conflicts */
constexpr int PIXELS = WARPS * TILES * 16, STAGE = PIXELS * 128;
constexpr int CHUNKS = M * SIZE / 128, STEPS = M * SIZE / 32; /* stages of a row; steps of 32 bytes */
constexpr int STRIPS = (W + STRIP - 1) / STRIP, BANDS = (H + BAND - 1) / BAND;
constexpr int PACKED = KH * STEPS * COLUMNS * 32 * 8; /* bytes of the weights */

static_assert(STAGES * STAGE + PACKED + 2 * STRIDE * PIXELS * WIDE * 4 == SHARED, "few_tiles.c");

static __device__ __forceinline__ int floor_div(int a, int b)
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/* Fragments of the weights, of tap row, step, column and lane. */
static __device__ void pack_weights(const ELEMENT *w, uint2 *out)
{
#pragma unroll 4
    for (int i = threadIdx.x; i < KH * STEPS * COLUMNS * 32; i += THREADS) {
        const int lane = i % 32, column = i / 32 % COLUMNS, step = i / (32 * COLUMNS) % STEPS;
        const int ky = i / (32 * COLUMNS * STEPS), e = column * 8 + lane / 4;
        const int m = step * 8 * UNIT + lane % 4 * UNIT;
        float v[2][2] = {};
        if (e < RUN)
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int k = 0; k < UNIT; k++) v[h][k] = weight(w, m + h * 4 * UNIT + k, e % F, ky, e / F);
        out[i] = make_uint2(packed(v[0][0], v[0][1]), packed(v[1][0], v[1][1]));
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) few(const __grid_constant__ arguments a)
{
    lsi_wait();
    char *stages = memory;
    uint2 *weights = (uint2 *)(memory + STAGES * STAGE);
    float *folds = (float *)((char *)weights + PACKED); /* [2][STRIDE][PIXELS][WIDE] */
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int strip = blockIdx.x % STRIPS, band = blockIdx.x / STRIPS % BANDS, n = blockIdx.x / (STRIPS * BANDS);
    /* What this block owns of the result, and what of the other map it needs for it. */
    const int fx0 = strip * STRIP, fx1 = min(fx0 + STRIP, W), fy0 = band * BAND, fy1 = min(fy0 + BAND, H);
    const int x0 = max(floor_div(fx0 + LEFT - KW + STRIDE, STRIDE), 0);
    const int x1 = min((fx1 - 1 + LEFT) / STRIDE, MW - 1) + 1;
    const int y0 = floor_div(fy0 + TOP - KH + STRIDE, STRIDE), y1 = (fy1 - 1 + TOP) / STRIDE + 1;
    float sum[KH][TILES][COLUMNS][4] = {};

    /* Pixels behind the strip stay zero; 16-byte pieces of a pixel are permuted by its number, so that eight
     * pixels are in all banks. */
    clear(stages, STAGES * STAGE);
    __syncthreads();
    const auto load = [&](int stage) {
        const int y = y0 + stage / CHUNKS;
        const bool ok = y >= 0 && y < MH;
        const ELEMENT *from = a.many + ((long long)(n * MH + (ok ? y : 0)) * MW + x0) * M +
                              stage % CHUNKS * (128 / SIZE);
        char *to = stages + stage % STAGES * STAGE;
        for (int i = threadIdx.x; i < (x1 - x0) * 8; i += THREADS)
            copy<16>(shared(to + i / 8 * 128 + ((i % 8) ^ (i / 8 & 7)) * 16), from + i / 8 * M + i % 8 * PER16,
                     ok);
    };
    const int count = (y1 - y0) * CHUNKS;
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) {
        if (i < count) load(i);
        commit();
    }
    pack_weights(a.weights, weights); /* while the first rows come */
    /* Row r of the other map is done with rows (y0 + r) * STRIDE - TOP + q of the result. */
    const auto fold = [&](int r) {
        const int wide = (fx1 - fx0) * F;
#pragma unroll
        for (int q = 0; q < STRIDE; q++) {
            const int fy = (y0 + r) * STRIDE - TOP + q;
            const float *from = folds + ((r & 1) * STRIDE + q) * PIXELS * WIDE;
            if (fy < fy0 || fy >= fy1) continue;
            ELEMENT *to = a.out + (((long long)n * H + fy) * W + fx0) * F;
            for (int i = threadIdx.x; i < wide; i += THREADS) {
                const int f = i % F, at = fx0 + i / F + LEFT, last = at / STRIDE - x0, phase = at % STRIDE;
                float v = BIASED ? get(a.bias[f]) : 0.0f;
#pragma unroll
                for (int k = 0; k < (KW + STRIDE - 1) / STRIDE; k++) {
                    const int kx = phase + k * STRIDE, x = last - k;
                    if (kx < KW && x >= 0 && x < x1 - x0) v += from[x * WIDE + kx * F + f];
                }
                to[i] = put(activate(v));
            }
        }
    };
    for (int i = 0; i < count; i++) {
        const int r = i / CHUNKS, chunk = i % CHUNKS;
        wait<STAGES - 2>();
        __syncthreads(); /* the stage is here, and the sums of row r - 1 are in `folds` */
        if (i + STAGES - 1 < count) load(i + STAGES - 1);
        commit();
        const int pixel = warp * TILES * 16 + (lane & 15), half = lane >> 4;
        const unsigned x = shared(stages + i % STAGES * STAGE) + pixel * 128;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            operand m[TILES];
#pragma unroll
            for (int j = 0; j < TILES; j++) {
                unsigned raw[4];
                load_matrix(raw, x + j * 2048 + (((k * 2 + half) ^ (pixel & 7)) * 16));
                m[j].take(raw);
            }
            const uint2 *b = weights + (chunk * 4 + k) * COLUMNS * 32 + lane;
#pragma unroll
            for (int ky = 0; ky < KH; ky++)
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) {
                    const uint2 v = b[(ky * STEPS * COLUMNS + c) * 32];
#pragma unroll
                    for (int j = 0; j < TILES; j++) add_product(sum[ky][j][c], m[j], v.x, v.y);
                }
        }
        if (chunk != CHUNKS - 1) continue;
        if (r > 0) fold(r - 1);
#pragma unroll
        for (int q = 0; q < STRIDE; q++)
#pragma unroll
            for (int j = 0; j < TILES; j++) {
                float *to =
                    folds + (((r & 1) * STRIDE + q) * PIXELS + (warp * TILES + j) * 16 + g) * WIDE + 2 * t;
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) {
                    to[c * 8] = sum[q][j][c][0];
                    to[c * 8 + 1] = sum[q][j][c][1];
                    to[8 * WIDE + c * 8] = sum[q][j][c][2];
                    to[8 * WIDE + c * 8 + 1] = sum[q][j][c][3];
                }
            }
#pragma unroll
        for (int ky = 0; ky < KH; ky++)
#pragma unroll
            for (int j = 0; j < TILES; j++)
#pragma unroll
                for (int c = 0; c < COLUMNS; c++)
#pragma unroll
                    for (int e = 0; e < 4; e++)
                        sum[ky][j][c][e] = ky + STRIDE < KH ? sum[ky + STRIDE < KH ? ky + STRIDE : 0][j][c][e] : 0.0f;
    }
    __syncthreads();
    if (count > 0) fold((count - 1) / CHUNKS);
}
