/* predict_print.c: predictions as a table, as JSON and as CSV. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "predict_run.h"

/* -- text -------------------------------------------------------------------------------------------------
 */

static void print_heading(const predict_table *t)
{
    printf("experiment    %s, batch %s\n", t->name, t->batches);
    printf("machine       %s: %s\n", t->machine.name, t->machine.about);
    printf("network       %s: %s; %d rank%s a machine\n", t->network.name, t->network.about,
           t->placement.ranks_per_node, t->placement.ranks_per_node == 1 ? "" : "s");
    if (t->network.measured_ranks == 0)
        printf("              described, not measured: its figures are a vendor's or an assumption\n");
}

static void print_row(const predict_table *t, const predict_row *r, int width)
{
    const ls_prediction *p = &r->p;
    char lo[32], mid[32], hi[32], rate[32];

    printf("%7d %-*s ", r->ranks, width, predict_line_of(t, r));
    if (r->why[0] != '\0') {
        printf("%s\n", r->why);
        return;
    }
    printf("%10s %10s %10s %12s %9.1f %% %8.1f %% %7.1f %% %7.1f %% %7.1f %%", ls_units_seconds(p->mid, mid),
           ls_units_seconds(p->lo, lo), ls_units_seconds(p->hi, hi),
           ls_text_count((int64_t)p->samples_per_s, rate), 100 * p->efficiency,
           100 * p->parts.compute_s / p->mid, 100 * p->parts.core_s / p->mid,
           100 * p->parts.exposed_s / p->mid, 100 * p->parts.straggle_s / p->mid);
    if (r->measured.n > 0)
        printf(" %12s %+8.1f %%%s", ls_text_count((int64_t)r->measured.rate.p50, rate),
               100 * r->measured.error, r->measured.within ? "" : " outside");
    printf("\n");
}

/* How near all of them came, and what was compared with nothing. */
static void print_nearness(const predict_table *t)
{
    const predict_nearness *near = &t->near;

    if (!t->has_measured) return;
    printf("measured      %d of %d within the 90 %% band; error of samples/s: median %.1f %%, largest %.1f "
           "%% (%d "
           "rank%s %s)\n",
           near->inside, near->compared, 100 * near->median, 100 * near->largest,
           t->rows[near->largest_at].ranks, t->rows[near->largest_at].ranks == 1 ? "" : "s",
           t->way[t->rows[near->largest_at].way].strategy);
    for (const char *at = near->unmatched.data; at != NULL && *at != '\0'; at += strcspn(at, "\n") + 1)
        printf("not compared  %.*s\n", (int)strcspn(at, "\n"), at);
}

/* How nodes' times were found, of a strategy. */
static void print_found(const predict_table *t, const predict_way *w, int width)
{
    double all = 0;
    char step[32];
    bool first = true;

    for (int i = 0; i < LS_COST_N; i++) all += w->program.found[i];
    if (all <= 0) return;
    printf("%-*s computing: ", width > 13 ? width : 13, t->line[w->line]);
    for (int i = 0; i < LS_COST_N; i++) {
        if (w->program.found[i] < 0.0005 * all) continue;
        printf("%s%.1f %% %s", first ? "" : ", ", 100 * w->program.found[i] / all,
               ls_cost_source_name((ls_cost_source)i));
        first = false;
    }
    if (w->program.given_s > 0)
        printf("; all of it %.3g times, so that a rank alone takes the given %s", w->program.scale,
               ls_units_seconds(w->program.given_s, step));
    printf("\n");
}

/* Which engine answered which rows, and why: once for each reason. */
static void print_engines(const predict_table *t)
{
    for (int i = 0; i < t->n; i++) {
        const predict_row *r = &t->rows[i];
        bool said = r->why[0] != '\0';
        for (int k = 0; k < i && !said; k++)
            said = t->rows[k].why[0] == '\0' && t->rows[k].p.engine == r->p.engine &&
                   strcmp(t->rows[k].p.why, r->p.why) == 0;
        if (!said) printf("from %d ranks: %s (%s)\n", r->ranks, ls_engine_name(r->p.engine), r->p.why);
    }
}

/* What the band of the last row consists of. */
static void print_band(const predict_table *t)
{
    for (int i = t->n - 1; i >= 0; i--) {
        const ls_prediction *p = &t->rows[i].p;
        if (t->rows[i].why[0] != '\0') continue;
        printf("band          90 %%; of %d ranks from %.1f %% error of the costs, %.1f %% of whole steps, "
               "%.1f %% "
               "spread of steps, %.1f %% for ranks beyond those measured (%d)\n",
               t->rows[i].ranks, 100 * p->error_fit, 100 * p->error_together, 100 * p->error_spread,
               100 * p->error_extrapolated, t->network.measured_ranks);
        return;
    }
}

static void print_sensitivity(const predict_table *t)
{
    predict_change c[PREDICT_CHANGES];

    for (int i = t->n - 1; i >= 0; i--) {
        const predict_row *r = &t->rows[i];
        int n;
        if (r->why[0] != '\0' || r->ranks == 1) continue;
        n = predict_sensitivity(t, r, c);
        printf("%d ranks %s would take", r->ranks, predict_line_of(t, r));
        for (int k = 0; k < n; k++)
            printf("%s %.1f %% %s with %s", k > 0 ? "," : "",
                   100 * (c[k].step_s < r->p.mid ? 1 - c[k].step_s / r->p.mid : c[k].step_s / r->p.mid - 1),
                   c[k].step_s <= r->p.mid ? "less" : "more", c[k].what);
        printf("\n");
        return;
    }
}

/* Of steps alone; of runs more limits may be in the way (predict_run_print.c). */
static void print_unfit(const predict_table *t)
{
    const predict_row *least = NULL;
    char bytes[32];

    for (int i = 0; i < t->n; i++)
        if (t->rows[i].unfit && (least == NULL || t->rows[i].memory < least->memory)) least = &t->rows[i];
    if (t->runs != NULL || least == NULL || !predict_runs_none(t)) return;
    printf("nothing fits  --memory; the least is %s a rank, of %d rank%s %s\n",
           ls_text_bytes((double)least->memory, bytes), least->ranks, least->ranks == 1 ? "" : "s",
           predict_line_of(t, least));
}

void predict_print_text(const predict_table *t)
{
    size_t width = strlen("strategy");

    for (int i = 0; i < t->n_lines; i++)
        if (strlen(t->line[i]) > width) width = strlen(t->line[i]);
    print_heading(t);
    for (int i = 0; i < t->n_ways; i++)
        if (t->way[i].why[0] == '\0') print_found(t, &t->way[i], (int)width);
    printf("\n%7s %-*s %10s %10s %10s %12s %11s %10s %9s %9s %9s%s\n", "ranks", (int)width, "strategy",
           "step", "from", "to", "samples/s", "efficiency", "computing", "for wire", "exposed", "waiting",
           t->has_measured ? "     measured      error" : "");
    for (int i = 0; i < t->n; i++) print_row(t, &t->rows[i], (int)width);
    printf("\n");
    print_nearness(t);
    print_engines(t);
    print_band(t);
    print_sensitivity(t);
    print_unfit(t);
    if (t->runs != NULL) predict_runs_print(t);
}

/* -- JSON -------------------------------------------------------------------------------------------------
 */

static json_t *measured_json(const predict_row *r)
{
    const predict_measured *m = &r->measured;
    const double samples = r->p.samples_per_s * r->p.mid;

    return json_pack("{s:{s:f, s:f, s:f}, s:f, s:i, s:f, s:b}", "samples_per_s", "p16", m->rate.p16, "p50",
                     m->rate.p50, "p84", m->rate.p84, "step_s", samples / m->rate.p50, "results", m->n,
                     "error", m->error, "within", (int)m->within);
}

static json_t *nearness_json(const predict_table *t)
{
    const predict_nearness *near = &t->near;
    json_t *unmatched = json_array();

    for (const char *at = near->unmatched.data; at != NULL && *at != '\0'; at += strcspn(at, "\n") + 1)
        json_array_append_new(unmatched, json_stringn(at, strcspn(at, "\n")));
    return json_pack("{s:i, s:i, s:f, s:f, s:o}", "compared", near->compared, "inside", near->inside,
                     "median_error", near->median, "largest_error", near->largest, "unmatched", unmatched);
}

static json_t *row_json(const predict_table *t, const predict_row *r)
{
    const ls_prediction *p = &r->p;
    json_t *o = json_pack("{s:i, s:s}", "ranks", r->ranks, "strategy", t->way[r->way].strategy);

    if (t->way[r->way].batch > 0)
        json_object_set_new(o, "batch_per_rank", json_integer((json_int_t)t->way[r->way].batch));
    if (r->memory > 0) json_object_set_new(o, "memory_bytes", json_integer((json_int_t)r->memory));
    if (t->runs != NULL) json_object_set_new(o, "run", predict_run_json(t, r));
    if (r->why[0] != '\0') {
        json_object_set_new(o, "error", json_string(r->why));
        return o;
    }
    json_object_set_new(o, "nodes", json_integer(p->nodes));
    json_object_set_new(o, "step_s", json_pack("{s:f, s:f, s:f}", "lo", p->lo, "mid", p->mid, "hi", p->hi));
    json_object_set_new(o, "samples_per_s", json_real(p->samples_per_s));
    json_object_set_new(o, "efficiency", json_real(p->efficiency));
    json_object_set_new(o, "wire_bytes", json_real(p->wire_bytes));
    json_object_set_new(o, "parts_s",
                        json_pack("{s:f, s:f, s:f, s:f}", "compute", p->parts.compute_s, "core",
                                  p->parts.core_s, "exposed", p->parts.exposed_s, "straggle",
                                  p->parts.straggle_s));
    json_object_set_new(o, "error",
                        json_pack("{s:f, s:f, s:f, s:f}", "fit", p->error_fit, "together", p->error_together,
                                  "spread", p->error_spread, "extrapolated", p->error_extrapolated));
    if (r->measured.n > 0) json_object_set_new(o, "measured", measured_json(r));
    json_object_set_new(o, "engine", json_string(ls_engine_name(p->engine)));
    json_object_set_new(o, "why", json_string(p->why));
    return o;
}

void predict_print_json(const predict_table *t, const char *page)
{
    json_t *points = json_array(), *o;

    for (int i = 0; i < t->n; i++) json_array_append_new(points, row_json(t, &t->rows[i]));
    o = json_pack("{s:s, s:s, s:o, s:s, s:s, s:i, s:i, s:s, s:o}", "event", "predict", "experiment", t->name,
                  "batch_per_rank", t->batch > 0 ? json_integer((json_int_t)t->batch) : json_null(),
                  "machine", t->machine.name, "network", t->network.name, "ranks_per_node",
                  (int)t->placement.ranks_per_node, "measured_ranks", (int)t->network.measured_ranks,
                  "algorithm", ls_algorithm_name(t->algorithm), "points", points);
    if (t->runs != NULL) json_object_set_new(o, "run", predict_runs_json(t));
    if (t->step_time > 0) json_object_set_new(o, "step_time_s", json_real(t->step_time));
    if (t->has_measured) json_object_set_new(o, "measured", nearness_json(t));
    if (page[0] != '\0') json_object_set_new(o, "report", json_string(page));
    cli_print_json_take(o);
}

/* -- CSV --------------------------------------------------------------------------------------------------
 */

void predict_print_csv(const predict_table *t)
{
    printf("ranks,nodes,strategy,step_lo_s,step_mid_s,step_hi_s,samples_per_s,efficiency,compute_s,core_s,"
           "exposed_s,straggle_s,wire_bytes,engine");
    predict_run_csv_head();
    printf("%s\n", t->has_measured
                       ? ",measured_samples_per_s_p16,measured_samples_per_s,measured_samples_per_s_p84,"
                         "measured_error,within_band,results"
                       : "");
    for (int i = 0; i < t->n; i++) {
        const predict_row *r = &t->rows[i];
        const ls_prediction *p = &r->p;
        if (r->why[0] != '\0' && !r->unfit) continue; /* what does not fit is known all the same */
        printf("%d,%d,%s,%.6g,%.6g,%.6g,%.6g,%.5f,%.6g,%.6g,%.6g,%.6g,%.0f,%s", r->ranks, (int)p->nodes,
               t->way[r->way].strategy, p->lo, p->mid, p->hi, p->samples_per_s, p->efficiency,
               p->parts.compute_s, p->parts.core_s, p->parts.exposed_s, p->parts.straggle_s, p->wire_bytes,
               ls_engine_name(p->engine));
        predict_run_csv(t, r);
        if (r->measured.n > 0)
            printf(",%.6g,%.6g,%.6g,%.5f,%d,%d", r->measured.rate.p16, r->measured.rate.p50,
                   r->measured.rate.p84, r->measured.error, (int)r->measured.within, r->measured.n);
        else if (t->has_measured)
            printf(",,,,,,0");
        printf("\n");
    }
}
