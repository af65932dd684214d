/* paths.c: names of files that stay right when the working directory is another. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/experiment.h"

/* Also where it is not there: a run that goes on does not need its train.init any more. */
static ls_status settle(ls_experiment *x, const char *key, const char *folder, ls_err *err)
{
    const char *text = ls_config_text(x->cfg, key);
    char whole[2 * PATH_MAX];

    if (text[0] == '\0' || text[0] == '/') return LS_OK;
    while (text[0] == '.' && text[1] == '/') text += 2 + strspn(text + 2, "/");
    if (strcmp(text, ".") == 0 || text[0] == '\0')
        snprintf(whole, sizeof whole, "%s", folder);
    else if (snprintf(whole, sizeof whole, "%s/%s", folder, text) >= (int)sizeof whole)
        return LS_OK;
    return ls_config_put(x->cfg, key, whole, err);
}

/* Whether files of the data are named, and relative to no folder. */
static bool needs_folder(const ls_experiment *x)
{
    static const char *const keys[] = {"data.train_images", "data.train_labels", "data.test_images",
                                       "data.test_labels",  "data.val_images",   "data.val_labels"};

    if (ls_config_text(x->cfg, "data.path")[0] != '\0' ||
        strcmp(ls_config_choice(x->cfg, "data.kind"), "synthetic") == 0)
        return false;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *text = ls_config_text(x->cfg, keys[i]);
        if (text[0] != '\0' && text[0] != '/') return true;
    }
    return false;
}

ls_status ls_experiment_settle_paths(ls_experiment *x, ls_err *err)
{
    char folder[PATH_MAX];
    ls_status st = LS_OK;

    if (getcwd(folder, sizeof folder) == NULL || folder[0] != '/') return LS_OK;
    if (needs_folder(x)) LS_TRY(ls_config_put(x->cfg, "data.path", folder, err));
    LS_TRY(settle(x, "data.path", folder, err));
    LS_TRY(settle(x, "train.init", folder, err));
out:
    return st;
}
