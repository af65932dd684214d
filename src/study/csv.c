/* csv.c: the tables of a study for other programs: every figure that readers see as a number of its own, with
 * its unit in the name of its column. */
#include <math.h>
#include <stdio.h>

#include "base/replace.h"
#include "report/sheet.h"
#include "study/study_internal.h"

/* -- cells ------------------------------------------------------------------------------------------------
 */

static void number(ls_sheet *t, double x)
{
    if (isfinite(x))
        ls_sheet_cell(t, "%.9g", x);
    else
        ls_sheet_cell(t, "%s", "");
}

static void interval(ls_sheet *t, ls_interval i)
{
    number(t, i.lo);
    number(t, i.mid);
    number(t, i.hi);
}

static void spread(ls_sheet *t, ls_spread s)
{
    number(t, s.p16);
    number(t, s.p50);
    number(t, s.p84);
}

/* Replaces DIR/name. */
static ls_status write_sheet(const ls_sheet *t, const ls_study *s, const char *name, ls_err *err)
{
    char path[LS_STUDY_PATH_MAX];
    ls_text text = {0};
    ls_status st = LS_OK;

    LS_TRY(lsi_study_join(path, s->dir, name, err));
    LS_TRY(ls_sheet_csv(t, &text, err));
    LS_TRY(ls_replace_file(path, text.data, text.length, err));
out:
    ls_text_release(&text);
    return st;
}

/* -- tables -----------------------------------------------------------------------------------------------
 */

static ls_status write_rows(const ls_study *s, const ls_study_results *r, ls_err *err)
{
    static const ls_sheet_column columns[] = {
        {"ranks", 'r'},
        {"nodes", 'r'},
        {"threads", 'r'},
        {"repeats", 'r'},
        {"oversubscribed", 'r'},
        {"samples_per_s_p16", 'r'},
        {"samples_per_s_p50", 'r'},
        {"samples_per_s_p84", 'r'},
        {"mean_samples_per_s", 'r'},
        {"stderr_samples_per_s", 'r'},
        {"efficiency_lo", 'r'},
        {"efficiency", 'r'},
        {"efficiency_hi", 'r'},
        {"between_runs", 'r'},
        {"inside_runs", 'r'},
        {"half_width_3_repeats", 'r'},
        {"half_width_5_repeats", 'r'},
        {"half_width_8_repeats", 'r'},
        {"step_s", 'r'},
        {"compute_s", 'r'},
        {"comm_exposed_s", 'r'},
        {"data_wait_s", 'r'},
        {"comm_exposed_share", 'r'},
        {"data_wait_share", 'r'},
        {"time_to_solution_s_min", 'r'},
        {"time_to_solution_s", 'r'},
        {"time_to_solution_s_max", 'r'},
        {"metric_min", 'r'},
        {"metric", 'r'},
        {"metric_max", 'r'},
        {"predicted_samples_per_s_lo", 'r'},
        {"predicted_samples_per_s", 'r'},
        {"predicted_samples_per_s_hi", 'r'},
        {"predicted_efficiency_lo", 'r'},
        {"predicted_efficiency", 'r'},
        {"predicted_efficiency_hi", 'r'},
        {"predicted_error", 'r'},
        {"within_band", 'r'},
        {"predicted_after", 'r'},
        {"interval_from", 'l'},
        {"metric_name", 'l'},
    };
    ls_sheet *t = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_sheet_create(&t, "table", NULL, columns, sizeof columns / sizeof columns[0], err));
    for (int i = 0; i < r->n; i++) {
        const ls_study_row *w = &r->rows[i];
        ls_sheet_cell(t, "%d", w->ranks);
        number(t, s->ranks_per_node > 0 ? w->count : 1);
        ls_sheet_cell(t, "%d", w->threads);
        ls_sheet_cell(t, "%d", w->repeats);
        ls_sheet_cell(t, "%d", (int)w->oversubscribed);
        spread(t, w->rate);
        number(t, w->mean);
        number(t, w->error);
        interval(t, w->efficiency);
        number(t, w->sure.between);
        number(t, w->sure.inside);
        for (int k = 0; k < LS_STUDY_ADVICE_N; k++) number(t, w->sure.expected[k]);
        number(t, w->step_s);
        number(t, w->compute_s);
        number(t, w->exposed_s);
        number(t, w->data_wait_s);
        number(t, w->exposed_s / w->step_s);
        number(t, w->data_wait_s / w->step_s);
        interval(t, w->solution_s);
        interval(t, w->score);
        interval(t, w->predicted);
        interval(t, w->predicted_efficiency);
        number(t, w->predicted_error);
        number(t, isnan(w->predicted_error) ? NAN : w->within);
        number(t, isnan(w->predicted.mid) ? NAN : w->predicted_after);
        ls_sheet_cell(t, "%s", ls_study_from_name(w->sure.from));
        ls_sheet_cell(t, "%s", r->score_name);
    }
    LS_TRY(write_sheet(t, s, "table.csv", err));
out:
    ls_sheet_destroy(t);
    return st;
}

static ls_status write_machine(const ls_study *s, const ls_study_results *r, ls_err *err)
{
    static const ls_sheet_column columns[] = {{"ranks", 'r'},         {"oversubscribed", 'r'},
                                              {"peak_flop_s", 'r'},   {"peak_flop_share_of_ideal", 'r'},
                                              {"peak_read_b_s", 'r'}, {"peak_read_share_of_ideal", 'r'},
                                              {"flop_s", 'r'}};
    const ls_study_row *base = &r->rows[0];
    ls_sheet *t = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_sheet_create(&t, "machine", NULL, columns, sizeof columns / sizeof columns[0], err));
    for (int i = 0; i < r->n; i++) {
        const ls_study_row *w = &r->rows[i];
        const double more = (double)w->ranks / base->ranks;
        if (isnan(w->peak_flop_s)) continue;
        ls_sheet_cell(t, "%d", w->ranks);
        ls_sheet_cell(t, "%d", (int)w->oversubscribed);
        number(t, w->peak_flop_s);
        number(t, w->peak_flop_s / base->peak_flop_s / more);
        number(t, w->peak_read_b_s);
        number(t, w->peak_read_b_s / base->peak_read_b_s / more);
        number(t, w->flop_s);
    }
    LS_TRY(write_sheet(t, s, "machine.csv", err));
out:
    ls_sheet_destroy(t);
    return st;
}

ls_status lsi_points_sheet(ls_sheet **out, const ls_study *s, const ls_study_points *p,
                           const ls_study_results *r, ls_err *err)
{
    static const ls_sheet_column columns[] = {{"ranks", 'r'},
                                              {"repeat", 'r'},
                                              {"threads", 'r'},
                                              {"oversubscribed", 'r'},
                                              {"steps", 'r'},
                                              {"samples_per_s_p16", 'r'},
                                              {"samples_per_s", 'r'},
                                              {"samples_per_s_p84", 'r'},
                                              {"stderr_share", 'r'},
                                              {"step_s", 'r'},
                                              {"comm_exposed_s", 'r'},
                                              {"data_wait_s", 'r'},
                                              {"peak_flop_s", 'r'},
                                              {"peak_read_b_s", 'r'},
                                              {"time_to_solution_s", 'r'},
                                              {"metric", 'r'}};
    ls_sheet *t = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_sheet_create(&t, "points", NULL, columns, sizeof columns / sizeof columns[0], err));
    for (int i = 0; i < s->n_counts * s->repeats; i++) {
        const ls_study_point *w = &p->of[i];
        if (!p->there[i]) continue;
        ls_sheet_cell(t, "%d", w->ranks);
        ls_sheet_cell(t, "%d", i % s->repeats + 1);
        ls_sheet_cell(t, "%d", s->threads);
        ls_sheet_cell(t, "%d", (int)r->rows[i / s->repeats].oversubscribed);
        ls_sheet_cell(t, "%lld", (long long)w->steps);
        spread(t, w->rate);
        number(t, sqrt(lsi_point_inside(w).variance));
        number(t, w->step_s.p50);
        number(t, w->exposed_s);
        number(t, w->data_wait_s);
        number(t, w->peak_flop_s);
        number(t, w->peak_read_b_s);
        number(t, w->solution_s);
        number(t, w->score);
    }
out:
    *out = t;
    return st;
}

ls_status lsi_study_csv(const ls_study *s, const ls_study_results *r, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(write_rows(s, r, err));
    LS_TRY(write_machine(s, r, err));
out:
    return st;
}
