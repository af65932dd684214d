/* attention_impls.c: attention of 16 bits on a GPU: every kernel that there is for a size, checked against
 * sums on the host and timed.
 *
 * usage: bench_attention [check|time]     exit code 1 when a result is wrong, 77 without a GPU.
 *
 * A check poisons what kernels write, and looks at all of it: nothing is left out, nothing behind the end is
 * touched, and a second run gives the same bits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda.h"

enum { D = 64, BEHIND = 4096, POISON = 0xff };

static const lsi_cuda_api *api;
static lsi_cuda_stream stream;
static int failures;

static const char *const way_names[LSI_FLASH_WAYS] = {"best", "tiles", "heads", "90a"};

static void need(int code, const char *what)
{
    if (code == 0) return;
    printf("%s: %s\n", what, api->error(code));
    exit(1);
}

static void *host_room(size_t bytes)
{
    void *p = malloc(bytes);

    if (p == NULL) exit(1);
    return p;
}

/* -- a problem --------------------------------------------------------------------------------------------
 */

/* Tensors as self_attention has them: q, k and v of a row side by side. */
typedef struct problem {
    ls_dtype dtype;
    int64_t samples, heads, t;
    lsi_cuda_flash_args forward;
    lsi_cuda_flash_grad_args backward;
    uint16_t *qkv, *dout; /* on the host; NULL: for timing only */
    void *d_qkv, *d_dout, *d_out, *d_dqkv, *d_lse, *d_dots;
    size_t n_qkv, n_out, n_lse; /* elements */
} problem;

static uint32_t noise(uint32_t i)
{
    i *= 2654435761u;
    i ^= i >> 15;
    i *= 0x85ebca6bu;
    return i ^ i >> 13;
}

static float value_of(ls_dtype t, uint16_t x)
{
    return t == LS_BF16 ? ls_bf16_to_f32(x) : ls_f16_to_f32(x);
}

static uint16_t *numbers(ls_dtype t, uint32_t seed, size_t n)
{
    uint16_t *x = host_room(n * 2);

    for (size_t i = 0; i < n; i++) {
        const float f = (float)(noise((uint32_t)i + seed * 7919u) & 0xffff) / 32768.0f - 1.0f;
        x[i] = t == LS_BF16 ? ls_bf16_from_f32(f) : ls_f16_from_f32(f);
    }
    return x;
}

/* Room on the device, all of it poisoned, with some more behind the end. */
static void poison(void *p, size_t bytes)
{
    void *host = host_room(bytes + BEHIND);

    memset(host, POISON, bytes + BEHIND);
    need(api->copy(p, host, bytes + BEHIND, stream), "copy");
    need(api->stream_sync(stream), "copy");
    free(host);
}

static void *room(size_t bytes)
{
    void *p;

    need(api->alloc(&p, bytes + BEHIND), "memory");
    poison(p, bytes);
    return p;
}

static void *on_device(const uint16_t *host, size_t n)
{
    void *p = room(n * 2);

    need(api->copy(p, host, n * 2, stream), "copy");
    need(api->stream_sync(stream), "copy");
    return p;
}

static problem problem_of(ls_dtype dtype, int64_t samples, int64_t heads, int64_t t)
{
    const int64_t width = heads * D;
    const lsi_cuda_rows q_rows = {t * 3 * width, D, 3 * width}, out_rows = {t * width, D, width};
    problem p = {.dtype = dtype, .samples = samples, .heads = heads, .t = t};
    char *qkv, *dqkv;

    p.n_out = (size_t)(samples * t * width);
    p.n_qkv = 3 * p.n_out;
    p.n_lse = (size_t)(samples * heads * t);
    p.qkv = numbers(dtype, 1, p.n_qkv);
    p.dout = numbers(dtype, 2, p.n_out);
    qkv = p.d_qkv = on_device(p.qkv, p.n_qkv);
    p.d_dout = on_device(p.dout, p.n_out);
    p.d_out = room(p.n_out * 2);
    dqkv = p.d_dqkv = room(p.n_qkv * 2);
    p.d_lse = room(p.n_lse * 4);
    p.d_dots = room(p.n_lse * 4);
    p.forward = (lsi_cuda_flash_args){.dtype = dtype,
                                      .samples = samples,
                                      .heads = heads,
                                      .t = t,
                                      .d = D,
                                      .scale = 0.5f,
                                      .q_rows = q_rows,
                                      .out_rows = out_rows,
                                      .q = qkv,
                                      .k = qkv + width * 2,
                                      .v = qkv + width * 4,
                                      .out = p.d_out,
                                      .lse = p.d_lse};
    p.backward = (lsi_cuda_flash_grad_args){.dtype = dtype,
                                            .samples = samples,
                                            .heads = heads,
                                            .t = t,
                                            .d = D,
                                            .scale = 0.5f,
                                            .q_rows = q_rows,
                                            .out_rows = out_rows,
                                            .q = qkv,
                                            .k = qkv + width * 2,
                                            .v = qkv + width * 4,
                                            .out = p.d_out,
                                            .dout = p.d_dout,
                                            .lse = p.d_lse,
                                            .dq = dqkv,
                                            .dk = dqkv + width * 2,
                                            .dv = dqkv + width * 4,
                                            .dots = p.d_dots};
    return p;
}

static void release(problem *p)
{
    void *const all[] = {p->d_qkv, p->d_dout, p->d_out, p->d_dqkv, p->d_lse, p->d_dots};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) api->free(all[i]);
    free(p->qkv);
    free(p->dout);
}

static int run_forward(problem *p, lsi_flash_way way)
{
    p->forward.way = way;
    return api->launch.flash(stream, &p->forward);
}

static int run_backward(problem *p, lsi_flash_way way)
{
    p->backward.way = way;
    return api->launch.flash_grad(stream, &p->backward);
}

/* -- checks -----------------------------------------------------------------------------------------------
 */

/* One head in double, t rows of D or t numbers each. */
typedef struct head {
    double *q, *k, *v, *dout, *p, *ds, *out, *lse, *dq, *dk, *dv;
} head;

static void reference_forward(head *h, int64_t t, double scale)
{
    for (int64_t i = 0; i < t; i++) {
        double *s = h->p + i * t, top = -INFINITY, sum = 0;
        for (int64_t j = 0; j < t; j++) {
            s[j] = 0;
            for (int c = 0; c < D; c++) s[j] += scale * h->q[i * D + c] * h->k[j * D + c];
            top = fmax(top, s[j]);
        }
        for (int64_t j = 0; j < t; j++) sum += s[j] = exp(s[j] - top);
        h->lse[i] = top + log(sum);
        for (int64_t j = 0; j < t; j++) {
            s[j] /= sum;
            for (int c = 0; c < D; c++) h->out[i * D + c] += s[j] * h->v[j * D + c];
        }
    }
}

static void reference_backward(head *h, int64_t t, double scale)
{
    for (int64_t i = 0; i < t; i++) {
        double dot = 0;
        for (int c = 0; c < D; c++) dot += h->out[i * D + c] * h->dout[i * D + c];
        for (int64_t j = 0; j < t; j++) {
            double dp = 0, ds;
            for (int c = 0; c < D; c++) dp += h->dout[i * D + c] * h->v[j * D + c];
            ds = scale * h->p[i * t + j] * (dp - dot);
            for (int c = 0; c < D; c++) {
                h->dq[i * D + c] += ds * h->k[j * D + c];
                h->dk[j * D + c] += ds * h->q[i * D + c];
                h->dv[j * D + c] += h->p[i * t + j] * h->dout[i * D + c];
            }
        }
    }
}

static head reference(const problem *p, int64_t sample, int64_t number)
{
    const int64_t t = p->t, width = p->heads * D;
    double *all = calloc((size_t)(t * (8 * D + t + 1)), sizeof *all);
    head h;

    if (all == NULL) exit(1);
    h.q = all;
    h.k = h.q + t * D;
    h.v = h.k + t * D;
    h.dout = h.v + t * D;
    h.out = h.dout + t * D;
    h.dq = h.out + t * D;
    h.dk = h.dq + t * D;
    h.dv = h.dk + t * D;
    h.p = h.dv + t * D;
    h.lse = h.p + t * t;
    for (int64_t i = 0; i < t; i++)
        for (int c = 0; c < D; c++) {
            const int64_t row = sample * t + i, column = number * D + c;
            h.q[i * D + c] = (double)value_of(p->dtype, p->qkv[row * 3 * width + column]);
            h.k[i * D + c] = (double)value_of(p->dtype, p->qkv[row * 3 * width + width + column]);
            h.v[i * D + c] = (double)value_of(p->dtype, p->qkv[row * 3 * width + 2 * width + column]);
            h.dout[i * D + c] = (double)value_of(p->dtype, p->dout[row * width + column]);
        }
    reference_forward(&h, t, 0.5);
    reference_backward(&h, t, 0.5);
    return h;
}

/* What the kernels left, from the device. */
typedef struct results {
    uint16_t *out, *dqkv;
    float *lse;
} results;

static void *from_device(const void *p, size_t bytes)
{
    void *host = host_room(bytes + BEHIND);

    need(api->copy(host, p, bytes + BEHIND, stream), "copy");
    need(api->stream_sync(stream), "kernel");
    return host;
}

/* Both ways by kernels of that way; false: it has none. */
static bool compute(problem *p, lsi_flash_way way, results *r)
{
    bool done;

    poison(p->d_out, p->n_out * 2);
    poison(p->d_dqkv, p->n_qkv * 2);
    poison(p->d_lse, p->n_lse * 4);
    done = run_forward(p, way) == 0 && run_backward(p, way) == 0;
    r->out = from_device(p->d_out, p->n_out * 2);
    r->dqkv = from_device(p->d_dqkv, p->n_qkv * 2);
    r->lse = from_device(p->d_lse, p->n_lse * 4);
    return done;
}

static void drop(results *r)
{
    free(r->out);
    free(r->dqkv);
    free(r->lse);
}

/* The distance of t rows of D, `pitch` apart, from what is wanted, of its length. */
static double error_of(ls_dtype dtype, const uint16_t *x, int64_t pitch, const double *want, int64_t t)
{
    double difference = 0, length = 1e-30;

    for (int64_t i = 0; i < t; i++)
        for (int c = 0; c < D; c++) {
            const double w = want[i * D + c], e = (double)value_of(dtype, x[i * pitch + c]) - w;
            difference += e * e;
            length += w * w;
        }
    return sqrt(difference / length);
}

/* Everything is a number, and what is behind it is as it was. */
static bool complete(const problem *p, const results *r)
{
    const unsigned char *const ends[] = {(const unsigned char *)(r->out + p->n_out),
                                         (const unsigned char *)(r->dqkv + p->n_qkv),
                                         (const unsigned char *)(r->lse + p->n_lse)};

    for (size_t i = 0; i < p->n_out; i++)
        if (!isfinite(value_of(p->dtype, r->out[i]))) return false;
    for (size_t i = 0; i < p->n_qkv; i++)
        if (!isfinite(value_of(p->dtype, r->dqkv[i]))) return false;
    for (size_t i = 0; i < p->n_lse; i++)
        if (!isfinite(r->lse[i])) return false;
    for (int e = 0; e < 3; e++)
        for (int i = 0; i < BEHIND; i++)
            if (ends[e][i] != POISON) return false;
    return true;
}

static void check_way(problem *p, lsi_flash_way way, const head *h, const int64_t (*which)[2], int n)
{
    const int64_t width = p->heads * D;
    const double allowed = p->dtype == LS_BF16 ? 1.2e-2 : 2e-3;
    double e[5] = {0};
    results r, again;
    bool whole, same, good;

    if (!compute(p, way, &r)) {
        drop(&r);
        return;
    }
    (void)compute(p, way, &again);
    whole = complete(p, &r);
    same = memcmp(r.out, again.out, p->n_out * 2) == 0 && memcmp(r.dqkv, again.dqkv, p->n_qkv * 2) == 0 &&
           memcmp(r.lse, again.lse, p->n_lse * 4) == 0;
    for (int i = 0; i < n; i++) {
        const int64_t row = which[i][0] * p->t, column = which[i][1] * D;
        const uint16_t *grad = r.dqkv + row * 3 * width + column;
        e[0] = fmax(e[0], error_of(p->dtype, r.out + row * width + column, width, h[i].out, p->t));
        e[1] = fmax(e[1], error_of(p->dtype, grad, 3 * width, h[i].dq, p->t));
        e[2] = fmax(e[2], error_of(p->dtype, grad + width, 3 * width, h[i].dk, p->t));
        e[3] = fmax(e[3], error_of(p->dtype, grad + 2 * width, 3 * width, h[i].dv, p->t));
        for (int64_t j = 0; j < p->t; j++)
            e[4] = fmax(e[4],
                        fabs((double)r.lse[(which[i][0] * p->heads + which[i][1]) * p->t + j] - h[i].lse[j]));
    }
    /* With one key scores have no gradient, and dq and dk are rounding alone. */
    good = whole && same && e[0] < allowed && e[3] < allowed && e[4] < 1e-3 &&
           (p->t == 1 || (e[1] < 2 * allowed && e[2] < 2 * allowed));
    printf("%-4s t %3d  %-6s errors: out %.1e  dq %.1e  dk %.1e  dv %.1e  lse %.1e%s%s%s\n",
           ls_dtype_name(p->dtype), (int)p->t, way_names[way], e[0], e[1], e[2], e[3], e[4],
           whole ? "" : "  INCOMPLETE", same ? "" : "  OTHER BITS", good ? "" : "  WRONG");
    fflush(stdout);
    if (!good) failures++;
    drop(&r);
    drop(&again);
}

static void check(ls_dtype dtype, int64_t t)
{
    static const int64_t which[][2] = {{0, 0}, {1, 2}, {2, 4}};
    problem p = problem_of(dtype, 3, 5, t);
    head h[3];

    for (int i = 0; i < 3; i++) h[i] = reference(&p, which[i][0], which[i][1]);
    for (int way = LSI_FLASH_TILES; way < LSI_FLASH_WAYS; way++)
        check_way(&p, (lsi_flash_way)way, h, which, 3);
    for (int i = 0; i < 3; i++) free(h[i].q);
    release(&p);
}

/* -- times ------------------------------------------------------------------------------------------------
 */

/* Microseconds of one call, the least of three rounds; below 0: there is no such kernel. */
static double time_of(int (*call)(problem *, lsi_flash_way), problem *p, lsi_flash_way way)
{
    const int repeats = 20;
    lsi_cuda_event from, to;
    double best = INFINITY;

    if (call(p, way) != 0) return -1;
    need(api->event_create(&from, true), "event");
    need(api->event_create(&to, true), "event");
    for (int round = 0; round < 3; round++) {
        float ms = 0;
        need(call(p, way), "launch");
        need(api->event_record(from, stream), "event");
        for (int i = 0; i < repeats; i++) need(call(p, way), "launch");
        need(api->event_record(to, stream), "event");
        need(api->stream_sync(stream), "kernel");
        need(api->event_elapsed(from, to, &ms), "event");
        best = fmin(best, (double)ms * 1000 / repeats);
    }
    api->event_destroy(from);
    api->event_destroy(to);
    return best;
}

/* TFLOP/s count no padding and no scores that are made again. */
static void print_time(const char *what, double us, double products, double tensors, const problem *p)
{
    const double heads = (double)(p->samples * p->heads), t = (double)p->t;

    if (us < 0)
        printf("  %-8s       none                           ", what);
    else
        printf("  %-8s %8.1f us %5.0f TFLOP/s %5.2f TB/s", what, us,
               products * 2 * t * t * D * heads / us * 1e-6, tensors * t * D * 2 * heads / us * 1e-6);
}

static void time_all(int64_t samples, int64_t heads, int64_t t)
{
    problem p = problem_of(LS_BF16, samples, heads, t);

    need(run_forward(&p, LSI_FLASH_TILES), "forward");
    for (int way = LSI_FLASH_TILES; way < LSI_FLASH_WAYS; way++) {
        printf("bf16 batch %3d heads %2d t %3d  %-6s", (int)samples, (int)heads, (int)t, way_names[way]);
        print_time("forward", time_of(run_forward, &p, (lsi_flash_way)way), 2, 4, &p);
        print_time("backward", time_of(run_backward, &p, (lsi_flash_way)way), 5, 8, &p);
        printf("\n");
        fflush(stdout);
    }
    release(&p);
}

int main(int argc, char **argv)
{
    static const int64_t lengths[] = {1,   5,   16,  63,  64,  65,  100, 128, 129,
                                      192, 197, 200, 208, 209, 224, 255, 256, 300};
    const char *what = argc > 1 ? argv[1] : "";
    lsi_cuda_about about;
    ls_err err = {0};
    int count = 0;

    if (lsi_cuda_load(&api, &err) != LS_OK || api->count(&count) != 0 || count == 0) {
        printf("no GPU: %s\n", err.text);
        return 77;
    }
    need(api->use(0, &about), "device");
    need(api->stream_create(&stream), "stream");
    printf("%s\n", about.name);
    if (strcmp(what, "time") != 0)
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            check(LS_BF16, lengths[i]);
            check(LS_F16, lengths[i]);
        }
    if (strcmp(what, "check") != 0) {
        time_all(96, 12, 197);
        time_all(256, 12, 197);
        time_all(256, 12, 64);
        time_all(256, 12, 128);
        time_all(256, 12, 256);
    }
    return failures > 0;
}
