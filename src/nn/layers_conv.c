/* layers_conv.c: convolutions and their padding rules. */
#include "nn/nn_internal.h"

/* Fills in what the caller left out and turns the options into an op's attributes (all but padding).  False
 * when they cannot be meant; the error is recorded. */
static bool conv_attr(ls_step *s, ls_conv_args *a, ls_conv_attr *attr)
{
    bool pads = a->pads[0] != 0 || a->pads[1] != 0 || a->pads[2] != 0 || a->pads[3] != 0;

    if (a->out < 1) {
        lsi_step_fail(s, ".out, the number of output channels, must be at least 1, got %lld",
                      (long long)a->out);
        return false;
    }
    if (a->kernel != 0 && (a->kernel_h != 0 || a->kernel_w != 0)) {
        lsi_step_fail(s, "give .kernel or .kernel_h and .kernel_w, not both");
        return false;
    }
    if (a->kernel != 0) a->kernel_h = a->kernel_w = a->kernel;
    if (a->kernel_h < 1 || a->kernel_w < 1) {
        lsi_step_fail(s, ".kernel must be at least 1, got %d x %d", a->kernel_h, a->kernel_w);
        return false;
    }
    if ((a->pad != 0) + pads + a->same > 1) {
        lsi_step_fail(s, "give one of .pad, .pads and .same");
        return false;
    }
    if (a->stride == 0) a->stride = 1;
    if (a->dilation == 0) a->dilation = 1;
    if (a->groups == 0) a->groups = 1;
    if (a->stride < 0 || a->dilation < 0 || a->groups < 0 || a->out % a->groups != 0) {
        lsi_step_fail(s,
                      "stride %d, dilation %d and groups %d must be positive, and groups divide %lld outputs",
                      a->stride, a->dilation, a->groups, (long long)a->out);
        return false;
    }
    if (!pads) /* top, left, bottom, right: zeros of the same number all around */
        for (int i = 0; i < 4; i++) a->pads[i] = a->pad;
    *attr = (ls_conv_attr){.stride = {a->stride, a->stride},
                           .dilation = {a->dilation, a->dilation},
                           .groups = a->groups,
                           .kernel = {a->kernel_h, a->kernel_w}};
    for (int i = 0; i < 4; i++) attr->pad[i] = a->pads[i];
    return true;
}

/* TensorFlow's SAME for a convolution from `in` (H, W): ceil(in / stride) positions, and of the zeros this
 * takes the smaller half goes before. */
static void pad_same(ls_conv_attr *attr, const int64_t *in)
{
    for (int i = 0; i < 2; i++) {
        int64_t span = (int64_t)(attr->kernel[i] - 1) * attr->dilation[i] + 1;
        int64_t positions = (in[i] + attr->stride[i] - 1) / attr->stride[i];
        int64_t total = (positions - 1) * attr->stride[i] + span - in[i];
        if (total < 0) total = 0;
        attr->pad[i] = (int)(total / 2);
        attr->pad[2 + i] = (int)(total - total / 2);
    }
}

static bool feature_map(ls_step *s, ls_value x)
{
    char buf[LS_SHAPE_TEXT];

    if (!ls_value_ok(x)) return false;
    if (ls_value_shape(x).rank == 4) return true;
    lsi_step_fail(s, "needs a feature map (N, C, H, W), got %s", ls_shape_text(ls_value_shape(x), buf));
    return false;
}

/* The convolution inside ls_conv and ls_conv1d, which differ in the shape of their weights. */
static ls_value convolve(ls_step *s, ls_value x, const char *full, ls_conv_args a, bool one_d)
{
    ls_conv_attr attr;
    ls_shape in = ls_value_shape(x);
    ls_value w;
    double taps, fan_in;

    if (!conv_attr(s, &a, &attr) || !feature_map(s, x)) return lsi_step_none(s);
    if (in.dim[1] % a.groups != 0)
        return lsi_step_fail(s, "%d groups do not divide the %lld channels of x", a.groups,
                             (long long)in.dim[1]);
    if (a.same) pad_same(&attr, in.dim + 2);
    taps = (double)a.kernel_h * a.kernel_w;
    /* An output sees the channels of its group; a Glorot or Kaiming rule counts outputs of all groups, as
     * PyTorch's does. */
    fan_in = (double)(in.dim[1] / a.groups) * taps;
    w = lsi_variable(s, full, "weight", LS_VAR_PARAM, LS_F32,
                     one_d ? LS_SHAPE(a.out, in.dim[1] / a.groups, a.kernel_w)
                           : LS_SHAPE(a.out, in.dim[1] / a.groups, a.kernel_h, a.kernel_w),
                     lsi_init_weight(a.init, fan_in, (double)a.out * taps));
    if (one_d) w = ls_reshape(w, LS_SHAPE(a.out, in.dim[1] / a.groups, 1, a.kernel_w));
    return lsi_add_bias(s, ls_conv2d(x, w, attr), full, 1, a.no_bias, a.init, fan_in);
}

ls_value ls_conv_layer(ls_step *s, ls_at at, ls_value x, const char *name, ls_conv_args a)
{
    const char *full = lsi_layer_enter(s, at, name);
    ls_value y;

    if (full == NULL) return lsi_step_none(s);
    y = convolve(s, x, full, a, false);
    lsi_layer_leave(s);
    return y;
}

/* (N, C, L) is convolved as (N, C, 1, L).  The weight keeps three dimensions, as those of a Conv1d in a file
 * do. */
static ls_value convolve_line(ls_step *s, ls_value x, const char *full, ls_conv_args a)
{
    ls_shape in = ls_value_shape(x);
    bool line = in.rank == 3;
    char buf[LS_SHAPE_TEXT];

    if (!ls_value_ok(x)) return x;
    if (!line && !(in.rank == 4 && in.dim[2] == 1))
        return lsi_step_fail(s, "needs (N, C, L) or (N, C, 1, L), got %s", ls_shape_text(in, buf));
    if (a.kernel_h != 0 || a.kernel_w != 0 || a.pads[0] != 0 || a.pads[2] != 0 || a.same)
        return lsi_step_fail(s, "one dimension takes .kernel, .pad, pads[1] and pads[3] only");
    a.kernel_h = 1;
    a.kernel_w = a.kernel;
    if (a.pad != 0) a.pads[1] = a.pads[3] = a.pad;
    a.kernel = a.pad = 0;
    if (line) x = ls_reshape(x, LS_SHAPE(in.dim[0], in.dim[1], 1, in.dim[2]));
    x = convolve(s, x, full, a, true);
    if (!line || !ls_value_ok(x)) return x;
    in = ls_value_shape(x);
    return ls_reshape(x, LS_SHAPE(in.dim[0], in.dim[1], in.dim[3]));
}

ls_value ls_conv1d_layer(ls_step *s, ls_at at, ls_value x, const char *name, ls_conv_args a)
{
    const char *full = lsi_layer_enter(s, at, name);
    ls_value y;

    if (full == NULL) return lsi_step_none(s);
    y = convolve_line(s, x, full, a);
    lsi_layer_leave(s);
    return y;
}

/* The transposed convolution is the gradient of a convolution with respect to its input (decision 2): stride
 * and padding are those of that convolution, which several heights and widths would lead from to x's. Without
 * .out_h and .out_w the smallest is meant, PyTorch's output_padding 0; with SAME, stride times x's, as
 * TensorFlow has it. */
static ls_value convolve_back(ls_step *s, ls_value x, const char *full, ls_conv_args a)
{
    ls_conv_attr attr;
    ls_shape in = ls_value_shape(x);
    const int64_t want[2] = {a.out_h, a.out_w};
    ls_value w;
    double taps, fan_in;

    if (!conv_attr(s, &a, &attr) || !feature_map(s, x)) return lsi_step_none(s);
    attr.in[1] = a.out;
    for (int i = 0; i < 2; i++) {
        int64_t span = (int64_t)(attr.kernel[i] - 1) * attr.dilation[i] + 1;
        attr.in[2 + i] = want[i] != 0 ? want[i]
                         : a.same
                             ? in.dim[2 + i] * attr.stride[i]
                             : (in.dim[2 + i] - 1) * attr.stride[i] + span - attr.pad[i] - attr.pad[2 + i];
    }
    if (a.same) pad_same(&attr, attr.in + 2);
    taps = (double)a.kernel_h * a.kernel_w;
    /* Fans as PyTorch counts them: from dimensions 1 and 0 of the weight, whichever way the layer runs. */
    fan_in = (double)(a.out / a.groups) * taps;
    w = lsi_variable(s, full, "weight", LS_VAR_PARAM, LS_F32,
                     LS_SHAPE(in.dim[1], a.out / a.groups, a.kernel_h, a.kernel_w),
                     lsi_init_weight(a.init, fan_in, (double)in.dim[1] * taps));
    return lsi_add_bias(s, ls_conv2d_dx(x, w, attr), full, 1, a.no_bias, a.init, fan_in);
}

ls_value ls_conv_transpose_layer(ls_step *s, ls_at at, ls_value x, const char *name, ls_conv_args a)
{
    const char *full = lsi_layer_enter(s, at, name);
    ls_value y;

    if (full == NULL) return lsi_step_none(s);
    y = convolve_back(s, x, full, a);
    lsi_layer_leave(s);
    return y;
}
