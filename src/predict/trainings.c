/* trainings.c: how many updates an accuracy takes at a batch, from trainings that were measured. */
#include "predict/trainings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "base/text.h"

void ls_trainings_release(ls_trainings *t)
{
    ls_free(t->of);
    *t = (ls_trainings){0};
}

ls_status ls_trainings_add(ls_trainings *t, const ls_training *one, ls_err *err)
{
    if (t->n == LS_TRAININGS_MAX)
        return ls_fail(err, LS_INVALID, "more than %d trainings; leave some out", (int)LS_TRAININGS_MAX);
    if (!LS_GROW(LS_MEM_CLI, t->of, t->n + 1, t->cap)) return ls_fail(err, LS_NOMEM, "no memory");
    t->of[t->n++] = *one;
    return LS_OK;
}

void ls_trainings_name(ls_trainings *t, const char *path)
{
    const size_t at = strlen(t->from);

    ls_text_fit(t->from + at, sizeof t->from - at, "%s%s", at > 0 ? ", " : "", path);
}

/* -- by batch ---------------------------------------------------------------------------------------------
 */

/* A training of one batch. */
typedef struct outcome {
    int64_t seed;
    bool reached;
} outcome;

/* By seed, and of one seed those that failed first. */
static int by_seed(const void *a, const void *b)
{
    const outcome *x = a, *y = b;

    if (x->seed != y->seed) return x->seed < y->seed ? -1 : 1;
    return x->reached - y->reached;
}

ls_seeds ls_trainings_seeds(const ls_trainings *t, int64_t batch)
{
    outcome of[LS_TRAININGS_MAX];
    ls_seeds s = {0, 0};
    int n = 0;

    for (int i = 0; i < t->n; i++)
        if (t->of[i].batch == batch) of[n++] = (outcome){t->of[i].seed, t->of[i].reached};
    qsort(of, (size_t)n, sizeof *of, by_seed);
    for (int i = 0; i < n; i++) {
        if (i > 0 && of[i].seed == of[i - 1].seed) continue;
        s.all++;
        s.reached += of[i].reached;
    }
    return s;
}

static bool all_reached(const ls_trainings *t, int64_t batch)
{
    const ls_seeds s = ls_trainings_seeds(t, batch);

    return s.all > 0 && s.reached == s.all;
}

static int64_t next_smaller(const ls_trainings *t, int64_t batch)
{
    int64_t next = 0;

    for (int i = 0; i < t->n; i++)
        if (t->of[i].batch < batch && t->of[i].batch > next) next = t->of[i].batch;
    return next;
}

int64_t ls_trainings_limit(const ls_trainings *t)
{
    int64_t batch = next_smaller(t, INT64_MAX);

    while (batch > 0 && !all_reached(t, batch)) batch = next_smaller(t, batch);
    return batch;
}

int64_t ls_trainings_next(const ls_trainings *t, int64_t batch)
{
    int64_t next = 0;

    for (int i = 0; i < t->n; i++)
        if (t->of[i].batch > batch && (next == 0 || t->of[i].batch < next)) next = t->of[i].batch;
    return next;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* What all trainings of a batch that was reached took. */
static ls_interval steps_at(const ls_trainings *t, int64_t batch, bool *at_most)
{
    double steps[LS_TRAININGS_MAX];
    int n = 0;

    for (int i = 0; i < t->n; i++) {
        if (t->of[i].batch != batch) continue;
        steps[n++] = (double)t->of[i].steps;
        *at_most |= t->of[i].at_most;
    }
    qsort(steps, (size_t)n, sizeof *steps, ascending);
    return (ls_interval){steps[0], (steps[(n - 1) / 2] + steps[n / 2]) / 2, steps[n - 1]};
}

/* On a line in the logarithms: twice the batch takes as much less everywhere between two neighbours. */
static double between(double a, double b, double share)
{
    return exp((1 - share) * log(a) + share * log(b));
}

static void interpolate(const ls_trainings *t, int64_t batch, ls_reached *r)
{
    const ls_interval a = steps_at(t, r->below, &r->at_most), b = steps_at(t, r->above, &r->at_most);
    const double share = log((double)batch / (double)r->below) / log((double)r->above / (double)r->below);

    r->how = LS_REACH_INTERPOLATED;
    r->steps =
        (ls_interval){between(a.lo, b.lo, share), between(a.mid, b.mid, share), between(a.hi, b.hi, share)};
}

/* "batch 16,384: reached by 0 of 3 seeds". */
static void say_seeds(const ls_trainings *t, int64_t batch, char *buf, size_t size)
{
    const ls_seeds s = ls_trainings_seeds(t, batch);
    char number[32];

    ls_text_fit(buf, size, "batch %s: reached by %d of %d seed%s", ls_text_count(batch, number), s.reached,
                s.all, s.all == 1 ? "" : "s");
}

/* Of a batch that was not measured: its neighbours, and which of them stands in the way. */
static void say_neighbours(const ls_trainings *t, int64_t batch, ls_reached *r)
{
    char number[32], other[96];

    ls_text_count(batch, number);
    if (r->below == 0) {
        ls_text_fit(r->why, sizeof r->why, "batch %s: smaller than any in %s; the smallest is %s", number,
                    t->from, ls_text_count(r->above, other));
    } else if (!all_reached(t, r->below) || r->above > 0) {
        say_seeds(t, all_reached(t, r->below) ? r->above : r->below, other, sizeof other);
        ls_text_fit(r->why, sizeof r->why, "batch %s: not measured, and of its neighbours in %s %s", number,
                    t->from, other);
    } else {
        ls_text_fit(r->why, sizeof r->why, "batch %s: larger than any in %s; the largest is %s", number,
                    t->from, ls_text_count(r->below, other));
    }
}

void ls_trainings_ask(const ls_trainings *t, int64_t batch, ls_reached *r)
{
    const ls_seeds s = ls_trainings_seeds(t, batch);
    char text[96];

    *r = (ls_reached){.seeds = s.all};
    if (s.all > 0 && s.reached == s.all) {
        r->how = LS_REACH_MEASURED;
        r->steps = steps_at(t, batch, &r->at_most);
        return;
    }
    if (s.all > 0) {
        say_seeds(t, batch, text, sizeof text);
        ls_text_fit(r->why, sizeof r->why, "%s in %s", text, t->from);
        return;
    }
    r->below = next_smaller(t, batch);
    r->above = ls_trainings_next(t, batch);
    if (r->below > 0 && r->above > 0 && all_reached(t, r->below) && all_reached(t, r->above))
        interpolate(t, batch, r);
    else
        say_neighbours(t, batch, r);
}
