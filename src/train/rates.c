/* rates.c: a stopwatch on a gather and on a product. */
#include "train/rates.h"

#include <string.h>

#include "base/clock.h"
#include "lockstep/nn.h"
#include "lockstep/plan.h"
#include "ops/ops.h"

enum {
    GATHERED = 1 << 20, /* floats */
    SIDE = 256,         /* of the matrices */
    TIMES = 3           /* of which the best counts: nothing else disturbed it */
};

static ls_status time_gather(double *seconds, ls_comm *comm, ls_group group, ls_err *err)
{
    const ls_exchange_options o = {
        .name = "how fast a gather is", .kind = LS_COLL_ALL_GATHER, .group = group, .n = GATHERED};
    ls_exchange *x = NULL;
    ls_status st = LS_OK;

    *seconds = 1e9;
    LS_TRY(ls_exchange_create(&x, comm, &o, err));
    for (int i = 0; i < TIMES; i++) {
        LS_TRY(ls_comm_barrier(comm, "how fast a gather is", err));
        const double begun = ls_clock_seconds();
        ls_exchange_start(x, 1);
        LS_TRY(ls_exchange_wait(x, err));
        const double now = ls_clock_seconds() - begun;
        if (now < *seconds) *seconds = now;
    }
    LS_TRY(ls_comm_barrier(comm, "how fast a gather was", err));
out:
    ls_exchange_destroy(x);
    return st;
}

static ls_status make_product(ls_plan **out, ls_device *dev, ls_state *state, ls_dtype type, ls_err *err)
{
    ls_graph *g = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_graph_create(&g, err));
    ls_value a = ls_graph_input(g, "a", LS_F32, LS_SHAPE(SIDE, SIDE));
    ls_value b = ls_graph_input(g, "b", LS_F32, LS_SHAPE(SIDE, SIDE));
    if (type != LS_F32) {
        a = ls_cast(a, type);
        b = ls_cast(b, type);
    }
    ls_graph_fetch(ls_matmul(a, b, false, false), "product");
    LS_TRY(ls_plan_compile_take(out, g, dev, state, err));
out:
    return st;
}

static ls_status time_product(double *seconds, ls_device *dev, ls_dtype type, ls_err *err)
{
    ls_state *state = NULL;
    ls_plan *plan = NULL;
    ls_status st = LS_OK;

    *seconds = 1e9;
    LS_TRY(ls_state_create(&state, dev, err));
    LS_TRY(make_product(&plan, dev, state, type, err));
    for (int i = 0; i < TIMES; i++) {
        const double begun = ls_clock_seconds();
        LS_TRY(ls_plan_run(plan, err));
        const double now = ls_clock_seconds() - begun;
        if (now < *seconds) *seconds = now;
    }
out:
    ls_plan_destroy(plan);
    ls_state_destroy(state);
    return st;
}

ls_status ls_rates_product(double *out, const char *device, int threads, int local_rank, ls_dtype type,
                           ls_err *err)
{
    ls_device *dev = NULL;
    double seconds = 1;
    ls_status st = LS_OK;

    LS_TRY(ls_device_open_at(&dev, device, threads, local_rank, err));
    dev->untimed = true;
    LS_TRY(time_product(&seconds, dev, type, err));
    *out = 2.0 * SIDE * SIDE * SIDE / (seconds > 1e-9 ? seconds : 1e-9);
out:
    ls_device_close(dev);
    return st;
}

ls_status ls_rates_gather(double *out, ls_comm *comm, ls_group group, ls_err *err)
{
    const double ranks = ls_group_size(comm, group);
    double seconds;
    const ls_status st = time_gather(&seconds, comm, group, err);

    if (st == LS_OK)
        *out = GATHERED * (double)sizeof(float) * (ranks - 1) / ranks / (seconds > 1e-9 ? seconds : 1e-9);
    return st;
}
