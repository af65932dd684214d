/* config.c: the settings of one trial: defaults from tables, key=value from the user, values for builders. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/text.h"
#include "lockstep/trial.h"

#define MAX_SETTINGS 128
#define MANY         1e15 /* integers stay exact in a double */

struct ls_config {
    ls_setting settings[MAX_SETTINGS];
    char *owned[MAX_SETTINGS]; /* texts that replaced a default; names of choices that were asked for */
    int n;
    ls_err err; /* first wrong key a builder asked for */
};

/* Those every trial has; their defaults come from the trial itself. */
static const ls_setting common[] = {
    ls_int_setting("batch.per_rank", 0, 1, 1e6, "samples of one rank in one step"),
    ls_int_setting("seed", 1, 0, MANY, "of initial weights, dropout, noise and made-up data"),
    ls_choice_setting("optimizer.name", "sgd adam rmsprop lars lamb",
                      "update rule; adamw is read as adam with optimizer.form=adamw"),
    ls_real_setting("optimizer.lr", 0, 0, 1e6, "learning rate"),
    ls_real_setting("optimizer.momentum", 0, 0, 1, "sgd, rmsprop, lars"),
    ls_bool_setting("optimizer.nesterov", 0, "sgd: look ahead"),
    ls_real_setting("optimizer.weight_decay", 0, 0, 1e6, "L2, or decoupled with form=adamw"),
    ls_real_setting("optimizer.beta1", 0, 0, 1, "adam, lamb; 0 means 0.9"),
    ls_real_setting("optimizer.beta2", 0, 0, 1, "adam, lamb; 0 means 0.999"),
    ls_real_setting("optimizer.eps", 0, 0, 1, "adam, rmsprop, lamb; 0 means 1e-8 (lamb 1e-6)"),
    ls_real_setting("optimizer.trust", 0, 0, 1e6, "lars: coefficient of a layer's own rate; 0 means 0.001"),
    ls_choice_setting("optimizer.form", "torch tf adamw", "adam: whose formula"),
    ls_settings_end,
};

int ls_config_find(const ls_config *cfg, const char *key)
{
    for (int i = 0; i < cfg->n; i++)
        if (strcmp(cfg->settings[i].key, key) == 0) return i;
    return -1;
}

static ls_setting *find(ls_config *cfg, const char *key)
{
    int i = ls_config_find(cfg, key);

    return i < 0 ? NULL : &cfg->settings[i];
}

/* A trial's own default in the place of the table's. */
static void preset(ls_config *cfg, const char *key, double value)
{
    ls_setting *s = find(cfg, key);

    LS_BUG_IF(s == NULL);
    s->value = value;
}

/* Rows are copied, for their values become this configuration's own; keys and help stay the table's. */
static ls_status append(ls_config *cfg, const ls_setting *table, ls_err *err)
{
    for (; table != NULL && table->key != NULL; table++) {
        if (cfg->n == MAX_SETTINGS) return ls_fail(err, LS_INVALID, "more than %d settings", MAX_SETTINGS);
        cfg->settings[cfg->n++] = *table;
    }
    return LS_OK;
}

ls_status ls_config_create(ls_config **out, const ls_trial *t, ls_err *err)
{
    return ls_config_create_with(out, t, NULL, err);
}

ls_status ls_config_create_with(ls_config **out, const ls_trial *t, const ls_setting *more, ls_err *err)
{
    ls_config *cfg = ls_alloc(LS_MEM_CLI, sizeof *cfg);
    const ls_optimiser *o = &t->optimiser;
    ls_status st = LS_OK;

    *out = cfg;
    if (cfg == NULL) return ls_fail(err, LS_NOMEM, "settings: no memory");
    LS_TRY(append(cfg, more, err));
    LS_TRY(append(cfg, common, err));
    LS_TRY(append(cfg, t->settings, err));
    preset(cfg, "batch.per_rank", (double)t->batch);
    preset(cfg, "optimizer.name", (double)o->rule);
    preset(cfg, "optimizer.lr", o->lr);
    preset(cfg, "optimizer.momentum", o->momentum);
    preset(cfg, "optimizer.nesterov", o->nesterov);
    preset(cfg, "optimizer.weight_decay", o->weight_decay);
    preset(cfg, "optimizer.beta1", o->beta1);
    preset(cfg, "optimizer.beta2", o->beta2);
    preset(cfg, "optimizer.eps", o->eps);
    preset(cfg, "optimizer.trust", o->trust);
    preset(cfg, "optimizer.form", (double)o->form);
out:
    return st;
}

void ls_config_destroy(ls_config *cfg)
{
    for (int i = 0; cfg != NULL && i < cfg->n; i++) ls_free(cfg->owned[i]);
    ls_free(cfg);
}

int ls_config_count(const ls_config *cfg)
{
    return cfg->n;
}

ls_setting ls_config_at(const ls_config *cfg, int i)
{
    LS_BUG_IF(i < 0 || i >= cfg->n);
    return cfg->settings[i];
}

/* -- key=value --------------------------------------------------------------------------------------------
 */

/* For those who set by the program; an experiment's keys are looked at before (config/experiment.c), with
 * hints. */
static ls_status fail_key(const ls_config *cfg, const char *key, ls_err *err)
{
    const char *names[MAX_SETTINGS], *near;

    for (int i = 0; i < cfg->n; i++) names[i] = cfg->settings[i].key;
    near = ls_text_nearest(key, names, (size_t)cfg->n);
    if (near != NULL) return ls_fail(err, LS_INVALID, "no setting \"%s\"; did you mean \"%s\"?", key, near);
    return ls_fail(err, LS_INVALID, "no setting \"%s\"; `lockstep plan EXPERIMENT --settings` lists them",
                   key);
}

#define CHOICES_MAX 16

/* The choice that is spelt most like `text`, also in capitals; "" when none is.  `buf` holds it. */
static const char *nearest_choice(const ls_setting *s, const char *text, char buf[64])
{
    char names[CHOICES_MAX][64], small[64];
    const char *pointers[CHOICES_MAX], *near;
    size_t n = 0, at = 0;

    while (n < CHOICES_MAX && s->choices[at] != '\0') {
        const size_t length = strcspn(s->choices + at, " ");
        snprintf(names[n], sizeof names[n], "%.*s", (int)length, s->choices + at);
        pointers[n] = names[n];
        at += length + strspn(s->choices + at + length, " ");
        n++;
    }
    snprintf(small, sizeof small, "%s", text);
    for (char *c = small; *c != '\0'; c++) *c = (char)tolower((unsigned char)*c);
    near = ls_text_nearest(small, pointers, n);
    snprintf(buf, 64, "%s", near != NULL ? near : "");
    return buf;
}

static ls_status parse_choice(const ls_setting *s, const char *text, double *out, ls_err *err)
{
    const char *at = s->choices;
    char near[64];
    int i = 0;

    for (; *at != '\0'; i++) {
        size_t n = strcspn(at, " ");
        if (strlen(text) == n && strncmp(text, at, n) == 0) {
            *out = i;
            return LS_OK;
        }
        at += n + strspn(at + n, " ");
    }
    if (nearest_choice(s, text, near)[0] != '\0')
        return ls_fail(err, LS_INVALID, "%s: \"%s\" is none of: %s; did you mean \"%s\"?", s->key, text,
                       s->choices, near);
    return ls_fail(err, LS_INVALID, "%s: \"%s\" is none of: %s", s->key, text, s->choices);
}

/* As YAML writes them.  What else people take for one is told how. */
static ls_status parse_bool(const ls_setting *s, const char *text, double *out, ls_err *err)
{
    static const char *const names[2][3] = {{"false", "False", "FALSE"}, {"true", "True", "TRUE"}};
    static const char *const others[2][6] = {{"no", "off", "0", "n", "f", "disabled"},
                                             {"yes", "on", "1", "y", "t", "enabled"}};

    for (int yes = 0; yes < 2; yes++)
        for (int i = 0; i < 3; i++)
            if (strcmp(text, names[yes][i]) == 0) {
                *out = yes;
                return LS_OK;
            }
    for (int yes = 0; yes < 2; yes++)
        for (int i = 0; i < 6; i++)
            if (strcasecmp(text, others[yes][i]) == 0)
                return ls_fail(err, LS_INVALID, "%s: \"%s\" is neither true nor false; write %s", s->key,
                               text, names[yes][0]);
    return ls_fail(err, LS_INVALID, "%s: \"%s\" is neither true nor false", s->key, text);
}

static ls_status parse_number(const ls_setting *s, const char *text, double *out, ls_err *err)
{
    char *end;
    double x = strtod(text, &end);

    if (end == text || *end != '\0' || !isfinite(x))
        return ls_fail(err, LS_INVALID, "%s: \"%s\" is no number", s->key, text);
    if (s->kind == LS_SETTING_INT && x != floor(x))
        return ls_fail(err, LS_INVALID, "%s: \"%s\" is no whole number", s->key, text);
    if (x < s->lo || x > s->hi)
        return ls_fail(err, LS_INVALID, "%s: %s is outside %g to %g", s->key, text, s->lo, s->hi);
    *out = x;
    return LS_OK;
}

/* A number and its unit, nothing else. */
static ls_status parse_period(const ls_setting *s, const char *text, ls_period *out, ls_err *err)
{
    static const char *const units[] = {[LS_PERIOD_STEPS] = "st",
                                        [LS_PERIOD_EPOCHS] = "ep",
                                        [LS_PERIOD_SAMPLES] = "sa",
                                        [LS_PERIOD_MINUTES] = "min"};
    char *end;
    double x = strtod(text, &end);

    *out = (ls_period){0, LS_PERIOD_NONE};
    if (strcmp(text, "none") == 0) return LS_OK;
    for (int u = LS_PERIOD_STEPS; end != text && u <= LS_PERIOD_MINUTES; u++)
        if (strcmp(end, units[u]) == 0) *out = (ls_period){x, (ls_period_unit)u};
    if (out->unit == LS_PERIOD_NONE)
        return ls_fail(err, LS_INVALID,
                       "%s: \"%s\" is no period; write 1ep, 500st, 10000sa, 10min (epochs, steps, samples, "
                       "minutes) or none",
                       s->key, text);
    if (!isfinite(x) || x <= 0 || x > MANY)
        return ls_fail(err, LS_INVALID, "%s: %s is no positive length", s->key, text);
    if ((out->unit == LS_PERIOD_STEPS || out->unit == LS_PERIOD_SAMPLES) && x != floor(x))
        return ls_fail(err, LS_INVALID, "%s: %s is no whole number", s->key, text);
    return LS_OK;
}

/* The new text is copied first: it may be the old one. */
static ls_status put_text(ls_config *cfg, ls_setting *s, const char *text, ls_err *err)
{
    char *copy = ls_strdup(LS_MEM_CLI, text), **owned = &cfg->owned[s - cfg->settings];

    if (copy == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory", s->key);
    ls_free(*owned);
    s->text = *owned = copy;
    return LS_OK;
}

ls_status ls_config_put(ls_config *cfg, const char *key, const char *value, ls_err *err)
{
    ls_setting *s = find(cfg, key);
    ls_status st = LS_OK;
    ls_period period;

    if (s == NULL) return fail_key(cfg, key, err);
    switch (s->kind) {
    case LS_SETTING_CHOICE:
        LS_TRY(parse_choice(s, value, &s->value, err));
        /* What ls_config_choice keeps is the name of the choice before. */
        ls_free(cfg->owned[s - cfg->settings]);
        cfg->owned[s - cfg->settings] = NULL;
        return LS_OK;
    case LS_SETTING_BOOL: return parse_bool(s, value, &s->value, err);
    case LS_SETTING_PERIOD: LS_TRY(parse_period(s, value, &period, err)); return put_text(cfg, s, value, err);
    case LS_SETTING_TEXT: return put_text(cfg, s, value, err);
    default: return parse_number(s, value, &s->value, err);
    }
out:
    return st;
}

ls_status ls_config_set(ls_config *cfg, const char *assignment, ls_err *err)
{
    const char *eq = strchr(assignment, '=');
    char key[128];

    if (eq == NULL || eq == assignment)
        return ls_fail(err, LS_INVALID, "\"%s\": settings are written key=value", assignment);
    snprintf(key, sizeof key, "%.*s", (int)(eq - assignment), assignment);
    return ls_config_put(cfg, key, eq + 1, err);
}

/* -- reading ----------------------------------------------------------------------------------------------
 */

/* Builders do not check what they read: a key that is not there is 0, and ls_config_status tells of it after
 * the model is built. */
double ls_config_real(ls_config *cfg, const char *key)
{
    const ls_setting *s = find(cfg, key);

    if (s != NULL) return s->value;
    ls_fail(&cfg->err, LS_INVALID, "the trial reads a setting \"%s\" that is not in its table", key);
    return 0;
}

int64_t ls_config_int(ls_config *cfg, const char *key)
{
    return (int64_t)ls_config_real(cfg, key);
}

bool ls_config_bool(ls_config *cfg, const char *key)
{
    return ls_config_real(cfg, key) != 0;
}

const char *ls_config_text(ls_config *cfg, const char *key)
{
    const ls_setting *s = find(cfg, key);

    if (s != NULL && s->text != NULL) return s->text;
    ls_fail(&cfg->err, LS_INVALID, "no setting \"%s\" that holds a text", key);
    return "";
}

const char *ls_config_choice(ls_config *cfg, const char *key)
{
    int i = ls_config_find(cfg, key);
    char buf[LS_SETTING_SHOW_MAX];

    if (i < 0 || cfg->settings[i].kind != LS_SETTING_CHOICE) {
        ls_fail(&cfg->err, LS_INVALID, "no setting \"%s\" that holds a choice", key);
        return "";
    }
    if (cfg->owned[i] == NULL) cfg->owned[i] = ls_strdup(LS_MEM_CLI, ls_setting_show(&cfg->settings[i], buf));
    if (cfg->owned[i] == NULL) ls_fail(&cfg->err, LS_NOMEM, "%s: no memory", key);
    return cfg->owned[i] != NULL ? cfg->owned[i] : "";
}

ls_period ls_config_period(ls_config *cfg, const char *key)
{
    const ls_setting *s = find(cfg, key);
    ls_period period = {0, LS_PERIOD_NONE};

    if (s != NULL && s->kind == LS_SETTING_PERIOD)
        LS_BUG_IF(parse_period(s, s->text, &period, NULL) != LS_OK); /* it was read once, or is a default */
    else
        ls_fail(&cfg->err, LS_INVALID, "no setting \"%s\" that holds a period", key);
    return period;
}

const char *ls_setting_show(const ls_setting *s, char *buf)
{
    const char *at = s->choices;

    if (s->text != NULL) return s->text;
    if (s->kind == LS_SETTING_BOOL) return s->value != 0 ? "true" : "false";
    if (s->kind == LS_SETTING_CHOICE) {
        for (int i = 0; i < (int)s->value; i++) at += strcspn(at, " ") + 1;
        snprintf(buf, LS_SETTING_SHOW_MAX, "%.*s", (int)strcspn(at, " "), at);
        return buf;
    }
    /* The fewest digits that give the same number again. */
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(buf, LS_SETTING_SHOW_MAX, "%.*g", digits, s->value);
        if (strtod(buf, NULL) == s->value) break;
    }
    return buf;
}

ls_optimiser ls_config_optimiser(ls_config *cfg)
{
    return (ls_optimiser){.rule = (ls_optimiser_rule)ls_config_int(cfg, "optimizer.name"),
                          .lr = ls_config_real(cfg, "optimizer.lr"),
                          .momentum = ls_config_real(cfg, "optimizer.momentum"),
                          .nesterov = ls_config_bool(cfg, "optimizer.nesterov"),
                          .weight_decay = ls_config_real(cfg, "optimizer.weight_decay"),
                          .beta1 = ls_config_real(cfg, "optimizer.beta1"),
                          .beta2 = ls_config_real(cfg, "optimizer.beta2"),
                          .eps = ls_config_real(cfg, "optimizer.eps"),
                          .trust = ls_config_real(cfg, "optimizer.trust"),
                          .form = (ls_adam_form)ls_config_int(cfg, "optimizer.form")};
}

ls_status ls_config_status(const ls_config *cfg, ls_err *err)
{
    if (cfg->err.status == LS_OK) return LS_OK;
    return ls_fail(err, cfg->err.status, "%s", cfg->err.text);
}
