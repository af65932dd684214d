/* norm.cu: batch norm and instance norm with fused activation and residual,
 * both ways.
 *
 * Forward reads x for the moments, then x again (the last part of it from the
 * cache) and writes y: the statistics of a group depend on all of it, so no
 * fewer passes are possible unless the producer sums. Backward reads dy, x (and
 * y) for two sums, then again for dx; where a residual wants dz, the first pass
 * writes it and the second reads it in the place of dy and y.
 *
 * Moments are sums of x - k and its square, k being the group's first element:
 * E[x^2] - mean^2 would cancel where the mean is large. */
#include "backend/cuda/launch/norm.h"
#include "backend/cuda/module/groups.cuh"

template <typename Type, int Width> struct moments_rule {
    using T = Type;
    static constexpr int V = Width, SUMS = 2;
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
    __device__ void add(int64_t at, const constants &c, float (&s)[SUMS][V]) const
    {
        float f[V];

        lsi_load<V>(x + at, f);
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
    static constexpr int V = Width, AHEAD = 4;
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

/* The sums of dz and of dz * (x - mean), and the factors of dx = a dz + b (x -
 * mean) + c. */
template <typename Type, int Width> struct back_sums_rule {
    using T = Type;
    static constexpr int V = Width, SUMS = 2;
    struct constants {
        float mean[V];
    };
    const T *dy, *x, *y;
    T *dz; /* NULL: nobody wants it */
    const float *gamma, *mean, *invstd;
    float *dgamma, *dbeta, *factors;
    int64_t groups;
    float n;
    ls_act act;
    float slope;
    bool by_x; /* x - mean stands for y */

    __device__ void begin(int64_t group, int64_t, int step, constants &c) const
    {
#pragma unroll
        for (int k = 0; k < V; k++) c.mean[k] = mean[group + k * step];
    }
    __device__ void add(int64_t at, const constants &c, float (&s)[SUMS][V]) const
    {
        float d[V], f[V], o[V];

        lsi_load<V>(dy + at, d);
        lsi_load<V>(x + at, f);
        if (y != nullptr) {
            lsi_load<V>(y + at, o);
#pragma unroll
            for (int k = 0; k < V; k++) d[k] = lsi_act_grad(act, slope, o[k], d[k]);
        } else if (by_x) {
#pragma unroll
            for (int k = 0; k < V; k++) d[k] = lsi_act_grad(act, slope, f[k] - c.mean[k], d[k]);
        }
        if (dz != nullptr) lsi_store<V>(dz + at, d);
#pragma unroll
        for (int k = 0; k < V; k++) {
            s[0][k] += d[k];
            s[1][k] = fmaf(d[k], f[k] - c.mean[k], s[1][k]);
        }
    }
    __device__ void finish(int64_t group, int64_t, const float (&s)[SUMS]) const
    {
        const float inv = invstd[group], a = gamma != nullptr ? inv * gamma[group] : inv;

        factors[group] = a;
        factors[groups + group] = n > 0 ? -a * inv * inv * (s[1] / n) : 0.0f;
        factors[2 * groups + group] = n > 0 ? -a * (s[0] / n) : 0.0f;
        if (dgamma != nullptr) dgamma[group] = inv * s[1];
        if (dbeta != nullptr) dbeta[group] = s[0];
    }
};

template <typename Type, int Width> struct back_rule {
    using T = Type;
    static constexpr int V = Width, AHEAD = 3;
    struct constants {
        float mean[V], a[V], b[V], c[V];
    };
    const T *dy, *x, *y; /* dy is dz, and y NULL, where the first pass wrote it */
    T *dx;
    const float *mean, *factors;
    int64_t groups;
    ls_act act;
    float slope;
    bool by_x;

    __device__ void begin(int64_t group, int64_t, int step, constants &c) const
    {
#pragma unroll
        for (int k = 0; k < V; k++) {
            const int64_t g = group + k * step;
            c.mean[k] = mean[g];
            c.a[k] = factors[g];
            c.b[k] = factors[groups + g];
            c.c[k] = factors[2 * groups + g];
        }
    }
    __device__ void apply(const int64_t (&at)[AHEAD], int n, const constants &c) const
    {
        lsi_packed<V, T> pd[AHEAD], px[AHEAD], py[AHEAD];

#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            if (u >= n) break;
            pd[u].fetch(dy + at[u]);
            px[u].fetch(x + at[u]);
            if (y != nullptr) py[u].fetch(y + at[u]);
        }
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            float d[V], f[V], o[V];
            if (u >= n) break;
            pd[u].unpack(d);
            px[u].unpack(f);
            if (y != nullptr) py[u].unpack(o);
#pragma unroll
            for (int k = 0; k < V; k++) {
                const float dz = y != nullptr ? lsi_act_grad(act, slope, o[k], d[k])
                                 : by_x       ? lsi_act_grad(act, slope, f[k] - c.mean[k], d[k])
                                              : d[k];
                f[k] = fmaf(c.a[k], dz, fmaf(c.b[k], f[k] - c.mean[k], c.c[k]));
            }
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
    LSI_FLOAT_TYPES(a->dtype, LSI_VECTORS(lsi_groups_wide(a->dtype, &a->groups), return (norm<T, V>(s, a))));
    return 0;
}

template <typename T, int V> static int norm_grad(lsi_cuda_stream s, const lsi_cuda_norm_grad_args *a)
{
    const lsi_cuda_groups &g = a->groups;
    back_sums_rule<T, V> b = {};
    back_rule<T, V> r = {};
    int code;

    b.dy = (const T *)a->dy;
    b.x = (const T *)a->x;
    b.y = (const T *)a->y;
    b.dz = (T *)a->dresidual;
    b.gamma = a->gamma;
    b.mean = a->mean;
    b.invstd = a->invstd;
    b.dgamma = a->dgamma;
    b.dbeta = a->dbeta;
    b.factors = a->factors;
    b.groups = g.columns ? g.outer * g.groups : g.groups;
    b.n = (float)length_of(&g);
    b.act = a->attr.act;
    b.slope = (float)a->attr.slope;
    r.dy = a->dresidual != nullptr ? (const T *)a->dresidual : b.dy;
    r.x = b.x;
    r.y = a->dresidual != nullptr ? nullptr : b.y;
    r.dx = (T *)a->dx;
    r.mean = a->mean;
    r.factors = a->factors;
    r.groups = b.groups;
    r.act = b.act;
    r.slope = b.slope;
    b.by_x = r.by_x = a->by_x;
    code = lsi_sum_groups(s, b, g);
    return code != 0 ? code : lsi_map_groups(s, r, g);
}

int lsi_cuda_norm_grad(lsi_cuda_stream s, const lsi_cuda_norm_grad_args *a)
{
    LSI_FLOAT_TYPES(a->dtype,
                    LSI_VECTORS(lsi_groups_wide(a->dtype, &a->groups), return (norm_grad<T, V>(s, a))));
    return 0;
}
