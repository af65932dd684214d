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

/* Whether training number i is the first of its batch and seed. */
static bool is_new_seed(const ls_trainings *t, int i)
{
    for (int k = 0; k < i; k++)
        if (t->of[k].batch == t->of[i].batch && t->of[k].seed == t->of[i].seed) return false;
    return true;
}

ls_seeds ls_trainings_seeds(const ls_trainings *t, int64_t batch)
{
    ls_seeds s = {0, 0};

    for (int i = 0; i < t->n; i++) {
        bool reached = true;
        if (t->of[i].batch != batch || !is_new_seed(t, i)) continue;
        for (int k = i; k < t->n; k++)
            if (t->of[k].batch == batch && t->of[k].seed == t->of[i].seed) reached &= t->of[k].reached;
        s.all++;
        s.reached += reached;
    }
    return s;
}

static bool all_reached(const ls_trainings *t, int64_t batch)
{
    const ls_seeds s = ls_trainings_seeds(t, batch);

    return s.all > 0 && s.reached == s.all;
}

int64_t ls_trainings_limit(const ls_trainings *t)
{
    int64_t most = 0;

    for (int i = 0; i < t->n; i++)
        if (t->of[i].batch > most && all_reached(t, t->of[i].batch)) most = t->of[i].batch;
    return most;
}

int64_t ls_trainings_next(const ls_trainings *t, int64_t batch)
{
    int64_t next = 0;

    for (int i = 0; i < t->n; i++)
        if (t->of[i].batch > batch && (next == 0 || t->of[i].batch < next)) next = t->of[i].batch;
    return next;
}

static int64_t next_smaller(const ls_trainings *t, int64_t batch)
{
    int64_t next = 0;

    for (int i = 0; i < t->n; i++)
        if (t->of[i].batch < batch && t->of[i].batch > next) next = t->of[i].batch;
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
