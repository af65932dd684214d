/* norm.cu: batch norm and instance norm with fused activation and residual,
 * both ways.
 *
 * Forward reads x for the moments, then x again (the last part of it from the
 * cache) and writes y: the statistics of a group depend on all of it, so no
 * fewer passes are possible unless the producer sums. Backward reads dy, x (and
 * y, where x does not show what an activation let through) for two sums, then
 * again for dx; where a residual wants dz, the first pass writes it and the
 * second reads it in the place of dy and y.
 *
 * Moments are sums of x - k and its square, k being the group's first element:
 * E[x^2] - mean^2 would cancel where the mean is large. */
#include <type_traits>

#include "backend/cuda/launch/norm.h"
#include "backend/cuda/module/groups.cuh"

/* Elements of an access: what a thread keeps of each of its channels takes registers, and a pass is as fast
 * as the accesses that it has under way; so they are of 8 bytes where numbers have 16 bits. */
enum { WIDTH = 4 };

template <typename Type, int Width> struct moments_rule {
    using T = Type;
    static constexpr int V = Width, SUMS = 2, AHEAD = sizeof(T) == 2 ? 8 : 4;
    using fetched = lsi_packed<V, T>;
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
    __device__ void finish(int64_t group, int64_t first, const float (&s)[SUMS]) const
    {
        const float d = n > 0 ? s[0] / n : 0.0f, m = (first < 0 ? 0.0f : lsi_get(x[first])) + d;
        const float rest = n > 0 ? s[1] / n - d * d : 0.0f, var = rest > 0 || rest != rest ? rest : 0.0f;

        mean[group] = m;
        invstd[group] = 1.0f / sqrtf(var + eps);
        if (new_mean == nullptr) return;
        new_mean[group] = (1 - momentum) * running_mean[group] + momentum * m;
        new_var[group] = (1 - momentum) * running_var[group] + momentum * var * unbias;
    }
};

template <typename Type, int Width> struct norm_rule {
    using T = Type;
    static constexpr int V = Width, AHEAD = sizeof(T) == 2 ? 4 : 2;
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
            if (u < n && residual != nullptr) pr[u].fetch(residual + at[u]);
        }
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            float f[V], r[V] = {};
            if (u >= n) break;
            px[u].unpack(f);
            if (residual != nullptr) pr[u].unpack(r);
#pragma unroll
            for (int k = 0; k < V; k++)
                f[k] = lsi_act(act, slope, fmaf(f[k] - c.mean[k], c.scale[k], c.shift[k]) + r[k]);
            lsi_store<V>(y + at[u], f);
        }
    }
};

/* Where backward sees what an activation let through. */
enum mask { MASK_NONE, MASK_Y, MASK_X };

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
    struct fetched {
        lsi_packed<V, T> dy, x, y, more;
    };
    using known = typename std::conditional<Mask == MASK_X, limits<V>, no_limits<V>>::type;
    const T *dy, *x, *y;
    const float *gamma, *beta, *mean, *invstd;
    ls_act act;
    float slope;
    const T *more;

    __device__ __forceinline__ void fetch(int64_t at, fetched &p) const
    {
        p.dy.fetch(dy + at);
        if constexpr (Sum) p.more.fetch(more + at);
        p.x.fetch(x + at);
        if constexpr (Mask == MASK_Y) p.y.fetch(y + at);
    }
    __device__ __forceinline__ void begin(int64_t group, int step, known &c) const
    {
        if constexpr (Mask == MASK_X)
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
        float o[V];

        p.dy.unpack(d);
        if constexpr (Sum) {
            p.more.unpack(f);
#pragma unroll
            for (int k = 0; k < V; k++) d[k] += f[k];
        }
        p.x.unpack(f);
        if constexpr (Mask == MASK_Y) p.y.unpack(o);
        if constexpr (Mask != MASK_NONE)
#pragma unroll
            for (int k = 0; k < V; k++)
                d[k] = lsi_act_grad(act, slope, Mask == MASK_Y ? o[k] : c.sign(k, f[k]), d[k]);
    }
};

/* The sums of dz and of dz * (x - mean), and the factors of dx = a dz + b (x -
 * mean) + c. */
template <typename Type, int Width, mask Mask, bool Sum> struct back_sums_rule {
    using T = Type;
    using maps = masked<Type, Width, Mask, Sum>;
    using fetched = typename maps::fetched;
    static constexpr int V = Width, SUMS = 2, AHEAD = sizeof(T) == 2 ? 4 : 2;
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
        float d[V], f[V];

        from.unpack(p, c.known, d, f);
        if (dz != nullptr) lsi_store<V>(dz + at, d);
#pragma unroll
        for (int k = 0; k < V; k++) {
            s[0][k] += d[k];
            s[1][k] = fmaf(d[k], f[k] - c.mean[k], s[1][k]);
        }
    }
    __device__ void finish(int64_t group, int64_t, const float (&s)[SUMS]) const
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
#pragma unroll
            for (int k = 0; k < V; k++) f[k] = fmaf(c.a[k], d[k], fmaf(c.b[k], f[k] - c.mean[k], c.c[k]));
            lsi_store<V>(dx + at[u], f);
        }
    }
};

static double length_of(const lsi_cuda_groups *g)
{
    return (double)(g->columns ? g->inner : g->outer * g->inner);
}

template <typename T, int V> static int norm(lsi_cuda_stream s, const lsi_cuda_norm_args *a)
{
    const double n = length_of(&a->groups);
    moments_rule<T, V> m = {};
    norm_rule<T, V> r = {};
    int code;

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
    r.x = m.x;
    r.residual = (const T *)a->residual;
    r.y = (T *)a->y;
    r.gamma = a->gamma;
    r.beta = a->beta;
    r.mean = a->mean;
    r.invstd = a->invstd;
    r.act = a->attr.act;
    r.slope = (float)a->attr.slope;
    code = lsi_sum_groups(s, m, a->groups);
    return code != 0 ? code : lsi_map_groups(s, r, a->groups);
}

int lsi_cuda_norm(lsi_cuda_stream s, const lsi_cuda_norm_args *a)
{
    if (lsi_groups_wide(a->dtype, &a->groups)) {
        LSI_FLOAT_TYPES(a->dtype, return (norm<T, WIDTH>(s, a)));
    } else {
        LSI_FLOAT_TYPES(a->dtype, return (norm<T, 1>(s, a)));
    }
    return 0;
}

/* First says what the sums see of the mask, Second what the pass behind them
 * does. */
template <typename T, int V, mask First, mask Second, bool Sum = false>
static int norm_grad_passes(lsi_cuda_stream s, const lsi_cuda_norm_grad_args *a)
{
    const lsi_cuda_groups &g = a->groups;
    back_sums_rule<T, V, First, Sum> b = {};
    back_rule<T, V, Second> r = {};
    int code;

    b.from = {(const T *)a->dy, (const T *)a->x, (const T *)a->y,      a->gamma,          a->beta, a->mean,
              a->invstd,        a->attr.act,     (float)a->attr.slope, (const T *)a->more};
    b.dz = (T *)a->dresidual;
    b.dgamma = a->dgamma;
    b.dbeta = a->dbeta;
    b.factors = a->factors;
    b.groups = g.columns ? g.outer * g.groups : g.groups;
    b.n = (float)length_of(&g);
    r.from = {a->dresidual != nullptr ? (const T *)a->dresidual : b.from.dy,
              b.from.x,
              b.from.y,
              a->gamma,
              a->beta,
              a->mean,
              a->invstd,
              a->attr.act,
              b.from.slope,
              nullptr};
    r.dx = (T *)a->dx;
    r.factors = a->factors;
    r.groups = b.groups;
    code = lsi_sum_groups(s, b, g);
    return code != 0 ? code : lsi_map_groups(s, r, g);
}

template <typename T, int V> static int norm_grad(lsi_cuda_stream s, const lsi_cuda_norm_grad_args *a)
{
    const bool written = a->dresidual != nullptr;

    if (a->more != nullptr)
        return a->y != nullptr ? norm_grad_passes<T, V, MASK_Y, MASK_NONE, true>(s, a)
                               : norm_grad_passes<T, V, MASK_NONE, MASK_NONE, true>(s, a);
    if (a->by_x)
        return written ? norm_grad_passes<T, V, MASK_X, MASK_NONE>(s, a)
                       : norm_grad_passes<T, V, MASK_X, MASK_X>(s, a);
    if (a->y != nullptr)
        return written ? norm_grad_passes<T, V, MASK_Y, MASK_NONE>(s, a)
                       : norm_grad_passes<T, V, MASK_Y, MASK_Y>(s, a);
    return norm_grad_passes<T, V, MASK_NONE, MASK_NONE>(s, a);
}

int lsi_cuda_norm_grad(lsi_cuda_stream s, const lsi_cuda_norm_grad_args *a)
{
    if (lsi_groups_wide(a->dtype, &a->groups)) {
        LSI_FLOAT_TYPES(a->dtype, return (norm_grad<T, WIDTH>(s, a)));
    } else {
        LSI_FLOAT_TYPES(a->dtype, return (norm_grad<T, 1>(s, a)));
    }
    return 0;
}
