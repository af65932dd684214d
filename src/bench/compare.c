/* compare.c: two measurements side by side. */
#include "bench/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* -- the ratio --------------------------------------------------------------------------------------------
 */

/* The mean of the logarithms of the repeats.  A single result brings the error that its own steps show. */
static ls_estimate log_rate(const ls_bench_results *r)
{
    const ls_estimate *first = &r->of[0].rate;
    double x[LS_BENCH_RESULTS_MAX];

    if (r->n == 1) return (ls_estimate){log(first->mean), first->error / first->mean, first->batches};
    for (int i = 0; i < r->n; i++) x[i] = log(r->of[i].rate.mean);
    return ls_mean_of(x, (size_t)r->n);
}

/* Whether repeat i of both was over before repeat i + 1 of either: then what drifts strikes both alike. */
static bool in_turns(const ls_bench_results *a, const ls_bench_results *b)
{
    if (a->n != b->n || a->n < 2) return false;
    for (int i = 0; i < a->n; i++)
        if (a->of[i].time == 0 || b->of[i].time == 0) return false;
    for (int i = 0; i + 1 < a->n; i++) {
        const int64_t last = a->of[i].time > b->of[i].time ? a->of[i].time : b->of[i].time;
        if (last > a->of[i + 1].time || last > b->of[i + 1].time) return false;
    }
    return true;
}

/* The mean of the logarithms of the ratios of neighbours. */
static ls_estimate log_ratios(const ls_bench_results *a, const ls_bench_results *b)
{
    double x[LS_BENCH_RESULTS_MAX];

    for (int i = 0; i < a->n; i++) x[i] = log(b->of[i].rate.mean / a->of[i].rate.mean);
    return ls_mean_of(x, (size_t)a->n);
}

/* -- what differs -----------------------------------------------------------------------------------------
 */

static void add(ls_bench_comparison *c, const char *name, const char *a, const char *b, bool other)
{
    ls_compare_field *f = &c->fields[c->n_fields];

    if (strcmp(a, b) == 0 || c->n_fields == LS_COMPARE_FIELDS) return;
    *f = (ls_compare_field){.name = name, .other = other};
    snprintf(f->a, sizeof f->a, "%s", a[0] != '\0' ? a : "none");
    snprintf(f->b, sizeof f->b, "%s", b[0] != '\0' ? b : "none");
    c->n_fields++;
    if (other) c->same = false;
}

static void add_number(ls_bench_comparison *c, const char *name, int64_t a, int64_t b, bool other)
{
    char x[24], y[24];

    snprintf(x, sizeof x, "%lld", (long long)a);
    snprintf(y, sizeof y, "%lld", (long long)b);
    add(c, name, x, y, other);
}

static void find_differences(ls_bench_comparison *c, const ls_bench_result *a, const ls_bench_result *b)
{
    c->same = true;
    add(c, "experiment", a->experiment, b->experiment, true);
    add(c, "settings", a->settings, b->settings, true);
    add(c, "data", a->mode, b->mode, true);
    add(c, "device", a->device, b->device, true);
    add_number(c, "ranks", a->ranks, b->ranks, true);
    add_number(c, "hosts", a->hosts, b->hosts, true);
    add_number(c, "threads", a->threads, b->threads, true);
    add_number(c, "batch_per_rank", a->batch_per_rank, b->batch_per_rank, true);
    add_number(c, "batch_global", a->batch_global, b->batch_global, true);
    add(c, "host", a->host, b->host, false);
    add_number(c, "cores", a->cores, b->cores, false);
    add(c, "version", a->version, b->version, false);
    add(c, "plan", a->plan_hash, b->plan_hash, false);
}

/* -- both -------------------------------------------------------------------------------------------------
 */

void ls_bench_compare(ls_bench_comparison *out, const ls_bench_results *a, const ls_bench_results *b)
{
    const ls_estimate x = log_rate(a), y = log_rate(b);

    *out = (ls_bench_comparison){.rate_a = exp(x.mean), .rate_b = exp(y.mean), .way = LS_COMPARE_STEPS};
    if (in_turns(a, b)) {
        out->way = LS_COMPARE_PAIRED;
        out->ratio = ls_interval_mean(log_ratios(a, b));
    } else {
        if (a->n > 1 || b->n > 1) out->way = LS_COMPARE_UNPAIRED;
        out->ratio = ls_interval_ratio(x, y);
    }
    out->verdict = ls_verdict_of(out->ratio);
    find_differences(out, &a->of[0], &b->of[0]);
    for (int i = 0; i < a->n; i++) out->oversubscribed |= a->of[i].oversubscribed;
    for (int i = 0; i < b->n; i++) out->oversubscribed |= b->of[i].oversubscribed;
}

const char *ls_compare_way_text(ls_compare_way way)
{
    switch (way) {
    case LS_COMPARE_PAIRED: return "ratios of repeats that were made in turns";
    case LS_COMPARE_UNPAIRED: return "how the repeats scatter";
    default:
        return "the steps of one run each; what differs from run to run is not in it: repeat both in turns";
    }
}
