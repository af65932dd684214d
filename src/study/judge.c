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

/* Repeat by repeat, where what drifts strikes both alike. */
static ls_study_ratios ratios_of(const ls_study *s, const column *base, const column *c)
{
    ls_study_ratios r = {0};

    for (int k = 0; k < s->repeats; k++) {
        const ls_study_point *a = base->p[k], *b = c->p[k];
        if (a == NULL || b == NULL) continue;
        lsi_ratios_add(&r, log_share(b) - log_share(a), lsi_point_inside(a), lsi_point_inside(b));
    }
    return r;
}

/* How the ratios of the counts other than number `but` scatter, in the mean; NaN where none has two.  Ranks
 * that share cores scatter in ways of their own. */
static double scatter_of_others(const ls_study_results *r, const ls_study_ratios *of, int but)
{
    double sum = 0;
    int n = 0;

    for (int i = 1; i < r->n; i++) {
        if (i == but || of[i].n < 2 || r->rows[i].oversubscribed) continue;
        sum += lsi_ratios_scatter(&of[i]);
        n++;
    }
    return n > 0 ? sum / n : NAN;
}

static void judge_efficiency(const ls_study *s, const column *of, ls_study_results *r)
{
    static const double none = NAN;
    ls_study_ratios ratios[LS_STUDY_COUNTS_MAX];
    int apart = 0; /* counts whose ranks have cores of their own, beside the smallest */

    for (int i = 0; i < r->n; i++) {
        ratios[i] = ratios_of(s, &of[0], &of[i]);
        apart += i > 0 && !r->rows[i].oversubscribed;
    }
    for (int i = 1; i < r->n; i++) {
        ls_study_row *w = &r->rows[i];
        const bool shared = w->oversubscribed;
        w->efficiency = ls_study_ratio(&ratios[i], shared ? none : scatter_of_others(r, ratios, i),
                                       !shared && apart > 1, &w->sure);
    }
    if (r->rows[0].repeats > 0) r->rows[0].efficiency = (ls_interval){1, 1, 1};
}

/* -- all of it --------------------------------------------------------------------------------------------
 */

static ls_study_row row_of(const ls_study *s, const column *c, int count)
{
    ls_study_row r = {.count = count,
                      .ranks = ls_study_ranks(s, count),
                      .threads = s->threads,
                      .repeats = c->n,
                      .efficiency = {NAN, NAN, NAN},
                      .predicted = {NAN, NAN, NAN},
                      .predicted_step_s = {NAN, NAN, NAN},
                      .predicted_efficiency = {NAN, NAN, NAN},
                      .predicted_error = NAN,
                      .sure = {.between = NAN, .inside = NAN, .expected = {NAN, NAN, NAN}}};
    ls_spread rates[LS_STUDY_REPEATS_MAX];
    double medians[LS_STUDY_REPEATS_MAX], inside = 0;
    ls_estimate m;
    int n = 0;

    for (int k = 0; k < s->repeats; k++) {
        if (c->p[k] == NULL) continue;
        r.oversubscribed |= is_oversubscribed(s, c->p[k]);
        inside += lsi_point_inside(c->p[k]).variance;
        medians[n] = c->p[k]->rate.p50;
        rates[n++] = c->p[k]->rate;
    }
    r.rate = ls_study_pool(rates, n);
    m = ls_mean_of(medians, (size_t)n);
    r.mean = m.mean;
    /* Of one repeat the steps are all there is; of several that agree by chance they are the least. */
    r.error = n > 0 ? fmax(m.error, m.mean * sqrt(inside) / n) : NAN; /* fmax leaves out NaN */
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
    column of[LS_STUDY_COUNTS_MAX];

    *r = (ls_study_results){.n = s->n_counts, .complete = p->n_there == s->n_counts * s->repeats};
    for (int i = 0; i < s->n_counts; i++) {
        of[i] = column_of(s, p, i);
        r->rows[i] = row_of(s, &of[i], s->counts[i]);
        r->any_oversubscribed |= r->rows[i].oversubscribed;
        for (int k = 0; k < s->repeats; k++)
            if (of[i].p[k] != NULL && of[i].p[k]->score_name[0] != '\0')
                snprintf(r->score_name, sizeof r->score_name, "%s", of[i].p[k]->score_name);
    }
    judge_efficiency(s, of, r);
}
