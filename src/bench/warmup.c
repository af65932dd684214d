/* warmup.c: the rule that ends a warm-up. */
#include "bench/warmup.h"

#include "base/stats.h"

void ls_warmup_note(ls_warmup *w, double step_s, double now)
{
    double median;

    w->steps++;
    w->kept[w->n++ % LS_WARMUP_KEPT] = step_s;
    if (now - w->slice < LS_WARMUP_SLICE) return;
    median = ls_spread_of(w->kept, (size_t)(w->n < LS_WARMUP_KEPT ? w->n : LS_WARMUP_KEPT)).p50;
    w->steady = w->median > 0 && median >= (1 - LS_WARMUP_FALL) * w->median;
    w->median = median;
    w->slice = now;
    w->n = 0;
}

bool ls_warmup_enough(const ls_warmup *w, double now)
{
    const double seconds = now - w->began;

    if (w->steps + 1 < LS_WARMUP_STEPS || seconds < LS_WARMUP_SECONDS) return false;
    return w->steady || seconds >= LS_WARMUP_MOST;
}
