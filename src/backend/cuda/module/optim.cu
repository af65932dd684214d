/* optim.cu: updates of all parameters of a group in one launch.
 *
 * Parameters are cut into chunks, one a block, so a group of many small and few large tensors keeps all
 * processors busy; the list of parameters is an argument of the kernel, which a captured graph keeps.  Every
 * weight, gradient and state crosses memory once, except for lars and lamb, whose step needs norms of whole
 * tensors first: they leave two sums per chunk, which each block of the second launch adds up in order. */
#include "backend/cuda/launch/optim.h"
#include "backend/cuda/module/vector.cuh"
#include "backend/cuda/source/update.cuh"

enum { THREADS = 256, WIDTH = 4, FEW = 24, MANY = 500 };

/* At most 32 KB, what a kernel can be given. */
template <int N> struct table {
    lsi_cuda_param param[N];
};

typedef lsi_update_numbers numbers;

static_assert((int)LSI_RULE_SGD == LSI_UPDATE_SGD && (int)LSI_RULE_ADAM == LSI_UPDATE_ADAM &&
                  (int)LSI_RULE_RMSPROP == LSI_UPDATE_RMSPROP && (int)LSI_RULE_LARS == LSI_UPDATE_LARS &&
                  (int)LSI_RULE_LAMB == LSI_UPDATE_LAMB && (int)LS_ADAM_TF == LSI_UPDATE_FORM_TF &&
                  (int)LS_ADAM_W == LSI_UPDATE_FORM_W,
              "source/update.cuh has the same numbers");

struct common {
    ls_optim_attr attr;
    const float *lr, *loss_scale;
    int32_t *t;
    float *norms;
    unsigned *ticket; /* NULL: t stays as it is */
    int n;
};

/* Computed once for a block.  Powers in double take longer than all else of a small update. */
template <int RULE> static __device__ void prepare(const common &c, numbers *out)
{
    if (threadIdx.x == 0) {
        const bool powers = RULE == LSI_RULE_ADAM || RULE == LSI_RULE_LAMB;
        const double t = powers ? (double)*c.t + 1 : 1;
        numbers k = {};
        k.lr = *c.lr;
        k.loss_scale = *c.loss_scale;
        if (powers) {
            k.c1 = (float)(1 - pow(c.attr.beta1, t));
            k.c2 = (float)sqrt(1 - pow(c.attr.beta2, t));
        }
        k.beta1 = (float)c.attr.beta1;
        k.beta2 = (float)c.attr.beta2;
        k.momentum = (float)c.attr.momentum;
        k.decay = (float)c.attr.weight_decay;
        k.eps = (float)c.attr.eps;
        k.alpha = (float)c.attr.alpha;
        k.trust = (float)c.attr.trust;
        k.rest1 = (float)(1 - c.attr.beta1);
        k.rest2 = (float)(1 - c.attr.beta2);
        k.rest_alpha = (float)(1 - c.attr.alpha);
        k.nesterov = c.attr.nesterov;
        k.form = c.attr.form;
        *out = k;
    }
    __syncthreads();
}

/* The parameter that chunk number `chunk` belongs to. */
template <int N> static __device__ int find(const table<N> &t, int n, int chunk)
{
    int lo = 0, hi = n - 1;

    while (lo < hi) {
        const int mid = (lo + hi + 1) / 2;
        if (t.param[mid].first <= chunk)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

/* Calls each(i, n) for this thread's elements of the chunk: n is WIDTH for whole vectors, else 1. */
template <typename F>
static __device__ __forceinline__ void chunk_elements(const lsi_cuda_param &p, int chunk, F each)
{
    const int64_t lo = (int64_t)(chunk - p.first) * LSI_OPTIM_CHUNK;
    const int n = p.count - lo < LSI_OPTIM_CHUNK ? (int)(p.count - lo) : LSI_OPTIM_CHUNK,
              whole = n / WIDTH * WIDTH;

    for (int i = threadIdx.x * WIDTH; i < whole; i += THREADS * WIDTH) each(lo + i, WIDTH);
    if ((int)threadIdx.x < n - whole) each(lo + whole + threadIdx.x, 1);
}

template <typename T> static __device__ __forceinline__ void get(const T *p, int n, float (&f)[WIDTH])
{
    if (p == nullptr) return;
    if (n == WIDTH)
        lsi_load<WIDTH>(p, f);
    else
        f[0] = lsi_get(*p);
}

template <typename T> static __device__ __forceinline__ void put(T *p, int n, const float (&f)[WIDTH])
{
    if (p == nullptr) return;
    if (n == WIDTH)
        lsi_store<WIDTH>(p, f);
    else
        *p = lsi_put<T>(f[0]);
}

/* The sums over all chunks of a tensor, in all threads. */
static __device__ void tensor_norms(const lsi_cuda_param &p, const float *norms, float *w, float *other,
                                    float *room)
{
    const int n = (int)LSI_OPTIM_CHUNKS(p.count);

    *w = *other = 0;
    for (int i = threadIdx.x; i < n; i += THREADS) {
        *w += norms[2 * (p.first + i)];
        *other += norms[2 * (p.first + i) + 1];
    }
    __syncthreads();
    lsi_block_sums<THREADS>(w, other, room);
    *w = sqrtf(*w);
    *other = sqrtf(*other);
}

/* First launch of lars and lamb: sums of squares of the weights, and of the gradient or the direction. */
template <int RULE, typename T, int N>
__global__ void __launch_bounds__(THREADS)
    norms_kernel(const __grid_constant__ common c, const __grid_constant__ table<N> t)
{
    lsi_wait();
    __shared__ numbers k;
    __shared__ float room[2 * THREADS / LSI_WARP];
    const int chunk = blockIdx.x + t.param[0].first;
    const lsi_cuda_param &p = t.param[find(t, c.n, chunk)];
    float sum_w = 0, sum_u = 0;

    if (*c.loss_scale == 0.0f) return; /* this step is skipped, whatever the gradients are */
    prepare<RULE>(c, &k);
    chunk_elements(p, chunk, [&](int64_t i, int n) {
        float w[WIDTH], g[WIDTH], a[WIDTH] = {}, b[WIDTH] = {};
        get((const T *)p.w + i, n, w);
        get((const T *)p.g + i, n, g);
        if (RULE == LSI_RULE_LAMB) {
            get(p.state[0] + i, n, a);
            get(p.state[1] + i, n, b);
        }
#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
            if (j >= n) break;
            const float u =
                RULE == LSI_RULE_LAMB ? lsi_update<RULE>(k, w[j], g[j], a[j], b[j], 1) : g[j] / k.loss_scale;
            sum_w = fmaf(w[j], w[j], sum_w);
            sum_u = fmaf(u, u, sum_u);
        }
        if (RULE == LSI_RULE_LAMB) {
            put(p.state[0] + i, n, a);
            put(p.state[1] + i, n, b);
        }
    });
    lsi_block_sums<THREADS>(&sum_w, &sum_u, room);
    if (threadIdx.x == 0) {
        c.norms[2 * chunk] = sum_w;
        c.norms[2 * chunk + 1] = sum_u;
    }
}

template <int RULE, typename T, int N>
__global__ void __launch_bounds__(THREADS)
    update_kernel(const __grid_constant__ common c, const __grid_constant__ table<N> t)
{
    lsi_wait();
    __shared__ numbers k;
    __shared__ float room[2 * THREADS / LSI_WARP];
    const int chunk = blockIdx.x + t.param[0].first;
    const lsi_cuda_param &p = t.param[find(t, c.n, chunk)];
    float ratio = 1;

    if (*c.loss_scale == 0.0f) return;
    prepare<RULE>(c, &k);
    if (RULE == LSI_RULE_LARS || RULE == LSI_RULE_LAMB) {
        float w, u;
        tensor_norms(p, c.norms, &w, &u, room);
        if (RULE == LSI_RULE_LAMB && w != 0 && u != 0) ratio = w / u;
        if (RULE == LSI_RULE_LARS && !p.vector && w != 0 && u != 0) ratio = k.trust * w / (u + k.decay * w);
        __syncthreads();
        if (RULE == LSI_RULE_LARS && p.vector && threadIdx.x == 0) k.decay = 0;
        __syncthreads();
    }
    chunk_elements(p, chunk, [&](int64_t i, int n) {
        float w[WIDTH], g[WIDTH], a[WIDTH] = {}, b[WIDTH] = {};
        float *s0 = p.state[0] != nullptr ? p.state[0] + i : nullptr;
        float *s1 = p.state[1] != nullptr ? p.state[1] + i : nullptr;
        get((const T *)p.w + i, n, w);
        if (RULE != LSI_RULE_LAMB) get((const T *)p.g + i, n, g);
        get(s0, n, a);
        get(s1, n, b);
#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
            if (j >= n) break;
            if (RULE == LSI_RULE_LAMB) { /* the moments are new already */
                const float u = a[j] / k.c1 / (sqrtf(b[j]) / k.c2 + k.eps) + k.decay * w[j];
                w[j] -= k.lr * ratio * u;
            } else {
                w[j] = lsi_update<RULE>(k, w[j], g[j], a[j], b[j], ratio);
            }
        }
        put((T *)p.w + i, n, w);
        if (RULE != LSI_RULE_LAMB) {
            put(s0, n, a);
            put(s1, n, b);
        }
    });
    if (c.ticket != nullptr && lsi_last_block(c.ticket, gridDim.x) && threadIdx.x == 0) *c.t += 1;
}

/* Parameters lo..lo+n-1 in one launch. */
template <int RULE, typename T, int N>
static int launch_part(lsi_cuda_stream s, const lsi_cuda_optim_args *a, int lo, int n, bool norms, bool last)
{
    const lsi_cuda_param *end = &a->params[lo + n - 1];
    const int64_t chunks = end->first + LSI_OPTIM_CHUNKS(end->count) - a->params[lo].first;
    common c = {a->attr, a->lr, a->loss_scale, a->t, a->norms, last && !a->attr.more ? a->ticket : nullptr,
                n};
    table<N> t;

    for (int i = 0; i < n; i++) t.param[i] = a->params[lo + i];
    if (norms)
        LSI_LAUNCH(s, (unsigned)chunks, THREADS, 0, (norms_kernel<RULE, T, N>), c, t);
    else
        LSI_LAUNCH(s, (unsigned)chunks, THREADS, 0, (update_kernel<RULE, T, N>), c, t);
    return 0;
}

template <int RULE, typename T>
static int launch_all(lsi_cuda_stream s, const lsi_cuda_optim_args *a, bool norms)
{
    for (int lo = 0; lo < a->n; lo += MANY) {
        const int n = a->n - lo < MANY ? a->n - lo : MANY;
        const bool last = lo + n == a->n;
        const int code = n <= FEW ? launch_part<RULE, T, FEW>(s, a, lo, n, norms, last)
                                  : launch_part<RULE, T, MANY>(s, a, lo, n, norms, last);
        if (code != 0) return code;
    }
    return 0;
}

template <typename T> static int update_typed(lsi_cuda_stream s, const lsi_cuda_optim_args *a)
{
    int code;

    switch (a->rule) {
    case LSI_RULE_SGD: return launch_all<LSI_RULE_SGD, T>(s, a, false);
    case LSI_RULE_ADAM: return launch_all<LSI_RULE_ADAM, T>(s, a, false);
    case LSI_RULE_RMSPROP: return launch_all<LSI_RULE_RMSPROP, T>(s, a, false);
    case LSI_RULE_LARS:
        code = launch_all<LSI_RULE_LARS, T>(s, a, true);
        return code != 0 ? code : launch_all<LSI_RULE_LARS, T>(s, a, false);
    default:
        code = launch_all<LSI_RULE_LAMB, T>(s, a, true);
        return code != 0 ? code : launch_all<LSI_RULE_LAMB, T>(s, a, false);
    }
}

int lsi_cuda_optim(lsi_cuda_stream s, const lsi_cuda_optim_args *a)
{
    if (a->dtype == LS_F32) return update_typed<float>(s, a);
    if (a->dtype == LS_BF16) return update_typed<__nv_bfloat16>(s, a);
    return (int)cudaErrorNotSupported;
}

/* -- gradients of several batches ------------------------------------------------------------------------ */

template <typename T> __global__ void __launch_bounds__(THREADS) accumulate_kernel(lsi_cuda_accumulate_args a)
{
    lsi_wait();
    const bool keep = *a.keep != 0.0f;
    const float weight = *a.weight;
    const int64_t whole = a.count / WIDTH, step = (int64_t)gridDim.x * THREADS;
    const int64_t me = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const T *g = (const T *)a.gradient;

    for (int64_t i = me; i < whole; i += step) {
        float x[WIDTH] = {}, sum[WIDTH] = {};
        if (weight != 0) lsi_load<WIDTH>(g + i * WIDTH, x); /* of weight 0 it may be anything */
        if (keep) lsi_load<WIDTH>(a.sum + i * WIDTH, sum);
#pragma unroll
        for (int k = 0; k < WIDTH; k++) sum[k] = fmaf(weight, x[k], sum[k]);
        lsi_store<WIDTH>(a.sum + i * WIDTH, sum);
    }
    if (whole * WIDTH + me < a.count) {
        const int64_t i = whole * WIDTH + me;
        a.sum[i] = fmaf(weight, weight != 0 ? lsi_get(g[i]) : 0.0f, keep ? a.sum[i] : 0.0f);
    }
}

int lsi_cuda_accumulate(lsi_cuda_stream s, const lsi_cuda_accumulate_args *a)
{
    if (a->count == 0) return 0;
    LSI_FLOAT_TYPES(
        a->dtype, LSI_LAUNCH(s, lsi_blocks(a->count, THREADS * WIDTH), THREADS, 0, accumulate_kernel<T>, *a));
    return 0;
}
