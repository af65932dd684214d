/* command.c: one child process, its input from memory, both of its outputs read as they come.
 *
 * The input is an anonymous file rather than a pipe: a child that ends without reading it costs no SIGPIPE,
 * and nothing has to be written while its output is read. */
#include "base/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

extern char **environ;

typedef struct child {
    pid_t pid;
    int out, said; /* the ends that we read; -1: closed */
} child;

static void close_fd(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static ls_status open_input(int *fd, const char *input, ls_err *err)
{
    size_t n = input != NULL ? strlen(input) : 0;

    *fd = input != NULL ? memfd_create("input", MFD_CLOEXEC) : open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (*fd < 0) return ls_fail(err, LS_IO, "input of a command: %s", strerror(errno));
    while (n > 0) {
        const ssize_t k = write(*fd, input, n);
        if (k <= 0) return ls_fail(err, LS_IO, "input of a command: %s", strerror(errno));
        input += k;
        n -= (size_t)k;
    }
    lseek(*fd, 0, SEEK_SET);
    return LS_OK;
}

/* A child must not inherit that we block or ignore signals. */
static void set_attributes(posix_spawnattr_t *attr)
{
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(attr);
    posix_spawnattr_setpgroup(attr, 0);
    posix_spawnattr_setsigmask(attr, &none);
    posix_spawnattr_setsigdefault(attr, &all);
    posix_spawnattr_setflags(attr,
                             (short)(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
}

static ls_status start(child *c, const char *const *argv, int input, ls_err *err)
{
    int out[2] = {-1, -1}, said[2] = {-1, -1}, rc;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;

    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(said, O_CLOEXEC) != 0) {
        close_fd(&out[0]);
        close_fd(&out[1]);
        return ls_fail(err, LS_IO, "%s: %s", argv[0], strerror(errno));
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, said[1], STDERR_FILENO);
    set_attributes(&attr);
    rc = posix_spawnp(&c->pid, argv[0], &actions, &attr, (char *const *)argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    close_fd(&out[1]);
    close_fd(&said[1]);
    c->out = out[0];
    c->said = said[0];
    if (rc == 0) return LS_OK;
    c->pid = 0;
    if (rc == ENOENT) return ls_fail(err, LS_UNSUPPORTED, "there is no program \"%s\" here", argv[0]);
    return ls_fail(err, LS_IO, "%s: %s", argv[0], strerror(rc));
}

/* Takes what has come; closes the stream at its end. */
static void take(int *fd, ls_text *text)
{
    char bytes[4096];
    const ssize_t n = read(*fd, bytes, sizeof bytes);

    if (n < 0 && errno == EINTR) return;
    if (n <= 0)
        close_fd(fd);
    else if (text->length + (size_t)n <= LS_COMMAND_OUTPUT_MAX)
        ls_text_add(text, "%.*s", (int)n, bytes);
}

static ls_status collect(child *c, ls_command_result *r, const char *name, double limit_s, ls_err *err)
{
    const double end = ls_clock_seconds() + limit_s;

    while (c->out >= 0 || c->said >= 0) {
        struct pollfd fds[2] = {{.fd = c->out, .events = POLLIN}, {.fd = c->said, .events = POLLIN}};
        const double left = end - ls_clock_seconds();
        if (left <= 0) return ls_fail(err, LS_TIMEOUT, "%s did not answer within %.0f s", name, limit_s);
        if (poll(fds, 2, (int)(left * 1e3) + 1) < 0) continue; /* a signal */
        if (fds[0].revents != 0) take(&c->out, &r->out);
        if (fds[1].revents != 0) take(&c->said, &r->said);
    }
    return LS_OK;
}

static int reap(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

ls_status ls_command_run(ls_command_result *out, const char *const *argv, const char *input, double limit_s,
                         ls_err *err)
{
    child c = {.out = -1, .said = -1};
    int in = -1;
    ls_status st = LS_OK;

    LS_TRY(open_input(&in, input, err));
    LS_TRY(start(&c, argv, in, err));
    LS_TRY(collect(&c, out, argv[0], limit_s, err));
    if (out->out.failed || out->said.failed) st = ls_fail(err, LS_NOMEM, "no memory");
out:
    if (st != LS_OK && c.pid > 0) kill(-c.pid, SIGKILL);
    if (c.pid > 0) out->code = reap(c.pid);
    close_fd(&c.out);
    close_fd(&c.said);
    close_fd(&in);
    return st;
}

void ls_command_release(ls_command_result *r)
{
    ls_text_release(&r->out);
    ls_text_release(&r->said);
    *r = (ls_command_result){0};
}
