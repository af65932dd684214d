/* submit.c: `lockstep submit`: an experiment as a job, a job's way to its end, and its end before that. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/folders.h"
#include "base/output.h"
#include "base/program.h"
#include "base/replace.h"
#include "cli.h"
#include "runs/run.h"
#include "submit/submit.h"

bool cli_submit_is_of_job(const cli_args *args)
{
    return args->cancel != NULL || (args->follow != NULL && args->follow[0] != '\0');
}

/* -- following --------------------------------------------------------------------------------------------
 */

/* Ctrl-C and SIGTERM become readable here instead of ending this process; -1: not to be had. */
static int open_stop(void)
{
    sigset_t asked;

    sigemptyset(&asked);
    sigaddset(&asked, SIGINT);
    sigaddset(&asked, SIGTERM);
    /* What ends is the looking on, never the job. */
    sigprocmask(SIG_BLOCK, &asked, NULL);
    return signalfd(-1, &asked, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void print_state(void *ctx, const ls_submit_job *job)
{
    const bool json = *(const bool *)ctx;

    if (json) {
        cli_print_json_take(json_pack("{s:s, s:s, s:s, s:s, s:i}", "event", "state", "state", job->state,
                                      "reason", job->reason, "nodes", job->nodes, "restarts", job->restarts));
    } else if (job->phase == LS_JOB_WAITS) {
        printf("waiting       %s%s%s%s\n", job->state, job->reason[0] != '\0' ? ": " : "", job->reason,
               job->restarts > 0 ? " (it was put back and will resume)" : "");
    } else if (job->phase == LS_JOB_RUNS) {
        printf("%-13s on %s%s\n", strcmp(job->state, "RUNNING") == 0 ? "running" : job->state, job->nodes,
               job->restarts > 0 ? ", resumed" : "");
    } else {
        const int code = ls_submit_exit_code(job);
        printf("ended         %s, exit code %d%s\n", job->state, code,
               code == CLI_STOPPED ? ": stopped on request, with a checkpoint" : "");
    }
    ls_output_flush();
}

static void print_output(void *ctx, const char *bytes, size_t n)
{
    if (*(const bool *)ctx) return;
    fwrite(bytes, 1, n, stdout);
    ls_output_flush();
}

static void print_how_to_go_on(const char *id)
{
    printf("follow it     lockstep submit --follow=%s\ncancel it     lockstep submit --cancel %s\n", id, id);
}

/* The last line of --json; `job` NULL: not followed. */
static void print_result(const char *id, const char *run, const char *log, const ls_submit_job *job)
{
    json_t *code = job != NULL && job->phase == LS_JOB_ENDED ? json_integer(ls_submit_exit_code(job)) : NULL;

    cli_print_json_take(json_pack("{s:s, s:s, s:s*, s:s*, s:s*, s:o?}", "event", "submit", "job", id, "run",
                                  run, "log", log, "state", job != NULL ? job->state : NULL, "exit_code",
                                  code));
}

/* Until the job ends, or Ctrl-C.  Returns the exit code. */
static int follow(const char *id, const char *run, const char *log, bool json)
{
    const ls_submit_watcher w = {
        .state = print_state, .output = print_output, .ctx = &json, .stop_fd = open_stop()};
    ls_submit_job job;
    ls_err err = {0};
    const ls_status st = ls_slurm_follow(id, log, &w, &job, &err);

    if (w.stop_fd >= 0) close(w.stop_fd);
    if (st != LS_OK) return cli_fail("submit", &err);
    if (json) print_result(id, run, log, &job);
    if (job.phase == LS_JOB_ENDED) return ls_submit_exit_code(&job);
    if (!json) {
        printf("\njob %s goes on\n", id);
        print_how_to_go_on(id);
    }
    return CLI_DONE;
}

static bool wants_follow(const cli_args *args)
{
    if (args->no_follow) return false;
    return args->follow != NULL || (!args->json && isatty(STDOUT_FILENO) == 1);
}

/* -- a job that was submitted before ----------------------------------------------------------------------
 */

static int cancel(const cli_args *args)
{
    ls_submit_job job;
    ls_err err = {0};

    if (ls_slurm_cancel(args->cancel, false, &job, &err) != LS_OK) return cli_fail("submit", &err);
    if (!args->json)
        printf("job %s: %s\n", args->cancel,
               job.phase == LS_JOB_WAITS ? "taken out of the queue"
                                         : "told to write a checkpoint and end (exit code 75)");
    if (wants_follow(args)) return follow(args->cancel, NULL, NULL, args->json);
    if (args->json) print_result(args->cancel, NULL, job.log, &job);
    return CLI_DONE;
}

/* -- what is asked of the cluster -------------------------------------------------------------------------
 */

ls_status cli_resources(ls_submit_resources *w, const cli_args *args, ls_err *err)
{
    *w = (ls_submit_resources){.partition = args->partition,
                               .account = args->account,
                               .qos = args->qos,
                               .constraint = args->constraint,
                               .mem = args->mem,
                               .options = args->slurm.of,
                               .n_options = args->slurm.n,
                               .setup = args->setup.of,
                               .n_setup = args->setup.n};
    return args->time != NULL ? ls_submit_time(args->time, &w->time_s, err) : LS_OK;
}

bool cli_has_resources(const cli_args *args)
{
    return args->partition != NULL || args->account != NULL || args->qos != NULL ||
           args->constraint != NULL || args->mem != NULL || args->time != NULL || args->slurm.n > 0 ||
           args->setup.n > 0;
}

/* What PBS has no word for must not be lost in silence. */
static ls_status check_pbs(const ls_submit_resources *w, ls_err *err)
{
    if (w->qos == NULL && w->constraint == NULL && w->n_options == 0) return LS_OK;
    return ls_fail(err, LS_INVALID,
                   "--qos, --constraint and --slurm are Slurm's: leave them out with --scheduler pbs");
}

/* -- a new one --------------------------------------------------------------------------------------------
 */

typedef struct plan {
    ls_experiment experiment;
    ls_submit_request request;
    char name[LS_SUBMIT_NAME_MAX], folder[LS_PATH_MAX], program[LS_PATH_MAX], run[LS_PATH_MAX];
    char log[LS_PATH_MAX + 32], script[LS_PATH_MAX + 32];
    const char **words;
    ls_text text;
    bool is_new; /* the run directory was made here */
} plan;

static void release(plan *p)
{
    ls_experiment_release(&p->experiment);
    ls_free(p->words);
    ls_text_release(&p->text);
    *p = (plan){0};
}

/* Run directory, log and script, as whole paths.  A run may have several jobs, one after another. */
static ls_status choose_paths(plan *p, const cli_args *args, ls_err *err)
{
    char fresh[LS_PATH_MAX];
    const char *run = args->run_dir;

    if (getcwd(p->folder, sizeof p->folder) == NULL || !ls_program_path(p->program, sizeof p->program))
        return ls_fail(err, LS_IO, "this folder, or where this program lies, cannot be told");
    if (run == NULL) {
        ls_run_new_name(fresh, ls_config_text(p->experiment.cfg, "name"));
        run = fresh;
    }
    if (run[0] == '\0')
        return ls_fail(err, LS_INVALID,
                       "--run-dir has an empty name; name a directory, or leave it out for one under runs/");
    if (snprintf(p->run, sizeof p->run, "%s%s%s", run[0] == '/' ? "" : p->folder, run[0] == '/' ? "" : "/",
                 run) >= (int)sizeof p->run)
        return ls_fail(err, LS_INVALID, "the run directory's path is longer than %d bytes", LS_PATH_MAX);
    for (int i = 1; i < 10000; i++) {
        char number[16] = "";
        if (i > 1) snprintf(number, sizeof number, "-%d", i);
        snprintf(p->script, sizeof p->script, "%s/job%s.sh", p->run, number);
        snprintf(p->log, sizeof p->log, "%s/job%s.log", p->run, number);
        if (access(p->script, F_OK) != 0) break;
    }
    return LS_OK;
}

static ls_status choose_words(plan *p, const cli_args *args, ls_err *err)
{
    int n = 0;

    p->words = ls_alloc(LS_MEM_CLI, sizeof *p->words * ((size_t)args->n_settings + 2));
    if (p->words == NULL) return ls_fail(err, LS_NOMEM, "no memory");
    p->words[n++] = "train";
    p->words[n++] = args->model;
    for (int i = 0; i < args->n_settings; i++) p->words[n++] = args->settings[i];
    p->request.words = p->words;
    p->request.n_words = n;
    return LS_OK;
}

/* Everything that can be said without asking Slurm. */
static ls_status prepare(plan *p, const cli_args *args, ls_err *err)
{
    ls_submit_request *q = &p->request;
    ls_status st = LS_OK;

    *q = (ls_submit_request){.name = args->job_name,
                             .nodes = args->nodes,
                             .ranks_per_node = args->ranks_per_node,
                             .threads = args->threads};
    LS_TRY(cli_resources(&q->want, args, err));
    LS_TRY(ls_submit_check(q, err));
    LS_TRY(cli_load(&p->experiment, args->model, args, q->nodes * q->ranks_per_node, err));
    ls_submit_job_name(ls_config_text(p->experiment.cfg, "name"), p->name, sizeof p->name);
    if (q->name == NULL) q->name = p->name;
    LS_TRY(choose_paths(p, args, err));
    LS_TRY(choose_words(p, args, err));
    q->folder = p->folder;
    q->program = p->program;
    q->run_dir = p->run;
    q->log = p->log;
    LS_TRY(ls_submit_check(q, err));
out:
    return st;
}

/* Compares with what Slurm has.  A dry run does without an answer. */
static ls_status check_cluster(ls_submit_request *q, bool dry_run, ls_err *err)
{
    ls_submit_cluster *c = ls_alloc(LS_MEM_CLI, sizeof *c);
    ls_err why = {0};
    ls_status st = LS_OK;

    if (c == NULL) return ls_fail(err, LS_NOMEM, "no memory");
    st = ls_slurm_cluster(c, &why);
    if (st == LS_OK)
        st = ls_submit_fit(q, c, err);
    else if (dry_run) {
        fprintf(stderr, "lockstep submit: not compared with a cluster: %s\n", why.text);
        st = LS_OK;
    } else
        st = ls_fail(err, st, "%s%s", why.text,
                     st == LS_INVALID ? ", or write the script with --dry-run and take it there" : "");
    ls_free(c);
    return st;
}

static ls_status write_script(plan *p, ls_err *err)
{
    p->is_new = access(p->run, F_OK) != 0;
    if (ls_folders_make(p->run, err) != LS_OK) return LS_IO;
    if (ls_replace_file(p->script, p->text.data, p->text.length, err) != LS_OK) return LS_IO;
    chmod(p->script, 0755);
    return LS_OK;
}

static ls_status submit(plan *p, char id[LS_SUBMIT_ID_MAX], ls_err *err)
{
    ls_err why = {0};
    ls_status st = LS_OK;

    LS_TRY(write_script(p, err));
    st = ls_slurm_submit(p->text.data, id, &why);
    if (st == LS_OK) return LS_OK;
    /* Nothing has begun: nothing stays. */
    unlink(p->script);
    if (p->is_new) rmdir(p->run);
    st = ls_fail(err, st == LS_IO ? LS_INVALID : st, "%s", why.text);
out:
    return st;
}

static int submit_and_follow(plan *p, const cli_args *args)
{
    char id[LS_SUBMIT_ID_MAX];
    ls_err err = {0};

    if (submit(p, id, &err) != LS_OK) return cli_fail("submit", &err);
    if (!args->json)
        printf("job           %s, %d x %d ranks with %d %s each\nrun           %s\nlog           %s\n", id,
               p->request.nodes, p->request.ranks_per_node, p->request.threads,
               p->request.threads == 1 ? "thread" : "threads", p->run, p->log);
    if (wants_follow(args)) return follow(id, p->run, p->log, args->json);
    if (args->json)
        print_result(id, p->run, p->log, NULL);
    else
        print_how_to_go_on(id);
    return CLI_DONE;
}

static void print_script(const plan *p, ls_submit_scheduler s, bool json)
{
    if (json)
        cli_print_json_take(json_pack("{s:s, s:n, s:s}", "event", "submit", "job", "script", p->text.data));
    else
        fputs(p->text.data, stdout);
    if (s == LS_SUBMIT_SLURM && access(p->run, F_OK) != 0)
        fprintf(stderr,
                "lockstep submit: who submits it by hand makes the folder of its log first, or Slurm ends it "
                "without "
                "a word: mkdir -p %s\n",
                p->run);
}

static int submit_new(const cli_args *args)
{
    plan *p = ls_alloc(LS_MEM_CLI, sizeof *p);
    ls_submit_scheduler s;
    ls_err err = {0};
    ls_status st = LS_OK;
    int code;

    if (p == NULL) LS_TRY(ls_fail(&err, LS_NOMEM, "no memory"));
    LS_TRY(ls_submit_scheduler_of(args->scheduler != NULL ? args->scheduler : "slurm", &s, &err));
    LS_TRY(prepare(p, args, &err));
    if (s == LS_SUBMIT_PBS) LS_TRY(check_pbs(&p->request.want, &err));
    if (s == LS_SUBMIT_SLURM) LS_TRY(check_cluster(&p->request, args->dry_run, &err));
    LS_TRY(ls_submit_script(&p->text, &p->request, s, &err));
out:
    code = CLI_DONE;
    if (st != LS_OK)
        code = cli_fail("submit", &err);
    else if (args->dry_run || s == LS_SUBMIT_PBS)
        print_script(p, s, args->json);
    else
        code = submit_and_follow(p, args);
    if (p != NULL) release(p);
    ls_free(p);
    return code;
}

int cli_submit(const cli_args *args)
{
    if (args->cancel != NULL) return cancel(args);
    if (cli_submit_is_of_job(args)) return follow(args->follow, NULL, NULL, args->json);
    return submit_new(args);
}
