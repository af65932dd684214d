/* experiment.c: entries from files and overrides become a trial with checked settings, and a file again. */
#include "config/experiment.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "backend/backend.h"
#include "base/text.h"
#include "config/config_internal.h"
#include "config/hints.h"
#include "config/settings.h"
#include "passes/lower.h"
#include "trials/plugin.h"

/* -- known keys -------------------------------------------------------------------------------------------
 */

#define KEYS_MAX 192 /* more than a configuration can hold and all other names together */

/* The keys of a configuration, and after them the other names for them. */
typedef struct known_keys {
    const char *keys[KEYS_MAX];
    int n, n_own;
} known_keys;

static void list_keys(known_keys *k, const ls_config *cfg)
{
    LS_BUG_IF(ls_config_count(cfg) > KEYS_MAX);
    for (k->n = 0; k->n < ls_config_count(cfg); k->n++) k->keys[k->n] = ls_config_at(cfg, k->n).key;
    k->n_own = k->n;
    for (int i = 0; lsi_other_name(i) != NULL; i++) {
        LS_BUG_IF(k->n == KEYS_MAX);
        k->keys[k->n++] = lsi_other_name(i);
    }
}

/* Whether `key` is "group." and more. */
static bool is_inside(const char *key, const char *group)
{
    size_t n = strlen(group);

    return strncmp(key, group, n) == 0 && key[n] == '.';
}

/* Models have few settings of their own: all of them. */
static void list_of_model(const known_keys *k, char *text, size_t size)
{
    size_t at = 0;

    for (int i = 0; i < k->n_own && at < size; i++)
        if (strncmp(k->keys[i], "model.", 6) == 0 && strcmp(k->keys[i], "model.trial") != 0 &&
            strcmp(k->keys[i], "model.plugin_xxh3") != 0)
            at +=
                (size_t)snprintf(text + at, size - at, "%s%s", at > 0 ? ", " : "this model has ", k->keys[i]);
    if (at == 0) snprintf(text, size, "this model has no settings of its own");
}

/* What may be meant by a key that is none; "" when nobody knows.  In a group that only Determined has, its
 * own names come first. */
static void guess(const known_keys *k, const char *key, ls_hint *hint, char *text, size_t size)
{
    const size_t group = strcspn(key, ".");
    const char *near = ls_text_nearest(key, k->keys + k->n_own, (size_t)(k->n - k->n_own));

    *hint = ls_hint_find(key, k->keys, (size_t)k->n_own);
    if (near != NULL && key[group] == '.' && strncmp(near, key, group + 1) == 0)
        *hint = (ls_hint){.keys = {near}, .n = 1};
    ls_hint_write(hint, text, size);
    if (text[0] == '\0' && strncmp(key, "model.", 6) == 0) list_of_model(k, text, size);
}

/* An entry whose key is no setting: a group without keys is fine, the rest is explained. */
static ls_status judge_unknown(const lsi_entry *e, const known_keys *k, ls_err *err)
{
    const char *outer = NULL, *inner = NULL;
    ls_hint hint;
    char text[512];

    for (int i = 0; i < k->n; i++) {
        if (is_inside(e->written, k->keys[i])) outer = k->keys[i];
        if (inner == NULL && is_inside(k->keys[i], e->written)) inner = k->keys[i];
    }
    if (inner != NULL && e->kind != LSI_VALUE && e->kind != LSI_BLANK) return LS_OK;
    guess(k, e->written, &hint, text, sizeof text);
    if (inner != NULL && hint.sure)
        return lsi_fail_at(err, &e->at, "\"%s\" is a group of settings; %s", e->written, text);
    if (inner != NULL)
        return lsi_fail_at(err, &e->at, "\"%s\" is a group of settings, such as \"%s\"", e->written, inner);
    if (outer != NULL) return lsi_fail_at(err, &e->at, "\"%s\" takes one value, not a group", outer);
    if (text[0] != '\0') return lsi_fail_at(err, &e->at, "unknown key \"%s\"; %s", e->written, text);
    return lsi_fail_at(err, &e->at, "unknown key \"%s\"; `lockstep plan EXPERIMENT --settings` lists them",
                       e->written);
}

/* What a setting takes, for a message. */
static void describe_values(const ls_setting *s, char *text, size_t size)
{
    switch (s->kind) {
    case LS_SETTING_CHOICE: snprintf(text, size, "one of: %s", s->choices); break;
    case LS_SETTING_BOOL: snprintf(text, size, "true or false"); break;
    case LS_SETTING_PERIOD: snprintf(text, size, "1ep, 500st, 10000sa, 10min or none"); break;
    case LS_SETTING_INT: snprintf(text, size, "a whole number from %g to %g", s->lo, s->hi); break;
    case LS_SETTING_REAL: snprintf(text, size, "a number from %g to %g", s->lo, s->hi); break;
    case LS_SETTING_TEXT: snprintf(text, size, "a text, such as \"%s\"", s->text); break;
    }
}

/* `key=`: of a text that may be missing it means that it is, of all others it is a value that somebody
 * forgot, often an unset variable of a script. */
static ls_status check_blank(const ls_config *cfg, const lsi_entry *e, ls_err *err)
{
    const int i = ls_config_find(cfg, e->key);
    char values[256];

    if (i < 0 || strcmp(e->key, "name") == 0) return LS_OK; /* a name is then the model's */
    const ls_setting s = ls_config_at(cfg, i);
    if (s.kind == LS_SETTING_TEXT && s.text[0] == '\0') return LS_OK;
    describe_values(&s, values, sizeof values);
    return lsi_fail_at(err, &e->at, "the value is missing; it takes %s (null: the default)", values);
}

static ls_status check_keys(const ls_config *cfg, const lsi_entries *all, ls_err *err)
{
    known_keys k;
    ls_status st = LS_OK;

    list_keys(&k, cfg);
    for (int i = 0; i < all->n; i++) {
        const lsi_entry *e = &all->items[i];
        bool known = false;
        for (int j = 0; j < k.n && !known; j++) known = strcmp(k.keys[j], e->written) == 0;
        if (!known) LS_TRY(judge_unknown(e, &k, err));
        if (e->kind == LSI_BLANK) LS_TRY(check_blank(cfg, e, err));
        if (known && e->kind == LSI_EMPTY_GROUP) {
            st = lsi_fail_at(err, &e->at, "\"%s\" takes one value, not a group", e->written);
            goto out;
        }
    }
out:
    return st;
}

/* -- values -----------------------------------------------------------------------------------------------
 */

static ls_status choose_trial(ls_experiment *x, const lsi_entries *all, const char *source, ls_err *err)
{
    lsi_entry *e = lsi_find(all, "model.trial");
    ls_status st = LS_OK;

    if (e != NULL && e->kind == LSI_BLANK)
        return lsi_fail_at(err, &e->at, "the value is missing; `lockstep info` lists the models");
    if (e == NULL || e->kind != LSI_VALUE)
        return ls_fail(err, LS_INVALID, "%s: no model.trial; `lockstep info` lists the models", source);
    LS_TRY(lsi_resolve(all, e, NULL, err));
    LS_TRY(lsi_choose_trial(x, e, all, err));
    LS_TRY(ls_config_create_with(&x->cfg, x->trial, ls_train_settings, err));
    LS_TRY(ls_config_put(x->cfg, "name", x->trial->name, err));
out:
    return st;
}

/* AdamW is a form of adam here, where others call it an optimiser of its own.  What is said later about the
 * form counts, and what was said before is forgotten. */
static ls_status put_adamw(ls_experiment *x, const lsi_entries *all, const lsi_entry *e, ls_err *err)
{
    lsi_entry *form = lsi_find(all, "optimizer.form");
    ls_status st = LS_OK;

    if (form != NULL && form->kind == LSI_VALUE && form->layer >= e->layer &&
        strcmp(form->value, "adamw") != 0)
        return lsi_fail_at(err, &e->value_at,
                           "%s: adamw is adam with optimizer.form=adamw, but optimizer.form is %.100s; "
                           "leave one of the two out",
                           e->written, form->value);
    if (form != NULL) form->kind = LSI_NULL;
    LS_TRY(ls_config_put(x->cfg, "optimizer.name", "adam", err));
    LS_TRY(ls_config_put(x->cfg, "optimizer.form", "adamw", err));
out:
    return st;
}

static ls_status put_one(ls_experiment *x, const lsi_entries *all, const lsi_entry *e, ls_err *err)
{
    const char *known = ls_hint_value(e->key, e->value);
    const int i = ls_config_find(x->cfg, e->key);

    if (strcmp(e->key, "optimizer.name") == 0 && strcasecmp(e->value, "adamw") == 0)
        return put_adamw(x, all, e, err);
    if (known != NULL && i >= 0)
        return lsi_fail_at(err, &e->value_at, "%s: \"%.200s\" is none of: %s; %s", e->written, e->value,
                           ls_config_at(x->cfg, i).choices, known);
    const ls_status st = ls_config_put(x->cfg, e->key, e->value, err);
    return st == LS_OK ? st : lsi_fail_in_at(err, st, &e->value_at);
}

static ls_status put_all(ls_experiment *x, const lsi_entries *all, ls_err *err)
{
    ls_status st = LS_OK;

    for (int i = 0; i < all->n; i++) LS_TRY(lsi_resolve(all, &all->items[i], x->cfg, err));
    for (int i = 0; i < all->n; i++) {
        const lsi_entry *e = &all->items[i];
        if (e->kind == LSI_VALUE) LS_TRY(put_one(x, all, e, err));
    }
out:
    return st;
}

/* What a file that is written of these settings says of the plug-in. */
static ls_status note_plugin(ls_experiment *x, ls_err *err)
{
    char text[24] = "";

    if (x->plugin_xxh3 != 0) snprintf(text, sizeof text, "%016llx", (unsigned long long)x->plugin_xxh3);
    return ls_config_put(x->cfg, "model.plugin_xxh3", text, err);
}

/* "first:end" with 0 <= first < end. */
static bool parse_range(const char *text, int64_t *first, int64_t *end)
{
    char *rest;

    if (text[0] < '0' || text[0] > '9') return false;
    *first = strtoll(text, &rest, 10);
    if (rest[0] != ':' || rest[1] < '0' || rest[1] > '9') return false;
    *end = strtoll(rest + 1, &rest, 10);
    return *rest == '\0' && *first < *end;
}

static ls_status check_range(const ls_experiment *x, const lsi_entries *all, const char *key, ls_err *err)
{
    const char *text = ls_config_text(x->cfg, key);
    int64_t first, end;

    if (text[0] == '\0' || parse_range(text, &first, &end)) return LS_OK;
    return lsi_fail_at(err, &lsi_find(all, key)->value_at,
                       "%s: \"%.200s\" is no range; write first:end, such as 0:50000", key, text);
}

/* The name becomes that of a folder. */
static ls_status check_name(const ls_experiment *x, const lsi_entries *all, ls_err *err)
{
    const char *name = ls_config_text(x->cfg, "name");

    if (name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL && strlen(name) < 128) return LS_OK;
    return lsi_fail_at(err, &lsi_find(all, "name")->value_at,
                       "name: \"%.200s\" cannot be the name of a folder", name);
}

/* Whether the word names a device at all.  Whether this machine has it is asked by who computes there: a job,
 * or a run that is only looked at, may be another machine's. */
static ls_status check_device(const ls_experiment *x, const lsi_entries *all, ls_err *err)
{
    const ls_backend *backend;
    const ls_status st = ls_device_find(&backend, ls_config_text(x->cfg, "device"), err);

    return st == LS_OK ? st : lsi_fail_in_at(err, st, &lsi_find(all, "device")->value_at);
}

/* Rounding that a device does not know would be a word without a meaning. */
static ls_status check_precision(const ls_experiment *x, const lsi_entries *all, ls_err *err)
{
    const char *device = ls_config_text(x->cfg, "device");
    const lsi_entry *e = lsi_find(all, "precision");
    const ls_backend *backend;
    ls_status st = LS_OK;

    if (e == NULL || e->value == NULL || strcmp(e->value, "tf32") != 0) return LS_OK;
    LS_TRY(ls_device_find(&backend, device, err));
    if (backend->rounds) return LS_OK;
    return lsi_fail_at(err, &e->value_at,
                       "precision=tf32 rounds products on a GPU, and device=%s computes them in fp32; write "
                       "device=cuda (--device cuda), or precision=fp32",
                       device);
out:
    return st;
}

/* A word or a number. */
static ls_status check_loss_scale(const ls_experiment *x, const lsi_entries *all, ls_err *err)
{
    const char *text = ls_config_text(x->cfg, "fp16.loss_scale");
    char *end;
    double value;

    if (strcmp(text, "auto") == 0) return LS_OK;
    value = strtod(text, &end);
    if (end != text && *end == '\0' && value >= 1 && value <= LS_SCALE_MOST) return LS_OK;
    return lsi_fail_at(err, &lsi_find(all, "fp16.loss_scale")->value_at,
                       "fp16.loss_scale: \"%.60s\" is neither auto nor a number from 1 to %.0f", text,
                       LS_SCALE_MOST);
}

/* The value of a setting as a user writes it. */
static const char *value_of(const ls_experiment *x, const char *key, char *buf)
{
    const ls_setting s = ls_config_at(x->cfg, ls_config_find(x->cfg, key));

    return ls_setting_show(&s, buf);
}

/* Whether a setting of training has the value that it has where nobody sets it. */
static bool is_usual(const ls_experiment *x, const char *key)
{
    char now[LS_SETTING_SHOW_MAX], usual[LS_SETTING_SHOW_MAX];

    for (const ls_setting *s = ls_train_settings; s->key != NULL; s++)
        if (strcmp(s->key, key) == 0) return strcmp(value_of(x, key, now), ls_setting_show(s, usual)) == 0;
    return false;
}

/* Whether `other` was written knowing of e: in the same file, as in that of a run, which has all settings, or
 * in one that is based on e's, or on the command line.  Who writes both there means both. */
static bool knows_of(const lsi_entry *other, const lsi_entry *e)
{
    if (other == NULL || e->layer >= LSI_OVERRIDE_LAYER) return false;
    return other->layer >= e->layer;
}

/* Settings that another one leaves without a meaning: who sets them believes that they do something.  Where
 * the other one was set in their sight (a run that goes on with another precision), they simply rest. */
static ls_status check_meaning(const ls_experiment *x, const lsi_entries *all, ls_err *err)
{
    static const struct {
        const char *key, *other, *needs, *or_needs; /* values of the other setting */
    } rules[] = {
        {"parallel.prefetch", "parallel.strategy", "fsdp", "hybrid"},
        {"parallel.reshard", "parallel.strategy", "fsdp", "hybrid"},
        {"parallel.shard_group", "parallel.strategy", "hybrid", NULL},
        {"fp16.loss_scale", "precision", "fp16", NULL},
        {"fp16.initial_scale", "precision", "fp16", NULL},
        {"fp16.growth_interval", "precision", "fp16", NULL},
        {"fp16.initial_scale", "fp16.loss_scale", "auto", NULL},
        {"fp16.growth_interval", "fp16.loss_scale", "auto", NULL},
    };

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const lsi_entry *e = lsi_find(all, rules[i].key);
        char buf[LS_SETTING_SHOW_MAX];
        const char *text = value_of(x, rules[i].other, buf);
        if (e == NULL || is_usual(x, rules[i].key) || strcmp(text, rules[i].needs) == 0) continue;
        if (knows_of(lsi_find(all, rules[i].other), e)) continue;
        if (rules[i].or_needs != NULL && strcmp(text, rules[i].or_needs) == 0) continue;
        return lsi_fail_at(
            err, &e->value_at, "%s is for %s=%s%s%s, not for %s; leave it out, or set %s=%s", rules[i].key,
            rules[i].other, rules[i].needs, rules[i].or_needs != NULL ? " and " : "",
            rules[i].or_needs != NULL ? rules[i].or_needs : "", text, rules[i].other, rules[i].needs);
    }
    return LS_OK;
}

ls_status ls_experiment_share(ls_config *cfg, int64_t ranks, int64_t *share, ls_err *err)
{
    const int64_t global = ls_config_int(cfg, "batch.global"),
                  accumulate = ls_config_int(cfg, "parallel.accumulate");

    *share = 0;
    if (global == 0) return LS_OK;
    if (global % accumulate != 0 || global / accumulate < ranks)
        return ls_fail(err, LS_INVALID, "%lld samples cannot be shared by accumulate %lld x ranks %lld",
                       (long long)global, (long long)accumulate, (long long)ranks);
    *share = (global / accumulate + ranks - 1) / ranks;
    return LS_OK;
}

/* batch.per_rank as the share of a global batch. */
static ls_status share_batch(ls_experiment *x, const lsi_entries *all, ls_err *err)
{
    const lsi_entry *e = lsi_find(all, "batch.global");
    char text[LS_SETTING_SHOW_MAX];
    int64_t share;
    ls_err why = {0};
    ls_status st = ls_experiment_share(x->cfg, ls_config_int(x->cfg, "ranks"), &share, &why);

    if (st != LS_OK) return lsi_fail_at(err, &e->value_at, "%s: %s", e->written, why.text);
    if (share == 0) return LS_OK;
    snprintf(text, sizeof text, "%lld", (long long)share);
    st = ls_config_put(x->cfg, "batch.per_rank", text, err);
    return st == LS_OK ? st : lsi_fail_in_at(err, st, &e->value_at);
}

ls_status lsi_configure(ls_experiment *out, const lsi_entries *all, const char *source, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(choose_trial(out, all, source, err));
    LS_TRY(check_keys(out->cfg, all, err));
    LS_TRY(put_all(out, all, err));
    LS_TRY(note_plugin(out, err));
    LS_TRY(check_name(out, all, err));
    LS_TRY(check_device(out, all, err));
    LS_TRY(check_precision(out, all, err));
    LS_TRY(check_loss_scale(out, all, err));
    LS_TRY(check_meaning(out, all, err));
    LS_TRY(check_range(out, all, "data.train_range", err));
    LS_TRY(check_range(out, all, "data.test_range", err));
    LS_TRY(check_range(out, all, "data.val_range", err));
    LS_TRY(lsi_count_updates(out->cfg, all, err));
    LS_TRY(share_batch(out, all, err));
out:
    return st;
}

/* -- loading ----------------------------------------------------------------------------------------------
 */

/* The value of an override as YAML.  A pattern may begin with '*', which YAML takes for the name of something
 * that was given before; on a command line there is no such thing. */
static const char *override_value(ls_arena *arena, const char *value)
{
    if (value[0] != '*') return value;
    return strchr(value, '\'') == NULL ? ls_arena_printf(arena, "'%s'", value)
                                       : ls_arena_printf(arena, "\"%s\"", value);
}

static ls_status add_overrides(lsi_entries *all, const char *const *overrides, int n, ls_err *err)
{
    lsi_document *doc = ls_arena_alloc(all->arena, sizeof *doc);
    ls_status st = LS_OK;

    if (doc == NULL) return ls_fail(err, LS_NOMEM, "experiment: no memory");
    LS_TRY(lsi_entries_create(&doc->entries, all->arena, err));
    for (int i = 0; i < n; i++) {
        const char *eq = strchr(overrides[i], '=');
        const char *value;
        char *key;
        if (eq == NULL || eq == overrides[i])
            return ls_fail(err, LS_INVALID, "\"%.200s\": settings are written key=value", overrides[i]);
        key = ls_arena_printf(all->arena, "%.*s", (int)(eq - overrides[i]), overrides[i]);
        value = override_value(all->arena, eq + 1);
        if (key == NULL || value == NULL) return ls_fail(err, LS_NOMEM, "experiment: no memory");
        LS_TRY(lsi_yaml_parse(doc, value, strlen(value), overrides[i], key, err));
        LS_TRY(lsi_merge(all, &doc->entries, LSI_OVERRIDE_LAYER + i, err));
    }
out:
    return st;
}

/* No file of that name: it must be a trial's, or that of a plug-in. */
static ls_status add_trial(lsi_entries *all, const char *name, ls_err *err)
{
    const ls_trial *trial;

    if (!ls_plugin_is_named(name) && ls_experiment_trial(&trial, name, NULL) != LS_OK)
        return lsi_fail_name(name, err);
    all->items[all->n++] = (lsi_entry){.key = "model.trial",
                                       .written = "model.trial",
                                       .value = name,
                                       .at = {name, 0, 0},
                                       .value_at = {name, 0, 0}};
    return LS_OK;
}

ls_status ls_experiment_load(ls_experiment *out, const char *name, const char *const *overrides, int n,
                             ls_err *err)
{
    ls_status st = LS_OK;
    ls_arena *arena = NULL;
    const char *path = NULL;
    lsi_entries all;

    *out = (ls_experiment){0};
    LS_TRY(ls_arena_create(&arena, LS_MEM_CLI, err));
    LS_TRY(lsi_entries_create(&all, arena, err));
    if (name != NULL) LS_TRY(lsi_find_file(&path, name, arena, err));
    if (path != NULL)
        LS_TRY(lsi_read_file(&all, path, err));
    else if (name != NULL)
        LS_TRY(add_trial(&all, name, err));
    LS_TRY(add_overrides(&all, overrides, n, err));
    LS_TRY(lsi_configure(out, &all, path != NULL ? path : name != NULL ? name : "the settings", err));
out:
    ls_arena_destroy(arena);
    return st;
}

void ls_experiment_release(ls_experiment *x)
{
    ls_config_destroy(x->cfg);
    *x = (ls_experiment){0};
}

bool ls_experiment_range(const ls_experiment *x, const char *key, int64_t *first, int64_t *end)
{
    return parse_range(ls_config_text(x->cfg, key), first, end);
}

/* -- writing ----------------------------------------------------------------------------------------------
 */

static void write_text(const char *text, FILE *file)
{
    fputc('"', file);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', file);
        if (strncmp(text, "${", 2) == 0) fputc('$', file);
        fputc(*text, file);
    }
    fputs("\"\n", file);
}

static void write_setting(const ls_setting *s, const char *key, FILE *file)
{
    char buf[LS_SETTING_SHOW_MAX];

    fprintf(file, "%s: ", key);
    if (s->kind == LS_SETTING_TEXT)
        write_text(s->text, file);
    else
        fprintf(file, "%s\n", ls_setting_show(s, buf));
}

/* All settings of the group that setting `at` is the first of. */
static void write_group(ls_config *cfg, int at, size_t group, FILE *file)
{
    const char *first = ls_config_at(cfg, at).key;
    const char *left_out = ls_config_int(cfg, "batch.global") > 0 ? "batch.per_rank" : "batch.global";

    for (int i = 0; i < at; i++)
        if (strncmp(ls_config_at(cfg, i).key, first, group + 1) == 0) return; /* written already */
    fprintf(file, "%.*s:\n", (int)group, first);
    for (int i = at; i < ls_config_count(cfg); i++) {
        ls_setting s = ls_config_at(cfg, i);
        if (strncmp(s.key, first, group + 1) != 0 || strcmp(s.key, left_out) == 0) continue;
        fputs("  ", file);
        write_setting(&s, s.key + group + 1, file);
    }
}

void ls_experiment_write(const ls_experiment *x, FILE *file)
{
    for (int i = 0; i < ls_config_count(x->cfg); i++) {
        ls_setting s = ls_config_at(x->cfg, i);
        size_t group = strcspn(s.key, ".");
        if (s.key[group] == '.')
            write_group(x->cfg, i, group, file);
        else
            write_setting(&s, s.key, file);
    }
}
