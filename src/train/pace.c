/* pace.c: comparing the ranks' times. */
#include "train/pace.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/stats.h"
#include "base/units.h"

void ls_pace_release(ls_pace *p)
{
    ls_free(p->means);
    *p = (ls_pace){0};
}

void ls_pace_note(ls_pace *p, double compute_s)
{
    p->recent_s += compute_s;
    p->total_s += compute_s;
    p->recent++;
    p->total++;
}

int ls_pace_slow(const double *means, int n, double *sorted, double *factor)
{
    int slowest = 0;
    double median;

    for (int i = 1; i < n; i++)
        if (means[i] > means[slowest]) slowest = i;
    (void)ls_spread_keep(means, (size_t)n, sorted);
    median = sorted[(n - 1) / 2]; /* the lower one of two: with two ranks the other one */
    *factor = median > 0 ? means[slowest] / median : 1;
    return *factor > LS_PACE_SLOW ? slowest : -1;
}

static void warn(ls_pace *p, const double *recent, double *sorted)
{
    char text[LS_UNITS_TEXT];
    double factor;
    const int slow = ls_pace_slow(recent, p->ranks, sorted, &factor);

    if (slow < 0 || p->warned || recent[slow] * (double)p->recent < LS_PACE_LEAST_S) return;
    p->warned = true;
    ls_log(LS_LOG_WARN,
           "rank %d is slow: it computes %s a step, %.2f times the median of the ranks; all wait for it",
           slow, ls_units_seconds(recent[slow], text), factor);
}

ls_status ls_pace_compare(ls_pace *p, ls_comm *comm, ls_err *err)
{
    const int n = comm != NULL ? ls_comm_size(comm) : 1;
    const double mine[2] = {p->recent > 0 ? p->recent_s / (double)p->recent : 0,
                            p->total > 0 ? p->total_s / (double)p->total : 0};
    double *pairs;
    ls_status st;

    if (n == 1) return LS_OK;
    /* Means, recent ones, a copy to be sorted, and what is gathered. */
    if (p->means == NULL) p->means = ls_alloc(LS_MEM_CLI, 5 * (size_t)n * sizeof *p->means);
    if (p->means == NULL) return ls_fail(err, LS_NOMEM, "ranks: no memory");
    p->ranks = n;
    pairs = p->means + 3 * n;
    st = ls_comm_gather_all(comm, mine, sizeof mine, pairs, "comparing times", err);
    if (st != LS_OK) return st;
    for (int i = 0; i < n; i++) {
        p->means[n + i] = pairs[2 * i];
        p->means[i] = pairs[2 * i + 1];
    }
    if (ls_comm_rank(comm) == 0 && p->recent >= LS_PACE_EVERY) warn(p, p->means + n, p->means + 2 * n);
    p->recent_s = 0;
    p->recent = 0;
    return LS_OK;
}

json_t *ls_pace_json(const ls_pace *p)
{
    json_t *a = json_array();

    for (int i = 0; p->means != NULL && i < p->ranks; i++) json_array_append_new(a, json_real(p->means[i]));
    return a;
}
