/* conv.c: convolutions and their gradients through cuDNN. */
#include "backend/cuda/module/cudnn.h"

/* Names of one pass's attributes. */
typedef struct pass_names {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t conv, x, w, y, alpha, beta;
} pass_names;

static const pass_names passes[] = {
    [LSI_CUDA_CONV_Y] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [LSI_CUDA_CONV_DX] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [LSI_CUDA_CONV_DW] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

static int make_conv(lsi_desc *out, const lsi_cuda_conv *p)
{
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t dims = 2;
    lsi_making m = lsi_make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);

    lsi_set(&m, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    lsi_set(&m, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    lsi_set(&m, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dims);
    lsi_set(&m, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, p->stride);
    lsi_set(&m, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, p->dilation);
    lsi_set(&m, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, p->before);
    lsi_set(&m, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, p->after);
    return lsi_made(&m, out);
}

enum { MOST = 3 }; /* operations: the convolution, the bias, the ReLU */

static int convolve(lsi_desc *out, const lsi_cuda_conv *p, lsi_desc x, lsi_desc w, lsi_desc y)
{
    const pass_names *names = &passes[p->pass];
    const float one = 1, zero = 0;
    lsi_desc conv;
    int code = make_conv(&conv, p);

    if (code == 0) {
        lsi_making m = lsi_make(names->type);
        lsi_set(&m, names->conv, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &conv);
        lsi_set(&m, names->x, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
        lsi_set(&m, names->w, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &w);
        lsi_set(&m, names->y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
        lsi_set(&m, names->alpha, CUDNN_TYPE_FLOAT, 1, &one);
        lsi_set(&m, names->beta, CUDNN_TYPE_FLOAT, 1, &zero);
        code = lsi_made(&m, out);
    }
    lsi_desc_free(&conv);
    return code;
}

/* What is passed on between operations has numbers behind those of operands. */
static int make_operations(lsi_desc *out, int *n, const lsi_cuda_conv *p)
{
    enum { X, W, Y, BIAS, FIRST, SECOND, TENSORS };
    const bool biased = p->epilogue != LSI_CUDA_NOTHING, relu = p->epilogue == LSI_CUDA_BIAS_RELU;
    const int64_t bias[4] = {1, p->y[1], 1, 1}, bias_stride[4] = {p->y[1], 1, p->y[1], p->y[1]};
    lsi_desc t[TENSORS] = {NULL};
    int code = lsi_tensor_make(&t[X], 1, p->dtype, 4, p->x, p->x_stride);

    *n = 0;
    if (code == 0) code = lsi_tensor_make(&t[W], 2, p->dtype, 4, p->w, p->w_stride);
    if (code == 0) code = lsi_tensor_make(&t[Y], 3, p->dtype, 4, p->y, p->y_stride);
    if (code == 0 && biased) code = lsi_tensor_make(&t[BIAS], 4, p->dtype, 4, bias, bias_stride);
    if (code == 0 && biased) code = lsi_passed_make(&t[FIRST], LSI_CUDNN_OPERANDS + 1, 4, p->y, p->y_stride);
    if (code == 0 && relu) code = lsi_passed_make(&t[SECOND], LSI_CUDNN_OPERANDS + 2, 4, p->y, p->y_stride);
    if (code == 0) code = convolve(&out[(*n)++], p, t[X], t[W], biased ? t[FIRST] : t[Y]);
    if (code == 0 && biased)
        code = lsi_pointwise_make(&out[(*n)++], t[FIRST], t[BIAS], relu ? t[SECOND] : t[Y]);
    if (code == 0 && relu) code = lsi_pointwise_make(&out[(*n)++], t[SECOND], NULL, t[Y]);
    for (int i = 0; i < TENSORS; i++) lsi_desc_free(&t[i]);
    return code;
}

/* Every way gives the same bits each time, and does not round more than was asked for. */
int lsi_cuda_conv_make(lsi_cuda_library **out, const lsi_cuda_conv *p)
{
    const bool exact = p->dtype == LS_F32 && p->math == LSI_CUDA_EXACT;
    lsi_refused refused = {{false}};
    lsi_desc operations[MOST] = {NULL};
    int code, n;

    refused.note[CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC] = true;
    refused.note[CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION] = true;
    refused.note[CUDNN_NUMERICAL_NOTE_FFT] = true;
    refused.note[CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6] = true;
    refused.note[CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13] = true;
    refused.note[CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS] = p->dtype == LS_F32;
    refused.note[CUDNN_NUMERICAL_NOTE_TENSOR_CORE] = exact;
    code = make_operations(operations, &n, p);
    if (code == 0)
        return lsi_cudnn_problem_make(out, operations, n, p->epilogue != LSI_CUDA_NOTHING ? 4 : 3, &refused);
    for (int i = 0; i < n; i++) lsi_desc_free(&operations[i]);
    return code;
}
