/* op_plan.c: see op_plan.h. */
#include "op_plan.h"

#include <stdio.h>
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

static bool opens(const ls_backend *b, ls_err *err)
{
    ls_device *dev = NULL;

    if (b->probe(err) != LS_OK || b->open(&dev, 1, err) != LS_OK) return false;
    b->close(dev);
    return true;
}

static bool is_backend(const char *name)
{
    for (int i = 0; ls_backends[i] != NULL; i++)
        if (strcmp(ls_backends[i]->name, name) == 0) return true;
    return false;
}

/* To open a GPU takes a while, and there are hundreds of cases: each backend is asked once. */
bool device_is_tested(const ls_backend *b)
{
    static struct {
        const ls_backend *b;
        bool opens;
    } known[8];
    const char *only = getenv("LS_TEST_DEVICE");
    ls_err err = {0};
    size_t k = 0;

    if (only != NULL && !is_backend(only)) {
        fprintf(stderr, "LS_TEST_DEVICE=%s: there is no such device\n", only);
        exit(2);
    }
    if (only != NULL && strcmp(only, b->name) != 0) return false;
    while (known[k].b != NULL && known[k].b != b) k++;
    REQUIRE(k + 1 < sizeof known / sizeof known[0]);
    if (known[k].b == NULL) {
        known[k].opens = opens(b, &err);
        known[k].b = b;
        if (only != NULL && !known[k].opens) {
            printf("skipped: LS_TEST_DEVICE=%s: %s\n", only, err.text);
            exit(77);
        }
    }
    return known[k].opens;
}
