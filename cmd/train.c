/* train.c: `lockstep train` and `lockstep eval`. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli.h"
#include "train/train.h"

/* How often the user asked to stop: once for a checkpoint and an end, twice for an end now. */
static volatile sig_atomic_t stop_requests;
static ls_last_words last_words; /* what summary.json is to say then */

static void on_signal(int number)
{
    static const char first[] = "\nlockstep: stopping after a checkpoint; once more stops now\n";

    if (stop_requests < 2) stop_requests++;
    if (number == SIGINT && stop_requests == 1 && write(STDERR_FILENO, first, sizeof first - 1) < 0) return;
    if (stop_requests == 2) {
        ls_last_words_write(&last_words);
        signal(number, SIG_DFL);
        raise(number);
    }
}

static void watch_signals(void)
{
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGUSR1, &a, NULL);
}

static ls_train_options options_of(const cli_args *args)
{
    const bool named = args->resume != NULL && args->resume[0] != '\0';

    return (ls_train_options){.device = args->device,
                              .threads = args->threads,
                              .run_dir = named ? args->resume : args->run_dir,
                              .resume = args->resume != NULL,
                              .json = args->json,
                              .quiet = args->quiet,
                              .stop = &stop_requests,
                              .last_words = &last_words};
}

int cli_train(const cli_args *args)
{
    const ls_train_options o = options_of(args);
    ls_experiment x = {0};
    json_t *summary = NULL;
    bool stopped = false;
    ls_err err = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_experiment_load(&x, args->model, args->settings, args->n_settings, &err));
    if (args->dry_run) {
        ls_experiment_write(&x, stdout);
        goto out;
    }
    watch_signals();
    st = ls_train(&x, &o, &summary, &stopped, &err);
    if (args->json && summary != NULL) {
        json_object_set_new(summary, "event", json_string("summary"));
        cli_print_json_take(json_incref(summary));
    }
out:
    json_decref(summary);
    ls_experiment_release(&x);
    if (st != LS_OK) return cli_fail("train", &err);
    return stopped ? CLI_STOPPED : CLI_DONE;
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

int cli_eval(const cli_args *args)
{
    const ls_train_options o = options_of(args);
    char config[PATH_BYTES], checkpoint[PATH_BYTES];
    ls_experiment x = {0};
    json_t *result = NULL;
    const char *name;
    json_t *value;
    ls_err err = {0};
    ls_status st = LS_OK;

    LS_TRY(locate(args->model, config, checkpoint, &err));
    LS_TRY(ls_experiment_load(&x, config, args->settings, args->n_settings, &err));
    LS_TRY(ls_train_eval(&x, &o, checkpoint, &result, &err));
    if (args->json) {
        cli_print_json_take(json_incref(result));
        goto out;
    }
    printf("checkpoint    %s\n", checkpoint);
    json_object_foreach(result, name, value)
    {
        if (json_is_real(value)) printf("%-13s %.6g\n", name, json_real_value(value));
        if (json_is_integer(value)) printf("%-13s %lld\n", name, (long long)json_integer_value(value));
    }
out:
    json_decref(result);
    ls_experiment_release(&x);
    return st == LS_OK ? CLI_DONE : cli_fail("eval", &err);
}
