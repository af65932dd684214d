/* norm.cuh: the sums of batch and instance norm: moments forward, and those of the gradient.
 *
 * Moments are sums of x - k and its square, k being the group's first element:
 * E[x^2] - mean^2 would cancel where the mean is large. */
#ifndef LS_BACKEND_CUDA_MODULE_NORM_CUH
#define LS_BACKEND_CUDA_MODULE_NORM_CUH

#include <type_traits>

#include "backend/cuda/launch/norm.h"
#include "backend/cuda/module/groups.cuh"

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

#endif
