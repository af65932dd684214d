/* region_nodes.cuh: the nodes of regions that are no products (region.cuh). */

/* -- pooling: windows KH x KW, steps S, padding TOP, LEFT --------------------------------------------------
 */

struct winner {
    float x;
    int at;
};

/* The largest element of window (c, r) of x, and where it is. */
template <class X, class Y, class T> INLINE winner largest(const float *s, int c, int r)
{
    const int top = r / Y::W * T::SH - T::TOP, left = r % Y::W * T::SW - T::LEFT;
    constexpr bool INSIDE = T::TOP == 0 && T::LEFT == 0 && (Y::H - 1) * T::SH + T::KH <= X::H &&
                            (Y::W - 1) * T::SW + T::KW <= X::W;
    const float *at = s + X::FIRST + c * X::PLANE + top * X::ROW + left;
    winner w = {0.0f, -1};

#pragma unroll
    for (int k = 0; k < T::N; k++) {
        const int y = k / T::KW, x = k % T::KW;
        if (!INSIDE && ((unsigned)(top + y) >= (unsigned)X::H || (unsigned)(left + x) >= (unsigned)X::W))
            continue;
        const float v = at[y * X::ROW + x];
        if (w.at < 0 || v > w.x || (v != v && w.x == w.x)) w = {v, k};
    }
    return w;
}

template <class X, class Y, class I, class T, bool RELU> INLINE void maxpool(float *s)
{
    unsigned char *index = (unsigned char *)(s + I::FIRST);

    each<Y::COUNT>([&](int i) { return largest<X, Y, T>(s, i / (Y::H * Y::W), i % (Y::H * Y::W)); },
                   [&](int i, const winner &w) {
                       s[Y::at(i)] = Y::kept(RELU && w.x < 0.0f ? 0.0f : w.x);
                       index[i] = (unsigned char)w.at;
                   });
}

/* Of every element of x: the windows that it won.  Y is the pool's result where RELU hides what is not
 * positive there.  act(x, i): what becomes of element i. */
template <class DX, class DY, class I, class Y, class T, bool RELU, class F>
INLINE void maxpool_grad(float *s, F act)
{
    const unsigned char *index = (const unsigned char *)(s + I::FIRST);
    constexpr bool COVERS =
        T::SH == T::KH && T::SW == T::KW && DX::H == DY::H * T::KH && DX::W == DY::W * T::KW;
    constexpr bool PAIRS = T::KW % 2 == 0 && DX::FIRST % 2 == 0 && DX::PLANE % 2 == 0 && DX::ROW % 2 == 0;

    if (COVERS) {
        each<DY::COUNT>(/* every element is in one window */
                        [&](int i) {
                            return winner{!RELU || s[Y::at(i)] > 0.0f ? s[DY::at(i)] : 0.0f, index[i]};
                        },
                        [&](int i, const winner &w) {
                            const int c = i / (DY::H * DY::W), r = i % (DY::H * DY::W);
                            const int y = r / DY::W * T::KH, x = r % DY::W * T::KW;
                            const int won = (c * DX::H + y + w.at / T::KW) * DX::W + x + w.at % T::KW;
                            const float d = DX::kept(act(w.x, won));
                            float *to = s + DX::FIRST + c * DX::PLANE + y * DX::ROW + x;
#pragma unroll
                            for (int k = 0; k < T::N; k += PAIRS ? 2 : 1) {
                                const float a = k == w.at ? d : 0.0f, b = k + 1 == w.at ? d : 0.0f;
                                if (PAIRS)
                                    *(float2 *)(to + k / T::KW * DX::ROW + k % T::KW) = float2{a, b};
                                else
                                    to[k / T::KW * DX::ROW + k % T::KW] = a;
                            }
                        });
        return;
    }
    each<DX::COUNT>(
        [&](int i) {
            const int c = i / (DX::H * DX::W), r = i % (DX::H * DX::W);
            const int y = r / DX::W + T::TOP, x = r % DX::W + T::LEFT;
            float sum = 0.0f;
#pragma unroll
            for (int up = 0; up < (T::KH + T::SH - 1) / T::SH; up++)
#pragma unroll
                for (int back = 0; back < (T::KW + T::SW - 1) / T::SW; back++) {
                    const int oy = y / T::SH - up, ox = x / T::SW - back, ky = y - oy * T::SH,
                              kx = x - ox * T::SW;
                    const bool in =
                        oy >= 0 && oy < DY::H && ox >= 0 && ox < DY::W && ky < T::KH && kx < T::KW;
                    const int at = in ? (c * DY::H + oy) * DY::W + ox : 0;
                    const bool won = in && index[at] == ky * T::KW + kx && (!RELU || s[Y::at(at)] > 0.0f);
                    sum += won ? s[DY::at(at)] : 0.0f;
                }
            return sum;
        },
        [&](int i, float x) { s[DX::at(i)] = DX::kept(act(x, i)); });
}

/* Of what lies inside of a window, or of all of it (WHOLE). */
template <class T, bool WHOLE> INLINE float window_share(int oy, int ox, int height, int width)
{
    const int top = oy * T::SH - T::TOP, left = ox * T::SW - T::LEFT;
    const int bottom = top + T::KH < height ? top + T::KH : height;
    const int right = left + T::KW < width ? left + T::KW : width;

    return 1.0f / (float)(WHOLE ? T::N : (bottom - (top > 0 ? top : 0)) * (right - (left > 0 ? left : 0)));
}

template <class X, class Y, class T, bool WHOLE> INLINE void avgpool(float *s)
{
    each<Y::COUNT>(
        [&](int i) {
            const int c = i / (Y::H * Y::W), oy = i / Y::W % Y::H, ox = i % Y::W;
            float sum = 0.0f;
            for (int k = 0; k < T::N; k++) {
                const int y = oy * T::SH - T::TOP + k / T::KW, x = ox * T::SW - T::LEFT + k % T::KW;
                if ((unsigned)y < (unsigned)X::H && (unsigned)x < (unsigned)X::W)
                    sum += s[X::FIRST + c * X::PLANE + y * X::ROW + x];
            }
            return sum * window_share<T, WHOLE>(oy, ox, X::H, X::W);
        },
        [&](int i, float x) { s[Y::at(i)] = Y::kept(x); });
}

template <class DX, class DY, class T, bool WHOLE> INLINE void avgpool_grad(float *s)
{
    each<DX::COUNT>(
        [&](int i) {
            const int c = i / (DX::H * DX::W), y = i / DX::W % DX::H + T::TOP, x = i % DX::W + T::LEFT;
            float sum = 0.0f;
#pragma unroll
            for (int up = 0; up < (T::KH + T::SH - 1) / T::SH; up++)
#pragma unroll
                for (int back = 0; back < (T::KW + T::SW - 1) / T::SW; back++) {
                    const int oy = y / T::SH - up, ox = x / T::SW - back;
                    const bool in = oy >= 0 && oy < DY::H && ox >= 0 && ox < DY::W &&
                                    y - oy * T::SH < T::KH && x - ox * T::SW < T::KW;
                    const float d = s[DY::at(in ? (c * DY::H + oy) * DY::W + ox : 0)];
                    sum += in ? d * window_share<T, WHOLE>(oy, ox, DX::H, DX::W) : 0.0f;
                }
            return sum;
        },
        [&](int i, float x) { s[DX::at(i)] = DX::kept(x); });
}

/* -- random masks: 0 or `scale` for each of N draws --------------------------------------------------------
 */

template <int N>
INLINE void draw(float *mask, const int *key, unsigned stream, unsigned dropped, float scale, int sample)
{
    for (int i = THREADS - 1 - (int)ME; i < (N + 3) / 4;
         i += THREADS) { /* the first warps have enough to do */
        unsigned c0 = (unsigned)i, c1 = (unsigned)key[3] + (unsigned)sample, c2 = (unsigned)key[2],
                 c3 = stream;
        unsigned k0 = (unsigned)key[0], k1 = (unsigned)key[1];
#pragma unroll
        for (int round = 0; round < 10; round++) {
            const unsigned h0 = __umulhi(0xD2511F53u, c0), l0 = 0xD2511F53u * c0;
            const unsigned h1 = __umulhi(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
            c0 = h1 ^ c1 ^ k0;
            c1 = l1;
            c2 = h0 ^ c3 ^ k1;
            c3 = l0;
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        const unsigned words[4] = {c0, c1, c2, c3};
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (i * 4 + k < N) mask[i * 4 + k] = words[k] >> 8 < dropped ? 0.0f : scale;
    }
}

/* What is dropped becomes 0, whatever it was. */
INLINE float drop(float x, float m)
{
    return m == 0.0f ? 0.0f : x * m;
}

/* Draw number i / EACH is for element i. */
template <class X, class Y, int EACH> INLINE void dropout(float *s, const float *mask)
{
    each<X::COUNT>([&](int i) { return drop(s[X::at(i)], mask[i / EACH]); },
                   [&](int i, float x) { s[Y::at(i)] = Y::kept(x); });
}

/* -- losses and metrics: one warp, whose first lane adds up -------------------------------------------------
 */

INLINE float warp_max(float x)
{
#pragma unroll
    for (int far = 16; far > 0; far /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, far));
    return x;
}

template <class X, class P, int WARP> INLINE void cross_entropy(float *s, int label, float *sum)
{
    const int lane = ME % 32;
    float most = -__int_as_float(0x7f800000), all = 0.0f, last = 0.0f;

    if (ME / 32 != WARP) return;
    for (int i = lane; i < X::COUNT; i += 32) most = fmaxf(most, s[X::at(i)]);
    most = warp_max(most);
    for (int i = lane; i < X::COUNT; i += 32) all += last = expf(s[X::at(i)] - most);
    all = warp_sum(all);
    if (X::COUNT <= 32) {
        if (lane < X::COUNT) s[P::at(lane)] = last / all;
    } else {
        for (int i = lane; i < X::COUNT; i += 32) s[P::at(i)] = expf(s[X::at(i)] - most) / all;
    }
    if (lane == 0)
        *sum += (unsigned)label < (unsigned)X::COUNT ? logf(all) - (s[X::at(label)] - most)
                                                     : __int_as_float(0x7fc00000);
}

template <class P, class D> INLINE void cross_entropy_grad(float *s, int label, float scale)
{
    for (int i = ME; i < P::COUNT; i += THREADS)
        s[D::at(i)] = (unsigned)label < (unsigned)P::COUNT
                          ? scale * (s[P::at(i)] - (i == label ? 1.0f : 0.0f))
                          : __int_as_float(0x7fc00000);
}

template <class X, int WARP> INLINE void accuracy(const float *s, int label, float *sum)
{
    if (ME / 32 != WARP) return;
    bool right = (unsigned)label < (unsigned)X::COUNT;
    const float best = right ? s[X::at(label)] : 0.0f;
    for (int i = ME % 32; i < X::COUNT && right; i += 32) {
        const float x = s[X::at(i)];
        right = i < label ? x < best : x <= best;
    }
    if (__all_sync(~0u, right) && ME % 32 == 0) *sum += 1.0f;
}

template <int WARP> INLINE void leave_number(float sum, float *to)
{
    if (ME == WARP * 32) *to = sum;
}

/* -- sums over samples ------------------------------------------------------------------------------------
 * Of vectors every thread has its elements, of images every warp its channels. */

template <class X> struct vector_sum {
    static constexpr int ROUNDS = (X::COUNT + THREADS - 1) / THREADS;
    float sum[ROUNDS];

    __device__ __forceinline__ vector_sum() : sum{}
    {
    }
    template <class V> __device__ __forceinline__ void add(V value)
    {
        add(value, [](int, float) {});
    }
    template <class V, class P> __device__ __forceinline__ void add(V value, P put)
    {
#pragma unroll
        for (int k = 0; k < ROUNDS; k++) {
            const int i = ME + k * THREADS;
            if (i >= X::COUNT) break;
            const float x = value(i);
            sum[k] += x;
            put(i, x);
        }
    }
    __device__ __forceinline__ void leave(float *to)
    {
#pragma unroll
        for (int k = 0; k < ROUNDS; k++)
            if (ME + k * THREADS < X::COUNT) to[ME + k * THREADS] = sum[k];
    }
};

template <class X> struct channel_sum {
    static constexpr int ROUNDS = (X::C + WARPS - 1) / WARPS;
    float sum[ROUNDS];

    __device__ __forceinline__ channel_sum() : sum{}
    {
    }
    template <class V> __device__ __forceinline__ void add(V value)
    {
        add(value, [](int, int, float) {});
    }
    /* And put(c, r, x) for each, several at once as in `each`. */
    template <class V, class P> __device__ __forceinline__ void add(V value, P put)
    {
        constexpr int N = X::H * X::W, TURNS = (N + 31) / 32, AT_ONCE = TURNS < 6 ? TURNS : 6;
#pragma unroll
        for (int k = 0; k < ROUNDS; k++) {
            const int c = ME / 32 + k * WARPS;
            if (c >= X::C) break;
#pragma unroll 1
            for (int first = ME % 32; first < N; first += AT_ONCE * 32) {
                float x[AT_ONCE];
#pragma unroll
                for (int j = 0; j < AT_ONCE; j++) x[j] = first + j * 32 < N ? value(c, first + j * 32) : 0.0f;
#pragma unroll
                for (int j = 0; j < AT_ONCE; j++) {
                    sum[k] += x[j];
                    if (first + j * 32 < N) put(c, first + j * 32, x[j]);
                }
            }
        }
    }
    __device__ __forceinline__ void leave(float *to)
    {
#pragma unroll
        for (int k = 0; k < ROUNDS; k++) {
            const int c = ME / 32 + k * WARPS;
            const float total = warp_sum(sum[k]);
            if (c < X::C && ME % 32 == 0) to[c] = total;
        }
    }
};
