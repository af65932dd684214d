/* experiment.c: from a command line to a plan that can be looked at. */
#include "cli.h"

ls_status cli_experiment_configure(cli_experiment *x, const cli_args *args, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(ls_experiment_load(&x->experiment, args->model, args->settings, args->n_settings, err));
    x->trial = x->experiment.trial;
    x->cfg = x->experiment.cfg;
    x->ranks = (int)ls_config_int(x->cfg, "ranks");
    x->name = ls_config_text(x->cfg, "name");
out:
    return st;
}

ls_status cli_experiment_open(cli_experiment *x, const cli_args *args, ls_err *err)
{
    ls_outline_options how = {
        .here = args->ranks_per_node, .threads = args->threads, .untimed = !args->tune, .compares = true};
    ls_status st = LS_OK;

    LS_TRY(cli_experiment_configure(x, args, err));
    LS_TRY(cli_device_check(args, ls_config_text(x->cfg, "device"), err));
    how.ranks = x->ranks;
    LS_TRY(ls_outline_open(&x->outline, x->trial, x->cfg, &how, err));
out:
    return st;
}

void cli_experiment_release(cli_experiment *x)
{
    ls_outline_release(&x->outline);
    ls_experiment_release(&x->experiment);
    *x = (cli_experiment){0};
}
