/* query.c: fields of runs, conditions over them, order by them. */
#include "runs/query.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "runs/owner_internal.h"

/* -- fields -----------------------------------------------------------------------------------------------
 */

static ls_run_value of_number(double v)
{
    return isfinite(v) ? (ls_run_value){.kind = LS_RUN_NUMBER, .number = v}
                       : (ls_run_value){.kind = LS_RUN_NONE};
}

/* A number where the text is one, also "1e-3". */
static ls_run_value of_text(const char *text)
{
    char *end;
    double v;

    if (text == NULL || text[0] == '\0') return (ls_run_value){.kind = LS_RUN_NONE};
    v = strtod(text, &end);
    if (*end == '\0' && end != text && isfinite(v))
        return (ls_run_value){.kind = LS_RUN_NUMBER, .number = v, .text = text};
    return (ls_run_value){.kind = LS_RUN_TEXT, .text = text};
}

static double number_at(const json_t *o, const char *within, const char *key)
{
    const json_t *v = json_object_get(within != NULL ? json_object_get(o, within) : o, key);

    return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

double ls_run_seconds(const ls_run_info *i)
{
    const double wall = number_at(i->summary, NULL, "wall_s");

    if (i->state == LS_RUN_RUNNING && isfinite(i->opened))
        return fmax(lsi_now() - i->opened, isfinite(wall) ? wall : 0);
    return isfinite(wall) ? wall : i->heartbeat - i->started;
}

double ls_run_best(const ls_run_row *r, const char **of)
{
    const json_t *best = json_object_get(json_object_get(r->info->summary, "metrics"), "best");
    const double value = number_at(best, NULL, "value");
    const char *name = json_string_value(json_object_get(best, "metric"));

    if (name == NULL) name = ls_run_setting_value(&r->settings, "train.best_metric", -1);
    *of = isfinite(value) && name != NULL ? name : "";
    return value;
}

typedef double (*number_fn)(const ls_run_row *r);
typedef const char *(*text_fn)(const ls_run_row *r);

static double started(const ls_run_row *r)
{
    return isfinite(r->info->started) ? r->info->started : r->info->opened;
}

static double seconds(const ls_run_row *r)
{
    return ls_run_seconds(r->info);
}

static double ranks(const ls_run_row *r)
{
    return r->info->ranks > 0 ? r->info->ranks : (double)NAN;
}

static double steps(const ls_run_row *r)
{
    return r->info->steps >= 0 ? (double)r->info->steps : (double)NAN;
}

static double epochs(const ls_run_row *r)
{
    return r->info->epochs;
}

static double rate(const ls_run_row *r)
{
    return number_at(r->info->summary, "samples_per_s", "p50");
}

static double best(const ls_run_row *r)
{
    const char *of;

    return ls_run_best(r, &of);
}

static const char *folder(const ls_run_row *r)
{
    return r->info->folder;
}

static const char *name(const ls_run_row *r)
{
    return r->info->name;
}

static const char *state(const ls_run_row *r)
{
    return r->info->trouble[0] != '\0' ? "damaged" : ls_run_state_name(r->info->state);
}

static const char *host(const ls_run_row *r)
{
    return r->info->host;
}

static const struct field {
    const char *key;
    number_fn number;
    text_fn text;
} fields[] = {
    {"run", NULL, folder},      {"name", NULL, name},          {"state", NULL, state}, {"host", NULL, host},
    {"started", started, NULL}, {"seconds", seconds, NULL},    {"ranks", ranks, NULL}, {"steps", steps, NULL},
    {"epochs", epochs, NULL},   {"samples_per_s", rate, NULL}, {"metric", best, NULL},
};

enum { N_FIELDS = sizeof fields / sizeof fields[0] };

/* acc, val/acc, test/acc. */
static double metric(const ls_run_row *r, const char *key)
{
    if (strncmp(key, "test/", 5) == 0) return ls_run_metric(r->info, "test", key + 5);
    return ls_run_metric(r->info, "last", strncmp(key, "val/", 4) == 0 ? key + 4 : key);
}

ls_run_value ls_run_field(const ls_run_row *r, const char *key)
{
    for (int i = 0; i < N_FIELDS; i++) {
        if (strcmp(fields[i].key, key) != 0) continue;
        if (fields[i].number != NULL) return of_number(fields[i].number(r));
        /* A name is a name, also where it looks like a number. */
        const char *text = fields[i].text(r);
        return text[0] != '\0' ? (ls_run_value){.kind = LS_RUN_TEXT, .text = text} : of_text(NULL);
    }
    /* Settings before metrics: a metric can be had by val/NAME, a setting of that name in no other way. */
    const ls_run_value v = of_text(ls_run_setting_value(&r->settings, key, -1));
    return v.kind != LS_RUN_NONE ? v : of_number(metric(r, key));
}

/* -- conditions -------------------------------------------------------------------------------------------
 */

static ls_status check_state(const char *text, const char *value, ls_err *err)
{
    if (ls_run_state_of(value) != LS_RUN_UNKNOWN || strcmp(value, "unknown") == 0 ||
        strcmp(value, "damaged") == 0)
        return LS_OK;
    return ls_fail(err, LS_INVALID,
                   "\"%.60s\": there is no state \"%.60s\"; there are running, completed, paused, failed, "
                   "killed, damaged and unknown",
                   text, value);
}

static bool is_text_field(const char *key)
{
    for (int i = 0; i < N_FIELDS; i++)
        if (strcmp(fields[i].key, key) == 0) return fields[i].text != NULL;
    return false;
}

/* What could hold of no run whatever is a slip. */
static ls_status check_value(const ls_run_condition *c, const char *text, ls_err *err)
{
    const bool equal = c->op == LS_IS || c->op == LS_IS_NOT;

    if (equal) return strcmp(c->key, "state") == 0 ? check_state(text, c->value, err) : LS_OK;
    if (c->op == LS_MATCHES || of_text(c->value).kind == LS_RUN_NUMBER) return LS_OK;
    if (c->value[0] != '\0' && is_text_field(c->key)) return LS_OK;
    return ls_fail(
        err, LS_INVALID,
        "\"%.60s\": more and less are of numbers, and \"%.60s\" is none; write it like 0.5 or 1e-3", text,
        c->value);
}

ls_status ls_run_condition_parse(ls_run_condition *c, const char *text, ls_err *err)
{
    static const struct {
        const char *sign;
        ls_run_relation op;
    } signs[] = {{"!=", LS_IS_NOT}, {">=", LS_AT_LEAST}, {"<=", LS_AT_MOST}, {"==", LS_IS},
                 {"=", LS_IS},      {">", LS_MORE},      {"<", LS_LESS},     {"~", LS_MATCHES}};
    /* Signs of two characters stand before those that they begin with. */
    const size_t n = strcspn(text, "=!<>~");

    for (size_t i = 0; n > 0 && i < sizeof signs / sizeof signs[0]; i++) {
        if (strncmp(text + n, signs[i].sign, strlen(signs[i].sign)) != 0) continue;
        const char *value = text + n + strlen(signs[i].sign);
        if (n >= sizeof c->key || strlen(value) >= sizeof c->value) break;
        snprintf(c->key, sizeof c->key, "%.*s", (int)n, text);
        snprintf(c->value, sizeof c->value, "%s", value);
        c->op = signs[i].op;
        return check_value(c, text, err);
    }
    return ls_fail(err, LS_INVALID,
                   "\"%.60s\" is no condition: write a field, one of = != > >= < <= ~, and a value, such as "
                   "state=running, acc>0.9 or run~mnist-*",
                   text);
}

static int compare(ls_run_value a, ls_run_value b)
{
    if (a.kind == LS_RUN_NUMBER && b.kind == LS_RUN_NUMBER)
        return (a.number > b.number) - (a.number < b.number);
    if (a.kind != LS_RUN_TEXT || b.kind != LS_RUN_TEXT)
        return (a.kind == LS_RUN_TEXT) - (b.kind == LS_RUN_TEXT);
    return strcmp(a.text, b.text);
}

bool ls_run_holds(const ls_run_row *r, const ls_run_condition *c)
{
    const ls_run_value v = ls_run_field(r, c->key);
    ls_run_value want = of_text(c->value);
    char number[32];

    if (v.kind == LS_RUN_NONE)
        return c->op == LS_IS_NOT ? c->value[0] != '\0' : c->op == LS_IS && c->value[0] == '\0';
    if (c->op == LS_MATCHES) {
        if (v.text == NULL) snprintf(number, sizeof number, "%.9g", v.number);
        return ls_text_glob(c->value, v.text != NULL ? v.text : number);
    }
    if (v.kind == LS_RUN_TEXT) want = (ls_run_value){.kind = LS_RUN_TEXT, .text = c->value};
    /* A number is never more or less than a text. */
    if (v.kind != want.kind) return c->op == LS_IS_NOT;
    const int order = compare(v, want);
    switch (c->op) {
    case LS_IS: return order == 0;
    case LS_IS_NOT: return order != 0;
    case LS_MORE: return order > 0;
    case LS_AT_LEAST: return order >= 0;
    case LS_LESS: return order < 0;
    default: return order <= 0;
    }
}

/* -- order ------------------------------------------------------------------------------------------------
 */

static bool is_field(const char *key)
{
    for (int i = 0; i < N_FIELDS; i++)
        if (strcmp(fields[i].key, key) == 0) return true;
    return false;
}

/* Does a run know the key, even where it has no value yet? */
static bool knows(const ls_run_row *r, const char *key)
{
    return ls_run_setting_value(&r->settings, key, -1) != NULL || isfinite(metric(r, key));
}

/* The nearest key of any run; what is returned is a constant or the run's. */
static const char *nearest_key(const ls_run_row *rows, int n, const char *key)
{
    enum { MOST = 512 };
    const char *names[MOST];
    size_t found = 0;

    for (int i = 0; i < N_FIELDS; i++) names[found++] = fields[i].key;
    for (int k = 0; k < n && k < 4; k++) {
        json_t *last = json_object_get(json_object_get(rows[k].info->summary, "metrics"), "last"), *value;
        const char *metric_name;
        json_object_foreach(last, metric_name, value) if (found < MOST) names[found++] = metric_name;
        for (int i = 0; i < rows[k].settings.n && found < MOST; i++)
            names[found++] = rows[k].settings.items[i].key;
    }
    return ls_text_nearest(key, names, found);
}

ls_status ls_run_check_key(const ls_run_row *rows, int n, const char *key, ls_err *err)
{
    const char *near;

    if (n == 0 || is_field(key)) return LS_OK;
    for (int i = 0; i < n; i++)
        if (knows(&rows[i], key)) return LS_OK;
    near = nearest_key(rows, n, key);
    return ls_fail(
        err, LS_INVALID,
        "no run has \"%.100s\"%s%s%s; there are run, name, state, host, started, seconds, ranks, steps, "
        "epochs, samples_per_s, metric (the best), metrics such as acc and test/acc, and every setting",
        key, near != NULL ? "; did you mean \"" : "", near != NULL ? near : "", near != NULL ? "\"?" : "");
}

typedef struct sorted {
    ls_run_value value;
    int at;
    bool falling;
} sorted;

static int by_value(const void *a, const void *b)
{
    const sorted *x = a, *y = b;
    int order;

    if ((x->value.kind == LS_RUN_NONE) != (y->value.kind == LS_RUN_NONE))
        return x->value.kind == LS_RUN_NONE ? 1 : -1;
    order = compare(x->value, y->value);
    if (order != 0) return x->falling ? -order : order;
    /* qsort keeps no order of equals by itself. */
    return x->at - y->at;
}

ls_status ls_run_sort(ls_run_row *rows, int n, const char *by, ls_err *err)
{
    const bool falling = by[0] == '-';
    sorted *order = NULL;
    ls_run_row *moved = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_run_check_key(rows, n, by + falling, err));
    if (n < 2) goto out;
    order = ls_alloc(LS_MEM_CLI, (size_t)n * sizeof *order);
    moved = ls_alloc(LS_MEM_CLI, (size_t)n * sizeof *moved);
    if (order == NULL || moved == NULL) {
        st = ls_fail(err, LS_NOMEM, "no memory for a list of runs");
        goto out;
    }
    for (int i = 0; i < n; i++) order[i] = (sorted){ls_run_field(&rows[i], by + falling), i, falling};
    qsort(order, (size_t)n, sizeof *order, by_value);
    for (int i = 0; i < n; i++) moved[i] = rows[order[i].at];
    memcpy(rows, moved, (size_t)n * sizeof *rows);
out:
    ls_free(order);
    ls_free(moved);
    return st;
}
