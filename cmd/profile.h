/* profile.h: where the time of a step goes. */
#ifndef LS_CMD_PROFILE_H
#define LS_CMD_PROFILE_H

#include "cli.h"
#include "exec/profile.h"
#include "train/documents.h"
#include "train/rehearsal.h"

typedef struct profile_result {
    ls_profile_sums sums; /* of steps with clocks */
    double plain_s;       /* a step without, taken in turns with them */
} profile_result;

/* Takes some more steps with a clock around every node, in turns with steps that have none; afterwards plans
 * know what their nodes take.  Collective; `step_s` is about what a step takes, the same on all ranks. */
ls_status profile_take(ls_rehearsal *x, double step_s, profile_result *r, ls_err *err) LS_MUST_CHECK;

/* Does that and prints two tables: per kind of op and the slowest nodes.  Collective; rank 0 prints. */
ls_status profile_print(ls_rehearsal *x, bool json, double step_s, ls_err *err) LS_MUST_CHECK;

/* How many steps are enough, within a few seconds, where one takes so long. */
enum { PROFILE_STEPS_MAX = 101 };
int profile_steps(double step_s);

#endif
