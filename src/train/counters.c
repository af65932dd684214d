/* counters.c: means over samples, and the counters of a run as JSON. */
#include "train/counters.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int find(const ls_metric_sums *m, const char *name)
{
    for (int i = 0; i < m->n; i++)
        if (strcmp(m->name[i], name) == 0) return i;
    return -1;
}

void ls_metric_add(ls_metric_sums *m, const char *name, double value, int64_t samples)
{
    int i = find(m, name);

    if (i < 0) {
        if (m->n == LS_MAX_METRICS) return;
        i = m->n++;
        snprintf(m->name[i], sizeof m->name[i], "%s", name);
    }
    m->sum[i] += value * (double)samples;
}

void ls_metric_join(ls_metric_sums *to, const ls_metric_sums *more)
{
    for (int i = 0; i < more->n; i++) {
        ls_metric_add(to, more->name[i], 0, 0);
        to->sum[find(to, more->name[i])] += more->sum[i];
    }
    to->samples += more->samples;
}

bool ls_metric_all_finite(const ls_metric_sums *m)
{
    for (int i = 0; i < m->n; i++)
        if (!isfinite(m->sum[i])) return false;
    return true;
}

double ls_metric_mean(const ls_metric_sums *m, const char *name)
{
    const int i = find(m, name);

    return i < 0 || m->samples == 0 ? NAN : m->sum[i] / (double)m->samples;
}

/* Doubles go as text in hexadecimal: exact, and not-a-number has a form too. */
static json_t *exact(double v)
{
    char text[64];

    snprintf(text, sizeof text, "%a", v);
    return json_string(text);
}

static json_t *sums_json(const ls_metric_sums *m)
{
    json_t *sums = json_array();

    for (int i = 0; i < m->n; i++)
        json_array_append_new(sums, json_pack("{s:s, s:o}", "name", m->name[i], "sum", exact(m->sum[i])));
    return json_pack("{s:I, s:o}", "samples", (json_int_t)m->samples, "of", sums);
}

static json_t *last_json(const ls_counters *c)
{
    json_t *o = json_object();

    for (int i = 0; i < LS_DUE_PERIODS; i++)
        json_object_set_new(o, ls_due_name((ls_due)i), exact(c->last[i]));
    return o;
}

json_t *ls_counters_save(const ls_counters *c)
{
    json_t *root = json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "step", (json_int_t)c->step, "epoch",
                             (json_int_t)c->epoch, "position", (json_int_t)c->position, "pending",
                             (json_int_t)c->pending, "validations", (json_int_t)c->validations, "seconds",
                             exact(c->seconds), "sums", sums_json(&c->sums), "now", sums_json(&c->now));

    if (root == NULL) return NULL;
    json_object_set_new(root, "epoch_samples", json_integer((json_int_t)c->epoch_samples));
    json_object_set_new(root, "step_samples", json_integer((json_int_t)c->step_samples));
    if (c->owed != 0) json_object_set_new(root, "owed", json_integer((json_int_t)c->owed));
    if (c->skipped != 0)
        json_object_set_new(root, "skipped",
                            json_pack("{s:I, s:I}", "steps", (json_int_t)c->skipped, "samples",
                                      (json_int_t)c->skipped_samples));
    json_object_set_new(root, "last_minutes", last_json(c));
    json_object_set_new(root, "ledger", ls_ledger_json(&c->ledger));
    json_object_set_new(root, "plateau",
                        json_pack("{s:b, s:o, s:I, s:I}", "seen", c->plateau.seen, "best",
                                  exact(c->plateau.best), "bad", (json_int_t)c->plateau.bad, "cuts",
                                  (json_int_t)c->plateau.cuts));
    json_object_set_new(root, "best",
                        json_pack("{s:b, s:o, s:I, s:I}", "has", c->has_best, "value", exact(c->best), "step",
                                  (json_int_t)c->best_step, "since", (json_int_t)c->since_best));
    return root;
}

/* -- reading
 * ----------------------------------------------------------------------------------------------------- */

#define MOST ((json_int_t)1 << 50) /* counts are added up and multiplied by small ones */

typedef struct reader {
    ls_err *err;
    ls_status st; /* sticky */
} reader;

static const json_t *member(reader *r, const json_t *from, const char *key)
{
    const json_t *v = json_object_get(from, key);

    if (v == NULL && r->st == LS_OK)
        r->st = ls_fail(r->err, LS_DATA, "the checkpoint's state has no \"%s\"", key);
    return v;
}

static int64_t whole(reader *r, const json_t *from, const char *key)
{
    const json_t *v = member(r, from, key);

    if (r->st != LS_OK) return 0;
    if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > MOST) {
        r->st = ls_fail(r->err, LS_DATA, "the checkpoint's state: \"%s\" is not a count", key);
        return 0;
    }
    return (int64_t)json_integer_value(v);
}

static double real(reader *r, const json_t *from, const char *key)
{
    const json_t *v = member(r, from, key);
    const char *text = json_string_value(v);
    char *end = NULL;
    double d;

    if (r->st != LS_OK) return 0;
    d = text != NULL ? strtod(text, &end) : 0;
    if (text == NULL || end == text || *end != '\0')
        r->st = ls_fail(r->err, LS_DATA, "the checkpoint's state: \"%s\" is not a number", key);
    return d;
}

static bool flag(reader *r, const json_t *from, const char *key)
{
    const json_t *v = member(r, from, key);

    if (r->st == LS_OK && !json_is_boolean(v))
        r->st = ls_fail(r->err, LS_DATA, "the checkpoint's state: \"%s\" is neither true nor false", key);
    return json_is_true(v);
}

static void read_sums(reader *r, const json_t *root, const char *key, ls_metric_sums *m)
{
    const json_t *from = member(r, root, key), *list = member(r, from, "of");

    m->samples = whole(r, from, "samples");
    for (size_t i = 0; r->st == LS_OK && i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const char *name = json_string_value(json_object_get(item, "name"));
        if (name == NULL || m->n == LS_MAX_METRICS) {
            r->st =
                ls_fail(r->err, LS_DATA, "the checkpoint's state: \"%s\" is damaged at entry %zu", key, i);
            return;
        }
        snprintf(m->name[m->n], sizeof m->name[m->n], "%s", name);
        m->sum[m->n++] = real(r, item, "sum");
    }
}

/* Older checkpoints have none of these. */
static void read_newer(reader *r, const json_t *from, ls_counters *c)
{
    const json_t *last = json_object_get(from, "last_minutes"), *skipped = json_object_get(from, "skipped");

    if (json_object_get(from, "epoch_samples") != NULL) c->epoch_samples = whole(r, from, "epoch_samples");
    if (json_object_get(from, "step_samples") != NULL) c->step_samples = whole(r, from, "step_samples");
    if (json_object_get(from, "owed") != NULL)
        c->owed = (unsigned)(whole(r, from, "owed") & ((1 << LS_DUE_PERIODS) - 1));
    if (skipped != NULL) {
        c->skipped = whole(r, skipped, "steps");
        c->skipped_samples = whole(r, skipped, "samples");
    }
    for (int i = 0; i < LS_DUE_PERIODS; i++) {
        const char *name = ls_due_name((ls_due)i);
        c->last[i] = json_object_get(last, name) != NULL ? real(r, last, name) : -1;
    }
}

ls_status ls_counters_load(ls_counters *c, const json_t *from, ls_err *err)
{
    reader r = {err, LS_OK};
    const json_t *plateau = member(&r, from, "plateau"), *best = member(&r, from, "best");

    *c = (ls_counters){.step = whole(&r, from, "step"),
                       .epoch = whole(&r, from, "epoch"),
                       .position = whole(&r, from, "position"),
                       .pending = whole(&r, from, "pending"),
                       .validations = whole(&r, from, "validations"),
                       .seconds = real(&r, from, "seconds")};
    ls_ledger_read(&c->ledger, json_object_get(from, "ledger"), c->seconds);
    read_sums(&r, from, "sums", &c->sums);
    read_sums(&r, from, "now", &c->now);
    c->plateau = (ls_plateau){flag(&r, plateau, "seen"), real(&r, plateau, "best"), whole(&r, plateau, "bad"),
                              whole(&r, plateau, "cuts")};
    c->has_best = flag(&r, best, "has");
    c->best = real(&r, best, "value");
    c->best_step = whole(&r, best, "step");
    c->since_best = whole(&r, best, "since");
    read_newer(&r, from, c);
    return r.st;
}
