#include "model.h"

#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "tensors.h"

void model_open(model *m, ls_graph *g, const char *device, uint64_t seed)
{
    char text[32];
    ls_err err = {0};

    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    setenv("LOCKSTEP_FAR_SEED", text, 1);
    *m = (model){0};
    REQUIRE_OK(ls_device_open(&m->dev, device, 1, &err), &err);
    REQUIRE_OK(ls_state_create(&m->state, m->dev, &err), &err);
    REQUIRE_OK(ls_plan_compile_take(&m->plan, g, m->dev, m->state, &err), &err);
    init_state(m->state, 3);
}

void model_close(model *m)
{
    ls_plan_destroy(m->plan);
    ls_state_destroy(m->state);
    ls_device_close(m->dev);
}

static void run_failing(void *state, const ls_call *call)
{
    failing *f = state;

    if (++f->runs == 2) ls_stream_fail(call->stream, LS_DEVICE, "made up");
    f->real.run(f->real.state, call);
}

void failing_put(failing *f, lsi_step *s)
{
    *f = (failing){.real = s->kernel};
    s->kernel.run = run_failing;
    s->kernel.state = f;
}

void failing_take(failing *f, lsi_step *s)
{
    s->kernel = f->real;
}
