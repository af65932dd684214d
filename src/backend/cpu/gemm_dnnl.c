/* gemm_dnnl.c: dnnl_sgemm behind our interface; bias and activation follow in a pass of their own. */
#include "backend/cpu/gemm_internal.h"

#if defined(LS_HAVE_ONEDNN) && defined(_OPENMP)

#include <omp.h>

#include "backend/cpu/conv_util.h"
#include "backend/cpu/dnnl_compat.h"
#include "base/parallel.h"

typedef struct finish_job {
    const lsi_gemm_problem *p;
    float *c;
    const float *bias;
} finish_job;

static void finish(int thread, int n_threads, void *arg)
{
    const finish_job *j = arg;
    const lsi_gemm_problem *p = j->p;
    int64_t lo, hi;

    ls_parallel_range(p->batch * p->m, thread, n_threads, &lo, &hi);
    for (int64_t r = lo; r < hi; r++) {
        float *c = j->c + r / p->m * p->stride_c + r % p->m * p->ldc;
        for (int64_t i = 0; p->has_bias && i < p->n; i++) c[i] += j->bias[i];
        for (int64_t i = 0; p->act != LSI_ACT_NONE && i < p->n; i++) c[i] = lsi_act(c[i], p->act, p->slope);
    }
}

/* dnnl_sgemm refuses a leading dimension below 1 row, and an empty product must still write zeros. */
static bool applicable(const lsi_gemm_problem *p)
{
    return lsi_gemm_is_f32(p) && p->m > 0 && p->n > 0 && p->k > 0;
}

static ls_status run(const lsi_gemm_problem *p, const void *a, const void *b, void *c, const void *bias,
                     void *scratch)
{
    const int before = omp_get_max_threads();
    finish_job j = {p, c, bias};
    dnnl_status_t st = dnnl_success;

    (void)scratch;
    if (before != p->threads) omp_set_num_threads(p->threads);
    for (int64_t i = 0; i < p->batch && st == dnnl_success; i++)
        st = dnnl_sgemm(p->trans_a ? 'T' : 'N', p->trans_b ? 'T' : 'N', p->m, p->n, p->k, 1.0f,
                        (const float *)a + i * p->stride_a, p->lda, (const float *)b + i * p->stride_b,
                        p->ldb, p->accumulate ? 1.0f : 0.0f, (float *)c + i * p->stride_c, p->ldc);
    if (before != p->threads) omp_set_num_threads(before);
    if (p->has_bias || p->act != LSI_ACT_NONE) ls_parallel_run(p->threads, finish, &j);
    return st == dnnl_success ? LS_OK : LS_DEVICE;
}

const lsi_gemm_impl lsi_gemm_dnnl = {.name = "dnnl", .applicable = applicable, .run = run};

#else

/* Kept so that the list has no conditions: a build without oneDNN never offers it. */
static bool never(const lsi_gemm_problem *p)
{
    (void)p;
    return false;
}

const lsi_gemm_impl lsi_gemm_dnnl = {.name = "dnnl", .applicable = never};

#endif
