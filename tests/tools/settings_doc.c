/* settings_doc.c: prints docs/settings.md from the tables of settings. */
#include <stdio.h>

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

/* Where the walk is: a new group or model begins a new table. */
typedef struct place {
    ls_setting_group group;
    const ls_trial *model;
} place;

static void visit(void *arg, ls_setting_group group, const ls_trial *model, bool from_model,
                  const ls_setting *s)
{
    place *at = arg;
    char title[128];

    if (group != at->group || model != at->model) {
        snprintf(title, sizeof title, "Model `%s`", model != NULL ? model->name : "");
        print_head(model != NULL ? title : "Batch, seed and optimiser");
        *at = (place){group, model};
    }
    print_row(s, from_model ? "the model's" : NULL);
}

int main(void)
{
    place at = {LS_SETTINGS_RUN, NULL};
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
    if (ls_settings_each(visit, &at, &err) != LS_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    return 0;
}
