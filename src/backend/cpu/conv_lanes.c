/* conv_lanes.c: chooses the view of a problem with few plain channels on both sides, and offers
 * "plain_small" and "plain_rows". */
#include "backend/cpu/conv_lanes.h"

#include "backend/cpu/conv_list.h"
#include "backend/cpu/conv_util.h"
#include "base/parallel.h"

enum { MAX_CHANNELS = 64 }; /* beyond, blocked layouts win and the transposed copies grow large */

static void view_forward(const lsi_conv_problem *p, lsi_lanes *l)
{
    const int64_t taps = (int64_t)p->kh * p->kw;

    *l = (lsi_lanes){.n = p->n,
                     .src_c = p->ci,
                     .src_h = p->hi,
                     .src_w = p->wi,
                     .dst_c = p->co,
                     .dst_h = p->ho,
                     .dst_w = p->wo,
                     .pt = p->pt,
                     .pl = p->pl,
                     .w_d = p->ci * taps,
                     .w_c = taps,
                     .w_y = p->kw,
                     .w_x = 1};
}

/* The gradient with respect to x as a convolution of dy; only for stride 1. */
static void view_backward(const lsi_conv_problem *p, lsi_lanes *l)
{
    const int64_t taps = (int64_t)p->kh * p->kw;

    *l = (lsi_lanes){.n = p->n,
                     .src_c = p->co,
                     .src_h = p->ho,
                     .src_w = p->wo,
                     .dst_c = p->ci,
                     .dst_h = p->hi,
                     .dst_w = p->wi,
                     .pt = (int64_t)(p->kh - 1) * p->dh - p->pt,
                     .pl = (int64_t)(p->kw - 1) * p->dw - p->pl,
                     .w_d = taps,
                     .w_c = p->ci * taps,
                     .w_y = -p->kw,
                     .w_x = -1};
}

/* Weights are read through strides, so that a filter is turned around by starting at its last tap (run) and
 * going backwards: no copy of it is made. */
static bool view(const lsi_conv_problem *p, lsi_lanes *l)
{
    const int64_t dims[] = {p->n, p->ci, p->hi, p->wi, p->co, p->ho, p->wo};

    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        if (dims[i] <= 0) return false;
    if (p->x_layout != &ls_layout_plain || p->y_layout != &ls_layout_plain || p->groups != 1) return false;
    if (p->ci > MAX_CHANNELS || p->co > MAX_CHANNELS) return false;
    if (p->pass == LSI_CONV_DX) {
        if (p->sh != 1 || p->sw != 1) return false;
        view_backward(p, l);
    } else {
        view_forward(p, l);
    }
    l->kh = p->kh;
    l->kw = p->kw;
    l->sh = p->sh;
    l->sw = p->sw;
    l->dh = p->dh;
    l->dw = p->dw;
    l->act = p->act;
    l->slope = p->slope;
    l->pad_h = (l->dst_h - 1) * l->sh + (l->kh - 1) * l->dh + 1;
    l->pad_w = (l->dst_w - 1) * l->sw + (l->kw - 1) * l->dw + 1;
    /* Negative where dx has more padding than the filter reaches back: its map would have to be cut, which
     * others do. */
    return l->pt >= 0 && l->pl >= 0;
}

static bool applicable(const lsi_lanes_kernels *k, const lsi_conv_problem *p)
{
    lsi_lanes l;

    if (!k->usable() || !view(p, &l) || (k->fits != NULL && !k->fits(&l))) return false;
    return (p->pass == LSI_CONV_DW ? &k->weights : &k->map)->run != NULL;
}

static size_t scratch(const lsi_lanes_kernels *k, const lsi_conv_problem *p)
{
    lsi_lanes l;

    LS_BUG_IF(!view(p, &l));
    return sizeof(float) * (p->pass == LSI_CONV_DW ? &k->weights : &k->map)->floats(&l, p->threads);
}

typedef struct job {
    const lsi_lanes *l;
    const lsi_lanes_pass *pass;
    float *scratch;
} job;

static void prepare_part(int thread, int n_threads, void *arg)
{
    const job *j = arg;

    j->pass->prepare(j->l, thread, n_threads, j->scratch);
}

static void run_part(int thread, int n_threads, void *arg)
{
    const job *j = arg;

    j->pass->run(j->l, thread, n_threads, j->scratch);
}

static void run(const lsi_lanes_kernels *k, const lsi_conv_problem *p, const lsi_conv_args *a)
{
    const bool dx = p->pass == LSI_CONV_DX;
    lsi_lanes l;
    job j = {&l, p->pass == LSI_CONV_DW ? &k->weights : &k->map, a->scratch};

    LS_BUG_IF(!view(p, &l));
    l.src = dx ? a->y : a->x;
    l.dst = dx ? a->x : a->y;
    l.w = a->w + (dx ? (int64_t)p->kh * p->kw - 1 : 0);
    l.bias = p->has_bias ? a->bias : NULL;
    ls_parallel_run(p->threads, prepare_part, &j);
    ls_parallel_run(p->threads, run_part, &j);
}

static bool avx512_applicable(const lsi_conv_problem *p)
{
    return applicable(&lsi_lanes_avx512, p);
}

static size_t avx512_scratch(const lsi_conv_problem *p)
{
    return scratch(&lsi_lanes_avx512, p);
}

static void avx512_run(void *state, const lsi_conv_problem *p, const lsi_conv_args *a)
{
    (void)state;
    run(&lsi_lanes_avx512, p, a);
}

const lsi_conv_impl lsi_conv_plain_small_avx512 = {.name = "plain_small_avx512",
                                                   .applicable = avx512_applicable,
                                                   .scratch = avx512_scratch,
                                                   .run = avx512_run};

static bool avx2_applicable(const lsi_conv_problem *p)
{
    return applicable(&lsi_lanes_avx2, p);
}

static size_t avx2_scratch(const lsi_conv_problem *p)
{
    return scratch(&lsi_lanes_avx2, p);
}

static void avx2_run(void *state, const lsi_conv_problem *p, const lsi_conv_args *a)
{
    (void)state;
    run(&lsi_lanes_avx2, p, a);
}

const lsi_conv_impl lsi_conv_plain_small_avx2 = {
    .name = "plain_small_avx2", .applicable = avx2_applicable, .scratch = avx2_scratch, .run = avx2_run};

static bool rows_applicable(const lsi_conv_problem *p)
{
    return applicable(&lsi_conv_rows_avx2, p);
}

static size_t rows_scratch(const lsi_conv_problem *p)
{
    return scratch(&lsi_conv_rows_avx2, p);
}

static void rows_run(void *state, const lsi_conv_problem *p, const lsi_conv_args *a)
{
    (void)state;
    run(&lsi_conv_rows_avx2, p, a);
}

const lsi_conv_impl lsi_conv_plain_rows_avx2 = {
    .name = "plain_rows_avx2", .applicable = rows_applicable, .scratch = rows_scratch, .run = rows_run};
