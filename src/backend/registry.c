/* registry.c: the only list of backends. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "backend/backend.h"
#include "backend/cpu/cpu.h"
#include "backend/cuda/cuda.h"
#include "backend/far/far.h"
#include "backend/ref/ref.h"
#include "base/denormals.h"
#include "base/parallel.h"
#include "base/text.h"

const ls_backend *const ls_backends[] = {&ls_backend_cpu, &ls_backend_cuda, &ls_backend_ref, NULL};

/* Whether a name is that of a GPU somewhere: "cuda:0", "gpu". */
static bool is_gpu(const char *name)
{
    static const char *const starts[] = {"cuda", "gpu", "mps", "hip", "rocm", "xpu", "tpu"};

    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (strncasecmp(name, starts[i], strlen(starts[i])) == 0) return true;
    return false;
}

/* The number in "NAME:I", or -1. */
static int place_in(const char *name)
{
    const char *colon = strchr(name, ':');
    char *end;
    long place;

    if (colon == NULL || colon[1] < '0' || colon[1] > '9') return -1;
    place = strtol(colon + 1, &end, 10);
    return *end == '\0' && place < 1024 ? (int)place : -1;
}

/* "NAME:" and more. */
static bool is_numbered(const ls_backend *b, const char *name)
{
    const size_t n = strlen(b->name);

    return strncmp(name, b->name, n) == 0 && name[n] == ':';
}

static bool is_called(const ls_backend *b, const char *name)
{
    if (strcmp(b->name, name) == 0) return true;
    return b->open_at != NULL && is_numbered(b, name) && place_in(name) >= 0;
}

ls_status ls_device_find(const ls_backend **out, const char *name, ls_err *err)
{
    ls_text names = {0};
    ls_status st;

    for (int i = 0; ls_backends[i] != NULL; i++) {
        *out = ls_backends[i];
        if (is_called(ls_backends[i], name)) return LS_OK;
    }
    *out = &ls_backend_far; /* for tests: it opens, but nobody is told of it */
    if (strcmp(name, ls_backend_far.name) == 0) return LS_OK;
    *out = NULL;
    for (int i = 0; ls_backends[i] != NULL; i++) {
        const ls_backend *b = ls_backends[i];
        if (!is_numbered(b, name)) continue;
        if (b->open_at == NULL)
            return ls_fail(err, LS_INVALID, "no device \"%s\": there is one \"%s\", without a number", name,
                           b->name);
        return ls_fail(err, LS_INVALID,
                       "no device \"%s\": behind the colon comes the number of a device, such as %s:0", name,
                       b->name);
    }
    for (int i = 0; ls_backends[i] != NULL; i++)
        ls_text_add(&names, "%s%s", i ? ", " : "", ls_backends[i]->name);
    st = ls_fail(err, LS_INVALID, "no device \"%s\"%s; there are: %s", name,
                 is_gpu(name) ? ": NVIDIA's GPUs are \"cuda\", one a rank (CUDA_VISIBLE_DEVICES says which)"
                              : "",
                 names.data != NULL ? names.data : "");
    ls_text_release(&names);
    return st;
}

/* What the executor marks behind every run. */
static ls_status make_ends(ls_device *dev, ls_err *err)
{
    const ls_queues *q = dev->backend->queues;
    ls_status st = LS_OK;

    for (int i = 0; q != NULL && st == LS_OK && i < LS_QUEUE_DEVICE_N; i++)
        st = q->make_event(dev, &dev->end[i], err);
    return st;
}

ls_status ls_device_open(ls_device **out, const char *name, int threads, ls_err *err)
{
    return ls_device_open_at(out, name, threads, 0, err);
}

ls_status ls_device_open_at(ls_device **out, const char *name, int threads, int local_rank, ls_err *err)
{
    const bool named = place_in(name) >= 0;
    const int place = named ? place_in(name) : local_rank;
    const ls_backend *b;
    ls_status st = LS_OK;

    *out = NULL;
    LS_TRY(ls_device_find(&b, name, err));
    st = b->probe(err);
    if (st != LS_OK) return ls_fail_in(err, st, "device \"%s\"", name);
    if (threads <= 0) threads = ls_parallel_default_threads(1);
    ls_denormals_flush(); /* before a backend starts threads */
    LS_TRY(b->open_at != NULL ? b->open_at(out, threads, place, named, err) : b->open(out, threads, err));
    LS_TRY(make_ends(*out, err));
out:
    if (st != LS_OK) {
        ls_device_close(*out);
        *out = NULL;
    }
    return st;
}

void ls_device_close(ls_device *dev)
{
    if (dev == NULL) return;
    for (int i = 0; i < LS_QUEUE_DEVICE_N; i++)
        if (dev->end[i] != NULL) dev->backend->queues->free_event(dev, dev->end[i]);
    dev->backend->close(dev);
}
