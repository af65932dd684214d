/* hints.c: what somebody means who writes an option or a command that there is not. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli.h"
#include "config/hints.h"
#include "config/settings.h"

/* -- settings written as options --------------------------------------------------------------------------
 */

#define KEYS_MAX 512 /* all models' settings, with repeats */

typedef struct all_keys {
    const char *keys[KEYS_MAX];
    bool is_bool[KEYS_MAX];
    size_t n;
} all_keys;

static void note_key(void *arg, ls_setting_group group, const ls_trial *model, bool from_model,
                     const ls_setting *s)
{
    all_keys *k = arg;

    (void)group;
    (void)model;
    (void)from_model;
    if (k->n == KEYS_MAX) return;
    k->is_bool[k->n] = s->kind == LS_SETTING_BOOL;
    k->keys[k->n++] = s->key;
}

static void list_data_keys(all_keys *k)
{
    const char *key;

    for (int i = 0; (key = cli_data_setting(i)) != NULL; i++) k->keys[k->n++] = key;
}

/* key=value, or what shows where the value goes. */
static void write_setting(const all_keys *k, const char *key, const char *value, char *buf, size_t size)
{
    bool is_bool = false;

    for (size_t i = 0; i < k->n; i++) is_bool |= k->is_bool[i] && strcmp(k->keys[i], key) == 0;
    if (is_bool && (value == NULL || (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)))
        value = "true";
    snprintf(buf, size, "%s=%.100s", key, value != NULL ? value : "VALUE");
}

/* `sure` comes before the nearest option of this command, the rest after it: --lr is a setting for certain,
 * while --rank is nearer to --ranks than to any setting. */
bool cli_hint_option(const cli_command *c, const char *name, const char *value, bool sure, char *buf,
                     size_t size)
{
    all_keys k = {0};
    char example[256];
    ls_hint h;

    if (!cli_takes_settings(c)) return false;
    if (c->bit == CLI_DATA)
        list_data_keys(&k);
    else if (ls_settings_each(note_key, &k, NULL) != LS_OK)
        return false;
    name += strspn(name, "-");
    h = ls_hint_find(name, k.keys, k.n);
    if (h.sure != sure || (h.text == NULL && h.n == 0) || (c->bit == CLI_DATA && h.text != NULL))
        return false;
    if (h.text != NULL) {
        snprintf(buf, size, "%s", h.text);
    } else if (strcmp(h.keys[0], "ranks") == 0) {
        snprintf(buf, size, "write -n %s", value != NULL ? value : "RANKS");
    } else {
        write_setting(&k, h.keys[0], value, example, sizeof example);
        snprintf(buf, size, "settings are written without dashes: %s", example);
    }
    return true;
}

/* -- commands ---------------------------------------------------------------------------------------------
 */

static const struct {
    const char *name, *text;
} others[] = {
    {"fit", "`lockstep train EXPERIMENT` trains"},
    {"run", "`lockstep train EXPERIMENT` trains"},
    {"start", "`lockstep train EXPERIMENT` trains"},
    {"launch", "`lockstep train EXPERIMENT -n RANKS` starts ranks"},
    {"resume", "`lockstep train --resume` goes on with the newest run"},
    {"continue", "`lockstep train --resume` goes on with the newest run"},
    {"test", "`lockstep eval RUN` is the test pass"},
    {"validate", "`lockstep eval RUN` is the test pass"},
    {"evaluate", "`lockstep eval RUN` is the test pass"},
    {"benchmark", "`lockstep bench EXPERIMENT` measures"},
    {"export", "`lockstep ckpt export RUN` writes safetensors"},
    {"import", "`lockstep ckpt import FILE.safetensors TO` makes a checkpoint"},
    {"convert", "`lockstep ckpt export` and `lockstep ckpt import` convert"},
    {"checkpoint", "`lockstep ckpt` looks into checkpoints"},
    {"init", "`lockstep new NAME` writes a model to begin with"},
    {"create", "`lockstep new NAME` writes a model to begin with"},
    {"sbatch", "`lockstep submit EXPERIMENT --nodes N` trains as a job of Slurm"},
    {"version", "`lockstep --version` prints it"},
    {"list", "`lockstep info` lists experiments and models"},
    {"sweep",
     "searches over settings are not in this version; `lockstep train EXPERIMENT key=value` takes one "
     "point of them"},
    {"tune",
     "searches over settings are not in this version; `lockstep train EXPERIMENT key=value` takes one "
     "point of them"},
    {"ui", "the web page over the runs is not in this version; `lockstep report RUN ...` writes a page"},
    {"dashboard",
     "the web page over the runs is not in this version; `lockstep report RUN ...` writes a page"},
    {"serve", "serving models is not in this version; `lockstep ckpt export` writes them as safetensors"},
};

const char *cli_hint_command(const char *name)
{
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(others[i].name, name) == 0) return others[i].text;
    return NULL;
}
