/* compare.c: two studies side by side.
 *
 * Repeats of two studies were not made in turns, so nothing pairs them: the scatter of each counts (Welch).
 */
#include "study/compare.h"

#include <math.h>
#include <stdio.h>

#include "events/table.h"
#include "study/study_internal.h"

/* -- computing --------------------------------------------------------------------------------------------
 */

static int index_of(const ls_study *s, int count)
{
    for (int i = 0; i < s->n_counts; i++)
        if (s->counts[i] == count) return i;
    return -1;
}

/* Logarithms of rates: of the n counts with the indices `at` together, one number per repeat that has them
 * all.  They are at least as uncertain as the steps inside the runs say; a single repeat is taken to differ
 * from others by LS_STUDY_ASSUMED, with one degree of freedom. */
static ls_estimate rates_of(const ls_study *s, const ls_study_points *p, const int *at, int n)
{
    double x[LS_STUDY_REPEATS_MAX] = {0}, inside = 0;
    ls_estimate m;
    int found = 0;

    for (int k = 0; k < s->repeats; k++) {
        double sum = 0, squares = 0;
        int i = 0;
        for (; i < n; i++) {
            const int index = at[i] * s->repeats + k;
            if (!p->there[index]) break;
            sum += log(p->of[index].rate.p50);
            squares += lsi_point_inside(&p->of[index]).variance;
        }
        if (i < n) continue;
        inside += squares / n / n;
        x[found++] = sum / n;
    }
    m = ls_mean_of(x, (size_t)found);
    if (found == 1) {
        m.error = sqrt(inside + LS_STUDY_ASSUMED * LS_STUDY_ASSUMED);
        m.batches = 2;
    }
    if (found > 1) m.error = fmax(m.error, sqrt(inside) / found);
    return m;
}

static int repeats_of(const ls_study_points *p, const ls_study *s, int at)
{
    int n = 0;

    for (int k = 0; k < s->repeats; k++) n += p->there[at * s->repeats + k];
    return n;
}

static ls_compared compare_counts(const ls_comparison *c, const ls_study_points *pa,
                                  const ls_study_points *pb, const int *a, const int *b, int n)
{
    const ls_estimate ma = rates_of(&c->a, pa, a, n), mb = rates_of(&c->b, pb, b, n);
    ls_compared r = {.ratio = {NAN, NAN, NAN}, .verdict = LS_UNKNOWN};

    if (ma.batches == 0 || mb.batches == 0) return r;
    r.ratio = ls_interval_ratio(ma, mb);
    r.verdict = ls_verdict_of(r.ratio);
    for (int i = 0; i < n; i++)
        if (repeats_of(pa, &c->a, a[i]) < 2 || repeats_of(pb, &c->b, b[i]) < 2) r.assumed = true;
    return r;
}

static ls_status compute(ls_comparison *c, ls_err *err)
{
    ls_study_points pa = {0}, pb = {0};
    ls_study_results ra, rb;
    int a[LS_STUDY_COUNTS_MAX], b[LS_STUDY_COUNTS_MAX], n = 0;
    ls_status st = LS_OK;

    LS_TRY(ls_study_points_load(&pa, &c->a, err));
    LS_TRY(ls_study_points_load(&pb, &c->b, err));
    ls_study_judge(&c->a, &pa, &ra);
    ls_study_judge(&c->b, &pb, &rb);
    for (int i = 0; i < c->a.n_counts; i++) {
        const int k = index_of(&c->b, c->a.counts[i]);
        if (k < 0 || ra.rows[i].repeats == 0 || rb.rows[k].repeats == 0) continue;
        a[n] = i;
        b[n] = k;
        c->of[n] = compare_counts(c, &pa, &pb, &i, &k, 1);
        c->of[n].count = c->a.counts[i];
        c->of[n].ranks = ra.rows[i].ranks;
        c->of[n].oversubscribed = ra.rows[i].oversubscribed || rb.rows[k].oversubscribed;
        c->all.oversubscribed |= c->of[n++].oversubscribed;
    }
    if (n == 0)
        LS_TRY(ls_fail(err, LS_INVALID, "%s and %s have no measured point in common", c->a.dir, c->b.dir));
    c->n = n;
    {
        const bool oversubscribed = c->all.oversubscribed;
        c->all = compare_counts(c, &pa, &pb, a, b, n);
        c->all.oversubscribed = oversubscribed;
    }
out:
    ls_study_points_release(&pa);
    ls_study_points_release(&pb);
    return st;
}

ls_status ls_study_compare(ls_comparison *c, const char *a, const char *b, bool force, ls_err *err)
{
    ls_status st = LS_OK;

    *c = (ls_comparison){0};
    LS_TRY(ls_study_load(&c->a, a, err));
    LS_TRY(ls_study_load(&c->b, b, err));
    c->parts = ls_study_differences(&c->a, &c->b, &c->differences);
    if ((c->parts & LS_STUDY_QUESTION) && !force)
        LS_TRY(ls_fail(
            err, LS_INVALID,
            "%s and %s ask different questions (%s); studies that differ in settings, machine or version can "
            "be compared, others with --force",
            a, b, c->differences.data != NULL ? c->differences.data : "no memory"));
    LS_TRY(compute(c, err));
out:
    return st;
}

void ls_comparison_release(ls_comparison *c)
{
    ls_study_release(&c->a);
    ls_study_release(&c->b);
    ls_text_release(&c->differences);
    *c = (ls_comparison){0};
}

/* -- showing ----------------------------------------------------------------------------------------------
 */

static void add_row(ls_table *t, const ls_compared *r)
{
    char ranks[16] = "all", ratio[32], interval[64];

    if (r->count > 0) snprintf(ranks, sizeof ranks, "%d", r->ranks);
    snprintf(ratio, sizeof ratio, "%.3f", r->ratio.mid);
    snprintf(interval, sizeof interval, "[%.3f, %.3f]", r->ratio.lo, r->ratio.hi);
    ls_table_row(t, (const char *const[]){ranks, ratio, interval, ls_verdict_text(r->verdict),
                                          r->oversubscribed ? "oversubscribed"
                                          : r->assumed      ? "one repeat: spread assumed"
                                                            : ""});
}

ls_status ls_comparison_table(const ls_comparison *c, ls_text *out, ls_err *err)
{
    ls_table *t = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_table_create(&t, "rrrll", err));
    ls_table_row(t, (const char *const[]){"ranks", "B / A", "95 %", "B is", "remark"});
    ls_table_rule(t);
    for (int i = 0; i < c->n; i++) add_row(t, &c->of[i]);
    ls_table_rule(t);
    add_row(t, &c->all);
    LS_TRY(ls_table_print(t, out, err));
out:
    ls_table_destroy(t);
    return st;
}

static json_t *compared_json(const ls_compared *r)
{
    static const char *const names[] = {"same", "faster", "slower", "unknown"};

    return json_pack("{s:i, s:o, s:s, s:b, s:s}", "ranks", r->ranks, "ratio", lsi_interval_json(r->ratio),
                     "verdict", names[r->verdict], "oversubscribed", (int)r->oversubscribed, "interval_from",
                     ls_study_from_name(r->assumed ? LS_STUDY_FROM_ASSUMED : LS_STUDY_FROM_REPEATS));
}

json_t *ls_comparison_json(const ls_comparison *c)
{
    json_t *points = json_array(), *all = compared_json(&c->all);

    json_object_del(all, "ranks");
    for (int i = 0; i < c->n; i++) json_array_append_new(points, compared_json(&c->of[i]));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:o, s:o}", "event", "scale-compare", "mode",
                     ls_study_mode_name(c->a.mode), "a", c->a.dir, "b", c->b.dir, "differences",
                     c->differences.data != NULL ? c->differences.data : "", "same_question",
                     (int)!(c->parts & LS_STUDY_QUESTION), "points", points, "all", all);
}
