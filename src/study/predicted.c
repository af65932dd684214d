/* predicted.c: predicted.json, written and read as bytes from outside; and predictions beside what was
 * measured. */
#include "study/predicted.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/replace.h"
#include "base/stats.h"
#include "study/study_internal.h"

/* -- writing ----------------------------------------------------------------------------------------------
 */

static json_t *point_json(const ls_predicted_point *p)
{
    json_t *o = json_pack("{s:i, s:i, s:b}", "count", p->count, "ranks", p->ranks, "after", (int)p->after);

    if (p->why[0] != '\0') {
        json_object_set_new(o, "why", json_string(p->why));
        return o;
    }
    json_object_set_new(o, "step_s", lsi_interval_json(p->step_s));
    json_object_set_new(o, "samples_per_s", lsi_interval_json(p->rate));
    json_object_set_new(o, "error",
                        json_pack("{s:f, s:f, s:f, s:f}", "fit", p->fit, "together", p->together, "spread",
                                  p->spread, "extrapolated", p->extrapolated));
    json_object_set_new(o, "waited", json_real(p->waited));
    return o;
}

ls_status ls_predicted_write(const ls_predicted *p, const ls_study *s, ls_err *err)
{
    json_t *points = json_array(), *o;
    char path[LS_STUDY_PATH_MAX];
    ls_text text = {0};
    ls_status st = LS_OK;

    for (int i = 0; i < p->n; i++) json_array_append_new(points, point_json(&p->of[i]));
    o = json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:I, s:o}", "format", "lockstep-predicted", "version",
                  LS_PREDICTED_FORMAT, "calibration", p->calibration, "calibration_xxh3", p->hash, "machine",
                  p->machine, "network", p->network, "program", p->version, "time", (json_int_t)p->time,
                  "points", points);
    if (o == NULL)
        return ls_fail(err, LS_INVALID, "predictions cannot be written: the calibration's name is no UTF-8");
    ls_json_add(&text, o, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    ls_text_add(&text, "\n");
    json_decref(o);
    if (text.failed) LS_TRY(ls_fail(err, LS_NOMEM, "no memory"));
    LS_TRY(lsi_study_join(path, s->dir, LS_PREDICTED_FILE, err));
    LS_TRY(ls_replace_file(path, text.data, text.length, err));
out:
    ls_text_release(&text);
    return st;
}

/* -- reading ----------------------------------------------------------------------------------------------
 */

/* Members are asked for one by one; the first that is not as it must be is remembered. */
typedef struct reader {
    const char *wrong;
} reader;

static void blame(reader *r, bool good, const char *key)
{
    if (!good && r->wrong == NULL) r->wrong = key;
}

static void read_text(reader *r, const json_t *o, const char *key, char *to, size_t size)
{
    const char *text = json_string_value(json_object_get(o, key));

    const bool fits = text != NULL && strlen(text) < size;

    blame(r, fits, key);
    if (fits) memcpy(to, text, strlen(text) + 1);
}

static int64_t read_whole(reader *r, const json_t *o, const char *key, int64_t least, int64_t most)
{
    const json_t *v = json_object_get(o, key);
    const int64_t x = json_integer_value(v);

    blame(r, json_is_integer(v) && x >= least && x <= most, key);
    return x;
}

static double read_number(reader *r, const json_t *o, const char *key, double most)
{
    const json_t *v = json_object_get(o, key);
    const double x = json_number_value(v);

    blame(r, json_is_number(v) && x >= 0 && x <= most, key);
    return x;
}

/* {lo, mid, hi}: positive, in order. */
static ls_interval read_interval(reader *r, const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    const ls_interval i = {read_number(r, v, "lo", 1e30), read_number(r, v, "mid", 1e30),
                           read_number(r, v, "hi", 1e30)};

    blame(r, i.lo > 0 && i.lo <= i.mid && i.mid <= i.hi, key);
    return i;
}

static void read_point(reader *r, const ls_study *s, const json_t *o, ls_predicted_point *p)
{
    const json_t *error = json_object_get(o, "error"), *after = json_object_get(o, "after");

    p->count = (int)read_whole(r, o, "count", 1, LS_STUDY_RANKS_MAX);
    p->ranks = (int)read_whole(r, o, "ranks", 1, INT32_MAX);
    blame(r, r->wrong != NULL || p->ranks == ls_study_ranks(s, p->count), "ranks");
    p->after = json_is_true(after);
    blame(r, json_is_boolean(after), "after");
    if (json_object_get(o, "why") != NULL) {
        read_text(r, o, "why", p->why, sizeof p->why);
        blame(r, p->why[0] != '\0', "why");
        return;
    }
    p->step_s = read_interval(r, o, "step_s");
    p->rate = read_interval(r, o, "samples_per_s");
    p->fit = read_number(r, error, "fit", 1e6);
    if (json_object_get(error, "together") != NULL) /* it was not always written down */
        p->together = read_number(r, error, "together", 1e6);
    p->spread = read_number(r, error, "spread", 1e6);
    p->extrapolated = read_number(r, error, "extrapolated", 1e6);
    p->waited = read_number(r, o, "waited", 1);
}

static void read_members(reader *r, const ls_study *s, const json_t *o, ls_predicted *p)
{
    const json_t *points = json_object_get(o, "points"), *one;
    size_t i;

    read_text(r, o, "calibration", p->calibration, sizeof p->calibration);
    read_text(r, o, "calibration_xxh3", p->hash, sizeof p->hash);
    blame(r, p->hash[0] != '\0', "calibration_xxh3");
    read_text(r, o, "machine", p->machine, sizeof p->machine);
    read_text(r, o, "network", p->network, sizeof p->network);
    read_text(r, o, "program", p->version, sizeof p->version);
    p->time = read_whole(r, o, "time", 0, INT64_MAX);
    blame(r, json_is_array(points) && json_array_size(points) <= LS_STUDY_COUNTS_MAX, "points");
    json_array_foreach(points, i, one)
    {
        if (r->wrong != NULL) return;
        read_point(r, s, one, &p->of[p->n]);
        blame(r, p->n == 0 || p->of[p->n].count > p->of[p->n - 1].count, "count");
        p->n++;
    }
}

static ls_status parse(ls_predicted *p, const ls_study *s, const char *text, size_t length, ls_err *err)
{
    json_error_t where;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    const char *format = json_string_value(json_object_get(root, "format"));
    const json_t *version = json_object_get(root, "version");
    reader r = {0};
    ls_status st = LS_OK;

    if (root == NULL) return ls_fail(err, LS_DATA, "line %d: %s", where.line, where.text);
    if (format == NULL || strcmp(format, "lockstep-predicted") != 0)
        LS_TRY(ls_fail(err, LS_DATA, "\"format\" is not \"lockstep-predicted\""));
    if (json_integer_value(version) != LS_PREDICTED_FORMAT)
        LS_TRY(ls_fail(err, LS_DATA, "version %lld; this program reads version %d",
                       (long long)json_integer_value(version), LS_PREDICTED_FORMAT));
    read_members(&r, s, root, p);
    if (r.wrong != NULL) st = ls_fail(err, LS_DATA, "\"%s\" is missing or makes no sense", r.wrong);
out:
    json_decref(root);
    return st;
}

ls_status ls_predicted_load(ls_predicted *p, const ls_study *s, bool *there, ls_err *err)
{
    char path[LS_STUDY_PATH_MAX], *text = NULL;
    size_t n;
    ls_status st = LS_OK;

    *p = (ls_predicted){0};
    *there = false;
    LS_TRY(lsi_study_join(path, s->dir, LS_PREDICTED_FILE, err));
    if (access(path, F_OK) != 0 && errno == ENOENT) goto out;
    *there = true;
    LS_TRY(lsi_study_read(path, &text, &n, err));
    st = parse(p, s, text, n, err);
    if (st == LS_DATA) {
        const ls_err why = *err;
        *err = (ls_err){0};
        st =
            ls_fail(err, LS_DATA,
                    "%s: %s.  Remove the file: `lockstep scale ... --predict CALIBRATION` makes it anew, and "
                    "says which points were measured by then",
                    path, why.text);
    }
out:
    if (st != LS_OK) p->n = 0;
    ls_free(text);
    return st;
}

/* -- one count --------------------------------------------------------------------------------------------
 */

const ls_predicted_point *ls_predicted_of(const ls_predicted *p, int count)
{
    for (int i = 0; i < p->n; i++)
        if (p->of[i].count == count) return &p->of[i];
    return NULL;
}

bool ls_predicted_add(ls_predicted *p, const ls_predicted_point *point)
{
    int at = p->n;

    if (p->n == LS_STUDY_COUNTS_MAX) return false;
    while (at > 0 && p->of[at - 1].count > point->count) {
        p->of[at] = p->of[at - 1];
        at--;
    }
    p->of[at] = *point;
    p->n++;
    return true;
}

/* -- beside what was measured -----------------------------------------------------------------------------
 */

/* How far off a ratio of this rate to another may be, as a logarithm of the 90 % band: what is wrong with the
 * costs of computing is wrong with both and cancels where both compute the same, and what is left is the
 * share of the step that exchanges take.  What whole steps of several ranks err by (0 for one) has no part in
 * one rank alone, and stays. */
static double ratio_error(const ls_study *s, const ls_predicted_point *p)
{
    const double fit = s->mode == LS_STUDY_WEAK ? p->fit * p->waited : p->fit;

    return 1.645 * sqrt(fit * fit + p->together * p->together + p->spread * p->spread +
                        p->extrapolated * p->extrapolated);
}

static ls_interval efficiency_of(const ls_study *s, const ls_predicted_point *base,
                                 const ls_predicted_point *p)
{
    const double mid = p->rate.mid / p->ranks / (base->rate.mid / base->ranks);
    const double e = p == base          ? 0
                     : base->ranks == 1 ? ratio_error(s, p)
                                        : hypot(ratio_error(s, p), ratio_error(s, base));

    return (ls_interval){mid * exp(-e), mid, mid * exp(e)};
}

static void judge_row(const ls_study *s, const ls_predicted *p, const ls_predicted_point *base,
                      ls_study_row *w)
{
    const ls_predicted_point *x = ls_predicted_of(p, w->count);

    if (x == NULL) {
        w->unpredicted = "none was asked for when it was measured";
        return;
    }
    if (x->why[0] != '\0') {
        w->unpredicted = x->why;
        return;
    }
    if (w->oversubscribed) {
        w->unpredicted = "it was measured with more threads than cores, of which a calibration says nothing";
        return;
    }
    w->predicted = x->rate;
    w->predicted_step_s = x->step_s;
    w->predicted_after = x->after;
    if (base != NULL) w->predicted_efficiency = efficiency_of(s, base, x);
    if (w->repeats == 0) return;
    w->predicted_error = x->rate.mid / w->rate.p50 - 1;
    w->within = w->rate.p50 >= x->rate.lo && w->rate.p50 <= x->rate.hi;
}

void ls_predicted_judge(const ls_study *s, const ls_predicted *p, ls_study_results *r)
{
    const ls_predicted_point *base = r->n > 0 ? ls_predicted_of(p, r->rows[0].count) : NULL;
    double errors[LS_STUDY_COUNTS_MAX];

    r->by = p;
    if (base != NULL && (base->why[0] != '\0' || r->rows[0].oversubscribed)) base = NULL;
    for (int i = 0; i < r->n; i++) {
        ls_study_row *w = &r->rows[i];
        judge_row(s, p, base, w);
        if (!isfinite(w->predicted_error)) continue;
        if (r->compared == 0 || fabs(w->predicted_error) > r->error_largest) {
            r->error_largest = fabs(w->predicted_error);
            r->largest_at = w->ranks;
        }
        r->inside += w->within;
        errors[r->compared++] = fabs(w->predicted_error);
    }
    if (r->compared > 0) r->error_median = ls_spread_of(errors, (size_t)r->compared).p50;
}

void ls_predicted_advice(const ls_study *s, const ls_study_results *r, ls_text *out)
{
    bool after = false;

    if (r->by == NULL) return;
    ls_text_add(out, "Predicted with %s (machine %s, network %s): ", r->by->calibration, r->by->machine,
                r->by->network);
    if (r->compared == 0)
        ls_text_add(out, "nothing to compare yet.\n");
    else
        ls_text_add(out,
                    "%d of %d within the 90 %% band; error of samples/s: median %.1f %%, largest %.1f %% "
                    "(%d rank%s).\n",
                    r->inside, r->compared, 100 * r->error_median, 100 * r->error_largest, r->largest_at,
                    r->largest_at == 1 ? "" : "s");
    for (int i = 0; i < r->n; i++) {
        const ls_study_row *w = &r->rows[i];
        after |= w->predicted_after;
        if (w->unpredicted != NULL)
            ls_text_add(out, "No prediction for %d %s%s: %s.\n", w->count, ls_study_unit(s),
                        w->count == 1 ? "" : "s", w->unpredicted);
    }
    if (!after) return;
    ls_text_add(out, "Predictions made after the measurement, which prove less: for ranks ");
    for (int i = 0, n = 0; i < r->n; i++)
        if (r->rows[i].predicted_after) ls_text_add(out, "%s%d", n++ > 0 ? ", " : "", r->rows[i].ranks);
    ls_text_add(out, ".\n");
}
