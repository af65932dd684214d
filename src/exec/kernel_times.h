/* kernel_times.h: what runs of plans take, from kernels that are timed one by one.
 *
 * Plans that have no memory (ls_device.unbacked) cannot be run, but their kernels can: each on tensors that
 * are made for it.  So two plans of which neither may fit can be compared before one is chosen.  What two
 * plans have in common is timed once, and no noise of the clock is in their difference. */
#ifndef LS_EXEC_KERNEL_TIMES_H
#define LS_EXEC_KERNEL_TIMES_H

#include "lockstep/plan.h"

typedef struct ls_kernel_times ls_kernel_times;

/* What the machine does in a second, for nodes that are not timed: those whose tensors are too large to be
 * made for it, those that numbers made up may lead astray, and those that are left when time is up. */
typedef struct ls_machine_rates {
    double flops, bytes; /* of products and convolutions; that are read and written */
} ls_machine_rates;

ls_status ls_kernel_times_create(ls_kernel_times **out, ls_machine_rates rates, ls_err *err) LS_MUST_CHECK;
void ls_kernel_times_destroy(ls_kernel_times *t); /* accepts NULL */

/* Seconds of one run of the plan, without what ranks do together.  Of its kernels, those that are likely to
 * take the most are timed first, for some seconds at most; what was timed before, for any plan, is known.
 * For plans of devices whose kernels run where they are called (ls_backend.queues NULL). */
ls_status ls_kernel_times_of(ls_kernel_times *t, const ls_plan *p, double *seconds,
                             ls_err *err) LS_MUST_CHECK;

#endif
