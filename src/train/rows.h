/* rows.h: the outputs of every sample of an evaluation, handed on in the order of the samples while it goes
 * on.
 *
 * A rank keeps the rows of its part of one global batch; after each, rank 0 gets those of all ranks, which
 * are contiguous parts in the order of ranks, and passes them to whoever wants them.  Memory is that of one
 * batch, however many samples there are. */
#ifndef LS_TRAIN_ROWS_H
#define LS_TRAIN_ROWS_H

#include "comm/comm.h"
#include "lockstep/nn.h"

enum { LS_ROWS_OUTPUTS = 4, LS_ROWS_NAME = 64 };

/* n rows of `width` values each, of the samples with these growing indices; labels NULL: there are
 * none. */
typedef ls_status (*ls_rows_sink)(void *arg, int64_t n, const int64_t *indices, const float *values,
                                  const int32_t *labels, ls_err *err);

/* One output: so many values of a row. */
typedef struct ls_rows_output {
    char name[LS_ROWS_NAME]; /* "score", or as the trial calls it */
    char fetch[LS_ROWS_NAME + 16];
    int64_t width;
} ls_rows_output;

/* Start with {.sink = , .arg = , .only = }; release. */
typedef struct ls_rows {
    ls_rows_sink sink; /* called on rank 0 */
    void *arg;
    const char *only; /* the output that is wanted; NULL: all */
    bool unlabelled;  /* the data have no labels: only a classifier does without */
    int64_t room;     /* most rows of a rank in one global batch */
    int n_outputs;
    ls_rows_output outputs[LS_ROWS_OUTPUTS];
    bool scores;      /* the first output is a classifier's */
    int64_t width;    /* of all outputs together */
    int64_t n;        /* rows of this rank that wait */
    size_t bytes;     /* of `mine` */
    char *mine, *all; /* per rank: how many, their indices, labels and values */
} ls_rows;

/* Finds the outputs of an evaluation plan.  LS_INVALID when there are none, or none called `only`. */
ls_status ls_rows_prepare(ls_rows *r, const ls_plan *p, ls_err *err) LS_MUST_CHECK;
/* After a run of an evaluation plan, in the order of this rank's samples: sample i is number at[i], or where
 * that is NULL number first + i. */
ls_status ls_rows_take(ls_rows *r, const ls_plan *p, int64_t first, const int64_t *at,
                       ls_err *err) LS_MUST_CHECK;
/* After every global batch; collective. */
ls_status ls_rows_pass_on(ls_rows *r, ls_comm *c, ls_err *err) LS_MUST_CHECK;
void ls_rows_release(ls_rows *r);

#endif
