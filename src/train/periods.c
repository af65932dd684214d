/* periods.c: periods in steps, epochs, samples and minutes. */
#include "train/periods.h"

#include <math.h>

/* Whether floor(x / period) grew. */
static bool passed(double period, double before, double now)
{
    /* A hundred-thousandth of a period forgives rounding of periods such as 0.1 epochs. */
    return floor(now / period + 1e-5) > floor(before / period + 1e-5);
}

bool ls_period_due(ls_period p, int64_t epoch_samples, ls_moment before, ls_moment now)
{
    switch (p.unit) {
    case LS_PERIOD_STEPS: return passed(p.value, (double)before.step, (double)now.step);
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
    case LS_PERIOD_STEPS: return (double)(now.step - begun.step) >= p.value;
    case LS_PERIOD_EPOCHS: return samples >= p.value * (double)epoch_samples - 1e-5;
    case LS_PERIOD_SAMPLES: return samples >= p.value;
    case LS_PERIOD_MINUTES: return now.minutes - begun.minutes >= p.value;
    default: return false;
    }
}

int64_t ls_period_steps(ls_period p, int64_t epoch_samples, int64_t batch)
{
    const int64_t per_epoch =
        (epoch_samples + batch - 1) / batch; /* the last batch of an epoch may be short */

    switch (p.unit) {
    case LS_PERIOD_STEPS: return (int64_t)ceil(p.value);
    case LS_PERIOD_EPOCHS: return (int64_t)ceil(p.value * (double)per_epoch - 1e-9);
    case LS_PERIOD_SAMPLES: return (int64_t)ceil(p.value / (double)batch);
    case LS_PERIOD_MINUTES: return -1;
    default: return 0;
    }
}
