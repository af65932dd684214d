/* eval.c: evaluation of given weights, without training. */
#include <string.h>

#include "train/evaluate.h"
#include "train/init.h"
#include "train/run.h"
#include "train/team.h"

static ls_status open_set(const lsi_run *r, ls_split split, bool labels_optional, ls_dataset **place,
                          ls_err *err)
{
    ls_needs needs = {0};
    ls_status st = LS_OK;

    if (split == LS_SPLIT_VAL && !ls_train_has_val(r->cfg))
        return ls_fail(
            err, LS_INVALID,
            "--split val: the experiment has no validation samples of its own; set data.val_fraction, "
            "data.val_images or data.val_range, or use --split test");
    LS_TRY(ls_needs_find(&needs, r->x->trial, r->cfg, err));
    needs.labels_optional = labels_optional;
    LS_TRY(ls_train_data(r->x, &needs, split, place, err));
out:
    ls_needs_release(&needs);
    return st;
}

static bool has_labels(const ls_dataset *data)
{
    const ls_field *fields;
    const int n = ls_dataset_fields(data, &fields);

    for (int i = 0; i < n; i++)
        if (strcmp(fields[i].name, "label") == 0) return true;
    return false;
}

ls_status lsi_run_open_split(lsi_run *r, ls_split split, bool rows, const ls_dataset **data, ls_err *err)
{
    ls_dataset **place = split == LS_SPLIT_TRAIN ? &r->train : split == LS_SPLIT_VAL ? &r->val : &r->test;
    ls_session_options options;
    ls_status st = LS_OK;

    LS_TRY(ls_team_agree(r->o->comm, r->x, err));
    r->update = ls_update_of_tests(r->cfg, r->o->comm != NULL ? ls_comm_size(r->o->comm) : 1);
    options = ls_update_options(&r->update, r->cfg);
    options.threads = r->o->threads;
    options.comm = r->o->comm;
    /* Compiling may take long: what is missing is said before. */
    LS_TRY(ls_team_fail_once(r->o->comm, open_set(r, split, rows, place, err), "opening the data", err));
    options.evaluates = options.tests_only = true;
    options.sets =
        (ls_run_sets){.test = ls_dataset_count(*place), .single = rows, .skips = ls_session_skips(r->cfg)};
    LS_TRY(ls_session_open(&r->session, r->x->trial, r->cfg, &options, err));
    ls_team_watch(r->o->comm, r->cfg);
    LS_TRY(ls_team_agree_on_plans(r->session.comm, &r->session, err));
    LS_TRY(ls_team_agree_on_data(r->session.comm, (const ls_dataset *[]){r->train, r->test, r->val}, err));
    r->session.unlabelled =
        rows && !has_labels(*place) && ls_plan_input(ls_session_usual(&r->session, 0)->plan, "label") != NULL;
    LS_TRY(ls_session_check_data(&r->session, *place, err));
    *data = *place;
out:
    return st;
}

ls_status ls_train_eval(const ls_experiment *x, const ls_train_options *o, const char *weights,
                        json_t **result, ls_err *err)
{
    lsi_run r = {.x = x, .o = o, .cfg = x->cfg, .saved = -1};
    const ls_dataset *data;
    ls_metric_sums test;
    ls_status st = LS_OK;

    *result = NULL;
    LS_TRY(lsi_run_open_split(&r, LS_SPLIT_TEST, false, &data, err));
    LS_TRY(ls_init_to_evaluate(&r.session, weights, err));
    LS_TRY(ls_evaluate(&r.session, data, NULL, &test, err));
    *result = ls_metrics_json(&test);
    if (*result == NULL || json_object_set_new(*result, "event", json_string("eval")) != 0 ||
        json_object_set_new(*result, "samples", json_integer((json_int_t)test.samples)) != 0)
        st = ls_fail(err, LS_NOMEM, "eval: no memory");
out:
    if (st != LS_OK) lsi_run_tell_others(&r, err);
    lsi_run_release(&r);
    return st;
}
