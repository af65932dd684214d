/* test_run_slow.c: the larger trials train on both devices, and the two agree. */
#include "check.h"
#include "nn_train.h"

static const nn_train_case cases[] = {
    {"mnist-keras", {"batch.per_rank=2"}, 1e-3},
    /* Batch norm over few values makes rounding grow: a batch of 8, and small steps. */
    {"resnet18-cifar", {"batch.per_rank=8", "optimizer.name=sgd"}, 2e-3},
    {"cyclegan", {"model.size=32", "model.blocks=1", "model.width=16"}, 1e-3},
    {"cyclegan-g", {"model.size=32", "model.blocks=1", "model.width=16"}, 1e-3},
};

static void devices_agree(void)
{
    nn_devices_agree(cases, sizeof cases / sizeof cases[0]);
}

int main(void)
{
    CHECK_RUN(devices_agree);
    return CHECK_DONE();
}
