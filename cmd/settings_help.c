/* settings_help.c: `lockstep train --help settings`: the tables of settings as text. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "config/settings.h"

enum { SCREEN = 79, HELP_COLUMN = 36 };

void cli_print_wrapped(const char *text, int at, int column)
{
    int gap = 0; /* a blank that is owed, if the next word fits */

    if (at < column) at += printf("%*s", column - at, "");
    for (; *text != '\0'; text += strspn(text, " ")) {
        const int n = (int)strcspn(text, " ");
        if (at > column && at + gap + n > SCREEN) {
            printf("\n%*s", column, "");
            at = column;
            gap = 0;
        }
        at += printf("%*s%.*s", gap, "", n, text);
        gap = 1;
        text += n;
    }
    printf("\n");
}

/* Where the walk is: a new group or model begins with a heading. */
typedef struct place {
    bool begun;
    ls_setting_group group;
    const ls_trial *model;
} place;

static void print_heading(place *at, ls_setting_group group, const ls_trial *model)
{
    if (at->begun && group == at->group && model == at->model) return;
    if (at->begun) printf("\n");
    if (model != NULL)
        printf("Model %s:\n", model->name);
    else
        printf("%s:\n", group == LS_SETTINGS_RUN ? "The run" : "Batch, seed and optimiser");
    *at = (place){true, group, model};
}

/* Where a model has its own default, any number here would be that of one model. */
static void print_setting(const ls_setting *s, bool from_model)
{
    char buf[LS_SETTING_SHOW_MAX], help[512];
    const char *value = from_model ? "" : ls_setting_show(s, buf);

    snprintf(help, sizeof help, "%s%s%s%s", s->help, s->choices != NULL ? " (" : "",
             s->choices != NULL ? s->choices : "", s->choices != NULL ? ")" : "");
    cli_print_wrapped(help, printf("  %-22s %-9s ", s->key, value), HELP_COLUMN);
}

static void visit(void *arg, ls_setting_group group, const ls_trial *model, bool from_model,
                  const ls_setting *s)
{
    print_heading(arg, group, model);
    print_setting(s, from_model);
}

void cli_help_model(const ls_trial *model)
{
    printf("\nModel %s: %s\n", model->name, model->about);
    for (const ls_setting *s = model->settings; s != NULL && s->key != NULL; s++) print_setting(s, false);
}

int cli_help_settings(void)
{
    place at = {0};
    ls_err err = {0};

    printf("Settings are written key=value on the command line, or as groups of keys in a\n"
           "YAML file.  With each its default (none: the model's, or unset) and its meaning.\n"
           "A period is a number with a unit: 1ep, 500st, 10000sa, 10min (epochs, steps,\n"
           "samples, minutes), or none.\n\n");
    if (ls_settings_each(visit, &at, &err) != LS_OK) return cli_fail("help", &err);
    return CLI_DONE;
}
