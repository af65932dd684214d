/* conv_direct_dw.c: direct gradient of the weights on channel-blocked maps.
 *
 * Every (output block, input block, tap) is a 16 x 16 sum of outer products over all pixel pairs of the
 * batch. Threads own such blocks, so nothing is reduced between threads and the result does not depend on
 * their number. Rows of the maps are taken in chunks that stay in the second-level cache while all blocks of
 * a thread pass over them; a tap's pixel pairs in a row are one run of consecutive pixels, padding excluded.
 */
#include "backend/cpu/conv_direct.h"

#include "base/parallel.h"

#define CHUNK_BYTES (384 * 1024)
#define CHUNK_RUNS  4096

typedef struct dw_job {
    const lsi_conv_problem *p;
    const lsi_conv_args *a;
    const lsi_conv_kernels *k;
    int64_t ib, ob, taps;
    int64_t chunk_rows;  /* rows of y per chunk */
    float *acc;          /* [output block][input block][tap][16 ci][16 co] */
    lsi_gemm_run *runs;  /* per thread: [tap][chunk_rows] */
    int64_t *n_runs;     /* per thread: [tap] */
    unsigned char *used; /* by tap: whether any pixel pair meets in it */
} dw_job;

static void job_init(dw_job *j, const lsi_conv_problem *p)
{
    const int64_t row = (p->wi * p->ci * lsi_min64(p->sh, p->kh) + p->wo * p->co) * (int64_t)sizeof(float);

    memset(j, 0, sizeof *j);
    j->p = p;
    j->k = lsi_conv_kernels_get();
    j->ib = p->ci / LSI_LINE;
    j->ob = p->co / LSI_LINE;
    j->taps = (int64_t)p->kh * p->kw;
    j->chunk_rows = lsi_min64(CHUNK_BYTES / row, CHUNK_RUNS / j->taps);
    j->chunk_rows = lsi_max64(1, lsi_min64(j->chunk_rows, p->n * p->ho));
}

static void job_take(dw_job *j, lsi_bump *b)
{
    const int64_t threads = j->p->threads;

    j->acc = lsi_bump_take(b, sizeof(float) * (size_t)(j->ob * j->ib * j->taps * LSI_BLOCK));
    j->runs = lsi_bump_take(b, sizeof(lsi_gemm_run) * (size_t)(threads * j->taps * j->chunk_rows));
    j->n_runs = lsi_bump_take(b, sizeof(int64_t) * (size_t)(threads * j->taps));
    j->used = lsi_bump_take(b, (size_t)j->taps);
}

size_t lsi_direct_dw_scratch(const lsi_conv_problem *p)
{
    dw_job j;
    lsi_bump b = {0};

    job_init(&j, p);
    job_take(&j, &b);
    return b.used;
}

/* The runs of one tap in rows r0..r1-1, counted through the batch; offsets are those of channel block 0. */
static int64_t list_runs(const dw_job *j, int64_t ky, int64_t kx, int64_t r0, int64_t r1, lsi_gemm_run *runs)
{
    const lsi_conv_problem *p = j->p;
    const int64_t shift = kx * p->dw - p->pl;
    const int64_t ox0 = lsi_max64(0, lsi_div_ceil(-shift, p->sw));
    const int64_t ox1 = lsi_min64(p->wo, lsi_div_floor(p->wi - 1 - shift, p->sw) + 1);
    int64_t n = 0;

    if (ox1 <= ox0) return 0;
    for (int64_t r = r0; r < r1; r++) {
        const int64_t image = r / p->ho, oy = r % p->ho;
        const int64_t iy = oy * p->sh + ky * p->dh - p->pt;
        if (iy < 0 || iy >= p->hi) continue;
        runs[n++] = (lsi_gemm_run){
            .a_off = ((image * j->ib * p->hi + iy) * p->wi + ox0 * p->sw + shift) * LSI_LINE,
            .b_off = ((image * j->ob * p->ho + oy) * p->wo + ox0) * LSI_LINE,
            .len = ox1 - ox0,
        };
    }
    return n;
}

static void sum_region(int thread, int n_threads, void *arg)
{
    const dw_job *j = arg;
    const lsi_conv_problem *p = j->p;
    const int64_t rows = p->n * p->ho;
    lsi_gemm_run *runs = j->runs + thread * j->taps * j->chunk_rows;
    int64_t *n_runs = j->n_runs + thread * j->taps;
    int64_t lo, hi;

    ls_parallel_range(j->ob * j->ib * j->taps, thread, n_threads, &lo, &hi);
    for (int64_t u = lo; u < hi; u++)
        if (j->used[u % j->taps]) memset(j->acc + u * LSI_BLOCK, 0, sizeof(float) * LSI_BLOCK);
    for (int64_t r0 = 0; r0 < rows; r0 += j->chunk_rows) {
        const int64_t r1 = lsi_min64(rows, r0 + j->chunk_rows);
        for (int64_t t = 0; t < j->taps; t++)
            n_runs[t] = list_runs(j, t / p->kw, t % p->kw, r0, r1, runs + t * j->chunk_rows);
        for (int64_t u = lo; u < hi; u++) {
            const int64_t t = u % j->taps, i = u / j->taps % j->ib, o = u / j->taps / j->ib;
            if (n_runs[t] == 0) continue;
            j->k->gemm_outer(j->a->x + i * p->hi * p->wi * LSI_LINE, p->sw * LSI_LINE,
                             j->a->y + o * p->ho * p->wo * LSI_LINE, runs + t * j->chunk_rows, n_runs[t],
                             j->acc + u * LSI_BLOCK);
        }
    }
}

static void reorder_region(int thread, int n_threads, void *arg)
{
    const dw_job *j = arg;
    const lsi_dw_block b = {.dw = j->a->w, .ci = j->p->ci, .taps = j->taps, .used = j->used};
    int64_t lo, hi;

    ls_parallel_range(j->ob * j->ib, thread, n_threads, &lo, &hi);
    for (int64_t u = lo; u < hi; u++)
        lsi_weights_from_blocks(j->k, j->acc + u * j->taps * LSI_BLOCK, LSI_BLOCK, &b, u / j->ib, u % j->ib);
}

/* Some position o of n_out reads inside 0..n_in-1 with tap k. */
static bool tap_meets(int64_t k, int64_t stride, int64_t dil, int64_t pad, int64_t n_in, int64_t n_out)
{
    const int64_t shift = k * dil - pad;

    return lsi_max64(0, lsi_div_ceil(-shift, stride)) <=
           lsi_min64(n_out - 1, lsi_div_floor(n_in - 1 - shift, stride));
}

static void find_used_taps(dw_job *j)
{
    const lsi_conv_problem *p = j->p;

    for (int64_t t = 0; t < j->taps; t++)
        j->used[t] = p->n > 0 && tap_meets(t / p->kw, p->sh, p->dh, p->pt, p->hi, p->ho) &&
                     tap_meets(t % p->kw, p->sw, p->dw, p->pl, p->wi, p->wo);
}

void lsi_direct_dw_run(const lsi_conv_problem *p, const lsi_conv_args *a)
{
    dw_job j;
    lsi_bump b = {.base = a->scratch};

    job_init(&j, p);
    job_take(&j, &b);
    j.a = a;
    find_used_taps(&j);
    ls_parallel_run(p->threads, sum_region, &j);
    ls_parallel_run(p->threads, reorder_region, &j);
}
