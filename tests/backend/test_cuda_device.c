/* test_cuda_device.c: which GPUs are taken (no GPU: the module is one of this test's). */
#include <stdio.h>

#include "backend/cuda/cuda.h"
#include "check.h"

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

int main(void)
{
    CHECK_RUN(an_old_device_is_refused);
    CHECK_RUN(a_device_that_is_not_there);
    return CHECK_DONE();
}
