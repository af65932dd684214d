/* config.c: the settings of one trial: defaults from tables, key=value from the user, values for builders. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "lockstep/trial.h"

#define MAX_SETTINGS 64
#define MANY         1e15 /* integers stay exact in a double */

struct ls_config {
    ls_setting settings[MAX_SETTINGS];
    int n;
    ls_err err; /* first wrong key a builder asked for */
};

/* Those every trial has; their defaults come from the trial itself. */
static const ls_setting common[] = {
    {"batch.per_rank", LS_SETTING_INT, 0, 1, 1e6, NULL, "samples of one rank in one step"},
    {"seed", LS_SETTING_INT, 1, 0, MANY, NULL, "of initial weights, dropout, noise and made-up data"},
    {"optimizer.name", LS_SETTING_CHOICE, 0, 0, 0, "sgd adam rmsprop lars lamb", "update rule"},
    {"optimizer.lr", LS_SETTING_REAL, 0, 0, 1e6, NULL, "learning rate"},
    {"optimizer.momentum", LS_SETTING_REAL, 0, 0, 1, NULL, "sgd, rmsprop, lars"},
    {"optimizer.nesterov", LS_SETTING_BOOL, 0, 0, 1, NULL, "sgd: look ahead"},
    {"optimizer.weight_decay", LS_SETTING_REAL, 0, 0, 1e6, NULL, "L2, or decoupled with form=adamw"},
    {"optimizer.beta1", LS_SETTING_REAL, 0, 0, 1, NULL, "adam, lamb; 0 means 0.9"},
    {"optimizer.beta2", LS_SETTING_REAL, 0, 0, 1, NULL, "adam, lamb; 0 means 0.999"},
    {"optimizer.eps", LS_SETTING_REAL, 0, 0, 1, NULL, "adam, rmsprop, lamb; 0 means 1e-8 (lamb 1e-6)"},
    {"optimizer.form", LS_SETTING_CHOICE, 0, 0, 0, "torch tf adamw", "adam: whose formula"},
    {NULL, 0, 0, 0, 0, NULL, NULL},
};

static ls_setting *find(ls_config *cfg, const char *key)
{
    for (int i = 0; i < cfg->n; i++)
        if (strcmp(cfg->settings[i].key, key) == 0) return &cfg->settings[i];
    return NULL;
}

static void preset(ls_config *cfg, const char *key, double value)
{
    ls_setting *s = find(cfg, key);

    LS_BUG_IF(s == NULL);
    s->value = value;
}

static void append(ls_config *cfg, const ls_setting *table)
{
    for (; table != NULL && table->key != NULL; table++) {
        LS_BUG_IF(cfg->n == MAX_SETTINGS);
        cfg->settings[cfg->n++] = *table;
    }
}

ls_status ls_config_create(ls_config **out, const ls_trial *t, ls_err *err)
{
    ls_config *cfg = ls_alloc(LS_MEM_CLI, sizeof *cfg);
    const ls_optimiser *o = &t->optimiser;

    *out = cfg;
    if (cfg == NULL) return ls_fail(err, LS_NOMEM, "settings: no memory");
    append(cfg, common);
    append(cfg, t->settings);
    preset(cfg, "batch.per_rank", (double)t->batch);
    preset(cfg, "optimizer.name", (double)o->rule);
    preset(cfg, "optimizer.lr", o->lr);
    preset(cfg, "optimizer.momentum", o->momentum);
    preset(cfg, "optimizer.nesterov", o->nesterov);
    preset(cfg, "optimizer.weight_decay", o->weight_decay);
    preset(cfg, "optimizer.beta1", o->beta1);
    preset(cfg, "optimizer.beta2", o->beta2);
    preset(cfg, "optimizer.eps", o->eps);
    preset(cfg, "optimizer.form", (double)o->form);
    return LS_OK;
}

void ls_config_destroy(ls_config *cfg)
{
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

static ls_status fail_key(const ls_config *cfg, const char *key, ls_err *err)
{
    const char *names[MAX_SETTINGS], *near;

    for (int i = 0; i < cfg->n; i++) names[i] = cfg->settings[i].key;
    near = ls_text_nearest(key, names, (size_t)cfg->n);
    if (near != NULL) return ls_fail(err, LS_INVALID, "no setting \"%s\"; did you mean \"%s\"?", key, near);
    return ls_fail(err, LS_INVALID, "no setting \"%s\"; `lockstep plan MODEL --settings` lists them", key);
}

static ls_status parse_choice(const ls_setting *s, const char *text, double *out, ls_err *err)
{
    const char *at = s->choices;
    int i = 0;

    for (; *at != '\0'; i++) {
        size_t n = strcspn(at, " ");
        if (strlen(text) == n && strncmp(text, at, n) == 0) {
            *out = i;
            return LS_OK;
        }
        at += n + strspn(at + n, " ");
    }
    return ls_fail(err, LS_INVALID, "%s: \"%s\" is none of: %s", s->key, text, s->choices);
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

ls_status ls_config_set(ls_config *cfg, const char *assignment, ls_err *err)
{
    const char *eq = strchr(assignment, '=');
    char key[128];
    ls_setting *s;

    if (eq == NULL || eq == assignment)
        return ls_fail(err, LS_INVALID, "\"%s\": settings are written key=value", assignment);
    snprintf(key, sizeof key, "%.*s", (int)(eq - assignment), assignment);
    s = find(cfg, key);
    if (s == NULL) return fail_key(cfg, key, err);
    if (s->kind == LS_SETTING_CHOICE) return parse_choice(s, eq + 1, &s->value, err);
    if (s->kind == LS_SETTING_BOOL && strcmp(eq + 1, "true") == 0) return s->value = 1, LS_OK;
    if (s->kind == LS_SETTING_BOOL && strcmp(eq + 1, "false") == 0) return s->value = 0, LS_OK;
    if (s->kind == LS_SETTING_BOOL)
        return ls_fail(err, LS_INVALID, "%s: \"%s\" is neither true nor false", key, eq + 1);
    return parse_number(s, eq + 1, &s->value, err);
}

/* -- reading ----------------------------------------------------------------------------------------------
 */

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
                          .form = (ls_adam_form)ls_config_int(cfg, "optimizer.form")};
}

ls_status ls_config_status(const ls_config *cfg, ls_err *err)
{
    if (cfg->err.status == LS_OK) return LS_OK;
    return ls_fail(err, cfg->err.status, "%s", cfg->err.text);
}
