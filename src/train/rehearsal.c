/* rehearsal.c: steps on made-up or on real data, for measuring. */
#include "train/rehearsal.h"

#include <string.h>

#include "base/alloc.h"
#include "train/evaluate.h"
#include "train/shards.h"
#include "train/team.h"

/* The samples of a batch that are this rank's: [*lo, *hi). */
static void share(const ls_rehearsal *r, int64_t *lo, int64_t *hi)
{
    ls_loader_share(r->update.global, r->update.shards, r->session.rank, r->session.ranks, lo, hi, NULL,
                    NULL);
}

int64_t ls_rehearsal_samples(const ls_rehearsal *r)
{
    int64_t lo, hi;

    share(r, &lo, &hi);
    return (hi - lo) * (r->update.samples / r->update.global);
}

/* The samples of this rank, as many as it takes: those that the plan's inputs were given, over and over. */
static ls_status make_fields(ls_rehearsal *r, ls_err *err)
{
    const ls_batch_plan *p = ls_session_usual(&r->session, 0);
    const ls_field *fields;
    int64_t lo, n;
    ls_status st = LS_OK;

    share(r, &lo, &n);
    n -= lo;
    ls_step_write_synthetic(p->step, p->plan, (uint64_t)ls_config_int(r->session.cfg, "seed"));
    r->n_fields = ls_dataset_fields(r->data, &fields);
    for (int i = 0; i < r->n_fields; i++) {
        const size_t bytes = ls_dataset_field_bytes(r->data, i);
        const ls_tensor *from = ls_plan_input(p->plan, fields[i].name);
        st = ls_staging_alloc(&r->fields[i], r->session.dev, bytes * (size_t)n + 1, err);
        if (st != LS_OK) return ls_fail_in(err, st, "no memory for %lld samples", (long long)n);
        for (int64_t k = 0; k < n; k++)
            LS_TRY(ls_tensor_read(from, (size_t)(k % p->batch) * bytes,
                                  (char *)r->fields[i] + (size_t)k * bytes, bytes, err));
    }
out:
    return st;
}

static ls_status make_data(ls_rehearsal *r, ls_err *err)
{
    ls_field fields[LS_SESSION_INPUTS];
    const ls_data_source source = {.kind = "synthetic",
                                   .count = 1,
                                   .fields = fields,
                                   .n_fields = ls_session_fields(&r->session, fields)};
    ls_status st = ls_dataset_open(&r->data, &source, err);

    return st == LS_OK ? make_fields(r, err) : st;
}

/* Before anything is compiled: it may take long for a batch that the set does not have. */
static ls_status open_data(ls_rehearsal *r, const ls_experiment *x, int ranks, ls_err *err)
{
    ls_needs needs;
    ls_status st = LS_OK;

    LS_TRY(ls_needs_find(&needs, x->trial, x->cfg, err));
    LS_TRY(ls_train_data(x, &needs, LS_SPLIT_TRAIN, &r->data, err));
    LS_TRY(ls_update_check(&r->update, x->cfg, ranks, ls_dataset_count(r->data), err));
out:
    ls_needs_release(&needs);
    return st;
}

static ls_status load_data(ls_rehearsal *r, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(ls_session_check_data(&r->session, r->data, err));
    LS_TRY(ls_train_loader(&r->session, &r->update, r->data, 0, true, &r->loader, err));
out:
    return st;
}

ls_status ls_rehearsal_open(ls_rehearsal *r, const ls_experiment *x, int threads, bool real, ls_comm *comm,
                            ls_err *err)
{
    const double lr = ls_config_real(x->cfg, "optimizer.lr");
    const int ranks = comm != NULL ? ls_comm_size(comm) : 1;
    ls_session_options options;
    ls_status st = LS_OK;

    *r = (ls_rehearsal){.update = ls_update_of(x->cfg, ranks), .schedule = {.base = lr, .peak = lr}};
    LS_TRY(ls_team_agree(comm, x, err));
    options = ls_update_options(&r->update, x->cfg);
    options.threads = threads;
    options.comm = comm;
    LS_TRY(
        ls_team_fail_once(comm, ls_update_check_settings(&r->update, x->cfg, err), "reading settings", err));
    if (real) LS_TRY(ls_team_fail_once(comm, open_data(r, x, ranks, err), "opening the data", err));
    LS_TRY(ls_session_open(&r->session, x->trial, x->cfg, &options, err));
    ls_team_watch(comm, x->cfg);
    if (r->session.shards != NULL) LS_TRY(ls_shards_prepare(r->session.shards, err));
    LS_TRY(ls_team_agree_on_plans(r->session.comm, &r->session, err));
    LS_TRY(real ? load_data(r, err) : make_data(r, err));
    r->ruler = (ls_ruler){INT64_MAX / 2, r->update.samples}; /* no update is cut short */
    r->stepper = (ls_stepper){.session = &r->session,
                              .schedule = &r->schedule,
                              .data = r->data,
                              .seed = (uint64_t)ls_config_int(x->cfg, "seed"),
                              .update = r->update.samples,
                              .ruler = &r->ruler,
                              .ahead = true};
out:
    return st;
}

void ls_rehearsal_release(ls_rehearsal *r)
{
    ls_stepper_release(&r->stepper);
    ls_loader_destroy(r->loader);
    for (int i = 0; i < r->n_fields; i++) ls_staging_free(r->session.dev, r->fields[i]);
    ls_session_release(&r->session);
    ls_dataset_close(r->data);
    *r = (ls_rehearsal){0};
}

/* For whoever watches whether the ranks get on, as in training. */
static void doing(const ls_rehearsal *r, ls_comm_doing what)
{
    if (r->session.comm != NULL) ls_comm_set_doing(r->session.comm, what);
}

static ls_status load_batch(ls_rehearsal *r, ls_batch *b, ls_err *err)
{
    ls_status st;

    doing(r, LS_COMM_LOADING);
    st = ls_loader_next(r->loader, b, err);
    doing(r, LS_COMM_STEPPING);
    return st;
}

/* The batch that begins `at` samples into the update. */
static ls_status next_batch(ls_rehearsal *r, int64_t at, ls_batch *b, ls_err *err)
{
    int64_t lo, hi;

    if (r->loader != NULL) return load_batch(r, b, err);
    share(r, &lo, &hi);
    *b = (ls_batch){.fields = r->fields,
                    .n = hi - lo,
                    .position = at + lo,
                    .global_position = at,
                    .global_n = r->update.global};
    return LS_OK;
}

/* The step before the one that was begun last is over when this returns, as in training. */
static ls_status settle_before(ls_rehearsal *r, ls_err *err)
{
    const ls_status st =
        r->before.plan != NULL ? ls_stepper_settle(&r->stepper, &r->before, &r->c, &r->c.now, err) : LS_OK;

    r->before = r->stepper.left;
    return st;
}

ls_status ls_rehearsal_step(void *rehearsal, bool *last, ls_err *err)
{
    ls_rehearsal *r = rehearsal;
    const ls_session *s = &r->session;
    bool done = false;
    double lr;
    ls_status st = LS_OK;

    r->stepper.control = ls_control_make(0, *last);
    if (s->comm != NULL) ls_comm_note_step(s->comm, r->c.step + 1);
    doing(r, LS_COMM_STEPPING);
    for (int64_t at = 0; at < r->update.samples; at += r->update.global) {
        ls_batch b;
        LS_TRY(next_batch(r, at, &b, err));
        /* A plan for another size may take the place of the one whose step is on its way. */
        if (r->before.plan != NULL && r->before.batch != b.n) {
            LS_TRY(ls_stepper_settle(&r->stepper, &r->before, &r->c, &r->c.now, err));
            r->before = (ls_underway){0};
        }
        LS_TRY(ls_stepper_take(&r->stepper, &r->c, &b, &done, &lr, err));
        LS_TRY(settle_before(r, err));
    }
    r->c.sums = (ls_metric_sums){0};
    *last = ls_control_stop(&r->stepper.control);
    if (*last) { /* nothing of it is left on its way */
        r->stepper.left = (ls_underway){0};
        LS_TRY(settle_before(r, err));
        LS_TRY(ls_stepper_complete(&r->stepper, err));
    }
    doing(r, LS_COMM_AT_LENGTH);
out:
    return st;
}

ls_status ls_rehearsal_rest(void *rehearsal, ls_err *err)
{
    ls_rehearsal *r = rehearsal;

    return ls_stepper_complete(&r->stepper, err);
}

ls_spent ls_rehearsal_spent(void *rehearsal)
{
    const ls_rehearsal *r = rehearsal;
    const ls_comm *c = r->session.comm;

    return (ls_spent){.exposed_s = c != NULL ? ls_comm_exposed_seconds(c) : 0,
                      .waiting_s = c != NULL ? ls_comm_waiting_seconds(c) : 0,
                      .data_s = r->loader != NULL ? ls_loader_wait_seconds(r->loader) : 0};
}
