/* test_run.c: trials train on both devices, at sizes the reference device can bear, and the two agree; and
 * memory that runs out while a step is built is reported, not fatal. */
#include "check.h"
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

/* Every allocation of a small GAN step fails in turn: parameters, scopes, gradients, optimiser, plan. */
static ls_status build_small(void *arg, ls_err *err)
{
    ls_status st = LS_OK;
    ls_step *s = NULL;
    ls_value x, y, loss;

    (void)arg;
    LS_TRY(ls_step_create(&s, 2, LS_TRAIN, err));
    ls_scope_push(s, "D");
    x = ls_input(s, "x", LS_F32, LS_SHAPE(-1, 1, 4, 4));
    ls_input_range(s, "x", 0, 1);
    y = ls_relu(ls_batchnorm(s, ls_conv(s, x, "conv", .out = 2, .kernel = 3, .pad = 1), "bn"));
    y = ls_linear(s, ls_drop(s, ls_flatten(y), "drop", 0.5), "fc", .out = 1);
    ls_scope_pop(s);
    loss = ls_reduce_mean(ls_square(y), LS_ALL_AXES, false);
    ls_minimise(s, loss, "D.*", (ls_optimiser){.rule = LS_ADAM, .lr = 0.1});
    ls_metric(s, "loss", loss);
    LS_TRY(ls_step_status(s, err));
out:
    ls_step_destroy(s);
    return st;
}

static void memory_may_run_out(void)
{
    check_faults("building a step", build_small, NULL);
}

int main(void)
{
    CHECK_RUN(devices_agree);
    CHECK_RUN(memory_may_run_out);
    return CHECK_DONE();
}
