/* gather.h: what an evaluation collects over all samples besides means: the values that a trial wants kept
 * (ls_output), and the distributions that it wants compared (ls_distance).
 *
 * Counts are whole numbers and rows have one place each, so that neither depends on which rank had which
 * samples. */
#ifndef LS_TRAIN_GATHER_H
#define LS_TRAIN_GATHER_H

#include "train/confusion.h"
#include "train/counters.h"
#include "train/rows.h"
#include "train/session.h"

enum { LS_GATHER_MOST = 4, LS_GATHER_NAME = 64 };

/* The values of one output, a row for every `stride`-th sample. */
typedef struct ls_gather_output {
    char name[LS_GATHER_NAME];
    ls_shape shape; /* with the number of rows first */
    double *rows;
} ls_gather_output;

/* How often each of the two kinds of values fell into each bin. */
typedef struct ls_gather_distance {
    char name[LS_GATHER_NAME];
    double width; /* of all bins together */
    double *counts;
} ls_gather_distance;

/* Start with {.samples = , .stride = }; release in any case. */
typedef struct ls_gather {
    int64_t samples; /* of the whole evaluation */
    int64_t stride;  /* rows are those of samples 0, stride, 2 stride, ...; 0: outputs are not kept */
    bool prepared;
    int n_outputs, n_distances;
    ls_gather_output outputs[LS_GATHER_MOST];
    ls_gather_distance distances[LS_GATHER_MOST];
    ls_confusion *confusion; /* answers of a classifier are counted there; NULL: they are not */
    float *scores;           /* of one sample, on their way there */
    ls_rows *rows;           /* gets the outputs of every sample, in order; NULL: nobody wants them */
} ls_gather;

/* Finds out what there is to gather, once.  A rank that will run no plan does this alone: all ranks must
 * know.
 */
ls_status ls_gather_prepare(ls_gather *g, const ls_batch_plan *p, ls_err *err) LS_MUST_CHECK;
/* After a run of an evaluation plan whose first sample is number `first` of the evaluation. */
ls_status ls_gather_take(ls_gather *g, const ls_batch_plan *p, int64_t first, ls_err *err) LS_MUST_CHECK;
/* The same where samples in between were left out: sample i is number at[i].  Rows that nobody hands in are
 * zeros. */
ls_status ls_gather_take_at(ls_gather *g, const ls_batch_plan *p, const int64_t *at,
                            ls_err *err) LS_MUST_CHECK;
/* After every global batch, by all ranks: hands its rows on.  Collective. */
ls_status ls_gather_pass_on(ls_gather *g, ls_comm *c, ls_err *err) LS_MUST_CHECK;
/* After the last: what all ranks have, on all of them; distances are added to the metrics.  Collective. */
ls_status ls_gather_finish(ls_gather *g, ls_comm *c, ls_metric_sums *sums, ls_err *err) LS_MUST_CHECK;
/* Each output to <folder>/<name>/epoch-<epoch>.npy, in f32. */
ls_status ls_gather_write(const ls_gather *g, const char *folder, double epoch, ls_err *err) LS_MUST_CHECK;
void ls_gather_release(ls_gather *g);

#endif
