/* submit_internal.h: what the writers of scripts share. */
#ifndef LS_SUBMIT_SUBMIT_INTERNAL_H
#define LS_SUBMIT_SUBMIT_INTERNAL_H

#include "submit/submit.h"

/* Seconds before its end at which the job is warned; 0: it has no checkpoint to write. */
int lsi_warning_s(const ls_submit_request *q);
/* Adds the command that every rank runs, on one line, with the script's "$@" after it where the job trains.
 */
void lsi_add_command(ls_text *out, const ls_submit_request *q);
/* Adds the lines that choose between a new run and its continuation, for jobs that train. */
void lsi_add_resume(ls_text *out, const ls_submit_request *q);
/* Adds the lines of --setup; one that fails ends the job, and the log names it. */
void lsi_add_setup(ls_text *out, const ls_submit_request *q);
/* Adds the function `stop WHY`, which passes a request on to the ranks, for the script's traps. */
void lsi_add_stop(ls_text *out);
/* Adds the lines that wait for process $step, through signals, and leave our exit code in $code. */
void lsi_add_wait(ls_text *out);

void lsi_script_slurm(ls_text *out, const ls_submit_request *q);
void lsi_script_pbs(ls_text *out, const ls_submit_request *q);

#endif
