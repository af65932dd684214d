/* ref.c: runs reference kernels.
 *
 * Tensors are stored in their own type and layout; for a call, inputs are widened to double in their logical
 * order and outputs rounded once at the end.  That keeps the kernels free of types and layouts and makes
 * their result the correctly rounded one, up to the rounding of double arithmetic: what the other backends
 * are compared with. */
#include "backend/ref/ref.h"

#include <stdio.h>
#include <string.h>

#include "ops/pointwise_rules.h"

/* How a tensor lies in memory. */
typedef struct stored {
    ls_dtype dtype;
    bool plain;
    ls_strides strides;
    size_t offset; /* of the widened copy in scratch */
} stored;

/* Of one node; tensors have their shapes, addresses come with the call. */
typedef struct ref_state {
    const ls_op *op;
    const void *attr;
    int n_in, n_out;
    ls_ref_tensor *t; /* inputs, then outputs */
    stored *stored;   /* likewise */
} ref_state;

static int64_t place(const stored *s, int64_t i)
{
    return s->plain ? i : ls_strides_place(&s->strides, i);
}

/* Every number of every type is one of double's, i32 included: nothing is lost. */
static void widen(double *to, const void *from, const stored *s, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = place(s, i);
        switch (s->dtype) {
        case LS_F32: to[i] = (double)((const float *)from)[at]; break;
        case LS_BF16: to[i] = (double)ls_bf16_to_f32(((const uint16_t *)from)[at]); break;
        case LS_F16: to[i] = (double)ls_f16_to_f32(((const uint16_t *)from)[at]); break;
        case LS_F64: to[i] = ((const double *)from)[at]; break;
        case LS_I32: to[i] = (double)((const int32_t *)from)[at]; break;
        default: to[i] = (double)((const uint8_t *)from)[at]; break;
        }
    }
}

/* The one rounding.  The 16-bit types are rounded from f32, so twice: that differs from once in the last bit,
 * and only where f32 is half-way between two of theirs.  Integers are results of comparisons and copies, and
 * whole already. */
static void narrow(void *to, const double *from, const stored *s, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = place(s, i);
        switch (s->dtype) {
        case LS_F32: ((float *)to)[at] = (float)from[i]; break;
        case LS_BF16: ((uint16_t *)to)[at] = ls_bf16_from_f32((float)from[i]); break;
        case LS_F16: ((uint16_t *)to)[at] = ls_f16_from_f32((float)from[i]); break;
        case LS_F64: ((double *)to)[at] = from[i]; break;
        case LS_I32: ((int32_t *)to)[at] = (int32_t)from[i]; break;
        default: ((uint8_t *)to)[at] = (uint8_t)from[i]; break;
        }
    }
}

static void run(void *state, const ls_call *call)
{
    ref_state *s = state;
    ls_ref_call c = {s->n_in, s->n_out, s->t, s->t + s->n_in, s->attr};

    for (int i = 0; i < s->n_in + s->n_out; i++)
        s->t[i].d = (double *)((char *)call->scratch + s->stored[i].offset);
    for (int i = 0; i < s->n_in; i++) widen(s->t[i].d, call->in[i], &s->stored[i], s->t[i].count);
    if (s->op->ref != NULL)
        s->op->ref(&c);
    else
        lsi_ref_pointwise(s->op, &c);
    for (int k = 0; k < s->n_out; k++)
        /* After all inputs were read: an output may lie where one of them does. */
        narrow(call->out[k], c.out[k].d, &s->stored[s->n_in + k], c.out[k].count);
}

static void destroy(void *state)
{
    ref_state *s = state;

    if (s == NULL) return;
    ls_free(s->t);
    ls_free(s->stored);
    ls_free(s);
}

ls_status ls_ref_plan(const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    int total = n->n_in + n->n_out;
    ref_state *s = ls_alloc(LS_MEM_PLAN, sizeof *s);
    size_t bytes = 0;

    if (s != NULL) {
        s->t = ls_alloc(LS_MEM_PLAN, sizeof *s->t * (size_t)total);
        s->stored = ls_alloc(LS_MEM_PLAN, sizeof *s->stored * (size_t)total);
    }
    if (s == NULL || s->t == NULL || s->stored == NULL) {
        destroy(s);
        return ls_fail(err, LS_NOMEM, "ref: no memory to plan %s", n->op->name);
    }
    s->op = n->op;
    s->attr = n->attr;
    s->n_in = n->n_in;
    s->n_out = n->n_out;
    for (int i = 0; i < total; i++) {
        const ls_vinfo *v = g->values[i < n->n_in ? n->in[i] : n->out[i - n->n_in]];
        s->t[i].shape = v->shape;
        s->t[i].count = ls_shape_count(v->shape);
        s->stored[i] =
            (stored){v->dtype, v->layout == &ls_layout_plain, ls_layout_strides(v->layout, v->shape), bytes};
        bytes += (size_t)s->t[i].count * sizeof(double); /* of outputs, too: they are rounded at the end */
    }
    /* Where nothing is stored, it still has an address: memcpy must have one for no bytes, too. */
    *out = (ls_kernel){run, destroy, s, bytes > 0 ? bytes : sizeof(double), "ref"};
    return LS_OK;
}

static ls_status probe(ls_err *why)
{
    (void)why;
    return LS_OK;
}

static ls_status ref_open(ls_device **out, int threads, ls_err *err)
{
    ls_device *d = ls_alloc(LS_MEM_PLAN, sizeof *d);

    (void)threads; /* one: the order of every sum is that of its loop */
    if (d == NULL) return ls_fail(err, LS_NOMEM, "ref: no memory");
    *d = (ls_device){.backend = &ls_backend_ref, .threads = 1};
    *out = d;
    return LS_OK;
}

static void ref_close(ls_device *dev)
{
    ls_free(dev);
}

static void describe(const ls_device *dev, char *buf, size_t n)
{
    (void)dev;
    snprintf(buf, n, "plain C in double precision, one thread; the oracle of the tests");
}

static ls_status plan(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    (void)dev;
    return ls_ref_plan(g, n, out, err);
}

static bool optimised(const ls_op *op)
{
    (void)op;
    return false;
}

const ls_backend ls_backend_ref = {
    .name = "ref",
    .probe = probe,
    .open = ref_open,
    .close = ref_close,
    .describe = describe,
    .buffers = &ls_host_buffers,
    .plan = plan,
    .optimised = optimised,
};
