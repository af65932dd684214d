/* slim_impls.c: products with few rows on a GPU (backend/cuda/module/slim.cu): checked against sums on the
 * host, and timed beside the library's best way, with the gap to the next kernel: a row's time is that of a
 * graph of many, one after the other, divided by their number.  The last column is the same graph with
 * kernels that begin early (LOCKSTEP_CUDA_EARLY, docs/gpu.md).
 *
 * usage: bench_slim     exit code 1 when a result is wrong, 77 without a GPU. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/cuda/cuda.h"

enum { REPEATS = 50, ROUNDS = 5 };

static const lsi_cuda_api *api;
static lsi_cuda_stream stream;
static int failures;

static void need(int code, const char *what)
{
    if (code == 0) return;
    printf("%s: %s\n", what, api->error(code));
    exit(1);
}

static void *room(size_t bytes)
{
    void *p;

    need(api->alloc(&p, bytes + 64), "memory");
    return p;
}

static float value_at(uint32_t seed, int64_t i)
{
    uint32_t x = ((uint32_t)i + seed * 7919u) * 2654435761u;

    x ^= x >> 15;
    x *= 0x85ebca6bu;
    return ls_bf16_to_f32(ls_bf16_from_f32((float)((x ^ x >> 13) & 0xffff) / 32768.0f - 1.0f));
}

static void *numbers(uint32_t seed, int64_t n)
{
    uint16_t *host = malloc((size_t)n * 2);
    void *p = room((size_t)n * 2);

    if (host == NULL) exit(1);
    for (int64_t i = 0; i < n; i++) host[i] = ls_bf16_from_f32(value_at(seed, i));
    need(api->copy(p, host, (size_t)n * 2, stream), "copy");
    need(api->stream_sync(stream), "copy");
    free(host);
    return p;
}

/* -- the two ways -----------------------------------------------------------------------------------------
 */

enum { A = 1, B, BIAS };

typedef struct product {
    lsi_cuda_slim_args slim;
    lsi_cuda_library *library;
    int way;
    void *operand[4], *workspace;
} product;

static int run_slim(product *p)
{
    return api->launch.slim(stream, &p->slim);
}

static int run_library(product *p)
{
    return api->run(p->library, p->way, p->operand, p->workspace, stream);
}

/* Microseconds of one of many in a graph, the best of some rounds; a negative number where it cannot be. */
static double time_of(int (*run)(product *), product *p, bool early)
{
    lsi_cuda_event from, to;
    lsi_cuda_graph_about edges;
    lsi_cuda_graph *graph = NULL;
    double best = INFINITY;

    if (run(p) != 0 || api->stream_sync(stream) != 0) return -1;
    need(api->capture(stream), "capture");
    for (int i = 0; i < REPEATS; i++) (void)run(p);
    if (api->captured(stream, &(lsi_cuda_graph_rules){.early = early}, &graph, &edges) != 0 || graph == NULL)
        return -1;
    need(api->event_create(&from, true), "event");
    need(api->event_create(&to, true), "event");
    for (int i = 0; i <= ROUNDS; i++) { /* the first warms it up */
        float ms = 0;
        need(api->event_record(from, stream), "event");
        need(api->graph_launch(graph, NULL, NULL, stream), "graph");
        need(api->event_record(to, stream), "event");
        need(api->stream_sync(stream), "graph");
        need(api->event_elapsed(from, to, &ms), "event");
        if (i > 0 && (double)ms * 1000 / REPEATS < best) best = (double)ms * 1000 / REPEATS;
    }
    api->event_destroy(from);
    api->event_destroy(to);
    api->graph_destroy(graph);
    return best;
}

static double best_of_library(product *p)
{
    const int ways = api->ways(p->library);
    double best = INFINITY;

    for (p->way = 0; p->way < ways; p->way++) {
        size_t workspace = 0;
        double us;
        if (api->prepare(p->library, p->way, &workspace) != 0) continue;
        p->workspace = room(workspace);
        us = time_of(run_library, p, false);
        if (us > 0 && us < best) best = us;
        api->free(p->workspace);
    }
    return best;
}

/* -- right or wrong ---------------------------------------------------------------------------------------
 */

static double want(const lsi_cuda_slim_args *a, int64_t i, int64_t j, double *size)
{
    double sum = 0;

    *size = 0;
    for (int64_t q = 0; q < a->k; q++) {
        const double x = (double)value_at(A, a->trans_a ? q * a->m + i : i * a->k + q);
        const double term = x * (double)value_at(B, a->trans_b ? j * a->k + q : q * a->n + j);
        sum += term;
        *size += fabs(term);
    }
    if (a->bias != NULL) sum += (double)value_at(BIAS, j);
    return a->act == LS_ACT_RELU && sum < 0 ? 0 : sum;
}

/* The largest error as a part of what is allowed, over all elements or 4096 of them; the result began as NaN,
 * and so did what lies behind it. */
static double error_of(const lsi_cuda_slim_args *a)
{
    const int64_t count = a->m * a->n, samples = count < 4096 ? count : 4096;
    const size_t size = ls_dtype_size(a->out);
    void *host = malloc((size_t)(count + 8) * size);
    lsi_cuda_fill_args nan = {.out = a->c, .dtype = a->out, .count = count + 8, .value = NAN};
    double worst = 0;

    if (host == NULL) exit(1);
    need(api->launch.fill(stream, &nan), "fill");
    need(api->launch.slim(stream, a), "slim");
    need(api->copy(host, a->c, (size_t)(count + 8) * size, stream), "copy");
    need(api->stream_sync(stream), "slim");
    for (int64_t s = 0; s < count + 8; s++) {
        const float v = a->out == LS_F32 ? ((float *)host)[s] : ls_bf16_to_f32(((uint16_t *)host)[s]);
        if (isnan(v) != (s >= count)) worst = INFINITY; /* not written, or written beyond the end */
    }
    for (int64_t s = 0; s < samples; s++) {
        const int64_t at = samples == count ? s : (s * 7919 + s * s * 31) % count;
        const float v = a->out == LS_F32 ? ((float *)host)[at] : ls_bf16_to_f32(((uint16_t *)host)[at]);
        double terms;
        const double w = want(a, at / a->n, at % a->n, &terms);
        const double allowed = 1e-6 * terms + 1e-6 + (a->out == LS_F32 ? 0 : fabs(w) / 256);
        const double e = fabs((double)v - w) / allowed;
        if (!(e <= worst)) worst = e;
    }
    free(host);
    return worst;
}

/* -- the table --------------------------------------------------------------------------------------------
 */

typedef struct row {
    int64_t m, n, k;
    char form; /* 'f': a layer with bias and ReLU; 'x': its data gradient; 'w': its weights', in fp32 */
} row;

static void bench(const row *r)
{
    product p = {.slim = {.m = r->m,
                          .n = r->n,
                          .k = r->k,
                          .trans_a = r->form == 'w',
                          .trans_b = r->form == 'f',
                          .dtype = LS_BF16,
                          .out = r->form == 'w' ? LS_F32 : LS_BF16,
                          .act = r->form == 'f' ? LS_ACT_RELU : LS_ACT_NONE}};
    const lsi_cuda_product problem = {.m = r->m,
                                      .n = r->n,
                                      .k = r->k,
                                      .batch = 1,
                                      .lda = p.slim.trans_a ? r->m : r->k,
                                      .ldb = p.slim.trans_b ? r->k : r->n,
                                      .ldc = r->n,
                                      .trans_a = p.slim.trans_a,
                                      .trans_b = p.slim.trans_b,
                                      .dtype = LS_BF16,
                                      .out = p.slim.out,
                                      .epilogue = r->form == 'f' ? LSI_CUDA_BIAS_RELU : LSI_CUDA_NOTHING};
    double library = INFINITY, e;

    p.slim.a = p.operand[0] = numbers(A, r->m * r->k);
    p.slim.b = p.operand[1] = numbers(B, r->k * r->n);
    p.slim.c = p.operand[2] = room((size_t)(r->m * r->n + 8) * 4);
    p.operand[3] = numbers(BIAS, r->n);
    if (r->form == 'f') p.slim.bias = p.operand[3];
    e = error_of(&p.slim);
    if (!(e <= 1)) failures++;
    if (api->product(&p.library, &problem) == 0) {
        library = best_of_library(&p);
        api->drop(p.library);
    }
    printf("%c %5lld x %5lld over %5lld  library %7.2f  slim %7.2f  early %7.2f us  error %.2f%s\n", r->form,
           (long long)r->m, (long long)r->n, (long long)r->k, library, time_of(run_slim, &p, false),
           time_of(run_slim, &p, true), e, e <= 1 ? "" : "  WRONG");
    fflush(stdout);
    for (int i = 0; i < 4; i++) api->free(p.operand[i]);
}

int main(void)
{
    static const row rows[] = {
        {32, 512, 64, 'f'},   {32, 512, 512, 'f'},    {32, 128, 512, 'f'},    {32, 64, 128, 'f'},
        {32, 1, 64, 'f'},     {32, 1024, 512, 'f'},   {32, 10125, 1024, 'f'}, {48, 10, 512, 'f'},
        {128, 512, 512, 'f'}, {32, 512, 512, 'x'},    {32, 512, 128, 'x'},    {32, 128, 64, 'x'},
        {32, 64, 512, 'x'},   {32, 64, 1, 'x'},       {32, 512, 1024, 'x'},   {128, 512, 512, 'x'},
        {512, 512, 32, 'w'},  {128, 512, 32, 'w'},    {64, 128, 32, 'w'},     {1024, 512, 32, 'w'},
        {1, 64, 32, 'w'},     {10125, 1024, 32, 'w'}, {512, 512, 128, 'w'},   {7, 13, 17, 'f'},
        {33, 19, 65, 'x'},    {35, 18, 21, 'w'}};
    ls_err err = {0};
    lsi_cuda_about about;
    int devices = 0;

    if (lsi_cuda_load(&api, &err) != LS_OK || api->count(&devices) != 0 || devices == 0) {
        printf("no GPU: %s\n", err.text);
        return 77;
    }
    need(api->use(0, &about), "device");
    need(api->stream_create(&stream), "stream");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) bench(&rows[i]);
    printf("%d wrong\n", failures);
    return failures > 0;
}
