/* manual_page.c: lockstep(1). */
#include <stdio.h>
#include <string.h>

#include "manual.h"

/* Text with what roff would read as its own masked: backslashes, hyphens, a dot or quote that begins a line.
 */
static void put(const char *text)
{
    if (text[0] == '.' || text[0] == '\'') fputs("\\&", stdout);
    for (; *text != '\0'; text++) {
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else if (*text == '`')
            fputs("\\(ga", stdout);
        else if (*text == '\'')
            fputs("\\(aq", stdout);
        else
            putchar(*text);
    }
}

static void heading(const char *name)
{
    printf(".SH %s\n", name);
}

/* A term in bold with its explanation. */
static void entry(const char *term, const char *rest, const char *about)
{
    printf(".TP\n\\fB");
    put(term);
    printf("\\fR");
    if (rest[0] != '\0') printf(" ");
    put(rest);
    printf("\n");
    put(about);
    printf("\n");
}

static void paragraph(const char *text)
{
    printf(".PP\n");
    put(text);
    printf("\n");
}

static void commands(void)
{
    cli_option o;

    heading("COMMANDS");
    for (const cli_command *c = cli_commands; c->name != NULL; c++) {
        printf(".SS \"lockstep %s ", c->name);
        put(c->usage);
        printf("\"\n");
        put(c->about);
        printf("\n");
        for (int i = 0; cli_option_at(i, &o); i++) {
            char term[96];
            if (!(o.commands & c->bit)) continue;
            snprintf(term, sizeof term, "%s%s%s%s", o.alias != NULL ? o.alias : "",
                     o.alias != NULL ? ", " : "", o.name, o.maybe ? o.arg : "");
            entry(term, o.arg != NULL && !o.maybe ? o.arg : "", o.help);
        }
    }
}

static void setting(void *arg, const ls_setting *s)
{
    char buf[LS_SETTING_SHOW_MAX], rest[LS_SETTING_SHOW_MAX + 32] = "";
    const char *value = ls_setting_show(s, buf);

    (void)arg;
    /* Those of all models have no default of their own. */
    if (value[0] != '\0' && strncmp(s->key, "optimizer.", 10) != 0 && strncmp(s->key, "model.", 6) != 0 &&
        strcmp(s->key, "batch.per_rank") != 0)
        snprintf(rest, sizeof rest, "(default %s)", value);
    entry(s->key, rest, s->help);
    if (s->choices == NULL) return;
    printf("One of: ");
    put(s->choices);
    printf(".\n");
}

static void names(const manual *m)
{
    heading("EXPERIMENTS");
    paragraph(
        "An EXPERIMENT is a YAML file, the name of one that ships, or a model with its defaults.  A model "
        "of one's own is a plug-in: a .so file, named as model.trial or in the place of the EXPERIMENT; "
        "`lockstep new` writes one to begin with.");
    printf(".PP\nThese ship:");
    for (int i = 0; i < m->n_experiments; i++) {
        printf(" ");
        put(m->experiments[i]);
    }
    printf(".\n.PP\nThese models can be trained:\n");
    for (int i = 0; ls_trials[i] != NULL; i++) entry(ls_trials[i]->name, "", ls_trials[i]->about);
}

static void rest(void)
{
    heading("FILES");
    entry("runs/NAME-DATE-TIME-XXXX/", "",
          "what a run leaves: config.yaml, summary.json, metrics.jsonl, TensorBoard files, checkpoints/ and "
          "logs/");
    entry("~/.cache/lockstep", "",
          "kernels that were timed and chosen, unless LOCKSTEP_CACHE names another folder");
    heading("ENVIRONMENT");
    entry("LOCKSTEP_LOG", "", "error, warn (default), info or debug: how much is said on standard error");
    entry("LOCKSTEP_THREADS", "", "threads, unless --threads says so");
    entry("LOCKSTEP_EXPERIMENTS", "", "a folder of experiments that can be given by name");
    entry("LOCKSTEP_DATA", "", "the folder of data sets that the experiments that ship look into");
    entry("LOCKSTEP_TUNE", "", "off: take the first kernel that fits, time none");
    entry("NO_COLOR", "", "no colours on a terminal");
    heading("EXIT STATUS");
    entry("0", "", "done");
    entry("1", "", "failed at run time");
    entry("2", "", "bad command line, experiment or setting; nothing was created");
    entry("3", "", "bad or damaged data or checkpoint; the message names the file");
    entry("4", "", "a rank was lost and no restart was left");
    entry("5", "", "ranks disagreed: experiment, plan, weights or operation");
    entry("75", "", "stopped on request after a checkpoint; run again with --resume");
    heading("EXAMPLES");
    entry("lockstep train fashion", "", "trains a small network; Ctrl-C stops it after a checkpoint");
    entry("lockstep train fashion -n 4", "", "the same on four ranks of this machine");
    entry("lockstep train fashion --resume", "", "goes on where it stopped, bit for bit");
    entry("lockstep train fashion train.epochs=2 optimizer.lr=0.1", "", "the same with other settings");
    entry("lockstep new mine && make -C mine && lockstep train mine/mine.yaml", "",
          "trains a model of one's own");
    entry("lockstep bench resnet18-cifar --profile", "", "how fast a training step is, and why");
}

bool manual_page(const manual *m)
{
    printf(".\\\" Written by lockstep_manual from the tables of the program.\n");
    printf(".TH LOCKSTEP 1 \"\" \"lockstep %s\" \"Lockstep\"\n", LS_VERSION);
    heading("NAME");
    printf("lockstep \\- train neural networks in synchronous data parallel\n");
    heading("SYNOPSIS");
    for (const cli_command *c = cli_commands; c->name != NULL; c++) {
        printf(c == cli_commands ? ".B lockstep %s\n" : ".br\n.B lockstep %s\n", c->name);
        put(c->usage);
        printf("\n");
    }
    heading("DESCRIPTION");
    paragraph(
        "Lockstep trains neural networks and measures how fast that goes.  A training step is built once as "
        "a "
        "static plan and then run many times.  What a run leaves behind is in its own directory; it can be "
        "stopped at any step and continued with the same bits.");
    commands();
    names(m);
    heading("SETTINGS");
    paragraph("Settings stand in an experiment as groups of keys, or on the command line as key=value.  A "
              "period is a "
              "number with a unit, such as 1ep, 500st, 10000sa or 10min (epochs, steps, samples, minutes), "
              "or none.");
    if (!manual_settings(setting, NULL)) return false;
    rest();
    return true;
}
