/* experiment.c: from a command line to a plan that can be looked at. */
#include <stdio.h>

#include "backend/backend.h"
#include "base/parallel.h"
#include "cli.h"
#include "exec/state.h"
#include "train/session.h"

ls_status cli_experiment_configure(cli_experiment *x, const cli_args *args, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(ls_experiment_load(&x->experiment, args->model, args->settings, args->n_settings, err));
    x->trial = x->experiment.trial;
    x->cfg = x->experiment.cfg;
    x->ranks = (int)ls_config_int(x->cfg, "ranks");
    x->name = ls_config_text(x->cfg, "name");
    x->batch = ls_config_int(x->cfg, "batch.per_rank");
out:
    return st;
}

ls_status cli_experiment_open(cli_experiment *x, const cli_args *args, ls_err *err)
{
    ls_strategy how;
    ls_status st = LS_OK;

    LS_TRY(cli_experiment_configure(x, args, err));
    how = ls_session_strategy(x->cfg, x->ranks > 1, ls_update_of(x->cfg, x->ranks).samples, LS_PART_ALL);
    LS_TRY(ls_trial_build_as(&x->step, x->trial, x->cfg,
                             &(ls_build){.mode = LS_TRAIN, .freeze = ls_config_text(x->cfg, "train.freeze")},
                             err));
    LS_TRY(ls_device_open(&x->dev, args->device, args->threads, err));
    ls_parallel_set_wait_policy(x->dev->threads);
    LS_TRY(ls_state_create(&x->state, x->dev, err));
    if (x->ranks > 1) LS_TRY(ls_peers_create_absent(&x->peers, x->ranks, ls_session_shares(x->cfg), err));
    ls_state_set_peers(x->state, x->peers);
    LS_TRY(ls_plan_compile_as(&x->plan, ls_step_graph_take(x->step), &how, x->dev, x->state, err));
out:
    return st;
}

void cli_experiment_release(cli_experiment *x)
{
    ls_plan_destroy(x->plan);
    ls_peers_destroy(x->peers);
    ls_state_destroy(x->state);
    ls_step_destroy(x->step);
    ls_device_close(x->dev);
    ls_experiment_release(&x->experiment);
    *x = (cli_experiment){0};
}
