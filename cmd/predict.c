/* predict.c: `lockstep predict`: what a step takes on machines that are not here. */
#include "predict.h"

ls_status cli_predict_check(const cli_args *args, ls_err *err)
{
    if (args->calibrate) return predict_calibrate_check(args, err);
    return ls_fail(err, LS_INVALID, "--calibrate measures this machine and its network");
}

int cli_predict(const cli_args *args)
{
    return predict_calibrate(args);
}
