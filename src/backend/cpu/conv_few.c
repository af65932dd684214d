/* conv_few.c: chooses the view of a problem with few channels on one side, cuts it among threads, and offers
 * the implementations "first" (x is the thin map) and "last" (y is). */
#include "backend/cpu/conv_few.h"

#include "backend/cpu/conv_list.h"
#include "backend/cpu/conv_util.h"
#include "base/parallel.h"

/* Both sides of the problem as a view; false when this kind of view does not fit. */
static bool view_first(const lsi_conv_problem *p, lsi_few *f)
{
    const int64_t taps = (int64_t)p->kh * p->kw;

    if (p->x_layout != &ls_layout_plain || p->y_layout != &lsi_layout_c16) return false;
    *f = (lsi_few){.n = p->n,
                   .n_thin = p->ci,
                   .hi = p->hi,
                   .wi = p->wi,
                   .n_wide = p->co,
                   .ho = p->ho,
                   .wo = p->wo,
                   .pt = p->pt,
                   .pl = p->pl,
                   .w_o = p->ci * taps,
                   .w_i = taps,
                   .w_y = p->kw,
                   .w_x = 1};
    return true;
}

/* x as the result of convolving y: with the filter turned around (its strides go backwards), its channels
 * swapped, and the padding that completes the filter's reach.  With a stride y would have to be spread out
 * first. */
static bool view_last(const lsi_conv_problem *p, lsi_few *f)
{
    const int64_t taps = (int64_t)p->kh * p->kw;

    if (p->x_layout != &lsi_layout_c16 || p->y_layout != &ls_layout_plain) return false;
    if (p->sh != 1 || p->sw != 1) return false;
    *f = (lsi_few){.n = p->n,
                   .n_thin = p->co,
                   .hi = p->ho,
                   .wi = p->wo,
                   .n_wide = p->ci,
                   .ho = p->hi,
                   .wo = p->wi,
                   .pt = (int64_t)(p->kh - 1) * p->dh - p->pt,
                   .pl = (int64_t)(p->kw - 1) * p->dw - p->pl,
                   .w_o = taps,
                   .w_i = p->ci * taps,
                   .w_y = -p->kw,
                   .w_x = -1};
    return f->pt >= 0 && f->pl >= 0;
}

/* The pass as the view sees it: to the wide side, to the thin side, or to the weights. */
static lsi_conv_pass view_pass(const lsi_conv_problem *p)
{
    if (p->pass == LSI_CONV_DW || p->y_layout == &lsi_layout_c16) return p->pass;
    return p->pass == LSI_CONV_FWD ? LSI_CONV_DX : LSI_CONV_FWD;
}

static bool is_last(const lsi_conv_problem *p)
{
    return p->x_layout == &lsi_layout_c16;
}

/* Bands large enough to use what lies in the caches, small enough to give every thread work. */
static void choose_bands(lsi_few *f, lsi_conv_pass pass, int threads)
{
    const int64_t rows = pass == LSI_CONV_DX ? f->hi : f->ho;
    const int64_t row_floats = pass == LSI_CONV_DX    ? f->n_thin * f->wi
                               : pass == LSI_CONV_FWD ? f->n_thin * f->sh * lsi_few_cols(f)
                                                      : f->n_wide * f->wo;
    const int64_t floats = pass == LSI_CONV_DX ? 1 << 17 : pass == LSI_CONV_FWD ? 1 << 13 : 1 << 16;
    const int64_t wanted = f->n >= 4 * threads ? 1 : (4 * threads + f->n - 1) / (f->n > 0 ? f->n : 1);
    int64_t n_bands = (rows * row_floats + floats - 1) / floats;

    if (n_bands < wanted && f->n % threads) n_bands = wanted;
    if (n_bands > rows) n_bands = rows;
    if (n_bands < 1) n_bands = 1;
    f->band = (rows + n_bands - 1) / n_bands;
    f->n_bands = f->band > 0 ? (rows + f->band - 1) / f->band : 0;
}

static bool view(const lsi_conv_problem *p, lsi_few *f)
{
    if (!(is_last(p) ? view_last(p, f) : view_first(p, f))) return false;
    f->kh = p->kh;
    f->kw = p->kw;
    f->sh = p->sh;
    f->sw = p->sw;
    f->dh = p->dh;
    f->dw = p->dw;
    f->act = p->act;
    f->slope = p->slope;
    choose_bands(f, view_pass(p), p->threads);
    return p->groups == 1 && f->n_thin <= LSI_FEW_MAX_THIN && f->ho > 0 && f->wo > 0 && f->hi > 0 &&
           f->wi > 0;
}

static bool applicable(const lsi_few_kernels *k, const lsi_conv_problem *p, bool last)
{
    lsi_few f;

    return k->usable() && is_last(p) == last && view(p, &f) && k->can(&f, view_pass(p));
}

static size_t floats_per_thread(const lsi_few_kernels *k, const lsi_few *f, lsi_conv_pass pass)
{
    return lsi_align64(k->scratch(f, pass) * sizeof(float)) / sizeof(float);
}

static size_t scratch(const lsi_few_kernels *k, const lsi_conv_problem *p)
{
    lsi_few f;

    LS_BUG_IF(!view(p, &f));
    return (size_t)p->threads * floats_per_thread(k, &f, view_pass(p)) * sizeof(float);
}

typedef struct job {
    const lsi_few *f;
    void (*part)(const lsi_few *f, int64_t lo, int64_t hi, float *scratch);
    float *scratch;
    size_t per_thread;
} job;

static void run_part(int thread, int n_threads, void *arg)
{
    const job *j = arg;
    int64_t lo, hi;

    ls_parallel_range(j->f->n * j->f->n_bands, thread, n_threads, &lo, &hi);
    j->part(j->f, lo, hi, j->scratch + (size_t)thread * j->per_thread);
}

/* Adds the threads' sums in the order of the threads and puts them where the weights lie. */
static void sum_weights(const lsi_few *f, const job *j, int threads)
{
    const int64_t taps = f->kh * f->kw;

    for (int64_t t = 0; t < f->n_thin * taps; t++) {
        float *to = f->w + t / taps * f->w_i + t % taps / f->kw * f->w_y + t % f->kw * f->w_x;
        for (int64_t o = 0; o < f->n_wide; o++) {
            float sum = 0;
            for (int i = 0; i < threads; i++)
                sum += j->scratch[(size_t)i * j->per_thread + (size_t)(t * f->n_wide + o)];
            to[o * f->w_o] = sum;
        }
    }
}

static void run(const lsi_few_kernels *k, const lsi_conv_problem *p, const lsi_conv_args *a)
{
    const lsi_conv_pass pass = view_pass(p);
    lsi_few f;
    job j = {.f = &f, .scratch = a->scratch};

    LS_BUG_IF(!view(p, &f));
    f.thin = is_last(p) ? a->y : a->x;
    f.wide = is_last(p) ? a->x : a->y;
    f.w = a->w + (is_last(p) ? (int64_t)p->kh * p->kw - 1 : 0);
    f.bias = p->has_bias ? a->bias : NULL;
    j.per_thread = floats_per_thread(k, &f, pass);
    j.part = pass == LSI_CONV_FWD ? k->to_wide : pass == LSI_CONV_DX ? k->to_thin : k->weights;
    ls_parallel_run(p->threads, run_part, &j);
    if (pass == LSI_CONV_DW) sum_weights(&f, &j, p->threads);
}

#define FEW_IMPL(impl, kind, is_last_kind, kernels)                                                          \
    static bool impl##_applicable(const lsi_conv_problem *p)                                                 \
    {                                                                                                        \
        return applicable(&kernels, p, is_last_kind);                                                        \
    }                                                                                                        \
    static size_t impl##_scratch(const lsi_conv_problem *p)                                                  \
    {                                                                                                        \
        return scratch(&kernels, p);                                                                         \
    }                                                                                                        \
    static void impl##_run(void *state, const lsi_conv_problem *p, const lsi_conv_args *a)                   \
    {                                                                                                        \
        (void)state;                                                                                         \
        run(&kernels, p, a);                                                                                 \
    }                                                                                                        \
    const lsi_conv_impl lsi_conv_##impl = {                                                                  \
        .name = kind, .applicable = impl##_applicable, .scratch = impl##_scratch, .run = impl##_run}

FEW_IMPL(first_avx512, "first_avx512", false, lsi_few_avx512);
FEW_IMPL(first_avx2, "first_avx2", false, lsi_few_avx2);
FEW_IMPL(last_avx512, "last_avx512", true, lsi_few_avx512);
FEW_IMPL(last_avx2, "last_avx2", true, lsi_few_avx2);
