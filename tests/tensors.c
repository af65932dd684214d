/* tensors.c: see tensors.h. */
#include "tensors.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

typedef union element {
    double f64;
    float f32;
    uint16_t half;
    int32_t i32;
    uint8_t u8;
} element;

/* Elements are read by the million: what holds is not worth counting. */
static void must(ls_status st, const ls_err *err)
{
    if (st != LS_OK) REQUIRE_OK(st, err);
}

void run_plan(ls_plan *p)
{
    ls_err err = {0};

    must(ls_plan_run(p, &err), &err);
}

void init_state(ls_state *s, uint64_t seed)
{
    ls_err err = {0};

    must(ls_state_init(s, seed, &err), &err);
}

static double widen(ls_dtype t, const void *from)
{
    element e = {0};

    memcpy(&e, from, ls_dtype_size(t));
    switch (t) {
    case LS_F64: return e.f64;
    case LS_F32: return (double)e.f32;
    case LS_BF16: return (double)ls_bf16_to_f32(e.half);
    case LS_F16: return (double)ls_f16_to_f32(e.half);
    case LS_I32: return (double)e.i32;
    default: return (double)e.u8;
    }
}

static void narrow(ls_dtype t, double x, void *to)
{
    element e = {0};

    switch (t) {
    case LS_F64: e.f64 = x; break;
    case LS_F32: e.f32 = (float)x; break;
    case LS_BF16: e.half = ls_bf16_from_f32((float)x); break;
    case LS_F16: e.half = ls_f16_from_f32((float)x); break;
    case LS_I32: e.i32 = (int32_t)x; break;
    default: e.u8 = (uint8_t)x; break;
    }
    memcpy(to, &e, ls_dtype_size(t));
}

double tensor_get(const ls_tensor *t, int64_t i)
{
    const size_t size = ls_dtype_size(t->dtype);
    element e = {0};
    ls_err err = {0};

    must(ls_tensor_read(t, (size_t)i * size, &e, size, &err), &err);
    return widen(t->dtype, &e);
}

void tensor_put(const ls_tensor *t, int64_t i, double x)
{
    const size_t size = ls_dtype_size(t->dtype);
    element e = {0};
    ls_err err = {0};

    narrow(t->dtype, x, &e);
    must(ls_tensor_write(t, (size_t)i * size, &e, size, &err), &err);
}

void tensor_get_all(const ls_tensor *t, double *to)
{
    const size_t size = ls_dtype_size(t->dtype);
    char *bytes = malloc(t->bytes + 1);

    REQUIRE(bytes != NULL);
    tensor_read(t, bytes, t->bytes);
    for (size_t i = 0; i < t->bytes / size; i++) to[i] = widen(t->dtype, bytes + i * size);
    free(bytes);
}

void tensor_put_all(const ls_tensor *t, const double *from)
{
    const size_t size = ls_dtype_size(t->dtype);
    char *bytes = malloc(t->bytes + 1);

    REQUIRE(bytes != NULL);
    for (size_t i = 0; i < t->bytes / size; i++) narrow(t->dtype, from[i], bytes + i * size);
    tensor_write(t, bytes, t->bytes);
    free(bytes);
}

void tensor_read(const ls_tensor *t, void *to, size_t bytes)
{
    ls_err err = {0};

    must(ls_tensor_read(t, 0, to, bytes, &err), &err);
}

void tensor_write(const ls_tensor *t, const void *from, size_t bytes)
{
    ls_err err = {0};

    must(ls_tensor_write(t, 0, from, bytes, &err), &err);
}

bool tensor_equal(const ls_tensor *a, const ls_tensor *b)
{
    char *x = malloc(a->bytes + 1), *y = malloc(b->bytes + 1);
    bool equal;

    REQUIRE(x != NULL && y != NULL);
    tensor_read(a, x, a->bytes);
    tensor_read(b, y, b->bytes);
    equal = a->bytes == b->bytes && memcmp(x, y, a->bytes) == 0;
    free(x);
    free(y);
    return equal;
}
