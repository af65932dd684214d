/* output.c: the results of a study as a table for a terminal and as JSON. */
#include <math.h>
#include <stdio.h>

#include "events/table.h"
#include "study/study_internal.h"

/* -- table ------------------------------------------------------------------------------------------------
 */

void lsi_cell_efficiency(const ls_study_row *r, char cell[64])
{
    const ls_interval *e = &r->efficiency;

    if (isnan(e->mid))
        snprintf(cell, 64, "-");
    else if (r->oversubscribed)
        snprintf(cell, 64, "(%.3f) no scaling", e->mid);
    else if (isnan(e->lo) || e->lo == e->hi) /* the smallest run against itself */
        snprintf(cell, 64, "%.3f", e->mid);
    else
        snprintf(cell, 64, "%.3f [%.3f, %.3f]", e->mid, e->lo, e->hi);
}

static void cell_share(double part, double all, char cell[32])
{
    if (all > 0)
        snprintf(cell, 32, "%.1f %%", 100 * part / all);
    else
        snprintf(cell, 32, "-");
}

static void add_row(ls_table *t, const ls_study *s, const ls_study_row *r)
{
    char count[16], ranks[16], threads[16], repeats[16], rate[32], spread[64], efficiency[64], comm[32],
        data[32], seconds[32], score[32];
    const char *cells[11];
    int n = 0;

    snprintf(count, sizeof count, "%d", r->count);
    snprintf(ranks, sizeof ranks, "%d", r->ranks);
    snprintf(threads, sizeof threads, "%d", r->threads);
    snprintf(repeats, sizeof repeats, "%d", r->repeats);
    snprintf(rate, sizeof rate, r->repeats > 0 ? "%.5g" : "-", r->rate.p50);
    snprintf(spread, sizeof spread, r->repeats > 0 ? "%.5g to %.5g" : "-", r->rate.p16, r->rate.p84);
    lsi_cell_efficiency(r, efficiency);
    cell_share(r->exposed_s, r->step_s, comm);
    cell_share(r->data_wait_s, r->step_s, data);
    snprintf(seconds, sizeof seconds, "%.4g", r->solution_s.mid);
    snprintf(score, sizeof score, "%.4g", r->score.mid);
    if (s->ranks_per_node > 0) cells[n++] = count;
    cells[n++] = ranks;
    cells[n++] = threads;
    cells[n++] = repeats;
    cells[n++] = rate;
    cells[n++] = spread;
    cells[n++] = efficiency;
    cells[n++] = comm;
    cells[n++] = data;
    if (s->train) cells[n++] = seconds;
    if (s->train) cells[n++] = score;
    cells[n++] = r->oversubscribed ? "oversubscribed" : "";
    ls_table_row(t, cells);
}

ls_status ls_study_table(const ls_study *s, const ls_study_results *r, ls_text *out, ls_err *err)
{
    const char *head[12];
    char align[13] = "";
    ls_table *t = NULL;
    ls_status st = LS_OK;
    int n = 0;

    if (s->ranks_per_node > 0) head[n++] = "nodes";
    head[n++] = "ranks";
    head[n++] = "threads";
    head[n++] = "repeats";
    head[n++] = "samples/s";
    head[n++] = "central 68 %";
    head[n++] = "efficiency [95 %]";
    head[n++] = "exposed comm";
    head[n++] = "data wait";
    if (s->train) head[n++] = "seconds";
    if (s->train) head[n++] = r->score_name[0] != '\0' ? r->score_name : "metric";
    head[n++] = "remark";
    for (int i = 0; i < n; i++) align[i] = i < n - 1 ? 'r' : 'l';
    LS_TRY(ls_table_create(&t, align, err));
    ls_table_row(t, head);
    ls_table_rule(t);
    for (int i = 0; i < r->n; i++) add_row(t, s, &r->rows[i]);
    LS_TRY(ls_table_print(t, out, err));
out:
    ls_table_destroy(t);
    return st;
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

    if (s->ranks_per_node > 0) json_object_set_new(o, "nodes", json_integer(r->count));
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

    for (int i = 0; i < r->n; i++) json_array_append_new(points, row_json(s, r, &r->rows[i]));
    json_object_set_new(o, "points", points);
    if (report != NULL) json_object_set_new(o, "report", json_string(report));
    return o;
}
