/* settings_doc.c: prints docs/settings.md from the tables of settings. */
#include <stdio.h>
#include <string.h>

#include "config/settings.h"

/* What may be written: a range, the choices, ... */
static void print_values(const ls_setting *s)
{
    switch (s->kind) {
    case LS_SETTING_CHOICE:
        for (const char *at = s->choices; *at != '\0'; at++)
            if (*at == ' ')
                fputs(", ", stdout);
            else
                fputc(*at, stdout);
        break;
    case LS_SETTING_BOOL: printf("true, false"); break;
    case LS_SETTING_TEXT: printf("text"); break;
    case LS_SETTING_PERIOD: printf("period"); break;
    case LS_SETTING_INT: printf("whole, %g to %g", s->lo, s->hi); break;
    case LS_SETTING_REAL: printf("%g to %g", s->lo, s->hi); break;
    }
}

/* `fallback` stands for a default that is not in the table, or is NULL. */
static void print_row(const ls_setting *s, const char *fallback)
{
    char buf[LS_SETTING_SHOW_MAX];
    const char *value = fallback != NULL ? fallback : ls_setting_show(s, buf);
    const char *quote = fallback == NULL && value[0] != '\0' ? "`" : "";

    printf("| `%s` | %s%s%s | ", s->key, quote, value, quote);
    print_values(s);
    printf(" | %s |\n", s->help);
}

static void print_head(const char *title)
{
    printf("\n## %s\n\n| key | default | values | meaning |\n|---|---|---|---|\n", title);
}

static bool is_trains(const char *key)
{
    for (const ls_setting *s = ls_train_settings; s->key != NULL; s++)
        if (strcmp(s->key, key) == 0) return true;
    return false;
}

static bool is_models(const ls_trial *t, const char *key)
{
    for (const ls_setting *s = t->settings; s != NULL && s->key != NULL; s++)
        if (strcmp(s->key, key) == 0) return true;
    return false;
}

int main(void)
{
    ls_config *cfg;
    ls_err err = {0};

    printf("# Settings\n\n"
           "Written by `build/tests/tools/settings_doc` from the tables in the program; do not edit. They "
           "stand in an\n"
           "experiment file as groups of keys, or on the command line as `key=value`; see "
           "[experiments](experiments.md).\n"
           "A period is a number with a unit: `1ep`, `500st`, `10000sa`, `10min` (epochs, steps, samples, "
           "minutes), or "
           "`none`.\n");
    print_head("The run");
    for (const ls_setting *s = ls_train_settings; s->key != NULL; s++) print_row(s, NULL);
    print_head("Batch, seed and optimiser");
    if (ls_config_create_with(&cfg, ls_trials[0], ls_train_settings, &err) != LS_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (int i = 0; i < ls_config_count(cfg); i++) {
        ls_setting s = ls_config_at(cfg, i);
        if (!is_trains(s.key) && !is_models(ls_trials[0], s.key))
            print_row(&s, strcmp(s.key, "seed") == 0 ? NULL : "the model's");
    }
    ls_config_destroy(cfg);
    for (int i = 0; ls_trials[i] != NULL; i++) {
        char title[128];
        if (ls_trials[i]->settings == NULL) continue;
        snprintf(title, sizeof title, "Model `%s`", ls_trials[i]->name);
        print_head(title);
        for (const ls_setting *s = ls_trials[i]->settings; s->key != NULL; s++) print_row(s, NULL);
    }
    return 0;
}
