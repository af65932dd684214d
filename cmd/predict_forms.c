/* predict_forms.c: the forms of `lockstep predict`, and which of its options each of them takes: one that
 * would change nothing is refused, since whoever writes it expects something of it. */
#include <stdio.h>

#include "predict.h"

/* A form of the command, as a bit. */
typedef enum form {
    FORM_PREDICTION = 1,
    FORM_MEASURE = 2, /* --calibrate that measures, and takes files as well */
    FORM_FILES = 4,   /* --calibrate of files alone */
    FORM_SCRIPT = 8,  /* --calibrate --slurm */
    FORM_LIST = 16
} form;

enum { N_FORMS = 5, CALIBRATIONS = FORM_MEASURE | FORM_FILES | FORM_SCRIPT };

static const char *const form_names[N_FORMS] = {"predictions", "--calibrate", "--calibrate of files alone",
                                                "--calibrate --slurm", "--list"};

/* Every option of the command but --help, and those that name a form. */
static const struct {
    const char *name;
    unsigned forms;
    unsigned hinted; /* forms that are told what else to write: */
    const char *hint;
} uses[] = {
    {"--json", FORM_PREDICTION | FORM_MEASURE | FORM_FILES, 0, NULL},
    {"--slurm", CALIBRATIONS, 0, NULL},
    {"--device", FORM_PREDICTION | FORM_MEASURE | FORM_SCRIPT, 0, NULL},
    {"--threads", FORM_PREDICTION | FORM_MEASURE | FORM_SCRIPT, 0, NULL},
    {"--ranks", FORM_PREDICTION | FORM_MEASURE, FORM_SCRIPT, "--ranks-per-node says how many a machine has"},
    {"--batches", FORM_PREDICTION | FORM_MEASURE, FORM_SCRIPT, "batch.per_rank=N is the job's"},
    {"--out", FORM_PREDICTION | FORM_MEASURE | FORM_FILES, FORM_SCRIPT, "the job writes calibrate-NxR.json"},
    {"--ranks-per-node", FORM_PREDICTION | FORM_SCRIPT, FORM_MEASURE | FORM_FILES,
     "--ranks says how many ranks of each machine are measured"},
    {"--nodes", FORM_MEASURE | FORM_SCRIPT, FORM_FILES, "EXPERIMENT or --ranks measures as well"},
    {"--node-rank", FORM_MEASURE, 0, NULL},
    {"--master", FORM_MEASURE, 0, NULL},
    {"--join-timeout", FORM_MEASURE, 0, NULL},
    {"--insecure", FORM_MEASURE, 0, NULL},
    {"--steps", FORM_MEASURE | FORM_SCRIPT, 0, NULL},
    {"--seconds", FORM_MEASURE | FORM_SCRIPT, 0, NULL},
    {"--sizes", FORM_MEASURE | FORM_SCRIPT, 0, NULL},
    {"--strategy", FORM_PREDICTION, CALIBRATIONS, "parallel.strategy=NAME is what is measured"},
    {"--machine", FORM_PREDICTION, 0, NULL},
    {"--network", FORM_PREDICTION, 0, NULL},
    {"--algorithm", FORM_PREDICTION, 0, NULL},
    {"--placement", FORM_PREDICTION, 0, NULL},
    {"--engine", FORM_PREDICTION, 0, NULL},
    {"--step-time", FORM_PREDICTION, 0, NULL},
    {"--measured", FORM_PREDICTION, 0, NULL},
    {"--csv", FORM_PREDICTION, 0, NULL},
    {"--until", FORM_PREDICTION, 0, NULL},
    {"--samples", FORM_PREDICTION, 0, NULL},
    {"--study", FORM_PREDICTION, 0, NULL},
    {"--price", FORM_PREDICTION, 0, NULL},
    {"--budget", FORM_PREDICTION, 0, NULL},
    {"--deadline", FORM_PREDICTION, 0, NULL},
    {"--memory", FORM_PREDICTION, 0, NULL},
    {"--mtbf", FORM_PREDICTION, 0, NULL},
    {"--checkpoint", FORM_PREDICTION, 0, NULL},
    {"--restart", FORM_PREDICTION, 0, NULL},
};

static form form_of(const cli_args *a)
{
    if (a->list) return FORM_LIST;
    if (!a->calibrate) return FORM_PREDICTION;
    if (a->script) return FORM_SCRIPT;
    return predict_calibrate_measures(a) ? FORM_MEASURE : FORM_FILES;
}

/* "predictions and --calibrate". */
static void name_forms(unsigned forms, char *buf, size_t size)
{
    size_t at = 0;

    if ((forms & CALIBRATIONS) == CALIBRATIONS) forms &= ~(unsigned)(FORM_FILES | FORM_SCRIPT);
    buf[0] = '\0';
    for (unsigned k = 0; k < N_FORMS && at < size; k++) {
        if (!(forms & 1u << k)) continue;
        forms &= ~(1u << k);
        at += (size_t)snprintf(buf + at, size - at, "%s%s",
                               at == 0      ? ""
                               : forms == 0 ? " and "
                                            : ", ",
                               form_names[k]);
    }
}

ls_status predict_forms_check(const cli_args *args, ls_err *err)
{
    const form f = form_of(args);
    char mine[64], others[160];

    if (args->list && args->calibrate) return ls_fail(err, LS_INVALID, "--list and --calibrate: choose one");
    name_forms(f, mine, sizeof mine);
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++) {
        const char *hint = (f & uses[i].hinted) ? uses[i].hint : NULL;
        if ((uses[i].forms & f) || !cli_is_given(args, CLI_PREDICT, uses[i].name)) continue;
        name_forms(uses[i].forms, others, sizeof others);
        return ls_fail(err, LS_INVALID, "%s is for %s, and not for %s%s%s", uses[i].name, others, mine,
                       hint != NULL ? "; " : "", hint != NULL ? hint : "");
    }
    if (f == FORM_LIST && (args->model != NULL || args->n_settings > 0))
        return ls_fail(err, LS_INVALID, "\"%s\" is one word too many: --list names all that is known",
                       args->model != NULL ? args->model : args->settings[0]);
    return LS_OK;
}
