/* job.c: what scontrol and sacct say of a job, and which exit code its end means. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/launch.h"
#include "submit/submit.h"

/* -- reading ----------------------------------------------------------------------------------------------
 */

/* Whether " Key=" begins at `at`: the end of a value, which may have spaces itself. */
static bool begins_key(const char *at)
{
    size_t n = 1;

    if (at[0] != ' ' || !isalpha((unsigned char)at[1])) return false;
    while (isalnum((unsigned char)at[n]) || (at[n] != '\0' && strchr("/:_", at[n]) != NULL)) n++;
    return at[n] == '=';
}

/* The value of `key` in a line of key=value; false when there is none or it does not fit.  "(null)" is empty.
 */
static bool value_of(const char *line, const char *key, char *value, size_t size)
{
    const size_t n_key = strlen(key);
    size_t n = 0;

    value[0] = '\0';
    for (; *line != '\0'; line++) {
        const char *at = *line == ' ' ? line + 1 : line;
        if (strncmp(at, key, n_key) != 0 || at[n_key] != '=') {
            while (line[1] != '\0' && line[1] != ' ') line++;
            continue;
        }
        at += n_key + 1;
        while (at[n] != '\0' && at[n] != '\n' && !begins_key(at + n)) n++;
        if (n >= size) return false;
        memcpy(value, at, n);
        value[n] = '\0';
        if (strcmp(value, "(null)") == 0) value[0] = '\0';
        return true;
    }
    return false;
}

static const struct {
    const char *state;
    ls_submit_phase phase;
} phases[] = {
    {"PENDING", LS_JOB_WAITS},      {"CONFIGURING", LS_JOB_WAITS},   {"REQUEUED", LS_JOB_WAITS},
    {"REQUEUE_HOLD", LS_JOB_WAITS}, {"REQUEUE_FED", LS_JOB_WAITS},   {"RESV_DEL_HOLD", LS_JOB_WAITS},
    {"SPECIAL_EXIT", LS_JOB_WAITS}, {"RUNNING", LS_JOB_RUNS},        {"COMPLETING", LS_JOB_RUNS},
    {"SUSPENDED", LS_JOB_RUNS},     {"STOPPED", LS_JOB_RUNS},        {"SIGNALING", LS_JOB_RUNS},
    {"STAGE_OUT", LS_JOB_RUNS},     {"RESIZING", LS_JOB_RUNS},       {"COMPLETED", LS_JOB_ENDED},
    {"CANCELLED", LS_JOB_ENDED},    {"FAILED", LS_JOB_ENDED},        {"TIMEOUT", LS_JOB_ENDED},
    {"NODE_FAIL", LS_JOB_ENDED},    {"BOOT_FAIL", LS_JOB_ENDED},     {"PREEMPTED", LS_JOB_ENDED},
    {"DEADLINE", LS_JOB_ENDED},     {"OUT_OF_MEMORY", LS_JOB_ENDED}, {"REVOKED", LS_JOB_ENDED},
};

/* The first word of the state: sacct adds "by 1000". */
static ls_status set_state(ls_submit_job *job, const char *text, ls_err *err)
{
    const size_t n = strcspn(text, " +|");

    snprintf(job->state, sizeof job->state, "%.*s", n < sizeof job->state ? (int)n : 0, text);
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        if (strcmp(phases[i].state, job->state) != 0) continue;
        job->phase = phases[i].phase;
        return LS_OK;
    }
    return ls_fail(err, LS_FORMAT, "Slurm says that the job is \"%.60s\", which is not understood", text);
}

/* "75:0": exit code and signal. */
static ls_status set_code(ls_submit_job *job, const char *text, ls_err *err)
{
    char *end, *last;
    const long code = strtol(text, &end, 10);
    const long number = *end == ':' ? strtol(end + 1, &last, 10) : -1;

    if (end == text || number < 0 || last == end + 1 || code < 0 || code > 255 || number > 255)
        return ls_fail(err, LS_FORMAT, "Slurm says that the job's exit code is \"%.60s\"", text);
    job->code = (int)code;
    job->signal = (int)number;
    return LS_OK;
}

ls_status ls_submit_parse_job(ls_submit_job *out, const char *line, ls_err *err)
{
    char text[64];
    ls_status st = LS_OK;

    *out = (ls_submit_job){0};
    if (!value_of(line, "JobState", text, sizeof text))
        return ls_fail(err, LS_FORMAT, "scontrol said nothing of the job's state: \"%.200s\"", line);
    LS_TRY(set_state(out, text, err));
    if (value_of(line, "ExitCode", text, sizeof text)) LS_TRY(set_code(out, text, err));
    if (value_of(line, "Restarts", text, sizeof text)) out->restarts = (int)(strtol(text, NULL, 10) & 0xffff);
    if (!value_of(line, "Reason", out->reason, sizeof out->reason) || strcmp(out->reason, "None") == 0)
        out->reason[0] = '\0';
    if (!value_of(line, "NodeList", out->nodes, sizeof out->nodes)) out->nodes[0] = '\0';
    if (!value_of(line, "StdOut", out->log, sizeof out->log)) out->log[0] = '\0';
out:
    return st;
}

ls_status ls_submit_parse_account(ls_submit_job *out, const char *line, ls_err *err)
{
    const char *bar = strchr(line, '|');
    char code[16];
    ls_status st = LS_OK;

    *out = (ls_submit_job){0};
    if (bar == NULL) return ls_fail(err, LS_FORMAT, "sacct does not know the job: \"%.200s\"", line);
    snprintf(code, sizeof code, "%.*s", (int)strcspn(bar + 1, "|\n") < 15 ? (int)strcspn(bar + 1, "|\n") : 15,
             bar + 1);
    LS_TRY(set_state(out, line, err));
    LS_TRY(set_code(out, code, err));
out:
    return st;
}

/* -- meaning ----------------------------------------------------------------------------------------------
 */

int ls_submit_exit_code(const ls_submit_job *job)
{
    if (job->phase != LS_JOB_ENDED) return LS_EXIT_FAILED;
    if (strcmp(job->state, "NODE_FAIL") == 0) return LS_EXIT_LOST;
    if (job->code > 0) return job->code > 128 ? LS_EXIT_LOST : job->code;
    return strcmp(job->state, "COMPLETED") == 0 && job->signal == 0 ? LS_EXIT_DONE : LS_EXIT_FAILED;
}

ls_status ls_submit_check_id(const char *id, ls_err *err)
{
    const size_t n = strspn(id, "0123456789"), task = id[n] == '_' ? strspn(id + n + 1, "0123456789") : 0;

    if (n == 0 || n > 12 || task > 12 || id[n + (task > 0 ? task + 1 : 0)] != '\0')
        return ls_fail(err, LS_INVALID, "\"%.60s\" is no job of Slurm: expected a number", id);
    return LS_OK;
}
