/* test_cuda_errors.c: what a GPU could not do, and was put up with, is not found again by the next kernel.
 * Skipped without a GPU. */
#include "backend/backend.h"
#include "backend/buffer.h"
#include "backend/cuda/kernel_util.h"
#include "check.h"

static ls_device *dev;
static const lsi_cuda_device *gpu;

enum { NUMBERS = 1000 };

/* Starts a kernel and waits for it. */
static int fill(void *to)
{
    const lsi_cuda_fill_args f = {.out = to, .dtype = LS_F32, .count = NUMBERS, .value = 1};
    const int code = gpu->api->launch.fill(gpu->now, &f);

    return code != 0 ? code : gpu->api->stream_sync(gpu->now);
}

static void kernels_after_an_error(void)
{
    static const size_t too_much = (size_t)1 << 50;
    void *p, *more = NULL;
    ls_buffer big = {0};
    ls_err err = {0};

    REQUIRE(gpu->api->alloc(&p, NUMBERS * sizeof(float)) == 0);
    CHECK_EQ_INT(fill(p), 0);
    CHECK(gpu->api->alloc(&more, too_much) != 0);
    CHECK_EQ_INT(fill(p), 0);
    CHECK(gpu->api->alloc_pinned(&more, too_much) != 0);
    CHECK_EQ_INT(fill(p), 0);
    CHECK_EQ_INT(ls_buffer_alloc(&big, dev, too_much, &err), LS_NOMEM);
    CHECK_EQ_INT(fill(p), 0);
    gpu->api->free(p);
}

/* CUDA's own stream is never captured. */
static void kernels_after_a_capture_that_was_refused(void)
{
    const lsi_cuda_graph_rules how = {.early = true};
    lsi_cuda_graph_about about;
    lsi_cuda_graph *graph;
    void *p;

    REQUIRE(gpu->api->alloc(&p, NUMBERS * sizeof(float)) == 0);
    CHECK(gpu->api->capture(NULL) != 0);
    CHECK_EQ_INT(fill(p), 0);
    REQUIRE(gpu->api->capture(gpu->now) == 0);
    CHECK_EQ_INT(
        gpu->api->launch.fill(gpu->now, &(lsi_cuda_fill_args){.out = p, .dtype = LS_F32, .count = NUMBERS}),
        0);
    REQUIRE(gpu->api->captured(gpu->now, &how, &graph, &about) == 0);
    CHECK_EQ_INT(gpu->api->graph_launch(graph, NULL, NULL, gpu->now), 0);
    CHECK_EQ_INT(gpu->api->stream_sync(gpu->now), 0);
    gpu->api->graph_destroy(graph);
    gpu->api->free(p);
}

int main(void)
{
    ls_err err = {0};

    if (ls_device_open(&dev, "cuda", 1, &err) != LS_OK) CHECK_SKIP(err.text);
    gpu = lsi_cuda_of(dev);
    CHECK_RUN(kernels_after_an_error);
    CHECK_RUN(kernels_after_a_capture_that_was_refused);
    ls_device_close(dev);
    return CHECK_DONE();
}
