/* request.c: what a request may say: times, names, paths; nothing of it depends on a cluster. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "submit/submit.h"

ls_status ls_submit_scheduler_of(const char *name, ls_submit_scheduler *out, ls_err *err)
{
    *out = LS_SUBMIT_SLURM;
    if (strcmp(name, "slurm") == 0) return LS_OK;
    *out = LS_SUBMIT_PBS;
    if (strcmp(name, "pbs") == 0) return LS_OK;
    return ls_fail(err, LS_INVALID, "--scheduler %.60s: expected slurm or pbs", name);
}

/* -- times ------------------------------------------------------------------------------------------------
 */

#define DAYS_MAX 3650

/* Up to four numbers; *dash: a '-' follows the first.  Returns how many, or 0 when it is something else. */
static int read_numbers(const char *text, int64_t number[4], bool *dash)
{
    int n = 0;

    *dash = false;
    while (n < 4) {
        char *end;
        if (!isdigit((unsigned char)*text)) return 0;
        number[n++] = strtoll(text, &end, 10);
        if (end - text > 9) return 0;
        if (*end == '\0') return n;
        if (*end == '-' && n == 1)
            *dash = true;
        else if (*end != ':' || (*dash && n == 1))
            return 0;
        text = end + 1;
    }
    return 0;
}

ls_status ls_submit_time(const char *text, int64_t *seconds, ls_err *err)
{
    int64_t x[4] = {0};
    bool dash;
    const int n = read_numbers(text, x, &dash);
    int64_t s = 0;

    if (dash && n >= 2)
        s = ((x[0] * 24 + x[1]) * 60 + x[2]) * 60 + x[3];
    else if (!dash && n == 3)
        s = (x[0] * 60 + x[1]) * 60 + x[2];
    else if (!dash && (n == 1 || n == 2))
        s = x[0] * 60 + x[1];
    if (s <= 0 || s > (int64_t)DAYS_MAX * 86400)
        return ls_fail(err, LS_INVALID,
                       "--time %.60s: expected minutes, HH:MM:SS or D-HH:MM:SS, more than nothing and up to "
                       "%d days",
                       text, DAYS_MAX);
    *seconds = s;
    return LS_OK;
}

const char *ls_submit_time_text(int64_t seconds, char *buf)
{
    const int64_t days = seconds / 86400, rest = seconds % 86400;

    if (days > 0)
        snprintf(buf, 32, "%" PRId64 "-%02d:%02d:%02d", days, (int)(rest / 3600), (int)(rest / 60 % 60),
                 (int)(rest % 60));
    else
        snprintf(buf, 32, "%02d:%02d:%02d", (int)(rest / 3600), (int)(rest / 60 % 60), (int)(rest % 60));
    return buf;
}

/* -- names and paths --------------------------------------------------------------------------------------
 */

/* What job, partition and account may be made of: Slurm's own names are, and a script cannot be broken by
 * it. */
static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || strchr("_.+-", c) != NULL;
}

static ls_status check_name(const char *option, const char *name, ls_err *err)
{
    size_t n = 0;

    if (name == NULL) return LS_OK;
    while (name[n] != '\0' && is_name_char(name[n])) n++;
    if (n == 0 || name[n] != '\0' || n >= LS_SUBMIT_NAME_MAX || name[0] == '-')
        return ls_fail(err, LS_INVALID,
                       "%s \"%.80s\": expected up to %d letters, digits, '_', '.', '+' or '-', not beginning "
                       "with '-'",
                       option, name, LS_SUBMIT_NAME_MAX - 1);
    return LS_OK;
}

void ls_submit_job_name(const char *from, char *name, size_t size)
{
    size_t n = 0;

    if (size > LS_SUBMIT_NAME_MAX) size = LS_SUBMIT_NAME_MAX;
    for (; from[n] != '\0' && n + 1 < size; n++) name[n] = is_name_char(from[n]) ? from[n] : '-';
    name[n] = '\0';
    if (n == 0 || name[0] == '-') snprintf(name, size, "lockstep");
}

/* Slurm replaces % in the names of files and takes \ for "replace nothing"; line ends would end a line of the
 * script's head. */
static ls_status check_path(const char *what, const char *path, ls_err *err)
{
    if (path == NULL) return LS_OK;
    if (path[0] != '/') return ls_fail(err, LS_INVALID, "%s \"%.300s\" is no whole path", what, path);
    for (const char *p = path; *p != '\0'; p++)
        if (*p == '%' || *p == '\\' || iscntrl((unsigned char)*p))
            return ls_fail(err, LS_INVALID,
                           "%s \"%.300s\": Slurm would not take '%%', '\\' or control characters in it as "
                           "they are; choose another folder (--run-dir)",
                           what, path);
    return LS_OK;
}

static ls_status check_word(const char *word, ls_err *err)
{
    for (const char *p = word; *p != '\0'; p++)
        if (iscntrl((unsigned char)*p))
            return ls_fail(err, LS_INVALID,
                           "\"%.100s\" has a control character, which a batch script cannot hold", word);
    return LS_OK;
}

/* -- what is passed on ------------------------------------------------------------------------------------
 */

/* "16G", "4000M", "0" (all of a node): a number and a unit, M where there is none. */
static ls_status check_mem(const char *mem, ls_err *err)
{
    size_t n;

    if (mem == NULL) return LS_OK;
    n = strspn(mem, "0123456789");
    if (n >= 1 && n <= 9 && (mem[n] == '\0' || (strchr("KMGT", mem[n]) != NULL && mem[n + 1] == '\0')))
        return LS_OK;
    return ls_fail(err, LS_INVALID,
                   "--mem \"%.60s\": expected the memory of a node as a number and K, M, G or T, such as 16G",
                   mem);
}

/* Signs that would end a value in the script's head, or mean something else there. */
static bool is_safe(const char *text)
{
    for (; *text != '\0'; text++)
        if (iscntrl((unsigned char)*text) || strchr("'\"\\#`$", *text) != NULL) return false;
    return true;
}

/* Features and what joins them: "a100&nvme", "[rack1|rack2]". */
static ls_status check_constraint(const char *text, ls_err *err)
{
    if (text == NULL || (text[0] != '\0' && text[0] != '-' && strchr(text, ' ') == NULL && is_safe(text)))
        return LS_OK;
    return ls_fail(
        err, LS_INVALID,
        "--constraint \"%.80s\": expected features of nodes and & | * ( ) [ ], without blanks and quotes",
        text);
}

/* What the program sets itself, and how it is to be said instead. */
static const struct {
    const char *option, *instead;
} ours[] = {
    {"--nodes", "say --nodes"},
    {"--ntasks", "say --nodes and --ranks-per-node"},
    {"--ntasks-per-node", "say --ranks-per-node"},
    {"--cpus-per-task", "say --threads"},
    {"--time", "say --time"},
    {"--partition", "say --partition"},
    {"--account", "say --account"},
    {"--qos", "say --qos"},
    {"--constraint", "say --constraint"},
    {"--mem", "say --mem"},
    {"--job-name", "say --job-name"},
    {"--chdir", "the job works where it was submitted"},
    {"--output", "the log has its place in the run, or in the study"},
    {"--error", "the log has its place in the run, or in the study"},
    {"--open-mode", "a job that is put back goes on with its log"},
    {"--signal", "a job that trains is warned by itself"},
    {"--requeue", "a job that trains is put back by itself"},
    {"--no-requeue", "a job that trains is put back by itself"},
    {"--dependency", "the points of a study run one after another by themselves"},
    {"--array", "a job is one run"},
    {"--wrap", "the script is the program's"},
};

/* --option or --option=value of sbatch. */
static ls_status check_option(const char *text, ls_err *err)
{
    const size_t n = strcspn(text, "=");

    if (strncmp(text, "--", 2) != 0 || n < 3 ||
        strspn(text + 2, "abcdefghijklmnopqrstuvwxyz0123456789-") != n - 2 || !is_safe(text))
        return ls_fail(
            err, LS_INVALID,
            "--slurm \"%.80s\": expected an option of sbatch, written --option=value, without quotes, "
            "'$', '#' and '\\'",
            text);
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (strncmp(ours[i].option, text, n) == 0) /* also where sbatch would take it for an abbreviation */
            return ls_fail(err, LS_INVALID, "--slurm \"%.80s\": the script sets that itself; %s", text,
                           ours[i].instead);
    return LS_OK;
}

/* A line that went on in the next one would take away what follows it in the script. */
static ls_status check_setup(const char *line, ls_err *err)
{
    const size_t n = strlen(line);
    ls_status st = LS_OK;

    LS_TRY(check_word(line, err));
    if (n == 0 || line[n - 1] == '\\')
        st = ls_fail(err, LS_INVALID, "--setup \"%.80s\": expected one whole line of shell", line);
out:
    return st;
}

static ls_status check_resources(const ls_submit_resources *w, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(check_name("--partition", w->partition, err));
    LS_TRY(check_name("--account", w->account, err));
    LS_TRY(check_name("--qos", w->qos, err));
    LS_TRY(check_constraint(w->constraint, err));
    LS_TRY(check_mem(w->mem, err));
    for (int i = 0; i < w->n_options; i++) LS_TRY(check_option(w->options[i], err));
    for (int i = 0; i < w->n_setup; i++) LS_TRY(check_setup(w->setup[i], err));
out:
    return st;
}

#define RANKS_MAX 1000000

ls_status ls_submit_check(const ls_submit_request *q, ls_err *err)
{
    ls_status st = LS_OK;

    if (q->nodes < 1) return ls_fail(err, LS_INVALID, "on how many nodes?  --nodes N --ranks-per-node R");
    if (q->ranks_per_node < 1)
        return ls_fail(err, LS_INVALID, "how many ranks on each node?  --ranks-per-node R");
    if ((int64_t)q->nodes * q->ranks_per_node > RANKS_MAX)
        return ls_fail(err, LS_INVALID, "%d nodes x %d ranks are more than %d", q->nodes, q->ranks_per_node,
                       RANKS_MAX);
    LS_TRY(check_name("--job-name", q->name, err));
    LS_TRY(check_resources(&q->want, err));
    LS_TRY(check_path("the folder", q->folder, err));
    LS_TRY(check_path("the program", q->program, err));
    LS_TRY(check_path("the run directory", q->run_dir, err));
    LS_TRY(check_path("the result", q->result, err));
    LS_TRY(check_path("the log", q->log, err));
    for (int i = 0; i < q->n_words; i++) LS_TRY(check_word(q->words[i], err));
out:
    return st;
}
