/* predict_run.c: from the step of every row to its run: how many steps, what they take and cost, what
 * failures add, and which rows are worth choosing. */
#include "predict_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "study/study.h"
#include "study/trained.h"
#include "train/alternatives.h"
#include "train/evaluate.h"
#include "train/periods.h"

/* Beyond that many times the training a job does not get on, whatever the arithmetic says. */
#define HOPELESS 1000.0

/* -- what is known before anything is compiled ------------------------------------------------------------
 */

static bool needs_samples(const predict_wish *w)
{
    return w->length.unit == LS_PERIOD_EPOCHS || w->length.unit == LS_PERIOD_NONE;
}

/* Of the experiment's training set, where that is here.  Those who do not need it to count steps learn by it
 * of updates that take more than there are. */
static ls_status count_samples(predict_wish *w, const cli_experiment *x, ls_err *err)
{
    ls_needs needs;
    ls_dataset *data = NULL;
    ls_err why = {0};
    ls_status st;

    if (w->samples > 0) return LS_OK;
    st = ls_needs_find(&needs, x->trial, x->cfg, &why);
    if (st == LS_OK) st = ls_train_data(&x->experiment, &needs, LS_SPLIT_TRAIN, &data, &why);
    if (st == LS_OK) w->samples = ls_dataset_count(data);
    ls_dataset_close(data);
    ls_needs_release(&needs);
    if (st == LS_OK || !needs_samples(w)) return LS_OK;
    return ls_fail(err, LS_INVALID,
                   "how many samples has an epoch?  Add --samples N: the data set is not here (%s)",
                   why.text);
}

/* More is nothing that a count of samples could say. */
static ls_status check_length(const predict_wish *w, ls_err *err)
{
    const bool epochs = w->length.unit == LS_PERIOD_EPOCHS;
    const double all = epochs ? w->length.value * (double)w->samples : w->length.value;
    char most[32];

    if (all <= LS_PERIOD_MOST) return LS_OK;
    return ls_fail(err, LS_INVALID, "--until %s: that is %.3g %s; expected at most %s", w->until, all,
                   w->length.unit == LS_PERIOD_STEPS ? "steps" : "samples",
                   ls_text_count((int64_t)LS_PERIOD_MOST, most));
}

static ls_status read_studies(predict_runs *q, const cli_experiment *x, const cli_args *args, ls_err *err)
{
    ls_status st = LS_OK;

    q->trainings = (ls_trainings){.target = q->wish.accuracy, .samples = q->wish.samples};
    for (int i = 0; i < args->study.n; i++) {
        const char *word = args->study.of[i];
        if (ls_study_is_one(word))
            LS_TRY(ls_study_trained(&q->trainings, word, x->name, err));
        else
            LS_TRY(ls_trainings_open(&q->trainings, word, err));
    }
out:
    return st;
}

ls_status predict_runs_open(predict_runs **out, const predict_wish *w, const cli_experiment *x,
                            const cli_args *args, ls_err *err)
{
    predict_runs *q = ls_alloc(LS_MEM_CLI, sizeof *q);
    ls_status st = LS_OK;

    *out = q;
    if (q == NULL) return ls_fail(err, LS_NOMEM, "no memory");
    *q = (predict_runs){.wish = *w, .cheapest = -1, .fastest = -1};
    LS_TRY(count_samples(&q->wish, x, err));
    LS_TRY(check_length(&q->wish, err));
    LS_TRY(read_studies(q, x, args, err));
out:
    return st;
}

void predict_runs_close(predict_runs *q)
{
    if (q == NULL) return;
    ls_trainings_release(&q->trainings);
    ls_free(q->of);
    ls_free(q->offers);
    ls_free(q);
}

/* -- one run ----------------------------------------------------------------------------------------------
 */

static ls_interval exactly(double x)
{
    return (ls_interval){x, x, x};
}

/* Updates, as `train` counts them. */
static bool count_steps(predict_run *r, const predict_runs *q)
{
    const predict_wish *w = &q->wish;
    const ls_ruler ruler = {.epoch_samples = w->samples > 0 ? w->samples : 1, .step_samples = r->batch};
    char batch[32], samples[32];

    if (w->samples > 0 && r->batch > w->samples) {
        ls_text_fit(r->why, sizeof r->why, "an update of %s samples, and an epoch has %s",
                    ls_text_count(r->batch, batch), ls_text_count(w->samples, samples));
        return false;
    }
    if (w->length.unit != LS_PERIOD_NONE) {
        r->steps = exactly((double)ls_period_steps(w->length, &ruler));
        return true;
    }
    ls_trainings_ask(&q->trainings, r->batch, &r->reached);
    r->steps = r->reached.steps;
    if (r->reached.how == LS_REACH_UNKNOWN) ls_text_fit(r->why, sizeof r->why, "%s", r->reached.why);
    return r->reached.how != LS_REACH_UNKNOWN;
}

/* The interval is chosen for the middle of the band, and the run then takes what it takes. */
static bool add_failures(predict_run *r, const predict_wish *w, int32_t nodes, ls_interval *seconds)
{
    double interval;
    char each[32], checkpoint[32];

    r->failures = (ls_failures){
        .mtbf_s = w->mtbf_s / nodes,
        .checkpoint_s = w->checkpoint_s > 0 ? w->checkpoint_s : w->checkpoint_bytes / w->checkpoint_bytes_s,
        .restart_s = w->restart_s};
    r->young_s = ls_failures_young(&r->failures);
    r->daly_s = ls_failures_daly(&r->failures);
    r->ends_alone = r->daly_s >= r->training.mid;
    interval = r->ends_alone ? r->training.hi : r->daly_s;
    r->expected = ls_failures_expect(&r->failures, r->training.mid, interval);
    *seconds =
        (ls_interval){ls_failures_expect(&r->failures, r->training.lo, interval).seconds, r->expected.seconds,
                      ls_failures_expect(&r->failures, r->training.hi, interval).seconds};
    if (isfinite(seconds->hi) && seconds->mid <= HOPELESS * r->training.mid) return true;
    ls_text_fit(r->why, sizeof r->why,
                "it would not get on: one of %d machines fails every %s, and a checkpoint takes %s",
                (int)nodes, predict_time(r->failures.mtbf_s, each),
                predict_time(r->failures.checkpoint_s, checkpoint));
    return false;
}

static bool answer_row(predict_run *run, const predict_table *t, const predict_row *r, ls_offer *o)
{
    const predict_runs *q = t->runs;
    const ls_prediction *p = &r->p;

    *run = (predict_run){.offer = -1};
    if (r->why[0] != '\0' && !r->unfit) {
        ls_text_fit(run->why, sizeof run->why, "%s", r->why);
        return false;
    }
    run->batch = predict_update_of(&t->way[r->way], r->ranks);
    if (!count_steps(run, q)) return false;
    run->training = ls_interval_times(run->steps, (ls_interval){p->lo, p->mid, p->hi});
    *o = (ls_offer){.line = t->way[r->way].line,
                    .ranks = r->ranks,
                    .nodes = p->nodes,
                    .seconds = run->training,
                    .bytes = (double)r->memory};
    if (q->wish.fails && !add_failures(run, &q->wish, p->nodes, &o->seconds)) return false;
    ls_offer_price(o, q->wish.price > 0 ? q->wish.price : 1);
    return true;
}

/* -- all of them ------------------------------------------------------------------------------------------
 */

/* What a checkpoint holds: all variables, whoever keeps them; so those of one rank alone. */
static ls_status find_bytes(predict_wish *w, const predict_step *s, ls_err *err)
{
    const ls_alternative way = {.trial = s->trial,
                                .cfg = s->cfg,
                                .how = {.ranks = 1, .here = 1, .threads = s->threads, .untimed = true},
                                .strategy = "ddp"};
    ls_outline x = {0};
    ls_status st = LS_OK;

    if (w->checkpoint_bytes_s <= 0) return LS_OK;
    LS_TRY(ls_alternative_open(&way, &x, err));
    w->checkpoint_bytes = (double)ls_outline_persistent(&x);
out:
    ls_outline_release(&x);
    return st;
}

static int by_ranks(const void *a, const void *b)
{
    const ls_offer *x = a, *y = b;

    return x->ranks != y->ranks ? (x->ranks > y->ranks) - (x->ranks < y->ranks)
                                : (x->row > y->row) - (x->row < y->row);
}

ls_status predict_runs_answer(predict_table *t, const predict_step *s, ls_err *err)
{
    predict_runs *q = t->runs;
    ls_status st = LS_OK;

    LS_TRY(find_bytes(&q->wish, s, err));
    q->of = ls_alloc(LS_MEM_CLI, sizeof *q->of * ((size_t)t->n + 1));
    q->offers = ls_alloc(LS_MEM_CLI, sizeof *q->offers * ((size_t)t->n + 1));
    if (q->of == NULL || q->offers == NULL) LS_TRY(ls_fail(err, LS_NOMEM, "no memory"));
    for (int i = 0; i < t->n; i++)
        if (answer_row(&q->of[i], t, &t->rows[i], &q->offers[q->n])) q->offers[q->n++].row = i;
    qsort(q->offers, (size_t)q->n, sizeof *q->offers, by_ranks);
    for (int i = 0; i < q->n; i++) q->of[q->offers[i].row].offer = i;
    ls_offers_judge(q->offers, q->n, &q->wish.limits);
    q->cheapest = ls_offers_cheapest(q->offers, q->n);
    q->fastest = ls_offers_fastest(q->offers, q->n);
out:
    return st;
}

bool predict_runs_none(const predict_table *t)
{
    bool any = false, unfit = false;

    if (t->runs != NULL) return t->runs->cheapest < 0;
    for (int i = 0; i < t->n; i++) {
        any |= t->rows[i].why[0] == '\0';
        unfit |= t->rows[i].unfit;
    }
    return unfit && !any;
}
