/* test_cuda_probe.c: no kernel of cuDNN is taken that computes something else than the convolution: of
 * problems that its kernels were seen to get wrong, the chosen way is right; and a result that belongs to
 * another convolution is noticed.  Skipped without a GPU. */
#include <stdio.h>
#include <string.h>

#include "backend/cuda/library.h"
#include "backend/cuda/probe.h"
#include "check.h"

enum { OPERANDS = 4 };

static const lsi_cuda_device *gpu;

static void set_channels_last(const int64_t *dim, int64_t *stride)
{
    stride[1] = 1;
    stride[3] = dim[1];
    stride[2] = dim[1] * dim[3];
    stride[0] = dim[1] * dim[3] * dim[2];
}

/* `in` channels to `out`, a square filter that moves by 2, padded as TensorFlow's SAME. */
static lsi_cuda_conv same(lsi_cuda_conv_pass pass, ls_dtype dtype, int64_t batch, int64_t in, int64_t out,
                          int64_t size)
{
    lsi_cuda_conv c = {.pass = pass,
                       .dtype = dtype,
                       .x = {batch, in, size, size},
                       .w = {out, in, 5, 5},
                       .y = {batch, out, size / 2, size / 2},
                       .stride = {2, 2},
                       .dilation = {1, 1},
                       .before = {1, 1},
                       .after = {2, 2}};

    set_channels_last(c.x, c.x_stride);
    set_channels_last(c.w, c.w_stride);
    set_channels_last(c.y, c.y_stride);
    return c;
}

static size_t bytes_of(const int64_t *dim, ls_dtype t)
{
    return (size_t)(dim[0] * dim[1] * dim[2] * dim[3]) * ls_dtype_size(t);
}

static void make_operands(const lsi_cuda_conv *c, void **operand)
{
    const int64_t *dims[] = {c->x, c->w, c->y};

    for (int i = 0; i < 3; i++) {
        const size_t bytes = bytes_of(dims[i], c->dtype);
        REQUIRE(gpu->api->alloc(&operand[i], bytes) == 0);
        REQUIRE(gpu->api->launch.noise(gpu->now,
                                       &(lsi_cuda_noise_args){operand[i], c->dtype,
                                                              (int64_t)(bytes / ls_dtype_size(c->dtype)),
                                                              (unsigned)i}) == 0);
    }
}

/* The way that is chosen without timing, run; its result is right, and it is not that of a convolution that
 * is padded in another way. */
static void check_problem(const lsi_cuda_conv *c, const char *name)
{
    lsi_cuda_library_node node = {
        .problem = name,
        .n = 3,
        .conv = c,
        .bytes = {bytes_of(c->x, c->dtype), bytes_of(c->w, c->dtype), bytes_of(c->y, c->dtype)}};
    lsi_cuda_conv other = *c;
    void *operand[OPERANDS] = {NULL}, *workspace = NULL;
    size_t bytes = 0;
    int way;

    REQUIRE(gpu->api->conv(&node.library, c) == 0);
    way = lsi_cuda_library_way(gpu, &node, &bytes);
    REQUIRE(way >= 0);
    make_operands(c, operand);
    REQUIRE(gpu->api->alloc(&workspace, bytes + 1) == 0);
    REQUIRE(gpu->api->run(node.library, way, operand, workspace, gpu->now) == 0);
    CHECK(lsi_cuda_probe_conv(gpu, c, operand, name, way) == LSI_CUDA_RIGHT);
    other.before[0] = 2;
    other.after[0] = 1;
    CHECK(lsi_cuda_probe_conv(gpu, &other, operand, name, way) == LSI_CUDA_WRONG);
    gpu->api->drop(node.library);
    gpu->api->free(workspace);
    for (int i = 0; i < 3; i++) gpu->api->free(operand[i]);
}

static void uneven_paddings(void)
{
    static const lsi_cuda_conv_pass passes[] = {LSI_CUDA_CONV_Y, LSI_CUDA_CONV_DX, LSI_CUDA_CONV_DW};
    static const ls_dtype types[] = {LS_F32, LS_BF16, LS_F16};

    for (size_t p = 0; p < 3; p++)
        for (size_t t = 0; t < 3; t++)
            for (int64_t in = 16; in <= 64; in *= 2) {
                const lsi_cuda_conv c = same(passes[p], types[t], 4, in, 2 * in, 512 / in);
                char name[80];
                snprintf(name, sizeof name, "pass %zu, %s, %d channels", p, ls_dtype_name(types[t]), (int)in);
                check_problem(&c, name);
            }
}

int main(void)
{
    ls_device *dev;
    ls_err err = {0};

    if (ls_device_open(&dev, "cuda", 1, &err) != LS_OK) CHECK_SKIP(err.text);
    dev->fixed = true; /* the library's first guess, which was wrong most often */
    gpu = lsi_cuda_of(dev);
    CHECK_RUN(uneven_paddings);
    ls_device_close(dev);
    return CHECK_DONE();
}
