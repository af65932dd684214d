/* output.c: the results of a study as a table for a terminal and as JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "events/table.h"
#include "study/predicted.h"
#include "study/study_internal.h"

/* -- table ------------------------------------------------------------------------------------------------
 */

static void show_efficiency(const ls_study_row *r, char *cell, size_t size)
{
    const ls_interval *e = &r->efficiency;

    if (isnan(e->mid))
        snprintf(cell, size, "-");
    else if (r->oversubscribed)
        snprintf(cell, size, "(%.3f) no scaling", e->mid);
    else if (isnan(e->lo) || e->lo == e->hi) /* the smallest run against itself */
        snprintf(cell, size, "%.3f", e->mid);
    else
        snprintf(cell, size, "%.3f [%.3f, %.3f]", e->mid, e->lo, e->hi);
}

static void show_number(double x, char *cell, size_t size)
{
    if (isfinite(x))
        snprintf(cell, size, "%.5g", x);
    else
        snprintf(cell, size, "-");
}

static void show_share(double part, double all, char *cell, size_t size)
{
    if (all > 0)
        snprintf(cell, size, "%.1f %%", 100 * part / all);
    else
        snprintf(cell, size, "-");
}

/* "1,234 [1,100, 1,400]" */
static void show_predicted(const ls_study_row *r, char *cell, size_t size)
{
    char lo[LS_UNITS_TEXT], mid[LS_UNITS_TEXT], hi[LS_UNITS_TEXT];

    if (isnan(r->predicted.mid))
        snprintf(cell, size, "-");
    else
        snprintf(cell, size, "%s [%s, %s]", ls_units_rate(r->predicted.mid, mid),
                 ls_units_rate(r->predicted.lo, lo), ls_units_rate(r->predicted.hi, hi));
}

static void show_error(const ls_study_row *r, char *cell, size_t size)
{
    if (isnan(r->predicted_error))
        snprintf(cell, size, "-");
    else
        snprintf(cell, size, "%+.1f %%%s%s", 100 * r->predicted_error, r->within ? "" : ", outside",
                 r->predicted_after ? ", made after" : "");
}

int lsi_columns(const ls_study *s, const ls_study_results *r, const char *names[LSI_COLUMNS_MAX])
{
    int n = 0;

    if (s->ranks_per_node > 0) names[n++] = "nodes";
    names[n++] = "ranks";
    names[n++] = "threads";
    names[n++] = "cores";
    names[n++] = "samples/s";
    names[n++] = "central 68 %";
    names[n++] = "efficiency [95 %]";
    names[n++] = "interval from";
    if (r->by != NULL) names[n++] = "predicted [90 %]";
    if (r->by != NULL) names[n++] = "error";
    names[n++] = "exposed comm";
    names[n++] = "data wait";
    if (s->train) names[n++] = "seconds";
    if (s->train) names[n++] = r->score_name[0] != '\0' ? r->score_name : "metric";
    names[n++] = "repeats";
    return n;
}

void lsi_cells(const ls_study *s, const ls_study_results *all, const ls_study_row *r,
               lsi_cell cells[LSI_COLUMNS_MAX])
{
    const size_t size = sizeof cells[0].text;
    char lo[LS_UNITS_TEXT], hi[LS_UNITS_TEXT];
    int n = 0;

    for (int k = 0; k < LSI_COLUMNS_MAX; k++) cells[k].number = NAN;
    if (s->ranks_per_node > 0) snprintf(cells[n++].text, size, "%d", r->count);
    snprintf(cells[n++].text, size, "%d", r->ranks);
    snprintf(cells[n++].text, size, "%d", r->threads);
    snprintf(cells[n++].text, size, "%s",
             r->oversubscribed ? "oversubscribed"
             : r->repeats > 0  ? "own"
                               : "-");
    cells[n].number = r->rate.p50;
    snprintf(cells[n++].text, size, "%s", ls_units_rate(r->rate.p50, lo));
    if (r->repeats > 0)
        snprintf(cells[n++].text, size, "%s to %s", ls_units_rate(r->rate.p16, lo),
                 ls_units_rate(r->rate.p84, hi));
    else
        snprintf(cells[n++].text, size, "-");
    show_efficiency(r, cells[n++].text, size);
    snprintf(cells[n++].text, size, "%s",
             r->oversubscribed || r->sure.from == LS_STUDY_FROM_NOTHING ? "-"
                                                                        : ls_study_from_name(r->sure.from));
    if (all->by != NULL) show_predicted(r, cells[n++].text, size);
    if (all->by != NULL) show_error(r, cells[n++].text, size);
    show_share(r->exposed_s, r->step_s, cells[n++].text, size);
    show_share(r->data_wait_s, r->step_s, cells[n++].text, size);
    if (s->train) show_number(r->solution_s.mid, cells[n++].text, size);
    if (s->train) show_number(r->score.mid, cells[n++].text, size);
    snprintf(cells[n++].text, size, "%d", r->repeats);
}

ls_status ls_study_table(const ls_study *s, const ls_study_results *r, ls_text *out, ls_err *err)
{
    const char *texts[LSI_COLUMNS_MAX];
    const int n = lsi_columns(s, r, texts);
    char align[LSI_COLUMNS_MAX + 1] = "";
    lsi_cell cells[LSI_COLUMNS_MAX];
    ls_table *t = NULL;
    ls_status st = LS_OK;

    memset(align, 'r', (size_t)n);
    LS_TRY(ls_table_create(&t, align, err));
    ls_table_row(t, texts);
    ls_table_rule(t);
    for (int i = 0; i < r->n; i++) {
        lsi_cells(s, r, &r->rows[i], cells);
        for (int k = 0; k < n; k++) texts[k] = cells[k].text;
        ls_table_row(t, texts);
    }
    LS_TRY(ls_table_print(t, out, err));
    lsi_advice(s, r, out);
    ls_predicted_advice(s, r, out);
    if (out->failed) st = ls_fail(err, LS_NOMEM, "no memory");
out:
    ls_table_destroy(t);
    return st;
}

/* -- advice -----------------------------------------------------------------------------------------------
 */

/* The row whose interval is the widest of those that are about scaling; NULL: there is none. */
static const ls_study_row *widest(const ls_study_results *r)
{
    const ls_study_row *most = NULL;

    for (int i = 1; i < r->n; i++) {
        const ls_study_row *w = &r->rows[i];
        if (w->oversubscribed || w->sure.from == LS_STUDY_FROM_NOTHING) continue;
        if (most == NULL || w->efficiency.hi / w->efficiency.lo > most->efficiency.hi / most->efficiency.lo)
            most = w;
    }
    return most;
}

/* Half an interval of logarithms, as people say it. */
static void add_half(ls_text *out, double half)
{
    if (half < 0.5)
        ls_text_add(out, "+-%.2g %%", 100 * expm1(half));
    else
        ls_text_add(out, "a factor of %.2g", exp(half));
}

void lsi_advice(const ls_study *s, const ls_study_results *r, ls_text *out)
{
    static const int repeats[] = LS_STUDY_ADVICE;
    const ls_study_row *w = widest(r);
    bool more = false;

    if (w == NULL) return;
    if (w->sure.from == LS_STUDY_FROM_ASSUMED)
        ls_text_add(
            out,
            "One repeat shows the spread inside the run only; runs are taken to differ by %.0f %%, which "
            "makes intervals wide.\n",
            100 * LS_STUDY_ASSUMED);
    ls_text_add(out, "The efficiency of %d %s%s is known to ", w->count, ls_study_unit(s),
                w->count == 1 ? "" : "s");
    add_half(out, 0.5 * log(w->efficiency.hi / w->efficiency.lo));
    for (int i = 0; i < LS_STUDY_ADVICE_N; i++) {
        if (repeats[i] <= w->repeats) continue;
        ls_text_add(out, "%s", more ? ", " : "; to be expected: ");
        add_half(out, w->sure.expected[i]);
        ls_text_add(out, " with %d repeats", repeats[i]);
        more = true;
    }
    ls_text_add(out, "%s\n", more && w->sure.from == LS_STUDY_FROM_ASSUMED ? ", if they do" : "");
}

/* -- JSON -------------------------------------------------------------------------------------------------
 */

static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

json_t *lsi_interval_json(ls_interval i)
{
    return json_pack("{s:o, s:o, s:o}", "lo", number(i.lo), "mid", number(i.mid), "hi", number(i.hi));
}

static json_t *spread_json(ls_spread s)
{
    return json_pack("{s:o, s:o, s:o}", "p16", number(s.p16), "p50", number(s.p50), "p84", number(s.p84));
}

static void add_predicted_json(json_t *o, const ls_study_row *r)
{
    if (r->unpredicted != NULL) json_object_set_new(o, "unpredicted", json_string(r->unpredicted));
    if (isnan(r->predicted.mid)) return;
    json_object_set_new(o, "predicted", lsi_interval_json(r->predicted));
    json_object_set_new(o, "predicted_step_s", lsi_interval_json(r->predicted_step_s));
    json_object_set_new(o, "predicted_efficiency", lsi_interval_json(r->predicted_efficiency));
    json_object_set_new(o, "predicted_after", json_boolean(r->predicted_after));
    if (isnan(r->predicted_error)) return;
    json_object_set_new(o, "error", json_real(r->predicted_error));
    json_object_set_new(o, "within", json_boolean(r->within));
}

/* What all predictions together are worth. */
static json_t *predicted_json(const ls_study_results *r)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:o, s:o}", "calibration", r->by->calibration,
                     "calibration_xxh3", r->by->hash, "machine", r->by->machine, "network", r->by->network,
                     "compared", r->compared, "inside", r->inside, "median_error",
                     number(r->compared > 0 ? r->error_median : NAN), "largest_error",
                     number(r->compared > 0 ? r->error_largest : NAN));
}

static json_t *row_json(const ls_study *s, const ls_study_results *all, const ls_study_row *r)
{
    json_t *o =
        json_pack("{s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "ranks", r->ranks,
                  "threads", r->threads, "repeats", r->repeats, "samples_per_s", spread_json(r->rate),
                  "mean_samples_per_s", number(r->mean), "stderr_samples_per_s", number(r->error),
                  "efficiency", lsi_interval_json(r->efficiency), "oversubscribed", (int)r->oversubscribed,
                  "step_s", number(r->step_s), "compute_s", number(r->compute_s), "comm_exposed_s",
                  number(r->exposed_s), "data_wait_s", number(r->data_wait_s), "peak_flop_s",
                  number(r->peak_flop_s), "peak_read_b_s", number(r->peak_read_b_s));

    json_object_update_new(o, json_pack("{s:s, s:o, s:o, s:{s:o, s:o, s:o}}", "interval_from",
                                        ls_study_from_name(r->sure.from), "between_runs",
                                        number(r->sure.between), "inside_runs", number(r->sure.inside),
                                        "expected_half_width", "3", number(r->sure.expected[0]), "5",
                                        number(r->sure.expected[1]), "8", number(r->sure.expected[2])));
    if (s->ranks_per_node > 0) json_object_set_new(o, "nodes", json_integer(r->count));
    if (all->by != NULL) add_predicted_json(o, r);
    if (!s->train) return o;
    json_object_set_new(o, "time_to_solution_s", lsi_interval_json(r->solution_s));
    if (all->score_name[0] != '\0') json_object_set_new(o, all->score_name, lsi_interval_json(r->score));
    return o;
}

json_t *ls_study_json(const ls_study *s, const ls_study_results *r, const char *report)
{
    json_t *points = json_array();
    json_t *o = json_pack("{s:s, s:s, s:s, s:b, s:i, s:I, s:s, s:s, s:i, s:s}", "event", "scale", "mode",
                          ls_study_mode_name(s->mode), "experiment", s->name, "complete", (int)r->complete,
                          "repeats", s->repeats, "batch", (json_int_t)s->batch, "version", s->version, "host",
                          s->host, "cores", s->cores, "study", s->dir);

    if (o == NULL) {
        json_decref(points);
        return NULL;
    }
    json_object_set_new(o, "busy", json_real(s->busy));
    for (int i = 0; i < r->n; i++) json_array_append_new(points, row_json(s, r, &r->rows[i]));
    json_object_set_new(o, "points", points);
    if (r->by != NULL) json_object_set_new(o, "predicted", predicted_json(r));
    if (report != NULL) json_object_set_new(o, "report", json_string(report));
    return o;
}
