/* test_sizes.c: plans that are larger than what they would run on: what lies on a device is compared with the
 * device's memory, and with the machine's where it has none of its own. */
#include "backend/backend.h"
#include "base/machine.h"
#include "check.h"
#include "exec/plan_internal.h"
#include "ops/ops.h"

enum { MIB = 1 << 20 };

static ls_device *open_with(const char *name, size_t memory)
{
    ls_device *d = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_device_open(&d, name, 1, &err), &err);
    d->memory = memory;
    return d;
}

/* tanh of `count` floats, with as many in a variable; on a device that is closed then. */
static ls_status compile(ls_device *d, int64_t count, ls_err *err)
{
    ls_state *state = NULL;
    ls_plan *plan = NULL;
    ls_graph *g = NULL;
    ls_status st = LS_OK;
    ls_value w, x;

    REQUIRE_OK(ls_graph_create(&g, err), err);
    w = ls_graph_var(g, "w", LS_VAR_PARAM, LS_F32, LS_SHAPE(count), (ls_init){LS_INIT_NORMAL, 1});
    x = ls_graph_input(g, "x", LS_F32, LS_SHAPE(count));
    ls_graph_fetch(ls_tanh(ls_tanh(ls_mul(x, w))), "y");
    REQUIRE_OK(ls_state_create(&state, d, err), err);
    st = ls_plan_compile_take(&plan, g, d, state, err);
    ls_plan_destroy(plan);
    ls_state_destroy(state);
    ls_device_close(d);
    return st;
}

static void a_node_that_a_device_has_no_room_for(void)
{
    ls_err err = {0};

    CHECK_OK(compile(open_with("far", 8 * MIB), MIB / 8, &err), &err);
    CHECK_STATUS(compile(open_with("far", 8 * MIB), MIB, &err), LS_NOMEM, &err);
    CHECK_CONTAINS(err.text, "alone needs 12");
    CHECK_CONTAINS(err.text, "the device (far) has 8");
    CHECK_CONTAINS(err.text, "batch.per_rank");
}

/* No node has more than 12 MiB of operands; beside these there is what kernels compute in. */
static void a_step_that_a_device_has_no_room_for(void)
{
    ls_device *d;
    ls_err err = {0};

    CHECK_OK(compile(open_with("far", 48 * MIB), MIB, &err), &err);
    CHECK_STATUS(compile(open_with("far", 24 * MIB), MIB, &err), LS_NOMEM, &err);
    CHECK_CONTAINS(err.text, "a step needs");
    CHECK_CONTAINS(err.text, "the device (far) has 24");
    CHECK_CONTAINS(err.text, "train.recompute=unit");
    d = open_with("far", 24 * MIB); /* what is only looked at may be */
    d->unbacked = true;
    CHECK_OK(compile(d, MIB, &err), &err);
}

/* More than the machine has, on a device that has more. */
static void a_device_with_more_than_its_machine(void)
{
    const double machine = ls_machine_memory();
    const int64_t count = (int64_t)(machine / (double)sizeof(float)) + MIB;
    ls_device *d = open_with("far", (size_t)1 << 60);
    ls_err err = {0};

    d->unbacked = true;
    CHECK_OK(compile(d, count, &err), &err);
    d = open_with("far", 0);
    d->unbacked = true;
    CHECK_STATUS(compile(d, count, &err), LS_NOMEM, &err);
    CHECK_CONTAINS(err.text, "this machine has");
    d = open_with("cpu", 0);
    d->unbacked = true;
    CHECK_STATUS(compile(d, count, &err), LS_NOMEM, &err);
}

int main(void)
{
    CHECK_RUN(a_node_that_a_device_has_no_room_for);
    CHECK_RUN(a_step_that_a_device_has_no_room_for);
    CHECK_RUN(a_device_with_more_than_its_machine);
    return CHECK_DONE();
}
