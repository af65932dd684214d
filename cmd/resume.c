/* resume.c: a run that goes on keeps its settings. */
#include "resume.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "runs/manage.h"
#include "runs/reader.h"
#include "train/resume.h"

static bool ends_in(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

bool cli_resume_takes(const char *word)
{
    struct stat info;

    if (word[0] == '-' || strchr(word, '=') != NULL) return false;
    if (ls_run_is_one(word) || strcmp(word, "last") == 0) return true;
    if (ends_in(word, ".yaml") || ends_in(word, ".yml") || ends_in(word, ".so")) return false;
    /* What is no experiment: a run by its name, or one that is not there, which then is said. */
    return strchr(word, '/') != NULL ? stat(word, &info) != 0 || S_ISDIR(info.st_mode)
                                     : !ls_experiment_is_known(word);
}

/* The run that is meant, by its path, by --run-dir, or the newest; of the experiment's name where one is
 * named. */
static ls_status find(cli_resume *r, const cli_args *args, const ls_experiment *named, ls_err *err)
{
    const char *path = args->resume[0] != '\0' ? args->resume : args->run_dir;

    if (args->resume[0] != '\0' && args->run_dir != NULL && strcmp(args->resume, args->run_dir) != 0)
        return ls_fail(
            err, LS_INVALID,
            "--resume %s goes on in that directory, and --run-dir %s names another; leave one out, or "
            "start a new run from its weights with train.init",
            args->resume, args->run_dir);
    if (path == NULL)
        return ls_runs_newest(r->path, "runs", named->cfg != NULL ? ls_config_text(named->cfg, "name") : NULL,
                              err);
    if (!ls_run_is_one(path) && access(path, F_OK) != 0) { /* a run's name, as in `lockstep runs`? */
        ls_err why = {0};
        if (ls_run_find(r->path, path, "runs", &why) == LS_OK) return LS_OK;
        if (strchr(path, '/') == NULL && named->cfg == NULL) return ls_fail(err, why.status, "%s", why.text);
    }
    if (snprintf(r->path, sizeof r->path, "%s", path) >= (int)sizeof r->path)
        return ls_fail(err, LS_INVALID, "--resume: the path is longer than %d bytes", LS_PATH_MAX);
    return LS_OK;
}

static bool sets(const cli_args *args, const char *key)
{
    const size_t n = strlen(key);

    for (int i = 0; i < args->n_settings; i++)
        if (strncmp(args->settings[i], key, n) == 0 && args->settings[i][n] == '=') return true;
    return false;
}

/* Settings as given, and what follows from them. */
static ls_status add_settings(cli_resume *r, const ls_experiment *named, ls_err *err)
{
    const cli_args *given = &r->args;
    const char **all = ls_alloc(LS_MEM_CLI, sizeof *all * ((size_t)given->n_settings + 4));
    int n = 0;

    if (all == NULL) return ls_fail(err, LS_NOMEM, "no memory");
    /* The plug-in that was named by hand; whether it is the same model is asked below. */
    if (named->cfg != NULL && named->plugin_xxh3 != 0) {
        snprintf(r->trial, sizeof r->trial, "model.trial=%s", ls_config_text(named->cfg, "model.trial"));
        all[n++] = r->trial;
    }
    for (int i = 0; i < given->n_settings; i++) all[n++] = given->settings[i];
    /* Steps come before epochs: the run's own would hide what was asked for now. */
    if (sets(given, "train.epochs") && !sets(given, "train.steps")) all[n++] = "train.steps=0";
    /* It says how long one process trains. */
    if (!sets(given, "train.pause_after")) all[n++] = "train.pause_after=none";
    r->args.settings = all;
    r->args.n_settings = n;
    return LS_OK;
}

/* What the named experiment says otherwise than the run; the command line says it to both. */
static ls_status compare_named(cli_resume *r, ls_experiment *named, ls_err *err)
{
    ls_experiment now = {0};
    ls_change c;
    ls_status st = LS_OK;

    if (strcmp(named->trial->name, r->before.trial->name) != 0)
        return ls_fail(err, LS_INVALID, "%s: the checkpoint is of model \"%s\", not \"%s\"", r->path,
                       r->before.trial->name, named->trial->name);
    LS_TRY(ls_experiment_load(&now, r->config, r->args.settings, r->args.n_settings, err));
    LS_TRY(ls_experiment_settle_paths(&now, err));
    for (int at = 0; ls_resume_next_change(now.cfg, named->cfg, &at, &c);)
        if (strcmp(c.key, "name") != 0 && strcmp(c.key, "ranks") != 0 &&
            strcmp(c.key, "batch.per_rank") != 0 && strcmp(c.key, "train.pause_after") != 0 &&
            strcmp(c.key, "model.trial") != 0)
            ls_text_add(&r->ignored, "%s%s=%s (the run: %s)", r->ignored.length > 0 ? ", " : "", c.key, c.now,
                        c.before);
out:
    ls_experiment_release(&now);
    return st;
}

ls_status cli_resume_open(cli_resume *r, const cli_args *args, ls_err *err)
{
    char last[LS_PATH_MAX + 64];
    ls_experiment named = {0};
    ls_status st = LS_OK;

    *r = (cli_resume){.args = *args, .experiment = args->model};
    if (args->model != NULL)
        LS_TRY(ls_experiment_load(&named, args->model, args->settings, args->n_settings, err));
    if (args->model != NULL) LS_TRY(ls_experiment_settle_paths(&named, err));
    LS_TRY(find(r, args, &named, err));
    r->args.resume = r->path;
    snprintf(r->config, sizeof r->config, "%s/config.yaml", r->path);
    if (access(r->config, R_OK) != 0) {
        /* A machine that does not see the run's disk goes by the experiment alone. */
        if (args->model == NULL)
            st = ls_fail(err, LS_INVALID,
                         ls_run_is_one(r->path) ? "%s has no config.yaml; name its experiment, too"
                                                : "%s is no run directory: config.yaml and summary.json are "
                                                  "not there; `lockstep runs list` shows those that are",
                         r->path);
        goto out;
    }
    LS_TRY(add_settings(r, &named, err));
    r->experiment = r->config;
    LS_TRY(ls_experiment_load(&r->before, r->config, r->trial[0] != '\0' ? (const char *[]){r->trial} : NULL,
                              r->trial[0] != '\0', err));
    LS_TRY(ls_experiment_settle_paths(&r->before, err));
    r->known = true;
    snprintf(last, sizeof last, "%s/checkpoints/last/manifest.json", r->path);
    r->has_checkpoint = access(last, R_OK) == 0;
    if (args->model != NULL) LS_TRY(compare_named(r, &named, err));
out:
    ls_experiment_release(&named);
    return st;
}

void cli_resume_release(cli_resume *r)
{
    if (r->known || r->experiment == r->config) ls_free(r->args.settings);
    ls_experiment_release(&r->before);
    ls_text_release(&r->ignored);
}
