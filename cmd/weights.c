/* weights.c: what commands mean that work with given weights: RUN, CHECKPOINT or FILE.safetensors. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/ckpt.h"
#include "cli.h"
#include "runs/manage.h"
#include "runs/reader.h"

/* The value of a setting on the command line; NULL: it is not there. */
static const char *setting_of(const cli_args *args, const char *key)
{
    const size_t n = strlen(key);

    for (int i = args->n_settings - 1; i >= 0; i--)
        if (strncmp(args->settings[i], key, n) == 0 && args->settings[i][n] == '=')
            return args->settings[i] + n + 1;
    return NULL;
}

/* A file of weights says neither what model they are of nor which data they are for. */
static ls_status locate_file(const cli_args *args, cli_weights *w, ls_err *err)
{
    const char *model = args->experiment != NULL ? args->experiment : setting_of(args, "model.trial");

    if (model == NULL)
        return ls_fail(
            err, LS_INVALID,
            "%s holds weights alone: of which model?  Add --experiment NAME, or model.trial=NAME (`lockstep "
            "info` lists the models) and the data: data.kind=..., data.path=...",
            args->model);
    if (args->experiment == NULL && setting_of(args, "data.kind") == NULL && setting_of(args, "data") == NULL)
        return ls_fail(
            err, LS_INVALID,
            "%s: on which data?  Add data.kind=idx|cifar|npy|hdf5|images|synthetic and data.path=..., or "
            "--experiment NAME, which has them",
            args->model);
    /* model.trial is among the settings; an experiment of the same name is not meant. */
    if (args->experiment != NULL) snprintf(w->experiment, sizeof w->experiment, "%s", args->experiment);
    return LS_OK;
}

/* A checkpoint that no run has made (`ckpt import`): like a file it does not know its experiment. */
static bool is_alone(const char *folder)
{
    char path[LS_PATH_MAX];

    if (ls_run_is_one(folder)) return false;
    if (snprintf(path, sizeof path, "%s/../../config.yaml", folder) >= (int)sizeof path) return false;
    if (access(path, F_OK) == 0) return false;
    return snprintf(path, sizeof path, "%s/manifest.json", folder) < (int)sizeof path &&
           access(path, F_OK) == 0;
}

static ls_status locate(const cli_args *args, cli_weights *w, ls_err *err)
{
    const char *given = args->model;
    char named[LS_PATH_MAX];
    struct stat info;
    ls_status st;

    *w = (cli_weights){0};
    /* What is no path may be a run's name, as in `lockstep runs`. */
    if (given[0] != '\0' && stat(given, &info) != 0 && ls_run_find(named, given, "runs", NULL) == LS_OK)
        given = named;
    if (given[0] == '\0' || stat(given, &info) != 0)
        return ls_fail(err, LS_INVALID, "%s: there is no such run, checkpoint or file of weights", given);
    if (!S_ISDIR(info.st_mode) || is_alone(given)) {
        snprintf(w->weights, sizeof w->weights, "%s", given);
        return locate_file(args, w, err);
    }
    st = ls_run_locate(given, false, w->experiment, w->weights, err);
    if (st != LS_OK) return st;
    if (ls_run_is_one(given)) snprintf(w->run, sizeof w->run, "%s", given);
    if (args->experiment != NULL) snprintf(w->experiment, sizeof w->experiment, "%s", args->experiment);
    return LS_OK;
}

ls_status cli_weights_open(const cli_args *args, cli_weights *w, cli_ranks *ranks, ls_err *err)
{
    const ls_status st = locate(args, w, err);

    if (st != LS_OK) return st;
    /* A run of four ranks may be evaluated by one.  Machines share the run's number unless told theirs. */
    return cli_ranks_open(ranks, w->experiment[0] != '\0' ? w->experiment : NULL,
                          args->ranks > 0 || args->nodes > 0, args, err);
}

void cli_weights_describe(const cli_weights *w, json_t *o)
{
    const char *slash = strrchr(w->weights, '/'), *name = slash != NULL ? slash + 1 : w->weights;
    char link[64];
    const ssize_t n = readlink(w->weights, link, sizeof link - 1);

    link[n > 0 ? n : 0] = '\0';
    json_object_set_new(o, "weights", json_string(name));
    json_object_set_new(o, "step", json_integer((json_int_t)ls_ckpt_step_of(n > 0 ? link : name)));
}
