/* settings_each.c: a walk over all tables of settings. */
#include <string.h>

#include "config/settings.h"

static bool has(const ls_setting *table, const char *key)
{
    for (; table != NULL && table->key != NULL; table++)
        if (strcmp(table->key, key) == 0) return true;
    return false;
}

ls_status ls_settings_each(ls_setting_visit visit, void *arg, ls_err *err)
{
    const ls_trial *any = ls_trials[0];
    ls_config *cfg = NULL;
    ls_status st = LS_OK;

    for (const ls_setting *s = ls_train_settings; s->key != NULL; s++)
        visit(arg, LS_SETTINGS_RUN, NULL, false, s);
    LS_TRY(ls_config_create_with(&cfg, any, ls_train_settings, err));
    for (int i = 0; i < ls_config_count(cfg); i++) {
        const ls_setting s = ls_config_at(cfg, i);
        if (!has(ls_train_settings, s.key) && !has(any->settings, s.key))
            visit(arg, LS_SETTINGS_COMMON, NULL, strcmp(s.key, "seed") != 0, &s);
    }
    for (int i = 0; ls_trials[i] != NULL; i++)
        for (const ls_setting *s = ls_trials[i]->settings; s != NULL && s->key != NULL; s++)
            visit(arg, LS_SETTINGS_MODEL, ls_trials[i], false, s);
out:
    ls_config_destroy(cfg);
    return st;
}
