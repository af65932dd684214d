/* norm_pool.cu: a max pool behind a batch norm and its activation, both ways, channels last.
 *
 * Forward reads x for the moments and again, a window a thread, and writes what is pooled: no map of x's
 * size. Backward the two sums run over windows, which know what x was where they were won; then x is read
 * once, and each of its elements looks at the windows that it is in (as in pool.cu) before dx is written. */
#include "backend/cuda/module/norm.cuh"
#include "backend/cuda/module/window.cuh"

/* The norm keeps the order of elements or turns it around: keys are x, -x, or where gamma is 0, and all
 * results are the same, 0. */
template <typename Type, int Width, int K, int S> struct pooled_rule {
    using T = Type;
    using W = window<K, S>;
    static constexpr int V = Width, AHEAD = 1, BLOCKS = 3;
    struct constants {
        float sign[V];
        int64_t group;
    };
    const T *x;
    T *y, *best;
    uint8_t *index;
    const float *gamma, *beta, *mean, *invstd;
    ls_act act;
    float slope;
    lsi_pixels pixels;
    ls_pool_attr attr;

    __device__ void begin(int64_t group, int64_t, int, constants &c) const
    {
        c.group = group;
#pragma unroll
        for (int k = 0; k < V; k++)
            c.sign[k] = gamma[group + k] > 0 ? 1.0f : gamma[group + k] < 0 ? -1.0f : 0.0f;
    }
    __device__ __forceinline__ bool inside(int row, int column) const
    {
        return row >= 0 && row < pixels.h && column >= 0 && column < pixels.w;
    }
    __device__ __forceinline__ int place(const lsi_pixel &p, int row, int column) const
    {
        return (int)p.large + (row * (int)pixels.w + column) * (int)p.step;
    }
    static __device__ __forceinline__ void compare(const lsi_packed<V, T> &p, int number, const constants &c,
                                                   float (&key)[V], int (&won)[V])
    {
        float f[V];

        p.unpack(f);
#pragma unroll
        for (int k = 0; k < V; k++) {
            const float mine = f[k] * c.sign[k];
            const bool larger = mine > key[k];
            key[k] = larger ? mine : key[k];
            won[k] = larger ? number : won[k];
        }
    }
    __device__ void apply(const int64_t (&at)[AHEAD], int, const constants &c) const
    {
        const lsi_pixel p = lsi_pixel_at<1>(pixels, (uint32_t)at[0]);
        const int top = p.y * W::stride(attr, 0) - attr.pad[0], left = p.x * W::stride(attr, 1) - attr.pad[1];
        const int high = W::kernel(attr, 0), wide = W::kernel(attr, 1);
        float key[V];
        int won[V];

#pragma unroll
        for (int k = 0; k < V; k++) {
            key[k] = -INFINITY;
            won[k] = max(-top, 0) * wide + max(-left, 0);
        }
        if constexpr (K > 0) { /* all are under way before the first is looked at */
            lsi_packed<V, T> all[K][K];
#pragma unroll
            for (int i = 0; i < K; i++)
#pragma unroll
                for (int j = 0; j < K; j++)
                    if (inside(top + i, left + j)) all[i][j].fetch(x + place(p, top + i, left + j));
#pragma unroll
            for (int i = 0; i < K; i++)
#pragma unroll
                for (int j = 0; j < K; j++)
                    if (inside(top + i, left + j)) compare(all[i][j], i * K + j, c, key, won);
        } else {
            for (int i = 0; i < high; i++)
                for (int j = 0; j < wide; j++) {
                    lsi_packed<V, T> one;
                    if (!inside(top + i, left + j)) continue;
                    one.fetch(x + place(p, top + i, left + j));
                    compare(one, i * wide + j, c, key, won);
                }
        }
        write(at[0], p, top, left, c, key, won);
    }
    __device__ __forceinline__ void write(int64_t to, const lsi_pixel &p, int top, int left,
                                          const constants &c, float (&f)[V], const int (&won)[V]) const
    {
        const int wide = W::kernel(attr, 1);
        union {
            typename lsi_raw<V>::type raw;
            uint8_t e[V];
        } where;

#pragma unroll
        for (int k = 0; k < V; k++) {
            where.e[k] = (uint8_t)won[k];
            f[k] *= c.sign[k];
            if (c.sign[k] == 0) f[k] = lsi_get(x[place(p, top + won[k] / wide, left + won[k] % wide) + k]);
        }
        *(typename lsi_raw<V>::type *)(index + to) = where.raw;
        lsi_store<V>(best + to, f);
#pragma unroll
        for (int k = 0; k < V; k++) {
            const int64_t g = c.group + k;
            f[k] = lsi_act(act, slope, fmaf(f[k] - mean[g], invstd[g] * gamma[g], beta[g]));
        }
        lsi_store<V>(y + to, f);
    }
};

/* What the passes for dx share. */
template <typename Type, int Width, bool Sum> struct pooled_back {
    using T = Type;
    static constexpr int V = Width;
    struct constants {
        float mean[V], a[V], b[V], c[V];
        limits<V> known;
    };
    /* What window number `from` has to give. */
    struct fetched {
        lsi_packed<V, T> dy, more;
        union {
            typename lsi_raw<V>::type raw;
            uint8_t e[V];
        } index;
    };
    const T *dy, *more, *x;
    const uint8_t *index;
    T *dx;
    const float *gamma, *beta, *mean, *invstd, *factors;
    int64_t groups;
    ls_act act;
    float slope;
    lsi_pixels pixels;
    ls_pool_attr attr;

    __device__ void begin(int64_t group, int64_t, int, constants &c) const
    {
#pragma unroll
        for (int k = 0; k < V; k++) {
            const int64_t g = group + k;
            c.mean[k] = mean[g];
            c.a[k] = factors[g];
            c.b[k] = factors[groups + g];
            c.c[k] = factors[2 * groups + g];
            c.known.set(k, mean[g], invstd[g] * gamma[g], beta[g]);
        }
    }
    __device__ __forceinline__ void fetch(int from, fetched &p) const
    {
        p.index.raw = *(const typename lsi_raw<V>::type *)(index + from);
        p.dy.fetch(dy + from);
        if (Sum) p.more.fetch(more + from);
    }
    /* Adds what a window gives to its element number `mine`. */
    static __device__ __forceinline__ void add(const fetched &p, int mine, float (&sum)[V])
    {
        float d[V], m[V] = {};

        p.dy.unpack(d);
        if (Sum) p.more.unpack(m);
#pragma unroll
        for (int k = 0; k < V; k++) sum[k] += p.index.e[k] == mine ? d[k] + m[k] : 0.0f;
    }
    __device__ __forceinline__ void write(int at, const lsi_packed<V, T> &px, const float (&dz)[V],
                                          const constants &c) const
    {
        float f[V];

        px.unpack(f);
#pragma unroll
        for (int k = 0; k < V; k++) {
            const float d = lsi_act_grad(act, slope, c.known.sign(k, f[k]), dz[k]);
            f[k] = fmaf(c.a[k], d, fmaf(c.b[k], f[k] - c.mean[k], c.c[k]));
        }
        lsi_store<V>(dx + at, f);
    }
};

/* An element a thread. */
template <typename Type, int Width, bool Sum> struct pooled_back_rule : pooled_back<Type, Width, Sum> {
    using base = pooled_back<Type, Width, Sum>;
    using T = Type;
    static constexpr int V = Width, AHEAD = 1, BLOCKS = 3;

    __device__ void apply(const int64_t (&at)[AHEAD], int, const typename base::constants &c) const
    {
        const lsi_pixel p = lsi_pixel_at<1>(base::pixels, (uint32_t)at[0]);
        const ls_pool_attr &a = base::attr;
        lsi_packed<V, T> px;
        float sum[V] = {};
        int y0, y1, x0, x1;

        px.fetch(base::x + at[0]);
        windows(p.y, a.pad[0], a.kernel[0], a.stride[0], base::pixels.oh, &y0, &y1);
        windows(p.x, a.pad[1], a.kernel[1], a.stride[1], base::pixels.ow, &x0, &x1);
        for (int y = y0; y < y1; y++)
            for (int x = x0; x < x1; x++) {
                typename base::fetched f;
                base::fetch((int)p.small + (y * (int)base::pixels.ow + x) * (int)p.step, f);
                base::add(f,
                          (p.y + a.pad[0] - y * a.stride[0]) * a.kernel[1] + p.x + a.pad[1] - x * a.stride[1],
                          sum);
            }
        base::write((int)at[0], px, sum, c);
    }
};

/* Windows of 3 x 3 that move by 2 over maps with a border of 1: a thread has a square of 2 x 2 elements,
 * which lie in 2 x 2 windows (maxpool_grad_squares_kernel in pool.cu). */
template <typename Type, int Width, bool Sum> struct pooled_back_squares : pooled_back<Type, Width, Sum> {
    using base = pooled_back<Type, Width, Sum>;
    using T = Type;
    static constexpr int V = Width, AHEAD = 1, BLOCKS = 3;

    __device__ void apply(const int64_t (&at)[AHEAD], int, const typename base::constants &c) const
    {
        const lsi_pixel p = lsi_pixel_at<1>(base::pixels, (uint32_t)at[0]);
        const lsi_pixels &map = base::pixels;
        typename base::fetched f[2][2];
        lsi_packed<V, T> px[2][2];
        int place[2][2];

#pragma unroll
        for (int v = 0; v < 2; v++)
#pragma unroll
            for (int u = 0; u < 2; u++) {
                const int row = 2 * p.y + v, column = 2 * p.x + u;
                place[v][u] = row < map.h && column < map.w
                                  ? (int)p.large + (row * (int)map.w + column) * (int)p.step
                                  : -1;
                if (place[v][u] >= 0) px[v][u].fetch(base::x + place[v][u]);
#pragma unroll
                for (int k = 0; k < V; k++) f[v][u].index.e[k] = 0xff; /* no element has that number */
                f[v][u].dy.raw = f[v][u].more.raw = {};
                if (p.y + v < map.oh && p.x + u < map.ow)
                    base::fetch((int)p.small + ((p.y + v) * (int)map.ow + p.x + u) * (int)p.step, f[v][u]);
            }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int down = j / 2, right = j % 2;
            float sum[V] = {};
            if (place[down][right] < 0) continue;
#pragma unroll
            for (int v = 0; v <= down; v++)
#pragma unroll
                for (int u = 0; u <= right; u++)
                    base::add(f[v][u], (down + 1 - 2 * v) * 3 + right + 1 - 2 * u, sum);
            base::write(place[down][right], px[down][right], sum, c);
        }
    }
};

/* -- launching
 * -------------------------------------------------------------------------------------------
 */

/* Columns of `rows` rows, whatever they are. */
static lsi_cuda_groups rows_of(lsi_cuda_groups g, int64_t rows)
{
    g.inner = rows;
    return g;
}

template <typename T, int V, int K, int S>
static int pool(lsi_cuda_stream s, const lsi_cuda_norm_pool_args *a)
{
    const lsi_cuda_norm_args &n = a->norm;
    pooled_rule<T, V, K, S> r = {};

    r.x = (const T *)n.x;
    r.y = (T *)n.y;
    r.best = (T *)a->best;
    r.index = a->index;
    r.gamma = n.gamma;
    r.beta = n.beta;
    r.mean = n.mean;
    r.invstd = n.invstd;
    r.act = n.attr.act;
    r.slope = (float)n.attr.slope;
    r.pixels = lsi_pixels_of(&a->map, false, 1);
    r.attr = a->pool;
    return lsi_map_columns(s, r, rows_of(n.groups, a->map.n * a->map.oh * a->map.ow));
}

template <typename T, int V> static int norm_pool(lsi_cuda_stream s, const lsi_cuda_norm_pool_args *a)
{
    const int code = lsi_sum_columns(s, moments_of<T, V>(&a->norm), a->norm.groups);

    if (code != 0) return code;
    if (is_window(&a->pool, 3, 2)) return pool<T, V, 3, 2>(s, a);
    if (is_window(&a->pool, 2, 2)) return pool<T, V, 2, 2>(s, a);
    return pool<T, V, 0, 0>(s, a);
}

int lsi_cuda_norm_pool(lsi_cuda_stream s, const lsi_cuda_norm_pool_args *a)
{
    LSI_FLOAT_TYPES(a->norm.dtype, return lsi_groups_wide(a->norm.dtype, &a->norm.groups)
                                              ? norm_pool<T, WIDTH>(s, a)
                                              : norm_pool<T, 1>(s, a));
    return 0;
}

/* The windows' sums; they count for as many elements as x has. */
template <typename T, int V, mask Mask, bool Sum>
static int sum_windows(lsi_cuda_stream s, const lsi_cuda_norm_pool_grad_args *a)
{
    back_sums_rule<T, V, Mask, Sum> r = sums_of<T, V, Mask, Sum>(&a->norm);

    r.n = (float)(a->map.n * a->map.h * a->map.w);
    return lsi_sum_columns(s, r, a->norm.groups);
}

template <typename R> static R back_of(const lsi_cuda_norm_pool_grad_args *a, const lsi_pixels &pixels)
{
    using T = typename R::T;
    const lsi_cuda_norm_grad_args &n = a->norm;
    R r = {};

    r.dy = (const T *)n.dy;
    r.more = (const T *)n.more;
    r.x = (const T *)a->x;
    r.index = a->index;
    r.dx = (T *)n.dx;
    r.gamma = n.gamma;
    r.beta = n.beta;
    r.mean = n.mean;
    r.invstd = n.invstd;
    r.factors = n.factors;
    r.groups = n.groups.groups;
    r.act = n.attr.act;
    r.slope = (float)n.attr.slope;
    r.pixels = pixels;
    r.attr = a->pool;
    return r;
}

template <typename T, int V, bool Sum>
static int norm_pool_grad(lsi_cuda_stream s, const lsi_cuda_norm_pool_grad_args *a)
{
    const int64_t rows = (a->map.h + 1) / 2, columns = (a->map.w + 1) / 2;
    const int code =
        a->norm.by_x ? sum_windows<T, V, MASK_X, Sum>(s, a) : sum_windows<T, V, MASK_NONE, Sum>(s, a);
    lsi_pixels pixels = lsi_pixels_of(&a->map, true, 1);

    if (code != 0) return code;
    if (!is_window(&a->pool, 3, 2) || a->pool.pad[0] != 1 || a->pool.pad[1] != 1)
        return lsi_map_columns(s, back_of<pooled_back_rule<T, V, Sum>>(a, pixels),
                               rows_of(a->norm.groups, a->map.n * a->map.h * a->map.w));
    pixels.height = lsi_divider(rows);
    pixels.width = lsi_divider(columns);
    return lsi_map_columns(s, back_of<pooled_back_squares<T, V, Sum>>(a, pixels),
                           rows_of(a->norm.groups, a->map.n * rows * columns));
}

template <typename T, int V>
static int norm_pool_grad(lsi_cuda_stream s, const lsi_cuda_norm_pool_grad_args *a)
{
    return a->norm.more != nullptr ? norm_pool_grad<T, V, true>(s, a) : norm_pool_grad<T, V, false>(s, a);
}

int lsi_cuda_norm_pool_grad(lsi_cuda_stream s, const lsi_cuda_norm_pool_grad_args *a)
{
    LSI_FLOAT_TYPES(a->norm.dtype, return lsi_groups_wide(a->norm.dtype, &a->norm.groups)
                                              ? (norm_pool_grad<T, WIDTH>(s, a))
                                              : (norm_pool_grad<T, 1>(s, a)));
    return 0;
}
