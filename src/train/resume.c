/* resume.c: settings before and after. */
#include "train/resume.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/replace.h"
#include "base/text.h"
#include "base/whole.h"

/* What the numbers of a checkpoint rest on. */
static const struct {
    const char *keys, *why;
} fixed[] = {
    {"model.*", "the checkpoint holds another model's weights; start a new run, with train.init=RUN if they "
                "are to be used"},
    {"train.init", "the run has weights of its own; start a new run with it"},
    {"seed", "the order of samples and all random numbers follow from it"},
    {"data.kind", "what was seen of the training set would be other samples"},
    {"data.train_range", "what was seen of the training set would be other samples"},
    {"data.split", "what was seen of the training set would be other samples"},
    {"data.val_fraction", "what was seen of the training set would be other samples"},
    {"data.split_seed", "what was seen of the training set would be other samples"},
    {"optimizer.name",
     "the checkpoint holds the state of the other one; start a new run, with train.init=RUN"},
};

static bool find(const ls_config *cfg, const char *key, ls_setting *out)
{
    for (int i = 0; i < ls_config_count(cfg); i++) {
        *out = ls_config_at(cfg, i);
        if (strcmp(out->key, key) == 0) return true;
    }
    return false;
}

/* Follows from another setting. */
static bool is_derived(ls_config *before, ls_config *now, const char *key)
{
    return strcmp(key, "batch.per_rank") == 0 && ls_config_int(before, "batch.global") > 0 &&
           ls_config_int(now, "batch.global") > 0;
}

bool ls_resume_next_change(ls_config *before, ls_config *now, int *at, ls_change *out)
{
    while (*at < ls_config_count(now)) {
        const ls_setting s = ls_config_at(now, (*at)++);
        char shown[LS_SETTING_SHOW_MAX];
        ls_setting old;
        if (!find(before, s.key, &old) || is_derived(before, now, s.key)) continue;
        *out = (ls_change){.key = s.key};
        snprintf(out->before, sizeof out->before, "%s", ls_setting_show(&old, shown));
        snprintf(out->now, sizeof out->now, "%s", ls_setting_show(&s, shown));
        if (strcmp(out->before, out->now) != 0) return true;
    }
    return false;
}

ls_status ls_resume_check(const ls_experiment *before, const ls_experiment *now, ls_err *err)
{
    ls_change c;

    if (strcmp(before->trial->name, now->trial->name) != 0)
        return ls_fail(err, LS_INVALID, "the checkpoint is of model \"%s\", not \"%s\"", before->trial->name,
                       now->trial->name);
    for (int at = 0; ls_resume_next_change(before->cfg, now->cfg, &at, &c);) {
        /* A plug-in may lie elsewhere, and be built again. */
        if (strcmp(c.key, "model.trial") == 0 || strcmp(c.key, "model.plugin_xxh3") == 0) continue;
        for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
            if (ls_text_glob(fixed[i].keys, c.key))
                return ls_fail(err, LS_INVALID, "%s cannot change from %s to %s when a run goes on: %s",
                               c.key, c.before[0] != '\0' ? c.before : "none",
                               c.now[0] != '\0' ? c.now : "none", fixed[i].why);
    }
    return LS_OK;
}

/* -- config.yaml ------------------------------------------------------------------------------------------
 */

enum { PATH_BYTES = 4200, CONFIG_BYTES = 1 << 20 };

/* Under the first number that is free. */
static ls_status keep(const char *folder, const char *text, size_t n, ls_err *err)
{
    char path[PATH_BYTES];

    for (int k = 1;; k++) {
        snprintf(path, sizeof path, "%s/config.%d.yaml", folder, k);
        if (access(path, F_OK) != 0) return ls_replace_file(path, text, n, err);
    }
}

/* The file's text, to be freed with ls_free. */
static ls_status text_of(const ls_experiment *x, char **text, size_t *n, ls_err *err)
{
    FILE *f;
    bool ok;

    *text = ls_alloc(LS_MEM_CLI, CONFIG_BYTES);
    f = *text != NULL ? fmemopen(*text, CONFIG_BYTES, "w") : NULL;
    if (f == NULL) return ls_fail(err, LS_NOMEM, "config.yaml: no memory");
    ls_experiment_write(x, f);
    ok = fflush(f) == 0 && ferror(f) == 0;
    *n = (size_t)ftell(f);
    ok = fclose(f) == 0 && ok;
    return ok ? LS_OK
              : ls_fail(err, LS_IO, "config.yaml: the settings take more than %d bytes", CONFIG_BYTES);
}

ls_status ls_resume_write_config(const ls_experiment *x, const char *folder, ls_err *err)
{
    char path[PATH_BYTES], *text = NULL, *before = NULL;
    size_t n = 0, n_before = 0;
    ls_status st = LS_OK;

    LS_TRY(text_of(x, &text, &n, err));
    snprintf(path, sizeof path, "%s/config.yaml", folder);
    if (access(path, F_OK) == 0) {
        LS_TRY(ls_whole_plain(&before, &n_before, path, CONFIG_BYTES, err));
        if (n == n_before && memcmp(text, before, n) == 0) goto out;
        LS_TRY(keep(folder, before, n_before, err));
    }
    LS_TRY(ls_replace_file(path, text, n, err));
out:
    ls_free(text);
    ls_free(before);
    return st;
}
