/* loop.c: the training loop of one rank. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "ckpt/ckpt.h"
#include "data/loader.h"
#include "train/evaluate.h"
#include "train/finite.h"
#include "train/periods.h"
#include "train/report.h"
#include "train/rundir.h"
#include "train/runlog.h"
#include "train/stepper.h"
#include "train/summary.h"
#include "train/team.h"
#include "train/train.h"

/* Everything a run holds while it goes on. */
typedef struct run {
    const ls_experiment *x;
    const ls_train_options *o;
    ls_config *cfg;
    ls_session session;
    ls_rundir dir;
    ls_dataset *train, *test;
    ls_loader *loader;
    ls_ckpt_writer *writer;
    ls_runlog *log;
    ls_report *report;
    ls_counters c;
    ls_schedule schedule;
    ls_summary summary;
    ls_stepper stepper;
    ls_update update;
    int64_t epoch_samples, total_steps;
    ls_period validate, output, checkpoint, pause, verify, sample;
    ls_moment begun;                                         /* where this process began */
    ls_moment last_validation, last_checkpoint, last_sample; /* for periods in minutes */
    ls_moment last_output;                                   /* due at a validation, not by itself */
    double started;                                          /* clock of this process's first step */
    ls_step_times now;                                       /* of the update that goes on */
    int64_t saved; /* samples passed at the newest checkpoint of this process; -1: none */
    bool stopped, finished;
    bool diverged; /* the last step's metrics were not finite */
} run;

static int64_t samples_passed(const run *r)
{
    return r->c.epoch * r->epoch_samples + r->c.position;
}

static ls_moment moment_of(const run *r)
{
    return (ls_moment){r->c.step, samples_passed(r), (r->c.seconds + ls_clock_seconds() - r->started) / 60};
}

/* Time of exchanges that nothing hid. */
/* Of everything until now. */
static ls_step_times times(const run *r)
{
    const ls_comm *c = r->session.comm;

    return (ls_step_times){ls_clock_seconds(), c != NULL ? ls_comm_exposed_seconds(c) : 0,
                           c != NULL ? ls_comm_waiting_seconds(c) : 0};
}

/* What this process has spent; the ledger is made from it. */
static void note_time(run *r)
{
    r->summary.wall_s = ls_clock_seconds() - r->started;
    r->summary.data_s = ls_loader_wait_seconds(r->loader);
    r->summary.comm_s = times(r).exposed;
}

static bool leads(const run *r)
{
    return r->session.rank == 0;
}

static int stop_request(const run *r)
{
    return r->o->stop != NULL ? (int)*r->o->stop : 0;
}

/* -- beginning
 * --------------------------------------------------------------------------------------------------- */

static int64_t steps_of(const run *r, double epochs)
{
    return ls_period_steps((ls_period){epochs, LS_PERIOD_EPOCHS}, r->epoch_samples, r->update.samples);
}

/* A period among the settings in steps. */
static int64_t steps_set(const run *r, const char *key)
{
    return ls_period_steps(ls_config_period(r->cfg, key), r->epoch_samples, r->update.samples);
}

static void set_schedule(run *r)
{
    ls_config *cfg = r->cfg;
    const double base = ls_config_real(cfg, "optimizer.lr");

    r->schedule = (ls_schedule){
        .base = base,
        .peak = ls_lr_peak((ls_lr_scale)ls_config_int(cfg, "lr.scale"), base, r->update.samples,
                           ls_config_int(cfg, "lr.reference_batch")),
        .warmup_steps = steps_set(r, "lr.warmup"),
        .warmup = (ls_lr_warmup)ls_config_int(cfg, "lr.warmup_kind"),
        .rule = (ls_lr_rule)ls_config_int(cfg, "lr.schedule"),
        .total_steps = r->total_steps,
        .hold_steps = steps_set(r, "lr.hold"),
        .stair_steps = steps_set(r, "lr.stair"),
        .every = steps_set(r, "lr.step_every"),
        .factor = ls_config_real(cfg, "lr.step_factor"),
        .final = ls_config_real(cfg, "lr.final"),
        .patience = ls_config_int(cfg, "lr.patience"),
    };
}

static ls_status check_settings(const run *r, ls_err *err)
{
    if (r->update.shards > 0 && ls_config_bool(r->cfg, "parallel.sync_batchnorm"))
        return ls_fail(
            err, LS_INVALID,
            "reproducible=true computes shards one by one, so that batch norms cannot see all ranks; set "
            "parallel.sync_batchnorm=false");
    if (r->update.shards > 0 && ls_config_int(r->cfg, "data.on_error") == LS_ON_ERROR_SKIP)
        return ls_fail(err, LS_INVALID,
                       "reproducible=true needs data.on_error=stop: a sample left out would move all others");
    if (ls_config_int(r->cfg, "ranks") != r->session.ranks)
        return ls_fail(err, LS_INVALID, "ranks=%lld, but there are %d; start them with -n, mpirun or srun",
                       (long long)ls_config_int(r->cfg, "ranks"), r->session.ranks);
    if (r->update.samples > r->epoch_samples)
        return ls_fail(err, LS_INVALID,
                       "an update takes %lld samples (batch.per_rank=%lld, ranks=%d, "
                       "parallel.accumulate=%lld), which is "
                       "more than the training set has (%lld)",
                       (long long)r->update.samples, (long long)ls_config_int(r->cfg, "batch.per_rank"),
                       r->session.ranks, (long long)ls_config_int(r->cfg, "parallel.accumulate"),
                       (long long)r->epoch_samples);
    if (r->schedule.warmup_steps < 0 || r->schedule.every < 0 || r->schedule.hold_steps < 0 ||
        r->schedule.stair_steps < 0)
        return ls_fail(err, LS_INVALID,
                       "lr.warmup, lr.hold, lr.stair and lr.step_every cannot be given in minutes");
    return LS_OK;
}

/* The session, the two data sets, and what follows from their sizes. */
static ls_status open_data(run *r, ls_err *err)
{
    ls_session_options options;
    ls_status st = LS_OK;

    r->update = ls_update_of(r->cfg, r->o->comm != NULL ? ls_comm_size(r->o->comm) : 1);
    options = ls_update_options(&r->update, r->cfg);
    options.device = r->o->device;
    options.threads = r->o->threads;
    options.comm = r->o->comm;
    LS_TRY(ls_session_open(&r->session, r->x->trial, r->cfg, &options, err));
    if (r->session.comm != NULL)
        ls_comm_set_stall(r->session.comm, ls_config_real(r->cfg, "parallel.stall_s"));
    LS_TRY(ls_team_agree(r->session.comm, r->x, ls_plan_hash(r->session.plans[0].plan), err));
    LS_TRY(ls_train_data(r->x, &r->session, false, &r->train, err));
    LS_TRY(ls_train_data(r->x, &r->session, true, &r->test, err));
    LS_TRY(ls_session_check_data(&r->session, r->train, err));
    LS_TRY(ls_session_check_data(&r->session, r->test, err));
    r->epoch_samples = ls_dataset_count(r->train);
    r->total_steps = ls_config_int(r->cfg, "train.steps");
    if (r->total_steps == 0) r->total_steps = steps_of(r, ls_config_real(r->cfg, "train.epochs"));
    set_schedule(r);
    LS_TRY(check_settings(r, err));
out:
    return st;
}

static ls_status open_loader(run *r, ls_err *err)
{
    const int64_t per_shard =
        r->update.shards > 0 ? (r->update.samples + r->update.shards - 1) / r->update.shards : 0;
    const int64_t most = (r->update.shards + r->session.ranks - 1) / r->session.ranks; /* shards of a rank */
    const ls_loader_options options = {
        .batch = r->update.shards > 0 ? per_shard * most : ls_config_int(r->cfg, "batch.per_rank"),
        .shards = r->update.shards,
        .n_workers = (int)ls_config_int(r->cfg, "data.workers"),
        .depth = (int)ls_config_int(r->cfg, "data.prefetch"),
        .shuffle = true,
        .augment = true,
        .seed = (uint64_t)ls_config_int(r->cfg, "seed"),
        .rank = r->session.rank,
        .n_ranks = r->session.ranks,
        .global = r->update.global,
        .first = samples_passed(r),
        .on_error = (ls_on_error)ls_config_int(r->cfg, "data.on_error"),
        .max_skipped = ls_config_int(r->cfg, "data.max_skipped"),
    };

    return ls_loader_create(&r->loader, r->train, &options, err);
}

static ls_status write_config(const run *r, ls_err *err)
{
    char path[LS_PATH_MAX + 16];
    FILE *f;
    bool ok;

    snprintf(path, sizeof path, "%s/config.yaml", r->dir.path);
    f = fopen(path, "w");
    if (f != NULL) ls_experiment_write(r->x, f);
    ok = f != NULL && ferror(f) == 0;
    if (f != NULL) ok = fclose(f) == 0 && ok;
    return ok ? LS_OK : ls_fail(err, LS_IO, "%s cannot be written", path);
}

static void plugin_text(const run *r, char text[24])
{
    snprintf(text, 24, "%016llx", (unsigned long long)r->x->plugin_xxh3);
}

/* A checkpoint knows its model: the name, and of a plug-in the hash of its file. */
static json_t *checkpoint_state(const run *r, const ls_counters *c)
{
    json_t *state = ls_counters_save(c);
    char plugin[24];
    bool ok = state != NULL && json_object_set_new(state, "trial", json_string(r->x->trial->name)) == 0;

    plugin_text(r, plugin);
    if (ok && r->x->plugin_xxh3 != 0) ok = json_object_set_new(state, "plugin", json_string(plugin)) == 0;
    if (ok) return state;
    json_decref(state);
    return NULL;
}

/* Another model is refused by name.  A plug-in that was built again may be the same model: the plan tells. */
static ls_status compare_model(const run *r, const ls_ckpt *ckpt, ls_err *err)
{
    const char *name = json_string_value(json_object_get(ls_ckpt_state(ckpt), "trial"));
    const char *before = json_string_value(json_object_get(ls_ckpt_state(ckpt), "plugin"));
    char plugin[24];

    plugin_text(r, plugin);
    if (name != NULL && strcmp(name, r->x->trial->name) != 0)
        return ls_fail(err, LS_INVALID, "the checkpoint is of model \"%s\", not \"%s\"", name,
                       r->x->trial->name);
    if (before != NULL && strcmp(before, plugin) != 0 &&
        ls_ckpt_plan_hash(ckpt) != ls_plan_hash(r->session.plans[0].plan))
        ls_log(LS_LOG_WARN, "%s was changed since the checkpoint, and its step is another one now",
               ls_config_text(r->cfg, "model.trial"));
    return LS_OK;
}

/* Variables and counters as the newest whole checkpoint has them. */
static ls_status restore(run *r, ls_err *err)
{
    char path[LS_PATH_MAX];
    ls_ckpt *ckpt = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_ckpt_find_newest(r->dir.checkpoints, path, sizeof path, err));
    LS_TRY(ls_ckpt_open(&ckpt, path, err));
    LS_TRY(compare_model(r, ckpt, err));
    LS_TRY(ls_ckpt_load_state(ckpt, r->session.state, err));
    LS_TRY(ls_counters_load(&r->c, ls_ckpt_state(ckpt), err));
out:
    ls_ckpt_close(ckpt);
    return ls_fail_in(err, st, "resuming %s", r->dir.path);
}

static ls_status open_writer(run *r, ls_err *err)
{
    const ls_ckpt_keep keep = {.last = (int)ls_config_int(r->cfg, "train.keep"),
                               .best = (int)ls_config_int(r->cfg, "train.keep_best"),
                               .larger_is_better = ls_config_int(r->cfg, "train.best_mode") == 0};

    return ls_ckpt_writer_create(&r->writer, r->dir.checkpoints, keep, ls_ckpt_bytes(r->session.state), err);
}

/* The summary as it would be if the run ended now. */
static ls_status summarise(run *r, const char *state, const ls_metric_sums *test, const char *error,
                           json_t **out, ls_err *err)
{
    const bool running = strcmp(state, "running") == 0;

    if (!leads(r)) return LS_OK;
    note_time(r);
    *out = ls_summary_json(&r->summary, &r->c, &r->session, state, test, error);
    if (*out == NULL) return ls_fail(err, LS_NOMEM, "summary: no memory");
    ls_last_words_prepare(r->o->last_words, r->dir.path, running ? *out : NULL);
    return ls_rundir_write_summary(&r->dir, *out, err);
}

/* While the run goes on.  A summary that cannot be written is worth a warning, not the run. */
static void summarise_running(run *r)
{
    json_t *summary = NULL;
    ls_err trouble = {0};

    if (summarise(r, "running", &(ls_metric_sums){0}, NULL, &summary, &trouble) != LS_OK)
        ls_log(LS_LOG_WARN, "%s", trouble.text);
    json_decref(summary);
}

/* Time that earlier processes took, and this one's until now. */
static void open_ledger(run *r, double began)
{
    const double known = r->o->resume ? ls_ledger_known_seconds(r->dir.path) : 0;

    if (r->o->resume) {
        ls_summary_recall(&r->summary, r->dir.path);
        ls_ledger_recall(&r->c.ledger, r->dir.path, r->c.step);
    }
    r->started = ls_clock_seconds();
    ls_ledger_begin(&r->c.ledger, r->o->resume, known, r->started - began);
    r->c.seconds = ls_ledger_total(&r->c.ledger);
}

/* The run directory is rank 0's; the others learn its name, for their logs.  Where they do not share a disk
 * with it, they make one of that name. */
static ls_status open_rundir(run *r, ls_err *err)
{
    const char *name = ls_config_text(r->cfg, "name");
    ls_status st = LS_OK;

    if (leads(r))
        LS_TRY(r->o->resume ? ls_rundir_find(&r->dir, name, r->o->run_dir, err)
                            : ls_rundir_create(&r->dir, name, r->o->run_dir, err));
    LS_TRY(ls_team_share_text(r->session.comm, r->dir.path, sizeof r->dir.path, "naming the run", err));
    if (!leads(r)) LS_TRY(ls_rundir_join(&r->dir, err));
    LS_TRY(ls_runlog_open(&r->log, r->dir.path, r->session.rank, err));
    if (leads(r) && r->o->resume) LS_TRY(restore(r, err));
    LS_TRY(ls_team_share(r->session.comm, &r->session, &r->c, err));
    if (leads(r)) LS_TRY(write_config(r, err));
    if (leads(r)) LS_TRY(open_writer(r, err));
out:
    return st;
}

static ls_status begin(run *r, ls_err *err)
{
    const double began = ls_clock_seconds();
    ls_status st = LS_OK;

    LS_TRY(open_data(r, err));
    LS_TRY(open_rundir(r, err));
    LS_TRY(open_loader(r, err));
    r->verify = ls_config_period(r->cfg, "parallel.verify_every");
    r->validate = ls_config_period(r->cfg, "train.validate_every");
    r->output = ls_config_period(r->cfg, "train.output_every");
    r->checkpoint = ls_config_period(r->cfg, "train.checkpoint_every");
    r->sample = ls_config_period(r->cfg, "train.sample_every");
    r->pause = ls_config_period(r->cfg, "train.pause_after");
    r->stepper = (ls_stepper){.session = &r->session,
                              .schedule = &r->schedule,
                              .data = r->train,
                              .seed = (uint64_t)ls_config_int(r->cfg, "seed"),
                              .update = r->update.samples,
                              .epoch_samples = r->epoch_samples};
    if (ls_config_int(r->cfg, "train.trace") > 0)
        LS_TRY(ls_trace_open(&r->stepper.trace, r->dir.path, r->session.rank,
                             ls_config_int(r->cfg, "train.trace"), err));
    open_ledger(r, began);
    r->begun = r->last_validation = r->last_output = r->last_checkpoint = r->last_sample = moment_of(r);
    if (!leads(r)) return LS_OK;
    LS_TRY(ls_report_open(&r->report,
                          &(ls_report_options){.experiment = r->x,
                                               .folder = r->dir.path,
                                               .resumed_at = r->o->resume ? r->c.step : -1,
                                               .total_steps = r->total_steps,
                                               .epoch_samples = r->epoch_samples,
                                               .batch = r->update.samples,
                                               .schedule = &r->schedule,
                                               .session = &r->session,
                                               .test = r->test,
                                               .log = r->log,
                                               .json = r->o->json,
                                               .quiet = r->o->quiet},
                          err));
    summarise_running(r);
out:
    return st;
}

/* -- during
 * ------------------------------------------------------------------------------------------------------ */

/* What is said when the metrics of a step, or the variables (`now` NULL), are not finite. */
static ls_status check_finite(run *r, const ls_metric_sums *now, double lr, ls_err *err)
{
    const ls_finite_place at = {r->c.step, lr, r->dir.checkpoints};
    const bool warn = ls_config_int(r->cfg, "train.on_nonfinite") == 1, before = r->diverged;
    ls_err trouble = {0};

    r->diverged = (now != NULL ? ls_finite_metrics(now, &at, NULL)
                               : ls_finite_state(r->session.state, &at, NULL)) != LS_OK;
    if (!r->diverged || (warn && before)) return LS_OK;
    if (leads(r)) (void)ls_ckpt_writer_wait(r->writer, &(ls_err){0}); /* the message names the newest one */
    if (now == NULL || ls_finite_metrics(now, &at, &trouble) == LS_OK)
        (void)ls_finite_state(r->session.state, &at, &trouble);
    if (!warn) return ls_fail(err, LS_DIVERGED, "%s", trouble.text);
    ls_log(LS_LOG_WARN, "%s", trouble.text);
    return LS_OK;
}

/* Hands the variables to the writer. */
static ls_status save(run *r, ls_err *err)
{
    const double before = ls_clock_seconds();
    ls_counters c = r->c;
    json_t *state;
    ls_status st = check_finite(r, NULL, ls_schedule_lr(&r->schedule, &r->c.plateau, r->c.step - 1), err);

    if (st != LS_OK) return st;
    r->saved = samples_passed(r);
    if (!leads(r)) return LS_OK;
    note_time(r);
    c.ledger = ls_summary_ledger(&r->summary, &r->c);
    c.seconds = ls_ledger_total(&c.ledger);
    state = checkpoint_state(r, &c);
    if (state == NULL) return ls_fail(err, LS_NOMEM, "checkpoint: no memory");
    /* Only the checkpoint of the step that was validated carries the metric by which the best are kept. */
    st = ls_ckpt_writer_submit(r->writer, r->c.step, r->session.state, ls_plan_hash(r->session.plans[0].plan),
                               state, r->c.has_best && r->c.best_step == r->c.step ? r->c.best : NAN, err);
    json_decref(state);
    ls_report_flush(r->report);
    if (st == LS_OK && !r->stopped && r->c.step < r->total_steps) summarise_running(r);
    r->summary.checkpoint_s += ls_clock_seconds() - before;
    return st;
}

static void note_best(run *r, double value)
{
    const bool larger = ls_config_int(r->cfg, "train.best_mode") == 0;

    ls_plateau_note(&r->schedule, &r->c.plateau, value, larger);
    r->c.since_best++;
    if (isnan(value) || (r->c.has_best && !(larger ? value > r->c.best : value < r->c.best))) return;
    r->c.has_best = true;
    r->c.best = value;
    r->c.best_step = r->c.step;
    r->c.since_best = 0;
}

/* `outputs`: those of the trial are written. */
static ls_status evaluate(run *r, bool outputs, ls_metric_sums *sums, ls_err *err)
{
    const double before = ls_clock_seconds(),
                 epoch = (double)r->c.epoch + (double)r->c.position / (double)r->epoch_samples;
    ls_gather gather = {.samples = ls_dataset_count(r->test),
                        .stride = outputs ? ls_config_int(r->cfg, "train.output_stride") : 0};
    ls_err trouble = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_evaluate(&r->session, r->test, &gather, sums, err));
    if (leads(r) && ls_gather_write(&gather, r->dir.path, epoch, &trouble) != LS_OK)
        ls_log(LS_LOG_WARN, "%s", trouble.text); /* worth a warning, not the run */
    r->summary.evaluate_s += ls_clock_seconds() - before;
out:
    ls_gather_release(&gather);
    return st;
}

static ls_status validate(run *r, bool outputs, ls_err *err)
{
    const char *best = ls_config_text(r->cfg, "train.best_metric"), *slash = strchr(best, '/');
    const int64_t patience = ls_config_int(r->cfg, "train.early_stop");
    ls_metric_sums sums;
    ls_status st = evaluate(r, outputs, &sums, err);

    if (st != LS_OK) return st;
    r->c.validations++;
    note_best(r, ls_metric_mean(&sums, slash != NULL ? slash + 1 : best));
    ls_report_validation(r->report, &r->c, &sums);
    r->summary.last = sums;
    if (patience > 0 && r->c.since_best >= patience) {
        if (leads(r))
            ls_log(LS_LOG_INFO, "no better %s in %lld validations: training ends", best, (long long)patience);
        r->finished = true;
    }
    return LS_OK;
}

static ls_status step(run *r, const ls_batch *b, ls_err *err)
{
    const ls_step_times before = times(r);
    ls_step_times after;
    bool done;
    double lr;
    ls_status st;

    r->stepper.stop = stop_request(r) > 0;
    if (r->session.comm != NULL) ls_comm_note_step(r->session.comm, r->c.step);
    ls_trace_begin(r->stepper.trace, r->c.step);
    st = ls_stepper_take(&r->stepper, &r->c, b, &done, &lr, err);
    ls_trace_end(r->stepper.trace);
    if (st != LS_OK) return st;
    after = times(r);
    r->now.all += after.all - before.all;
    r->now.exposed += after.exposed - before.exposed;
    r->now.waiting += after.waiting - before.waiting;
    if (!done) return LS_OK;
    ls_summary_note_step(&r->summary, &r->now, r->c.now.samples);
    r->now = (ls_step_times){0};
    ls_report_step(r->report, &r->c, &r->c.now, lr, r->summary.rate);
    return check_finite(r, &r->c.now, lr, err);
}

static void end_epoch(run *r)
{
    if (r->c.position < r->epoch_samples) return;
    ls_report_epoch(r->report, &r->c);
    r->c.sums = (ls_metric_sums){0};
    r->c.position = 0;
    r->c.epoch++;
}

/* Pictures, which are rank 0's alone: the others go on, as far as they can without it. */
static void sample(run *r)
{
    const double before = ls_clock_seconds();

    ls_report_samples(r->report, &r->c);
    r->summary.evaluate_s += ls_clock_seconds() - before;
}

/* What is due between the moments before and after a step. */
static ls_status between_steps(run *r, ls_moment before, ls_moment now, ls_err *err)
{
    const bool minutes_v = r->validate.unit == LS_PERIOD_MINUTES,
               minutes_c = r->checkpoint.unit == LS_PERIOD_MINUTES,
               minutes_s = r->sample.unit == LS_PERIOD_MINUTES;
    ls_status st = LS_OK;

    if (now.step > before.step && now.step % LS_PACE_EVERY == 0)
        LS_TRY(ls_pace_compare(&r->summary.pace, r->session.comm, err));
    if (ls_period_due(r->verify, r->epoch_samples, before, now))
        LS_TRY(ls_team_compare_weights(r->session.comm, &r->session, err));
    if (ls_period_due(r->validate, r->epoch_samples, minutes_v ? r->last_validation : before, now)) {
        const bool outputs = ls_period_due(r->output, r->epoch_samples, r->last_output, now);
        r->last_validation = now;
        if (outputs) r->last_output = now;
        LS_TRY(validate(r, outputs, err));
    }
    if (ls_period_due(r->sample, r->epoch_samples, minutes_s ? r->last_sample : before, now)) {
        r->last_sample = now;
        sample(r);
    }
    if (ls_period_due(r->checkpoint, r->epoch_samples, minutes_c ? r->last_checkpoint : before, now)) {
        r->last_checkpoint = now;
        LS_TRY(save(r, err));
    }
out:
    return st;
}

/* Where something is due by the clock, that of rank 0 counts. */
static ls_status agree_on_time(const run *r, ls_moment *now, ls_err *err)
{
    const bool by_clock = r->validate.unit == LS_PERIOD_MINUTES || r->checkpoint.unit == LS_PERIOD_MINUTES ||
                          r->output.unit == LS_PERIOD_MINUTES || r->pause.unit == LS_PERIOD_MINUTES ||
                          r->verify.unit == LS_PERIOD_MINUTES;

    if (r->session.comm == NULL || !by_clock) return LS_OK;
    return ls_comm_broadcast(r->session.comm, &now->minutes, sizeof now->minutes, 0, "reading the clock",
                             err);
}

/* Whether a checkpoint would hold all there is.  One rank's does after any batch, unless a later stage needs
 * the batch again; of several ranks, each has sums of gradients of its own until the update. */
static bool is_whole(const run *r)
{
    return r->c.pending == 0 || (r->session.comm == NULL && r->session.n_stages == 1);
}

static ls_status loop(run *r, ls_err *err)
{
    ls_moment before = moment_of(r); /* what was due by then is done */
    ls_status st = LS_OK;

    while (r->c.step < r->total_steps && !r->finished) {
        ls_moment now;
        ls_batch b;
        LS_TRY(ls_loader_next(r->loader, &b, err));
        LS_TRY(step(r, &b, err));
        end_epoch(r);
        now = moment_of(r);
        if (!is_whole(r)) continue;
        LS_TRY(agree_on_time(r, &now, err));
        LS_TRY(between_steps(r, before, now, err));
        before = now;
        if (!r->stepper.stop && !ls_period_over(r->pause, r->epoch_samples, r->begun, now)) continue;
        r->stopped = r->c.step < r->total_steps;
        break;
    }
out:
    return st;
}

/* -- the end
 * ------------------------------------------------------------------------------------------------------ */

static ls_status finish(run *r, json_t **summary, ls_err *err)
{
    ls_metric_sums test = {0};
    ls_status st = LS_OK;

    if (stop_request(r) < 2 && r->saved != samples_passed(r)) LS_TRY(save(r, err));
    if (!r->stopped) LS_TRY(evaluate(r, r->output.unit != LS_PERIOD_NONE, &test, err));
    if (!r->stopped && r->sample.unit != LS_PERIOD_NONE) sample(r);
    LS_TRY(ls_team_compare_weights(r->session.comm, &r->session, err));
    LS_TRY(ls_pace_compare(&r->summary.pace, r->session.comm, err));
    /* A failed write has warned already and left the last good one; the result of the training stands. */
    if (leads(r)) (void)ls_ckpt_writer_wait(r->writer, &(ls_err){0});
    LS_TRY(summarise(r, r->stopped ? "paused" : "completed", &test, NULL, summary, err));
    ls_report_end(r->report, &r->c, r->stopped ? NULL : &test, *summary);
out:
    return st;
}

/* The other ranks must not wait for this one, nor take its leaving for a disagreement; of a real one all
 * know. */
static void tell_others(const run *r, const ls_err *why)
{
    if (r->session.comm != NULL && why->status != LS_DISAGREE) ls_comm_abort(r->session.comm, why->text);
}

/* A run that began leaves a summary that says how it ended. */
static void fail_run(run *r, json_t **summary, const ls_err *why)
{
    ls_err ignored = {0};

    if (!leads(r)) return;
    (void)ls_ckpt_writer_wait(r->writer, &(ls_err){0});
    json_decref(*summary);
    *summary = NULL;
    (void)summarise(r, "failed", &(ls_metric_sums){0}, why->text, summary, &ignored);
    ls_report_failure(r->report, why);
}

static void release(run *r)
{
    ls_stepper_release(&r->stepper);
    ls_report_close(r->report);
    ls_loader_destroy(r->loader);
    ls_ckpt_writer_destroy(r->writer);
    ls_runlog_close(r->log); /* after everything that may have something to say */
    ls_session_release(&r->session);
    ls_dataset_close(r->train);
    ls_dataset_close(r->test);
    ls_summary_release(&r->summary);
}

ls_status ls_train(const ls_experiment *x, const ls_train_options *o, json_t **summary, bool *stopped,
                   ls_err *err)
{
    run r = {.x = x, .o = o, .cfg = x->cfg, .saved = -1};
    bool began;
    ls_status st;

    *summary = NULL;
    st = begin(&r, err);
    began = st == LS_OK;
    if (began) st = loop(&r, err);
    if (st == LS_OK) st = finish(&r, summary, err);
    if (st != LS_OK) tell_others(&r, err);
    if (st != LS_OK && began) fail_run(&r, summary, err);
    *stopped = r.stopped;
    release(&r);
    return st;
}

ls_status ls_train_eval(const ls_experiment *x, const ls_train_options *o, const char *checkpoint,
                        json_t **result, ls_err *err)
{
    run r = {.x = x, .o = o, .cfg = x->cfg, .saved = -1};
    ls_metric_sums test;
    ls_ckpt *ckpt = NULL;
    ls_status st = LS_OK;

    *result = NULL;
    LS_TRY(open_data(&r, err));
    LS_TRY(ls_ckpt_open(&ckpt, checkpoint, err));
    LS_TRY(ls_ckpt_load_model(ckpt, r.session.state, err));
    LS_TRY(ls_evaluate(&r.session, r.test, NULL, &test, err));
    *result = ls_metrics_json(&test);
    if (*result == NULL || json_object_set_new(*result, "event", json_string("eval")) != 0 ||
        json_object_set_new(*result, "samples", json_integer((json_int_t)test.samples)) != 0)
        st = ls_fail(err, LS_NOMEM, "eval: no memory");
out:
    if (st != LS_OK) tell_others(&r, err);
    ls_ckpt_close(ckpt);
    release(&r);
    return st;
}
