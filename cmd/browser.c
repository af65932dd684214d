/* browser.c: starts a program that goes on without this one. */
#include "browser.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* In a process of its own that nobody waits for: becomes the program, or says through `told` why not. */
static void become(const char *program, const char *page, int told)
{
    const int nothing = open("/dev/null", O_RDWR);
    int why;

    setsid();
    if (nothing >= 0) {
        dup2(nothing, STDIN_FILENO);
        dup2(nothing, STDOUT_FILENO);
        dup2(nothing, STDERR_FILENO);
    }
    execlp(program, program, page, (char *)NULL);
    why = errno;
    if (write(told, &why, sizeof why) < 0) _exit(126);
    _exit(127);
}

/* 0, or why it could not be started. */
static int start(const char *program, const char *page)
{
    int ends[2], why = 0;
    pid_t first;

    if (pipe2(ends, O_CLOEXEC) != 0) return errno;
    first = fork();
    if (first == 0) {
        /* The child of a child that is gone is nobody's to wait for. */
        if (fork() == 0) become(program, page, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    if (first < 0) {
        close(ends[0]);
        return EAGAIN;
    }
    while (waitpid(first, NULL, 0) < 0 && errno == EINTR) continue;
    /* Nothing comes when the program has begun: its end of the pipe is closed. */
    if (read(ends[0], &why, sizeof why) != (ssize_t)sizeof why) why = 0;
    close(ends[0]);
    return why;
}

ls_status browser_open(const char *page, ls_err *err)
{
    const char *list = getenv("BROWSER");
    char path[PATH_MAX], names[1024], *rest = NULL;
    const char *whole = realpath(page, path) != NULL ? path : page;
    int why = ENOENT;

    snprintf(names, sizeof names, "%s", list != NULL && list[0] != '\0' ? list : "xdg-open");
    for (char *name = strtok_r(names, ":", &rest); name != NULL && why != 0;
         name = strtok_r(NULL, ":", &rest))
        why = start(name, whole);
    if (why != 0)
        ls_fail(err, LS_UNSUPPORTED,
                "no browser: %s cannot be started (%s); set BROWSER to one, or open %s yourself",
                list != NULL && list[0] != '\0' ? list : "xdg-open", strerror(why), whole);
    return why == 0 ? LS_OK : LS_UNSUPPORTED;
}
