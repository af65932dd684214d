/* browser.c: starts a program that goes on without this one. */
#include "browser.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_S                                                                                               \
    2.0 /* a program that fails at once is no browser; one that shows the page may end as it likes */

/* What a program that was started has come to. */
typedef struct outcome {
    int why;  /* the errno with which it could not be started; 0: it was */
    int code; /* the exit code with which it failed at once, or 128 + the signal; 0: it did not */
} outcome;

/* Becomes the program, or says through `told` why not. */
static void become(const char *program, const char *page, int told)
{
    int why;

    signal(SIGPIPE, SIG_DFL);
    execlp(program, program, page, (char *)NULL);
    why = errno;
    if (write(told, &why, sizeof why) < 0) _exit(126);
    _exit(127);
}

/* In a process of its own that outlives this one: starts the program, waits for its end, and says it through
 * `told` to whoever still listens. */
static void attend(const char *program, const char *page, int told)
{
    const int nothing = open("/dev/null", O_RDWR);
    int why[2], status = 0;
    outcome o = {0};
    pid_t child;

    setsid();
    /* Nor may it keep a pipe open that somebody reads this program's output from. */
    for (int fd = STDIN_FILENO; nothing >= 0 && fd <= STDERR_FILENO; fd++) dup2(nothing, fd);
    signal(SIGPIPE, SIG_IGN);
    if (pipe2(why, O_CLOEXEC) != 0) _exit(0);
    child = fork();
    if (child == 0) become(program, page, why[1]);
    close(why[1]);
    /* Nothing comes when the program has begun: its end of the pipe is closed. */
    if (child < 0 || read(why[0], &o.why, sizeof o.why) != (ssize_t)sizeof o.why)
        o.why = child < 0 ? EAGAIN : 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (o.why == 0) o.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    _exit(write(told, &o, sizeof o) == (ssize_t)sizeof o ? 0 : 1);
}

static outcome start(const char *program, const char *page)
{
    outcome o = {0};
    struct pollfd p = {.events = POLLIN};
    int ends[2];
    pid_t first;

    if (pipe2(ends, O_CLOEXEC) != 0) return (outcome){.why = errno};
    fflush(NULL);
    first = fork();
    if (first == 0) {
        close(ends[0]);
        /* The child of a child that is gone is nobody's to wait for. */
        if (fork() == 0) attend(program, page, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    p.fd = ends[0];
    if (first < 0)
        o.why = EAGAIN;
    else
        while (waitpid(first, NULL, 0) < 0 && errno == EINTR) continue;
    if (first > 0 && poll(&p, 1, (int)(LOOK_S * 1e3)) == 1 &&
        read(ends[0], &o, sizeof o) != (ssize_t)sizeof o)
        o = (outcome){.why = EAGAIN};
    close(ends[0]);
    return o;
}

ls_status browser_open(const char *page, ls_err *err)
{
    const char *list = getenv("BROWSER");
    char path[PATH_MAX], names[1024], *rest = NULL;
    const char *whole = realpath(page, path) != NULL ? path : page;
    outcome o = {.why = ENOENT};
    char reason[64];

    snprintf(names, sizeof names, "%s", list != NULL && list[0] != '\0' ? list : "xdg-open");
    for (char *name = strtok_r(names, ":", &rest); name != NULL && (o.why != 0 || o.code != 0);
         name = strtok_r(NULL, ":", &rest))
        o = start(name, whole);
    if (o.why == 0 && o.code == 0) return LS_OK;
    if (o.why == 0) snprintf(reason, sizeof reason, "it ended at once, with exit code %d", o.code);
    return ls_fail(
        err, LS_UNSUPPORTED, "no browser: %s cannot be started (%s); set BROWSER to one, or open %s yourself",
        list != NULL && list[0] != '\0' ? list : "xdg-open", o.why != 0 ? strerror(o.why) : reason, whole);
}
