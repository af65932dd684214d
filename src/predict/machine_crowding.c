/* machine_crowding.c: how ranks of one machine slow one another, and how their steps spread. */
#include <math.h>

#include "predict/machine.h"

static bool spreads(const double *percentiles)
{
    return percentiles[LS_JITTER_N / 2] > 0 && (percentiles[0] < 1 || percentiles[LS_JITTER_N - 1] > 1);
}

static const double *nearest(const ls_machine *m, bool crowded, double step_s)
{
    const double *best = NULL;
    double least = INFINITY;

    for (int32_t i = 0; i < m->n_jitter; i++) {
        const double far = fabs(log(m->jitter[i].step_s / fmax(step_s, 1e-9)));
        const double *of = crowded ? m->jitter[i].crowded : m->jitter[i].alone;
        if (far >= least || !spreads(of)) continue;
        least = far;
        best = of;
    }
    return best;
}

/* Among others a step is slow as a rule, which crowding says, and no longer now and then. */
const double *ls_machine_jitter(const ls_machine *m, int32_t ranks, double step_s)
{
    const double *crowded = ranks > 1 ? nearest(m, true, step_s) : NULL;

    return crowded != NULL ? crowded : nearest(m, false, step_s);
}

double ls_machine_uneven(const ls_machine *m, int32_t i, int32_t ranks)
{
    double x;
    int32_t at;

    if (m->n_uneven == 0 || ranks < 2) return 1;
    /* Rank i of as many as were measured is the i-th of them; of fewer, they are spread over these. */
    x = (i + 0.5) / ranks * m->n_uneven - 0.5;
    if (x <= 0) return m->uneven[0];
    if (x >= m->n_uneven - 1) return m->uneven[m->n_uneven - 1];
    at = (int32_t)x;
    return m->uneven[at] + (m->uneven[at + 1] - m->uneven[at]) * (x - at);
}

/* Of fewer ranks the slowest is slower by less, and errs by as much less. */
double ls_machine_uneven_error(const ls_machine *m, int32_t ranks)
{
    const double all = m->n_uneven > 0 ? log(m->uneven[m->n_uneven - 1]) : 0;
    const double of = ls_machine_uneven(m, ranks - 1, ranks);

    if (ranks < 2 || m->n_uneven == 0) return 0;
    return m->uneven_error * (all > 0 && of > 0 ? fmin(fmax(log(of) / all, 0), 1) : 1);
}

/* Beyond what was measured ranks share cores: with fewer cores than threads they take turns. */
static double by_cores(const ls_machine *m, int32_t ranks, int32_t than, double factor)
{
    const double cores = m->cores > 0 ? (double)m->cores : (double)INFINITY;
    const double wanted = (double)ranks * m->threads, had = (double)than * m->threads;

    return factor * fmax(1, wanted / cores) / fmax(1, had / cores);
}

/* Of ranks as many as entry `first` has, which all up to *end have: between batches by their logarithm. */
static ls_crowding level(const ls_machine *m, int32_t first, double batch, int32_t *end)
{
    const ls_crowding *c = m->crowding;
    ls_crowding out = c[first];
    int32_t i = first;

    while (i + 1 < m->n_crowding && c[i + 1].ranks == c[first].ranks) {
        const double lo = c[i].batch, hi = c[i + 1].batch;
        i++;
        if (batch >= hi)
            out = c[i];
        else if (batch > lo && lo > 0)
            out.factor = c[i - 1].factor + (c[i].factor - c[i - 1].factor) * log(batch / lo) / log(hi / lo);
    }
    *end = i + 1;
    return out;
}

double ls_machine_crowded(const ls_machine *m, int32_t ranks, double batch)
{
    ls_crowding earlier = {1, 0, 1}, before = earlier;
    bool measured = false;

    for (int32_t i = 0; i < m->n_crowding;) {
        const ls_crowding c = level(m, i, batch, &i);
        if (c.ranks == ranks) return c.factor;
        if (c.ranks > ranks && before.ranks < ranks)
            return before.factor +
                   (c.factor - before.factor) * (ranks - before.ranks) / (double)(c.ranks - before.ranks);
        if (c.ranks > ranks) continue;
        earlier = before;
        before = c;
        measured = true;
    }
    if (measured && before.ranks >= ranks) return before.factor;
    /* Memory and caches are shared by more, too: the last two measured counts say how much each doubling
     * adds, as long as there are cores. */
    if (measured) {
        const double doublings = log2((double)before.ranks / fmax(1, earlier.ranks));
        const double each = doublings > 0 ? fmax(0, before.factor - earlier.factor) / doublings : 0;
        const double more = before.factor + each * log2((double)ranks / before.ranks);
        return fmax(more, by_cores(m, ranks, before.ranks, before.factor));
    }
    return by_cores(m, ranks, 1, 1);
}
