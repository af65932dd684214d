/* history.c: the files of a run as numbers. */
#include "train/history.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "base/whole.h"
#include "runs/reader.h"

/* A line a second for a month is 2.6 million of them, and a quarter of this. */
#define METRICS_MAX_BYTES ((size_t)1 << 30)

/* -- metrics.jsonl -----------------------------------------------------------------------------------------
 */

/* Makes room for one more number in both columns. */
static ls_status grow(double **a, double **b, int64_t n, size_t *capacity, ls_err *err)
{
    size_t first = *capacity;

    if (LS_GROW(LS_MEM_CLI, *a, n + 1, first) && LS_GROW(LS_MEM_CLI, *b, n + 1, *capacity)) return LS_OK;
    return ls_fail(err, LS_NOMEM, "no memory for the curves of a run");
}

static ls_curve *find(const ls_history *h, const char *name)
{
    for (int i = 0; i < h->n_curves; i++)
        if (strcmp(h->curves[i].name, name) == 0) return &h->curves[i];
    return NULL;
}

const ls_curve *ls_history_curve(const ls_history *h, const char *name)
{
    return find(h, name);
}

/* The curve called so, made where it is new. */
static ls_status curve_of(ls_history *h, const char *name, ls_curve **out, ls_err *err)
{
    *out = find(h, name);
    if (*out != NULL) return LS_OK;
    if (h->n_curves == LS_HISTORY_CURVES)
        return ls_fail(err, LS_DATA, "more than %d metrics; is this file the work of `lockstep train`?",
                       LS_HISTORY_CURVES);
    if (strlen(name) >= LS_HISTORY_NAME)
        return ls_fail(err, LS_DATA, "the name \"%.40s...\" has more than %d bytes", name,
                       LS_HISTORY_NAME - 1);
    if (h->curves == NULL) h->curves = ls_alloc(LS_MEM_CLI, LS_HISTORY_CURVES * sizeof *h->curves);
    if (h->curves == NULL) return ls_fail(err, LS_NOMEM, "no memory for the curves of a run");
    *out = &h->curves[h->n_curves++];
    snprintf((*out)->name, sizeof(*out)->name, "%s", name);
    return LS_OK;
}

static ls_status add_time(ls_history *h, double step, double time_s, ls_err *err)
{
    ls_status st = LS_OK;

    if (h->n_times > 0 && h->step[h->n_times - 1] >= step) return LS_OK;
    LS_TRY(grow(&h->step, &h->time_s, h->n_times, &h->times_capacity, err));
    h->step[h->n_times] = step;
    h->time_s[h->n_times++] = time_s;
out:
    return st;
}

static bool is_metric(const char *name, const json_t *value)
{
    return strcmp(name, "step") != 0 && strcmp(name, "epoch") != 0 && strcmp(name, "time_s") != 0 &&
           (json_is_number(value) || json_is_null(value));
}

static ls_status add_line(ls_history *h, json_t *line, ls_err *err)
{
    const json_t *step = json_object_get(line, "step"), *epoch = json_object_get(line, "epoch");
    const json_t *time_s = json_object_get(line, "time_s");
    const char *name;
    json_t *value;
    ls_status st = LS_OK;

    LS_TRY(add_time(h, json_number_value(step), json_number_value(time_s), err));
    json_object_foreach(line, name, value)
    {
        ls_curve *c;
        if (!is_metric(name, value)) continue;
        LS_TRY(curve_of(h, name, &c, err));
        LS_TRY(grow(&c->epoch, &c->value, c->n, &c->capacity, err));
        c->epoch[c->n] = json_number_value(epoch);
        c->value[c->n++] = json_is_number(value) ? json_number_value(value) : NAN;
    }
out:
    return st;
}

ls_status ls_history_parse(ls_history *h, const char *text, size_t n, const char *path, ls_err *err)
{
    ls_metrics_reader r;
    json_t *line;
    ls_status st = LS_OK;

    ls_metrics_reader_begin(&r, text, n);
    while (st == LS_OK && (line = ls_metrics_next(&r)) != NULL) {
        st = add_line(h, line, err);
        json_decref(line);
    }
    h->damage = r.damage;
    if (st != LS_OK) ls_fail_in(err, st, "%s, line %lld", path, (long long)r.line);
    return st;
}

void ls_history_release(ls_history *h)
{
    for (int i = 0; i < h->n_curves; i++) {
        ls_free(h->curves[i].epoch);
        ls_free(h->curves[i].value);
    }
    ls_free(h->curves);
    ls_free(h->step);
    ls_free(h->time_s);
    *h = (ls_history){0};
}

/* -- the folder --------------------------------------------------------------------------------------------
 */

/* The state in it is the true one: nobody is told that a killed run goes on. */
static ls_status read_summary(ls_past_run *r, ls_err *err)
{
    ls_run_info i;
    ls_status st = ls_run_read(&i, r->path, err);

    if (st == LS_OK && i.summary == NULL)
        st = ls_fail(err, LS_DATA, "%s",
                     i.trouble[0] != '\0' ? i.trouble : "summary.json is not there: the run has not begun");
    if (st == LS_OK &&
        (json_object_set_new(i.summary, "state", json_string(ls_run_state_name(i.state))) != 0))
        st = ls_fail(err, LS_NOMEM, "no memory for the summary of a run");
    if (st == LS_OK) {
        snprintf(r->name, sizeof r->name, "%s", i.folder);
        r->summary = json_incref(i.summary);
        r->alive = i.alive;
    }
    ls_run_info_release(&i);
    return st;
}

static ls_status read_metrics(ls_past_run *r, ls_err *err)
{
    char path[4200], *text = NULL;
    ls_status st = LS_OK;
    size_t n;

    snprintf(path, sizeof path, "%s/metrics.jsonl", r->path);
    if (r->alive && access(path, F_OK) != 0) return LS_OK; /* it has just begun */
    LS_TRY(ls_whole_file(&text, &n, path, METRICS_MAX_BYTES, err));
    LS_TRY(ls_history_parse(&r->history, text, n, path, err));
out:
    ls_free(text);
    return st;
}

ls_status ls_past_run_open(ls_past_run *r, const char *path, ls_err *err)
{
    struct stat info;
    ls_status st = LS_OK;

    *r = (ls_past_run){0};
    if (strlen(path) >= sizeof r->path)
        return ls_fail(err, LS_INVALID, "a path of more than %zu bytes", sizeof r->path);
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return ls_fail(err, LS_INVALID, "there is no folder %s; `lockstep train` says where a run is", path);
    snprintf(r->path, sizeof r->path, "%s", path);
    LS_TRY(read_summary(r, err));
    LS_TRY(read_metrics(r, err));
out:
    if (st == LS_DATA) {
        /* Both files are written by the run: what is gone cannot be mended, but it can be made again. */
        size_t n = strlen(err != NULL ? err->text : "");
        if (err != NULL && n < sizeof err->text)
            snprintf(err->text + n, sizeof err->text - n,
                     "; a run has both summary.json and metrics.jsonl: continue it with `lockstep train "
                     "--resume=RUN`, or leave it out");
    }
    return st;
}

void ls_past_run_release(ls_past_run *r)
{
    ls_history_release(&r->history);
    json_decref(r->summary);
    r->summary = NULL;
}

double ls_past_run_number(const ls_past_run *r, const char *within, const char *key)
{
    const json_t *o = within != NULL ? json_object_get(r->summary, within) : r->summary;
    const json_t *v = json_object_get(o, key);

    return json_is_number(v) ? json_number_value(v) : NAN;
}

const char *ls_past_run_text(const ls_past_run *r, const char *key)
{
    const char *text = json_string_value(json_object_get(r->summary, key));

    return text != NULL ? text : "";
}

void ls_past_run_warn(const ls_past_run *r)
{
    char path[4200];

    snprintf(path, sizeof path, "%s/metrics.jsonl", r->path);
    ls_metrics_warn(&r->history.damage, path);
}
