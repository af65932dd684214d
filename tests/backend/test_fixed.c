/* test_fixed.c: a device whose kernels follow from the problem alone chooses them by the size of maps, and
 * whatever other runs have timed and remembered changes nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/conv.h"
#include "check.h"
#include "exec/plan_internal.h"
#include "lockstep/nn.h"

enum { CONVS = 16 };

typedef struct choices {
    int n;
    const char *impl[CONVS];
    int64_t pixels[CONVS]; /* of the convolution's result */
} choices;

/* ResNet's kinds of convolutions, forward and backward, on maps of `size`. */
static void build(ls_step *s, int64_t size)
{
    ls_value x = ls_input(s, "x", LS_F32, LS_SHAPE(-1, 64, size, size));

    x = ls_relu(ls_conv(s, x, "a", .out = 64, .kernel = 3, .pad = 1));
    x = ls_relu(ls_conv(s, x, "b", .out = 64, .kernel = 3, .pad = 1));
    ls_minimise(s, ls_reduce_mean(ls_square(x), LS_ALL_AXES, false), "*", (ls_optimiser){.lr = 0.1});
}

static choices plan(int64_t size, bool fixed)
{
    choices c = {0};
    ls_device *dev = NULL;
    ls_state *state = NULL;
    ls_plan *p = NULL;
    ls_step *s = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_device_open(&dev, "cpu", 1, &err), &err);
    dev->fixed = fixed;
    REQUIRE_OK(ls_state_create(&state, dev, &err), &err);
    REQUIRE_OK(ls_step_create(&s, 4, LS_TRAIN, &err), &err);
    build(s, size);
    REQUIRE_OK(ls_plan_compile_take(&p, ls_step_graph_take(s), dev, state, &err), &err);
    for (int i = 0; i < ls_plan_node_count(p) && c.n < CONVS; i++) {
        if (strncmp(p->steps[i].node->op->name, "conv2d", 6) != 0) continue;
        c.pixels[c.n] = size * size;
        c.impl[c.n++] = p->steps[i].kernel.impl; /* names outlive the plan */
    }
    ls_plan_destroy(p);
    ls_step_destroy(s);
    ls_state_destroy(state);
    ls_device_close(dev);
    return c;
}

static int64_t good_from(const char *impl)
{
    for (int i = 0; lsi_conv_impls[i] != NULL; i++)
        if (strcmp(lsi_conv_impls[i]->name, impl) == 0) return lsi_conv_impls[i]->good_from;
    return 0;
}

static void small_maps_get_kernels_for_small_maps(void)
{
    static const int64_t sizes[] = {1, 2, 4, 8, 16};
    bool some = false;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const choices c = plan(sizes[i], true);
        CHECK(c.n >= 4);
        for (int k = 0; k < c.n; k++) {
            some = some || good_from(c.impl[k]) > 1;
            if (!CHECK(good_from(c.impl[k]) <= c.pixels[k]))
                printf("  %s for a map of %lld pixels\n", c.impl[k], (long long)c.pixels[k]);
        }
    }
    CHECK(some); /* else the rule would have nothing to decide */
}

static void what_was_timed_does_not_count(void)
{
    const choices before = plan(2, true), timed = plan(2, false), after = plan(2, true);

    CHECK(timed.n == before.n && after.n == before.n);
    for (int k = 0; k < before.n && k < after.n; k++)
        if (!CHECK(strcmp(before.impl[k], after.impl[k]) == 0))
            printf("  %s, then %s\n", before.impl[k], after.impl[k]);
}

int main(void)
{
    CHECK_RUN(small_maps_get_kernels_for_small_maps);
    CHECK_RUN(what_was_timed_does_not_count);
    return CHECK_DONE();
}
