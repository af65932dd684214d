/* eval.c: `lockstep eval`: the test pass alone. */
#include <stdio.h>

#include "cli.h"

/* What all ranks know. */
typedef struct job {
    const cli_args *args;
    const cli_ranks *ranks;
    const char *weights;
} job;

static void print_result(const json_t *result, const char *weights)
{
    const char *name;
    json_t *value;

    printf("checkpoint    %s\n", weights);
    json_object_foreach((json_t *)result, name, value)
    {
        if (json_is_real(value)) printf("%-13s %.6g\n", name, json_real_value(value));
        if (json_is_null(value)) printf("%-13s nan\n", name); /* JSON has no such number */
        if (json_is_integer(value)) printf("%-13s %lld\n", name, (long long)json_integer_value(value));
    }
}

/* Every rank computes its share, and all know the sums: one says them. */
static int eval_rank(const ls_place *place, ls_comm *comm, void *arg)
{
    const job *j = arg;
    const ls_train_options o = cli_train_options(j->args, place, comm);
    json_t *result = NULL;
    ls_err err = {0};
    ls_status st = ls_train_eval(&j->ranks->experiment, &o, j->weights, &result, &err);

    if (st == LS_OK && place->rank == 0) {
        if (j->args->json)
            cli_print_json_take(json_incref(result));
        else
            print_result(result, j->weights);
    }
    json_decref(result);
    return st == LS_OK ? CLI_DONE : cli_fail_in_rank("eval", place, &err);
}

int cli_eval(const cli_args *args)
{
    cli_weights located;
    cli_ranks ranks = {0};
    job j = {.args = args, .ranks = &ranks, .weights = located.weights};
    ls_err err = {0};
    ls_status st = LS_OK;
    int code = CLI_DONE;

    LS_TRY(cli_weights_open(args, &located, &ranks, &err));
    code = cli_ranks_run(&ranks, "eval", eval_rank, &j);
out:
    cli_ranks_release(&ranks);
    return st == LS_OK ? code : cli_fail("eval", &err);
}
