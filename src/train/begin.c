/* begin.c: opens a run: settings, data, run directory, checkpoint, loader, report; and what it writes of
 * itself. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "exec/pieces.h"
#include "train/evaluate.h"
#include "train/fault.h"
#include "train/init.h"
#include "train/resume.h"
#include "train/run.h"
#include "train/shards.h"
#include "train/team.h"

int64_t lsi_run_samples(const lsi_run *r)
{
    return r->c.epoch * r->ruler.epoch_samples + r->c.position;
}

ls_moment lsi_run_moment(const lsi_run *r, int64_t samples)
{
    return (ls_moment){ls_ruler_steps(&r->ruler, samples), samples,
                       (r->c.seconds + ls_clock_seconds() - r->started) / 60};
}

/* Of everything until now. */
ls_step_times lsi_run_times(const lsi_run *r)
{
    const ls_comm *c = r->session.comm;

    return (ls_step_times){ls_clock_seconds(), c != NULL ? ls_comm_exposed_seconds(c) : 0,
                           c != NULL ? ls_comm_waiting_seconds(c) : 0};
}

/* What this process has spent; the ledger is made from it. */
void lsi_run_note_time(lsi_run *r)
{
    r->summary.wall_s = ls_clock_seconds() - r->started;
    r->summary.data_s = ls_loader_wait_seconds(r->loader);
    r->summary.comm_s = lsi_run_times(r).exposed;
}

bool lsi_run_leads(const lsi_run *r)
{
    return r->session.rank == 0;
}

bool lsi_run_is_stuck(const lsi_run *r)
{
    const int64_t patience = ls_config_int(r->cfg, "train.early_stop");

    return patience > 0 && r->c.since_best >= patience;
}

/* A period among the settings in steps. */
static int64_t steps_set(const lsi_run *r, const char *key)
{
    return ls_period_steps(ls_config_period(r->cfg, key), &r->ruler);
}

/* End and schedule, as the ruler makes them. */
static void set_schedule(lsi_run *r)
{
    ls_config *cfg = r->cfg;
    const double base = ls_config_real(cfg, "optimizer.lr");
    const ls_period epochs = {ls_config_real(cfg, "train.epochs"), LS_PERIOD_EPOCHS};

    r->total_steps = ls_config_int(cfg, "train.steps");
    if (r->total_steps == 0) r->total_steps = ls_period_steps(epochs, &r->ruler);
    r->schedule = (ls_lr_schedule){
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

static ls_status check_settings(const lsi_run *r, ls_err *err)
{
    if (ls_config_int(r->cfg, "ranks") != r->session.ranks)
        return ls_fail(err, LS_INVALID, "ranks=%lld, but there are %d; start them with -n, mpirun or srun",
                       (long long)ls_config_int(r->cfg, "ranks"), r->session.ranks);
    if (r->schedule.warmup_steps < 0 || r->schedule.every < 0 || r->schedule.hold_steps < 0 ||
        r->schedule.stair_steps < 0)
        return ls_fail(err, LS_INVALID,
                       "lr.warmup, lr.hold, lr.stair and lr.step_every cannot be given in minutes");
    return ls_update_check(&r->update, r->cfg, r->session.ranks, r->ruler.epoch_samples, err);
}

/* The data sets.  They come first: a batch that the training set does not have is refused before a step
 * for it is compiled, which may take long. */
static ls_status open_sets(lsi_run *r, int ranks, ls_err *err)
{
    ls_needs needs;
    ls_status st = LS_OK;

    LS_TRY(ls_needs_find(&needs, r->x->trial, r->cfg, err));
    LS_TRY(ls_update_check_settings(&r->update, r->cfg, err));
    LS_TRY(ls_train_data(r->x, &needs, LS_SPLIT_TRAIN, &r->train, err));
    LS_TRY(ls_train_data(r->x, &needs, LS_SPLIT_TEST, &r->test, err));
    if (ls_train_has_val(r->cfg)) LS_TRY(ls_train_data(r->x, &needs, LS_SPLIT_VAL, &r->val, err));
    LS_TRY(ls_update_check(&r->update, r->cfg, ranks, ls_dataset_count(r->train), err));
out:
    ls_needs_release(&needs);
    return st;
}

/* What the run will go through. */
static ls_run_sets sets_of(const lsi_run *r)
{
    const bool pictures = ls_config_period(r->cfg, "train.sample_every").unit != LS_PERIOD_NONE;

    return (ls_run_sets){.train = ls_dataset_count(r->train),
                         .test = ls_dataset_count(r->test),
                         .val = r->val != NULL ? ls_dataset_count(r->val) : 0,
                         .pictures = pictures ? ls_config_int(r->cfg, "train.samples") : 0,
                         .skips = ls_session_skips(r->cfg),
                         .anywhere = !r->anew};
}

/* The session, the data sets, and what follows from their sizes. */
ls_status lsi_run_open_data(lsi_run *r, ls_err *err)
{
    ls_session_options options;
    ls_status st = LS_OK;

    LS_TRY(ls_team_agree(r->o->comm, r->x, err));
    r->update = ls_update_of(r->cfg, r->o->comm != NULL ? ls_comm_size(r->o->comm) : 1);
    options = ls_update_options(&r->update, r->cfg);
    options.threads = r->o->threads;
    options.comm = r->o->comm;
    options.stop = r->o->stop;
    options.evaluates = true;
    options.tell = !r->o->json && !r->o->quiet && (r->o->comm == NULL || ls_comm_rank(r->o->comm) == 0);
    st = open_sets(r, r->o->comm != NULL ? ls_comm_size(r->o->comm) : 1, err);
    LS_TRY(ls_team_fail_once(r->o->comm, st, "opening the data", err));
    options.sets = sets_of(r);
    LS_TRY(ls_session_open(&r->session, r->x->trial, r->cfg, &options, err));
    ls_team_watch(r->o->comm, r->cfg);
    LS_TRY(ls_team_agree_on_plans(r->session.comm, &r->session, err));
    LS_TRY(ls_team_agree_on_data(r->session.comm, (const ls_dataset *[]){r->train, r->test, r->val}, err));
    LS_TRY(ls_session_check_data(&r->session, r->train, err));
    LS_TRY(ls_session_check_data(&r->session, r->test, err));
    if (r->val != NULL) LS_TRY(ls_session_check_data(&r->session, r->val, err));
    r->ruler = (ls_ruler){ls_dataset_count(r->train), r->update.samples};
    set_schedule(r);
    LS_TRY(check_settings(r, err));
out:
    return st;
}

static void plugin_text(const lsi_run *r, char text[24])
{
    snprintf(text, 24, "%016llx", (unsigned long long)r->x->plugin_xxh3);
}

/* A checkpoint knows its model: the name, and of a plug-in the hash of its file. */
json_t *lsi_run_checkpoint_state(const lsi_run *r, const ls_counters *c)
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
static ls_status compare_model(const lsi_run *r, const ls_ckpt *ckpt, ls_err *err)
{
    const char *name = json_string_value(json_object_get(ls_ckpt_state(ckpt), "trial"));
    const char *before = json_string_value(json_object_get(ls_ckpt_state(ckpt), "plugin"));
    char plugin[24];

    plugin_text(r, plugin);
    if (name != NULL && strcmp(name, r->x->trial->name) != 0)
        return ls_fail(err, LS_INVALID, "the checkpoint is of model \"%s\", not \"%s\"", name,
                       r->x->trial->name);
    if (before != NULL && strcmp(before, plugin) != 0 &&
        ls_ckpt_plan_hash(ckpt) != ls_plan_hash(ls_session_usual(&r->session, 0)->plan))
        ls_log(LS_LOG_WARN, "%s was changed since the checkpoint, and its step is another one now",
               ls_config_text(r->cfg, "model.trial"));
    return LS_OK;
}

/* Positions count samples of the set that the run began with. */
static ls_status compare_data(const lsi_run *r, ls_err *err)
{
    if (r->c.epoch_samples == 0 || r->c.epoch_samples == r->ruler.epoch_samples) return LS_OK;
    return ls_fail(err, LS_INVALID,
                   "the training set had %lld samples, now it has %lld; give the run its own data again, or "
                   "start a new one from its weights with train.init",
                   (long long)r->c.epoch_samples, (long long)r->ruler.epoch_samples);
}

/* Samples of an update as the run had them. */
static int64_t update_before(const ls_experiment *before)
{
    return ls_update_of(before->cfg, (int)ls_config_int(before->cfg, "ranks")).samples;
}

/* Checkpoints of older versions may lie within an update, and then hold sums of gradients, each weighted by
 * its share of the update. */
static ls_status adopt_sums(lsi_run *r, ls_err *err)
{
    const int64_t left = r->ruler.epoch_samples - (r->c.position - r->c.pending);
    const int64_t before = r->c.step_samples < left ? r->c.step_samples : left,
                  now = r->update.samples < left ? r->update.samples : left;

    if (r->c.pending == 0) return LS_OK;
    if (r->session.shards != NULL || r->session.n_stages > 1) {
        ls_log(LS_LOG_WARN,
               "the checkpoint holds gradients of %lld samples that reproducible=true cannot use",
               (long long)r->c.pending);
        r->c.pending = 0;
        r->c.now = (ls_metric_sums){0};
        ls_state_set_pending(r->session.state, false);
    } else if (before != now) {
        return ls_session_scale_sums(&r->session, (double)before / (double)now, err);
    }
    return LS_OK;
}

/* Variables and counters as the newest whole checkpoint has them. */
static ls_status restore(lsi_run *r, ls_err *err)
{
    char path[LS_PATH_MAX];
    ls_ckpt *ckpt = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_ckpt_find_newest(r->dir.checkpoints, path, sizeof path, err));
    LS_TRY(ls_ckpt_open(&ckpt, path, err));
    LS_TRY(compare_model(r, ckpt, err));
    LS_TRY(ls_ckpt_load_state(ckpt, r->session.state, err));
    LS_TRY(ls_pieces_end(r->session.state, err));
    LS_TRY(ls_counters_load(&r->c, ls_ckpt_state(ckpt), err));
    LS_TRY(compare_data(r, err));
    if (r->c.step_samples == 0)
        r->c.step_samples = r->o->before != NULL ? update_before(r->o->before) : r->update.samples;
    LS_TRY(adopt_sums(r, err));
out:
    ls_ckpt_close(ckpt);
    return ls_fail_in(err, st, "resuming %s", r->dir.path);
}

/* Whether checkpoints are written without a copy of all variables, for which the run waits.  A memory.limit
 * is of the device's memory: a copy counts against it where that is the host's. */
static bool writes_at_once(const lsi_run *r, size_t copy)
{
    const ls_session *s = &r->session;
    char a[32], b[32], c[32];

    if (ls_pieces_any(s->state, NULL)) return true;
    if (s->limit == 0 || copy <= s->limit - s->planned || ls_device_memory_of(s->dev).own) return false;
    ls_log(LS_LOG_INFO,
           "checkpoints are written while the run waits: beside the %s that it takes, a copy of %s does not "
           "fit into memory.limit (%s)",
           ls_text_bytes((double)s->planned, a), ls_text_bytes((double)copy, b),
           ls_text_bytes((double)s->limit, c));
    return true;
}

static ls_status open_writer(lsi_run *r, ls_err *err)
{
    const size_t bytes = ls_ckpt_bytes(r->session.state);
    const ls_ckpt_keep keep = {.last = (int)ls_config_int(r->cfg, "train.keep"),
                               .best = (int)ls_config_int(r->cfg, "train.keep_best"),
                               .larger_is_better = r->best.larger,
                               .at_once = writes_at_once(r, bytes)};

    return ls_ckpt_writer_create(&r->writer, r->dir.checkpoints, keep, bytes, err);
}

/* The summary as it would be if the run ended now. */
ls_status lsi_run_summarise(lsi_run *r, const char *state, const ls_metric_sums *test, const char *error,
                            json_t **out, ls_err *err)
{
    const bool running = strcmp(state, "running") == 0;
    ls_status st;

    if (!lsi_run_leads(r)) return LS_OK;
    lsi_run_note_time(r);
    *out = ls_summary_json(&r->summary, &r->c, &r->session, state, test, error);
    if (*out == NULL) return ls_fail(err, LS_NOMEM, "summary: no memory");
    if (!running) ls_reporter_flush(r->report);
    ls_reporter_add_missing(r->report, *out);
    st = ls_run_write_summary(r->o->run, *out, err);
    ls_last_words_prepare(r->o->last_words, r->o->run, running ? *out : NULL);
    return st;
}

/* While the run goes on.  A summary that cannot be written is worth a warning, not the run.  A directory that
 * is gone ends it, and that is said then. */
void lsi_run_summarise_running(lsi_run *r)
{
    json_t *summary = NULL;
    ls_err trouble = {0};

    const bool failed =
        lsi_run_summarise(r, "running", &(ls_metric_sums){0}, NULL, &summary, &trouble) != LS_OK;

    if (failed && !r->summary_failed && !ls_run_is_gone(r->o->run))
        ls_log(LS_LOG_WARN, "%s; tried again with the next checkpoint", trouble.text);
    r->summary_failed = failed;
    json_decref(summary);
}

/* Time that earlier processes took, and this one's until now. */
static void open_ledger(lsi_run *r, double began)
{
    const double known = r->resumed ? ls_ledger_known_seconds(r->dir.path) : 0;

    if (r->resumed) {
        ls_summary_recall(&r->summary, r->dir.path);
        ls_ledger_recall(&r->c.ledger, r->dir.path, r->c.step);
    }
    r->started = ls_clock_seconds();
    ls_ledger_begin(&r->c.ledger, r->resumed, known, r->started - began);
    r->c.seconds = ls_ledger_total(&r->c.ledger);
}

/* Settings in steps count those of the run's beginning; after a resume that is what its checkpoint says. */
static void measure(lsi_run *r)
{
    if (r->c.step_samples == 0) r->c.step_samples = r->update.samples;
    r->c.epoch_samples = r->ruler.epoch_samples;
    if (r->c.step_samples == r->ruler.step_samples) return;
    r->ruler.step_samples = r->c.step_samples;
    set_schedule(r);
}

/* Whether the run has come to its end before, the test pass included. */
static bool is_complete(const lsi_run *r)
{
    json_t *summary = ls_summary_load(r->dir.path);
    const char *state = json_string_value(json_object_get(summary, "state"));
    const bool completed = state != NULL && strcmp(state, "completed") == 0;

    json_decref(summary);
    return completed &&
           (ls_ruler_steps(&r->ruler, lsi_run_samples(r)) >= (double)r->total_steps || lsi_run_is_stuck(r));
}

/* A link to a checkpoint that is gone: to begin anew in its place would end what the run has.  What was
 * copied without its checkpoints has such a link. */
static ls_status check_not_lost(const ls_run *run, ls_err *err)
{
    const ls_run_paths *dir = ls_run_paths_of(run);
    char link[LS_PATH_MAX + 16], to[LS_PATH_MAX];
    ssize_t n;

    snprintf(link, sizeof link, "%s/last", dir->checkpoints);
    n = readlink(link, to, sizeof to - 1);
    if (n < 0) return LS_OK;
    to[n] = '\0';
    return ls_fail(
        err, LS_DATA,
        "%s: the checkpoint %s is gone; bring it back from where the run was, or begin a new run in "
        "another directory",
        link, to);
}

/* The run directory is rank 0's; the others learn its name, for their logs.  Where they do not share a disk
 * with it, they make one of that name. */
static ls_status open_rundir(lsi_run *r, ls_err *err)
{
    char nothing, resumed;
    ls_status st = LS_OK;

    r->resumed = r->o->resume;
    if (lsi_run_leads(r)) {
        if (r->o->resume && !ls_run_has_checkpoint(r->o->run)) LS_TRY(check_not_lost(r->o->run, err));
        LS_TRY(ls_run_begin(r->o->run, err));
        r->dir = *ls_run_paths_of(r->o->run);
        r->resumed = r->o->resume && ls_run_has_checkpoint(r->o->run);
        if (r->o->resume && !r->resumed)
            ls_log(LS_LOG_WARN, "%s has no checkpoint yet: the run begins from the beginning", r->dir.path);
    }
    LS_TRY(ls_team_share_text(r->session.comm, r->dir.path, sizeof r->dir.path, "naming the run", err));
    if (!lsi_run_leads(r)) LS_TRY(ls_run_join(&r->dir, err));
    LS_TRY(ls_runlog_open(&r->log, r->dir.path, r->session.rank, err));
    if (ls_peers_links_text(r->session.peers)[0] != '\0')
        ls_log(LS_LOG_INFO, "what ranks exchange goes %s", ls_peers_links_text(r->session.peers));
    ls_team_say_what_is_compared(r->session.comm, &r->session); /* which the log keeps */
    resumed = lsi_run_leads(r) && r->resumed;
    LS_TRY(ls_team_share_text(r->session.comm, &resumed, 1, "resuming", err));
    if (resumed != 0)
        LS_TRY(lsi_run_leads(r) ? restore(r, err) : ls_pieces_serve(r->session.state, ls_ckpt_assist, err));
    LS_TRY(ls_team_share(r->session.comm, &r->session, &r->c, err));
    measure(r);
    nothing = lsi_run_leads(r) && r->resumed && is_complete(r);
    LS_TRY(ls_team_share_text(r->session.comm, &nothing, 1, "beginning", err));
    r->nothing = nothing != 0;
    if (r->nothing || !lsi_run_leads(r)) return LS_OK;
    LS_TRY(ls_resume_write_config(r->x, r->dir.path, err));
    LS_TRY(open_writer(r, err));
out:
    return st;
}

/* The number of the last update. */
static int64_t updates_in_all(const lsi_run *r)
{
    return r->c.step + ls_ruler_updates(&r->ruler, lsi_run_samples(r),
                                        ls_ruler_samples(&r->ruler, (double)r->total_steps),
                                        r->update.samples);
}

static void open_agenda(lsi_run *r)
{
    const ls_moment now = lsi_run_moment(r, lsi_run_samples(r));

    r->agenda = (ls_agenda){
        .ruler = r->ruler,
        .every = {[LS_DUE_REPORT] = ls_config_period(r->cfg, "train.report_every"),
                  [LS_DUE_VALIDATE] = ls_config_period(r->cfg, "train.validate_every"),
                  [LS_DUE_OUTPUT] = ls_config_period(r->cfg, "train.output_every"),
                  [LS_DUE_SAMPLE] = ls_config_period(r->cfg, "train.sample_every"),
                  [LS_DUE_CHECKPOINT] = ls_config_period(r->cfg, "train.checkpoint_every"),
                  [LS_DUE_VERIFY] = ls_config_period(r->cfg, "parallel.verify_every"),
                  [LS_DUE_PACE] = {LS_PACE_EVERY, LS_PERIOD_STEPS}},
        .pause = ls_config_period(r->cfg, "train.pause_after"),
        .end = (double)r->total_steps,
    };
    ls_agenda_begin(&r->agenda, now, r->resumed ? r->c.last : NULL);
    r->ended = now.steps >= r->agenda.end;
}

/* Only rank 0 has the directory and can tell whether there is something to go on from. */
static ls_status agree_on_beginning(lsi_run *r, ls_err *err)
{
    r->anew = !r->o->resume || (r->o->run != NULL && !ls_run_has_checkpoint(r->o->run));
    if (r->o->comm == NULL || !r->o->resume) return LS_OK;
    return ls_comm_broadcast(r->o->comm, &r->anew, sizeof r->anew, 0, "where the run begins", err);
}

/* The first rank of each machine looks after its devices. */
static void open_gauges(lsi_run *r)
{
    const ls_comm *c = r->session.comm;

    if (c != NULL && ls_comm_local_rank(c) != 0) return;
    ls_gauges_open(&r->gauges, &(ls_gauges_options){.dev = r->session.dev,
                                                    .rank = r->session.rank,
                                                    .ranks = c != NULL ? ls_comm_local_size(c) : 1,
                                                    .folder = r->dir.path,
                                                    .resumed_at = r->resumed ? r->c.step : -1,
                                                    .seconds = r->c.seconds});
}

/* Whether this process may write into the run directory: who was thought dead and has woken up may not. */
static bool may_write(const lsi_run *r)
{
    return !lsi_run_leads(r) || ls_run_check(r->o->run, NULL) == LS_OK;
}

void lsi_run_look(lsi_run *r)
{
    const double epoch = (double)r->c.epoch + (double)r->c.position / (double)r->ruler.epoch_samples;

    if (ls_gauges_note(r->gauges, r->c.step, epoch) && may_write(r))
        ls_gauges_write(r->gauges, ls_reporter_events(r->report));
}

void lsi_run_end_gauges(lsi_run *r)
{
    ls_gauges_close(r->gauges, r->gauges != NULL && may_write(r), ls_reporter_events(r->report));
    r->gauges = NULL;
}

/* A list for more ranks than there are may be meant for another run of the same script: it is no mistake. */
static void warn_of_absent_ranks(const lsi_run *r, const char *overflows)
{
    const int ranks = r->o->comm != NULL ? ls_comm_size(r->o->comm) : 1;
    const int64_t last = ls_fault_last_rank(overflows);

    if (last >= ranks && (r->o->comm == NULL || ls_comm_rank(r->o->comm) == 0))
        ls_log(LS_LOG_WARN, LS_FAULT_OVERFLOW "=%.200s: there is no rank %lld; ranks count from 0 to %d",
               overflows, (long long)last, ranks - 1);
}

ls_status lsi_run_begin(lsi_run *r, ls_err *err)
{
    const double began = ls_clock_seconds();
    const char *overflows;
    int64_t per_epoch;
    ls_status st = LS_OK;

    LS_TRY(ls_team_fail_once(r->o->comm, ls_fault_overflows(&overflows, err), "reading settings", err));
    warn_of_absent_ranks(r, overflows);
    LS_TRY(agree_on_beginning(r, err));
    if (r->o->before != NULL && !r->anew) LS_TRY(ls_resume_check(r->o->before, r->x, err));
    LS_TRY(lsi_run_open_data(r, err));
    LS_TRY(ls_best_open(&r->best, r->x->trial, r->cfg, err));
    if (r->anew) LS_TRY(ls_init_weights(&r->session, &r->summary.init, err));
    LS_TRY(open_rundir(r, err));
    if (r->nothing) return LS_OK;
    if (r->session.shards != NULL) LS_TRY(ls_shards_prepare(r->session.shards, err));
    LS_TRY(ls_train_loader(&r->session, &r->update, r->train, lsi_run_samples(r), false, &r->loader, err));
    r->stepper = (ls_stepper){.session = &r->session,
                              .schedule = &r->schedule,
                              .data = r->train,
                              .seed = (uint64_t)ls_config_int(r->cfg, "seed"),
                              .update = r->update.samples,
                              .ruler = &r->ruler,
                              .ahead = true};
    LS_TRY(ls_stepper_count_skips(&r->stepper, err));
    r->stepper.overflows = overflows;
    if (ls_config_int(r->cfg, "train.trace") > 0)
        LS_TRY(ls_trace_open(&r->stepper.trace, r->dir.path, r->session.rank,
                             ls_config_int(r->cfg, "train.trace"), err));
    open_ledger(r, began);
    open_agenda(r);
    r->session.stop = r->o->stop;
    open_gauges(r);
    if (!lsi_run_leads(r)) return LS_OK;
    per_epoch = ls_ruler_epoch_steps(&r->ruler);
    LS_TRY(ls_reporter_open(&r->report,
                            &(ls_reporter_options){.experiment = r->x,
                                                   .folder = r->dir.path,
                                                   .run = r->o->run,
                                                   .resumed_at = r->resumed ? r->c.step : -1,
                                                   .validates = (r->c.owed >> LS_DUE_VALIDATE & 1) != 0,
                                                   .before = r->o->before,
                                                   .step_samples = r->ruler.step_samples,
                                                   .total_steps = updates_in_all(r),
                                                   .n_epochs = (r->total_steps + per_epoch - 1) / per_epoch,
                                                   .epoch_samples = r->ruler.epoch_samples,
                                                   .batch = r->update.samples,
                                                   .schedule = &r->schedule,
                                                   .session = &r->session,
                                                   .test = r->test,
                                                   .val = r->val,
                                                   .init = r->summary.init,
                                                   .log = r->log,
                                                   .json = r->o->json,
                                                   .quiet = r->o->quiet},
                            err));
    lsi_run_summarise_running(r);
out:
    return st;
}

/* -- leaving -----------------------------------------------------------------------------------------------
 */

void lsi_run_tell_others(const lsi_run *r, const ls_err *why)
{
    ls_comm *c = r->o->comm; /* the session's, also before there is one */

    /* Those two all ranks have found, and none waits for another. */
    if (why->status == LS_DISAGREE || why->status == LS_DIVERGED) return;
    if (c != NULL && ls_comm_size(c) > 1) ls_comm_abort(c, why->text);
}

void lsi_run_release(lsi_run *r)
{
    ls_stepper_release(&r->stepper);
    lsi_run_end_gauges(r);
    ls_reporter_close(r->report);
    ls_samples_close(r->samples, NULL);
    ls_loader_destroy(r->loader);
    ls_ckpt_writer_destroy(r->writer);
    ls_runlog_close(r->log); /* after everything that may have something to say */
    ls_session_release(&r->session);
    ls_dataset_close(r->train);
    ls_dataset_close(r->test);
    ls_dataset_close(r->val);
    ls_summary_release(&r->summary);
}
