/* model.c: which trial model.trial means: one of this build, by name, or a plug-in, by the path of its file.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config_internal.h"
#include "trials/plugin.h"

ls_status ls_experiment_trial(const ls_trial **out, const char *name, ls_err *err)
{
    char dashed[LSI_KEY_MAX];

    if (strlen(name) >= sizeof dashed) return ls_fail(err, LS_INVALID, "no model \"%.100s...\"", name);
    snprintf(dashed, sizeof dashed, "%s", name);
    for (char *c = dashed; *c != '\0'; c++)
        if (*c == '_') *c = '-';
    if (strcmp(dashed, "mnist-net-p") == 0) return ls_trial_find(out, "mnist", err);
    if (strcmp(dashed, "mnist-net-t") == 0) return ls_trial_find(out, "mnist-keras", err);
    return ls_trial_find(out, dashed, err);
}

/* A path in a file is relative to the file's folder, like that of a base, or else to the working directory;
 * on the command line, to the working directory. */
static ls_status find_plugin(const lsi_entry *e, char path[PATH_MAX], ls_err *err)
{
    const char *source = e->value_at.source, *slash = strrchr(source, '/'), *name = e->value;
    const int folder =
        e->value_at.line > 0 && slash != NULL && name[0] != '/' ? (int)(slash - source) + 1 : 0;
    char beside[PATH_MAX];
    bool cut = snprintf(beside, sizeof beside, "%.*s%s", folder, source, name) >= (int)sizeof beside;

    if (!cut && realpath(beside, path) != NULL) return LS_OK;
    if (folder > 0 && realpath(name, path) != NULL) return LS_OK;
    if (folder > 0)
        return ls_fail(err, LS_INVALID,
                       "%.400s: there is no such file in %.*s or in the working directory; build it (make)",
                       name, folder < 400 ? folder : 400, source);
    return ls_fail(err, LS_INVALID, "%.400s: there is no such file; build it (make)", name);
}

/* Whether a file is the record of a run, which may have come from anywhere, and not somebody's experiment. */
static bool is_record(const char *file)
{
    static const char *const beside[] = {"summary.json", "checkpoints"};
    const char *slash = strrchr(file, '/'), *name = slash != NULL ? slash + 1 : file;
    char path[PATH_MAX];

    if (strcmp(name, "config.yaml") != 0) return false;
    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
        snprintf(path, sizeof path, "%.*s%s", (int)(name - file), file, beside[i]);
        if (access(path, F_OK) == 0) return true;
    }
    return false;
}

/* A path that stands in the file of a run counts only with the hash that stands beside it; one in an
 * override, or in an experiment without a hash, is the user's own word. */
static ls_plugin_trust trust_of(const lsi_entry *e, const lsi_entries *all, uint64_t *recorded)
{
    const lsi_entry *hash = lsi_find(all, "model.plugin_xxh3");
    const bool by_file = e->value_at.line > 0;

    *recorded = by_file && hash != NULL && hash->kind == LSI_VALUE ? strtoull(hash->value, NULL, 16) : 0;
    return by_file && (*recorded != 0 || is_record(e->value_at.source)) ? LS_PLUGIN_BY_RUN
                                                                        : LS_PLUGIN_BY_HAND;
}

ls_status lsi_choose_trial(ls_experiment *x, lsi_entry *e, const lsi_entries *all, ls_err *err)
{
    char path[PATH_MAX];
    ls_status st = LS_OK;

    if (ls_plugin_is_named(e->value)) {
        const ls_plugin_trust trust = trust_of(e, all, &x->plugin_xxh3);
        LS_TRY(find_plugin(e, path, err));
        LS_TRY(ls_plugin_load(&x->trial, &x->plugin_xxh3, trust, path, err));
        e->value = ls_arena_strdup(all->arena, path);
        if (e->value == NULL) st = ls_fail(err, LS_NOMEM, "experiment: no memory");
    } else {
        LS_TRY(ls_experiment_trial(&x->trial, e->value, err));
        e->value = x->trial->name;
    }
out:
    return st == LS_INVALID ? lsi_fail_in_at(err, st, &e->value_at) : st;
}
