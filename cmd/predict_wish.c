/* predict_wish.c: the options by which `lockstep predict` is asked about whole runs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "predict_run.h"
#include "train/limit.h"

#define UNTIL_HELP                                                                                           \
    "10ep (epochs), 5000st (steps), 1000000sa (samples) or 98%% (accuracy, with --study)" /* of a format */

static ls_status read_until(predict_wish *w, const char *text, ls_err *err)
{
    static const struct {
        const char *name;
        ls_period_unit unit;
    } units[] = {{"ep", LS_PERIOD_EPOCHS}, {"st", LS_PERIOD_STEPS}, {"sa", LS_PERIOD_SAMPLES}};
    const bool digits = (text[0] >= '0' && text[0] <= '9') || text[0] == '.';
    char *end;
    const double x = strtod(text, &end);

    if (digits && x > 0 && x <= 1e15) {
        for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
            if (strcmp(end, units[i].name) == 0 && (units[i].unit == LS_PERIOD_EPOCHS || x == floor(x)))
                w->length = (ls_period){x, units[i].unit};
        if (strcmp(end, "%") == 0 && x <= 100) w->accuracy = x / 100;
    }
    w->until = text;
    if (w->length.unit != LS_PERIOD_NONE || w->accuracy > 0) return LS_OK;
    return ls_fail(err, LS_INVALID, "--until %s: expected a length above 0: " UNTIL_HELP, text);
}

/* Those that mean nothing without a run. */
static const char *of_a_run(const cli_args *a)
{
    return a->deadline != NULL     ? "--deadline"
           : a->budget > 0         ? "--budget"
           : a->price > 0          ? "--price"
           : a->mtbf != NULL       ? "--mtbf"
           : a->checkpoint != NULL ? "--checkpoint"
           : a->restart != NULL    ? "--restart"
           : a->study.n > 0        ? "--study"
           : a->samples > 0        ? "--samples"
                                   : NULL;
}

static ls_status check_words(const predict_wish *w, const cli_args *a, ls_err *err)
{
    if (w->accuracy > 0 && a->study.n == 0)
        return ls_fail(
            err, LS_INVALID,
            "--until %s: nobody can compute when an accuracy is reached; --study FOLDER or --study "
            "FILE.csv takes trainings that were measured (`lockstep scale ... --train`, "
            "bench/large_batch.py)",
            w->until);
    if (w->accuracy == 0 && a->study.n > 0)
        return ls_fail(
            err, LS_INVALID,
            "--study says when an accuracy is reached, and --until %s asks for none: write --until "
            "98%%, or leave --study out",
            w->until);
    if (a->budget > 0 && a->price <= 0)
        return ls_fail(err, LS_INVALID, "--budget %g: at what price?  Add --price, of a machine for an hour",
                       a->budget);
    return LS_OK;
}

/* "5s", or a rate: "2GB/s". */
static ls_status read_checkpoint(predict_wish *w, const char *text, ls_err *err)
{
    const size_t n = strlen(text);
    char size[64];
    size_t bytes;
    ls_status st = LS_OK;

    if (n < 3 || n - 2 >= sizeof size || strcmp(text + n - 2, "/s") != 0) {
        if (ls_units_parse_seconds(text, "--checkpoint", &w->checkpoint_s, NULL) == LS_OK) return LS_OK;
        return ls_fail(err, LS_INVALID,
                       "--checkpoint: \"%s\" is neither a time nor a rate; write 5s, or 2GB/s, by which its "
                       "time follows from the bytes of weights and optimizer",
                       text);
    }
    snprintf(size, sizeof size, "%.*s", (int)(n - 2), text);
    LS_TRY(ls_text_parse_bytes(size, "--checkpoint", &bytes, err));
    w->checkpoint_bytes_s = (double)bytes;
out:
    return st;
}

static ls_status read_failures(predict_wish *w, const cli_args *a, ls_err *err)
{
    ls_status st = LS_OK;

    w->fails = a->mtbf != NULL;
    if (!w->fails && (a->checkpoint != NULL || a->restart != NULL))
        return ls_fail(err, LS_INVALID,
                       "%s: how often does a machine fail?  Add --mtbf TIME; without it nothing is said of "
                       "failures",
                       a->checkpoint != NULL ? "--checkpoint" : "--restart");
    if (w->fails && a->checkpoint == NULL)
        return ls_fail(err, LS_INVALID,
                       "--mtbf %s: what does a checkpoint take?  Add --checkpoint 5s, or --checkpoint 2GB/s",
                       a->mtbf);
    if (w->fails && a->restart == NULL)
        return ls_fail(err, LS_INVALID,
                       "--mtbf %s: how long until training goes on after a failure?  Add --restart TIME",
                       a->mtbf);
    if (!w->fails) return LS_OK;
    LS_TRY(ls_units_parse_seconds(a->mtbf, "--mtbf", &w->mtbf_s, err));
    LS_TRY(ls_units_parse_seconds(a->restart, "--restart", &w->restart_s, err));
    LS_TRY(read_checkpoint(w, a->checkpoint, err));
out:
    return st;
}

ls_status predict_wish_read(predict_wish *w, const cli_args *args, ls_err *err)
{
    const char *lonely = of_a_run(args);
    size_t unused;
    ls_status st = LS_OK;

    *w = (predict_wish){0};
    if (args->memory != NULL) LS_TRY(ls_text_parse_bytes(args->memory, "--memory", &unused, err));
    if (args->until == NULL && lonely == NULL) return LS_OK;
    if (args->until == NULL)
        return ls_fail(err, LS_INVALID, "%s: of which run?  Add --until: " UNTIL_HELP, lonely);
    LS_TRY(read_until(w, args->until, err));
    LS_TRY(check_words(w, args, err));
    w->price = args->price;
    w->samples = args->samples;
    w->samples_given = args->samples > 0;
    w->limits.most[LS_LIMIT_BUDGET] = args->budget;
    if (args->deadline != NULL)
        LS_TRY(ls_units_parse_seconds(args->deadline, "--deadline", &w->limits.most[LS_LIMIT_DEADLINE], err));
    LS_TRY(read_failures(w, args, err));
out:
    return st;
}
