/* conv.c: convolutions and their two gradients through cuDNN, or as products where a filter is one pixel, or
 * few channels wide and never overlaps itself: f32, bf16, f16, plain or channels-last maps and weights. */
#include <stdio.h>

#include "backend/cuda/choice.h"
#include "backend/cuda/library.h"
#include "backend/cuda/planners.h"

static bool strides(const ls_vinfo *v, int64_t dim[4], int64_t stride[4])
{
    const ls_strides s = ls_layout_strides(v->layout, v->shape);

    if (v->layout != &ls_layout_plain && v->layout != &ls_layout_nhwc) return false;
    for (int i = 0; i < 4; i++) {
        dim[i] = v->shape.dim[i];
        stride[i] = s.of[i];
    }
    return ls_shape_count(v->shape) > 0;
}

/* The three tensors of a node, whichever of them it makes: x, w, y. */
static void roles(const ls_graph *g, const ls_node *n, const ls_vinfo *v[3], int from[3])
{
    static const int y_from[3] = {0, 1, -1}, dx_from[3] = {-1, 1, 0}, dw_from[3] = {0, -1, 1};
    const int *f = n->op == &ls_op_conv2d ? y_from : n->op == &ls_op_conv2d_dx ? dx_from : dw_from;

    for (int i = 0; i < 3; i++) {
        from[i] = f[i];
        v[i] = f[i] >= 0 ? lsi_cuda_in(g, n, f[i]) : lsi_cuda_out(g, n, 0);
    }
}

static bool describe(const lsi_cuda_device *d, const ls_graph *g, const ls_node *n, lsi_cuda_conv *p,
                     lsi_cuda_library_node *node)
{
    const ls_conv_attr *a = n->attr;
    const ls_vinfo *v[3];

    roles(g, n, v, node->from);
    *p = (lsi_cuda_conv){.pass = n->op == &ls_op_conv2d      ? LSI_CUDA_CONV_Y
                                 : n->op == &ls_op_conv2d_dx ? LSI_CUDA_CONV_DX
                                                             : LSI_CUDA_CONV_DW,
                         .dtype = v[0]->dtype,
                         .math = d->base.tf32 ? LSI_CUDA_TF32 : LSI_CUDA_EXACT};
    for (int i = 0; i < 3; i++) {
        if (v[i]->dtype != p->dtype || !lsi_cuda_computes(p->dtype)) return false;
        node->bytes[i] = ls_layout_bytes(v[i]->layout, v[i]->dtype, v[i]->shape);
    }
    for (int i = 0; i < 2; i++) {
        p->stride[i] = a->stride[i];
        p->dilation[i] = a->dilation[i];
        p->before[i] = a->pad[i];
        p->after[i] = a->pad[2 + i];
    }
    return strides(v[0], p->x, p->x_stride) && strides(v[1], p->w, p->w_stride) &&
           strides(v[2], p->y, p->y_stride);
}

static void name_problem(char *text, size_t size, const lsi_cuda_conv *p)
{
    static const char *const pass[] = {"y", "dx", "dw"};

    snprintf(text, size,
             "conv %s %s x%lldx%lldx%lldx%lld w%lldx%lldx%lldx%lld stride%lldx%lld pad%lld,%lld,%lld,%lld "
             "dilation%lldx%lld layouts%d%d%d math%d",
             pass[p->pass], ls_dtype_name(p->dtype), (long long)p->x[0], (long long)p->x[1],
             (long long)p->x[2], (long long)p->x[3], (long long)p->w[0], (long long)p->w[1],
             (long long)p->w[2], (long long)p->w[3], (long long)p->stride[0], (long long)p->stride[1],
             (long long)p->before[0], (long long)p->before[1], (long long)p->after[0], (long long)p->after[1],
             (long long)p->dilation[0], (long long)p->dilation[1], p->x_stride[1] == 1, p->w_stride[1] == 1,
             p->y_stride[1] == 1, (int)p->math);
}

/* What follows on the result: a map, channels-last or plain. */
static void add_epilogue(const ls_graph *g, const ls_node *n, lsi_cuda_library_node *node)
{
    const ls_conv_attr *a = n->attr;
    const ls_vinfo *y = lsi_cuda_out(g, n, 0);
    const int64_t map = y->shape.dim[2] * y->shape.dim[3];
    const bool last = y->layout == &ls_layout_nhwc, biased = n->n_in > 2;

    node->after = biased || a->act != LS_ACT_NONE;
    node->bias = biased ? 2 : -1;
    node->epilogue = (lsi_cuda_epilogue_args){.dtype = y->dtype,
                                              .bias_dtype = biased ? lsi_cuda_in(g, n, 2)->dtype : LS_F32,
                                              .outer = last ? y->shape.dim[0] * map : y->shape.dim[0],
                                              .channels = y->shape.dim[1],
                                              .inner = last ? 1 : map,
                                              .act = (int)a->act,
                                              .slope = (float)a->slope};
}

/* The product that a convolution is when the rows of x that belong to each pixel of y are rows of `in`
 * elements. */
static void set_product(const lsi_cuda_conv *c, int64_t pixels, int64_t in, lsi_cuda_product *p,
                        lsi_cuda_library_node *node)
{
    static const int operands[3][3] = {{0, 1, 2}, {2, 1, 0}, {2, 0, 1}}; /* a, b, c among x, w, y */
    const lsi_cuda_library_node as_conv = *node;
    const int *o = operands[c->pass];
    const int64_t out = c->y[1];

    *p =
        (lsi_cuda_product){.m = pixels, .n = out, .k = in, .lda = in, .ldb = in, .ldc = out, .trans_b = true};
    if (c->pass == LSI_CUDA_CONV_DX)
        *p = (lsi_cuda_product){.m = pixels, .n = in, .k = out, .lda = out, .ldb = in, .ldc = in};
    if (c->pass == LSI_CUDA_CONV_DW)
        *p = (lsi_cuda_product){
            .m = out, .n = in, .k = pixels, .lda = out, .ldb = in, .ldc = in, .trans_a = true};
    p->batch = 1;
    p->dtype = p->out = c->dtype;
    p->math = c->math;
    for (int i = 0; i < 3; i++) {
        node->from[i] = as_conv.from[o[i]];
        node->bytes[i] = as_conv.bytes[o[i]];
    }
    node->impl = "cublaslt";
}

static bool without_padding(const lsi_cuda_conv *c)
{
    return c->before[0] == 0 && c->before[1] == 0 && c->after[0] == 0 && c->after[1] == 0;
}

/* A filter of one pixel over maps that are channels last is a product over all pixels. */
static bool describe_product(const lsi_cuda_conv *c, lsi_cuda_product *p, lsi_cuda_library_node *node)
{
    if (c->w[2] != 1 || c->w[3] != 1 || c->w[1] != c->x[1] || c->x_stride[1] != 1 || c->y_stride[1] != 1 ||
        c->stride[0] != 1 || c->stride[1] != 1 || !without_padding(c))
        return false;
    set_product(c, c->x[0] * c->x[2] * c->x[3], c->x[1], p, node);
    return true;
}

enum { FEW_CHANNELS = 16, ACCESS = 16 };

/* A filter that moves by its own size takes patches that do not overlap: x in another order is the left
 * operand of a product.  The library has poor kernels for few channels. */
static bool describe_patches(const lsi_cuda_conv *c, lsi_cuda_product *p, lsi_cuda_library_node *node)
{
    const int64_t kh = c->w[2], kw = c->w[3], in = c->x[1], run = kw * in * (int64_t)ls_dtype_size(c->dtype);
    const int64_t across = c->y[3], each = run / ACCESS;

    if (c->pass == LSI_CUDA_CONV_DX || in >= FEW_CHANNELS || kh * kw == 1 || run % ACCESS != 0 ||
        c->w[1] != in || c->x_stride[1] != 1 || c->w_stride[1] != 1 || c->y_stride[1] != 1 ||
        !without_padding(c) || c->dilation[0] != 1 || c->dilation[1] != 1 || c->stride[0] != kh ||
        c->stride[1] != kw || c->x[2] != c->y[2] * kh || c->x[3] != across * kw)
        return false;
    set_product(c, c->y[0] * c->y[2] * across, kh * kw * in, p, node);
    node->gathers = true;
    node->gathered = c->pass == LSI_CUDA_CONV_Y ? 0 : 1;
    node->gather = (lsi_cuda_move_args){.size = ACCESS,
                                        .rank = 4,
                                        .dim = {c->y[0] * c->y[2], across, kh, each},
                                        .from = {kh * across * each, each, across * each, 1},
                                        .to = {kh * across * each, kh * each, each, 1}};
    return true;
}

/* With bias and ReLU in it, where the library has that for these sizes. */
static bool make_product(const lsi_cuda_device *d, const ls_graph *g, const ls_node *n, lsi_cuda_product *p,
                         lsi_cuda_library_node *node)
{
    const ls_conv_attr *a = n->attr;
    const bool biased = n->n_in > 2 && lsi_cuda_in(g, n, 2)->dtype == p->dtype;

    if (node->after && (biased || n->n_in == 2) && a->act <= LS_ACT_RELU) {
        p->epilogue = !biased ? LSI_CUDA_RELU : a->act == LS_ACT_RELU ? LSI_CUDA_BIAS_RELU : LSI_CUDA_BIAS;
        if (d->api->product(&node->library, p) == 0) {
            node->after = false;
            if (!biased) return true;
            node->from[3] = 2;
            node->bytes[3] = (size_t)p->n * ls_dtype_size(p->dtype);
            node->n = 4;
            return true;
        }
        p->epilogue = LSI_CUDA_NOTHING;
    }
    return d->api->product(&node->library, p) == 0;
}

/* -- planning -------------------------------------------------------------------------------------------- */

/* What is tried: the convolution with what follows in a kernel behind it, or, where there is a bias, within.
 */
enum { APART, WITHIN, FORMS };

typedef struct candidates {
    ls_device *dev;
    const ls_graph *g;
    const ls_node *n;
    lsi_cuda_conv p;
    lsi_cuda_library_node node;
} candidates;

static ls_status make(const void *ctx, int i, ls_kernel *out, ls_err *err)
{
    const candidates *c = ctx;
    const lsi_cuda_device *d = lsi_cuda_of(c->dev);
    lsi_cuda_library_node node = c->node;
    lsi_cuda_conv p = c->p;
    char text[400];

    name_problem(text, sizeof text, &p);
    if (i == WITHIN) {
        p.epilogue = node.epilogue.act == LS_ACT_RELU ? LSI_CUDA_BIAS_RELU : LSI_CUDA_BIAS;
        snprintf(text + strlen(text), sizeof text - strlen(text), " after%d", (int)p.epilogue);
        node.after = false;
        node.from[node.n] = node.bias;
        node.bytes[node.n++] = (size_t)p.y[1] * ls_dtype_size(p.dtype);
    }
    if (d->api->conv(&node.library, &p) != 0) return LS_UNSUPPORTED;
    node.problem = text;
    node.conv = &p;
    return lsi_cuda_library_plan(c->dev, &node, out, err);
}

/* Whether the library may know a kernel that has the bias in it: those of 16 bits it has. */
static bool can_be_within(const candidates *c)
{
    return c->p.pass == LSI_CUDA_CONV_Y && c->p.dtype != LS_F32 && c->node.after && c->node.bias >= 0 &&
           c->node.epilogue.bias_dtype == c->p.dtype && c->node.epilogue.act <= LS_ACT_RELU;
}

ls_status lsi_cuda_plan_conv(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    static const char *const forms[FORMS] = {"apart", "within"};
    const lsi_cuda_device *d = lsi_cuda_of(dev);
    candidates c = {.dev = dev, .g = g, .n = n, .node = {.impl = "cudnn", .n = 3}};
    lsi_cuda_product product;
    char text[400];

    if (!describe(d, g, n, &c.p, &c.node)) return LS_UNSUPPORTED;
    add_epilogue(g, n, &c.node);
    if (c.node.after &&
        (!lsi_cuda_computes(c.node.epilogue.bias_dtype) ||
         ls_shape_count(lsi_cuda_out(g, n, 0)->shape) >= (int64_t)1 << 31)) /* counted with 32 bits */
        return LS_UNSUPPORTED;
    name_problem(text, sizeof text, &c.p);
    if (describe_product(&c.p, &product, &c.node) || describe_patches(&c.p, &product, &c.node)) {
        if (!make_product(d, g, n, &product, &c.node)) return LS_UNSUPPORTED;
        snprintf(text + strlen(text), sizeof text - strlen(text), " product%d", (int)product.epilogue);
        c.node.problem = text;
        return lsi_cuda_library_plan(dev, &c.node, out, err);
    }
    if (!can_be_within(&c)) return make(&c, APART, out, err);
    snprintf(text + strlen(text), sizeof text - strlen(text), " bias act%d", c.node.epilogue.act);
    return lsi_cuda_choose(&(lsi_cuda_choice){dev, g, n, text, FORMS, forms, APART, make, &c}, out, err);
}
