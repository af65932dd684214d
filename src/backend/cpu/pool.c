/* pool.c: maximum and average pooling and nearest upsampling, both ways, cut among threads by planes and
 * rows.
 *
 * Upsampling by a factor f is the gradient of a sum over f x f windows, and its gradient is that sum. */
#include "backend/cpu/pool.h"

#include "backend/cpu/kernel_util.h"
#include "backend/cpu/planners.h"

typedef struct pool_state {
    const lsi_pool_table *table;
    lsi_pool pool;
    int64_t planes, rows; /* rows of a plane of the output */
    int64_t size;         /* bytes of an element */
    int threads;
} pool_state;

typedef struct pool_call {
    const pool_state *s;
    const ls_call *call;
    /* Rows lo..hi-1 of plane `plane`. */
    void (*part)(const pool_state *s, const ls_call *call, int64_t plane, int64_t lo, int64_t hi);
} pool_call;

static void pool_thread(int thread, int n_threads, void *arg)
{
    const pool_call *c = arg;
    int64_t lo, hi;

    /* Two rows that share their windows are cheapest together. */
    ls_parallel_range_grain(c->s->planes * c->s->rows, 2, thread, n_threads, &lo, &hi);
    while (lo < hi) {
        int64_t row = lo % c->s->rows, n = c->s->rows - row < hi - lo ? c->s->rows - row : hi - lo;
        c->part(c->s, c->call, lo / c->s->rows, row, row + n);
        lo += n;
    }
}

static void run_parts(const pool_state *s, const ls_call *call,
                      void (*part)(const pool_state *, const ls_call *, int64_t, int64_t, int64_t))
{
    pool_call c = {s, call, part};

    if (s->planes * s->rows > 0) ls_parallel_run(s->threads, pool_thread, &c);
}

/* Elements of one plane of the image and of the pooled image. */
static int64_t plane_in(const pool_state *s)
{
    return s->pool.h * s->pool.w * (s->pool.lanes ? 16 : 1);
}
static int64_t plane_out(const pool_state *s)
{
    return s->pool.ho * s->pool.wo * (s->pool.lanes ? 16 : 1);
}

static const void *from(const pool_state *s, const ls_call *call, int i, int64_t at)
{
    return (const char *)call->in[i] + at * s->size;
}
static void *to(const pool_state *s, const ls_call *call, int64_t at)
{
    return (char *)call->out[0] + at * s->size;
}

static void max_part(const pool_state *s, const ls_call *call, int64_t plane, int64_t lo, int64_t hi)
{
    int64_t at = plane * plane_out(s);

    s->table->max(&s->pool, from(s, call, 0, plane * plane_in(s)), to(s, call, at),
                  (uint8_t *)call->out[1] + at, lo, hi);
}

static void max_back_part(const pool_state *s, const ls_call *call, int64_t plane, int64_t lo, int64_t hi)
{
    int64_t at = plane * plane_out(s);
    const void *y = s->pool.relu ? from(s, call, 2, at) : NULL;

    s->table->max_back(&s->pool, from(s, call, 0, at), (const uint8_t *)call->in[1] + at, y,
                       to(s, call, plane * plane_in(s)), lo, hi);
}

static void average_part(const pool_state *s, const ls_call *call, int64_t plane, int64_t lo, int64_t hi)
{
    s->table->average(&s->pool, from(s, call, 0, plane * plane_in(s)), to(s, call, plane * plane_out(s)), lo,
                      hi);
}

static void average_back_part(const pool_state *s, const ls_call *call, int64_t plane, int64_t lo, int64_t hi)
{
    s->table->average_back(&s->pool, from(s, call, 0, plane * plane_out(s)), to(s, call, plane * plane_in(s)),
                           lo, hi);
}

static void run_max(void *state, const ls_call *call)
{
    run_parts(state, call, max_part);
}
static void run_max_back(void *state, const ls_call *call)
{
    run_parts(state, call, max_back_part);
}
static void run_average(void *state, const ls_call *call)
{
    run_parts(state, call, average_part);
}
static void run_average_back(void *state, const ls_call *call)
{
    run_parts(state, call, average_back_part);
}

/* One floating type (bytes for indices), and one layout for all. */
static bool tensors_fit(const ls_graph *g, const ls_node *n)
{
    const ls_layout *layout = lsi_in(g, n, 0)->layout;
    const ls_dtype type = lsi_in(g, n, 0)->dtype;

    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const ls_vinfo *v = g->values[i < n->n_in ? n->in[i] : n->out[i - n->n_in]];
        if ((v->dtype != type && v->dtype != LS_U8) || v->layout != layout) return false;
    }
    return true;
}

/* Fills in everything but windows (which it looks at) and weight; `image` is the tensor before pooling,
 * `pooled` the one after.
 */
static void set_sizes(pool_state *s, const ls_device *dev, const ls_vinfo *image, const ls_vinfo *pooled,
                      const ls_vinfo *out)
{
    s->pool.lanes = image->layout == &lsi_layout_c16;
    s->pool.h = image->shape.dim[2];
    s->pool.w = image->shape.dim[3];
    s->pool.ho = pooled->shape.dim[2];
    s->pool.wo = pooled->shape.dim[3];
    s->planes = image->shape.dim[0] * image->shape.dim[1] / (s->pool.lanes ? 16 : 1);
    s->rows = out->shape.dim[2];
    s->threads = lsi_threads_for(dev, ls_shape_count(image->shape));
    /* Where windows neither overlap nor leave rows over, the planes on top of one another are one tall plane,
     * and its kernel is called once per thread. */
    if (s->pool.pt == 0 && s->pool.kh == s->pool.sh && s->pool.h == s->pool.ho * s->pool.sh) {
        s->pool.h *= s->planes;
        s->pool.ho *= s->planes;
        s->rows *= s->planes;
        s->planes = s->planes > 0 ? 1 : 0;
    }
}

static ls_status plan_pool(ls_device *dev, const ls_graph *g, const ls_node *n, bool backward, bool average,
                           void (*run)(void *, const ls_call *), ls_kernel *out, ls_err *err)
{
    const ls_pool_attr *a = n->attr;
    const ls_vinfo *x = lsi_in(g, n, 0), *y = lsi_out(g, n, 0);
    pool_state s = {.table = LSI_PICK_STORED(x->dtype, lsi_pool), .size = (int64_t)ls_dtype_size(x->dtype)};

    if (s.table == NULL || !tensors_fit(g, n)) return LS_UNSUPPORTED;
    s.pool = (lsi_pool){.kh = a->kernel[0],
                        .kw = a->kernel[1],
                        .sh = a->stride[0],
                        .sw = a->stride[1],
                        .pt = a->pad[0],
                        .pl = a->pad[1],
                        .relu = a->relu};
    if (average && a->count_pad) s.pool.weight = 1.0f / (float)(a->kernel[0] * a->kernel[1]);
    set_sizes(&s, dev, backward ? y : x, backward ? x : y, y);
    return lsi_kernel_make(out, run, &s, sizeof s, 0, s.table->impl, err);
}

ls_status lsi_plan_maxpool2d(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    return plan_pool(dev, g, n, false, false, run_max, out, err);
}

ls_status lsi_plan_maxpool2d_grad(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                  ls_err *err)
{
    return plan_pool(dev, g, n, true, false, run_max_back, out, err);
}

ls_status lsi_plan_avgpool2d(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    return plan_pool(dev, g, n, false, true, run_average, out, err);
}

ls_status lsi_plan_avgpool2d_grad(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                  ls_err *err)
{
    return plan_pool(dev, g, n, true, true, run_average_back, out, err);
}

static ls_status plan_upsample(ls_device *dev, const ls_graph *g, const ls_node *n, bool backward,
                               ls_kernel *out, ls_err *err)
{
    int f = ((const ls_upsample_attr *)n->attr)->factor;
    const ls_vinfo *x = lsi_in(g, n, 0), *y = lsi_out(g, n, 0);
    pool_state s = {.table = LSI_PICK_STORED(x->dtype, lsi_pool), .size = (int64_t)ls_dtype_size(x->dtype)};

    if (s.table == NULL || !tensors_fit(g, n)) return LS_UNSUPPORTED;
    s.pool = (lsi_pool){.kh = f, .kw = f, .sh = f, .sw = f, .weight = 1};
    set_sizes(&s, dev, backward ? x : y, backward ? y : x, y);
    return lsi_kernel_make(out, backward ? run_average : run_average_back, &s, sizeof s, 0, s.table->impl,
                           err);
}

ls_status lsi_plan_upsample2d(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                              ls_err *err)
{
    return plan_upsample(dev, g, n, false, out, err);
}

ls_status lsi_plan_upsample2d_grad(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                   ls_err *err)
{
    return plan_upsample(dev, g, n, true, out, err);
}
