/* attention.c: attention: f32, bf16, f16, plain layout.
 *
 * Numbers of 16 bits in heads of a common width have kernels that keep scores to themselves
 * (module/flash.cu); all else is products with a softmax between them.  Scores are then f32 whatever the type
 * of q, k and v, in rows whose length is rounded up to 8, so that products read them by 16 bytes. */
#include <stdio.h>

#include "backend/cuda/flash.h"
#include "backend/cuda/library.h"
#include "backend/cuda/planners.h"

enum { MOST = 5, ROUND = 8 };

/* One product: operands are numbered as `place` finds them. */
typedef struct step {
    lsi_cuda_library *library;
    int way;
    int a, b, c;
} step;

typedef struct attention_state {
    const lsi_cuda_device *dev;
    ls_dtype dtype;
    int64_t batch, t, d, pitch;
    float scale;
    bool grad;
    int n;
    step steps[MOST];
    size_t wide, narrow; /* bytes of a matrix of scores in f32, and in the type of q (0: it stays in place) */
} attention_state;

/* Operands beyond inputs (0, 1, ...) and outputs (-1, -2, ...). */
enum { SCORES = 100, DP, P, DS, WORKSPACE };

static void *place(const attention_state *s, const ls_call *call, int what)
{
    char *scratch = lsi_cuda_aligned(call->scratch);
    const size_t wide = s->grad ? 2 * s->wide : s->wide;

    if (what < 0) return call->out[-1 - what];
    if (what < SCORES) return call->in[what];
    switch (what) {
    case SCORES: return scratch;
    case DP: return scratch + s->wide;
    case P: return s->narrow > 0 ? scratch + wide : scratch;
    case DS: return s->narrow > 0 ? scratch + wide + s->narrow : scratch + s->wide;
    default: return scratch + wide + s->narrow * (s->grad ? 2 : 1);
    }
}

static int multiply(const attention_state *s, const ls_call *call, int i)
{
    const step *p = &s->steps[i];
    void *operand[3] = {place(s, call, p->a), place(s, call, p->b), place(s, call, p->c)};

    return s->dev->api->run(p->library, p->way, operand, place(s, call, WORKSPACE),
                            lsi_cuda_stream_of(s->dev, call));
}

static int between(const attention_state *s, const ls_call *call)
{
    const int64_t rows = s->batch * s->t;
    lsi_cuda_stream stream = lsi_cuda_stream_of(s->dev, call);

    if (!s->grad) {
        const lsi_cuda_attend_args a = {place(s, call, SCORES),
                                        place(s, call, P),
                                        call->out[1],
                                        s->dtype,
                                        rows,
                                        s->t,
                                        s->pitch,
                                        s->scale};
        return s->dev->api->launch.attend(stream, &a);
    }
    const lsi_cuda_attend_grad_args a = {place(s, call, SCORES),
                                         place(s, call, DP),
                                         call->in[4],
                                         place(s, call, P),
                                         place(s, call, DS),
                                         call->in[3],
                                         call->in[5],
                                         s->dtype,
                                         rows,
                                         s->t,
                                         s->pitch,
                                         s->d,
                                         s->scale};
    return s->dev->api->launch.attend_grad(stream, &a);
}

static void run(void *state, const ls_call *call)
{
    const attention_state *s = state;
    const int first = s->grad ? 2 : 1; /* products before the softmax */
    int code = 0;

    for (int i = 0; i < s->n && code == 0; i++) {
        if (i == first) code = between(s, call);
        if (code == 0) code = multiply(s, call, i);
    }
    lsi_cuda_launched(s->dev, call, code);
}

static void destroy(void *state)
{
    attention_state *s = state;

    for (int i = 0; i < s->n; i++) s->dev->api->drop(s->steps[i].library);
    ls_free(s);
}

/* -- planning ---------------------------------------------------------------------------------------------
 */

static bool is_square(int operand)
{
    return operand >= SCORES;
}

/* Adds c = op(a) op(b), where each is a matrix of scores (t, t) or a tensor (t, d). */
static bool add(attention_state *s, int a, bool trans_a, int b, bool trans_b, int c, size_t *workspace)
{
    const int64_t map = s->t * s->pitch, row = s->t * s->d;
    const bool wide = c == SCORES || c == DP;
    const lsi_cuda_product p = {.m = s->t,
                                .n = is_square(c) ? s->t : s->d,
                                .k = is_square(c) ? s->d : s->t,
                                .batch = s->batch,
                                .lda = is_square(a) ? s->pitch : s->d,
                                .ldb = is_square(b) ? s->pitch : s->d,
                                .ldc = is_square(c) ? s->pitch : s->d,
                                .stride_a = is_square(a) ? map : row,
                                .stride_b = is_square(b) ? map : row,
                                .stride_c = is_square(c) ? map : row,
                                .trans_a = trans_a,
                                .trans_b = trans_b,
                                .dtype = s->dtype,
                                .out = wide ? LS_F32 : s->dtype,
                                .math = s->dev->base.tf32 ? LSI_CUDA_TF32 : LSI_CUDA_EXACT};
    const size_t each = ls_dtype_size(s->dtype);
    lsi_cuda_library_node node = {.n = 3};
    char text[200];
    size_t bytes = 0;
    step *st = &s->steps[s->n];

    if (s->dev->api->product(&node.library, &p) != 0) return false;
    node.bytes[0] = (size_t)(p.stride_a * s->batch) * each;
    node.bytes[1] = (size_t)(p.stride_b * s->batch) * each;
    node.bytes[2] = (size_t)(p.stride_c * s->batch) * ls_dtype_size(p.out);
    snprintf(text, sizeof text, "attention %s t%lld d%lld batch%lld %d%d%d%d%d math%d",
             ls_dtype_name(s->dtype), (long long)s->t, (long long)s->d, (long long)s->batch, a, trans_a, b,
             trans_b, c, (int)p.math);
    node.problem = text;
    *st = (step){node.library, lsi_cuda_library_way(s->dev, &node, &bytes), a, b, c};
    s->n++;
    if (bytes > *workspace) *workspace = bytes;
    return st->way >= 0;
}

static bool add_products(attention_state *s, size_t *workspace)
{
    enum { Q, K, V, DOUT = 5 };

    if (!add(s, Q, false, K, true, SCORES, workspace)) return false;
    if (!s->grad) return add(s, P, false, V, false, -1, workspace);
    return add(s, DOUT, false, V, true, DP, workspace) && add(s, DS, false, K, false, -1, workspace) &&
           add(s, DS, true, Q, false, -2, workspace) && add(s, P, true, DOUT, false, -3, workspace);
}

ls_status lsi_cuda_plan_attention(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                  ls_err *err)
{
    const ls_attention_attr *a = n->attr;
    const ls_vinfo *q = lsi_cuda_in(g, n, 0);
    attention_state *s;
    size_t workspace = 0;

    if (!lsi_cuda_computes(q->dtype) || !lsi_cuda_plain(g, n) || ls_shape_count(q->shape) == 0)
        return LS_UNSUPPORTED;
    if (lsi_cuda_can_flash(g, n)) return lsi_cuda_plan_flash(dev, g, n, out, err);
    s = ls_alloc(LS_MEM_PLAN, sizeof *s);
    if (s == NULL) return ls_fail(err, LS_NOMEM, "cuda: no memory for a kernel");
    *s = (attention_state){.dev = lsi_cuda_of(dev),
                           .dtype = q->dtype,
                           .batch = q->shape.dim[0],
                           .t = q->shape.dim[1],
                           .d = q->shape.dim[2],
                           .scale = (float)a->scale,
                           .grad = n->op == &ls_op_attention_grad};
    s->pitch = (s->t + ROUND - 1) / ROUND * ROUND;
    s->wide = ((size_t)(s->batch * s->t * s->pitch) * sizeof(float) + 511) / 512 * 512;
    s->narrow = q->dtype == LS_F32 ? 0 : s->wide / 2;
    if (!add_products(s, &workspace)) {
        destroy(s);
        return LS_UNSUPPORTED;
    }
    *out = (ls_kernel){run, destroy, s,
                       (s->wide + s->narrow) * (s->grad ? 2 : 1) + workspace + LSI_CUDA_ALIGNED, "products"};
    return LS_OK;
}
