/* gemm.c: the list of matrix products, the cutting among threads, and a product by plain loops. */
#include "backend/cpu/gemm.h"

#include "backend/cpu/conv_util.h"
#include "backend/cpu/gemm_internal.h"
#include "base/parallel.h"

typedef struct drive_job {
    const lsi_gemm_tiling *t;
    const lsi_gemm_problem *p;
    const char *a, *b;
    const void *bias;
    char *c, *scratch;
    int grid_m, grid_n; /* threads along m and n; 0 when the batch is cut instead */
} drive_job;

static int64_t round_up(int64_t v, int64_t to)
{
    return (v + to - 1) / to * to;
}

/* The grid whose largest rectangle costs least: its tiles, plus the packing of its two edges. */
void lsi_gemm_grid(const lsi_gemm_tiling *t, const lsi_gemm_problem *p, int *grid_m, int *grid_n)
{
    double best = INFINITY;

    for (int gm = 1; gm <= p->threads; gm++) {
        if (p->threads % gm) continue;
        const int gn = p->threads / gm;
        const double rows = (double)round_up((p->m + gm - 1) / gm, t->mr);
        const double cols = (double)round_up((p->n + gn - 1) / gn, t->nr);
        const double cost = rows * cols + 8 * (rows + cols);
        if (cost < best) {
            best = cost;
            *grid_m = gm;
            *grid_n = gn;
        }
    }
}

static void drive_thread(int thread, int n_threads, void *arg)
{
    const drive_job *j = arg;
    const lsi_gemm_problem *p = j->p;
    const bool whole = j->grid_m == 0;
    int64_t lo = 0, hi = p->batch;
    lsi_gemm_block block = {.p = p,
                            .bias = j->bias,
                            .m_hi = p->m,
                            .n_hi = p->n,
                            .scratch = j->scratch + (size_t)thread * j->t->scratch_bytes};

    if (whole) {
        ls_parallel_range(p->batch, thread, n_threads, &lo, &hi);
    } else {
        ls_parallel_range_grain(p->m, j->t->mr, thread / j->grid_n, j->grid_m, &block.m_lo, &block.m_hi);
        ls_parallel_range_grain(p->n, j->t->nr, thread % j->grid_n, j->grid_n, &block.n_lo, &block.n_hi);
    }
    if (block.m_lo >= block.m_hi || block.n_lo >= block.n_hi) return;
    for (int64_t i = lo; i < hi; i++) {
        block.a = (const void *)(j->a + i * p->stride_a * (int64_t)ls_dtype_size(p->a_type));
        block.b = (const void *)(j->b + i * p->stride_b * (int64_t)ls_dtype_size(p->b_type));
        block.c = (void *)(j->c + i * p->stride_c * (int64_t)ls_dtype_size(p->c_type));
        j->t->run(&block);
    }
}

void lsi_gemm_drive(const lsi_gemm_tiling *t, const lsi_gemm_problem *p, const void *a, const void *b,
                    void *c, const void *bias, void *scratch)
{
    drive_job j = {
        .t = t, .p = p, .a = a, .b = b, .bias = p->has_bias ? bias : NULL, .c = c, .scratch = scratch};

    /* Whole products pack nothing twice, but with fewer than two a thread some threads would be done long
     * before others. Either cut leaves the sum over k of an element to one thread, in the kernel's own order:
     * results do not depend on it. */
    if (p->batch < 2 * p->threads) lsi_gemm_grid(t, p, &j.grid_m, &j.grid_n);
    ls_parallel_run(p->threads, drive_thread, &j);
}

/* Rows of C as sums of rows of B (or dot products when B is stored transposed): slow, but reads forwards. */
static void naive_block(const lsi_gemm_block *k)
{
    const lsi_gemm_problem *p = k->p;
    const int64_t a_row = p->trans_a ? 1 : p->lda, a_col = p->trans_a ? p->lda : 1;

    for (int64_t i = k->m_lo; i < k->m_hi; i++) {
        float *c = k->c + i * p->ldc;
        for (int64_t j = k->n_lo; j < k->n_hi && !p->accumulate; j++) c[j] = 0;
        for (int64_t l = 0; l < p->k && !p->trans_b; l++) {
            const float a = k->a[i * a_row + l * a_col];
            for (int64_t j = k->n_lo; j < k->n_hi; j++) c[j] += a * k->b[l * p->ldb + j];
        }
        for (int64_t j = k->n_lo; j < k->n_hi && p->trans_b; j++)
            for (int64_t l = 0; l < p->k; l++) c[j] += k->a[i * a_row + l * a_col] * k->b[j * p->ldb + l];
        for (int64_t j = k->n_lo; j < k->n_hi; j++)
            c[j] = lsi_act(c[j] + (k->bias ? k->bias[j] : 0), p->act, p->slope);
    }
}

static bool naive_applicable(const lsi_gemm_problem *p)
{
    return lsi_gemm_is_f32(p);
}

static ls_status naive_run(const lsi_gemm_problem *p, const void *a, const void *b, void *c, const void *bias,
                           void *scratch)
{
    static const lsi_gemm_tiling tiling = {naive_block, 1, 16, 0};

    lsi_gemm_drive(&tiling, p, a, b, c, bias, scratch);
    return LS_OK;
}

const lsi_gemm_impl lsi_gemm_naive = {.name = "naive", .applicable = naive_applicable, .run = naive_run};

const lsi_gemm_impl *const lsi_gemm_impls[] = {
    &lsi_gemm_b16, &lsi_gemm_avx512, &lsi_gemm_dnnl, &lsi_gemm_avx2, &lsi_gemm_naive, NULL,
};

static const lsi_gemm_impl *first_applicable(const lsi_gemm_problem *p)
{
    int i = 0;

    while (!lsi_gemm_impls[i]->applicable(p)) i++;
    return lsi_gemm_impls[i];
}

size_t lsi_gemm_scratch(const lsi_gemm_problem *p)
{
    const lsi_gemm_impl *impl = first_applicable(p);

    return impl->scratch ? impl->scratch(p) : 0;
}

ls_status lsi_gemm(const lsi_gemm_problem *p, const void *a, const void *b, void *c, const void *bias,
                   void *scratch)
{
    return first_applicable(p)->run(p, a, b, c, bias, scratch);
}
