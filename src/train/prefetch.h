/* prefetch.h: how far ahead weights are gathered (parallel.prefetch=auto) and whether they stay for the
 * gradients (parallel.reshard=auto), by what the plan says of both. */
#ifndef LS_TRAIN_PREFETCH_H
#define LS_TRAIN_PREFETCH_H

#include "exec/gathers.h"
#include "train/rates.h"
#include "train/session.h"

enum { LS_PREFETCH_MOST = 4 }; /* units, at most, unless a setting says more */

/* Seconds of a run in which nothing is computed since weights are awaited, with so many units gathered ahead:
 * one wire brings them one after the other, and a unit's gather begins when the unit so many before it is
 * there, or with 0 when it is wanted. */
double ls_prefetch_exposed(const ls_unit_gather *list, int n, int ahead, ls_rates r);
/* The fewest units ahead with which no more than a hundredth of the run is lost against the best. */
int ls_prefetch_ahead(const ls_unit_gather *list, int n, ls_rates r);

/* "2 units ahead leave 3.1 ms of a step's 80.2 ms of gathers exposed, none 75.0 ms, at 312 MB/s and ...". */
const char *ls_prefetch_text(const ls_prefetch_choice *c, char *buf, size_t size);

/* Where the settings leave it open, rank 0 chooses by a compiled plan and by what it has measured, and all do
 * as it says: sets s->place and s->gathers.  Collective. */
ls_status ls_prefetch_settle(ls_session *s, const ls_session_options *o, ls_err *err) LS_MUST_CHECK;

#endif
