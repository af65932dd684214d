/* offers.c: limits, the Pareto front, and where adding ranks stops paying. */
#include "predict/offers.h"

#include <math.h>

#define HOUR_S 3600.0

/* -- bands ------------------------------------------------------------------------------------------------
 */

ls_interval ls_interval_times(ls_interval a, ls_interval b)
{
    const double mid = a.mid * b.mid;

    return (ls_interval){mid * exp(-hypot(log(a.mid / a.lo), log(b.mid / b.lo))), mid,
                         mid * exp(hypot(log(a.hi / a.mid), log(b.hi / b.mid)))};
}

ls_interval ls_interval_scaled(ls_interval a, double factor)
{
    return (ls_interval){a.lo * factor, a.mid * factor, a.hi * factor};
}

bool ls_interval_overlaps(ls_interval a, ls_interval b)
{
    return a.lo <= b.hi && b.lo <= a.hi;
}

/* -- limits -----------------------------------------------------------------------------------------------
 */

const char *ls_limit_name(ls_limit_kind k)
{
    static const char *const names[LS_LIMIT_N] = {"--budget", "--deadline", "--memory"};

    return names[k];
}

static ls_interval figure_of(const ls_offer *o, int kind)
{
    if (kind == LS_LIMIT_MEMORY) return (ls_interval){o->bytes, o->bytes, o->bytes};
    return kind == LS_LIMIT_BUDGET ? o->cost : o->seconds;
}

void ls_offer_price(ls_offer *o, double price)
{
    o->cost = ls_interval_scaled(o->seconds, o->nodes * price / HOUR_S);
}

/* Whether `a` makes `b` not worth looking at. */
static bool is_better(const ls_offer *a, const ls_offer *b)
{
    return a->seconds.mid <= b->seconds.mid && a->cost.mid <= b->cost.mid &&
           (a->seconds.mid < b->seconds.mid || a->cost.mid < b->cost.mid);
}

void ls_offers_judge(ls_offer *o, int n, const ls_limits *limits)
{
    for (int i = 0; i < n; i++) {
        o[i].beyond = o[i].may = 0;
        for (int k = 0; k < LS_LIMIT_N; k++) {
            const ls_interval f = figure_of(&o[i], k);
            if (limits->most[k] <= 0) continue;
            if (!(f.mid <= limits->most[k]))
                o[i].beyond |= 1u << k;
            else if (!(f.hi <= limits->most[k]))
                o[i].may |= 1u << k;
        }
    }
    for (int i = 0; i < n; i++) {
        o[i].front = o[i].beyond == 0;
        for (int k = 0; k < n && o[i].front; k++) o[i].front = o[k].beyond != 0 || !is_better(&o[k], &o[i]);
    }
}

/* -- choices ----------------------------------------------------------------------------------------------
 */

static double cost_of(const ls_offer *o)
{
    return o->cost.mid;
}

static double time_of(const ls_offer *o)
{
    return o->seconds.mid;
}

/* By the first figure, of equals by the second. */
static int least(const ls_offer *o, int n, double (*first)(const ls_offer *),
                 double (*second)(const ls_offer *))
{
    int best = -1;

    for (int i = 0; i < n; i++) {
        if (o[i].beyond != 0) continue;
        if (best < 0 || first(&o[i]) < first(&o[best]) ||
            (first(&o[i]) == first(&o[best]) && second(&o[i]) < second(&o[best])))
            best = i;
    }
    return best;
}

int ls_offers_cheapest(const ls_offer *o, int n)
{
    return least(o, n, cost_of, time_of);
}

int ls_offers_fastest(const ls_offer *o, int n)
{
    return least(o, n, time_of, cost_of);
}

int ls_offers_nearest(const ls_offer *o, int n, const ls_limits *limits, double *excess)
{
    int best = -1;

    for (int i = 0; i < n; i++) {
        double worst = 0;
        for (int k = 0; k < LS_LIMIT_N; k++)
            if (limits->most[k] > 0) worst = fmax(worst, figure_of(&o[i], k).mid / limits->most[k]);
        if (o[i].beyond == 0 || (best >= 0 && worst >= *excess)) continue;
        best = i;
        *excess = worst;
    }
    return best;
}

bool ls_offers_pay(const ls_offer *o, int n, int line, ls_paying *out)
{
    int count = 0;

    *out = (ls_paying){-1, -1, 1, 1};
    for (int i = 0; i < n && out->next < 0; i++) {
        if (o[i].line != line || (o[i].beyond >> LS_LIMIT_MEMORY & 1) != 0) continue;
        count++;
        if (out->last >= 0) {
            const ls_offer *from = &o[out->last];
            const double time = o[i].seconds.mid / from->seconds.mid;
            const double doublings = log2((double)o[i].nodes / from->nodes);
            if (doublings > 0 ? time > pow(LS_DOUBLING_PAYS, doublings) : time >= 1) {
                out->next = i;
                out->seconds = time;
                out->cost = o[i].cost.mid / from->cost.mid;
                break;
            }
        }
        out->last = i;
    }
    return count > 1;
}
