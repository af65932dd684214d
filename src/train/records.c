/* records.c: what trials record, built once per shape. */
#include "train/records.h"

#include <stdio.h>

#include "base/alloc.h"
#include "graph/graph.h"

static ls_status set_batch(ls_config *cfg, int64_t batch, ls_err *err)
{
    char text[64];

    snprintf(text, sizeof text, "batch.per_rank=%lld", (long long)batch);
    return ls_config_set(cfg, text, err);
}

ls_status ls_records_build(ls_step **out, const ls_trial *trial, ls_config *cfg, const ls_build *how,
                           int64_t batch, ls_err *err)
{
    const int64_t usual = ls_config_int(cfg, "batch.per_rank");
    ls_status st = LS_OK, back;

    *out = NULL;
    LS_TRY(set_batch(cfg, batch, err));
    st = ls_trial_build_as(out, trial, cfg, how, err);
    /* Also after a failure: the settings are the run's, and others go on reading them. */
    back = set_batch(cfg, usual, err);
    if (st == LS_OK) st = back;
out:
    return st;
}

ls_status ls_records_find(ls_records *r, const ls_trial *trial, ls_config *cfg, const ls_build *how,
                          int64_t batch, ls_record **out, ls_err *err)
{
    ls_record *x;
    ls_status st = LS_OK;

    for (int i = 0; i < r->n; i++) {
        x = *out = r->kept[i];
        if (x->mode != how->mode || x->images != how->images || x->batch != batch) continue;
        x->users++;
        return LS_OK;
    }
    *out = NULL;
    x = ls_alloc(LS_MEM_GRAPH, sizeof *x);
    if (x == NULL) return ls_fail(err, LS_NOMEM, "step: no memory");
    *x = (ls_record){.mode = how->mode, .images = how->images, .batch = batch, .users = 2};
    st = ls_records_build(&x->step, trial, cfg, how, batch, err);
    if (st == LS_OK) x->graph = ls_step_graph_take(x->step);
    if (st != LS_OK) {
        x->users = 1;
        ls_record_release(x);
        return st;
    }
    /* Odd sizes only follow skipped samples; the last place is theirs in turn. */
    if (r->n == LS_RECORDS) ls_record_release(r->kept[--r->n]);
    r->kept[r->n++] = *out = x;
    return LS_OK;
}

void ls_record_release(ls_record *x)
{
    if (x == NULL || --x->users > 0) return;
    ls_graph_destroy(x->graph);
    ls_step_destroy(x->step);
    ls_free(x);
}

void ls_records_release(ls_records *r)
{
    while (r->n > 0) ls_record_release(r->kept[--r->n]);
}
