/* ledger.c: the parts of a run's time, by name. */
#include "train/ledger.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

enum { PATH_BYTES = 4200, TAIL_BYTES = 8192 };

static const struct {
    const char *name;
    size_t at;
} parts[] = {
    {"setup", offsetof(ls_ledger, setup)},       {"compute", offsetof(ls_ledger, compute)},
    {"evaluate", offsetof(ls_ledger, evaluate)}, {"comm", offsetof(ls_ledger, comm)},
    {"data", offsetof(ls_ledger, data)},         {"checkpoint", offsetof(ls_ledger, checkpoint)},
    {"restart", offsetof(ls_ledger, restart)},   {"redone", offsetof(ls_ledger, redone)},
    {"idle", offsetof(ls_ledger, idle)},
};

enum { N_PARTS = sizeof parts / sizeof parts[0] };

static double *part(ls_ledger *l, int i)
{
    return (double *)(void *)((char *)l + parts[i].at);
}

double ls_ledger_total(const ls_ledger *l)
{
    ls_ledger copy = *l;
    double sum = 0;

    for (int i = 0; i < N_PARTS; i++) sum += *part(&copy, i);
    return sum;
}

json_t *ls_ledger_json(const ls_ledger *l)
{
    ls_ledger copy = *l;
    json_t *o = json_object();

    for (int i = 0; i < N_PARTS; i++)
        if (json_object_set_new(o, parts[i].name, json_real(*part(&copy, i))) != 0) {
            json_decref(o);
            return NULL;
        }
    return o;
}

void ls_ledger_read(ls_ledger *l, const json_t *from, double seconds)
{
    *l = (ls_ledger){0};
    if (!json_is_object(from)) {
        l->idle = seconds;
        return;
    }
    for (int i = 0; i < N_PARTS; i++) {
        double v = json_number_value(json_object_get(from, parts[i].name));
        if (isfinite(v) && v > 0) *part(l, i) = v;
    }
}

/* "time_s" of the last whole line of metrics.jsonl. */
static double last_reported(const char *folder)
{
    char path[PATH_BYTES], tail[TAIL_BYTES + 1], *line, *end;
    double seconds = 0;
    FILE *f;
    size_t n;

    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    f = fopen(path, "r");
    if (f == NULL) return 0;
    if (fseek(f, -TAIL_BYTES, SEEK_END) != 0) rewind(f);
    n = fread(tail, 1, TAIL_BYTES, f);
    fclose(f);
    tail[n] = '\0';
    end = strrchr(tail, '\n');
    if (end == NULL) return 0;
    *end = '\0';
    line = strrchr(tail, '\n');
    json_t *o = json_loads(line != NULL ? line + 1 : tail, 0, NULL);
    seconds = json_number_value(json_object_get(o, "time_s"));
    json_decref(o);
    return seconds;
}

static json_t *load_summary(const char *folder)
{
    char path[PATH_BYTES];
    json_t *summary;

    snprintf(path, sizeof path, "%s/summary.json", folder);
    return ls_json_read(&summary, path, LS_JSON_FILE_MAX, NULL) == LS_OK ? summary : NULL;
}

void ls_ledger_recall(ls_ledger *l, const char *folder, int64_t step)
{
    json_t *o = load_summary(folder);
    ls_ledger recalled;

    ls_ledger_read(&recalled, json_object_get(o, "ledger_s"), 0);
    if (json_integer_value(json_object_get(o, "steps")) == step &&
        ls_ledger_total(&recalled) > ls_ledger_total(l))
        *l = recalled;
    json_decref(o);
}

double ls_ledger_known_seconds(const char *folder)
{
    json_t *o = load_summary(folder);
    const char *state = json_string_value(json_object_get(o, "state"));
    const bool cut_off = state == NULL || strcmp(state, "running") == 0 || strcmp(state, "killed") == 0;
    const double summary = json_number_value(json_object_get(o, "wall_s"));

    json_decref(o);
    return fmax(0, cut_off ? fmax(summary, last_reported(folder)) : summary);
}

void ls_ledger_begin(ls_ledger *l, bool resumed, double known, double setup)
{
    const double before = ls_ledger_total(l);

    if (!resumed) {
        l->setup += setup;
        return;
    }
    /* Files hold nine digits: less than a microsecond is rounding. */
    if (known > before + 1e-6) l->redone += known - before;
    l->restart += setup;
}
