/* predict_run_print.c: whole runs as text and as CSV. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "predict_run.h"

enum { WORD = 40, NAME = 128, REMARKS = 256, LISTED = 6 };

/* -- words ------------------------------------------------------------------------------------------------
 */

const char *predict_time(double s, char *buf)
{
    return s < 100 ? ls_units_seconds(s, buf) : ls_units_clock(s, buf);
}

const char *predict_money(double cost, char *buf)
{
    return ls_units_rate(cost, buf); /* four digits */
}

const char *predict_row_name(const predict_table *t, const predict_row *r, char *buf, size_t size)
{
    return ls_text_fit(buf, size, "%d rank%s %s", r->ranks, r->ranks == 1 ? "" : "s", predict_line_of(t, r));
}

static void add_limits(char *buf, size_t size, const char *before, unsigned limits)
{
    for (int k = 0; k < LS_LIMIT_N; k++) {
        const size_t at = strlen(buf);
        if ((limits >> k & 1) == 0) continue;
        ls_text_fit(buf + at, size - at, "%s%s%s", at > 0 ? "; " : "", before,
                    ls_limit_name((ls_limit_kind)k));
    }
}

const char *predict_run_remarks(const predict_table *t, const predict_row *r, char *buf, size_t size)
{
    const predict_run *run = &t->runs->of[r - t->rows];
    const ls_offer *o = run->offer >= 0 ? &t->runs->offers[run->offer] : NULL;
    char below[WORD], above[WORD];
    size_t at;

    buf[0] = '\0';
    if (o == NULL) return buf;
    add_limits(buf, size, "beyond ", o->beyond);
    add_limits(buf, size, "may be beyond ", o->may);
    at = strlen(buf);
    if (run->reached.how == LS_REACH_INTERPOLATED)
        ls_text_fit(buf + at, size - at, "%sinterpolated between batches %s and %s", at > 0 ? "; " : "",
                    ls_text_count(run->reached.below, below), ls_text_count(run->reached.above, above));
    at = strlen(buf);
    if (run->reached.how != LS_REACH_UNKNOWN && run->reached.at_most)
        ls_text_fit(buf + at, size - at, "%sat most", at > 0 ? "; " : "");
    return buf;
}

/* -- what was asked ---------------------------------------------------------------------------------------
 */

static void print_question(const predict_table *t)
{
    const predict_wish *w = &t->runs->wish;
    char number[WORD], other[WORD];

    printf("run           until %s", w->until);
    if (w->accuracy > 0) printf(", by the trainings of %s", t->runs->trainings.from);
    if (w->samples > 0)
        printf("; %s samples an epoch%s", ls_text_count(w->samples, number),
               w->samples_given ? " (--samples)" : "");
    printf("\n              not in it: tests, waits for data, the start; a short last batch of an epoch "
           "counts as a whole one\n");
    if (w->price > 0)
        printf("price         %s for a machine and hour\n", predict_money(w->price, number));
    else
        printf("price         not given: costs are machine-hours\n");
    if (!w->fails) return;
    printf("failures      of a machine one in %s;", predict_time(w->mtbf_s, number));
    if (w->checkpoint_s > 0)
        printf(" a checkpoint takes %s,", predict_time(w->checkpoint_s, number));
    else
        printf(" a checkpoint of %s takes %s,", ls_text_bytes(w->checkpoint_bytes, number),
               predict_time(w->checkpoint_bytes / w->checkpoint_bytes_s, other));
    printf(" a restart %s; times and costs are expectations with them\n", predict_time(w->restart_s, number));
}

/* -- the table --------------------------------------------------------------------------------------------
 */

static int line_width(const predict_table *t)
{
    size_t most = strlen("strategy");

    for (int i = 0; i < t->n_lines; i++) most = strlen(t->line[i]) > most ? strlen(t->line[i]) : most;
    return (int)most;
}

static void print_row(const predict_table *t, const predict_row *r, int width)
{
    const predict_run *run = &t->runs->of[r - t->rows];
    const ls_offer *o = &t->runs->offers[run->offer >= 0 ? run->offer : 0];
    char a[WORD], b[WORD], c[WORD], d[WORD], e[WORD], f[WORD], batch[WORD], steps[WORD], text[REMARKS];

    printf("%7d %-*s", r->ranks, width, predict_line_of(t, r));
    if (run->why[0] != '\0') {
        printf("  %s\n", run->why);
        return;
    }
    printf(" %8d %10s %10s %10s %10s %10s %9s %9s %9s", (int)o->nodes, ls_text_count(run->batch, batch),
           ls_text_count((int64_t)ceil(run->steps.mid - 1e-9), steps), predict_time(o->seconds.mid, a),
           predict_time(o->seconds.lo, b), predict_time(o->seconds.hi, c), predict_money(o->cost.mid, d),
           predict_money(o->cost.lo, e), predict_money(o->cost.hi, f));
    if (t->runs->wish.fails)
        printf(" %10s %6.1f %%", run->ends_alone ? "the end" : predict_time(run->daly_s, a),
               100 * (1 - run->training.mid / o->seconds.mid));
    predict_run_remarks(t, r, text, sizeof text);
    printf("%s%s%s\n", o->front ? " *" : text[0] != '\0' ? "  " : "", text[0] != '\0' ? " " : "", text);
}

static void print_table(const predict_table *t)
{
    const int width = line_width(t);

    printf("\n%7s %-*s %8s %10s %10s %10s %10s %10s %9s %9s %9s%s\n", "ranks", width, "strategy", "machines",
           "of all", "steps", "time", "from", "to", "cost", "from", "to",
           t->runs->wish.fails ? " checkpoint     lost" : "");
    for (int i = 0; i < t->n; i++) print_row(t, &t->rows[i], width);
}

/* -- what to choose ---------------------------------------------------------------------------------------
 */

static const predict_row *row_of(const predict_table *t, int offer)
{
    return &t->rows[t->runs->offers[offer].row];
}

static void print_choice(const predict_table *t, const char *what, int offer, bool by_cost)
{
    const predict_runs *q = t->runs;
    const ls_offer *o = &q->offers[offer];
    char name[NAME], a[WORD], b[WORD], c[WORD], d[WORD], e[WORD], f[WORD];
    int n = 0;

    printf("%-13s %s: %s (%s to %s), %s (%s to %s)", what,
           predict_row_name(t, row_of(t, offer), name, sizeof name), predict_money(o->cost.mid, a),
           predict_money(o->cost.lo, b), predict_money(o->cost.hi, c), predict_time(o->seconds.mid, d),
           predict_time(o->seconds.lo, e), predict_time(o->seconds.hi, f));
    for (int i = 0; i < q->n; i++) {
        const ls_offer *other = &q->offers[i];
        if (i == offer || other->beyond != 0 ||
            !ls_interval_overlaps(by_cost ? o->cost : o->seconds, by_cost ? other->cost : other->seconds))
            continue;
        if (n < LISTED)
            printf("%s%s", n == 0 ? "\n              its range overlaps those of " : "; ",
                   predict_row_name(t, row_of(t, i), name, sizeof name));
        n++;
    }
    if (n > LISTED) printf(" and %d more", n - LISTED);
    printf("%s\n", n > 0 ? ": they cannot be told apart" : "");
}

/* Of what was chosen: the interval, how sure an expectation is of a single run, and where the time goes. */
static void print_checkpoints(const predict_table *t, int offer)
{
    const predict_run *r = &t->runs->of[t->runs->offers[offer].row];
    const double all = r->expected.seconds;
    char name[NAME], a[WORD], b[WORD];

    printf("checkpoints   %s: ", predict_row_name(t, row_of(t, offer), name, sizeof name));
    if (r->ends_alone)
        printf("one at the end");
    else
        printf("every %s (Daly; first order, Young: %s)", predict_time(r->daly_s, a),
               predict_time(r->young_s, b));
    printf(
        "; %.2g %% of the time writes them, %.2g %% is lost with %.2g failures; single runs scatter by %s\n",
        100 * r->expected.checkpoints_s / all, 100 * r->expected.lost_s / all, r->expected.failures,
        predict_time(r->expected.scatter_s, a));
}

static void print_front(const predict_table *t)
{
    const predict_runs *q = t->runs;
    int n = 0, before = -1;
    bool overlaps = false;

    for (int i = 0; i < q->n; i++) {
        if (!q->offers[i].front) continue;
        if (before >= 0)
            overlaps |= ls_interval_overlaps(q->offers[before].cost, q->offers[i].cost) &&
                        ls_interval_overlaps(q->offers[before].seconds, q->offers[i].seconds);
        before = i;
        n++;
    }
    if (n == 0) return;
    printf("front         %d marked *: nothing within the limits is both faster and cheaper%s\n", n,
           overlaps ? "; of some, both ranges overlap" : "");
}

static void print_paying(const predict_table *t)
{
    const predict_runs *q = t->runs;
    ls_paying p;

    for (int line = 0; line < t->n_lines; line++) {
        if (!ls_offers_pay(q->offers, q->n, line, &p)) continue;
        if (p.next < 0)
            printf("ranks pay     %s: up to %d, the most that can be had\n", t->line[line],
                   q->offers[p.last].ranks);
        else
            printf("ranks pay     %s: up to %d; %d take %.3g of the time and cost %.3g times as much\n",
                   t->line[line], q->offers[p.last].ranks, q->offers[p.next].ranks, p.seconds, p.cost);
    }
}

static void print_at_most(const predict_table *t)
{
    bool any = false;

    for (int i = 0; i < t->n; i++) any |= t->runs->of[i].offer >= 0 && t->runs->of[i].reached.at_most;
    if (any)
        printf(
            "at most       the study does not say when they reached %s: steps are those of whole trainings\n",
            t->runs->wish.until);
}

static void print_batch_limit(const predict_table *t)
{
    const ls_trainings *m = &t->runs->trainings;
    const int64_t limit = ls_trainings_limit(m), next = ls_trainings_next(m, limit);
    ls_seeds s = ls_trainings_seeds(m, limit);
    char number[WORD];

    if (m->n == 0) return;
    if (limit > 0)
        printf("batch limit   %s: the largest at which %s was reached, by %d of %d seed%s",
               ls_text_count(limit, number), t->runs->wish.until, s.reached, s.all, s.all == 1 ? "" : "s");
    else
        printf("batch limit   none: no batch reached %s with every seed", t->runs->wish.until);
    s = ls_trainings_seeds(m, next);
    if (next > 0)
        printf("; %s: by %d of %d", ls_text_count(next, number), s.reached, s.all);
    else
        printf("; nobody measured a larger one");
    printf("\n");
}

static void print_none(const predict_table *t)
{
    const predict_runs *q = t->runs;
    int counts[LS_LIMIT_N] = {0};
    char name[NAME], a[WORD], b[WORD], c[WORD];
    double excess;
    const int nearest = ls_offers_nearest(q->offers, q->n, &q->wish.limits, &excess);

    if (nearest < 0) {
        printf("no run        has an answer\n");
        return;
    }
    for (int i = 0; i < q->n; i++)
        for (int k = 0; k < LS_LIMIT_N; k++) counts[k] += (int)(q->offers[i].beyond >> k & 1);
    printf("nothing fits ");
    for (int k = 0, n = 0; k < LS_LIMIT_N; k++)
        if (counts[k] > 0)
            printf("%s %s excludes %d of %d", n++ > 0 ? "," : "", ls_limit_name((ls_limit_kind)k), counts[k],
                   q->n);
    const ls_offer *o = &q->offers[nearest];
    printf("\nnearest       %s: %s, %s", predict_row_name(t, row_of(t, nearest), name, sizeof name),
           predict_money(o->cost.mid, a), predict_time(o->seconds.mid, b));
    if (o->bytes > 0) printf(", %s a rank", ls_text_bytes(o->bytes, c));
    printf("; that is %.3g times a limit\n", excess);
}

void predict_runs_print(const predict_table *t)
{
    const predict_runs *q = t->runs;

    printf("\n");
    print_question(t);
    print_table(t);
    printf("\n");
    if (q->cheapest < 0) {
        print_none(t);
    } else {
        print_choice(t, "cheapest", q->cheapest, true);
        print_choice(t, "fastest", q->fastest, false);
        if (q->wish.fails) print_checkpoints(t, q->cheapest);
        if (q->wish.fails && q->fastest != q->cheapest) print_checkpoints(t, q->fastest);
        print_front(t);
        print_paying(t);
    }
    print_at_most(t);
    print_batch_limit(t);
}

/* -- CSV --------------------------------------------------------------------------------------------------
 */

void predict_run_csv_head(void)
{
    printf(",batch_per_rank,memory_bytes,global_batch,run_steps,training_mid_s,run_lo_s,run_mid_s,run_hi_s,"
           "cost_lo,cost_mid,cost_hi,checkpoint_interval_s,within_limits,front");
}

void predict_run_csv(const predict_table *t, const predict_row *r)
{
    const predict_run *run = t->runs != NULL ? &t->runs->of[r - t->rows] : NULL;
    const ls_offer *o = run != NULL && run->offer >= 0 ? &t->runs->offers[run->offer] : NULL;

    printf(",%lld,", (long long)t->way[r->way].batch);
    if (r->memory > 0) printf("%zu", r->memory);
    if (o == NULL) {
        printf(",,,,,,,,,,,%s,", r->memory == 0 || t->runs != NULL ? "" : r->unfit ? "0" : "1");
        return;
    }
    printf(",%lld,%.9g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,", (long long)run->batch, run->steps.mid,
           run->training.mid, o->seconds.lo, o->seconds.mid, o->seconds.hi, o->cost.lo, o->cost.mid,
           o->cost.hi);
    if (t->runs->wish.fails && !run->ends_alone) printf("%.6g", run->daly_s);
    printf(",%d,%d", o->beyond == 0, (int)o->front);
}
