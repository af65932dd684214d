/* test_kernel_times.c: kernels of plans that have no memory are timed, those that are alike once, and what
 * cannot be timed goes by rates. */
#include <stdio.h>
#include <stdlib.h>

#include "backend/backend.h"
#include "check.h"
#include "exec/kernel_times.h"
#include "graph/graph.h"
#include "ops/ops.h"

static const ls_machine_rates rates = {.flops = 1e9, .bytes = 1e9};

typedef struct fixture {
    ls_device *dev;
    ls_state *state;
    ls_kernel_times *times;
} fixture;

static void open_fixture(fixture *f, const char *device)
{
    ls_err err = {0};

    REQUIRE_OK(ls_device_open(&f->dev, device, 1, &err), &err);
    f->dev->unbacked = true;
    REQUIRE_OK(ls_state_create(&f->state, f->dev, &err), &err);
    REQUIRE_OK(ls_kernel_times_create(&f->times, rates, &err), &err);
}

static void close_fixture(fixture *f)
{
    ls_kernel_times_destroy(f->times);
    ls_state_destroy(f->state);
    ls_device_close(f->dev);
}

/* Seconds of a plan with so many equal products, and a sum of each. */
static double products(const fixture *f, int n, int64_t side, ls_dtype type)
{
    ls_graph *g;
    ls_plan *p = NULL;
    ls_err err = {0};
    double seconds = -1;

    REQUIRE_OK(ls_graph_create(&g, &err), &err);
    const ls_value x = ls_graph_input(g, "x", type, LS_SHAPE(side, side));
    for (int i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s.%lld.%d", ls_dtype_name(type), (long long)side, i);
        const ls_value w =
            ls_graph_var(g, name, LS_VAR_PARAM, type, LS_SHAPE(side, side), (ls_init){LS_INIT_CONST, 1});
        snprintf(name, sizeof name, "s%d", i);
        ls_graph_fetch(ls_reduce_sum(ls_matmul(x, w, false, false), LS_ALL_AXES, false), name);
    }
    REQUIRE_OK(ls_plan_compile_take(&p, g, f->dev, f->state, &err), &err);
    REQUIRE_OK(ls_kernel_times_of(f->times, p, &seconds, &err), &err);
    ls_plan_destroy(p);
    return seconds;
}

/* A clock would never say exactly twice as long. */
static void what_is_alike_is_timed_once(void)
{
    static const char *const devices[] = {"ref", "cpu"};

    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        fixture f;
        open_fixture(&f, devices[i]);
        const double one = products(&f, 1, 64, LS_F32);
        CHECK(one > 0);
        CHECK_NEAR(products(&f, 2, 64, LS_F32), 2 * one, 1e-12);
        CHECK_NEAR(products(&f, 5, 64, LS_F32), 5 * one, 1e-12);
        CHECK(products(&f, 1, 64, LS_BF16) > 0);
        CHECK(products(&f, 1, 128, LS_F32) != one);
        close_fixture(&f);
    }
}

/* Tensors that would take gigabytes are not made; labels, which are places in a row, are not made up. */
static void the_rest_goes_by_rates(void)
{
    const int64_t side = 1 << 14;
    const double flops = 2.0 * (double)side * (double)side * (double)side,
                 bytes = 4.0 * ((double)side * (double)side + 1);
    fixture f;
    ls_graph *g;
    ls_plan *p = NULL;
    ls_err err = {0};
    double seconds;

    open_fixture(&f, "cpu");
    CHECK_NEAR(products(&f, 1, side, LS_F32) / (flops / rates.flops + bytes / rates.bytes), 1, 1e-6);
    REQUIRE_OK(ls_graph_create(&g, &err), &err);
    const ls_value x = ls_graph_input(g, "rows", LS_F32, LS_SHAPE(10, 16)),
                   at = ls_graph_input(g, "at", LS_I32, LS_SHAPE(5));
    ls_graph_fetch(ls_gather_rows(x, at), "picked");
    REQUIRE_OK(ls_plan_compile_take(&p, g, f.dev, f.state, &err), &err);
    REQUIRE_OK(ls_kernel_times_of(f.times, p, &seconds, &err), &err);
    CHECK_NEAR(seconds, 4.0 * (160 + 5 + 80) / rates.bytes, 1e-12);
    ls_plan_destroy(p);
    close_fixture(&f);
}

int main(void)
{
    REQUIRE(setenv("LOCKSTEP_TUNE", "off", 1) == 0);
    CHECK_RUN(what_is_alike_is_timed_once);
    CHECK_RUN(the_rest_goes_by_rates);
    return CHECK_DONE();
}
