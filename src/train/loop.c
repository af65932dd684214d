/* loop.c: the training loop of one rank, from the first step to the end. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/output.h"
#include "base/text.h"
#include "exec/pieces.h"
#include "exec/results.h"
#include "train/evaluate.h"
#include "train/finite.h"
#include "train/run.h"
#include "train/team.h"

static int stop_request(const lsi_run *r)
{
    return r->o->stop != NULL ? (int)*r->o->stop : 0;
}

static bool is_due(unsigned due, ls_due what)
{
    return (due >> what & 1) != 0;
}

/* -- during --------------------------------------------------------------------------------------------- */

/* Each rank sees its own pieces: what one finds all know. */
static ls_status agree_on_pieces(lsi_run *r, ls_err *err)
{
    double any = r->diverged;
    ls_status st;

    if (!ls_pieces_any(r->session.state, NULL)) return LS_OK;
    st = ls_comm_max(r->session.comm, &any, 1, "looking for numbers that are not finite", err);
    r->diverged = any > 0;
    return st;
}

/* The words of the first rank that has any: variables in pieces are named by who has the piece. */
static ls_status share_trouble(const lsi_run *r, ls_err *trouble, ls_err *err)
{
    ls_comm *c = r->session.comm;
    double first = trouble->status != LS_OK ? -ls_comm_rank(c) : -ls_comm_size(c);
    ls_status st = LS_OK;

    LS_TRY(ls_comm_max(c, &first, 1, "who has found numbers that are not finite", err));
    if ((int)-first >= ls_comm_size(c)) { /* whoever found some could not read them a second time */
        ls_fail(trouble, LS_DIVERGED, "numbers that are not finite were seen once, and could not be named");
        goto out;
    }
    LS_TRY(ls_comm_broadcast(c, trouble, sizeof *trouble, (int)-first, "numbers that are not finite", err));
out:
    return st;
}

/* What is said when the metrics of a step, or the variables (`now` NULL), are not finite. */
static ls_status check_finite(lsi_run *r, const ls_metric_sums *now, int64_t step, double lr, ls_err *err)
{
    const bool warn = ls_session_on_nonfinite(r->cfg) != LS_NONFINITE_STOP,
               before = r->diverged || r->overflowing;
    const ls_finite_place at = {step, lr, r->dir.checkpoints, ls_config_bool(r->cfg, "train.check_gradients"),
                                warn};
    ls_err trouble = {0};

    r->diverged = (now != NULL ? ls_finite_metrics(now, &at, NULL)
                               : ls_finite_state(r->session.state, &at, NULL)) != LS_OK;
    if (now == NULL) {
        const ls_status st = agree_on_pieces(r, err);
        if (st != LS_OK) return st;
    }
    if (!r->diverged || (warn && before)) return LS_OK;
    if (lsi_run_leads(r))
        (void)ls_ckpt_writer_wait(r->writer, &(ls_err){0});     /* the message names the newest one */
    if (now == NULL && ls_pieces_any(r->session.state, NULL)) { /* and so does who has the piece */
        const ls_status st = ls_comm_barrier(r->session.comm, "the newest checkpoint", err);
        if (st != LS_OK) return st;
    }
    if (now == NULL || ls_finite_metrics(now, &at, &trouble) == LS_OK)
        (void)ls_finite_state(r->session.state, &at, &trouble);
    if (now == NULL && ls_pieces_any(r->session.state, NULL)) {
        const ls_status st = share_trouble(r, &trouble, err);
        if (st != LS_OK) return st;
    }
    if (!warn && now != NULL) {
        /* A device with queues has been given the next batch by now. */
        const bool here = r->session.dev->backend->queues == NULL;
        const ls_status st =
            ls_finite_explain(r->session.state, here ? ls_session_usual(&r->session, 0)->plan : NULL,
                              r->session.comm, &trouble, err);
        if (st != LS_OK) return st;
    }
    if (!warn) return ls_fail(err, LS_DIVERGED, "%s", trouble.text);
    if (lsi_run_leads(r)) ls_log(LS_LOG_WARN, "%s", trouble.text);
    return LS_OK;
}

/* The gradients of a step were not finite.  That is how a loss scale that is too large shows; else it is for
 * the settings to say what follows. */
static ls_status meet_found(lsi_run *r, const ls_found *f, int64_t step, double lr, ls_err *err)
{
    const ls_on_nonfinite how = ls_session_on_nonfinite(r->cfg);
    const bool again = r->overflowing;
    char what[700];

    r->overflowing = true;
    ls_found_text(f, ls_session_usual(&r->session, 0)->record->graph, r->session.ranks, what, sizeof what);
    if (ls_session_scales(r->cfg) && f->scale > LS_SCALE_LEAST) {
        if (lsi_run_leads(r))
            ls_log(LS_LOG_INFO, "step %lld: %s: the update is left out, and the loss scale %g halved",
                   (long long)step, what, f->scale);
        return LS_OK;
    }
    if (how == LS_NONFINITE_STOP) {
        if (lsi_run_leads(r)) (void)ls_ckpt_writer_wait(r->writer, &(ls_err){0});
        return ls_finite_fail(what, &(ls_finite_place){step, lr, r->dir.checkpoints, true, false}, err);
    }
    if (!again && lsi_run_leads(r))
        ls_log(LS_LOG_WARN, "step %lld: %s at learning rate %g; %s", (long long)step, what, lr,
               how == LS_NONFINITE_SKIP ? "the update is left out" : "training goes on all the same");
    return LS_OK;
}

/* Hands the variables to the writer. */
static ls_status save(lsi_run *r, ls_err *err)
{
    const double before = ls_clock_seconds();
    ls_counters c = r->c;
    json_t *state;
    ls_status st = check_finite(r, NULL, r->c.step, r->lr, err);

    if (st != LS_OK) return st;
    r->saved = lsi_run_samples(r);
    if (r->diverged) { /* train.on_nonfinite=warn: the good ones must not be rotated out */
        if (lsi_run_leads(r))
            ls_log(LS_LOG_WARN, "step %lld: the variables are not finite, so no checkpoint is written",
                   (long long)r->c.step);
        return LS_OK;
    }
    if (!lsi_run_leads(r)) return ls_pieces_serve(r->session.state, ls_ckpt_assist, err);
    st = ls_run_check(r->o->run, err);
    if (st != LS_OK) return st;
    lsi_run_note_time(r);
    c.ledger = ls_summary_ledger(&r->summary, &r->c);
    c.seconds = ls_ledger_total(&c.ledger);
    memcpy(c.last, r->agenda.last, sizeof c.last);
    state = lsi_run_checkpoint_state(r, &c);
    if (state == NULL) return ls_fail(err, LS_NOMEM, "checkpoint: no memory");
    /* Only the checkpoint of the step that was validated carries the metric by which the best are kept. */
    st = ls_ckpt_writer_submit(r->writer, r->c.step, r->session.state,
                               ls_plan_hash(ls_session_usual(&r->session, 0)->plan), state,
                               r->c.has_best && r->c.best_step == r->c.step ? r->c.best : NAN, err);
    json_decref(state);
    if (st == LS_OK) st = ls_pieces_end(r->session.state, err);
    ls_reporter_flush(r->report);
    if (st == LS_OK && !r->stopped && !r->ended) lsi_run_summarise_running(r);
    r->summary.checkpoint_s += ls_clock_seconds() - before;
    return st;
}

static void note_best(lsi_run *r, double value)
{
    ls_plateau_note(&r->schedule, &r->c.plateau, value, r->best.larger);
    r->c.since_best++;
    if (isnan(value) || (r->c.has_best && !ls_best_better(&r->best, value, r->c.best))) return;
    r->c.has_best = true;
    r->c.best = value;
    r->c.best_step = r->c.step;
    r->c.since_best = 0;
}

/* All ranks have agreed to give up an evaluation, which is no failure. */
static ls_status unless_given_up(const lsi_run *r, ls_status st, ls_err *err)
{
    if (st != LS_CANCELLED || !r->session.given_up) return st;
    if (err != NULL) *err = (ls_err){0};
    return LS_OK;
}

/* Says why, to everybody. */
static void stop_early(lsi_run *r)
{
    ls_summary *s = &r->summary;

    r->ended = true;
    s->ended_by = "early_stop";
    snprintf(s->ended_why, sizeof s->ended_why, "no better %s in %lld validations",
             ls_config_text(r->cfg, "train.best_metric"), (long long)r->c.since_best);
    if (r->c.has_best)
        snprintf(s->ended_why + strlen(s->ended_why), sizeof s->ended_why - strlen(s->ended_why),
                 " than %.6g at step %lld", r->c.best, (long long)r->c.best_step);
    ls_reporter_note_line(r->report, "training ends early: %s", s->ended_why);
}

static ls_status validate(lsi_run *r, bool outputs, ls_err *err)
{
    ls_metric_sums sums;
    ls_status st = lsi_run_evaluate(r, r->val != NULL ? r->val : r->test, outputs, NULL, &sums, err);

    if (st != LS_OK) return st;
    r->c.validations++;
    note_best(r, ls_metric_mean(&sums, r->best.name));
    ls_reporter_validation(r->report, &r->c, &sums);
    r->summary.last = sums;
    if (lsi_run_is_stuck(r)) stop_early(r);
    return LS_OK;
}

/* Rank 0 decides what comes after the update that this batch may complete; any rank may want to stop. */
static ls_moment decide(lsi_run *r, const ls_batch *b)
{
    const ls_moment after =
        lsi_run_moment(r, r->c.epoch * r->ruler.epoch_samples + b->global_position + b->global_n);
    const unsigned due = lsi_run_leads(r) ? ls_agenda_decide(&r->agenda, after) : 0;

    r->stepper.control = ls_control_make(due, stop_request(r) > 0);
    return after;
}

/* What follows from the metrics of a step. */
static ls_status conclude(lsi_run *r, const ls_counters *c, const ls_metric_sums *now, const ls_found *f,
                          double lr, bool report, ls_err *err)
{
    ls_reporter_step(r->report, c, now, lr, r->summary.rate, report);
    if (f->parameter != 0) return meet_found(r, f, c->step, lr, err);
    r->overflowing = false;
    return check_finite(r, now, c->step, lr, err);
}

/* A step that is on its way ends when the device says so, and begins when it was begun or when the one before
 * was over: the host's clock shows neither. */
static ls_step_times times_of(lsi_run *r, const lsi_awaited *a, const ls_plan *p)
{
    const double over = (double)ls_plan_over_at(p, a->metrics.run) / 1e9;
    ls_step_times t = a->times;

    /* Clocks of devices may differ a little: no step takes less than nothing. */
    t.all = fmax(over - (r->over > a->begun ? r->over : a->begun), 1e-9);
    r->over = over;
    return t;
}

/* Waits for the metrics of the newest step, if they are on their way. */
static ls_status receive(lsi_run *r, ls_err *err)
{
    lsi_awaited *a = &r->awaited;
    const ls_plan *p = a->metrics.plan;
    const int64_t before = r->c.skipped;
    ls_step_times times;
    ls_status st = LS_OK;

    if (p == NULL) return LS_OK;
    a->now = (ls_metric_sums){0};
    LS_TRY(ls_stepper_settle(&r->stepper, &a->metrics, &r->c, &a->now, err));
    a->come = true;
    /* The step that has begun since is not over: what is known now is known of this one. */
    a->c.skipped = r->c.skipped;
    a->c.skipped_samples = r->c.skipped_samples;
    a->c.loss_scale = r->c.loss_scale;
    if (r->c.skipped > before) r->lr = r->stepper.again; /* of that step, if there is one */
    times = times_of(r, a, p);
    ls_summary_note_step(&r->summary, &times, a->now.samples);
    ls_stepper_join(&r->stepper, &r->c.sums, &a->now);
out:
    return st;
}

/* What follows from them.  Where that ends the run, a step that has begun since is none. */
static ls_status conclude_awaited(lsi_run *r, ls_err *err)
{
    lsi_awaited *a = &r->awaited;
    ls_status st = LS_OK;

    LS_TRY(receive(r, err));
    if (!a->come) return LS_OK;
    a->come = false;
    st = conclude(r, &a->c, &a->now, &a->metrics.found, a->lr, a->report, err);
    if (st == LS_OK) return LS_OK;
    r->c = a->c;
    ls_stepper_join(&r->stepper, &r->c.sums, &a->now);
out:
    return st;
}

/* Whoever looks at metrics, counters or variables comes after this. */
static ls_status settle(lsi_run *r, ls_err *err)
{
    const bool awaited = r->awaited.metrics.plan != NULL || r->awaited.come;
    const ls_status st = conclude_awaited(r, err);

    if (awaited && st == LS_OK) r->c.now = r->awaited.now;
    return st;
}

/* What is due after the step, or the end of an epoch, must find its metrics there: as on any device. */
static bool must_settle(const lsi_run *r, unsigned due)
{
    return (due & ~(1u << LS_DUE_REPORT)) != 0 || ls_control_stop(&r->stepper.control) ||
           r->c.position >= r->ruler.epoch_samples;
}

/* Computes the batch, and the update that it leaves to the next one where that is looked for before: all
 * ranks know the same of what is due.  Says when it was begun. */
static ls_status take(lsi_run *r, const ls_batch *b, bool *done, double *begun, ls_err *err)
{
    const ls_step_times before = lsi_run_times(r);
    ls_status st = ls_stepper_take(&r->stepper, &r->c, b, done, &r->lr, err);
    ls_step_times after;

    if (st == LS_OK && *done &&
        (must_settle(r, ls_control_due(&r->stepper.control)) || !ls_metric_all_finite(&r->c.now)))
        st = ls_stepper_complete(&r->stepper, err);
    after = lsi_run_times(r);

    r->now.all += after.all - before.all;
    r->now.exposed += after.exposed - before.exposed;
    r->now.waiting += after.waiting - before.waiting;
    *begun = before.all;
    return st;
}

/* The step before comes to its end when this one is on its way, and on all ranks then: those whose batch has
 * another size must have its metrics before, but do nothing about them that others do not. */
static ls_status step(lsi_run *r, const ls_batch *b, ls_err *err)
{
    const ls_underway *left = &r->stepper.left;
    const ls_step_times none = {0};
    unsigned due;
    double begun;
    bool done;
    ls_status st = LS_OK;

    if (r->session.comm != NULL) ls_comm_note_step(r->session.comm, r->c.step + 1); /* as people count */
    if (r->awaited.metrics.batch != b->n) LS_TRY(receive(r, err));
    ls_trace_begin(r->stepper.trace, r->c.step);
    st = take(r, b, &done, &begun, err);
    ls_trace_end(r->stepper.trace);
    if (st == LS_OK) LS_TRY(conclude_awaited(r, err));
    if (st != LS_OK || !done) return st;
    due = ls_control_due(&r->stepper.control);
    if (left->plan == NULL) {
        ls_summary_note_step(&r->summary, &r->now, r->c.now.samples);
        r->now = none;
        return conclude(r, &r->c, &r->c.now, &r->stepper.found, r->lr, is_due(due, LS_DUE_REPORT), err);
    }
    r->awaited = (lsi_awaited){.metrics = *left,
                               .c = r->c,
                               .lr = r->lr,
                               .report = is_due(due, LS_DUE_REPORT),
                               .begun = begun,
                               .times = r->now};
    r->now = none;
    if (must_settle(r, due)) LS_TRY(settle(r, err));
out:
    return st;
}

static void end_epoch(lsi_run *r)
{
    if (r->c.position < r->ruler.epoch_samples) return;
    ls_reporter_epoch(r->report, &r->c);
    r->c.sums = (ls_metric_sums){0};
    r->c.position = 0;
    r->c.epoch++;
}

/* The others' part of pictures. */
static ls_status assist(lsi_run *r, ls_err *err)
{
    const ls_samples_options o = {.session = &r->session,
                                  .data = r->test,
                                  .folder = r->dir.path,
                                  .n = ls_config_int(r->cfg, "train.samples")};
    ls_status st = LS_OK;

    if (r->sampled == r->c.step) return LS_OK; /* as the report of rank 0 */
    r->sampled = r->c.step;
    if (r->samples == NULL) LS_TRY(ls_samples_open(&r->samples, &o, err));
    LS_TRY(ls_samples_assist(r->samples, err));
out:
    return st;
}

/* Pictures, which are rank 0's: the others go on, as far as they can without it. */
static ls_status sample(lsi_run *r, ls_err *err)
{
    const double before = ls_clock_seconds();

    if (!lsi_run_leads(r)) return assist(r, err);
    ls_reporter_samples(r->report, &r->c);
    r->summary.evaluate_s += ls_clock_seconds() - before;
    return LS_OK;
}

/* A better validation than any before is worth a checkpoint, or the best weights would be lost where the two
 * periods differ.  All ranks come to the same answer: sums of a validation have the same bits everywhere. */
static bool found_best(const lsi_run *r, unsigned due)
{
    return is_due(due, LS_DUE_VALIDATE) && r->c.has_best && r->c.best_step == r->c.step &&
           ls_config_int(r->cfg, "train.keep_best") > 0 &&
           ls_config_period(r->cfg, "train.checkpoint_every").unit != LS_PERIOD_NONE;
}

/* A validation was given up: what is left of what was due is done first of all when the run goes on. */
static void owe(lsi_run *r, unsigned due)
{
    r->c.owed =
        due & (1u << LS_DUE_VALIDATE | 1u << LS_DUE_OUTPUT | 1u << LS_DUE_SAMPLE | 1u << LS_DUE_CHECKPOINT);
    r->ended = false;
    r->stopped = true;
    r->summary.ended_by = "request";
}

/* What all ranks were told with the update. */
static ls_status obey(lsi_run *r, unsigned due, bool stop, ls_err *err)
{
    ls_status st = LS_OK;

    r->c.owed = 0;
    if (is_due(due, LS_DUE_PACE)) LS_TRY(ls_pace_compare(&r->summary.pace, r->session.comm, err));
    if (is_due(due, LS_DUE_VERIFY)) LS_TRY(ls_team_compare_weights(r->session.comm, &r->session, err));
    r->ended = is_due(due, LS_DUE_END);
    r->summary.ended_by = r->ended ? "end" : NULL;
    if (is_due(due, LS_DUE_VALIDATE)) {
        LS_TRY(unless_given_up(r, validate(r, is_due(due, LS_DUE_OUTPUT), err), err));
        if (r->session.given_up) {
            owe(r, due);
            goto out;
        }
    }
    if (is_due(due, LS_DUE_SAMPLE)) LS_TRY(sample(r, err));
    r->stopped = !r->ended && (stop || is_due(due, LS_DUE_PAUSE));
    if (r->stopped) r->summary.ended_by = stop ? "request" : "pause_after";
    if (is_due(due, LS_DUE_CHECKPOINT) || found_best(r, due)) LS_TRY(save(r, err));
out:
    return st;
}

/* For whoever watches whether the ranks get on. */
static void doing(const lsi_run *r, ls_comm_doing what)
{
    if (r->o->comm != NULL) ls_comm_set_doing(r->o->comm, what);
}

/* Between the batches of an update nothing happens: each rank has sums of gradients of its own until then. */
static ls_status loop(lsi_run *r, ls_err *err)
{
    ls_status st = LS_OK;

    if (r->c.owed != 0)
        LS_TRY(obey(r, r->c.owed | (r->ended ? 1u << LS_DUE_END : 0), false, err));
    else if (lsi_run_is_stuck(r))
        stop_early(r); /* the process before came no further than to find out */
    else if (r->ended)
        r->summary.ended_by = "end";
    while (!r->ended && !r->stopped) {
        ls_moment after;
        unsigned due;
        ls_batch b;
        doing(r, LS_COMM_LOADING);
        LS_TRY(ls_loader_next(r->loader, &b, err));
        doing(r, LS_COMM_STEPPING);
        after = decide(r, &b);
        LS_TRY(step(r, &b, err));
        doing(r, LS_COMM_AT_LENGTH);
        end_epoch(r);
        lsi_run_look(r);
        if (lsi_run_leads(r) && ls_run_is_gone(r->o->run)) LS_TRY(ls_run_check(r->o->run, err));
        if (r->c.pending > 0) continue;
        due = ls_control_due(&r->stepper.control);
        ls_agenda_note(&r->agenda, after, due);
        LS_TRY(obey(r, due, ls_control_stop(&r->stepper.control), err));
    }
out:
    if (st != LS_OK) (void)settle(r, &(ls_err){0}); /* the step before what failed is reported as ever */
    return st;
}

/* -- the end -------------------------------------------------------------------------------------------- */

/* Given up, it is all that is left to do when the run goes on. */
static ls_status test_at_end(lsi_run *r, ls_metric_sums *sums, ls_err *err)
{
    const bool outputs = r->agenda.every[LS_DUE_OUTPUT].unit != LS_PERIOD_NONE;
    const ls_status st = unless_given_up(r, lsi_run_test(r, outputs, sums, err), err);

    if (st != LS_OK || !r->session.given_up) return st;
    *sums = (ls_metric_sums){0};
    r->stopped = true;
    r->summary.ended_by = "request";
    r->summary.tested = NULL;
    return LS_OK;
}

/* The hash of weights in pieces, for which all of them pass rank 0: once, at the end. */
static ls_status note_weights(lsi_run *r, ls_err *err)
{
    ls_status st = LS_OK;

    if (r->session.place.sharding != LS_SHARD_WEIGHTS) return LS_OK;
    if (!lsi_run_leads(r)) return ls_pieces_serve(r->session.state, ls_ckpt_assist, err);
    LS_TRY(ls_weights_xxh3(r->session.state, &r->summary.weights, err));
    r->summary.hashed_at = r->c.step + 1;
    LS_TRY(ls_pieces_end(r->session.state, err));
out:
    return st;
}

static ls_status finish(lsi_run *r, json_t **summary, ls_err *err)
{
    ls_metric_sums test = {0};
    ls_status st = LS_OK;

    /* How often a rank was asked to stop is its own affair, and pieces are written by all or by none. */
    if ((stop_request(r) < 2 || ls_pieces_any(r->session.state, NULL)) && r->saved != lsi_run_samples(r))
        LS_TRY(save(r, err));
    if (!r->stopped) LS_TRY(test_at_end(r, &test, err));
    if (!r->stopped && r->agenda.every[LS_DUE_SAMPLE].unit != LS_PERIOD_NONE) LS_TRY(sample(r, err));
    LS_TRY(ls_team_compare_weights(r->session.comm, &r->session, err));
    LS_TRY(note_weights(r, err));
    LS_TRY(ls_pace_compare(&r->summary.pace, r->session.comm, err));
    if (r->session.comm != NULL) r->summary.sent_bytes = (double)ls_comm_sent_bytes(r->session.comm);
    LS_TRY(ls_team_add(r->session.comm, &r->summary.sent_bytes, 1, "adding up what was sent", err));
    /* A failed write has warned already and left the last good one; the result of the training stands. */
    if (lsi_run_leads(r)) (void)ls_ckpt_writer_wait(r->writer, &(ls_err){0});
    LS_TRY(lsi_run_summarise(r, r->stopped ? "paused" : "completed", &test, NULL, summary, err));
    ls_reporter_end(r->report, &r->c, r->stopped ? NULL : &test, *summary);
out:
    return st;
}

/* The run is complete, and stays as it is. */
static void say_nothing_to_do(const lsi_run *r, json_t **summary)
{
    const bool stuck = lsi_run_is_stuck(r), by_steps = ls_config_int(r->cfg, "train.steps") > 0;
    char line[2 * LS_PATH_MAX + 400], word[LS_PATH_MAX], setting[64];

    if (!lsi_run_leads(r)) return;
    *summary = ls_summary_load(r->dir.path);
    if (stuck)
        snprintf(setting, sizeof setting, "train.early_stop=0");
    else if (by_steps)
        snprintf(setting, sizeof setting, "train.steps=%lld",
                 2 * (long long)(r->total_steps > r->c.step ? r->total_steps : r->c.step));
    else
        snprintf(setting, sizeof setting, "train.epochs=%g",
                 2 * fmax(ls_config_real(r->cfg, "train.epochs"), (double)r->c.epoch));
    snprintf(line, sizeof line,
             "nothing to do: %s is complete, after %lld steps and %lld epochs%s\n"
             "to go on: lockstep train --resume %s %s\n",
             r->dir.path, (long long)r->c.step, (long long)r->c.epoch,
             stuck ? ", ended by train.early_stop" : "", ls_text_quoted(r->dir.path, word, sizeof word),
             setting);
    ls_runlog_note(r->log, line);
    if (!r->o->json) fputs(line, stdout);
    ls_output_flush();
}

/* A run that began leaves a summary that says how it ended. */
static void fail_run(lsi_run *r, json_t **summary, const ls_err *why)
{
    ls_err ignored = {0};

    if (!lsi_run_leads(r)) return;
    (void)ls_ckpt_writer_wait(r->writer, &(ls_err){0});
    json_decref(*summary);
    *summary = NULL;
    (void)lsi_run_summarise(r, why->status == LS_CANCELLED ? "killed" : "failed", &(ls_metric_sums){0},
                            why->text, summary, &ignored);
    ls_reporter_failure(r->report, why);
}

/* The wish to stop came while the step was being compiled: there is nothing to keep. */
static void end_before_it_began(lsi_run *r, ls_err *err)
{
    lsi_run_tell_others(r, err);
    *err = (ls_err){0};
    r->stopped = true;
    if (r->o->comm == NULL || ls_comm_rank(r->o->comm) == 0)
        ls_log(LS_LOG_WARN, "stopped on request before the first step; nothing was trained");
}

ls_status ls_train(const ls_experiment *x, const ls_train_options *o, json_t **summary, bool *stopped,
                   ls_err *err)
{
    lsi_run r = {.x = x, .o = o, .cfg = x->cfg, .saved = -1};
    bool began;
    ls_status st;

    *summary = NULL;
    st = lsi_run_begin(&r, err);
    began = st == LS_OK && !r.nothing;
    /* LS_LOST: ranks that stop leave others behind for a moment.  Other errors are the run's own. */
    if ((st == LS_CANCELLED || st == LS_LOST) && stop_request(&r) > 0) {
        end_before_it_began(&r, err);
        st = LS_OK;
    }
    if (began) st = loop(&r, err);
    if (began && st == LS_OK) st = finish(&r, summary, err);
    if (began && st == LS_DEVICE) ls_fail_in(err, st, "step %lld", (long long)r.c.step + 1);
    if (r.nothing) say_nothing_to_do(&r, summary);
    if (st != LS_OK) lsi_run_tell_others(&r, err);
    if (st != LS_OK && began) fail_run(&r, summary, err);
    *stopped = r.stopped;
    lsi_run_release(&r);
    return st;
}
