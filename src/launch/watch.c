/* watch.c: a launcher at work: it waits for ranks, signals and lines, and ends the run when a rank is lost.
 *
 * The first failure is the one that is named.  A rank that ends with code 4 has only noticed that another is
 * gone, so its peers get a moment to be the cause; when a rank fails, the heap's abort ends the waits of the
 * others, which then leave by themselves; those that do not are told to (SIGTERM) and then made to (SIGKILL),
 * all within a second.  The same happens when ranks get nothing done (stall.h): soon after they were asked to
 * stop, and by itself after the limit that the experiment sets. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/printable.h"
#include "launch/group_internal.h"

#define LEAVE_S   0.45 /* from the abort to SIGTERM */
#define KILL_S    0.85 /* and to SIGKILL */
#define SUSPECT_S 0.3  /* how long a rank that lost a peer waits for the peer's own end */
#define HEARD_S   0.1  /* after which an order to end is given once more, by another signal */

/* -- saying -----------------------------------------------------------------------------------------------
 */

void lsi_say_line(const char *line, size_t length)
{
    char buf[4096];
    const int n =
        snprintf(buf, sizeof buf, "%s%.*s", isatty(STDERR_FILENO) ? "\r\033[K" : "", (int)length, line);
    const size_t bytes = (size_t)n < sizeof buf ? (size_t)n : sizeof buf - 1;

    if ((size_t)n >= sizeof buf) buf[bytes - 1] = '\n'; /* what is cut still ends its line */
    /* One write, so that lines of several processes never mix.  Nothing can be done when it fails. */
    ssize_t ignored = write(STDERR_FILENO, buf, bytes);
    (void)ignored;
}

void lsi_say(const char *fmt, ...)
{
    char line[2048], clean[2048];
    va_list ap;
    int n, m;

    n = snprintf(line, sizeof line, "lockstep: ");
    va_start(ap, fmt);
    m = vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
    va_end(ap);
    n = n + m < (int)sizeof line - 2 ? n + m : (int)sizeof line - 2;
    n = (int)ls_printable(line, (size_t)n, clean, sizeof clean - 1);
    clean[n++] = '\n';
    lsi_say_line(clean, (size_t)n);
}

/* -- ending -----------------------------------------------------------------------------------------------
 */

static void signal_ranks(lsi_group *g, int number, int how)
{
    for (int i = 0; i < g->n; i++) {
        const lsi_member *m = &g->members[i];
        if (m->pid <= 0 || m->gone) continue;
        if (number == SIGKILL || number == SIGSTOP || number == SIGCONT)
            kill(-m->pid, number);
        else
            sigqueue(m->pid, number, (union sigval){.sival_int = how});
    }
}

/* The ranks are to be gone within a second. */
static void end_ranks(lsi_group *g, double leave)
{
    const double now = ls_clock_seconds();

    if (isfinite(g->kill_at)) return;
    /* One that is stopped cannot leave, nor obey: it is not waited for. */
    for (int i = 0; i < g->n; i++) {
        const lsi_member *m = &g->members[i];
        if (m->pid > 0 && !m->gone && lsi_process_is_stopped(m->pid)) kill(-m->pid, SIGKILL);
    }
    g->term_at = now + leave;
    g->kill_at = now + KILL_S;
}

static void end_overdue(lsi_group *g, double now)
{
    if (now >= g->term_at) {
        g->term_at = (double)INFINITY;
        signal_ranks(g, SIGTERM, LSI_STOP_NOW);
    }
    if (now >= g->kill_at) {
        g->kill_at = now + KILL_S; /* again, in case a rank was just being born */
        signal_ranks(g, SIGKILL, 0);
    }
}

void lsi_group_kill(lsi_group *g)
{
    signal_ranks(g, SIGKILL, 0);
    for (int i = 0; i < g->n; i++) {
        lsi_member *m = &g->members[i];
        if (m->pid <= 0 || m->gone) continue;
        while (waitpid(m->pid, &m->status, 0) < 0 && errno == EINTR) {
        }
        m->gone = true;
        g->n_alive--;
    }
}

void lsi_group_fail(lsi_group *g, const lsi_failure *f)
{
    if (g->failure.text[0] != '\0') return;
    g->failure = *f;
    if (g->n_alive > 0)
        lsi_say("%s; ending the other rank%s here", f->text, g->n_alive == 1 ? "" : "s");
    else
        lsi_say("%s", f->text);
    ls_comm_heap_abort(g->heap, f->rank, f->text);
    end_ranks(g, LEAVE_S);
}

/* A rank that has not yet taken the first signal never gets the second of the same kind.  It learns from the
 * heap that the run ends, so that those that did are not lost to it, and gets the order again. */
void lsi_group_stop(lsi_group *g, int number, int how)
{
    if (how <= g->stop_how) return;
    if (g->stop_how == 0) g->asked_at = ls_clock_seconds();
    g->stop_how = how;
    g->stop_number = number;
    if (how == LSI_STOP_NOW) ls_comm_heap_end(g->heap, LS_CANCELLED, "told to stop at once");
    signal_ranks(g, number, how);
    if (how == LSI_STOP_NOW) end_ranks(g, HEARD_S);
}

/* -- ranks that end ---------------------------------------------------------------------------------------
 */

static int code_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : LS_EXIT_LOST;
}

/* With all its work done, or after a checkpoint. */
static bool ended_well(int status)
{
    return WIFEXITED(status) &&
           (WEXITSTATUS(status) == LS_EXIT_DONE || WEXITSTATUS(status) == LS_EXIT_STOPPED ||
            WEXITSTATUS(status) == LSI_EXIT_UNHEARD);
}

/* Ranks that were told to end at once end as they happen to: by the signal, or because of others that did. */
static bool is_failure(const lsi_group *g, int status)
{
    if (g->gave_up || g->stop_how == LSI_STOP_NOW) return false;
    if (WIFEXITED(status)) return !ended_well(status);
    return !(g->stop_how > 0 && WTERMSIG(status) == g->stop_number);
}

/* ": WHY", where a rank ended because waits did: it leaves it to its launcher to say so (cmd/ranks.c), and
 * what ranks have found by themselves, such as a machine that sends what does not fit, nobody else knows. */
static void say_why(const lsi_group *g, const lsi_member *m, char *text, size_t bytes)
{
    char why[256];

    text[0] = '\0';
    if (WIFEXITED(m->status) && WEXITSTATUS(m->status) == LS_EXIT_LOST &&
        ls_comm_heap_ended(g->heap, why, sizeof why))
        snprintf(text, bytes, ": %s", why);
}

static void describe(const lsi_group *g, int i, lsi_failure *f)
{
    const lsi_member *m = &g->members[i];
    ls_comm_look look;
    char end[96], where[160] = "", step[48] = "", why[260];

    ls_comm_heap_look(g->heap, i, &look);
    if (WIFSIGNALED(m->status))
        snprintf(end, sizeof end, "was killed by signal %d (%s)", WTERMSIG(m->status),
                 strsignal(WTERMSIG(m->status)));
    else
        snprintf(end, sizeof end, "failed with exit code %d", WEXITSTATUS(m->status));
    if (look.step >= 0) snprintf(step, sizeof step, " of step %lld", (long long)look.step);
    if (look.what[0] != '\0')
        snprintf(where, sizeof where, " in or after \"%s\"%s", look.what, step);
    else if (look.pid == 0)
        snprintf(where, sizeof where, " before it met the others");
    f->rank = g->start->place.rank + i;
    f->code = code_of(m->status);
    say_why(g, m, why, sizeof why);
    snprintf(f->text, sizeof f->text, "rank %d (host %s, pid %d) %s%s%s", f->rank, g->host, (int)m->pid, end,
             where, why);
}

static void declare(lsi_group *g, int i)
{
    lsi_failure f;

    describe(g, i, &f);
    lsi_fold_flush_of(g->fold, i); /* its own words first */
    if (g->hooks != NULL && g->hooks->failed != NULL) g->hooks->failed(g->hooks->ctx, &f);
    lsi_group_fail(g, &f);
}

/* `now` is one moment for all that is read together: lines that lay there at once are folded, however long
 * this process had to wait for a core meanwhile. */
static void read_pipe(lsi_group *g, int i, double now)
{
    lsi_member *m = &g->members[i];
    char buf[8192];

    while (m->pipe >= 0) {
        const ssize_t n = read(m->pipe, buf, sizeof buf);
        if (n > 0) {
            lsi_fold_add(g->fold, i, buf, (size_t)n, now);
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n < 0 && errno == EAGAIN && !m->gone) {
            return;
        } else { /* its end, or all that a rank which is gone has left */
            close(m->pipe);
            m->pipe = -1;
            lsi_fold_end(g->fold, i, now);
        }
    }
}

/* What a rank has started goes with it; that is done while its process number is still its own. */
static bool take_end(lsi_member *m)
{
    siginfo_t info = {0};

    if (waitid(P_PID, (id_t)m->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != m->pid)
        return false;
    kill(-m->pid, SIGKILL);
    m->gone = waitpid(m->pid, &m->status, 0) == m->pid;
    return m->gone;
}

static void reap(lsi_group *g)
{
    const double now = ls_clock_seconds();
    int cause = -1;

    for (int i = 0; i < g->n; i++) {
        lsi_member *m = &g->members[i];
        if (m->gone || !take_end(m)) continue;
        g->n_alive--;
        read_pipe(g, i, now);
        /* It could not take the request as one (it was just starting): without it nobody comes to an end. */
        if (WIFSIGNALED(m->status) && !is_failure(g, m->status))
            lsi_group_stop(g, g->stop_number, LSI_STOP_NOW);
        if (!is_failure(g, m->status)) continue;
        if (code_of(m->status) != LS_EXIT_LOST || WIFSIGNALED(m->status)) {
            if (cause < 0) cause = i;
        } else if (g->suspect < 0) {
            g->suspect = i;
            g->suspect_until = now + SUSPECT_S;
        }
    }
    if (g->failure.text[0] != '\0') return;
    if (cause >= 0) declare(g, cause);
}

static void judge_suspect(lsi_group *g, double now)
{
    if (g->suspect < 0 || g->failure.text[0] != '\0') return;
    if (now >= g->suspect_until || g->n_alive == 0) declare(g, g->suspect);
}

/* -- signals ----------------------------------------------------------------------------------------------
 */

static void pause_with_ranks(lsi_group *g)
{
    signal_ranks(g, SIGSTOP, 0);
    kill(getpid(), SIGSTOP);
    signal_ranks(g, SIGCONT, 0);
}

static void take_request(lsi_group *g, int number)
{
    const int how = g->stop_how == 0 ? LSI_STOP_SOON : LSI_STOP_NOW;

    if (number == SIGINT)
        lsi_say("%s", how == LSI_STOP_SOON ? "stopping (training: after a checkpoint); once more stops now"
                                           : "stopping now");
    lsi_group_stop(g, number, how);
    if (g->hooks != NULL && g->hooks->stop_asked != NULL) g->hooks->stop_asked(g->hooks->ctx, number, how);
}

static void read_signals(lsi_group *g)
{
    struct signalfd_siginfo s;

    while (read(g->signals, &s, sizeof s) == (ssize_t)sizeof s) {
        const int number = (int)s.ssi_signo;
        if (number == SIGTSTP)
            pause_with_ranks(g);
        else if (number != SIGCHLD)
            take_request(g, number);
    }
    reap(g);
}

/* -- stalls -----------------------------------------------------------------------------------------------
 */

/* Of any rank here. */
static bool is_before_first_step(const lsi_group *g)
{
    for (int i = 0; i < g->n; i++) {
        ls_comm_look look;
        ls_comm_heap_look(g->heap, i, &look);
        if (look.step >= 0) return false;
    }
    return true;
}

/* They were asked to stop and cannot. */
static void give_up(lsi_group *g, const char *why)
{
    const int number = g->stop_number;

    lsi_say("%s", why);
    g->gave_up = true;
    g->gave_up_early = lsi_signals_are_watched() && is_before_first_step(g);
    if (g->end != NULL) snprintf(g->end->why, sizeof g->end->why, "%s", why);
    ls_comm_heap_end(g->heap, LS_CANCELLED, why);
    g->stop_how = LSI_STOP_NOW;
    end_ranks(g, LEAVE_S);
    if (g->hooks != NULL && g->hooks->stop_asked != NULL)
        g->hooks->stop_asked(g->hooks->ctx, number, LSI_STOP_NOW);
}

static void fail_stalled(lsi_group *g, const char *why)
{
    const int late = lsi_stall_late(&g->stall);
    lsi_failure f = {.rank = late >= 0 ? late : g->start->place.rank, .code = LS_EXIT_LOST};

    snprintf(f.text, sizeof f.text, "%s", why);
    ls_comm_heap_end(g->heap, LS_LOST, why);
    if (g->hooks != NULL && g->hooks->failed != NULL) g->hooks->failed(g->hooks->ctx, &f);
    lsi_group_fail(g, &f);
}

static void look_for_stall(lsi_group *g, double now)
{
    const lsi_group_hooks *h = g->hooks;
    uint64_t elsewhere = 0;
    char why[512];
    bool over;

    if (now < g->look_at) return;
    g->look_at = now + LSI_STALL_LOOK_S;
    if (g->n_alive == 0 || g->failure.text[0] != '\0' || isfinite(g->kill_at)) return;
    if (h != NULL && h->elsewhere != NULL) elsewhere = h->elsewhere(h->ctx);
    over = lsi_stall_look(&g->stall, now, g->asked_at, elsewhere, why, sizeof why);
    if (h != NULL && h->moved != NULL) h->moved(h->ctx, g->stall.moves);
    if (!over) return;
    if (g->stop_how > 0)
        give_up(g, why);
    else
        fail_stalled(g, why);
}

/* -- the loop ---------------------------------------------------------------------------------------------
 */

static double earlier(double a, double b)
{
    return a < b ? a : b;
}

static int timeout_ms(const lsi_group *g)
{
    double due = earlier(lsi_fold_due(g->fold), earlier(g->term_at, g->kill_at)), wait;

    due = earlier(due, g->look_at);

    if (g->suspect >= 0 && g->failure.text[0] == '\0') due = earlier(due, g->suspect_until);
    if (g->hooks != NULL && g->hooks->due != NULL) due = earlier(due, g->hooks->due(g->hooks->ctx));
    if (!isfinite(due)) return -1;
    wait = (due - ls_clock_seconds()) * 1e3;
    return wait <= 0 ? 0 : wait > 60000 ? 60000 : (int)ceil(wait);
}

static bool is_busy(const lsi_group *g)
{
    return g->hooks != NULL && g->hooks->busy != NULL && g->hooks->busy(g->hooks->ctx);
}

static int exit_code(const lsi_group *g)
{
    int code = LS_EXIT_DONE;

    if (g->failure.text[0] != '\0') return g->failure.code;
    if (g->gave_up) return g->gave_up_early ? LS_EXIT_STOPPED : 128 + g->stop_number;
    for (int i = 0; i < g->n; i++) {
        /* Not a failure, so by the signal that was passed on. */
        if (!ended_well(g->members[i].status)) return 128 + g->stop_number;
        if (code_of(g->members[i].status) == LS_EXIT_STOPPED) code = LS_EXIT_STOPPED;
        if (code_of(g->members[i].status) == LSI_EXIT_UNHEARD && code == LS_EXIT_DONE) code = LS_EXIT_FAILED;
    }
    return code;
}

static void poll_once(lsi_group *g)
{
    struct pollfd *extra = g->fds + 1 + g->n;
    int n_extra = 0;

    g->fds[0] = (struct pollfd){.fd = g->signals, .events = POLLIN};
    for (int i = 0; i < g->n; i++)
        g->fds[1 + i] = (struct pollfd){.fd = g->members[i].pipe, .events = POLLIN};
    if (g->hooks != NULL && g->hooks->descriptors != NULL)
        n_extra = g->hooks->descriptors(g->hooks->ctx, extra);
    if (poll(g->fds, (nfds_t)(1 + g->n + n_extra), timeout_ms(g)) < 0 && errno != EINTR) return;
    const double woken = ls_clock_seconds();
    for (int i = 0; i < g->n; i++)
        if (g->fds[1 + i].revents != 0) read_pipe(g, i, woken);
    read_signals(g);
    if (g->hooks != NULL && g->hooks->ready != NULL) g->hooks->ready(g->hooks->ctx, g, extra, n_extra);
    const double now = ls_clock_seconds();
    judge_suspect(g, now);
    look_for_stall(g, now);
    end_overdue(g, now);
    lsi_fold_flush(g->fold, now);
}

int lsi_group_watch(lsi_group *g)
{
    bool told = false;

    if (*ls_launch_stop_requests() > 0)
        take_request(g, lsi_stop_number()); /* it came before there were ranks */
    while (g->n_alive > 0 || is_busy(g)) {
        poll_once(g);
        if (g->n_alive > 0 || told) continue;
        judge_suspect(g, ls_clock_seconds());
        told = true;
        if (g->hooks != NULL && g->hooks->finished != NULL) g->hooks->finished(g->hooks->ctx, exit_code(g));
    }
    lsi_fold_flush_all(g->fold);
    return exit_code(g);
}
