/* group.c: starts the ranks of this machine by fork.
 *
 * Before the fork: the shared heap, a pipe per rank, signals blocked (the launcher reads them as data).  In
 * the child: a process group of its own, so that Ctrl-C reaches the launcher alone; the kernel's promise to
 * kill it when the launcher dies, however that happens; its cores; then the communicator and the rank's work.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/machine.h"
#include "base/output.h"
#include "launch/group_internal.h"

/* -- in a rank --------------------------------------------------------------------------------------------
 */

/* Standard input is nobody's: a rank that reads a terminal in the background would be stopped.  Rank 0 of the
 * run keeps the terminal for its progress; what others say goes to the launcher. */
static void redirect(int out)
{
    int none = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (none >= 0) dup2(none, STDIN_FILENO);
    if (out < 0) return;
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
}

/* Descriptors of the launcher, which a rank must not hold: a pipe would never end. */
static void drop_descriptors(const lsi_group *g, const int *ends)
{
    close(g->signals);
    for (int i = 0; i < g->n; i++) {
        if (g->members[i].pipe >= 0) close(g->members[i].pipe);
        if (ends[i] >= 0) close(ends[i]);
    }
}

static ls_status open_comm(const lsi_group *g, ls_comm **comm, int i, ls_err *err)
{
    if (g->hooks != NULL && g->hooks->open_comm != NULL)
        return g->hooks->open_comm(g->hooks->ctx, comm, ls_comm_heap_fd(g->heap), i, err);
    return ls_comm_open_local(comm, ls_comm_heap_fd(g->heap), i, g->n, err);
}

/* The exit code of a rank whose work ended with `code`. */
static int said_all(int code)
{
    ls_err err = {0};

    if (ls_output_end(&err) == LS_OK) return code;
    fprintf(stderr, "lockstep: %s\n", err.text);
    return code == LS_EXIT_DONE ? LSI_EXIT_UNHEARD : code;
}

LS_NORETURN static void be_rank(lsi_group *g, int i, const int *ends, pid_t launcher, ls_rank_main rank_main,
                                void *arg)
{
    ls_place place = g->start->place;
    ls_comm *comm = NULL;
    ls_err err = {0};
    int code;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* The launcher may have died before the promise was given. */
    if (getppid() != launcher) _exit(LS_EXIT_LOST);
    redirect(ends[i]);
    ls_output_forget();
    drop_descriptors(g, ends);
    lsi_signals_of_rank(launcher);
    sigprocmask(SIG_SETMASK, &g->old_mask, NULL);
    lsi_cores_bind(g->cores, i);
    place.rank += i;
    place.local_rank += i;
    place.threads = g->cores->threads;
    if (open_comm(g, &comm, i, &err) == LS_OK) {
        code = rank_main(&place, comm, arg);
    } else {
        const bool asked = *ls_launch_stop_requests() > 0;
        code = asked && err.status == LS_CANCELLED ? LS_EXIT_STOPPED : ls_launch_exit_code(err.status);
        if (code != LS_EXIT_LOST && code != LS_EXIT_STOPPED)
            fprintf(stderr, "lockstep: rank %d: %s\n", place.rank, err.text);
    }
    ls_comm_close(comm);
    exit(said_all(code));
}

/* -- in the launcher --------------------------------------------------------------------------------------
 */

static ls_status open_signals(lsi_group *g, ls_err *err)
{
    static const int watched[] = {SIGCHLD, SIGINT, SIGTERM, SIGUSR1, SIGTSTP};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof watched / sizeof watched[0]; i++) sigaddset(&set, watched[i]);
    if (ls_launch_minds_hangup()) sigaddset(&set, SIGHUP);
    g->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (g->signals < 0) return ls_fail(err, LS_IO, "signalfd: %s", strerror(errno));
    sigprocmask(SIG_BLOCK, &set, &g->old_mask);
    return LS_OK;
}

static bool has_terminal(const lsi_group *g, int i)
{
    return g->start->place.rank + i == 0;
}

static ls_status open_pipes(lsi_group *g, int *ends, ls_err *err)
{
    for (int i = 0; i < g->n; i++) {
        int p[2];
        if (has_terminal(g, i)) {
            lsi_fold_end(g->fold, i, 0);
            continue;
        }
        if (pipe2(p, O_CLOEXEC) != 0)
            return ls_fail(err, LS_IO, "a pipe for rank %d: %s", i, strerror(errno));
        fcntl(p[0], F_SETFL, O_NONBLOCK);
        g->members[i].pipe = p[0];
        ends[i] = p[1];
    }
    return LS_OK;
}

static ls_status fork_ranks(lsi_group *g, const int *ends, ls_rank_main rank_main, void *arg, ls_err *err)
{
    const pid_t launcher = getpid();

    fflush(NULL); /* or every rank would write again what lies in the buffers */
    for (int i = 0; i < g->n; i++) {
        const pid_t pid = fork();
        if (pid < 0) return ls_fail(err, LS_NOMEM, "starting rank %d of %d: %s", i, g->n, strerror(errno));
        if (pid == 0) be_rank(g, i, ends, launcher, rank_main, arg);
        setpgid(pid, pid); /* both sides do, so that it holds whoever runs first */
        g->members[i].pid = pid;
        g->n_alive++;
    }
    return LS_OK;
}

/* What ranks say after the first failure follows from it: MPI's libraries alone fill a screen. */
static void show(void *ctx, const char *line, size_t length)
{
    const lsi_group *g = ctx;

    if (g->failure.text[0] == '\0') lsi_say_line(line, length);
}

static ls_status start_group(lsi_group *g, int *ends, ls_rank_main rank_main, void *arg, ls_err *err)
{
    ls_status st = LS_OK;

    for (int i = 0; i < g->n; i++) ends[i] = g->members[i].pipe = -1;
    ls_machine_allow_descriptors(2 * g->n + 256); /* a pipe per rank, and some more */
    LS_TRY(ls_comm_heap_create(&g->heap, g->n, err));
    LS_TRY(lsi_stall_open(&g->stall, g->heap, g->n, err));
    LS_TRY(lsi_fold_create(&g->fold, g->n, g->start->place.rank, show, g, err));
    LS_TRY(open_signals(g, err));
    LS_TRY(open_pipes(g, ends, err));
    LS_TRY(fork_ranks(g, ends, rank_main, arg, err));
out:
    for (int i = 0; i < g->n; i++)
        if (ends[i] >= 0) close(ends[i]);
    return st;
}

static void release_group(lsi_group *g)
{
    for (int i = 0; g->members != NULL && i < g->n; i++)
        if (g->members[i].pipe >= 0) close(g->members[i].pipe);
    if (g->signals >= 0) {
        close(g->signals);
        sigprocmask(SIG_SETMASK, &g->old_mask, NULL);
    }
    lsi_stall_release(&g->stall);
    lsi_fold_destroy(g->fold);
    ls_comm_heap_destroy(g->heap);
    ls_free(g->members);
    ls_free(g->fds);
}

static void note_end(const lsi_group *g)
{
    if (g->end == NULL) return;
    if (g->end->why[0] == '\0') snprintf(g->end->why, sizeof g->end->why, "%s", g->failure.text);
    g->end->stop_number = g->stop_how > 0 ? g->stop_number : 0;
}

ls_status lsi_group_run(const ls_start *start, const lsi_cores *cores, ls_rank_main rank_main, void *arg,
                        const lsi_group_hooks *hooks, ls_launch_end *end, int *code, ls_err *err)
{
    const int n = start->place.local_size;
    lsi_group g = {.start = start,
                   .cores = cores,
                   .hooks = hooks,
                   .n = n,
                   .signals = -1,
                   .suspect = -1,
                   .end = end,
                   .asked_at = (double)INFINITY,
                   .term_at = (double)INFINITY,
                   .kill_at = (double)INFINITY};
    int *ends = ls_alloc(LS_MEM_CLI, sizeof *ends * (size_t)n);
    ls_status st = LS_OK;

    g.members = ls_alloc(LS_MEM_CLI, sizeof *g.members * (size_t)n);
    g.fds = ls_alloc(LS_MEM_CLI, sizeof *g.fds * ((size_t)n + 1 + LSI_EXTRA_FDS_MAX));
    if (ends == NULL || g.members == NULL || g.fds == NULL) {
        st = ls_fail(err, LS_NOMEM, "no memory for %d ranks", n);
        goto out;
    }
    if (end != NULL) *end = (ls_launch_end){0};
    if (gethostname(g.host, sizeof g.host - 1) != 0) snprintf(g.host, sizeof g.host, "?");
    LS_TRY(start_group(&g, ends, rank_main, arg, err));
    if (hooks != NULL && hooks->started != NULL) LS_TRY(hooks->started(hooks->ctx, err));
    *code = lsi_group_watch(&g);
    note_end(&g);
out:
    if (g.n_alive > 0) lsi_group_kill(&g);
    release_group(&g);
    ls_free(ends);
    return st;
}
