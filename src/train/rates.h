/* rates.h: what a rank can do in a second, as far as choices between plans need it. */
#ifndef LS_TRAIN_RATES_H
#define LS_TRAIN_RATES_H

#include "backend/backend.h"
#include "comm/comm.h"

typedef struct ls_rates {
    double bytes; /* that a rank receives in a gather among all of the group */
    double flops; /* of a product */
} ls_rates;

/* Bytes a rank receives in a second of gathers among all ranks of the group, by a few of some MB. Collective;
 * each rank has its own number: who chooses by it tells the others. */
ls_status ls_rates_gather(double *out, ls_comm *comm, ls_group group, ls_err *err) LS_MUST_CHECK;
/* FLOP a second of products in numbers of that type, on the device that this rank of its machine has. */
ls_status ls_rates_product(double *out, const char *device, int threads, int local_rank, ls_dtype type,
                           ls_err *err) LS_MUST_CHECK;

#endif
