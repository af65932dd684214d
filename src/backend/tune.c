/* tune.c: the stopwatch, and what it decides about a choice. */
#include "backend/tune.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "backend/choices.h"
#include "base/clock.h"
#include "base/log.h"

struct lsi_tuner {
    bool off;
    lsi_choices choices;
    unsigned passing; /* how often a choice was given out that is for this process alone */
};

ls_status lsi_tuner_create(lsi_tuner **out, const char *device, const char *fingerprint, ls_err *err)
{
    const char *tune = getenv("LOCKSTEP_TUNE");
    lsi_tuner *t = ls_alloc(LS_MEM_PLAN, sizeof *t);

    *out = t;
    if (t == NULL) return ls_fail(err, LS_NOMEM, "no memory for choices of kernels");
    t->off = tune != NULL && strcmp(tune, "off") == 0;
    if (!t->off) lsi_choices_open(&t->choices, device, fingerprint);
    return LS_OK;
}

void lsi_tuner_destroy(lsi_tuner *t)
{
    if (t == NULL) return;
    lsi_choices_close(&t->choices);
    ls_free(t);
}

void lsi_tuner_parse(lsi_tuner *t, const char *text, size_t n)
{
    lsi_choices_parse(&t->choices, text, n);
}

/* -- measuring --------------------------------------------------------------------------------------------
 */

#define MAX_CANDIDATES 16
#define MIN_ROUNDS     6
#define MAX_ROUNDS     60
#define CLEAR_LEAD     1.05
#define ENOUGH_SECONDS 0.06 /* for one candidate; slow kernels need few rounds, fast ones get many */

#define LONG_SECONDS 2.0 /* beyond, no further round: what takes so long is told apart at once */

#define CANNOT 1e30

/* Nobody wants to know any more. */
static bool is_ended(const lsi_candidates *c)
{
    return c->dev != NULL && c->dev->stop != NULL && *c->dev->stop != 0;
}

/* The times of candidates. */
typedef struct heat {
    const lsi_candidates *c;
    double best[MAX_CANDIDATES];
    const char *missed; /* one that could not be run now; NULL: there is none */
} heat;

/* Seconds of one run of candidate i; CANNOT when it cannot be run. */
static double time_once(heat *h, int i)
{
    const lsi_candidates *c = h->c;
    double start = ls_clock_seconds();
    lsi_outcome o;

    if (is_ended(c)) return CANNOT;
    if (c->dev != NULL && c->dev->progress != NULL) c->dev->progress(c->dev->progress_arg, -1, -1);
    o = c->run(c->ctx, i);
    if (o == LSI_CANNOT_NOW) h->missed = c->names[i];
    return o == LSI_RAN ? ls_clock_seconds() - start : CANNOT;
}

/* Candidates take turns, so that whatever else the machine does hits all of them alike, and the best time of
 * each counts: noise only ever adds.  One that is far behind is left out of later rounds.  -1: none could be
 * run. */
static int fastest(heat *h)
{
    const lsi_candidates *c = h->c;
    double *best = h->best, spent = 0;
    int n = c->n < MAX_CANDIDATES ? c->n : MAX_CANDIDATES, winner = 0;

    /* The first run of each touches memory for the first time, of which the first candidate gets the most. */
    for (int i = 0; i < n; i++) best[i] = time_once(h, i);
    for (int i = 0; i < n; i++)
        if (best[i] < CANNOT) best[i] = time_once(h, i);
    for (int i = 0; i < n; i++)
        if (best[i] < best[winner]) winner = i;
    if (best[winner] >= CANNOT) return -1;
    for (int round = 0; round < MAX_ROUNDS; round++) {
        double lead;
        for (int i = 0; i < n; i++)
            if (best[i] < best[winner]) winner = i;
        lead = best[winner];
        for (int i = 0; i < n; i++) {
            double t;
            if (best[i] > (round < 5 ? 3.0 : 1.4) * lead) continue;
            t = time_once(h, i);
            if (t < best[i]) best[i] = t;
            if (i == winner) spent += t;
        }
        if (spent > (round >= MIN_ROUNDS ? ENOUGH_SECONDS : LONG_SECONDS)) break;
    }
    for (int i = 0; i < n; i++)
        if (best[i] < best[winner]) winner = i;
    for (int i = 0; i < n; i++)
        ls_log(LS_LOG_DEBUG, "tune: %s: %s %.4g ms", c->problem, c->names[i], best[i] * 1e3);
    /* The list is ordered by best guess; a small lead, measured on warm caches, does not overrule it. */
    for (int i = 0; i < n; i++)
        if (best[i] <= CLEAR_LEAD * best[winner]) return i;
    return winner;
}

/* -- choosing ---------------------------------------------------------------------------------------------
 */

/* The candidate that was chosen before; -1: none.  From then on this process runs with it. */
static int known(lsi_tuner *t, const lsi_candidates *c)
{
    lsi_choice *e = lsi_choices_find(&t->choices, c->problem);

    for (int i = 0; e != NULL && i < c->n; i++) {
        if (strcmp(c->names[i], e->name) != 0) continue;
        e->used = true;
        if (e->passing) t->passing++;
        return i;
    }
    return -1;
}

/* For as long as this process lives. */
static int take_for_now(lsi_tuner *t, const lsi_candidates *c, int winner, const char *missed)
{
    ls_log(t->passing == 0 ? LS_LOG_WARN : LS_LOG_INFO,
           "the kernel \"%s\" for %s is not remembered, and another run may choose another and differ in the "
           "last "
           "digits: \"%s\" could not be tried now, for want of memory or of a compiler",
           c->names[winner], c->problem, missed);
    t->passing++;
    lsi_choices_put(&t->choices, c->problem, c->names[winner], true);
    return winner;
}

/* What another process has chosen meanwhile is taken over: it may run with that already, and this one does
 * not yet run with its own. */
static int agree(lsi_tuner *t, const lsi_candidates *c, int winner)
{
    const int fd = lsi_choices_lock(&t->choices), other = known(t, c);

    if (other < 0) lsi_choices_put(&t->choices, c->problem, c->names[winner], false);
    lsi_choices_unlock(&t->choices, fd);
    return other < 0 ? winner : other;
}

/* Candidates may have been chosen among others themselves: if such a choice is for now, so is this one. */
static int measure(lsi_tuner *t, const lsi_candidates *c)
{
    const unsigned before = t->passing;
    heat h = {.c = c};
    const int winner = fastest(&h);

    if (is_ended(c)) return c->guess; /* of half a measurement nothing is remembered */
    if (h.missed == NULL && t->passing != before) h.missed = "what a candidate is made of";
    if (winner >= 0) return h.missed != NULL ? take_for_now(t, c, winner, h.missed) : agree(t, c, winner);
    if (h.missed != NULL) t->passing++;
    return c->guess;
}

int lsi_tune(lsi_tuner *t, const lsi_candidates *c)
{
    int chosen;

    if (t->off || c->n < 2) return c->guess;
    chosen = known(t, c);
    if (chosen < 0) {
        lsi_choices_look(&t->choices);
        chosen = known(t, c);
    }
    if (chosen >= 0) return chosen;
    if (c->dev != NULL && c->dev->untimed) {
        atomic_fetch_add(&((ls_device *)c->dev)->guessed, 1);
        return c->guess;
    }
    return measure(t, c);
}

bool lsi_tuned(const lsi_tuner *t, const char *problem)
{
    const lsi_choice *e = t->off ? NULL : lsi_choices_find(&t->choices, problem);

    return e != NULL && e->used;
}

/* -- tensors for trials
 * ---------------------------------------------------------------------------------------- */

#define RING_COPIES 3
#define RING_FLOATS (24 << 20) /* beyond, one copy is as cold as it gets */

int lsi_ring_copies(int64_t floats)
{
    for (int copies = RING_COPIES; copies > 1; copies--)
        if (floats * (copies - 1) < RING_FLOATS) return copies;
    return 1;
}

bool lsi_ring_make(lsi_ring *r, int64_t count, int copies)
{
    const int64_t all = count * copies;

    ls_free(r->base); /* of a try that had no memory for the rest */
    *r = (lsi_ring){ls_alloc(LS_MEM_TUNE, (size_t)all * sizeof(float)), count, copies};
    /* Anything but denormals; the pattern is irrelevant to the time. */
    for (int64_t i = 0; r->base != NULL && i < all; i++) r->base[i] = (float)(i % 13) * 0.125f - 0.75f;
    return r->base != NULL;
}

float *lsi_ring_at(const lsi_ring *r, int turn)
{
    return r->base + turn % r->copies * r->count;
}

void lsi_ring_free(lsi_ring *r)
{
    ls_free(r->base);
}
