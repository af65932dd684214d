/* failures.c: the expected time of a run whose machines fail: J. T. Daly, A higher order estimate of the
 * optimum checkpoint interval for restart dumps, Future Generation Computer Systems 22 (2006).
 *
 * Between two checkpoints lies a segment of w seconds, training and the checkpoint that ends it.  It is tried
 * until no failure falls into it; so is each restart.  With a mean time M between failures, tries of w
 * seconds that fail are K of them, E[K] = e^(w/M) - 1, each cut after X seconds, exponential below w. */
#include "predict/failures.h"

#include <math.h>
#include <stdbool.h>

double ls_failures_young(const ls_failures *f)
{
    return sqrt(2 * f->checkpoint_s * f->mtbf_s);
}

/* Beyond a checkpoint of twice the time between failures the series means nothing, and M is Daly's choice. */
double ls_failures_daly(const ls_failures *f)
{
    const double x = f->checkpoint_s / (2 * f->mtbf_s);

    if (x >= 1) return f->mtbf_s;
    return ls_failures_young(f) * (1 + sqrt(x) / 3 + x / 9) - f->checkpoint_s;
}

/* A mean and a variance. */
typedef struct moments {
    double mean, variance;
} moments;

/* The time of a try of w seconds that failed. */
static moments cut_of(double w, double mtbf)
{
    const double x = w / mtbf;
    double mean, square;

    if (x < 1e-3) return (moments){w * (0.5 - x / 12), w * w / 12}; /* where the terms below cancel */
    mean = mtbf - w / expm1(x);
    square = 2 * mtbf * mtbf - (w * w + 2 * w * mtbf) / expm1(x);
    return (moments){mean, fmax(0, square - mean * mean)};
}

/* What is done until a try of w seconds succeeds; after each that fails comes `between`. */
static moments until_done(double w, double mtbf, moments between)
{
    const double tries = expm1(w / mtbf); /* that fail; geometric, so that their variance is */
    const double of_tries = tries * (1 + tries);
    const moments cut = cut_of(w, mtbf);
    const double each = cut.mean + between.mean;

    return (moments){w + tries * each, tries * (cut.variance + between.variance) + of_tries * each * each};
}

ls_failures_cost ls_failures_expect(const ls_failures *f, double training_s, double interval_s)
{
    const moments restart = until_done(f->restart_s, f->mtbf_s, (moments){0, 0});
    const double whole = floor(training_s / interval_s * (1 + 1e-12)); /* segments */
    const double rest = fmax(0, training_s - whole * interval_s);
    const bool short_one = rest > 1e-9 * training_s;
    const moments segment = until_done(interval_s + f->checkpoint_s, f->mtbf_s, restart);
    const moments last = until_done(rest + f->checkpoint_s, f->mtbf_s, restart);
    ls_failures_cost c = {.checkpoints_s = (whole + short_one) * f->checkpoint_s};
    double variance = 0;

    if (whole > 0) {
        c.seconds += whole * segment.mean;
        variance += whole * segment.variance;
    }
    if (short_one) {
        c.seconds += last.mean;
        variance += last.variance;
    }
    if (!isfinite(c.seconds) || !isfinite(variance)) c.seconds = variance = INFINITY;
    c.scatter_s = sqrt(variance);
    c.lost_s = fmax(0, c.seconds - training_s - c.checkpoints_s);
    c.failures = c.seconds / f->mtbf_s;
    return c;
}
