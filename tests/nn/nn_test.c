/* nn_test.c: builds steps on the reference device and runs them. */
#include "nn_test.h"

nn_run nn_compile(void (*build)(ls_step *s), int64_t batch, ls_mode mode)
{
    nn_run r = {0};
    ls_err err = {0};

    REQUIRE_OK(ls_device_open(&r.dev, "ref", 1, &err), &err);
    REQUIRE_OK(ls_state_create(&r.state, r.dev, &err), &err);
    REQUIRE_OK(ls_step_create(&r.step, batch, mode, &err), &err);
    build(r.step);
    REQUIRE_OK(ls_step_status(r.step, &err), &err);
    REQUIRE_OK(ls_plan_compile_take(&r.plan, ls_step_graph_take(r.step), r.dev, r.state, &err), &err);
    init_state(r.state, 1);
    ls_step_write_defaults(r.step, r.plan);
    return r;
}

void nn_release(nn_run *r)
{
    ls_plan_destroy(r->plan);
    ls_state_destroy(r->state);
    ls_step_destroy(r->step);
    ls_device_close(r->dev);
}

ls_err nn_error(void (*build)(ls_step *s))
{
    ls_step *s = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_step_create(&s, 4, LS_TRAIN, &err), &err);
    build(s);
    ls_step_status(s, &err);
    ls_step_destroy(s);
    return err;
}

static const ls_tensor *found(const ls_tensor *t)
{
    REQUIRE(t != NULL);
    return t;
}

const ls_tensor *nn_var(const nn_run *r, const char *name)
{
    return found(ls_state_find(r->state, name));
}

const ls_tensor *nn_input(const nn_run *r, const char *name)
{
    return found(ls_plan_input(r->plan, name));
}

const ls_tensor *nn_fetched(const nn_run *r, const char *name)
{
    return found(ls_plan_fetch(r->plan, name));
}

double nn_fetch(const nn_run *r, const char *name)
{
    return tensor_get(nn_fetched(r, name), 0);
}
