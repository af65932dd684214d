/* op_plan.c: see op_plan.h. */
#include "op_plan.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

void op_plan_begin(op_plan *p)
{
    ls_err err = {0};

    *p = (op_plan){0};
    REQUIRE_OK(ls_graph_create(&p->g, &err), &err);
}

void op_plan_compile(op_plan *p, const char *device)
{
    ls_err err = {0};
    ls_graph *g = p->g;

    REQUIRE_OK(ls_graph_status(g, &err), &err);
    REQUIRE_OK(ls_device_open(&p->dev, device, 2, &err), &err);
    REQUIRE_OK(ls_state_create(&p->state, p->dev, &err), &err);
    p->g = NULL; /* the plan takes it */
    REQUIRE_OK(ls_plan_compile_take(&p->plan, g, p->dev, p->state, &err), &err);
}

void op_plan_end(op_plan *p)
{
    ls_plan_destroy(p->plan);
    ls_state_destroy(p->state);
    ls_device_close(p->dev);
    ls_graph_destroy(p->g);
    *p = (op_plan){0};
}

const ls_tensor *op_plan_find(const op_plan *p, const char *name)
{
    const ls_tensor *t = ls_plan_input(p->plan, name);

    if (t == NULL) t = ls_plan_fetch(p->plan, name);
    if (t == NULL) t = ls_state_find(p->state, name);
    REQUIRE(t != NULL);
    return t;
}

void op_set(const ls_tensor *t, const double *x, int64_t n)
{
    REQUIRE(ls_shape_count(t->shape) == n);
    for (int64_t i = 0; i < n; i++) tensor_put(t, i, x[i]);
}

bool device_is_tested(const ls_backend *b)
{
    const char *only = getenv("LS_TEST_DEVICE");
    ls_device *dev = NULL;
    bool opens;

    if (only != NULL && strcmp(only, b->name) != 0) return false;
    opens = b->probe(NULL) == LS_OK && b->open(&dev, 1, NULL) == LS_OK;
    if (opens) b->close(dev);
    return opens;
}
