/* predict.c: `lockstep predict`: what a step takes on machines that are not here. */
#include "predict.h"
#include "predict_run.h"

/* A calibration is of steps and exchanges. */
static const char *of_runs(const cli_args *a)
{
    return a->until != NULL        ? "--until"
           : a->samples > 0        ? "--samples"
           : a->study.n > 0        ? "--study"
           : a->price > 0          ? "--price"
           : a->budget > 0         ? "--budget"
           : a->deadline != NULL   ? "--deadline"
           : a->memory != NULL     ? "--memory"
           : a->mtbf != NULL       ? "--mtbf"
           : a->checkpoint != NULL ? "--checkpoint"
           : a->restart != NULL    ? "--restart"
                                   : NULL;
}

ls_status cli_predict_check(const cli_args *args, ls_err *err)
{
    const char *other = args->calibrate ? of_runs(args) : NULL;
    predict_wish unused;

    if (other != NULL)
        return ls_fail(err, LS_INVALID, "%s is for predictions, and --calibrate measures: choose one", other);
    if (args->calibrate) return predict_calibrate_check(args, err);
    if (args->list) return LS_OK;
    if (args->model == NULL)
        return ls_fail(err, LS_INVALID,
                       "what is to be predicted is missing: `lockstep predict EXPERIMENT --ranks 1,8,64 "
                       "--network NAME`; --list names networks and machines, --calibrate measures this one");
    if (args->json && args->csv) return ls_fail(err, LS_INVALID, "--json and --csv: choose one");
    return predict_wish_read(&unused, args, err);
}

int cli_predict(const cli_args *args)
{
    if (args->calibrate) return predict_calibrate(args);
    return args->list ? predict_list() : predict_ask(args);
}
