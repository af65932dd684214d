/* infer.c: `lockstep infer`: the outputs of every sample, and for classifiers the classes counted. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli.h"
#include "train/confusion.h"
#include "train/infer.h"

/* What all ranks know. */
typedef struct job {
    const cli_args *args;
    const cli_ranks *ranks;
    const cli_weights *located;
    ls_infer_options how;
    const char *split;
} job;

static ls_status split_of(const char *name, ls_split *out, ls_err *err)
{
    static const char *const names[] = {
        [LS_SPLIT_TRAIN] = "train", [LS_SPLIT_TEST] = "test", [LS_SPLIT_VAL] = "val"};

    for (int i = 0; i < 3; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (ls_split)i;
            return LS_OK;
        }
    return ls_fail(err, LS_INVALID, "--split %s: there are train, val and test", name);
}

static void print_metrics(const json_t *result)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)result, name, value) if (json_is_real(value))
        printf("%-13s %.6g\n", name, json_real_value(value));
}

static void print_result(const job *j, const json_t *result)
{
    const json_t *classes = json_object_get(result, "classification");
    ls_text text = {0};
    ls_err err = {0};

    printf("weights       %s\n", j->located->weights);
    printf("samples       %lld (%s)\n", (long long)json_integer_value(json_object_get(result, "samples")),
           j->split);
    print_metrics(result);
    if (json_is_false(json_object_get(result, "labels")))
        printf("labels        none in the data: no accuracy is computed\n");
    if (classes != NULL && ls_confusion_text(classes, &text, &err) == LS_OK) printf("\n%s", text.data);
    if (j->how.out != NULL) printf("%soutputs       %s\n", classes != NULL ? "\n" : "", j->how.out);
    ls_text_release(&text);
}

static void finish_json(const job *j, json_t *result)
{
    json_object_set_new(result, "event", json_string("infer"));
    json_object_set_new(result, "weights", json_string(j->located->weights));
    json_object_set_new(result, "split", json_string(j->split));
    json_object_set_new(result, "out", j->how.out != NULL ? json_string(j->how.out) : json_null());
}

/* What the report of the run shows: its own test samples, as it has them. */
static void keep_for_report(const job *j, const json_t *result)
{
    const int given = j->args->n_settings - (j->args->ranks > 0 ? 1 : 0) - (j->args->device != NULL ? 1 : 0);
    const json_t *classes = json_object_get(result, "classification");
    json_t *o;
    ls_err err = {0};

    if (j->located->run[0] == '\0' || classes == NULL || j->how.split != LS_SPLIT_TEST || given > 0 ||
        j->args->experiment != NULL)
        return;
    o = json_deep_copy(classes);
    if (o == NULL) return;
    cli_weights_describe(j->located, o);
    if (ls_confusion_write(o, j->located->run, &err) != LS_OK) ls_log(LS_LOG_WARN, "%s", err.text);
    json_decref(o);
}

static int infer_rank(const ls_place *place, ls_comm *comm, void *arg)
{
    const job *j = arg;
    const ls_train_options o = cli_train_options(j->args, place, comm);
    json_t *result = NULL;
    ls_err err = {0};
    const ls_status st = ls_train_infer(&j->ranks->experiment, &o, &j->how, &result, &err);

    /* Rank 0 alone has one: it gathered what the others computed. */
    if (result != NULL) {
        finish_json(j, result);
        keep_for_report(j, result);
        if (j->args->json)
            cli_print_json_take(json_incref(result));
        else
            print_result(j, result);
    }
    json_decref(result);
    return st == LS_OK ? CLI_DONE : cli_fail_in_rank("infer", place, &err);
}

int cli_infer(const cli_args *args)
{
    cli_weights located;
    cli_ranks ranks = {0};
    job j = {.args = args,
             .ranks = &ranks,
             .located = &located,
             .how = {.out = args->out, .output = args->output, .probabilities = args->probabilities},
             .split = args->split != NULL ? args->split : "test"};
    ls_err err = {0};
    ls_status st = LS_OK;
    int code = CLI_DONE;

    LS_TRY(split_of(j.split, &j.how.split, &err));
    LS_TRY(ls_infer_check(&j.how, &err));
    LS_TRY(cli_weights_open(args, &located, &ranks, &err));
    j.how.weights = located.weights;
    code = cli_ranks_run(&ranks, "infer", infer_rank, &j);
out:
    cli_ranks_release(&ranks);
    return st == LS_OK ? code : cli_fail("infer", &err);
}
