/* test_run.c: trials train on both devices, at sizes the reference device can bear, and the two agree; and
 * memory that runs out while a step is built, compiled or run is reported, not fatal. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "check.h"
#include "exec/compile.h"
#include "exec/peers.h"
#include "exec/state.h"
#include "faults.h"
#include "lockstep/nn.h"
#include "nn_train.h"

static const nn_train_case cases[] = {
    {"mnist", {"batch.per_rank=4"}, 1e-4},
    {"vit-tiny", {"batch.per_rank=2"}, 1e-3},
    {"dcgan-d", {"batch.per_rank=2", "model.size=16", "model.width=16"}, 1e-3},
    {"dcgan-g", {"batch.per_rank=1", "model.size=16", "model.width=16"}, 1e-3},
    {"cosmogan", {"batch.per_rank=1", "model.size=16", "model.width=16"}, 1e-2},
    {"wgan-gp", {"batch.per_rank=4"}, 1e-3},
    {"aae", {"batch.per_rank=1", "model.points=24"}, 1e-3},
};

static void devices_agree(void)
{
    nn_devices_agree(cases, sizeof cases / sizeof cases[0]);
}

/* -- no memory --------------------------------------------------------------------------------------------
 */

/* Parameters, scopes, gradients, optimiser of a small GAN step; the second convolution is one for oneDNN. */
static ls_status build_small(ls_step **out, ls_err *err)
{
    ls_status st = LS_OK;
    ls_step *s = NULL;
    ls_value x, y, loss;

    LS_TRY(ls_step_create(&s, 2, LS_TRAIN, err));
    ls_scope_push(s, "D");
    x = ls_input(s, "x", LS_F32, LS_SHAPE(-1, 1, 6, 6));
    ls_input_range(s, "x", 0, 1);
    y = ls_relu(ls_batchnorm(s, ls_conv(s, x, "conv", .out = 16, .kernel = 3, .pad = 1), "bn"));
    y = ls_conv(s, y, "large", .out = 16, .kernel = 5, .pad = 2);
    y = ls_linear(s, ls_drop(s, ls_flatten(y), "drop", 0.5), "fc", .out = 1);
    ls_scope_pop(s);
    loss = ls_reduce_mean(ls_square(y), LS_ALL_AXES, false);
    ls_minimise(s, loss, "D.*", (ls_optimiser){.rule = LS_ADAM, .lr = 0.1});
    ls_metric(s, "loss", loss);
    LS_TRY(ls_step_status(s, err));
    *out = s;
    s = NULL;
out:
    ls_step_destroy(s);
    return st;
}

static ls_status build_alone(void *arg, ls_err *err)
{
    ls_step *s = NULL;
    ls_status st = build_small(&s, err);

    (void)arg;
    ls_step_destroy(s);
    return st;
}

typedef struct way {
    const char *name, *device, *tune; /* of LOCKSTEP_TUNE; NULL: kernels are chosen by timing */
    int ranks;                        /* more than 1: of which the others are not there, so nothing runs */
    bool share;
} way;

/* From nothing to a step that has run: kernels, memory, exchanges, variables. */
static ls_status compile_and_run(void *arg, ls_err *err)
{
    const way *w = arg;
    const ls_strategy how = {
        .ranks = w->ranks > 1, .share_from = w->share ? 1 : INT64_MAX, .bucket_bytes = 256};
    ls_status st = LS_OK;
    ls_device *dev = NULL;
    ls_state *state = NULL;
    ls_peers *peers = NULL;
    ls_step *s = NULL;
    ls_plan *plan = NULL;
    double loss;

    LS_TRY(build_small(&s, err));
    LS_TRY(ls_device_open(&dev, w->device, 1, err));
    LS_TRY(ls_state_create(&state, dev, err));
    if (w->ranks > 1)
        LS_TRY(ls_peers_create_absent(&peers, w->ranks, 0, &(ls_peers_options){.share = w->share}, err));
    ls_state_set_peers(state, peers);
    LS_TRY(ls_plan_compile_as(&plan, ls_step_graph_take(s), &how, dev, state, err));
    if (w->ranks > 1) goto out;
    LS_TRY(ls_state_init(state, 5, err));
    ls_step_write_defaults(s, plan);
    ls_step_write_synthetic(s, plan, 5);
    ls_step_write_rng(plan, 5, 0, 0);
    LS_TRY(ls_plan_run(plan, err));
    LS_TRY(ls_tensor_read_scalar(ls_plan_fetch(plan, "loss"), &loss, err));
    CHECK(isfinite(loss));
out:
    ls_plan_destroy(plan);
    ls_peers_destroy(peers);
    ls_state_destroy(state);
    ls_step_destroy(s);
    ls_device_close(dev);
    return st;
}

static void memory_may_run_out(void)
{
    static const way ways[] = {{"ref", "ref", "off", 1, false},
                               {"cpu", "cpu", "off", 1, false},
                               {"cpu, kernels by timing", "cpu", NULL, 1, false},
                               {"3 ranks", "cpu", "off", 3, false},
                               {"3 ranks that share variables", "cpu", "off", 3, true}};

    check_faults("building a step", build_alone, NULL);
    REQUIRE(setenv("LOCKSTEP_CACHE", "/dev/null/nowhere", 1) ==
            0); /* timed anew by each, remembered by none */
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        if (ways[i].tune != NULL)
            REQUIRE(setenv("LOCKSTEP_TUNE", ways[i].tune, 1) == 0);
        else
            REQUIRE(unsetenv("LOCKSTEP_TUNE") == 0);
        check_faults(ways[i].name, compile_and_run, (void *)(uintptr_t)&ways[i]);
    }
}

/* Variables that ranks share need all of them: the one that is gone is the error, not the memory. */
static void a_lost_rank_is_no_lack_of_memory(void)
{
    const ls_strategy how = {.ranks = true, .share_from = 1};
    ls_comm *comm[2] = {NULL};
    ls_device *dev = NULL;
    ls_state *state = NULL;
    ls_peers *peers = NULL;
    ls_step *s = NULL;
    ls_plan *plan = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_comm_open_threads(comm, 2, &err), &err);
    REQUIRE_OK(build_small(&s, &err), &err);
    REQUIRE_OK(ls_device_open(&dev, "cpu", 1, &err), &err);
    REQUIRE_OK(ls_state_create(&state, dev, &err), &err);
    REQUIRE_OK(ls_peers_create(&peers, comm[0], &(ls_peers_options){.share = true}, &err), &err);
    ls_state_set_peers(state, peers);
    ls_comm_abort(comm[1], "it was told to");
    CHECK_STATUS(ls_plan_compile_as(&plan, ls_step_graph_take(s), &how, dev, state, &err), LS_LOST, &err);
    CHECK_CONTAINS(err.text, "it was told to");
    CHECK_CONTAINS(err.text, "variable \"D.conv.weight\"");
    ls_plan_destroy(plan);
    ls_peers_destroy(peers);
    ls_state_destroy(state);
    ls_step_destroy(s);
    ls_device_close(dev);
    ls_comm_close(comm[0]);
    ls_comm_close(comm[1]);
}

int main(void)
{
    CHECK_RUN(devices_agree);
    CHECK_RUN(memory_may_run_out);
    CHECK_RUN(a_lost_rank_is_no_lack_of_memory);
    return CHECK_DONE();
}
