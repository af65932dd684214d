/* names.c: the names that experiments of Determined use for the same settings.
 *
 * Each is one dotted key for one of ours; a length ({batches: 100}) becomes a number with a unit. */
#include <stdlib.h>
#include <string.h>

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
    bool yes = strcmp(e->value, "true") == 0;

    switch (form) {
    case SAME: return LS_OK;
    case STEPS: return to_period(e, "st", arena, err);
    case EPOCHS: return to_period(e, "ep", arena, err);
    case SAMPLES: return to_period(e, "sa", arena, err);
    case SMALLER:
        if (!yes && strcmp(e->value, "false") != 0)
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
