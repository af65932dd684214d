/* child.c: a point as a child process of this program, on this machine. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "launch/launch.h"
#include "study/study_internal.h"

enum { LINE_BYTES_MAX = 4 << 20 };

#define BENCH_GRACE_S 5.0  /* for a benchmark that is told to end */
#define TRAIN_GRACE_S 60.0 /* for a training run, which writes a checkpoint first */

typedef struct child {
    pid_t pid;
    int out;      /* its standard output */
    ls_text line; /* what came since the last complete line */
    ls_text last; /* that one */
    bool asked;   /* it was told to end */
    double kill_at;
} child;

/* -- starting ---------------------------------------------------------------------------------------------
 */

/* In the child, between fork and exec. */
static void become(const ls_study_job *job, int out, pid_t parent)
{
    sigset_t none;
    const int log = open(job->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

    /* A group of its own: Ctrl-C at the terminal reaches the study alone, which decides. */
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    /* A parent that was gone before that call will never send the signal. */
    if (getppid() != parent) _exit(LS_EXIT_FAILED);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    if (log >= 0) dup2(log, STDERR_FILENO);
    dup2(out, STDOUT_FILENO);
    /* This very program, even where its file has been replaced since: one version measures all points. */
    execv("/proc/self/exe", (char *const *)job->argv);
    fprintf(stderr, "cannot start: %s\n", strerror(errno));
    _exit(LS_EXIT_FAILED);
}

static ls_status start(child *c, const ls_study_job *job, ls_err *err)
{
    const pid_t parent = getpid();
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0) return ls_fail(err, LS_IO, "pipe: %s", strerror(errno));
    /* What still lies in buffers would be printed by both. */
    fflush(NULL);
    c->pid = fork();
    if (c->pid == 0) become(job, ends[1], parent);
    close(ends[1]);
    if (c->pid < 0) {
        close(ends[0]);
        return ls_fail(err, LS_IO, "fork: %s", strerror(errno));
    }
    /* The child does the same: whoever is first, the group is there before anybody signals it. */
    setpgid(c->pid, c->pid);
    c->out = ends[0];
    return LS_OK;
}

/* -- listening --------------------------------------------------------------------------------------------
 */

/* Only the last complete line is a result; the others are forgotten. */
static void take(child *c, const char *bytes, size_t n)
{
    while (n > 0) {
        const char *end = memchr(bytes, '\n', n);
        const size_t length = end != NULL ? (size_t)(end - bytes) : n;
        if (c->line.length + length <= LINE_BYTES_MAX) ls_text_add(&c->line, "%.*s", (int)length, bytes);
        if (end == NULL) return;
        ls_text_release(&c->last);
        c->last = c->line;
        c->line = (ls_text){0};
        bytes += length + 1;
        n -= length + 1;
    }
}

static void ask_to_end(child *c, const ls_study_job *job)
{
    struct signalfd_siginfo info;

    if (read(job->stop_fd, &info, sizeof info) != (ssize_t)sizeof info) return;
    /* Its ranks die with it, however it ends. */
    kill(c->pid, c->asked ? SIGKILL : SIGTERM);
    if (!c->asked) c->kill_at = ls_clock_seconds() + (job->study->train ? TRAIN_GRACE_S : BENCH_GRACE_S);
    c->asked = true;
}

/* Until its standard output ends. */
static void listen_to(child *c, const ls_study_job *job)
{
    struct pollfd on[2] = {{.fd = c->out, .events = POLLIN}, {.fd = job->stop_fd, .events = POLLIN}};
    char bytes[4096];

    for (;;) {
        const double left = c->kill_at - ls_clock_seconds();
        const int wait_ms = !c->asked ? -1 : left > 0 ? (int)(left * 1000) + 1 : 0;
        const int n = poll(on, 2, wait_ms);
        ssize_t got;
        if (n < 0 && errno != EINTR) return;
        if (n == 0) kill(c->pid, SIGKILL);
        if (n == 0) c->kill_at += BENCH_GRACE_S;
        if (n <= 0) continue;
        if (on[1].revents != 0) ask_to_end(c, job);
        if (on[0].revents == 0) continue;
        got = read(c->out, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return;
        take(c, bytes, (size_t)got);
    }
}

/* -- ending -----------------------------------------------------------------------------------------------
 */

/* The last words of the log, on one line. */
static void last_words(const char *log, char *buf, size_t size)
{
    char *bytes = NULL, *at;
    size_t n = 0;

    buf[0] = '\0';
    if (lsi_study_read(log, &bytes, &n, NULL) == LS_OK && n > 0) {
        at = n > size / 2 ? bytes + n - size / 2 : bytes;
        snprintf(buf, size, ": %s", at);
        for (char *p = buf; *p != '\0'; p++)
            if (*p == '\n') *p = p[1] != '\0' ? ' ' : '\0';
    }
    ls_free(bytes);
}

ls_status lsi_point_failed(const char *log, int code, ls_err *err)
{
    const ls_status st = code == LS_EXIT_INVALID     ? LS_INVALID
                         : code == LS_EXIT_DAMAGED   ? LS_DATA
                         : code == LS_EXIT_LOST      ? LS_LOST
                         : code == LS_EXIT_DISAGREED ? LS_DISAGREE
                                                     : LS_DEVICE;
    char words[1024];

    last_words(log, words, sizeof words);
    return ls_fail(err, st, "exit code %d%s", code, words);
}

static ls_status judge_end(const child *c, const ls_study_job *job, int status, ls_err *err)
{
    char words[1024];

    if (WIFEXITED(status) && WEXITSTATUS(status) == LS_EXIT_DONE) return LS_OK;
    if (c->asked) return ls_fail(err, LS_CANCELLED, "stopped on request");
    if (WIFEXITED(status)) return lsi_point_failed(job->log, WEXITSTATUS(status), err);
    last_words(job->log, words, sizeof words);
    return ls_fail(err, LS_LOST, "ended by signal %d%s", WTERMSIG(status), words);
}

ls_status ls_study_run_child(void *ctx, const ls_study_job *job, ls_text *line, ls_err *err)
{
    child c = {.out = -1};
    ls_status st = LS_OK;
    int status = 0;

    (void)ctx;
    LS_TRY(start(&c, job, err));
    listen_to(&c, job);
    close(c.out);
    while (waitpid(c.pid, &status, 0) < 0 && errno == EINTR) continue;
    LS_TRY(judge_end(&c, job, status, err));
    if (c.asked) LS_TRY(ls_fail(err, LS_CANCELLED, "stopped on request"));
    if (c.last.failed) LS_TRY(ls_fail(err, LS_NOMEM, "no memory"));
    ls_text_add(line, "%s\n", c.last.data != NULL ? c.last.data : "");
out:
    ls_text_release(&c.line);
    ls_text_release(&c.last);
    return st;
}
