/* judge.c: what the points of a study say together: rates with their spread, and efficiencies with their
 * intervals. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "study/study_internal.h"

/* The results of one count. */
typedef struct column {
    const ls_study_point *p[LS_STUDY_REPEATS_MAX]; /* by repeat; NULL: not there */
    int n;
} column;

static column column_of(const ls_study *s, const ls_study_points *points, int i)
{
    column c = {0};

    for (int k = 0; k < s->repeats; k++) {
        const int at = i * s->repeats + k;
        if (!points->there[at]) continue;
        c.p[k] = &points->of[at];
        c.n++;
    }
    return c;
}

/* The number `field` bytes into the point, of every repeat that is there and has it. */
static int gather(const ls_study *s, const column *c, size_t field, double *out)
{
    int n = 0;

    for (int k = 0; k < s->repeats; k++) {
        double x;
        if (c->p[k] == NULL) continue;
        memcpy(&x, (const char *)c->p[k] + field, sizeof x);
        if (isfinite(x)) out[n++] = x;
    }
    return n;
}

#define FIELD(f) offsetof(ls_study_point, f)

/* Smallest, median and largest. */
static ls_interval range(const ls_study *s, const column *c, size_t field)
{
    double x[LS_STUDY_REPEATS_MAX], mid;
    const int n = gather(s, c, field, x);

    if (n == 0) return (ls_interval){NAN, NAN, NAN};
    mid = ls_spread_of(x, (size_t)n).p50;
    return (ls_interval){x[0], mid, x[n - 1]};
}

static double median(const ls_study *s, const column *c, size_t field)
{
    return range(s, c, field).mid;
}

/* More threads than cores on a machine: the ranks take turns, and what they lose is no loss of the exchange.
 */
static bool is_oversubscribed(const ls_study *s, const ls_study_point *p)
{
    const int here = s->ranks_per_node > 0 ? s->ranks_per_node : p->ranks;
    const int cores = p->cores > 0 ? p->cores : s->cores;

    return p->oversubscribed || (int64_t)here * s->threads > cores;
}

/* -- efficiency -------------------------------------------------------------------------------------------
 */

/* log of samples per second and rank. */
static double log_share(const ls_study_point *p)
{
    return log(p->rate.p50 / p->ranks);
}

static ls_interval efficiency(const ls_study *s, const column *base, const column *c)
{
    double ratio[LS_STUDY_REPEATS_MAX];
    const ls_study_point *a = NULL, *b = NULL;
    int n = 0;

    for (int k = 0; k < s->repeats; k++) {
        if (base->p[k] == NULL || c->p[k] == NULL) continue;
        a = base->p[k];
        b = c->p[k];
        ratio[n++] = log_share(b) - log_share(a);
    }
    if (n > 1) return ls_interval_mean(ls_mean_of(ratio, (size_t)n));
    if (n == 1) return ls_study_ratio_once(ratio[0], lsi_point_error(a), lsi_point_error(b));
    return (ls_interval){NAN, NAN, NAN};
}

/* -- all of it --------------------------------------------------------------------------------------------
 */

static ls_study_row row_of(const ls_study *s, const column *base, const column *c, int count)
{
    ls_study_row r = {.count = count,
                      .ranks = ls_study_ranks(s, count),
                      .threads = s->threads,
                      .repeats = c->n,
                      .efficiency = {NAN, NAN, NAN}};
    ls_spread rates[LS_STUDY_REPEATS_MAX];
    double medians[LS_STUDY_REPEATS_MAX];
    const ls_study_point *any = NULL;
    ls_estimate m;
    int n = 0;

    for (int k = 0; k < s->repeats; k++) {
        if (c->p[k] == NULL) continue;
        any = c->p[k];
        r.oversubscribed |= is_oversubscribed(s, any);
        medians[n] = c->p[k]->rate.p50;
        rates[n++] = c->p[k]->rate;
    }
    r.rate = ls_study_pool(rates, n);
    m = ls_mean_of(medians, (size_t)n);
    r.mean = m.mean;
    r.error = n == 1 ? m.mean * lsi_point_error(any) : m.error;
    r.efficiency = base == c && n > 0 ? (ls_interval){1, 1, 1} : efficiency(s, base, c);
    r.step_s = median(s, c, FIELD(step_s.p50));
    r.exposed_s = median(s, c, FIELD(exposed_s));
    r.data_wait_s = median(s, c, FIELD(data_wait_s));
    r.compute_s = fmax(0, r.step_s - r.exposed_s - r.data_wait_s);
    r.flop_s = median(s, c, FIELD(flop_s));
    r.peak_flop_s = median(s, c, FIELD(peak_flop_s));
    r.peak_read_b_s = median(s, c, FIELD(peak_read_b_s));
    r.solution_s = range(s, c, FIELD(solution_s));
    r.score = range(s, c, FIELD(score));
    return r;
}

void ls_study_judge(const ls_study *s, const ls_study_points *p, ls_study_results *r)
{
    const column base = column_of(s, p, 0);

    *r = (ls_study_results){.n = s->n_counts, .complete = p->n_there == s->n_counts * s->repeats};
    for (int i = 0; i < s->n_counts; i++) {
        const column c = column_of(s, p, i);
        r->rows[i] = row_of(s, &base, i == 0 ? &base : &c, s->counts[i]);
        r->any_oversubscribed |= r->rows[i].oversubscribed;
        for (int k = 0; k < s->repeats; k++)
            if (c.p[k] != NULL && c.p[k]->score_name[0] != '\0')
                snprintf(r->score_name, sizeof r->score_name, "%s", c.p[k]->score_name);
    }
}
