/* stepper.c: one batch: feed, run, count; and the update when it is due, stage by stage. */
#include "train/stepper.h"

#include <math.h>

#include "base/alloc.h"
#include "exec/results.h"
#include "exec/state.h"
#include "train/aside.h"
#include "train/evaluate.h"
#include "train/fault.h"
#include "train/shards.h"
#include "train/team.h"

static ls_status start_plan(ls_stepper *s, ls_plan *p, ls_err *err)
{
    return s->profile != NULL ? ls_profile_run(s->profile, p, err) : ls_trace_start(s->trace, p, err);
}

static ls_status run_plan(ls_stepper *s, ls_plan *p, ls_err *err)
{
    const ls_status st = start_plan(s, p, err);

    return st == LS_OK ? ls_plan_join(p, err) : st;
}

/* Samples of the update that batch b belongs to. */
static int64_t update_samples(const ls_stepper *s, const ls_counters *c, const ls_batch *b)
{
    const int64_t left = s->ruler->epoch_samples - (b->global_position - c->pending);

    return left < s->update ? left : s->update;
}

/* A rank without samples (an epoch ends with fewer than there are ranks, or all were damaged) takes part with
 * one made of zeros that has no weight: plans exchange gradients at places of their own. */
static int64_t plan_batch(const ls_batch *b)
{
    return b->n > 0 ? b->n : 1;
}

/* Whether damaged samples are left out, so that a rank does not know how many there are: only its own. */
static bool must_ask(const ls_stepper *s)
{
    const ls_session *x = s->session;

    return x->comm != NULL && x->shards == NULL && ls_config_int(x->cfg, "data.on_error") == LS_ON_ERROR_SKIP;
}

/* The samples of all ranks, of `samples` that there should be; this one has `mine`.  A mean over those that
 * should be there would shrink gradients, metrics and running statistics.  Collective where ranks must ask.
 * Where there are none, `control` (may be NULL) becomes what all ranks tell: what would bring it is not run.
 */
static ls_status count_samples(ls_stepper *s, int64_t mine, int64_t samples, ls_control *control,
                               int64_t *present, ls_err *err)
{
    const ls_session *session = s->session;
    ls_metric_sums all = {.samples = mine};
    ls_control told = s->control;
    ls_status st = LS_OK;

    *present = session->comm == NULL || session->shards != NULL ? mine : samples;
    if (!must_ask(s)) return LS_OK;
    LS_TRY(ls_team_sum(session->comm, &all, &told, err));
    *present = all.samples;
    if (all.samples == 0 && control != NULL) *control = told;
out:
    return st;
}

/* Each loader counts the damaged samples of its own rank: together they may be more than are to pass. */
static ls_status book_damaged(ls_stepper *s, int64_t epoch, int64_t n, ls_err *err)
{
    const int64_t most = ls_config_int(s->session->cfg, "data.max_skipped");
    ls_status st = LS_OK;

    if (!must_ask(s)) return LS_OK;
    if (epoch != s->damaged_epoch) s->damaged = 0;
    s->damaged_epoch = epoch;
    s->damaged += n;
    if (n == 0 || s->damaged <= most) return LS_OK;
    if (s->session->rank == 0) /* all know, and one says it */
        st = ls_fail(err, LS_DATA,
                     "%lld damaged samples of all ranks in epoch %lld are more than the %lld that "
                     "data.max_skipped lets pass; raise it, or mend them (`lockstep data verify` names all)",
                     (long long)s->damaged, (long long)epoch, (long long)most);
    return ls_team_fail_once(s->session->comm, st, "counting damaged samples", err);
}

static bool overflows(const ls_stepper *s, const ls_counters *c)
{
    return ls_fault_is_listed(s->overflows, c->step + 1, s->session->rank);
}

/* Gets ready for b's samples, of `present` on all ranks, before which the update has `pending`; each draws
 * its random numbers by its place in the update, in every stage the same. */
static ls_status feed(ls_stepper *s, int stage, const ls_counters *c, const ls_batch *b, int64_t pending,
                      int64_t present, ls_batch_plan **p, ls_err *err)
{
    const ls_field *fields;
    const int n_fields = ls_dataset_fields(s->data, &fields);
    const int64_t offset = pending + b->position - b->global_position;
    ls_status st = ls_session_plan(s->session, LS_TRAIN, stage, plan_batch(b), p, err);

    if (st != LS_OK) return st;
    ls_session_feed(*p, fields, n_fields, b->fields);
    ls_session_write_scalar(*p, "rank.weight", (double)b->n / (double)present);
    ls_session_write_scalar(*p, "rank.samples", (double)present);
    ls_step_write_rng((*p)->plan, s->seed, (uint32_t)c->step, (uint32_t)offset);
    /* Gradients of a rank without samples weigh nothing, so nothing can be wrong with them. */
    if (s->overflows != NULL)
        ls_session_write_scalar(*p, "loss_scale", b->n > 0 && overflows(s, c) ? INFINITY : 1);
    return LS_OK;
}

/* -- updates that are left out ------------------------------------------------------------------------------
 */

/* What a plan that makes an update must know: of a step on its way the host does not know yet whether it was
 * left out, so it gives the rate for both cases.  Of a rank without samples nobody wants to know whether
 * what it computes in their place is finite. */
static void write_rates(const ls_stepper *s, const ls_batch_plan *p, double lr, bool samples)
{
    const double base = s->schedule->base;

    ls_session_write_lr(s->session, p, base > 0 ? lr / base : 0, base > 0 ? s->again / base : 0);
    ls_session_write_scalar(p, LS_SKIPS_KNOWN, (double)s->skips);
    ls_found_mark(p->plan, samples ? s->session->rank : -1);
}

/* An update of so many samples is over. */
static void note_found(ls_stepper *s, ls_counters *c, const ls_found *f, int64_t samples)
{
    ls_strategy how = {0};

    s->found = *f;
    if (f->scale != 0 && ls_session_compute(s->session->cfg) == LS_F16) c->loss_scale = f->scale;
    if (f->parameter == 0) return;
    ls_session_guard(s->session->cfg, &how);
    if (how.guard != LS_GUARD_SKIP) return;
    s->skips++;
    c->skipped++;
    c->skipped_samples += samples;
}

void ls_stepper_join(const ls_stepper *s, ls_metric_sums *sums, const ls_metric_sums *now)
{
    /* Of a run that is to go on over such steps, one of them would spoil the mean of all others. */
    if (s->found.scale == 0 || ls_metric_all_finite(now)) ls_metric_join(sums, now);
}

ls_status ls_stepper_count_skips(ls_stepper *s, ls_err *err)
{
    const ls_tensor *t = ls_state_find(s->session->state, LS_SKIPPED_VAR);
    int32_t n = 0;
    ls_status st = LS_OK;

    if (t != NULL) LS_TRY(ls_tensor_read(t, 0, &n, sizeof n, err));
    s->skips = n;
out:
    return st;
}

/* -- a whole step -------------------------------------------------------------------------------------------
 */

static ls_status whole_step(ls_stepper *s, ls_counters *c, const ls_batch *b, double lr, ls_err *err)
{
    const bool ask = must_ask(s);
    ls_batch_plan *p;
    int64_t present;
    ls_status st = LS_OK;

    LS_TRY(count_samples(s, b->n, b->global_n, &s->control, &present, err));
    LS_TRY(book_damaged(s, b->epoch, b->global_n - present, err));
    if (present == 0) return LS_OK; /* all were damaged: there is nothing to learn */
    LS_TRY(feed(s, 0, c, b, c->pending, present, &p, err));
    write_rates(s, p, ls_plan_carries(p->plan) ? s->carried : lr, b->n > 0);
    s->carried = lr;
    ls_session_write_scalar(p, "gradient.weight", (double)b->n / (double)present);
    ls_session_write_control(p, &s->control);
    /* Before ranks ask one another again, nothing of this step may be on its way between them. */
    LS_TRY(ask ? run_plan(s, p->plan, err) : start_plan(s, p->plan, err));
    s->left = (ls_underway){.plan = p->plan, .run = ls_plan_runs(p->plan), .samples = present, .batch = b->n};
    s->left.update = s->begun = b->global_n;
    LS_TRY(ls_session_read_control(p, &s->control, err));
    if (ask || !s->ahead || !ls_plan_is_queued(p->plan))
        LS_TRY(ls_stepper_settle(s, &s->left, c, &c->now, err));
out:
    return st;
}

ls_status ls_stepper_complete(ls_stepper *s, ls_err *err)
{
    const ls_batch_plan *p;

    if (s->session->shards != NULL || s->session->split) return LS_OK;
    p = ls_session_usual(s->session, 0);
    if (!ls_plan_carries(p->plan)) return LS_OK;
    write_rates(s, p, s->carried, true);
    return ls_plan_complete(p->plan, err);
}

ls_status ls_stepper_settle(ls_stepper *s, ls_underway *u, ls_counters *c, ls_metric_sums *now, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(ls_collect_results(u->plan, u->run, u->samples, now, err));
    LS_TRY(ls_found_read(&u->found, u->plan, u->run, err));
    note_found(s, c, &u->found, u->update);
out:
    u->plan = NULL;
    return st;
}

/* Running statistics that this rank moves by what its own samples are, and not by those of all. */
static bool is_statistic(const ls_session *s, int i)
{
    return ls_state_role(s->state, i) == LS_VAR_BUFFER && !ls_config_bool(s->cfg, "parallel.sync_batchnorm");
}

/* For others, who gather its pieces of the weights: a rank without samples runs the plan on one that is made
 * up.  Its gradients weigh nothing, and running statistics are put back to what they were. */
static ls_status run_for_others(ls_stepper *s, ls_plan *p, ls_err *err)
{
    char *kept = ls_aside_room(s->session, is_statistic);
    ls_status st = LS_OK;

    if (kept == NULL) return ls_fail(err, LS_NOMEM, "no memory for running statistics");
    LS_TRY(ls_aside_take(s->session, is_statistic, kept, err));
    LS_TRY(run_plan(s, p, err));
    LS_TRY(ls_aside_put_back(s->session, is_statistic, kept, err));
out:
    ls_free(kept);
    return st;
}

/* Adds the gradients of b's samples, of `samples` in the update, to those of the stage. */
static ls_status add_gradients(ls_stepper *s, int stage, const ls_counters *c, const ls_batch *b,
                               int64_t pending, int64_t samples, ls_metric_sums *now, ls_err *err)
{
    ls_batch_plan *p;
    int64_t present = b->global_n;
    ls_status st = LS_OK;

    if (b->n == 0 && !s->session->in_step) return LS_OK;
    if (s->session->in_step) LS_TRY(count_samples(s, b->n, b->global_n, NULL, &present, err));
    if (present == 0) return LS_OK;
    LS_TRY(feed(s, stage, c, b, pending, present, &p, err));
    ls_session_write_scalar(p, "gradient.weight", (double)b->n / (double)samples);
    ls_session_write_scalar(p, "gradient.keep", ls_state_pending(s->session->state) ? 1 : 0);
    LS_TRY(b->n > 0 ? run_plan(s, p->plan, err) : run_for_others(s, p->plan, err));
    ls_state_set_pending(s->session->state, true);
    if (b->n > 0) LS_TRY(ls_collect_metrics(p->plan, b->n, now, err));
out:
    return st;
}

/* The gradients of b's samples in the reproducible mode, where one batch is an update. */
static ls_status run_shards(ls_stepper *s, int stage, const ls_counters *c, const ls_batch *b, ls_err *err)
{
    const ls_shard_work w = {.mode = LS_TRAIN,
                             .stage = stage,
                             .data = s->data,
                             .b = b,
                             .seed = s->seed,
                             .step = c->step,
                             .faults = s->overflows != NULL,
                             .overflows = overflows(s, c)};

    return ls_shards_run(s->session->shards, &w, NULL, NULL, err);
}

/* All batches of the update once more, with the parameters as the stages before have left them. */
static ls_status next_stage(ls_stepper *s, int stage, ls_counters *c, const ls_batch *b, int64_t samples,
                            ls_err *err)
{
    const ls_session *session = s->session;
    ls_metric_sums now = {0};
    ls_status st = LS_OK;

    if (session->shards != NULL) return run_shards(s, stage, c, b, err);
    ls_declare_metrics(session->plans[stage].plan, &now);
    for (int i = 0; i < s->kept.n; i++) {
        const ls_kept_batch *k = s->kept.batches[i];
        LS_TRY(add_gradients(s, stage, c, &k->b, k->pending, samples, &now, err));
    }
    now.samples = 0; /* they are counted already */
    ls_metric_join(&c->now, &now);
out:
    return st;
}

/* What this rank has collected of an update of so many samples, and what all have. */
static void write_metrics(const ls_batch_plan *p, const ls_metric_sums *now, int64_t samples)
{
    float slot[LS_METRIC_SLOTS] = {0};

    _Static_assert((int)LS_METRIC_SLOTS >= (int)LS_MAX_METRICS, "every metric has its place");
    for (int i = 0; i < now->n; i++) slot[i] = (float)(now->sum[i] / (double)samples);
    ls_plan_write_input(p->plan, LS_METRICS, 0, slot, sizeof slot);
}

static ls_status read_metrics(const ls_batch_plan *p, ls_metric_sums *now, int64_t samples, ls_err *err)
{
    const ls_tensor *t = ls_plan_fetch(p->plan, LS_METRICS);
    float slot[LS_METRIC_SLOTS];
    ls_status st;

    if (t == NULL) return LS_OK;
    st = ls_tensor_read(t, 0, slot, sizeof slot, err);
    for (int i = 0; st == LS_OK && i < now->n; i++) now->sum[i] = (double)slot[i] * (double)samples;
    return st;
}

/* What the plan of an update tells: metrics of shards, or of the batches of all ranks. */
static ls_status take_metrics(const ls_stepper *s, const ls_batch_plan *p, ls_metric_sums *now,
                              int64_t samples, ls_err *err)
{
    const int64_t counted = now->samples;
    ls_status st = LS_OK;

    if (s->session->shards == NULL) return read_metrics(p, now, samples, err);
    st = ls_collect_metrics(p->plan, counted, now, err);
    now->samples = counted;
    return st;
}

/* Damaged samples may have been left out: the loss scale makes the sum a mean over those that were not.
 * `found`: what stages before have found, and then what they and this one have. */
static ls_status update(ls_stepper *s, int stage, ls_counters *c, int64_t mine, int64_t samples, double lr,
                        ls_found *found, ls_err *err)
{
    const ls_batch_plan *p = &s->session->updates[stage];
    ls_status st = LS_OK;

    if (!ls_state_pending(s->session->state) && s->session->shards == NULL)
        LS_TRY(ls_session_clear_sums(s->session, err)); /* nothing from this rank */
    write_rates(s, p, lr, true);
    ls_session_write_scalar(p, "loss_scale", (double)c->now.samples / (double)samples);
    ls_session_write_scalar(p, "rank.weight", (double)mine / (double)c->now.samples);
    write_metrics(p, &c->now, samples);
    ls_session_write_control(p, &s->control);
    ls_session_write_scalar(p, LS_GUARD_BEFORE, (double)found->parameter);
    LS_TRY(run_plan(s, p->plan, err));
    LS_TRY(ls_found_read(found, p->plan, ls_plan_runs(p->plan), err));
    ls_state_set_pending(s->session->state, false);
    LS_TRY(take_metrics(s, p, &c->now, samples, err));
    LS_TRY(ls_session_read_control(p, &s->control, err));
out:
    return st;
}

/* The first stage's gradients are there; b is the update's last batch. */
static ls_status finish_update(ls_stepper *s, ls_counters *c, const ls_batch *b, int64_t samples, double lr,
                               ls_err *err)
{
    const int64_t mine = c->now.samples;
    ls_found found = {0};
    ls_status st = LS_OK;

    LS_TRY(count_samples(s, mine, samples, &s->control, &c->now.samples, err));
    LS_TRY(book_damaged(s, b->epoch, samples - c->now.samples, err));
    if (c->now.samples == 0) goto out; /* all were damaged: there is nothing to learn */
    for (int stage = 0; stage < s->session->n_stages; stage++) {
        if (stage > 0) LS_TRY(next_stage(s, stage, c, b, samples, err));
        LS_TRY(update(s, stage, c, mine, samples, lr, &found, err));
    }
    s->begun = samples;
    note_found(s, c, &found, samples);
out:
    ls_kept_clear(&s->kept);
    return st;
}

/* The first stage of one batch of an update. */
static ls_status first_stage(ls_stepper *s, ls_counters *c, const ls_batch *b, int64_t samples, ls_err *err)
{
    ls_session *session = s->session;
    ls_status st = LS_OK;

    if (session->shards != NULL) {
        c->now.samples += b->global_n;
        return run_shards(s, 0, c, b, err);
    }
    if (c->pending == 0) ls_declare_metrics(session->plans[0].plan, &c->now);
    LS_TRY(add_gradients(s, 0, c, b, c->pending, samples, &c->now, err));
    if (session->n_stages > 1) LS_TRY(ls_kept_add(&s->kept, s->data, b, plan_batch(b), c->pending, err));
out:
    return st;
}

/* The rate of the update that batch b belongs to, if so many samples were in updates that were left out. */
static double rate_of(const ls_stepper *s, const ls_counters *c, const ls_batch *b, int64_t skipped)
{
    const int64_t seen = c->epoch * s->ruler->epoch_samples + b->global_position - c->pending - skipped;

    return ls_lr_schedule_at(s->schedule, &c->plateau, ls_ruler_steps(s->ruler, seen),
                             (double)s->update / (double)s->ruler->step_samples);
}

ls_status ls_stepper_take(ls_stepper *s, ls_counters *c, const ls_batch *b, bool *done, double *lr,
                          ls_err *err)
{
    const int64_t samples = update_samples(s, c, b);
    ls_status st = LS_OK;

    *done = c->pending + b->global_n >= samples;
    *lr = rate_of(s, c, b, c->skipped_samples);
    s->again = rate_of(s, c, b, c->skipped_samples + s->begun);
    s->left = (ls_underway){0};
    if (c->pending == 0) c->now = (ls_metric_sums){0};
    LS_TRY(s->session->split ? first_stage(s, c, b, samples, err) : whole_step(s, c, b, *lr, err));
    c->pending += b->global_n;
    c->position = b->global_position + b->global_n;
    if (!*done) return LS_OK;
    c->pending = 0;
    if (s->session->split) LS_TRY(finish_update(s, c, b, samples, *lr, err));
    *done = s->left.plan != NULL || c->now.samples > 0;
    if (!*done) return LS_OK;
    ls_stepper_join(s, &c->sums, &c->now);
    c->step++;
out:
    return st;
}

void ls_stepper_release(ls_stepper *s)
{
    ls_trace_close(s->trace);
    ls_kept_release(&s->kept);
}
