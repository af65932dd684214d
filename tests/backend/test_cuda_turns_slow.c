/* test_cuda_turns_slow.c: matrices with more rows than a grid's second dimension has tiles are transposed,
 * both ways.  Skipped without a GPU; LS_TEST_DEVICE names another device. */
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "lockstep/plan.h"
#include "ops/ops.h"
#include "tensors.h"

enum { LONG = 2200000, SHORT = 8 };

static const char *device(void)
{
    const char *given = getenv("LS_TEST_DEVICE");

    return given != NULL ? given : "cuda";
}

/* Differs between neighbours in both directions. */
static float number(int64_t row, int64_t column)
{
    return (float)((row * 7 + column * 131) % 8191);
}

static ls_plan *plan_turn(int64_t rows, int64_t columns, ls_device *dev, ls_state *state)
{
    ls_plan *plan = NULL;
    ls_graph *g = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_graph_create(&g, &err), &err);
    ls_graph_fetch(ls_transpose(ls_graph_input(g, "x", LS_F32, LS_SHAPE(rows, columns)), (const int[]){1, 0}),
                   "y");
    REQUIRE_OK(ls_plan_compile_take(&plan, g, dev, state, &err), &err);
    return plan;
}

static void turn(int64_t rows, int64_t columns)
{
    const size_t bytes = sizeof(float) * (size_t)(rows * columns);
    float *x = malloc(bytes), *y = calloc(1, bytes);
    ls_device *dev = NULL;
    ls_state *state = NULL;
    ls_plan *plan;
    ls_err err = {0};
    int64_t wrong = 0;

    REQUIRE(x != NULL && y != NULL);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) x[i * columns + j] = number(i, j);
    REQUIRE_OK(ls_device_open(&dev, device(), 1, &err), &err);
    REQUIRE_OK(ls_state_create(&state, dev, &err), &err);
    plan = plan_turn(rows, columns, dev, state);
    ls_plan_write_input(plan, "x", 0, x, bytes);
    run_plan(plan);
    tensor_read(ls_plan_fetch(plan, "y"), y, bytes);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) wrong += y[j * rows + i] != number(i, j);
    CHECK_EQ_INT(wrong, 0);
    ls_plan_destroy(plan);
    ls_state_destroy(state);
    ls_device_close(dev);
    free(x);
    free(y);
}

static void long_matrices(void)
{
    turn(SHORT, LONG);
    turn(LONG, SHORT);
    turn(LONG, 5);
}

int main(void)
{
    ls_device *dev = NULL;
    ls_err err = {0};

    if (ls_device_open(&dev, device(), 1, &err) != LS_OK) {
        printf("skipped: %s\n", err.text);
        return 77;
    }
    ls_device_close(dev);
    CHECK_RUN(long_matrices);
    return CHECK_DONE();
}
