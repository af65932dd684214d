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
 */
#include "backend/cuda/module/cluster.cuh"
#include "backend/cuda/module/norm.cuh"

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
