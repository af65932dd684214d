/* norm.cu: batch norm and instance norm with fused activation and residual,
 * both ways.
 *
 * Forward reads x for the moments, then x again (the last part of it from the
 * cache) and writes y: the statistics of a group depend on all of it, so no
 * fewer passes are possible unless the producer sums, or all of a group stays
 * in shared memory (cluster.cuh). Backward reads dy, x (and
 * y, where x does not show what an activation let through) for two sums, then
 * again for dx; where a residual wants dz, the first pass writes it and the
 * second reads it in the place of dy and y.
 *
 * Moments are sums of x - k and its square, k being the group's first element:
 * E[x^2] - mean^2 would cancel where the mean is large. */
#include <type_traits>

#include "backend/cuda/launch/norm.h"
#include "backend/cuda/module/cluster.cuh"

/* Elements of an access: what a thread keeps of each of its channels takes registers, and a pass is as fast
 * as the accesses that it has under way; so they are of 8 bytes where numbers have 16 bits.  Only columns are
 * read several at a time: lines are what maps have that are not channels last, which are rare. */
enum { WIDTH = 4 };

template <typename Type, int Width> struct moments_rule {
    using T = Type;
    static constexpr int V = Width, SUMS = 2, AHEAD = sizeof(T) == 2 ? 8 : 4,
                         KEPT_AHEAD = sizeof(T) == 2 ? 6 : 3;
    using fetched = lsi_packed<V, T>;
    using kept = fetched;
    struct constants {
        float shift[V];
    };
    const T *x;
    const float *running_mean, *running_var;
    float *mean, *invstd, *new_mean, *new_var;
    float n, eps, momentum, unbias; /* unbias: n / (n - 1), or 1 */

    __device__ void begin(int64_t, int64_t first, int step, constants &c) const
    {
#pragma unroll
        for (int k = 0; k < V; k++) c.shift[k] = first < 0 ? 0.0f : lsi_get(x[first + k * step]);
    }
    __device__ void fetch(int64_t at, fetched &p) const
    {
        p.fetch(x + at);
    }
    __device__ void add(int64_t, const fetched &p, const constants &c, float (&s)[SUMS][V]) const
    {
        float f[V];

        p.unpack(f);
#pragma unroll
        for (int k = 0; k < V; k++) {
            const float d = f[k] - c.shift[k];
            s[0][k] += d;
            s[1][k] = fmaf(d, d, s[1][k]);
        }
    }
    __device__ void add(int64_t at, const fetched &p, const constants &c, float (&s)[SUMS][V], kept &k) const
    {
        add(at, p, c, s);
        k = p;
    }
    __device__ void finish(int64_t group, int64_t first, const float (&s)[SUMS]) const
    {
        settle(group, anchor(first), s, true);
    }
    __device__ float anchor(int64_t first) const
    {
        return first < 0 ? 0.0f : lsi_get(x[first]);
    }
    __device__ void settle(int64_t group, float anchor, const float (&s)[SUMS], bool tracks) const
    {
        const float d = n > 0 ? s[0] / n : 0.0f, m = anchor + d;
        const float rest = n > 0 ? s[1] / n - d * d : 0.0f, var = rest > 0 || rest != rest ? rest : 0.0f;

        mean[group] = m;
        invstd[group] = 1.0f / sqrtf(var + eps);
        if (new_mean == nullptr || !tracks) return;
        new_mean[group] = (1 - momentum) * running_mean[group] + momentum * m;
        new_var[group] = (1 - momentum) * running_var[group] + momentum * var * unbias;
    }
};

template <typename Type, int Width> struct norm_rule {
    using T = Type;
    static constexpr int V = Width, AHEAD = sizeof(T) == 2 ? 4 : 2;
    using beside = lsi_packed<V, T>;
    struct constants {
        float mean[V], scale[V], shift[V];
    };
    const T *x, *residual;
    T *y;
    const float *gamma, *beta, *mean, *invstd;
    ls_act act;
    float slope;

    __device__ void begin(int64_t group, int64_t, int step, constants &c) const
    {
#pragma unroll
        for (int k = 0; k < V; k++) {
            const int64_t g = group + k * step;
            c.mean[k] = mean[g];
            c.scale[k] = gamma != nullptr ? invstd[g] * gamma[g] : invstd[g];
            c.shift[k] = beta != nullptr ? beta[g] : 0.0f;
        }
    }
    __device__ void apply(const int64_t (&at)[AHEAD], int n, const constants &c) const
    {
        lsi_packed<V, T> px[AHEAD], pr[AHEAD];

#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            if (u < n) px[u].fetch(x + at[u]);
            if (u < n) fetch_beside(at[u], pr[u]);
        }
#pragma unroll
        for (int u = 0; u < AHEAD; u++)
            if (u < n) write(at[u], px[u], pr[u], c);
    }
    __device__ void fetch_beside(int64_t at, beside &p) const
    {
        if (residual != nullptr) p.fetch(residual + at);
    }
    __device__ void write(int64_t at, const lsi_packed<V, T> &px, const beside &pr, const constants &c) const
    {
        float f[V], r[V] = {};

        px.unpack(f);
        if (residual != nullptr) pr.unpack(r);
#pragma unroll
        for (int k = 0; k < V; k++)
            f[k] = lsi_act(act, slope, fmaf(f[k] - c.mean[k], c.scale[k], c.shift[k]) + r[k]);
        lsi_store<V>(y + at, f);
    }
};

/* Where backward sees what an activation let through; MASK_ASK: wherever the arguments say, also whether dy
 * is in two parts, for kernels that are bound by something else or seldom run. */
enum mask { MASK_NONE, MASK_Y, MASK_X, MASK_ASK };

/* What x shows of it: y > 0 where x is above `limit`, or in groups whose bit of
 * `turned` is set, below it. */
template <int V> struct limits {
    float limit[V];
    unsigned turned;

    __device__ __forceinline__ void set(int k, float mean, float scale, float shift)
    {
        if (k == 0) turned = 0;
        if (scale < 0) turned |= 1u << k;
        limit[k] = scale != 0 ? mean - shift / scale : shift > 0 ? -INFINITY : INFINITY;
    }
    /* A number with the sign of y. */
    __device__ __forceinline__ float sign(int k, float x) const
    {
        return (turned >> k & 1u) != 0 ? limit[k] - x : x - limit[k];
    }
};

template <int V> struct no_limits {
    __device__ __forceinline__ void set(int, float, float, float)
    {
    }
    __device__ __forceinline__ float sign(int, float) const
    {
        return 0;
    }
};

/* What both passes of a gradient read, and what becomes of dy; with Sum dy is in two parts. */
template <typename Type, int Width, mask Mask, bool Sum = false> struct masked {
    using T = Type;
    static constexpr int V = Width;
    static constexpr bool ASK = Mask == MASK_ASK;
    struct fetched {
        lsi_packed<V, T> dy, x, y, more;
    };
    using known = typename std::conditional<Mask == MASK_X || ASK, limits<V>, no_limits<V>>::type;
    const T *dy, *x, *y;
    const float *gamma, *beta, *mean, *invstd;
    ls_act act;
    float slope;
    const T *more;
    bool by_x;

    __device__ __forceinline__ bool sums() const
    {
        return ASK ? more != nullptr : Sum;
    }
    __device__ __forceinline__ bool reads_y() const
    {
        return ASK ? y != nullptr : Mask == MASK_Y;
    }
    __device__ __forceinline__ bool reads_x() const
    {
        return ASK ? by_x : Mask == MASK_X;
    }
    __device__ __forceinline__ void fetch(int64_t at, fetched &p) const
    {
        p.dy.fetch(dy + at);
        if (sums()) p.more.fetch(more + at);
        p.x.fetch(x + at);
        if (reads_y()) p.y.fetch(y + at);
    }
    __device__ __forceinline__ void begin(int64_t group, int step, known &c) const
    {
        if (reads_x())
#pragma unroll
            for (int k = 0; k < V; k++) {
                const int64_t g = group + k * step;
                c.set(k, mean[g], gamma != nullptr ? invstd[g] * gamma[g] : invstd[g],
                      beta != nullptr ? beta[g] : 0.0f);
            }
    }
    /* dz and x */
    __device__ __forceinline__ void unpack(const fetched &p, const known &c, float (&d)[V],
                                           float (&f)[V]) const
    {
        float o[V] = {};

        p.dy.unpack(d);
        if (sums()) {
            p.more.unpack(f);
#pragma unroll
            for (int k = 0; k < V; k++) d[k] += f[k];
        }
        p.x.unpack(f);
        if (reads_y()) p.y.unpack(o);
        if (reads_y() || reads_x())
#pragma unroll
            for (int k = 0; k < V; k++)
                d[k] = lsi_act_grad(act, slope, reads_y() ? o[k] : c.sign(k, f[k]), d[k]);
    }
};

/* What of a gradient is kept between the passes. */
template <typename T, int V> struct alignas(2 * V * sizeof(T)) kept_grad {
    lsi_packed<V, T> d, x;
};

/* The sums of dz and of dz * (x - mean), and the factors of dx = a dz + b (x -
 * mean) + c. */
template <typename Type, int Width, mask Mask, bool Sum> struct back_sums_rule {
    using T = Type;
    using maps = masked<Type, Width, Mask, Sum>;
    using fetched = typename maps::fetched;
    using kept = kept_grad<Type, Width>;
    static constexpr int V = Width, SUMS = 2, AHEAD = sizeof(T) == 2 ? 4 : 2, KEPT_AHEAD = AHEAD / 2;
    struct constants {
        float mean[V];
        typename maps::known known;
    };
    maps from;
    T *dz; /* NULL: nobody wants it */
    float *dgamma, *dbeta, *factors;
    int64_t groups;
    float n;

    __device__ void begin(int64_t group, int64_t, int step, constants &c) const
    {
#pragma unroll
        for (int k = 0; k < V; k++) c.mean[k] = from.mean[group + k * step];
        from.begin(group, step, c.known);
    }
    __device__ void fetch(int64_t at, fetched &p) const
    {
        from.fetch(at, p);
    }
    __device__ void add(int64_t at, const fetched &p, const constants &c, float (&s)[SUMS][V]) const
    {
        kept nobody;

        add(at, p, c, s, nobody);
    }
    __device__ void add(int64_t at, const fetched &p, const constants &c, float (&s)[SUMS][V], kept &k) const
    {
        float d[V], f[V];

        from.unpack(p, c.known, d, f);
        k.d.pack(d);
        k.x = p.x;
        if (dz != nullptr) lsi_store<V>(dz + at, d);
#pragma unroll
        for (int k = 0; k < V; k++) {
            s[0][k] += d[k];
            s[1][k] = fmaf(d[k], f[k] - c.mean[k], s[1][k]);
        }
    }
    __device__ void finish(int64_t group, int64_t, const float (&s)[SUMS]) const
    {
        settle(group, 0, s, true);
    }
    __device__ float anchor(int64_t) const
    {
        return 0;
    }
    __device__ void settle(int64_t group, float, const float (&s)[SUMS], bool) const
    {
        const float inv = from.invstd[group], a = from.gamma != nullptr ? inv * from.gamma[group] : inv;

        factors[group] = a;
        factors[groups + group] = n > 0 ? -a * inv * inv * (s[1] / n) : 0.0f;
        factors[2 * groups + group] = n > 0 ? -a * (s[0] / n) : 0.0f;
        if (dgamma != nullptr) dgamma[group] = inv * s[1];
        if (dbeta != nullptr) dbeta[group] = s[0];
    }
};

template <typename Type, int Width, mask Mask> struct back_rule {
    using T = Type;
    using maps = masked<Type, Width, Mask>;
    static constexpr int V = Width, AHEAD = sizeof(T) == 2 ? 4 : 2;
    struct beside {
    };
    struct constants {
        float mean[V], a[V], b[V], c[V];
        typename maps::known known;
    };
    maps from; /* dy is dz where the first pass wrote it */
    T *dx;
    const float *factors;
    int64_t groups;

    __device__ void begin(int64_t group, int64_t, int step, constants &c) const
    {
#pragma unroll
        for (int k = 0; k < V; k++) {
            const int64_t g = group + k * step;
            c.mean[k] = from.mean[g];
            c.a[k] = factors[g];
            c.b[k] = factors[groups + g];
            c.c[k] = factors[2 * groups + g];
        }
        from.begin(group, step, c.known);
    }
    __device__ void apply(const int64_t (&at)[AHEAD], int n, const constants &c) const
    {
        typename maps::fetched p[AHEAD];

#pragma unroll
        for (int u = 0; u < AHEAD; u++)
            if (u < n) from.fetch(at[u], p[u]);
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            float d[V], f[V];
            if (u >= n) break;
            from.unpack(p[u], c.known, d, f);
            write(at[u], d, f, c);
        }
    }
    __device__ void fetch_beside(int64_t, beside &) const
    {
    }
    __device__ void write(int64_t at, const kept_grad<T, V> &k, const beside &, const constants &c) const
    {
        float d[V], f[V];

        k.d.unpack(d);
        k.x.unpack(f);
        write(at, d, f, c);
    }
    __device__ void write(int64_t at, const float (&d)[V], float (&f)[V], const constants &c) const
    {
#pragma unroll
        for (int k = 0; k < V; k++) f[k] = fmaf(c.a[k], d[k], fmaf(c.b[k], f[k] - c.mean[k], c.c[k]));
        lsi_store<V>(dx + at, f);
    }
};

static double length_of(const lsi_cuda_groups *g)
{
    return (double)(g->columns ? g->inner : g->outer * g->inner);
}

template <typename T, int V> static moments_rule<T, V> moments_of(const lsi_cuda_norm_args *a)
{
    const double n = length_of(&a->groups);
    moments_rule<T, V> m = {};

    m.x = (const T *)a->x;
    m.running_mean = a->running_mean;
    m.running_var = a->running_var;
    m.mean = a->mean;
    m.invstd = a->invstd;
    m.new_mean = a->new_mean;
    m.new_var = a->new_var;
    m.n = (float)n;
    m.eps = (float)a->attr.eps;
    m.momentum = n > 0 ? (float)a->attr.momentum : 0.0f;
    m.unbias = a->attr.unbiased_running && n > 1 ? (float)(n / (n - 1)) : 1.0f;
    return m;
}

template <typename T, int V> static norm_rule<T, V> norm_of(const lsi_cuda_norm_args *a)
{
    norm_rule<T, V> r = {};

    r.x = (const T *)a->x;
    r.residual = (const T *)a->residual;
    r.y = (T *)a->y;
    r.gamma = a->gamma;
    r.beta = a->beta;
    r.mean = a->mean;
    r.invstd = a->invstd;
    r.act = a->attr.act;
    r.slope = (float)a->attr.slope;
    return r;
}

template <typename T> static int norm(lsi_cuda_stream s, const lsi_cuda_norm_args *a)
{
    const bool wide = a->groups.columns && lsi_groups_wide(a->dtype, &a->groups);
    int code;

    if (wide && a->cluster.blocks > 0)
        return lsi_cluster_groups(s, moments_of<T, WIDTH>(a), norm_of<T, WIDTH>(a), a->groups, a->cluster);
    code = wide ? lsi_sum_columns(s, moments_of<T, WIDTH>(a), a->groups)
                : lsi_sum_groups(s, moments_of<T, 1>(a), a->groups);
    if (code != 0) return code;
    return wide ? lsi_map_columns(s, norm_of<T, WIDTH>(a), a->groups)
                : lsi_map_groups(s, norm_of<T, 1>(a), a->groups);
}

int lsi_cuda_norm(lsi_cuda_stream s, const lsi_cuda_norm_args *a)
{
    LSI_FLOAT_TYPES(a->dtype, return norm<T>(s, a));
    return 0;
}

/* The sums of a gradient. */
template <typename T, int V, mask Mask, bool Sum>
static back_sums_rule<T, V, Mask, Sum> sums_of(const lsi_cuda_norm_grad_args *a)
{
    const lsi_cuda_groups &g = a->groups;
    back_sums_rule<T, V, Mask, Sum> b = {};

    b.from = {(const T *)a->dy, (const T *)a->x, (const T *)a->y,      a->gamma,           a->beta, a->mean,
              a->invstd,        a->attr.act,     (float)a->attr.slope, (const T *)a->more, a->by_x};
    b.dz = (T *)a->dresidual;
    b.dgamma = a->dgamma;
    b.dbeta = a->dbeta;
    b.factors = a->factors;
    b.groups = g.columns ? g.outer * g.groups : g.groups;
    b.n = (float)length_of(&g);
    return b;
}

/* The pass behind them: where they have written dz, it is read in the place of dy, and there is no mask. */
template <typename T, int V, mask Mask> static back_rule<T, V, Mask> pass_of(const lsi_cuda_norm_grad_args *a)
{
    const bool written = a->dresidual != nullptr;
    back_rule<T, V, Mask> r = {};

    r.from = {(const T *)(written ? a->dresidual : a->dy),
              (const T *)a->x,
              written ? nullptr : (const T *)a->y,
              a->gamma,
              a->beta,
              a->mean,
              a->invstd,
              a->attr.act,
              (float)a->attr.slope,
              nullptr,
              !written && a->by_x};
    r.dx = (T *)a->dx;
    r.factors = a->factors;
    r.groups = a->groups.columns ? a->groups.outer * a->groups.groups : a->groups.groups;
    return r;
}

/* First says what the sums see of the mask, Second what the pass behind them
 * does. */
template <typename T, mask First, mask Second, bool Sum = false>
static int grad_columns(lsi_cuda_stream s, const lsi_cuda_norm_grad_args *a)
{
    const int code = lsi_sum_columns(s, sums_of<T, WIDTH, First, Sum>(a), a->groups);

    return code != 0 ? code : lsi_map_columns(s, pass_of<T, WIDTH, Second>(a), a->groups);
}

/* Columns that are read several at a time: most of all steps. */
template <typename T> static int wide_columns(lsi_cuda_stream s, const lsi_cuda_norm_grad_args *a)
{
    const bool written = a->dresidual != nullptr;

    if (a->more != nullptr)
        return a->y != nullptr ? grad_columns<T, MASK_Y, MASK_NONE, true>(s, a)
                               : grad_columns<T, MASK_NONE, MASK_NONE, true>(s, a);
    if (a->by_x)
        return written ? grad_columns<T, MASK_X, MASK_NONE>(s, a) : grad_columns<T, MASK_X, MASK_X>(s, a);
    if (a->y != nullptr)
        return written ? grad_columns<T, MASK_Y, MASK_NONE>(s, a) : grad_columns<T, MASK_Y, MASK_Y>(s, a);
    return grad_columns<T, MASK_NONE, MASK_NONE>(s, a);
}

template <typename T> static int any_groups(lsi_cuda_stream s, const lsi_cuda_norm_grad_args *a)
{
    const int code = lsi_sum_groups(s, sums_of<T, 1, MASK_ASK, false>(a), a->groups);

    return code != 0 ? code : lsi_map_groups(s, pass_of<T, 1, MASK_ASK>(a), a->groups);
}

/* The mask has been applied to what clusters keep. */
template <typename T> static int norm_grad(lsi_cuda_stream s, const lsi_cuda_norm_grad_args *a)
{
    const lsi_cuda_groups &g = a->groups;

    if (!g.columns || !lsi_groups_wide(a->dtype, &g)) return any_groups<T>(s, a);
    if (a->cluster.blocks > 0)
        return lsi_cluster_groups(s, sums_of<T, WIDTH, MASK_ASK, false>(a), pass_of<T, WIDTH, MASK_NONE>(a),
                                  g, a->cluster);
    return wide_columns<T>(s, a);
}

int lsi_cuda_norm_grad(lsi_cuda_stream s, const lsi_cuda_norm_grad_args *a)
{
    LSI_FLOAT_TYPES(a->dtype, return norm_grad<T>(s, a));
    return 0;
}
