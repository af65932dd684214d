/* rehearsal.c: steps on made-up data. */
#include "train/rehearsal.h"

#include <string.h>

#include "base/alloc.h"
#include "train/shards.h"
#include "train/team.h"

/* The samples of this rank, as many as it takes: those that the plan's inputs were given, over and over. */
static ls_status make_fields(ls_rehearsal *r, int64_t n, ls_err *err)
{
    const ls_batch_plan *p = &r->session.plans[0];
    const ls_field *fields;

    ls_step_write_synthetic(p->step, p->plan, (uint64_t)ls_config_int(r->session.cfg, "seed"));
    r->n_fields = ls_dataset_fields(r->data, &fields);
    for (int i = 0; i < r->n_fields; i++) {
        const size_t bytes = ls_dataset_field_bytes(r->data, i);
        const char *from = ls_plan_input(p->plan, fields[i].name)->data;
        r->fields[i] = ls_alloc(LS_MEM_CLI, bytes * (size_t)n + 1);
        if (r->fields[i] == NULL) return ls_fail(err, LS_NOMEM, "no memory for %lld samples", (long long)n);
        for (int64_t k = 0; k < n; k++)
            memcpy((char *)r->fields[i] + (size_t)k * bytes, from + (size_t)(k % p->batch) * bytes, bytes);
    }
    return LS_OK;
}

static ls_status open_data(ls_rehearsal *r, ls_err *err)
{
    ls_field fields[LS_SESSION_INPUTS];
    const ls_data_source source = {.kind = "synthetic",
                                   .count = 1,
                                   .fields = fields,
                                   .n_fields = ls_session_fields(&r->session, fields)};

    return ls_dataset_open(&r->data, &source, err);
}

ls_status ls_rehearsal_open(ls_rehearsal *r, const ls_experiment *x, const char *device, int threads,
                            ls_comm *comm, ls_err *err)
{
    const double lr = ls_config_real(x->cfg, "optimizer.lr");
    const int ranks = comm != NULL ? ls_comm_size(comm) : 1;
    ls_session_options options;
    int64_t lo, hi;
    ls_status st = LS_OK;

    *r = (ls_rehearsal){.update = ls_update_of(x->cfg, ranks), .schedule = {.base = lr, .peak = lr}};
    options = ls_update_options(&r->update, x->cfg);
    options.device = device;
    options.threads = threads;
    options.comm = comm;
    LS_TRY(ls_session_open(&r->session, x->trial, x->cfg, &options, err));
    if (r->session.shards != NULL) LS_TRY(ls_shards_prepare(r->session.shards, err));
    LS_TRY(ls_team_agree(r->session.comm, x, ls_plan_hash(r->session.plans[0].plan), err));
    LS_TRY(open_data(r, err));
    ls_loader_share(r->update.global, r->update.shards, r->session.rank, ranks, &lo, &hi, NULL, NULL);
    LS_TRY(make_fields(r, hi - lo, err));
    r->stepper = (ls_stepper){.session = &r->session,
                              .schedule = &r->schedule,
                              .data = r->data,
                              .seed = (uint64_t)ls_config_int(x->cfg, "seed"),
                              .update = r->update.samples,
                              .epoch_samples = r->update.samples};
out:
    return st;
}

void ls_rehearsal_release(ls_rehearsal *r)
{
    ls_stepper_release(&r->stepper);
    ls_session_release(&r->session);
    ls_dataset_close(r->data);
    for (int i = 0; i < r->n_fields; i++) ls_free(r->fields[i]);
    *r = (ls_rehearsal){0};
}

ls_status ls_rehearsal_step(void *rehearsal, bool *last, ls_err *err)
{
    ls_rehearsal *r = rehearsal;
    const ls_session *s = &r->session;
    ls_batch b = {.fields = r->fields, .global_n = r->update.global};
    int64_t lo, hi;
    bool done = false;
    double lr;
    ls_status st = LS_OK;

    ls_loader_share(b.global_n, r->update.shards, s->rank, s->ranks, &lo, &hi, NULL, NULL);
    b.n = hi - lo;
    r->stepper.stop = *last;
    if (s->comm != NULL) ls_comm_note_step(s->comm, r->c.step);
    for (int64_t at = 0; at < r->update.samples; at += b.global_n) {
        b.global_position = at;
        b.position = at + lo;
        LS_TRY(ls_stepper_take(&r->stepper, &r->c, &b, &done, &lr, err));
    }
    r->c.sums = (ls_metric_sums){0};
    *last = r->stepper.stop;
out:
    return st;
}

double ls_rehearsal_exposed_s(void *rehearsal)
{
    const ls_session *s = &((ls_rehearsal *)rehearsal)->session;

    return s->comm != NULL ? ls_comm_exposed_seconds(s->comm) : 0;
}
