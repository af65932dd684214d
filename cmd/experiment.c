/* experiment.c: from a command line to a plan that is ready to run. */
#include <stdio.h>

#include "backend/backend.h"
#include "base/parallel.h"
#include "cli.h"

ls_status cli_experiment_configure(cli_experiment *x, const cli_args *args, ls_err *err)
{
    ls_status st = LS_OK;
    int64_t ranks;

    LS_TRY(ls_experiment_load(&x->experiment, args->model, args->settings, args->n_settings, err));
    x->trial = x->experiment.trial;
    x->cfg = x->experiment.cfg;
    ranks = ls_config_int(x->cfg, "ranks");
    if (ranks > 1) {
        st = ls_fail(err, LS_INVALID, "ranks: %lld: this version runs on one rank only", (long long)ranks);
        goto out;
    }
    x->name = ls_config_text(x->cfg, "name");
    x->batch = ls_config_int(x->cfg, "batch.per_rank");
    x->seed = (uint64_t)ls_config_int(x->cfg, "seed");
out:
    return st;
}

ls_status cli_experiment_open(cli_experiment *x, const cli_args *args, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(cli_experiment_configure(x, args, err));
    LS_TRY(ls_trial_build(&x->step, x->trial, x->cfg, LS_TRAIN, err));
    LS_TRY(ls_device_open(&x->dev, args->device, args->threads, err));
    x->threads = x->dev->threads;
    ls_parallel_set_wait_policy(x->threads);
    LS_TRY(ls_state_create(&x->state, x->dev, err));
    LS_TRY(ls_plan_compile_take(&x->plan, ls_step_graph_take(x->step), x->dev, x->state, err));
out:
    return st;
}

void cli_experiment_release(cli_experiment *x)
{
    ls_plan_destroy(x->plan);
    ls_state_destroy(x->state);
    ls_step_destroy(x->step);
    ls_device_close(x->dev);
    ls_experiment_release(&x->experiment);
    *x = (cli_experiment){0};
}
