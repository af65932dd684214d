/* names.c: the names that experiments of Determined use for the same settings.
 *
 * Each is one dotted key for one of ours; a length ({batches: 100}) becomes a number with a unit. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/config_internal.h"

typedef enum value_form { SAME, STEPS, EPOCHS, SAMPLES, SMALLER, SINGLE } value_form;

static const struct {
    const char *from, *to;
    value_form form;
} names[] = {
    {"resources.slots_per_trial", "ranks", SAME},
    {"hyperparameters.global_batch_size", "batch.global", SAME},
    {"optimizations.aggregation_frequency", "parallel.accumulate", SAME},
    {"hyperparameters.decay_epoch", "lr.hold", EPOCHS},
    {"data.sample_interval", "train.sample_every", SAMPLES},
    {"searcher.max_length.batches", "train.steps", SAME},
    {"searcher.max_length.epochs", "train.epochs", SAME},
    {"searcher.metric", "train.best_metric", SAME},
    {"searcher.smaller_is_better", "train.best_mode", SMALLER},
    {"searcher.name", NULL, SINGLE},
    {"min_validation_period.batches", "train.validate_every", STEPS},
    {"min_validation_period.epochs", "train.validate_every", EPOCHS},
    {"min_validation_period.records", "train.validate_every", SAMPLES},
    {"min_checkpoint_period.batches", "train.checkpoint_every", STEPS},
    {"min_checkpoint_period.epochs", "train.checkpoint_every", EPOCHS},
    {"min_checkpoint_period.records", "train.checkpoint_every", SAMPLES},
};

#define N_NAMES ((int)(sizeof names / sizeof names[0]))

const char *lsi_other_name(int i)
{
    return i < N_NAMES ? names[i].from : NULL;
}

/* A count of batches, epochs or records; Determined writes 0 for "no period". */
static ls_status to_period(lsi_entry *e, const char *unit, ls_arena *arena, ls_err *err)
{
    char *end;
    double x = strtod(e->value, &end);

    if (end == e->value || *end != '\0')
        return lsi_fail_at(err, &e->value_at, "%s: \"%.200s\" is no number", e->written, e->value);
    e->value = x == 0 ? "none" : ls_arena_printf(arena, "%s%s", e->value, unit);
    if (e->value == NULL) return ls_fail(err, LS_NOMEM, "experiment: no memory");
    return LS_OK;
}

static ls_status convert(lsi_entry *e, value_form form, ls_arena *arena, ls_err *err)
{
    const bool yes = strcasecmp(e->value, "true") == 0;

    switch (form) {
    case SAME: return LS_OK;
    case STEPS: return to_period(e, "st", arena, err);
    case EPOCHS: return to_period(e, "ep", arena, err);
    case SAMPLES: return to_period(e, "sa", arena, err);
    case SMALLER:
        if (!yes && strcasecmp(e->value, "false") != 0)
            return lsi_fail_at(err, &e->value_at, "%s: \"%.200s\" is neither true nor false", e->written,
                               e->value);
        e->value = yes ? "min" : "max";
        return LS_OK;
    case SINGLE:
        if (strcmp(e->value, "single") != 0)
            return lsi_fail_at(err, &e->value_at,
                               "%s: \"%.200s\": one experiment is one run; only \"single\" is known",
                               e->written, e->value);
        e->kind = LSI_NULL;
        return LS_OK;
    }
    return LS_OK;
}

static int find(const char *name)
{
    for (int i = 0; i < N_NAMES; i++)
        if (strcmp(name, names[i].from) == 0) return i;
    return -1;
}

void lsi_rename(lsi_entry *e)
{
    int i = find(e->written);

    if (i >= 0 && names[i].to != NULL) e->key = names[i].to;
}

ls_status lsi_convert(lsi_entry *e, ls_arena *arena, ls_err *err)
{
    int i = find(e->written);

    return i < 0 ? LS_OK : convert(e, names[i].form, arena, err);
}

/* The entry for `key`, where it was written with a Determined name that ends so; else NULL. */
static const lsi_entry *find_written(const lsi_entries *all, const char *key, const char *end)
{
    const lsi_entry *e = lsi_find(all, key);
    const size_t n = e != NULL ? strlen(e->written) : 0, m = strlen(end);

    if (e == NULL || e->kind != LSI_VALUE || find(e->written) < 0 || n < m) return NULL;
    return strcmp(e->written + n - m, end) == 0 ? e : NULL;
}

static ls_status put(ls_config *cfg, const lsi_entry *e, int64_t n, const char *unit, ls_err *err)
{
    char text[LS_SETTING_SHOW_MAX];
    ls_status st;

    snprintf(text, sizeof text, "%lld%s", (long long)n, unit);
    st = ls_config_put(cfg, e->key, text, err);
    return st == LS_OK ? st : lsi_fail_in_at(err, st, &e->value_at);
}

ls_status lsi_count_updates(ls_config *cfg, const lsi_entries *all, ls_err *err)
{
    static const char *const periods[] = {"train.validate_every", "train.checkpoint_every"};
    const int64_t batches = ls_config_int(cfg, "parallel.accumulate"); /* of an update */
    const lsi_entry *e;
    ls_status st = LS_OK;

    if (find_written(all, "parallel.accumulate", "aggregation_frequency") == NULL) return LS_OK;
    e = find_written(all, "batch.global", "global_batch_size");
    if (e != NULL) LS_TRY(put(cfg, e, ls_config_int(cfg, e->key) * batches, "", err));
    e = find_written(all, "train.steps", ".batches");
    if (e != NULL) LS_TRY(put(cfg, e, (ls_config_int(cfg, e->key) + batches - 1) / batches, "", err));
    for (size_t i = 0; i < sizeof periods / sizeof periods[0]; i++) {
        const ls_period p = ls_config_period(cfg, periods[i]);
        e = find_written(all, periods[i], ".batches");
        if (e != NULL && p.unit == LS_PERIOD_STEPS)
            LS_TRY(put(cfg, e, (int64_t)ceil(p.value / (double)batches), "st", err));
    }
out:
    return st;
}
