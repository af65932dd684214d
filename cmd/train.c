/* train.c: `lockstep train` and `lockstep eval`. */
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "cli.h"
#include "train/rundir.h"
#include "train/train.h"

/* What all ranks of a run know. */
typedef struct job {
    const cli_args *args;
    const cli_ranks *ranks;
    const char *checkpoint; /* of eval */
} job;

static ls_last_words last_words; /* what summary.json is to say when the program is ended at once */

static void write_last_words(void)
{
    ls_last_words_write(&last_words);
}

static ls_train_options options_of(const cli_args *args, const ls_place *place, ls_comm *comm)
{
    const bool named = args->resume != NULL && args->resume[0] != '\0';

    return (ls_train_options){.device = args->device,
                              .threads = place->threads,
                              .run_dir = named ? args->resume : args->run_dir,
                              .resume = args->resume != NULL,
                              .json = args->json,
                              .quiet = args->quiet,
                              .comm = comm,
                              .stop = ls_launch_stop_requests(),
                              .last_words = &last_words};
}

/* One rank of a training run: the place where launcher and trainer meet. */
static int train_rank(const ls_place *place, ls_comm *comm, void *arg)
{
    const job *j = arg;
    const ls_train_options o = options_of(j->args, place, comm);
    json_t *summary = NULL;
    bool stopped = false;
    ls_err err = {0};
    ls_status st;

    ls_launch_watch_signals(write_last_words);
    st = ls_train(&j->ranks->experiment, &o, &summary, &stopped, &err);
    if (j->args->json && summary != NULL && place->rank == 0) {
        json_object_set_new(summary, "event", json_string("summary"));
        cli_print_json_take(json_incref(summary));
    }
    json_decref(summary);
    if (st != LS_OK) return cli_fail_in_rank("train", place, &err);
    return stopped ? CLI_STOPPED : CLI_DONE;
}

/* A rank can only be started again by somebody who is left: one rank gets a launcher, too. */
static void watch_over(cli_ranks *ranks)
{
    if (ranks->start.kind == LS_START_ALONE) ranks->start.kind = LS_START_LOCAL;
    if (ranks->start.kind != LS_START_LOCAL)
        ls_log(LS_LOG_WARN,
               "max_restarts has no effect with ranks that %s started; start the run again with --resume",
               ranks->start.place.how);
}

/* Trains; after the loss of a rank again, from the last checkpoint if there is one. */
static int train_on(const cli_args *args, cli_ranks *ranks)
{
    const int64_t restarts = ls_config_int(ranks->experiment.cfg, "max_restarts");
    cli_args now = *args;
    job j = {.args = &now, .ranks = ranks};
    ls_rundir dir;
    int code;

    if (restarts > 0) {
        watch_over(ranks);
        if (now.run_dir == NULL && now.resume == NULL) {
            ls_rundir_name(&dir, ls_config_text(ranks->experiment.cfg, "name"));
            now.run_dir = dir.path;
        }
    }
    code = cli_ranks_run(ranks, "train", train_rank, &j);
    for (int64_t k = 1; code == LS_EXIT_LOST && k <= restarts && ranks->start.kind == LS_START_LOCAL; k++) {
        char last[LS_PATH_MAX + 64] = "";
        if (now.resume == NULL && now.run_dir != NULL)
            snprintf(last, sizeof last, "%s/checkpoints/last/manifest.json", now.run_dir);
        if (last[0] != '\0' && access(last, R_OK) == 0) now.resume = now.run_dir;
        ls_log(LS_LOG_WARN, "restart %lld of %lld, from the %s", (long long)k, (long long)restarts,
               now.resume != NULL ? "last checkpoint" : "beginning: there is no checkpoint yet");
        code = cli_ranks_run(ranks, "train", train_rank, &j);
    }
    return code;
}

int cli_train(const cli_args *args)
{
    cli_ranks ranks;
    ls_err err = {0};
    int code = CLI_DONE;

    if (cli_ranks_open(&ranks, args->model, true, args, &err) != LS_OK)
        code = cli_fail("train", &err);
    else if (args->dry_run)
        ls_experiment_write(&ranks.experiment, stdout);
    else
        code = train_on(args, &ranks);
    cli_ranks_release(&ranks);
    return code;
}

/* -- eval
 * -------------------------------------------------------------------------------------------------------- */

enum { PATH_BYTES = 4096 };

static bool exists(const char *folder, const char *name, char path[PATH_BYTES])
{
    return snprintf(path, PATH_BYTES, "%s/%s", folder, name) < PATH_BYTES && access(path, R_OK) == 0;
}

/* The experiment and the checkpoint that RUN or CHECKPOINT means. */
static ls_status locate(const char *given, char config[PATH_BYTES], char checkpoint[PATH_BYTES], ls_err *err)
{
    char manifest[PATH_BYTES];

    if (exists(given, "config.yaml", config)) {
        if (exists(given, "checkpoints/best", checkpoint) || exists(given, "checkpoints/last", checkpoint))
            return LS_OK;
        return ls_fail(err, LS_INVALID, "%s has no checkpoint yet", given);
    }
    if (exists(given, "manifest.json", manifest) && exists(given, "../../config.yaml", config)) {
        snprintf(checkpoint, PATH_BYTES, "%s", given);
        return LS_OK;
    }
    return ls_fail(err, LS_INVALID, "%s is neither a run directory nor a checkpoint of one", given);
}

static void print_result(const json_t *result, const char *checkpoint)
{
    const char *name;
    json_t *value;

    printf("checkpoint    %s\n", checkpoint);
    json_object_foreach((json_t *)result, name, value)
    {
        if (json_is_real(value)) printf("%-13s %.6g\n", name, json_real_value(value));
        if (json_is_integer(value)) printf("%-13s %lld\n", name, (long long)json_integer_value(value));
    }
}

static int eval_rank(const ls_place *place, ls_comm *comm, void *arg)
{
    const job *j = arg;
    const ls_train_options o = options_of(j->args, place, comm);
    json_t *result = NULL;
    ls_err err = {0};
    ls_status st = ls_train_eval(&j->ranks->experiment, &o, j->checkpoint, &result, &err);

    if (st == LS_OK && place->rank == 0) {
        if (j->args->json)
            cli_print_json_take(json_incref(result));
        else
            print_result(result, j->checkpoint);
    }
    json_decref(result);
    return st == LS_OK ? CLI_DONE : cli_fail_in_rank("eval", place, &err);
}

int cli_eval(const cli_args *args)
{
    char config[PATH_BYTES], checkpoint[PATH_BYTES];
    cli_ranks ranks = {0};
    job j = {.args = args, .ranks = &ranks, .checkpoint = checkpoint};
    ls_err err = {0};
    ls_status st = LS_OK;
    int code = CLI_DONE;

    LS_TRY(locate(args->model, config, checkpoint, &err));
    /* A run of four ranks may be evaluated by one.  Machines share the run's number unless told theirs. */
    LS_TRY(cli_ranks_open(&ranks, config, args->ranks > 0 || args->nodes > 0, args, &err));
    code = cli_ranks_run(&ranks, "eval", eval_rank, &j);
out:
    cli_ranks_release(&ranks);
    return st == LS_OK ? code : cli_fail("eval", &err);
}
