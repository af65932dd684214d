/* test_cuda_ways.c: the choice among a library's ways where memory is short (no GPU: the module is one of
 * this test's).  A way that could not be tried is tried again by the next process; one that could not be
 * compared with sums of our own is not called wrong. */
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/library.h"
#include "backend/cuda/probe.h"
#include "base/clock.h"
#include "check.h"

enum { SLOW_US = 300, BIG = 1 << 20, NOT_SUPPORTED = 801 };

static size_t most; /* bytes that one allocation can have */
static bool gone;   /* way 0 does not work */

static int give(void **out, size_t bytes)
{
    *out = bytes <= most ? malloc(bytes) : NULL;
    return *out != NULL ? 0 : LSI_CUDA_NO_MEMORY;
}

static int noise(lsi_cuda_stream s, const lsi_cuda_noise_args *a)
{
    (void)s;
    (void)a;
    return 0;
}

static int two(const lsi_cuda_library *l)
{
    (void)l;
    return 2;
}

/* The first way is fast, and needs memory for it. */
static int prepare(lsi_cuda_library *l, int way, size_t *workspace)
{
    (void)l;
    *workspace = way == 0 ? BIG : 0;
    return way == 0 && gone ? NOT_SUPPORTED : 0;
}

static int run(lsi_cuda_library *l, int way, void *const *operands, void *workspace, lsi_cuda_stream s)
{
    const uint64_t end = ls_clock_ns() + 1000 * SLOW_US;

    (void)l;
    (void)operands;
    (void)workspace;
    (void)s;
    while (way == 1 && ls_clock_ns() < end) continue;
    return 0;
}

static int wait_for(lsi_cuda_stream s)
{
    (void)s;
    return 0;
}

static int probe(lsi_cuda_stream s, const lsi_cuda_probe_args *a)
{
    (void)s;
    memset(a->out, 0, (size_t)a->samples * sizeof *a->out);
    return 0;
}

static int copy(void *to, const void *from, size_t bytes, lsi_cuda_stream s)
{
    (void)s;
    memcpy(to, from, bytes);
    return 0;
}

static const lsi_cuda_api api = {.alloc = give,
                                 .free = free,
                                 .copy = copy,
                                 .stream_sync = wait_for,
                                 .ways = two,
                                 .prepare = prepare,
                                 .run = run,
                                 .launch = {.noise = noise, .probe = probe}};

/* The way that a new process takes; `fixed` as in the reproducible mode. */
static int chosen(const char *problem, const lsi_cuda_conv *conv, bool fixed)
{
    lsi_cuda_device d = {.api = &api, .base = {.fixed = fixed}};
    const lsi_cuda_library_node node = {
        .problem = problem, .conv = conv, .n = 3, .bytes = {64, 64, 64}, .bias = -1};
    size_t workspace;
    ls_err err = {0};
    int way;

    REQUIRE_OK(lsi_tuner_create(&d.tuner, "cuda", "test", &err), &err);
    way = lsi_cuda_library_way(&d, &node, &workspace);
    lsi_tuner_destroy(d.tuner);
    return way;
}

static void a_way_without_memory_is_tried_again(void)
{
    most = BIG / 2;
    CHECK_EQ_INT(chosen("short", NULL, false), 1);
    most = 2 * BIG;
    CHECK_EQ_INT(chosen("short", NULL, false), 0);
    most = BIG / 2;
    CHECK_EQ_INT(chosen("short", NULL, false), 0); /* it is known now */
}

static void a_way_that_does_not_work_is_not(void)
{
    most = 2 * BIG;
    gone = true;
    CHECK_EQ_INT(chosen("gone", NULL, false), 1);
    gone = false;
    CHECK_EQ_INT(chosen("gone", NULL, false), 1);
}

/* Operands and workspaces fit, what the comparison writes does not. */
static void a_way_that_cannot_be_compared_is_not_wrong(void)
{
    const lsi_cuda_conv conv = {.pass = LSI_CUDA_CONV_Y, .dtype = LS_F32};
    const lsi_cuda_device d = {.api = &api};
    void *operand[4] = {NULL};

    most = 1000;
    CHECK_EQ_INT(lsi_cuda_probe_conv(&d, &conv, operand, "short", 0), LSI_CUDA_UNKNOWN);
    most = BIG / 2;
    CHECK_EQ_INT(lsi_cuda_probe_conv(&d, &conv, operand, "well", 0), LSI_CUDA_RIGHT);
    most = 1000;
    CHECK_EQ_INT(chosen("fixed", &conv, true), 0); /* believed, with a word in the log */
    CHECK_EQ_INT(chosen("compared", &conv, false), 0);
    most = 2 * BIG;
    gone = true; /* and not remembered */
    CHECK_EQ_INT(chosen("compared", &conv, false), 1);
    gone = false;
}

int main(void)
{
    char folder[200];

    check_new_folder(folder, sizeof folder);
    setenv("LOCKSTEP_CACHE", folder, 1);
    unsetenv("LOCKSTEP_TUNE");
    CHECK_RUN(a_way_without_memory_is_tried_again);
    CHECK_RUN(a_way_that_does_not_work_is_not);
    CHECK_RUN(a_way_that_cannot_be_compared_is_not_wrong);
    return CHECK_DONE();
}
