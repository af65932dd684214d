/* cuda_impls.c: kernels of the CUDA backend, checked and timed by themselves: convolutions with few channels
 * against sums on the host, and kernels that are bound by bytes in GB/s.
 *
 * usage: bench_cuda [few [NAME]|bytes]     NAME: a part of the problem's name; exit code 1 when a result is
 * wrong, 77 without a GPU. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/compiled.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/few_tiles.h"
#include "backend/cuda/groups.h"

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

    need(api->alloc(&p, bytes + 64), "memory");
    return p;
}

static uint32_t noise(uint32_t i)
{
    i *= 2654435761u;
    i ^= i >> 15;
    i *= 0x85ebca6bu;
    return i ^ i >> 13;
}

static float value_at(uint32_t seed, size_t i)
{
    const float x = (float)(noise((uint32_t)i + seed * 7919u) & 0xffff) / 32768.0f - 1.0f;

    return ls_bf16_to_f32(ls_bf16_from_f32(x));
}

/* n numbers on the device, of bf16 or f32, known on the host by value_at. */
static void *numbers_of(ls_dtype t, uint32_t seed, size_t n)
{
    const size_t size = ls_dtype_size(t);
    void *host = malloc(n * size), *p = room(n * size);

    if (host == NULL) exit(1);
    for (size_t i = 0; i < n; i++)
        if (t == LS_F32)
            ((float *)host)[i] = value_at(seed, i);
        else
            ((uint16_t *)host)[i] = ls_bf16_from_f32(value_at(seed, i));
    need(api->copy(p, host, n * size, stream), "copy");
    need(api->stream_sync(stream), "copy");
    free(host);
    return p;
}

static void *numbers(uint32_t seed, size_t n)
{
    return numbers_of(LS_BF16, seed, n);
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

/* -- few channels -----------------------------------------------------------------------------------------
 */

typedef struct problem {
    const char *name;
    lsi_cuda_few p;
} problem;

enum { FEW = 1, MANY, WEIGHT };

static size_t few_at(const lsi_cuda_few *p, int n, int y, int x, int f)
{
    return (((size_t)n * (size_t)p->h + (size_t)y) * (size_t)p->w + (size_t)x) * (size_t)p->f + (size_t)f;
}
static size_t many_at(const lsi_cuda_few *p, int n, int y, int x, int m)
{
    return (((size_t)n * (size_t)p->mh + (size_t)y) * (size_t)p->mw + (size_t)x) * (size_t)p->m + (size_t)m;
}
static size_t weight_at(const lsi_cuda_few *p, int m, int f, int ky, int kx)
{
    return (size_t)(p->w_first + m * p->w_m + f * p->w_f + ky * p->w_ky + kx * p->w_kx);
}

/* The product of one weight with what it meets at pixel (y, x) of the map with many channels; 0 outside. */
static double meets(const lsi_cuda_few *p, int n, int y, int x, int m, int f, int ky, int kx, int result)
{
    const int fy = y * p->stride + ky - p->top, fx = x * p->stride + kx - p->left;
    double v = 1;

    if (fy < 0 || fy >= p->h || fx < 0 || fx >= p->w || y < 0 || y >= p->mh || x < 0 || x >= p->mw) return 0;
    if (result != FEW) v *= (double)value_at(FEW, few_at(p, n, fy, fx, f));
    if (result != MANY) v *= (double)value_at(MANY, many_at(p, n, y, x, m));
    if (result != WEIGHT) v *= (double)value_at(WEIGHT, weight_at(p, m, f, ky, kx));
    return v;
}

static double want_many(const lsi_cuda_few *p, size_t at)
{
    const int m = (int)(at % (size_t)p->m), x = (int)(at / (size_t)p->m % (size_t)p->mw);
    const int y = (int)(at / (size_t)p->m / (size_t)p->mw % (size_t)p->mh),
              n = (int)(at / many_at(p, 1, 0, 0, 0));
    double sum = 0;

    for (int ky = 0; ky < p->kh; ky++)
        for (int kx = 0; kx < p->kw; kx++)
            for (int f = 0; f < p->f; f++) sum += meets(p, n, y, x, m, f, ky, kx, MANY);
    return sum;
}

static double want_few(const lsi_cuda_few *p, size_t at)
{
    const int f = (int)(at % (size_t)p->f), fx = (int)(at / (size_t)p->f % (size_t)p->w);
    const int fy = (int)(at / (size_t)p->f / (size_t)p->w % (size_t)p->h),
              n = (int)(at / few_at(p, 1, 0, 0, 0));
    double sum = 0;

    for (int ky = 0; ky < p->kh; ky++)
        for (int kx = 0; kx < p->kw; kx++) {
            const int y = fy + p->top - ky, x = fx + p->left - kx;
            if (y < 0 || x < 0 || y % p->stride != 0 || x % p->stride != 0) continue;
            for (int m = 0; m < p->m; m++)
                sum += meets(p, n, y / p->stride, x / p->stride, m, f, ky, kx, FEW);
        }
    return sum;
}

static double want_weight(const lsi_cuda_few *p, size_t at)
{
    const int f = (int)(at % (size_t)p->f), kx = (int)(at / (size_t)p->f % (size_t)p->kw);
    const int ky = (int)(at / (size_t)(p->f * p->kw) % (size_t)p->kh),
              m = (int)(at / (size_t)(p->f * p->kw * p->kh));
    double sum = 0;

    for (int n = 0; n < p->n; n++)
        for (int y = 0; y < p->mh; y++)
            for (int x = 0; x < p->mw; x++) sum += meets(p, n, y, x, m, f, ky, kx, WEIGHT);
    return sum;
}

typedef struct few_call {
    lsi_few_problem f;
    void *kernel;
    lsi_cuda_start start;
    lsi_few_arguments args;
    lsi_cuda_few_total_args total;
} few_call;

static int run_few(void *arg)
{
    few_call *c = arg;
    const int code = api->start(stream, c->kernel, &c->start, &c->args);

    return code != 0 || c->f.pass != LSI_FEW_WEIGHTS ? code : api->launch.few_total(stream, &c->total);
}

/* Relative error over a sample of the result, which began as NaN. */
static double error_of(const lsi_few_problem *f, const void *out, size_t count, int samples,
                       double (*want)(const lsi_cuda_few *, size_t))
{
    const size_t size = ls_dtype_size(f->dtype);
    void *host = malloc(count * size);
    double difference = 0, length = 0;

    if (host == NULL) exit(1);
    need(api->copy(host, out, count * size, stream), "copy");
    need(api->stream_sync(stream), "copy");
    for (size_t i = 0; i < count; i++) {
        const float v = f->dtype == LS_F32 ? ((float *)host)[i] : ls_bf16_to_f32(((uint16_t *)host)[i]);
        if (isnan(v)) difference = INFINITY; /* somebody did not write it */
    }
    for (int i = 0; i < samples; i++) {
        const size_t at = (size_t)noise((uint32_t)i + 17) % count;
        const float v = f->dtype == LS_F32 ? ((float *)host)[at] : ls_bf16_to_f32(((uint16_t *)host)[at]);
        const double w = want(&f->p, at), d = (double)v - w;
        difference += d * d;
        length += w * w;
    }
    free(host);
    return sqrt(difference / length);
}

/* One division of a problem: checked and timed. */
static void check_tile(const char *name, few_call *c, const lsi_few_tile *t, size_t count, double floor_us)
{
    static const char *const passes[] = {"to many", "from many", "weights"};
    const char *const kernel = "few";
    const bool weights = c->f.pass == LSI_FEW_WEIGHTS, large = floor_us > 5;
    const double allowed = c->f.dtype == LS_BF16 ? 6e-3 : 3e-4;
    void *out = room(count * ls_dtype_size(c->f.dtype)), *scratch = room(lsi_few_scratch(&c->f, t));
    lsi_cuda_fill_args nan = {.out = out, .dtype = c->f.dtype, .count = (int64_t)count, .value = NAN};
    ls_text source = {0};
    double e, us;

    lsi_few_source(&source, &c->f, t);
    if (source.failed || !lsi_cuda_compiled(&device, "few", source.data, 1, &kernel, &c->kernel)) exit(1);
    ls_text_release(&source);
    c->start = lsi_few_start(&c->f, t, device.about.processors);
    c->args.out = out;
    c->args.partial = scratch;
    c->total = (lsi_cuda_few_total_args){c->f.p, c->f.dtype, scratch, out, lsi_few_sums(&c->f, t)};
    need(api->launch.fill(stream, &nan), "fill");
    need(run_few(c), name);
    e = error_of(&c->f, out, count,
                 weights && large ? 12
                 : weights        ? 200
                                  : 2000,
                 c->f.pass == LSI_FEW_FROM_MANY ? want_few
                 : weights                      ? want_weight
                                                : want_many);
    us = time_of(run_few, c);
    printf("%-20s %-9s %s %-5s warps %2d x %d rows %3d tiles %d stages %d strip %3d band %3d columns %2d "
           "segment "
           "%3d  %8.1f us  floor %6.1f (%4.1fx)  error %.1e%s\n",
           name, passes[c->f.pass], ls_dtype_name(c->f.dtype), c->f.exact ? "exact" : "", t->warps, t->blocks,
           t->rows, t->tiles, t->stages, t->strip, t->band, t->columns, t->segment, us, floor_us,
           us / floor_us, e, e < allowed ? "" : "  WRONG");
    fflush(stdout);
    if (!(e < allowed)) failures++;
    api->free(out);
    api->free(scratch);
}

static void check_few(const problem *b, ls_dtype t, bool exact)
{
    const lsi_cuda_few *p = &b->p;
    const size_t n_few = few_at(p, p->n, 0, 0, 0), n_many = many_at(p, p->n, 0, 0, 0);
    const size_t n_weights = (size_t)(p->kh * p->kw * p->f) * (size_t)p->m;
    const size_t counts[] = {n_many, n_few, n_weights};
    void *few = numbers_of(t, FEW, n_few), *many = numbers_of(t, MANY, n_many),
         *weights = numbers_of(t, WEIGHT, n_weights);

    for (int pass = LSI_FEW_TO_MANY; pass <= LSI_FEW_WEIGHTS; pass++) {
        few_call c = {.f = {.p = *p, .pass = (lsi_few_pass)pass, .dtype = t, .exact = exact},
                      .args = {.few = few, .many = many, .weights = weights, .n = p->n}};
        lsi_few_tile tiles[LSI_FEW_TILES];
        const lsi_few_machine m = {device.about.processors, device.about.shared};
        const int n = lsi_few_tiles(&c.f, &m, tiles);
        for (int i = 0; i < n; i++)
            check_tile(b->name, &c, &tiles[i], counts[pass],
                       (double)(n_few + n_many) * (double)ls_dtype_size(t) / 4.3e6);
    }
    api->free(few);
    api->free(many);
    api->free(weights);
}

static void bench_few(const char *name)
{
    lsi_cuda_few last = lsi_few_square(16, 256, 256, 3, 64, 7, 1, 6);
    const problem list[] = {
        {"3x3 3-64 13x17", lsi_few_square(2, 13, 17, 3, 64, 3, 1, 1)},
        {"4x4/2 1-128 9x11", lsi_few_square(3, 9, 11, 1, 128, 4, 2, 1)},
        {"5x5 2-64 20x33", lsi_few_square(1, 20, 33, 2, 64, 5, 1, 2)},
        {"7x7/2 3-64 31x45", lsi_few_square(2, 31, 45, 3, 64, 7, 2, 3)},
        {"5x5/2 1-64 256, 64", lsi_few_square(64, 256, 256, 1, 64, 5, 2, 2)},
        {"7x7/2 3-64 224, 64", lsi_few_square(64, 224, 224, 3, 64, 7, 2, 3)},
        {"7x7 3-64 262, 16", lsi_few_square(16, 262, 262, 3, 64, 7, 1, 0)},
        {"7x7 64-3 262, 16", last},
        {"7x7 64-3 262, 1", lsi_few_square(1, 256, 256, 3, 64, 7, 1, 6)},
        {"4x4/2 3-64 256, 16", lsi_few_square(16, 256, 256, 3, 64, 4, 2, 1)},
    };

    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        if (strstr(list[i].name, name) == NULL) continue;
        check_few(&list[i], LS_BF16, false);
        check_few(&list[i], LS_F32, false);
        if (i < 4) check_few(&list[i], LS_F32, true);
    }
}

/* -- bound by bytes ---------------------------------------------------------------------------------------
 */

static void report(const char *name, double us, double bytes)
{
    printf("%-34s %8.1f us  %6.0f GB/s\n", name, us, bytes / us / 1e3);
}

typedef struct norm_call {
    lsi_cuda_norm_args forward;
    lsi_cuda_norm_grad_args backward;
    lsi_cuda_layer_norm_args layer;
    lsi_cuda_layer_norm_grad_args layer_grad;
} norm_call;

static int run_norm(void *arg)
{
    return api->launch.norm(stream, &((norm_call *)arg)->forward);
}
static int run_norm_grad(void *arg)
{
    return api->launch.norm_grad(stream, &((norm_call *)arg)->backward);
}
static int run_layer(void *arg)
{
    return api->launch.layer_norm(stream, &((norm_call *)arg)->layer);
}
static int run_layer_grad(void *arg)
{
    return api->launch.layer_norm_grad(stream, &((norm_call *)arg)->layer_grad);
}

static void bench_norm(const char *name, lsi_cuda_map m, bool per_sample)
{
    const size_t count = (size_t)(m.n * m.c * m.s);
    const int64_t stats = m.n * m.c;
    lsi_cuda_groups g = lsi_cuda_groups_of_map(m, per_sample);
    void *x = numbers(1, count), *y = room(count * 2), *dy = numbers(2, count), *dx = room(count * 2);
    float *f = room((size_t)stats * 4 * 12);
    norm_call c = {0};
    char text[80];

    lsi_cuda_groups_split(&device, LS_BF16, &g);
    need(lsi_cuda_tickets(&device, lsi_cuda_groups_tickets(&g, LS_BF16), &g.tickets, NULL), "tickets");
    g.partial = room(lsi_cuda_groups_scratch(&g, 2));
    c.forward = (lsi_cuda_norm_args){.dtype = LS_BF16,
                                     .groups = g,
                                     .attr = {.eps = 1e-5, .act = LS_ACT_RELU},
                                     .x = x,
                                     .y = y,
                                     .mean = f,
                                     .invstd = f + stats};
    c.backward = (lsi_cuda_norm_grad_args){.dtype = LS_BF16,
                                           .groups = g,
                                           .attr = {.eps = 1e-5, .act = LS_ACT_RELU},
                                           .dy = dy,
                                           .x = x,
                                           .y = y,
                                           .mean = f,
                                           .invstd = f + stats,
                                           .dx = dx,
                                           .factors = f + 2 * stats};
    snprintf(text, sizeof text, "%s forward", name);
    report(text, time_of(run_norm, &c), 3.0 * 2 * (double)count);
    snprintf(text, sizeof text, "%s backward", name);
    report(text, time_of(run_norm_grad, &c), 7.0 * 2 * (double)count);
    lsi_cuda_tickets_free(&device, g.tickets);
    api->free(g.partial);
    api->free(x);
    api->free(y);
    api->free(dy);
    api->free(dx);
    api->free(f);
}

static void bench_layer_norm(int64_t rows, int64_t width)
{
    const size_t count = (size_t)(rows * width);
    void *x = numbers(1, count), *y = room(count * 2), *dy = numbers(2, count);
    float *f = room((size_t)(2 * rows + 4 * width) * 4), *partial = room((size_t)width * 2 * 4 * 264);
    norm_call c = {
        .layer = {LS_BF16, rows, width, 1e-5, x, f + 2 * rows, f + 2 * rows + width, y, f, f + rows},
        .layer_grad = {.dtype = LS_BF16,
                       .rows = rows,
                       .width = width,
                       .blocks = 264,
                       .dy = dy,
                       .x = x,
                       .gamma = f + 2 * rows,
                       .mean = f,
                       .invstd = f + rows,
                       .dx = y,
                       .dgamma = f + 2 * rows + 2 * width,
                       .dbeta = f + 2 * rows + 3 * width,
                       .partial = partial}};

    report("layer norm forward", time_of(run_layer, &c), 2.0 * 2 * (double)count);
    report("layer norm backward", time_of(run_layer_grad, &c), 3.0 * 2 * (double)count);
    api->free(x);
    api->free(y);
    api->free(dy);
    api->free(f);
    api->free(partial);
}

static int run_adam(void *arg)
{
    return api->launch.optim(stream, arg);
}

static void bench_adam(int n, int64_t each)
{
    lsi_cuda_param *params = calloc((size_t)n, sizeof *params);
    float *all = room((size_t)n * (size_t)each * 16 + 64), *scalars = room(64);
    lsi_cuda_optim_args a = {.rule = LSI_RULE_ADAM,
                             .dtype = LS_F32,
                             .params = params,
                             .n = n,
                             .lr = scalars,
                             .loss_scale = scalars + 1,
                             .t = (int32_t *)(scalars + 2),
                             .attr = {.n = n, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}};
    unsigned *ticket;

    if (params == NULL) exit(1);
    need(api->zero(all, (size_t)n * (size_t)each * 16, stream), "zero");
    need(api->zero(scalars, 64, stream), "zero");
    need(lsi_cuda_tickets(&device, 1, &ticket, NULL), "tickets");
    a.ticket = ticket;
    for (int i = 0; i < n; i++) {
        float *p = all + (int64_t)i * each * 4;
        params[i] = (lsi_cuda_param){p,
                                     p + each,
                                     {p + 2 * each, p + 3 * each},
                                     each,
                                     (int32_t)((int64_t)i * LSI_OPTIM_CHUNKS(each)),
                                     false};
    }
    report("adam, 150 tensors of 0.57 M", time_of(run_adam, &a), 7.0 * 4 * (double)n * (double)each);
    lsi_cuda_tickets_free(&device, ticket);
    api->free(all);
    api->free(scalars);
    free(params);
}

static int run_chamfer(void *arg)
{
    return api->launch.chamfer(stream, arg);
}

static void bench_chamfer(int64_t batch, int64_t points)
{
    lsi_cuda_chamfer_args a = {.dtype = LS_BF16, .batch = batch, .np = points, .nq = points};
    double us;

    a.p = numbers(1, (size_t)(batch * 3 * points));
    a.q = numbers(2, (size_t)(batch * 3 * points));
    a.sum = room(4);
    a.index_p = room((size_t)(batch * points) * 4);
    a.index_q = room((size_t)(batch * points) * 4);
    a.partial = room((size_t)lsi_chamfer_blocks(batch, points, points) * 4);
    need(lsi_cuda_tickets(&device, 1, &a.ticket, NULL), "tickets");
    us = time_of(run_chamfer, &a);
    printf("%-34s %8.1f us  %6.1f G pairs/s\n", "chamfer", us,
           2.0 * (double)(batch * points * points) / us / 1e3);
}

static void bench_bytes(void)
{
    bench_norm("batch norm 256x112x112x64", (lsi_cuda_map){256, 64, 112 * 112, true}, false);
    bench_norm("batch norm 256x28x28x128", (lsi_cuda_map){256, 128, 28 * 28, true}, false);
    bench_norm("batch norm 48x7x7x512", (lsi_cuda_map){48, 512, 7 * 7, true}, false);
    bench_norm("instance norm 16x256x256x64", (lsi_cuda_map){16, 64, 65536, true}, true);
    bench_norm("instance norm 1x64x64x256", (lsi_cuda_map){1, 256, 4096, true}, true);
    bench_layer_norm(96 * 197, 768);
    bench_adam(150, 570000);
    bench_chamfer(32, 3375);
}

int main(int argc, char **argv)
{
    ls_err err = {0};
    int count = 0;

    if (lsi_cuda_load(&api, &err) != LS_OK || api->count(&count) != 0 || count == 0) {
        printf("no GPU: %s\n", err.text);
        return 77;
    }
    need(api->use(0, &device.about), "device");
    device.api = api;
    need(api->stream_create(&stream), "stream");
    device.now = device.stream[LS_QUEUE_COMPUTE] = stream;
    printf("%s\n", device.about.name);
    if (argc < 2 || strcmp(argv[1], "few") == 0) bench_few(argc > 2 ? argv[2] : "");
    if (argc < 2 || strcmp(argv[1], "bytes") == 0) bench_bytes();
    return failures > 0;
}
