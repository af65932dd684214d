/* region_case.c: operands of regions. */
#include "region_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "check.h"

static double made_up(const ls_graph *g, int32_t id, uint64_t i, int which)
{
    const ls_rng_key key = {7, 3, (uint32_t)which, 0};
    const uint32_t word = ls_rng_word(&key, 1, (uint32_t)id, i);
    const ls_vinfo *v = g->values[id];

    if (v->dtype == LS_I32) return v->name != NULL && strcmp(v->name, "label") == 0 ? word % 4 : word % 100;
    if (ls_shape_count(v->shape) == 1) return 1;
    return (double)(ls_rng_uniform(word) - 0.5f) * (v->var >= 0 ? 0.4 : 2);
}

/* Whether it is a mean of squares to an optimiser. */
static bool is_square(const ls_region_attr *a, int32_t id)
{
    for (int i = 0; i < a->n; i++) {
        const ls_node *n = a->members[i];
        const int all = ls_optim_is(n->op) ? ((const ls_optim_attr *)n->attr)->n : 0;
        const int from = 3 + (n->op == &ls_op_adam ? 3 : 2) * all;
        for (int k = from; k < from + all && n->op != &ls_op_sgd; k++)
            if (n->in[k] == id) return true;
    }
    return false;
}

/* The pool whose positions these are; NULL: they are none. */
static const ls_pool_attr *pool_of(const ls_region_attr *a, int32_t id)
{
    for (int i = 0; i < a->n; i++)
        if (a->members[i]->op == &ls_op_maxpool2d_grad && a->members[i]->in[1] == id)
            return a->members[i]->attr;
    return NULL;
}

/* A position in window i that lies inside of the image: an index beyond it is no pool's result. */
static double position(const ls_pool_attr *p, ls_shape y, int64_t i, uint32_t word)
{
    const int64_t top = i / y.dim[3] % y.dim[2] * p->stride[0] - p->pad[0];
    const int64_t left = i % y.dim[3] * p->stride[1] - p->pad[1], n = p->kernel[0] * p->kernel[1];
    int64_t k = word % (uint32_t)n;

    for (int64_t tried = 0; tried < n; tried++, k = (k + 1) % n) {
        const int64_t row = top + k / p->kernel[1], column = left + k % p->kernel[1];
        if (row >= 0 && row < p->in[0] && column >= 0 && column < p->in[1]) break;
    }
    return (double)k;
}

static ls_ref_tensor tensor(const ls_graph *g, const ls_region_attr *a, int32_t id, int which)
{
    const ls_shape shape = g->values[id]->shape;
    const int64_t count = ls_shape_count(shape);
    const ls_pool_attr *pool = g->values[id]->dtype == LS_U8 ? pool_of(a, id) : NULL;
    ls_ref_tensor t = {calloc((size_t)count + 1, sizeof(double)), shape, count};

    REQUIRE(t.d != NULL);
    for (int64_t i = 0; i < count; i++) {
        const ls_rng_key key = {7, 3, (uint32_t)which, 0};
        t.d[i] = pool != NULL ? position(pool, shape, i, ls_rng_word(&key, 1, (uint32_t)id, (uint64_t)i))
                              : (double)(float)made_up(g, id, (uint64_t)i, which);
        if (is_square(a, id)) t.d[i] = fabs(t.d[i]);
    }
    return t;
}

void region_case_make(region_case *c, const ls_graph *g, const ls_region_attr *a, bool computed)
{
    c->g = g;
    c->a = a;
    for (int i = 0; i < a->n_in; i++) c->in[i] = tensor(g, a, a->in[i], 0);
    for (int k = 0; k < a->n_out; k++) c->out[k] = tensor(g, a, a->out[k], 1);
    if (computed) ls_op_region.ref(&(ls_ref_call){a->n_in, a->n_out, c->in, c->out, a});
}

void region_case_release(region_case *c)
{
    for (int i = 0; i < c->a->n_in; i++) free(c->in[i].d);
    for (int k = 0; k < c->a->n_out; k++) free(c->out[k].d);
}

static const ls_vinfo *operand(const region_case *c, int i)
{
    return c->g->values[i < c->a->n_in ? c->a->in[i] : c->a->out[i - c->a->n_in]];
}

size_t region_case_bytes(const region_case *c, int i)
{
    return ls_dtype_size(operand(c, i)->dtype) * (size_t)ls_shape_count(operand(c, i)->shape);
}

void *region_case_input(const region_case *c, int i)
{
    const ls_ref_tensor *t = &c->in[i];
    void *bytes = malloc(region_case_bytes(c, i) + 1);

    REQUIRE(bytes != NULL);
    for (int64_t e = 0; e < t->count; e++) {
        if (operand(c, i)->dtype == LS_F32) ((float *)bytes)[e] = (float)t->d[e];
        if (operand(c, i)->dtype == LS_I32) ((int32_t *)bytes)[e] = (int32_t)t->d[e];
        if (operand(c, i)->dtype == LS_U8) ((uint8_t *)bytes)[e] = (uint8_t)t->d[e];
    }
    return bytes;
}

double region_case_difference(const region_case *c, int k, const void *bytes)
{
    const ls_ref_tensor *want = &c->out[k];
    const ls_dtype type = operand(c, c->a->n_in + k)->dtype;
    double most = 0, worst = 0;

    for (int64_t i = 0; i < want->count; i++) {
        const double got = type == LS_U8    ? (double)((const uint8_t *)bytes)[i]
                           : type == LS_I32 ? (double)((const int32_t *)bytes)[i]
                                            : (double)((const float *)bytes)[i];
        if (isnan(got)) return INFINITY;
        most = fmax(most, fabs(want->d[i]));
        worst = fmax(worst, fabs(got - want->d[i]));
    }
    return most > 0 ? worst / most : worst;
}
