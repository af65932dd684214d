/* pad.c: padding of images and its adjoint, row by row; a pixel is one element, or 16 in C16.
 *
 * Nearly all of it is memcpy, so there is no code for particular instruction sets; only the adjoint of
 * reflection adds. */
#include "backend/cpu/kernel_util.h"
#include "backend/cpu/planners.h"

typedef struct pad_state {
    int64_t planes, h, w, pixel;
    ls_dtype type;
    size_t size; /* bytes of an element */
    ls_pad_attr attr;
    bool adjoint;
    int threads;
} pad_state;

static int64_t padded_w(const pad_state *s)
{
    return (s->w + s->attr.pad[1] + s->attr.pad[3]) * s->pixel;
}
static int64_t padded_h(const pad_state *s)
{
    return s->h + s->attr.pad[0] + s->attr.pad[2];
}

/* Row `row` (of 0..padded_h-1) of a padded plane. */
static void pad_row(const pad_state *s, const char *x, char *y, int64_t row)
{
    int64_t e = s->pixel * (int64_t)s->size, left = s->attr.pad[1], right = s->attr.pad[3];
    int64_t from = row - s->attr.pad[0];
    bool reflect = s->attr.mode == LS_PAD_REFLECT;
    size_t bytes = (size_t)e;

    if (from < 0 || from >= s->h) {
        if (!reflect) {
            memset(y, 0, (size_t)padded_w(s) * s->size);
            return;
        }
        from = from < 0 ? -from : 2 * (s->h - 1) - from;
    }
    x += from * s->w * e;
    memcpy(y + left * e, x, (size_t)s->w * bytes);
    if (!reflect) {
        memset(y, 0, (size_t)left * bytes);
        memset(y + (left + s->w) * e, 0, (size_t)right * bytes);
        return;
    }
    for (int64_t i = 1; i <= left; i++) memcpy(y + (left - i) * e, x + i * e, bytes);
    for (int64_t i = 1; i <= right; i++) memcpy(y + (left + s->w - 1 + i) * e, x + (s->w - 1 - i) * e, bytes);
}

static void add(const pad_state *s, char *to, const char *from, int64_t n)
{
    if (s->type == LS_F32)
        for (int64_t i = 0; i < n; i++) ((float *)(void *)to)[i] += ((const float *)(const void *)from)[i];
    else
        for (int64_t i = 0; i < n; i++)
            lsi_put_float(to, s->type, i, lsi_get_float(to, s->type, i) + lsi_get_float(from, s->type, i));
}

/* Adds to a row of the image what a row of the padded image shows of it. */
static void add_row(const pad_state *s, const char *y, char *x)
{
    int64_t p = s->pixel, e = p * (int64_t)s->size, left = s->attr.pad[1], right = s->attr.pad[3];

    add(s, x, y + left * e, s->w * p);
    if (s->attr.mode != LS_PAD_REFLECT) return;
    for (int64_t i = 1; i <= left; i++) add(s, x + i * e, y + (left - i) * e, p);
    for (int64_t i = 1; i <= right; i++) add(s, x + (s->w - 1 - i) * e, y + (left + s->w - 1 + i) * e, p);
}

/* Row `row` of the image from the padded plane. */
static void unpad_row(const pad_state *s, const char *padded, char *x, int64_t row)
{
    int64_t top = s->attr.pad[0], bottom = s->attr.pad[2], below = s->h - 1 - row;
    int64_t pw = padded_w(s) * (int64_t)s->size;

    if (s->attr.mode != LS_PAD_REFLECT) {
        memcpy(x, padded + (top + row) * pw + s->attr.pad[1] * s->pixel * (int64_t)s->size,
               (size_t)(s->w * s->pixel) * s->size);
        return;
    }
    memset(x, 0, (size_t)(s->w * s->pixel) * s->size);
    add_row(s, padded + (top + row) * pw, x);
    if (row >= 1 && row <= top) add_row(s, padded + (top - row) * pw, x);
    if (below >= 1 && below <= bottom) add_row(s, padded + (top + s->h - 1 + below) * pw, x);
}

typedef struct pad_call {
    const pad_state *s;
    const char *in;
    char *out;
} pad_call;

static void pad_thread(int thread, int n_threads, void *arg)
{
    const pad_call *c = arg;
    const pad_state *s = c->s;
    int64_t size = (int64_t)s->size, ph = padded_h(s), pw = padded_w(s) * size,
            row_w = s->w * s->pixel * size;
    int64_t rows = s->adjoint ? s->h : ph, i, end;

    ls_parallel_range(s->planes * rows, thread, n_threads, &i, &end);
    for (; i < end; i++) {
        int64_t plane = i / rows, row = i % rows;
        if (s->adjoint)
            unpad_row(s, c->in + plane * ph * pw, c->out + i * row_w, row);
        else
            pad_row(s, c->in + plane * s->h * row_w, c->out + i * pw, row);
    }
}

static void run(void *state, const ls_call *call)
{
    const pad_state *s = state;
    pad_call c = {s, call->in[0], call->out[0]};

    if (s->planes > 0) ls_parallel_run(s->threads, pad_thread, &c);
}

ls_status lsi_plan_pad(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    bool adjoint = n->op == &ls_op_pad_adjoint;
    const ls_vinfo *image = adjoint ? lsi_out(g, n, 0) : lsi_in(g, n, 0);
    ls_shape x = image->shape;
    pad_state s = {.planes = 1,
                   .h = x.dim[x.rank - 2],
                   .w = x.dim[x.rank - 1],
                   .pixel = image->layout == &lsi_layout_c16 ? 16 : 1,
                   .type = image->dtype,
                   .size = ls_dtype_size(image->dtype),
                   .attr = *(const ls_pad_attr *)n->attr,
                   .adjoint = adjoint,
                   .threads = lsi_threads_for(dev, ls_shape_count(x))};

    if (!(s.type == LS_F32 || s.type == LS_BF16 || s.type == LS_F16) ||
        !lsi_ins_are(g, n, 0, 1, s.type, image->layout) || !lsi_outs_are(g, n, 0, 1, s.type, image->layout))
        return LS_UNSUPPORTED;
    for (int i = 0; i < x.rank - 2; i++) s.planes *= x.dim[i];
    s.planes /= s.pixel;
    return lsi_kernel_make(out, run, &s, sizeof s, 0, "rows", err);
}
