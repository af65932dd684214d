/* profile.h: where the time of a step goes, node by node.
 *
 * The plans of a step run as they always do, exchanges included, with a clock around every node
 * (ls_plan_run_noted).  What is told is the mean over typical steps, the middle half by their time: so the
 * parts add up to a step, which medians of the parts would not. */
#ifndef LS_EXEC_PROFILE_H
#define LS_EXEC_PROFILE_H

#include "lockstep/plan.h"

typedef struct ls_profile ls_profile;

/* For `steps` steps. */
ls_status ls_profile_create(ls_profile **out, int steps, ls_err *err) LS_MUST_CHECK;
void ls_profile_destroy(ls_profile *f); /* accepts NULL */
/* ls_plan_run, within a step; a plan that runs several times in it is added up.  The plan must outlive `f`.
 */
ls_status ls_profile_run(ls_profile *f, ls_plan *p, ls_err *err) LS_MUST_CHECK;
/* The step is over; it took so long in all. */
void ls_profile_step(ls_profile *f, double seconds);

/* Seconds of a typical step. */
typedef struct ls_profile_sums {
    double step;     /* as a whole; the next three are its parts */
    double nodes;    /* of all plans */
    double progress; /* work on exchanges that are under way, between nodes */
    double rest;     /* around the plans: feeding them, reading metrics */
} ls_profile_sums;
/* Writes down in every plan what its nodes took in one run (ls_document_make shows it). */
ls_profile_sums ls_profile_conclude(ls_profile *f);

#endif
