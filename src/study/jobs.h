/* jobs.h: the points of a study over node counts as jobs of Slurm.
 *
 * Every point that has no result becomes a job, all at once, so that they wait in the queue together; they
 * run one after another, in the order of the study, so that none disturbs another.  ls_study_run_job is the
 * runner that then waits for the job of each point.  A job leaves its number in the study's folder: a study
 * that was ended by force finds it again. */
#ifndef LS_STUDY_JOBS_H
#define LS_STUDY_JOBS_H

#include "study/study.h"
#include "submit/submit.h"

typedef struct ls_study_jobs_wish {
    ls_submit_resources want; /* of each job */
    /* Told of the way of the job that is being waited for; may be NULL. */
    void (*state)(void *ctx, const ls_study_job *point, const char *id, const ls_submit_job *job);
    void *ctx;
} ls_study_jobs_wish;

/* Whether the cluster can run every point: LS_INVALID with the reason.  The study's host becomes the
 * partition and its cores those of a node.  To be called before the study is opened. */
ls_status ls_study_jobs_fit(ls_study *s, const ls_study_jobs_wish *w, ls_err *err) LS_MUST_CHECK;

/* Jobs for all points of the open study `s` that have no result; *n of them (those of an earlier call that
 * are still there included).  `s` and `w` must outlive *out. */
typedef struct ls_study_jobs ls_study_jobs;
ls_status ls_study_jobs_submit(ls_study_jobs **out, const ls_study *s, const ls_study_jobs_wish *w, int *n,
                               ls_err *err) LS_MUST_CHECK;
/* Cancels those that have not ended: a run that trains writes its checkpoint first.  Accepts NULL. */
void ls_study_jobs_close(ls_study_jobs *jobs);

/* The ls_study_runner; `ctx` is an ls_study_jobs. */
ls_status ls_study_run_job(void *ctx, const ls_study_job *job, ls_text *line, ls_err *err) LS_MUST_CHECK;

#endif
