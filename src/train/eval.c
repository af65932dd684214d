/* eval.c: evaluation of given weights, without training. */
#include "train/evaluate.h"
#include "train/init.h"
#include "train/run.h"

ls_status ls_train_eval(const ls_experiment *x, const ls_train_options *o, const char *weights,
                        json_t **result, ls_err *err)
{
    lsi_run r = {.x = x, .o = o, .cfg = x->cfg, .saved = -1};
    ls_metric_sums test;
    ls_status st = LS_OK;

    *result = NULL;
    LS_TRY(lsi_run_open_data(&r, err));
    LS_TRY(ls_init_to_evaluate(&r.session, weights, err));
    LS_TRY(ls_evaluate(&r.session, r.test, NULL, &test, err));
    *result = ls_metrics_json(&test);
    if (*result == NULL || json_object_set_new(*result, "event", json_string("eval")) != 0 ||
        json_object_set_new(*result, "samples", json_integer((json_int_t)test.samples)) != 0)
        st = ls_fail(err, LS_NOMEM, "eval: no memory");
out:
    if (st != LS_OK) lsi_run_tell_others(&r, err);
    lsi_run_release(&r);
    return st;
}
