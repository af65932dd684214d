/* cuda_gemm_impls.c: products of our own for compute capability 9.0, with what follows them, checked and
 * timed against cuBLASLt's and passes of their own.
 *
 * usage: bench_cuda_gemm [check|time] [PART]     PART: of a problem's name; exit code 1 when a result is
 * wrong, 77 without such a GPU.
 *
 * The library's product is compared with sums in double at places all over it, ours with the library's
 * everywhere; what follows is computed in double on the host. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/chain.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/groups.h"

enum { GUARD = 4096 /* bytes behind a result, that nobody may write */, SAMPLES = 4096 };

static const lsi_cuda_api *api;
static lsi_cuda_device device;
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

    need(api->alloc(&p, bytes + GUARD), "memory");
    return p;
}

/* What is not written is NaN, all over, and behind the end. */
static void poison(void *p, size_t bytes)
{
    need(api->launch.fill(stream, &(lsi_cuda_fill_args){.out = p,
                                                        .dtype = LS_BF16,
                                                        .count = (int64_t)((bytes + GUARD) / 2),
                                                        .value = NAN}),
         "fill");
}

static lsi_cuda_chain_args chain(int pw, int64_t count, int n_in, double factor)
{
    lsi_cuda_chain_args a = {.dtype = LS_BF16, .n_in = n_in, .count = count, .vector = 8};

    a.chain = (ls_pointwise_attr){.n_steps = 1};
    a.chain.step[0].pw = pw;
    a.chain.step[0].b = n_in - 1;
    a.chain.step[0].p[0] = factor;
    a.compiled = count % 8 == 0 ? lsi_cuda_chain_kernel(&device, &a) : NULL;
    return a;
}

/* Numbers between -factor and factor that look random; the factor is a power of 2. */
static void *numbers(unsigned key, int64_t count, double factor)
{
    lsi_cuda_chain_args scale = chain(LS_PW_AFFINE, count, 1, factor);
    void *p = room((size_t)count * 2);

    need(api->launch.noise(stream, &(lsi_cuda_noise_args){p, LS_BF16, count, key}), "noise");
    scale.out = p;
    scale.in[0] = p;
    need(api->launch.chain(stream, &scale), "scale");
    return p;
}

static void *to_host(const void *from, size_t bytes)
{
    void *p = malloc(bytes + GUARD);

    if (p == NULL) exit(1);
    need(api->copy(p, from, bytes + GUARD, stream), "copy");
    need(api->stream_sync(stream), "copy");
    return p;
}

/* Microseconds of one call. */
static double time_of(int (*call)(void *), void *arg)
{
    lsi_cuda_event from, to;
    float ms = 0;
    const int repeats = 20;

    for (int i = 0; i < 3; i++) need(call(arg), "launch");
    need(api->event_create(&from, true), "event");
    need(api->event_create(&to, true), "event");
    need(api->event_record(from, stream), "event");
    for (int i = 0; i < repeats; i++) need(call(arg), "launch");
    need(api->event_record(to, stream), "event");
    need(api->stream_sync(stream), "kernel");
    need(api->event_elapsed(from, to, &ms), "event");
    api->event_destroy(from);
    api->event_destroy(to);
    return (double)ms * 1000 / repeats;
}

/* -- one problem ------------------------------------------------------------------------------------------
 */

typedef struct problem {
    const char *name;
    int64_t m, n, k;
    bool trans_a, trans_b;
    lsi_gemm_after after;
    bool biased;
} problem;

/* A problem with its operands, by the library and passes of their own, and by ours. */
typedef struct run {
    problem p;
    void *a, *b, *bias, *more;
    void *c, *y, *sums, *want; /* results of ours; the library's product */
    lsi_cuda_gemm_args ours;
    lsi_cuda_library *library;
    int way;
    void *workspace;
    lsi_cuda_chain_args gelu, gelu_grad;
    lsi_cuda_sum_args sum;
} run;

static int run_library(void *arg)
{
    run *r = arg;

    return api->run(r->library, r->way, (void *[]){r->a, r->b, r->want, r->bias, r->more}, r->workspace,
                    stream);
}

/* The product, and what follows it. */
static int run_passes(void *arg)
{
    run *r = arg;
    int code = run_library(r);

    if (code == 0 && r->p.after == LSI_GEMM_GELU) code = api->launch.chain(stream, &r->gelu);
    if (code == 0 && r->p.after == LSI_GEMM_GELU_GRAD) code = api->launch.chain(stream, &r->gelu_grad);
    if (code == 0 && r->p.after == LSI_GEMM_GELU_GRAD) code = api->launch.sum(stream, &r->sum);
    return code;
}

static int run_ours(void *arg)
{
    return api->launch.gemm(stream, &((run *)arg)->ours);
}

/* The fastest of the library's ways. */
static double choose_way(run *r)
{
    double best = INFINITY;
    size_t bytes;
    int at = -1;

    for (r->way = 0; r->way < api->ways(r->library); r->way++) {
        if (api->prepare(r->library, r->way, &bytes) != 0) continue;
        const double us = time_of(run_library, r);
        if (us < best) {
            best = us;
            at = r->way;
        }
    }
    if (at < 0) need(1, "no way of the library's works");
    r->way = at;
    need(api->prepare(r->library, at, &bytes), "prepare");
    return best;
}

static void make_library(run *r)
{
    const problem *p = &r->p;
    const bool adds = p->after == LSI_GEMM_ADD;
    const lsi_cuda_product product = {.m = p->m,
                                      .n = p->n,
                                      .k = p->k,
                                      .batch = 1,
                                      .lda = p->trans_a ? p->m : p->k,
                                      .ldb = p->trans_b ? p->k : p->n,
                                      .ldc = p->n,
                                      .trans_a = p->trans_a,
                                      .trans_b = p->trans_b,
                                      .dtype = LS_BF16,
                                      .out = LS_BF16,
                                      .epilogue = p->biased ? LSI_CUDA_BIAS : LSI_CUDA_NOTHING,
                                      .adds = adds};

    need(api->product(&r->library, &product), "product");
    r->workspace = room((size_t)64 << 20);
}

static void make_passes(run *r)
{
    const int64_t count = r->p.m * r->p.n;
    lsi_cuda_groups g = {.columns = true, .outer = 1, .groups = r->p.n, .inner = r->p.m, .splits = 1};

    r->gelu = chain(LS_PW_GELU, count, 1, 0);
    r->gelu.in[0] = r->want;
    r->gelu.out = r->y;
    r->gelu_grad = chain(LS_PW_GELU_GRAD, count, 2, 0);
    r->gelu_grad.in[0] = r->want;
    r->gelu_grad.in[1] = r->more;
    r->gelu_grad.out = r->y;
    lsi_cuda_groups_split(&device, LS_BF16, &g);
    need(lsi_cuda_tickets(&device, lsi_cuda_groups_tickets(&g, LS_BF16), &g.tickets, NULL), "tickets");
    g.partial = room(lsi_cuda_groups_scratch(&g, 1));
    r->sum = (lsi_cuda_sum_args){LS_BF16, g, r->y, r->sums};
}

static void begin(run *r, const problem *p)
{
    const size_t bytes = (size_t)(p->m * p->n) * 2;

    *r = (run){.p = *p};
    r->a = numbers(1, p->m * p->k, 1);
    r->b = numbers(2, p->k * p->n, p->k > 10000 ? 0x1p-6 : 0x1p-3);
    r->bias = numbers(3, p->n, 1);
    r->more = numbers(4, p->m * p->n, 4);
    r->c = room(bytes);
    r->y = room(bytes);
    r->want = room(bytes);
    r->sums = room((size_t)p->n * 4);
    r->ours = (lsi_cuda_gemm_args){.m = p->m,
                                   .n = p->n,
                                   .k = p->k,
                                   .trans_a = p->trans_a,
                                   .trans_b = p->trans_b,
                                   .after = p->after,
                                   .a = r->a,
                                   .b = r->b,
                                   .bias = p->biased ? r->bias : NULL,
                                   .more = r->more,
                                   .c = r->c,
                                   .y = r->y,
                                   .partial = room((size_t)(LSI_GEMM_PARTIAL(p->m) * p->n) * sizeof(float)),
                                   .sums = r->sums,
                                   .sums_dtype = LS_F32};
    make_library(r);
    make_passes(r);
}

static void end(run *r)
{
    void *all[] = {r->a,
                   r->b,
                   r->bias,
                   r->more,
                   r->c,
                   r->y,
                   r->want,
                   r->sums,
                   r->ours.partial,
                   r->workspace,
                   r->sum.groups.partial};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) api->free(all[i]);
    lsi_cuda_tickets_free(&device, r->sum.groups.tickets);
    api->drop(r->library);
}

/* -- checking ---------------------------------------------------------------------------------------------
 */

static double phi(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752);
}

static double gelu_slope(double x)
{
    return phi(x) + x * exp(-0.5 * x * x) * 0.39894228040143268;
}

/* Whether the library's product is what it should be: a convolution of 1 x 1 over m pixels, which is what the
 * probe knows (launch/probe.h). */
static bool library_is_right(run *r)
{
    const problem *p = &r->p;
    const lsi_cuda_conv c = {.pass = LSI_CUDA_CONV_Y,
                             .dtype = LS_BF16,
                             .x = {1, p->k, p->m, 1},
                             .x_stride = {0, p->trans_a ? p->m : 1, p->trans_a ? 1 : p->k, 0},
                             .w = {p->n, p->k, 1, 1},
                             .w_stride = {p->trans_b ? p->k : 1, p->trans_b ? 1 : p->n, 0, 0},
                             .y = {1, p->n, p->m, 1},
                             .y_stride = {0, 1, p->n, 0},
                             .stride = {1, 1},
                             .dilation = {1, 1},
                             .epilogue = p->biased ? LSI_CUDA_BIAS : LSI_CUDA_NOTHING};
    lsi_cuda_probed *out = room(sizeof *out * SAMPLES), *at;
    int wrong = 0;

    if (p->after == LSI_GEMM_ADD) return true; /* the probe adds nothing: two sums have to agree instead */
    poison(r->want, (size_t)(p->m * p->n) * 2);
    need(run_library(r), "library");
    need(api->launch.probe(stream, &(lsi_cuda_probe_args){.conv = c,
                                                          .x = r->a,
                                                          .w = r->b,
                                                          .y = r->want,
                                                          .bias = r->bias,
                                                          .out = out,
                                                          .samples = SAMPLES}),
         "probe");
    at = to_host(out, sizeof *out * SAMPLES);
    for (int i = 0; i < SAMPLES; i++)
        wrong += !(fabs(at[i].found - at[i].sum) <= 2e-5 * at[i].magnitude + 0x1p-7 * fabs(at[i].sum) + 1e-6);
    free(at);
    api->free(out);
    return wrong == 0;
}

typedef struct found {
    int64_t wrong, first;
    double is, should;
} found;

static void compare(found *f, int64_t at, double is, double should, double allowed)
{
    if (fabs(is - should) <= allowed) return;
    if (f->wrong++ > 0) return;
    f->first = at;
    f->is = is;
    f->should = should;
}

static bool guarded(const void *host, size_t bytes)
{
    const uint16_t *behind = (const uint16_t *)((const char *)host + bytes);

    for (int i = 0; i < GUARD / 2; i++)
        if (!isnan(ls_bf16_to_f32(behind[i]))) return false;
    return true;
}

static void compare_columns(found *f, const run *r, const uint16_t *c)
{
    const problem *p = &r->p;
    const float *sums = to_host(r->sums, (size_t)p->n * 4);

    for (int64_t n = 0; n < p->n; n++) {
        double sum = 0, squares = 0;
        for (int64_t m = 0; m < p->m; m++) {
            const double x = (double)ls_bf16_to_f32(c[m * p->n + n]);
            sum += x;
            squares += x * x;
        }
        compare(f, n, (double)sums[n], sum, 0x1p-9 * (fabs(sum) + 4 * sqrt(squares)) + 1e-5);
    }
    free((void *)sums);
}

/* Every element of the result, of what follows every so many. */
static void compare_all(found *f, const run *r, const uint16_t *c, const uint16_t *y, const uint16_t *want)
{
    const problem *p = &r->p;
    const int64_t count = p->m * p->n, step = count > 10000000 ? 13 : 1;
    const uint16_t *z = to_host(r->more, (size_t)count * 2);

    for (int64_t i = 0; i < count; i++) {
        const double is = (double)ls_bf16_to_f32(c[i]);
        double should = (double)ls_bf16_to_f32(want[i]), more = 2e-3;
        if (p->after == LSI_GEMM_GELU_GRAD && i % step != 0 && !isnan(is)) continue;
        if (p->after == LSI_GEMM_GELU_GRAD) should *= gelu_slope((double)ls_bf16_to_f32(z[i]));
        compare(f, i, is, should, 0x1p-7 * fabs(should) + more);
    }
    for (int64_t i = 0; p->after == LSI_GEMM_GELU && i < count; i += step) {
        const double x = (double)ls_bf16_to_f32(c[i]), should = x * phi(x);
        compare(f, i, (double)ls_bf16_to_f32(y[i]), should, 0x1p-8 * fabs(should) + 1e-6);
    }
    free((void *)z);
}

/* One of our ways: right everywhere, nothing behind the end, and the same bits again. */
static bool check_way(run *r, const uint16_t *want)
{
    const size_t bytes = (size_t)(r->p.m * r->p.n) * 2;
    found f = {0};
    uint16_t *c, *y, *again;
    bool kept, same;

    poison(r->c, bytes);
    poison(r->y, bytes);
    need(run_ours(r), "gemm");
    c = to_host(r->c, bytes);
    y = to_host(r->y, bytes);
    compare_all(&f, r, c, y, want);
    if (r->p.after == LSI_GEMM_GELU_GRAD) compare_columns(&f, r, c);
    kept = guarded(c, bytes) && guarded(y, bytes);
    poison(r->c, bytes);
    need(run_ours(r), "gemm");
    again = to_host(r->c, bytes);
    same = memcmp(c, again, bytes) == 0;
    if (f.wrong > 0 || !kept || !same) {
        printf("  way %d WRONG: %lld elements, first at row %lld column %lld: %g for %g%s%s\n", r->ours.way,
               (long long)f.wrong, (long long)(f.first / r->p.n), (long long)(f.first % r->p.n), f.is,
               f.should, kept ? "" : ", writes behind the end", same ? "" : ", other bits again");
        failures++;
    }
    free(c);
    free(y);
    free(again);
    return f.wrong == 0 && kept && same;
}

static void check(const problem *p)
{
    uint16_t *want;
    int right = 0;
    run r;

    begin(&r, p);
    size_t bytes;
    need(api->prepare(r.library, 0, &bytes), "prepare");
    if (!library_is_right(&r)) {
        printf("%s: the library is WRONG\n", p->name);
        failures++;
    }
    need(run_library(&r), "library");
    want = to_host(r.want, (size_t)(p->m * p->n) * 2);
    for (r.ours.way = 0; r.ours.way < LSI_GEMM_WAYS; r.ours.way++) right += check_way(&r, want);
    printf("check %-28s m%lld n%lld k%lld: %d of %d ways right\n", p->name, (long long)p->m, (long long)p->n,
           (long long)p->k, right, LSI_GEMM_WAYS);
    fflush(stdout);
    free(want);
    end(&r);
}

/* -- timing -----------------------------------------------------------------------------------------------
 */

static void time_all(const problem *p)
{
    const double flops = 2.0 * (double)p->m * (double)p->n * (double)p->k;
    double best[LSI_GEMM_WAYS + 1];
    run r;

    begin(&r, p);
    const double alone = choose_way(&r);
    for (int i = 0; i <= LSI_GEMM_WAYS; i++) best[i] = INFINITY;
    for (int round = 0; round < 3; round++) {
        best[LSI_GEMM_WAYS] = fmin(best[LSI_GEMM_WAYS], time_of(run_passes, &r));
        for (int i = 0; i < LSI_GEMM_WAYS; i++) {
            r.ours.way = i;
            best[i] = fmin(best[i], time_of(run_ours, &r));
        }
    }
    printf("time  %-28s m%-6lld n%-5lld k%-6lld library %7.1f us (%3.0f TFLOP/s), with passes %7.1f; ours",
           p->name, (long long)p->m, (long long)p->n, (long long)p->k, alone, flops / alone / 1e6,
           best[LSI_GEMM_WAYS]);
    for (int i = 0; i < LSI_GEMM_WAYS; i++) printf(" %7.1f (%3.0f)", best[i], flops / best[i] / 1e6);
    printf("\n");
    fflush(stdout);
    end(&r);
}

static const problem small[] = {
    {"one tile, nt", 128, 256, 64, false, true, LSI_GEMM_BIAS, false},
    {"one tile, nn", 128, 256, 64, false, false, LSI_GEMM_BIAS, false},
    {"one tile, tn", 128, 256, 64, true, false, LSI_GEMM_BIAS, false},
    {"less than a tile, nt", 5, 8, 8, false, true, LSI_GEMM_BIAS, true},
    {"odd, nt, bias", 333, 456, 136, false, true, LSI_GEMM_BIAS, true},
    {"odd, nn", 333, 456, 136, false, false, LSI_GEMM_BIAS, false},
    {"odd, tn", 328, 456, 136, true, false, LSI_GEMM_BIAS, false},
    {"odd, add", 333, 456, 136, false, true, LSI_GEMM_ADD, true},
    {"odd, gelu", 333, 456, 136, false, true, LSI_GEMM_GELU, true},
    {"odd, gelu_grad", 333, 456, 136, false, false, LSI_GEMM_GELU_GRAD, false},
    {"more tiles, nt", 5000, 1536, 192, false, true, LSI_GEMM_BIAS, true},
    {"more tiles, add", 5000, 1536, 192, false, true, LSI_GEMM_ADD, true},
    {"more tiles, gelu", 5000, 1536, 192, false, true, LSI_GEMM_GELU, true},
    {"more tiles, gelu_grad", 5000, 1536, 192, false, false, LSI_GEMM_GELU_GRAD, false},
};

/* Of ViT-B/16, for so many rows. */
static void vit(int64_t m, void (*look)(const problem *), const char *part)
{
    const problem list[] = {
        {"fc1 gelu", m, 3072, 768, false, true, LSI_GEMM_GELU, true},
        {"fc2 dx gelu_grad", m, 3072, 768, false, false, LSI_GEMM_GELU_GRAD, false},
        {"fc2 bias add", m, 768, 3072, false, true, LSI_GEMM_ADD, true},
        {"fc1 dx", m, 768, 3072, false, false, LSI_GEMM_BIAS, false},
        {"qkv bias", m, 2304, 768, false, true, LSI_GEMM_BIAS, true},
        {"qkv dx", m, 768, 2304, false, false, LSI_GEMM_BIAS, false},
        {"proj bias add", m, 768, 768, false, true, LSI_GEMM_ADD, true},
        {"proj dx", m, 768, 768, false, false, LSI_GEMM_BIAS, false},
        {"fc1 plain", m, 3072, 768, false, true, LSI_GEMM_BIAS, false},
        {"fc1 bias", m, 3072, 768, false, true, LSI_GEMM_BIAS, true},
        {"fc1 dw", 3072, 768, m, true, false, LSI_GEMM_BIAS, false},
        {"fc2 dw", 768, 3072, m, true, false, LSI_GEMM_BIAS, false},
    };

    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (strstr(list[i].name, part) != NULL) look(&list[i]);
}

int main(int argc, char **argv)
{
    const bool checks = argc < 2 || strcmp(argv[1], "check") == 0,
               times = argc < 2 || strcmp(argv[1], "time") == 0;
    const char *part = argc > 2 ? argv[2] : "";
    ls_err err = {0};
    int count = 0;

    if (lsi_cuda_load(&api, &err) != LS_OK || api->count(&count) != 0 || count == 0) {
        printf("no GPU: %s\n", err.text);
        return 77;
    }
    need(api->use(0, &device.about), "device");
    if (device.about.major != 9 || device.about.minor != 0) {
        printf("%s has no compute capability 9.0\n", device.about.name);
        return 77;
    }
    device.api = api;
    need(api->stream_create(&stream), "stream");
    device.now = device.stream[LS_QUEUE_COMPUTE] = stream;
    printf("%s; ways: 256 columns shared by two, 192 shared by two, 256 alone, 192 alone\n",
           device.about.name);
    for (size_t i = 0; checks && i < sizeof small / sizeof small[0]; i++)
        if (strstr(small[i].name, part) != NULL) check(&small[i]);
    if (checks) vit(96 * 197, check, part);
    if (times) vit(256 * 197, time_all, part);
    if (times) vit(96 * 197, time_all, part);
    return failures > 0;
}
