/* cuda_norms_impls.c: batch and instance norms of maps that networks have, both ways, by every way of
 * dividing them among blocks: checked against sums in double, and timed in graphs, as steps run them.
 *
 * usage: bench_cuda_norms [NAME]     NAME: a part of a map's name; exit code 1 when a result is wrong, 77
 * without a GPU.
 *
 * Maps are in the L2 cache where they fit there, as they are behind a convolution. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda.h"
#include "backend/cuda/groups.h"

enum { GUARD = 4096 /* bytes behind a result, that nobody may write */, IN_GRAPH = 20, LAUNCHES = 10 };

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

static float value_at(uint32_t seed, size_t i)
{
    uint32_t h = ((uint32_t)i + seed * 7919u) * 2654435761u;
    float x;

    h ^= h >> 15;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    x = (float)(h & 0xffff) / 32768.0f - 1.0f;
    return ls_bf16_to_f32(ls_bf16_from_f32(x));
}

enum { X = 1, DY, MORE, RESIDUAL, GAMMA, BETA }; /* seeds */

static void *numbers(uint32_t seed, size_t n, ls_dtype t)
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

static void poison(void *p, size_t bytes)
{
    need(api->launch.fill(stream, &(lsi_cuda_fill_args){.out = p,
                                                        .dtype = LS_BF16,
                                                        .count = (int64_t)((bytes + GUARD) / 2),
                                                        .value = NAN}),
         "fill");
}

static void *to_host(const void *from, size_t bytes)
{
    void *p = malloc(bytes + GUARD);

    if (p == NULL) exit(1);
    need(api->copy(p, from, bytes + GUARD, stream), "copy");
    need(api->stream_sync(stream), "copy");
    return p;
}

/* -- one map ----------------------------------------------------------------------------------------------
 */

typedef struct problem {
    const char *name;
    int64_t n, c, s;
    bool per_sample;
} problem;

/* Forward with ReLU, or a residual besides; backward with a mask that x shows, or with one that y does, a
 * gradient in two parts, and one for the residual: ResNet's two norms of a block. */
typedef enum form { FORWARD, FORWARD_ADD, BACKWARD, BACKWARD_ADD, FORMS } form;
static const char *const form_names[] = {"forward", "forward, added to", "backward", "backward, of a sum"};
static const double form_maps[] = {2, 3, 3, 6}; /* that are read or written, each once */

typedef enum way { COLUMNS, CLUSTERS, HALF, WHOLE, WAYS } way;

typedef struct job {
    const problem *p;
    form form;
    size_t count;
    int64_t groups;
    lsi_cuda_norm_args forward;
    lsi_cuda_norm_grad_args backward;
} job;

static int run(const job *j)
{
    return j->form >= BACKWARD ? api->launch.norm_grad(stream, &j->backward)
                               : api->launch.norm(stream, &j->forward);
}

/* Microseconds of one run. */
static double time_of(const job *j)
{
    const lsi_cuda_graph_rules rules = {.early = true};
    lsi_cuda_event from, to;
    lsi_cuda_graph_about edges;
    lsi_cuda_graph *graph = NULL;
    float ms = 0;

    need(api->capture(stream), "capture");
    for (int i = 0; i < IN_GRAPH; i++) need(run(j), "launch");
    need(api->captured(stream, &rules, &graph, &edges), "graph");
    if (graph == NULL) need(1, "graph");
    need(api->event_create(&from, true), "event");
    need(api->event_create(&to, true), "event");
    for (int i = 0; i < 2; i++) need(api->graph_launch(graph, NULL, NULL, stream), "graph");
    need(api->event_record(from, stream), "event");
    for (int i = 0; i < LAUNCHES; i++) need(api->graph_launch(graph, NULL, NULL, stream), "graph");
    need(api->event_record(to, stream), "event");
    need(api->stream_sync(stream), "kernel");
    need(api->event_elapsed(from, to, &ms), "event");
    api->event_destroy(from);
    api->event_destroy(to);
    api->graph_destroy(graph);
    return (double)ms * 1000 / (IN_GRAPH * LAUNCHES);
}

/* False where the map cannot be divided so. */
static bool divide(job *j, way w)
{
    const lsi_cuda_map m = {j->p->n, j->p->c, j->p->s, true};
    const size_t kept = j->form >= BACKWARD ? 4 : 2;
    lsi_cuda_groups g = lsi_cuda_groups_of_map(m, j->p->per_sample);
    lsi_cuda_cluster cluster = {0};
    lsi_cuda_resident resident = {0};
    int64_t tickets = 0;

    if (w == CLUSTERS) {
        cluster = lsi_cuda_cluster_of(&device, LS_BF16, &g, kept);
        if (cluster.blocks == 0) return false;
    } else if (w == COLUMNS) {
        lsi_cuda_groups_split(&device, LS_BF16, &g);
        tickets = lsi_cuda_groups_tickets(&g, LS_BF16);
    } else {
        device.resident = w == HALF ? LSI_RESIDENT_HALF : LSI_RESIDENT_FULL;
        resident = lsi_cuda_resident_of(&device, LS_BF16, &g, kept);
        if (resident.threads == 0) return false;
        tickets = lsi_cuda_resident_tickets(&resident, &g);
    }
    need(lsi_cuda_tickets(&device, tickets, &g.tickets, NULL), "tickets");
    g.partial = room(lsi_cuda_groups_scratch(&g, 2));
    j->forward.groups = j->backward.groups = g;
    j->forward.cluster = j->backward.cluster = cluster;
    j->forward.resident = j->backward.resident = resident;
    return true;
}

static void undivide(job *j)
{
    lsi_cuda_tickets_free(&device, j->forward.groups.tickets);
    api->free(j->forward.groups.partial);
}

/* -- checking ---------------------------------------------------------------------------------------------
 */

/* Numbers of a group, in double. */
typedef struct group {
    int64_t number, first, rows, step; /* of its elements */
    double mean, inv, gamma, beta;
} group;

static group group_of(const job *j, int64_t number)
{
    const problem *p = j->p;
    const int64_t c = number % p->c, b = number / p->c;
    group g = {number, b * p->s * p->c + c, p->per_sample ? p->s : p->n * p->s, p->c, 0, 0, 1, 0};
    double sum = 0, squares = 0;

    for (int64_t r = 0; r < g.rows; r++) {
        const double x = (double)value_at(X, (size_t)(g.first + r * g.step));
        sum += x;
        squares += x * x;
    }
    g.mean = sum / (double)g.rows;
    g.inv = 1 / sqrt(squares / (double)g.rows - g.mean * g.mean + 1e-5);
    if (!p->per_sample) {
        g.gamma = (double)value_at(GAMMA, (size_t)c);
        g.beta = (double)value_at(BETA, (size_t)c);
    }
    return g;
}

static double normal(const group *g, size_t at)
{
    return ((double)value_at(X, at) - g->mean) * g->inv * g->gamma + g->beta;
}

static double from_bf16(const uint16_t *p, size_t at)
{
    return (double)ls_bf16_to_f32(p[at]);
}

/* The largest error of a forward norm's group, as a multiple of what is allowed. */
static double forward_error(const job *j, const group *g, const uint16_t *y, const float *stats)
{
    const double mean = fabs((double)stats[g->number] - g->mean) / 1e-4,
                 inv = fabs((double)stats[j->groups + g->number] / g->inv - 1) / 1e-4;
    double worst = fmax(mean, inv);

    for (int64_t r = 0; r < g->rows; r++) {
        const size_t at = (size_t)(g->first + r * g->step);
        const double sum = normal(g, at) + (j->form == FORWARD_ADD ? (double)value_at(RESIDUAL, at) : 0);
        const double want = sum > 0 ? sum : 0;
        worst = fmax(worst, fabs(from_bf16(y, at) - want) / (want / 128 + 1e-3));
    }
    return worst;
}

/* What comes to an element through the activation. */
static double dz_at(const job *j, const group *g, const uint16_t *y, size_t at)
{
    const bool open = j->form == BACKWARD ? normal(g, at) > 0 : from_bf16(y, at) > 0;

    if (!open) return 0;
    return (double)value_at(DY, at) + (j->form == BACKWARD_ADD ? (double)value_at(MORE, at) : 0);
}

static double backward_error(const job *j, const group *g, const uint16_t *y, const uint16_t *dx,
                             const uint16_t *dz, const float *sums)
{
    const double n = (double)g->rows, a = g->gamma * g->inv;
    double s0 = 0, s1 = 0, worst = 0;

    for (int64_t r = 0; r < g->rows; r++) {
        const size_t at = (size_t)(g->first + r * g->step);
        const double d = dz_at(j, g, y, at);
        s0 += d;
        s1 += d * ((double)value_at(X, at) - g->mean);
    }
    if (!j->p->per_sample)
        worst = fmax(fabs((double)sums[g->number] - s1 * g->inv),
                     fabs((double)sums[j->groups + g->number] - s0)) /
                (2e-3 * sqrt(n) + 1e-2);
    for (int64_t r = 0; r < g->rows; r++) {
        const size_t at = (size_t)(g->first + r * g->step);
        const double d = dz_at(j, g, y, at), x = (double)value_at(X, at) - g->mean;
        const double want = a * (d - s0 / n - x * g->inv * g->inv * s1 / n);
        if (j->form == BACKWARD && fabs(normal(g, at)) < 1e-5) continue; /* either is right */
        worst = fmax(worst, fabs(from_bf16(dx, at) - want) / (fabs(want) / 128 + 0.02 * fabs(a) + 1e-4));
        if (dz != NULL) worst = fmax(worst, fabs(from_bf16(dz, at) - d) / (fabs(d) / 128 + 1e-4));
    }
    return worst;
}

/* Everything is written, and nothing behind it. */
static bool complete(const uint16_t *p, size_t count)
{
    for (size_t i = 0; i < count + GUARD / 2; i++)
        if (isnan(ls_bf16_to_f32(p[i])) != (i >= count)) return false;
    return true;
}

static double error_of(const job *j, const uint16_t *out, const uint16_t *y, const uint16_t *dz)
{
    const size_t stats = (size_t)j->groups * 2 * sizeof(float);
    const bool back = j->form >= BACKWARD;
    float *numbers_of = to_host(back ? (const void *)j->backward.dgamma : j->forward.mean, stats);
    double worst = complete(out, j->count) && (dz == NULL || complete(dz, j->count)) ? 0 : INFINITY;

    for (int i = 0; i < 4; i++) {
        const group g = group_of(j, (j->groups - 1) * i / 3);
        const double e =
            back ? backward_error(j, &g, y, out, dz, numbers_of) : forward_error(j, &g, out, numbers_of);
        if (!(e <= worst)) worst = e;
    }
    free(numbers_of);
    return worst;
}

/* -- all of them ------------------------------------------------------------------------------------------
 */

/* A way's microseconds; negative where it does not apply. */
static double try_way(job *j, way w, void *out, const uint16_t *y, char *word)
{
    const size_t bytes = j->count * 2;
    void *dz = j->form == BACKWARD_ADD ? j->backward.dresidual : NULL;
    uint16_t *first, *again, *host_dz;
    double us, e;

    if (!divide(j, w)) return -1;
    poison(out, bytes);
    if (dz != NULL) poison(dz, bytes);
    need(run(j), "launch");
    first = to_host(out, bytes);
    host_dz = dz != NULL ? to_host(dz, bytes) : NULL;
    e = error_of(j, first, y, host_dz);
    us = time_of(j);
    again = to_host(out, bytes);
    *word = !(e <= 1) ? 'W' : memcmp(first, again, bytes) != 0 ? 'D' : ' ';
    if (*word != ' ') failures++;
    free(first);
    free(again);
    free(host_dz);
    undivide(j);
    return us;
}

static void try_form(job *j, form f, void *y, void *dx)
{
    void *out = f >= BACKWARD ? dx : y;
    uint16_t *host_y = f == BACKWARD_ADD ? to_host(y, j->count * 2) : NULL;

    j->form = f;
    printf("%-26s %-19s", j->p->name, form_names[f]);
    for (way w = COLUMNS; w < WAYS; w++) {
        char word = ' ';
        const double us = try_way(j, w, out, host_y, &word);
        if (us < 0)
            printf("        - ");
        else
            printf(" %8.1f%c", us, word);
    }
    printf(" %8.1f\n", form_maps[f] * 2 * (double)j->count / 4.3e6);
    fflush(stdout);
    free(host_y);
}

static void set_backward(job *j, form f, void *more, void *y, void *dz)
{
    const bool sum = f == BACKWARD_ADD;

    j->backward.by_x = !sum;
    j->backward.y = sum ? y : NULL;
    j->backward.more = sum ? more : NULL;
    j->backward.dresidual = sum ? dz : NULL;
    j->backward.attr.residual = j->backward.attr.sums = sum;
}

static void try_map(const problem *p)
{
    const size_t count = (size_t)(p->n * p->c * p->s);
    const int64_t groups = p->per_sample ? p->n * p->c : p->c;
    const bool batch = !p->per_sample;
    void *x = numbers(X, count, LS_BF16), *dy = numbers(DY, count, LS_BF16), *y = room(count * 2);
    void *more = numbers(MORE, count, LS_BF16), *dz = room(count * 2), *dx = room(count * 2);
    void *residual = numbers(RESIDUAL, count, LS_BF16);
    float *gamma = numbers(GAMMA, (size_t)p->c, LS_F32), *beta = numbers(BETA, (size_t)p->c, LS_F32);
    float *stats = room((size_t)groups * 7 * sizeof(float));
    job j = {.p = p, .count = count, .groups = groups};

    j.forward = (lsi_cuda_norm_args){.dtype = LS_BF16,
                                     .attr = {.eps = 1e-5, .act = LS_ACT_RELU},
                                     .x = x,
                                     .gamma = batch ? gamma : NULL,
                                     .beta = batch ? beta : NULL,
                                     .y = y,
                                     .mean = stats,
                                     .invstd = stats + groups};
    j.backward = (lsi_cuda_norm_grad_args){.dtype = LS_BF16,
                                           .attr = j.forward.attr,
                                           .dy = dy,
                                           .x = x,
                                           .gamma = batch ? gamma : NULL,
                                           .beta = batch ? beta : NULL,
                                           .mean = stats,
                                           .invstd = stats + groups,
                                           .dx = dx,
                                           .dgamma = stats + 2 * groups,
                                           .dbeta = stats + 3 * groups,
                                           .factors = stats + 4 * groups};
    for (form f = FORWARD; f < FORMS; f++) {
        j.forward.residual = f == FORWARD_ADD ? residual : NULL;
        j.forward.attr.residual = f == FORWARD_ADD;
        if (f >= BACKWARD) set_backward(&j, f, more, y, dz);
        try_form(&j, f, y, dx);
    }
    {
        void *const all[] = {x, dy, y, more, dz, dx, residual, gamma, beta, stats};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) api->free(all[i]);
    }
}

int main(int argc, char **argv)
{
    static const problem list[] = {
        {"batch 3x5x7 of 32", 3, 32, 35, false},
        {"batch 2x13x11 of 64", 2, 64, 143, false},
        {"batch 7x9x9 of 96", 7, 96, 81, false},
        {"batch 5x31x29 of 128", 5, 128, 899, false},
        {"instance 3x17x19 of 64", 3, 64, 323, true},
        {"resnet 48x56x56 of 64", 48, 64, 3136, false},
        {"resnet 48x28x28 of 128", 48, 128, 784, false},
        {"resnet 48x14x14 of 256", 48, 256, 196, false},
        {"resnet 48x7x7 of 512", 48, 512, 49, false},
        {"resnet 256x56x56 of 64", 256, 64, 3136, false},
        {"resnet 256x28x28 of 128", 256, 128, 784, false},
        {"resnet 256x14x14 of 256", 256, 256, 196, false},
        {"resnet 256x7x7 of 512", 256, 512, 49, false},
        {"cyclegan 1x256x256 of 64", 1, 64, 65536, true},
        {"cyclegan 1x128x128 of 128", 1, 128, 16384, true},
        {"cyclegan 1x64x64 of 256", 1, 256, 4096, true},
        {"cyclegan 16x128x128 of 128", 16, 128, 16384, true},
        {"cyclegan 16x64x64 of 256", 16, 256, 4096, true},
        {"cosmogan 64x64x64 of 128", 64, 128, 4096, false},
        {"cosmogan 64x32x32 of 256", 64, 256, 1024, false},
        {"cosmogan 64x16x16 of 512", 64, 512, 256, false},
    };
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
    printf("%s: microseconds in bf16; floor: all maps once at 4.3 TB/s; W: wrong, D: other bits again\n%-46s",
           device.about.name, "");
    printf(" %9s %9s %9s %9s %8s\n", "columns", "clusters", "half", "whole", "floor");
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (argc < 2 || strstr(list[i].name, argv[1]) != NULL) try_map(&list[i]);
    return failures > 0;
}
