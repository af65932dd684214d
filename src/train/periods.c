/* periods.c: periods in steps, epochs, samples and minutes. */
#include "train/periods.h"

#include <math.h>

int64_t ls_ruler_epoch_steps(const ls_ruler *r)
{
    return (r->epoch_samples + r->step_samples - 1) / r->step_samples;
}

double ls_ruler_steps(const ls_ruler *r, int64_t samples)
{
    const int64_t epochs = samples / r->epoch_samples, rest = samples % r->epoch_samples;

    return (double)(epochs * ls_ruler_epoch_steps(r)) + (double)rest / (double)r->step_samples;
}

int64_t ls_ruler_samples(const ls_ruler *r, double steps)
{
    const double epochs = floor(steps / (double)ls_ruler_epoch_steps(r));
    const double rest = (steps - epochs * (double)ls_ruler_epoch_steps(r)) * (double)r->step_samples;

    return (int64_t)epochs * r->epoch_samples + (int64_t)fmin(ceil(rest - 1e-6), (double)r->epoch_samples);
}

int64_t ls_ruler_updates(const ls_ruler *r, int64_t from, int64_t to, int64_t update)
{
    const int64_t whole = (r->epoch_samples + update - 1) / update;
    int64_t n = 0;

    if (from >= to) return 0;
    if (from / r->epoch_samples < to / r->epoch_samples) {
        n = (r->epoch_samples - from % r->epoch_samples + update - 1) / update;
        from = (from / r->epoch_samples + 1) * r->epoch_samples;
        n += (to - from) / r->epoch_samples * whole;
        from = to - to % r->epoch_samples;
    }
    return n + (to - from + update - 1) / update;
}

/* Whether floor(x / period) grew. */
static bool passed(double period, double before, double now)
{
    /* A hundred-thousandth of a period forgives rounding of periods such as 0.1 epochs. */
    return floor(now / period + 1e-5) > floor(before / period + 1e-5);
}

bool ls_period_due(ls_period p, int64_t epoch_samples, ls_moment before, ls_moment now)
{
    switch (p.unit) {
    case LS_PERIOD_STEPS: return passed(p.value, before.steps, now.steps);
    case LS_PERIOD_EPOCHS:
        return passed(p.value * (double)epoch_samples, (double)before.samples, (double)now.samples);
    case LS_PERIOD_SAMPLES: return passed(p.value, (double)before.samples, (double)now.samples);
    case LS_PERIOD_MINUTES: return now.minutes - before.minutes >= p.value;
    default: return false;
    }
}

bool ls_period_over(ls_period p, int64_t epoch_samples, ls_moment begun, ls_moment now)
{
    const double samples = (double)(now.samples - begun.samples);

    switch (p.unit) {
    case LS_PERIOD_STEPS: return now.steps - begun.steps >= p.value - 1e-5;
    case LS_PERIOD_EPOCHS: return samples >= p.value * (double)epoch_samples - 1e-5;
    case LS_PERIOD_SAMPLES: return samples >= p.value;
    case LS_PERIOD_MINUTES: return now.minutes - begun.minutes >= p.value;
    default: return false;
    }
}

/* What fits into no integer is not converted to one. */
static int64_t whole(double steps)
{
    return steps < LS_PERIOD_MOST ? (int64_t)ceil(steps) : (int64_t)LS_PERIOD_MOST;
}

int64_t ls_period_steps(ls_period p, const ls_ruler *r)
{
    switch (p.unit) {
    case LS_PERIOD_STEPS: return whole(p.value);
    case LS_PERIOD_EPOCHS: return whole(p.value * (double)ls_ruler_epoch_steps(r) - 1e-9);
    case LS_PERIOD_SAMPLES: return whole(p.value / (double)r->step_samples);
    case LS_PERIOD_MINUTES: return -1;
    default: return 0;
    }
}
