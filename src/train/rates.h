/* rates.h: what a rank can do in a second, as far as choices between plans need it. */
#ifndef LS_TRAIN_RATES_H
#define LS_TRAIN_RATES_H

#include "backend/backend.h"
#include "comm/comm.h"

typedef struct ls_rates {
    double bytes; /* that a rank receives in a gather among all of the group */
    double flops; /* of a product */
} ls_rates;

/* Collective: a few gathers of some MB among all ranks of the group, and on every rank a few products on a
 * device like `device`.  Some hundredths of a second.  Each rank has its own numbers: who chooses by them
 * tells the others. */
ls_status ls_rates_measure(ls_rates *out, ls_comm *comm, ls_group group, const char *device, int threads,
                           ls_err *err) LS_MUST_CHECK;

#endif
