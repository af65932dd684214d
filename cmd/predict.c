/* predict.c: `lockstep predict`: what a step takes on machines that are not here. */
#include "predict.h"
#include "predict_run.h"

ls_status cli_predict_check(const cli_args *args, ls_err *err)
{
    predict_wish unused;
    ls_status st = LS_OK;

    LS_TRY(predict_forms_check(args, err));
    if (args->calibrate) return predict_calibrate_check(args, err);
    if (args->list) return LS_OK;
    if (args->model == NULL)
        return ls_fail(err, LS_INVALID,
                       "what is to be predicted is missing: `lockstep predict EXPERIMENT --ranks 1,8,64 "
                       "--network NAME`; --list names networks and machines, --calibrate measures this one");
    if (args->json && args->csv) return ls_fail(err, LS_INVALID, "--json and --csv: choose one");
    st = predict_wish_read(&unused, args, err);
out:
    return st;
}

int cli_predict(const cli_args *args)
{
    if (args->calibrate) return predict_calibrate(args);
    return args->list ? predict_list() : predict_ask(args);
}
