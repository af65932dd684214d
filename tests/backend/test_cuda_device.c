/* test_cuda_device.c: which GPUs are taken, and which plans (no GPU: the module is one of this test's). */
#include <stdio.h>
#include <stdlib.h>

#include "backend/cuda/cuda.h"
#include "check.h"
#include "ops/ops.h"

static lsi_cuda_about about;
static int streams;

static int count(int *devices)
{
    *devices = 2;
    return 0;
}

static int use(int device, lsi_cuda_about *out)
{
    (void)device;
    *out = about;
    return 0;
}

static int bus(int device, char *text, int size)
{
    snprintf(text, (size_t)size, "0000:%02x:00.0", device);
    return 0;
}

static const char *error(int code)
{
    (void)code;
    return "no stream";
}

/* As far as a device comes that is taken. */
static int stream_create(lsi_cuda_stream *out)
{
    (void)out;
    streams++;
    return 1;
}

static const lsi_cuda_api api = {
    .count = count, .use = use, .bus = bus, .error = error, .stream_create = stream_create};

static ls_status take(int major, int minor, ls_err *err)
{
    lsi_cuda_device d = {.api = &api};

    *err = (ls_err){0};
    about = (lsi_cuda_about){.name = "A device", .major = major, .minor = minor, .memory = 1 << 30};
    streams = 0;
    return lsi_cuda_take(&d, 1, true, err);
}

/* Kernels are made for 9.0: on an older one the first of them would fail, in the middle of a step. */
static void an_old_device_is_refused(void)
{
    ls_err err = {0};

    CHECK_STATUS(take(8, 0, &err), LS_UNSUPPORTED, &err);
    CHECK_CONTAINS(err.text, "A device has compute capability 8.0");
    CHECK_CONTAINS(err.text, "9.0 or more");
    CHECK_STATUS(take(8, 9, &err), LS_UNSUPPORTED, &err);
    CHECK_EQ_INT(streams, 0);
    CHECK_STATUS(take(9, 0, &err), LS_DEVICE, &err);
    CHECK_CONTAINS(err.text, "no stream");
    CHECK_EQ_INT(streams, 1);
    CHECK_STATUS(take(12, 0, &err), LS_DEVICE, &err);
}

static void a_device_that_is_not_there(void)
{
    lsi_cuda_device d = {.api = &api};
    ls_err err = {0};

    CHECK_STATUS(lsi_cuda_take(&d, 2, true, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "there is no GPU 2");
}

/* -- more elements than kernels count ---------------------------------------------------------------------
 */

/* Plans what `make` makes of a map of so many images, of 2^20 elements each. */
static ls_status plan_images(ls_value (*make)(ls_value x), int64_t images, ls_err *err)
{
    lsi_cuda_device d = {.base = {.backend = &ls_backend_cuda}, .api = &api, .about = {.processors = 132}};
    ls_graph *g = NULL;
    ls_kernel k = {0};
    ls_status st = LS_OK;

    REQUIRE_OK(ls_graph_create(&g, err), err);
    (void)make(ls_graph_input(g, "x", LS_F32, LS_SHAPE(images, 16, 256, 256)));
    REQUIRE_OK(ls_graph_status(g, err), err);
    REQUIRE(g->n_nodes == 1);
    for (int32_t i = 0; i < g->n_values; i++) g->values[i]->layout = &ls_layout_plain;
    st = ls_backend_cuda.plan(&d.base, g, g->nodes[0], &k, err);
    if (k.destroy != NULL) k.destroy(k.state);
    ls_free(d.area.bytes);
    ls_graph_destroy(g);
    return st;
}

static ls_value sum(ls_value x)
{
    return ls_reduce_sum(x, 1u << 3, false);
}

static ls_value pool(ls_value x)
{
    const ls_pool_attr a = {.kernel = {2, 2}, .stride = {2, 2}, .in = {256, 256}};

    return ls_graph_add(x.g, &ls_op_avgpool2d, 1, &x, &a);
}

/* They would run on the host, for minutes. */
static void more_elements_than_kernels_count(void)
{
    static ls_value (*const ops[])(ls_value) = {ls_tanh, sum, pool};

    setenv("LOCKSTEP_CUDA_COMPILE", "off", 1);
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        ls_err err = {0};
        CHECK_STATUS(plan_images(ops[i], 2048, &err), LS_INVALID, &err);
        CHECK_CONTAINS(err.text, "2147483648 elements");
        CHECK_CONTAINS(err.text, "batch.per_rank");
        CHECK_CONTAINS(err.text, "parallel.accumulate");
    }
    CHECK_OK(plan_images(ls_tanh, 2047, &(ls_err){0}), NULL);
}

int main(void)
{
    CHECK_RUN(an_old_device_is_refused);
    CHECK_RUN(a_device_that_is_not_there);
    CHECK_RUN(more_elements_than_kernels_count);
    return CHECK_DONE();
}
