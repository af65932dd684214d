/* few_weights.cuh: the weight gradient of convolutions between few channels and many.
 *
 * A product of 64 of the many channels (rows) and taps (columns) over k = pixels.  Rows of the map with many
 * channels come by asynchronous copies, a segment a stage, and are read transposed; those of the other map stay
 * as they are in a ring, and the pixels of a column are gathered.  Each block keeps the sums of all its rows in
 * registers and leaves them as rows of (tap, channel), which another kernel adds up in order. */

constexpr int TAPS = KH * RUN, TEAMS = (TAPS + COLUMNS * 8 - 1) / (COLUMNS * 8);
constexpr int SHARES = WARPS / TEAMS; /* warps that share the pixels of a stage */
constexpr int DEEP = NARROW ? 16 : 8; /* pixels of a step */
/* Bytes of a pixel of 64 channels: without bank conflicts for the way it is read. */
constexpr int GAP = NARROW ? 144 : 288;
constexpr int SEGMENTS = (MW + SEGMENT - 1) / SEGMENT, STAGE = SEGMENT * GAP;
constexpr int AHEAD = (STAGES - 1 + SEGMENTS - 1) / SEGMENTS; /* rows that are under way */
constexpr int RING = KH + AHEAD * STRIDE;
constexpr int OWN = LEAD + (LEFT + W) * F;
constexpr int SEEN = LEAD + (SEGMENTS * SEGMENT - 1) * STRIDE * F + RUN;
constexpr int PITCH = ((OWN > SEEN ? OWN : SEEN) + PER16) / PER16 * PER16;
constexpr int STEP = STRIDE * F * SIZE; /* bytes from a pixel's run to the next */

static_assert(TEAMS <= WARPS && WARPS % TEAMS == 0 && SEGMENT % DEEP == 0, "shape");
constexpr int NEEDED = STAGES * STAGE + (RING + 1) * PITCH * SIZE, LEFT_BEHIND = TEAMS * COLUMNS * 8 * 64 * 4;
static_assert((NEEDED > LEFT_BEHIND ? NEEDED : LEFT_BEHIND) == SHARED, "few_tiles.c");

/* The 4 bytes of a column at p: two pixels for types of 16 bits. */
static __device__ __forceinline__ unsigned gather(const char *p)
{
    if (NARROW) return (unsigned)*(const unsigned short *)p | (unsigned)*(const unsigned short *)(p + STEP) << 16;
    return rounded(*(const unsigned *)p);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) few(const __grid_constant__ arguments a)
{
    lsi_wait();
    char *many = memory, *few = memory + STAGES * STAGE;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int team = warp % TEAMS, share = warp / TEAMS, channel = blockIdx.y * 64, rows = a.n * MH;
    /* This block's rows of the map with many channels: whole stretches, so that the ring is of use. */
    const int lo = (int)blockIdx.x * ROWS, hi = lo + ROWS < rows ? lo + ROWS : rows;
    float sum[COLUMNS][4][4] = {};
    int place[COLUMNS], slot[COLUMNS]; /* of this thread's taps: bytes into a row, and the row of the ring */

    clear(memory, STAGES * STAGE + (RING + 1) * PITCH * SIZE); /* what no copy reaches stays zero */
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) {
        const int tap = (team * COLUMNS + j) * 8 + g, in = tap < TAPS ? tap : 0;
        place[j] = (LEAD + in % RUN) * SIZE + t * UNIT * STEP;
    }
    __syncthreads();
    for (int at = lo; at < hi;) {
        const int n = at / MH, y0 = at % MH;
        const int count = (hi - at < MH - y0 ? hi - at : MH - y0) * SEGMENTS; /* stages of one sample */
        const auto load = [&](int stage) {
            const int r = stage / SEGMENTS, x0 = stage % SEGMENTS * SEGMENT;
            const ELEMENT *from = a.many + (((long long)n * MH + y0 + r) * MW + x0) * M + channel;
            char *to = many + stage % STAGES * STAGE;
            constexpr int PIECES = 64 / PER16;
            for (int i = threadIdx.x; i < SEGMENT * PIECES; i += THREADS) {
                const bool ok = x0 + i / PIECES < MW;
                copy<16>(shared(to + i / PIECES * GAP + i % PIECES * 16),
                         ok ? from + i / PIECES * M + i % PIECES * PER16 : from, ok);
            }
            if (x0 > 0) return;
            const int q = r == 0 ? 0 : r * STRIDE + KH - STRIDE; /* the first row that is not there yet */
            load_rows<PITCH, RING>(a.few, n, y0 * STRIDE - TOP + q, r * STRIDE + KH - q, (ELEMENT *)few,
                                   q % RING);
        };
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            const int tap = (team * COLUMNS + j) * 8 + g;
            slot[j] = tap < TAPS ? tap / RUN : 0;
        }
#pragma unroll
        for (int i = 0; i < STAGES - 1; i++) {
            if (i < count) load(i);
            commit();
        }
        for (int i = 0; i < count; i++) {
            const int segment = i % SEGMENTS;
            wait<STAGES - 2>();
            __syncthreads();
            if (i + STAGES - 1 < count) load(i + STAGES - 1);
            commit();
            const char *here = many + i % STAGES * STAGE, *gathered[COLUMNS];
#pragma unroll
            for (int j = 0; j < COLUMNS; j++)
                gathered[j] = few + slot[j] * (PITCH * SIZE) + place[j] + segment * (SEGMENT * STEP);
            for (int k = share; k < SEGMENT / DEEP; k += SHARES) {
                unsigned m[4][4];
                if (NARROW) {
                    /* Matrices: pixels 0-7 and 8-15, channels 0-7 and 8-15 of a tile of 16 x 16. */
                    const unsigned x = shared(here) + ((lane & 7) + (lane >> 4) * 8 + k * 16) * GAP +
                                       ((lane >> 3) & 1) * 16;
#pragma unroll
                    for (int i4 = 0; i4 < 4; i4++) load_turned(m[i4], x + i4 * 32);
                } else {
                    const unsigned *x = (const unsigned *)(here + (k * 8 + t) * GAP) + g;
#pragma unroll
                    for (int i4 = 0; i4 < 4; i4++)
#pragma unroll
                        for (int e = 0; e < 4; e++)
                            m[i4][e] = rounded(x[i4 * 16 + e % 2 * 8 + e / 2 * 4 * (GAP / 4)]);
                }
#pragma unroll
                for (int j = 0; j < COLUMNS; j++) {
                    const char *q = gathered[j] + k * DEEP * STEP;
                    const unsigned b0 = gather(q), b1 = gather(q + DEEP / 2 * STEP);
#pragma unroll
                    for (int i4 = 0; i4 < 4; i4++) multiply(sum[j][i4], m[i4], b0, b1);
                }
            }
            if (segment != SEGMENTS - 1) continue;
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                slot[j] += STRIDE;
                if (slot[j] >= RING) slot[j] -= RING;
            }
        }
        wait<0>();
        __syncthreads();
        at += count / SEGMENTS;
    }
    /* The warps that share pixels, one after the other. */
    float *room = (float *)memory; /* [TEAMS * COLUMNS * 8][64] */
    for (int k = 0; k < SHARES; k++) {
        if (share == k)
#pragma unroll
            for (int j = 0; j < COLUMNS; j++)
#pragma unroll
                for (int i = 0; i < 4; i++)
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        float *to = room + ((team * COLUMNS + j) * 8 + 2 * t + e % 2) * 64 + i * 16 + g + e / 2 * 8;
                        *to = k == 0 ? sum[j][i][e] : *to + sum[j][i][e];
                    }
        __syncthreads();
    }
    float *out = a.partial + (long long)blockIdx.x * TAPS * M + channel;
    for (int i = threadIdx.x; i < TAPS * 16; i += THREADS)
        *(float4 *)(out + (long long)(i / 16) * M + i % 16 * 4) = ((const float4 *)room)[i];
}
