/* agenda.h: what comes after an update, decided once.
 *
 * Whatever ranks must agree on is decided by rank 0, before the step, from its clock and from where the run
 * will be after it.  The decision travels with the update (ls_control), and afterwards every rank obeys what
 * it reads there.  Rank 0 takes note of what was obeyed. */
#ifndef LS_TRAIN_AGENDA_H
#define LS_TRAIN_AGENDA_H

#include "passes/lower.h"
#include "train/periods.h"

typedef enum ls_due {
    LS_DUE_REPORT,
    LS_DUE_VALIDATE,
    LS_DUE_OUTPUT, /* at a validation, never by itself */
    LS_DUE_SAMPLE,
    LS_DUE_CHECKPOINT,
    LS_DUE_VERIFY,
    LS_DUE_PACE,
    LS_DUE_PERIODS, /* those above happen every so often */
    LS_DUE_PAUSE = LS_DUE_PERIODS,
    LS_DUE_END,
    LS_DUE_N
} ls_due;

typedef struct ls_agenda {
    ls_ruler ruler;
    ls_period every[LS_DUE_PERIODS];
    ls_period pause; /* for how long this process trains */
    double end;      /* steps after which training ends */
    ls_moment begun; /* where this process began */
    ls_moment before, last_output;
    double last[LS_DUE_PERIODS]; /* minutes: when it happened last, or when the run began */
} ls_agenda;

/* Name of one with a period, as in a checkpoint. */
const char *ls_due_name(ls_due what);

/* The process begins at this moment, and what was due by then is done.  `last` (NULL: nothing is known) are
 * the minutes of an earlier process's agenda; values that are no earlier moment are left out. */
void ls_agenda_begin(ls_agenda *a, ls_moment now, const double last[LS_DUE_PERIODS]);
/* What is due at the moment `after`, as bits 1 << ls_due. */
unsigned ls_agenda_decide(const ls_agenda *a, ls_moment after);
/* What was decided for that moment has been obeyed. */
void ls_agenda_note(ls_agenda *a, ls_moment after, unsigned due);

/* What ranks tell one another with an update: each gives its numbers, and all get the sums.  Zeros and ones:
 * exact in any format. */
typedef struct ls_control {
    double slot[LS_CONTROL_SLOTS];
} ls_control;

/* `due`: rank 0's decision, 0 from all others; `stop`: this rank was asked to. */
ls_control ls_control_make(unsigned due, bool stop);
unsigned ls_control_due(const ls_control *c);
bool ls_control_stop(const ls_control *c); /* some rank was */

#endif
