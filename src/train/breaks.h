/* breaks.h: between the batches of an evaluation ranks ask one another whether to give it up.
 *
 * An evaluation has no update that a wish to stop could travel with (agenda.h), and no message but its sums
 * at the end.  So ranks ask in between: rank 0 says with each question after how many batches comes the next,
 * by its own clock about BREAK_S later, so that all ask at the same batch and nobody waits for a clock. */
#ifndef LS_TRAIN_BREAKS_H
#define LS_TRAIN_BREAKS_H

#include "train/session.h"

typedef struct ls_breaks {
    ls_session *session;
    int64_t every, left; /* batches from one question to the next, and until it */
    double asked;        /* rank 0's clock at the last one */
} ls_breaks;

/* An evaluation begins.  Its session says who may ask for an end (`stop`; NULL on all ranks: nobody). */
ls_breaks ls_breaks_begin(ls_session *s);
/* A batch is done, and `more` are to come.  LS_CANCELLED, on all ranks after the same batch, when one of them
 * was asked to stop: session->given_up is then set.  Collective. */
ls_status ls_breaks_after(ls_breaks *b, int64_t more, ls_err *err) LS_MUST_CHECK;

#endif
