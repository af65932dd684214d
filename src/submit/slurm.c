/* slurm.c: the questions and orders that go to Slurm's own commands.
 *
 * Its programs rather than its library: they are what every site has, and their options are stable. */
#include <stdio.h>
#include <string.h>

#include "base/command.h"
#include "submit/submit.h"

#define ANSWER_S 30.0 /* a busy controller takes its time */

/* Runs it.  A command that is not here is LS_INVALID: what was asked makes no sense on this machine. */
static ls_status run(ls_command_result *r, const char *const *argv, const char *input, ls_err *err)
{
    ls_err why = {0};
    const ls_status st = ls_command_run(r, argv, input, ANSWER_S, &why);

    if (st == LS_UNSUPPORTED)
        return ls_fail(err, LS_INVALID,
                       "Slurm is not on this machine (there is no %s): run this where Slurm is", argv[0]);
    return st == LS_OK ? LS_OK : ls_fail(err, st, "%s", why.text);
}

/* The same; an exit code other than 0 is LS_IO with what the command said. */
static ls_status ask(ls_command_result *r, const char *const *argv, const char *input, ls_err *err)
{
    ls_status st = run(r, argv, input, err);

    if (st != LS_OK || r->code == 0) return st;
    return ls_fail(err, LS_IO, "%s failed (exit code %d): %.*s", argv[0], r->code,
                   r->said.length > 0 ? (int)strcspn(r->said.data, "\n") : 0,
                   r->said.length > 0 ? r->said.data : "");
}

static const char *text_of(const ls_command_result *r)
{
    return r->out.data != NULL ? r->out.data : "";
}

ls_status ls_slurm_cluster(ls_submit_cluster *out, ls_err *err)
{
    static const char *const argv[] = {"sinfo", "--noheader", "--exact", "--format=" LS_SUBMIT_SINFO_FORMAT,
                                       NULL};
    ls_command_result r = {0};
    ls_status st = LS_OK;

    LS_TRY(ask(&r, argv, NULL, err));
    LS_TRY(ls_submit_parse_cluster(out, text_of(&r), err));
out:
    ls_command_release(&r);
    return st;
}

ls_status ls_slurm_submit(const char *script, char id[LS_SUBMIT_ID_MAX], ls_err *err)
{
    static const char *const argv[] = {"sbatch", "--parsable", NULL};
    ls_command_result r = {0};
    ls_status st = LS_OK;

    LS_TRY(ask(&r, argv, script, err));
    /* "17" or "17;cluster" */
    snprintf(id, LS_SUBMIT_ID_MAX, "%.*s", (int)(strcspn(text_of(&r), ";\n") % LS_SUBMIT_ID_MAX),
             text_of(&r));
    if (ls_submit_check_id(id, NULL) != LS_OK)
        st = ls_fail(err, LS_FORMAT, "sbatch printed \"%.100s\" instead of a job's number", text_of(&r));
out:
    ls_command_release(&r);
    return st;
}

/* What the accounting knows of a job that the controller has forgotten. */
static ls_status job_from_accounting(ls_submit_job *out, const char *id, ls_err *err)
{
    const char *const argv[] = {
        "sacct", "--noheader", "--allocations", "--parsable2", "--format=State,ExitCode", "--jobs", id, NULL};
    ls_command_result r = {0};
    ls_status st = ls_command_run(&r, argv, NULL, ANSWER_S, NULL);

    if (st == LS_OK && r.code == 0 && r.out.length > 0)
        st = ls_submit_parse_account(out, text_of(&r), err);
    else
        st = ls_fail(err, LS_INVALID, "Slurm knows no job %s (any more)", id);
    ls_command_release(&r);
    return st;
}

ls_status ls_slurm_job(ls_submit_job *out, const char *id, ls_err *err)
{
    const char *const argv[] = {"scontrol", "--oneliner", "show", "job", id, NULL};
    ls_command_result r = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_submit_check_id(id, err));
    LS_TRY(run(&r, argv, NULL, err));
    if (r.code != 0 && r.said.length > 0 && strstr(r.said.data, "Invalid job id") != NULL)
        st = job_from_accounting(out, id, err);
    else if (r.code != 0)
        st = ls_fail(err, LS_IO, "scontrol failed (exit code %d): %.300s", r.code,
                     r.said.length > 0 ? r.said.data : "");
    else
        st = ls_submit_parse_job(out, text_of(&r), err);
out:
    ls_command_release(&r);
    return st;
}

ls_status ls_slurm_cancel(const char *id, bool now, ls_submit_job *job, ls_err *err)
{
    const char *const end[] = {"scancel", id, NULL};
    const char *const request[] = {"scancel", "--batch", "--signal=USR2", id, NULL};
    ls_command_result r = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_slurm_job(job, id, err));
    if (job->phase == LS_JOB_ENDED)
        return ls_fail(err, LS_INVALID, "job %s has ended already (%s)", id, job->state);
    LS_TRY(ask(&r, now || job->phase == LS_JOB_WAITS ? end : request, NULL, err));
out:
    ls_command_release(&r);
    return st;
}
