/* records.h: what trials record, built once per shape.
 *
 * All plans for batches of one size are made from one record: those of every stage, of gradients and updates,
 * and of every thread that computes shards. */
#ifndef LS_TRAIN_RECORDS_H
#define LS_TRAIN_RECORDS_H

#include "lockstep/trial.h"

/* A trial built for batches of one size. */
typedef struct ls_record {
    ls_step *step;
    ls_graph *graph; /* to be cloned */
    ls_mode mode;
    bool images;
    int64_t batch;
    int users; /* it goes with the last of them */
} ls_record;

enum { LS_RECORDS = 8 };
/* Those that are kept for later plans; {0} to begin with. */
typedef struct ls_records {
    ls_record *kept[LS_RECORDS];
    int n;
} ls_records;

/* Builds the trial for batches of so many samples.  Trials take their batch from the setting batch.per_rank,
 * which afterwards is what it was, also where the trial cannot be built.  *out is the caller's, also then. */
ls_status ls_records_build(ls_step **out, const ls_trial *trial, ls_config *cfg, const ls_build *how,
                           int64_t batch, ls_err *err) LS_MUST_CHECK;
/* The record for batches of so many samples; it is made where there is none.  Release it after use. */
ls_status ls_records_find(ls_records *r, const ls_trial *trial, ls_config *cfg, const ls_build *how,
                          int64_t batch, ls_record **out, ls_err *err) LS_MUST_CHECK;
void ls_record_release(ls_record *x); /* accepts NULL */
void ls_records_release(ls_records *r);

#endif
