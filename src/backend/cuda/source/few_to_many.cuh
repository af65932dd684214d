/* few_to_many.cuh: from few channels to many: convolutions of images, and data gradients of those to images.
 *
 * A product of pixels (rows) and output channels (columns, 64 a block) over k = (ky, run of kx and channels).
 * Each register of the left operand is one load of 32 bits from the slab of rows in shared memory; for types of
 * 16 bits a run that begins at an odd element is met by a zero weight in front of it, and where odd pixels
 * begin at odd elements, even and odd pixels are tiles of their own with two sets of weights.  Output channels
 * are permuted among the columns so that each thread writes 16 bytes.  Bound by the bytes of the result. */

constexpr int SETS = NARROW && STRIDE * F % 2 != 0 ? 2 : 1;
constexpr int UNITS = NARROW ? (RUN + 2) / 2 : RUN; /* of 4 bytes, of a tap row, a zero in front allowed for */
/* Four units are a slot, two slots a step.  Packed one after the other where there are few, which takes a
 * register for each place; else every tap row begins a slot, and places are constants. */
constexpr bool DENSE = (KH * UNITS + 3) / 4 <= 8;
constexpr int ROW_SLOTS = (UNITS + 3) / 4, SLOTS = DENSE ? (KH * UNITS + 3) / 4 : KH * ROW_SLOTS;
constexpr int STEPS = (SLOTS + 1) / 2;
constexpr int ACROSS_ALL = (MW + 16 * SETS - 1) / (16 * SETS);
constexpr int TILES = 2, ACROSS = SETS == 1 ? ACROSS_ALL : (ACROSS_ALL + 1) / 2 * 2; /* both tiles of one parity */
constexpr int COLUMNS = 8, SLAB = (ROWS - 1) * STRIDE + KH;
constexpr int OWN = LEAD + (LEFT + W) * F;
constexpr int SEEN = LEAD + (ACROSS * 16 * SETS - 1) * STRIDE * F + ROW_SLOTS * 4 * UNIT;
constexpr int PITCH = ((OWN > SEEN ? OWN : SEEN) + PER16) / PER16 * PER16;
constexpr int BANDS = (MH + ROWS - 1) / ROWS;
constexpr int PACKED = SETS * STEPS * COLUMNS * 32 * 8; /* bytes of the weights */

static_assert(PACKED + 2 * (SLAB + 1) * PITCH * SIZE == SHARED, "few_tiles.c");

/* Tap row and unit of thread t in a slot; false behind the last. */
static __device__ __forceinline__ bool tap(int slot, int t, int *ky, int *unit)
{
    const int q = slot * 4 + t;

    *ky = DENSE ? q / UNITS : slot / ROW_SLOTS;
    *unit = DENSE ? q % UNITS : slot % ROW_SLOTS * 4 + t;
    return *ky < KH && *unit < UNITS;
}

/* The weights as fragments: of parity, step, column and lane. */
static __device__ void pack_weights(const ELEMENT *w, int channel, uint2 *out)
{
#pragma unroll 4
    for (int i = threadIdx.x; i < SETS * STEPS * COLUMNS * 32; i += THREADS) {
        const int lane = i % 32, column = i / 32 % COLUMNS, step = i / (32 * COLUMNS) % STEPS;
        const int parity = i / (32 * COLUMNS * STEPS), n = lane / 4;
        const int m = channel + (NARROW ? column / 4 * 32 + n / 2 * 8 + column % 4 * 2 + n % 2
                                        : column / 2 * 16 + n / 2 * 4 + column % 2 * 2 + n % 2);
        const int front = NARROW ? (LEAD + parity * STRIDE * F) % 2 : 0; /* the zero before an odd run */
        float v[2][2] = {};
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int k = 0; k < UNIT; k++) {
                int ky, unit;
                const bool in = tap(step * 2 + h, lane % 4, &ky, &unit);
                const int e = unit * UNIT + k - front;
                if (in && e >= 0 && e < RUN) v[h][k] = weight(w, m, e % F, ky, e / F);
            }
        out[i] = make_uint2(packed(v[0][0], v[0][1]), packed(v[1][0], v[1][1]));
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) few(const __grid_constant__ arguments a)
{
    lsi_wait();
    const uint2 *weights = (const uint2 *)memory;
    ELEMENT *slabs = (ELEMENT *)(memory + PACKED);
    constexpr int SLAB_ELEMENTS = (SLAB + 1) * PITCH;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int channel = blockIdx.y * 64, all = a.n * BANDS;
    __shared__ float bias[64];
    int offset[DENSE ? 2 * STEPS : 1]; /* bytes to this thread's units */

    if (threadIdx.x < 64) bias[threadIdx.x] = BIASED ? get(a.bias[channel + threadIdx.x]) : 0.0f;
    pack_weights(a.weights, channel, (uint2 *)memory);
    clear((char *)slabs, 2 * SLAB_ELEMENTS * SIZE);
    if (DENSE)
#pragma unroll
        for (int i = 0; i < 2 * STEPS; i++) {
            int ky, unit;
            offset[DENSE ? i : 0] = tap(i, t, &ky, &unit) ? (ky * PITCH + unit * UNIT) * SIZE : 0;
        }
    const auto load = [&](int slab, int which) {
        load_rows<PITCH, SLAB>(a.few, slab / BANDS, slab % BANDS * ROWS * STRIDE - TOP, SLAB,
                               slabs + which * SLAB_ELEMENTS, 0);
    };
    __syncthreads(); /* the zeros are there */
    if ((int)blockIdx.x < all) load(blockIdx.x, 0);
    commit();
    int which = 0;
    for (int slab = blockIdx.x; slab < all; slab += gridDim.x, which ^= 1) {
        const int n = slab / BANDS, y0 = slab % BANDS * ROWS;
        const ELEMENT *rows = slabs + which * SLAB_ELEMENTS;
        wait<0>();
        __syncthreads(); /* this slab is here, and the other one is read */
        if (slab + (int)gridDim.x < all) load(slab + gridDim.x, which ^ 1);
        commit();
        for (int first = warp * TILES; first < ROWS * ACROSS * SETS; first += WARPS * TILES) {
            float sum[TILES][COLUMNS][4] = {};
            const char *base[TILES];
            int px[TILES], py[TILES];
            /* Tiles of one parity come before those of the other. */
            const int parity = SETS == 1 ? 0 : first >= ROWS * ACROSS;
#pragma unroll
            for (int i = 0; i < TILES; i++) {
                const int k = first + i - parity * ROWS * ACROSS;
                py[i] = k / ACROSS; /* ROWS: none, it reads the first row and is not written */
                px[i] = (k % ACROSS * 16 + g) * SETS + parity;
                const int e = (px[i] * STRIDE * F + LEAD) / UNIT * UNIT;
                base[i] = (const char *)(rows + (py[i] < ROWS ? py[i] * STRIDE : 0) * PITCH + e) +
                          (DENSE ? 0 : t * 4);
            }
            constexpr int BELOW = 8 * SETS * STRIDE * F * SIZE; /* bytes from row g to row g + 8 of a tile */
            const uint2 *b = weights + parity * STEPS * COLUMNS * 32 + lane;
#pragma unroll
            for (int k = 0; k < STEPS; k++) {
                operand x[TILES];
#pragma unroll
                for (int i = 0; i < TILES; i++) {
                    unsigned r[4];
#pragma unroll
                    for (int h = 0; h < 2; h++) {
                        const int slot = 2 * k + h < SLOTS ? 2 * k + h : 0;
                        const char *at =
                            base[i] + (DENSE ? offset[DENSE ? 2 * k + h : 0]
                                             : slot / ROW_SLOTS * PITCH * SIZE + slot % ROW_SLOTS * 16);
                        r[2 * h] = *(const unsigned *)at;
                        r[2 * h + 1] = *(const unsigned *)(at + BELOW);
                    }
                    x[i].take(r);
                }
#pragma unroll
                for (int c = 0; c < COLUMNS; c++) {
                    const uint2 v = b[(k * COLUMNS + c) * 32];
#pragma unroll
                    for (int i = 0; i < TILES; i++) add_product(sum[i][c], x[i], v.x, v.y);
                }
            }
#pragma unroll
            for (int i = 0; i < TILES; i++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    constexpr int TOGETHER = PER16 / 2; /* columns that make one access */
                    const int y = y0 + py[i], x = px[i] + h * 8 * SETS;
                    if (py[i] >= ROWS || y >= MH || x >= MW) continue;
                    ELEMENT *to =
                        a.out + (((long long)n * MH + y) * MW + x) * M + channel + t * PER16;
#pragma unroll
                    for (int q = 0; q < COLUMNS / TOGETHER; q++) {
                        float f[PER16];
                        unsigned word[4];
#pragma unroll
                        for (int k = 0; k < PER16; k++)
                            f[k] = activate(sum[i][TOGETHER * q + k / 2][2 * h + k % 2] +
                                            bias[q * 4 * PER16 + t * PER16 + k]);
#pragma unroll
                        for (int k = 0; k < 4; k++) word[k] = together(f[k * UNIT], f[k * UNIT + UNIT - 1]);
                        *(uint4 *)(to + q * 4 * PER16) = make_uint4(word[0], word[1], word[2], word[3]);
                    }
                }
        }
    }
}
