/* profile.h: where the time of a step goes. */
#ifndef LS_CMD_PROFILE_H
#define LS_CMD_PROFILE_H

#include "cli.h"

/* Times every node and prints two tables: per kind of op and the slowest nodes.  `step_s` is the time of an
 * undisturbed step, for comparison with the sum; it is the same on all ranks, which all must call this, and
 * one of them says `print`. */
ls_status profile_print(ls_plan *p, bool json, bool print, double step_s, ls_err *err) LS_MUST_CHECK;

/* How many steps are enough for a median, within a few seconds, where one takes so long. */
enum { PROFILE_STEPS_MAX = 101 };
int profile_steps(double step_s);
/* One node with its costs. */
json_t *profile_node_json(const ls_plan_node *n);

#endif
