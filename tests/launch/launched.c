/* launched.c: a launcher with its ranks as a child of the test. */
#include "launched.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "check.h"

typedef struct call {
    ls_rank_main rank_main;
    launched *l;
} call;

/* What every rank does first. */
static int rank_of_test(const ls_place *place, ls_comm *comm, void *arg)
{
    const call *c = arg;
    cpu_set_t set;

    c->l->board->pid[place->rank] = getpid();
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    c->l->board->cpus[place->rank] = CPU_COUNT(&set);
    return c->rank_main(place, comm, c->l);
}

/* Whether the process is gone: waits up to a few seconds for its end, which init may not have collected yet.
 */
static bool is_gone(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;

    if (fd < 0) return errno == ESRCH;
    n = poll(&p, 1, 20000);
    close(fd);
    return n == 1;
}

launched *launched_start(const ls_launch_options *o, ls_rank_main rank_main, int which)
{
    launched *l = ls_alloc(LS_MEM_TEST, sizeof *l);
    int p[2];

    REQUIRE(l != NULL && o->ranks <= LAUNCHED_RANKS_MAX);
    l->board = mmap(NULL, sizeof *l->board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(l->board != MAP_FAILED);
    l->board->which = which;
    REQUIRE(pipe(p) == 0 && pipe(l->ready) == 0 && pipe(l->go) == 0);
    fflush(NULL);
    l->launcher = fork();
    REQUIRE(l->launcher >= 0);
    if (l->launcher == 0) {
        const call c = {rank_main, l};
        ls_start start;
        ls_err err = {0};
        int code = 99;
        dup2(p[1], STDOUT_FILENO);
        dup2(p[1], STDERR_FILENO);
        close(p[0]);
        close(p[1]);
        if (ls_launch_detect(&start, o, ls_launch_env, NULL, &err) != LS_OK ||
            ls_launch_run(&start, o, rank_of_test, (void *)&c, &code, &err) != LS_OK)
            fprintf(stderr, "not started: %s\n", err.text);
        ls_free(l);
        exit(code);
    }
    close(p[1]);
    l->output = p[0];
    return l;
}

void launched_ready(const launched *l)
{
    if (write(l->ready[1], "r", 1) != 1) abort();
}

void launched_wait_go(const launched *l)
{
    char c;
    ssize_t n;

    do {
        n = read(l->go[0], &c, 1);
    } while (n < 0 && errno == EINTR);
}

void launched_await(const launched *l, int n)
{
    char c;

    for (int i = 0; i < n; i++) REQUIRE(read(l->ready[0], &c, 1) == 1);
}

void launched_go(const launched *l, int n)
{
    for (int i = 0; i < n; i++) REQUIRE(write(l->go[1], "g", 1) == 1);
}

void launched_pause(const launched *l)
{
    int status = 0;

    REQUIRE(kill(l->launcher, SIGSTOP) == 0);
    REQUIRE(waitpid(l->launcher, &status, WUNTRACED) == l->launcher && WIFSTOPPED(status));
}

int launched_end(launched *l, char *text, size_t size)
{
    size_t at = 0;
    ssize_t n;
    int status = 0, code;

    while ((n = read(l->output, text + at, size - 1 - at)) > 0) at += (size_t)n;
    text[at] = '\0';
    CHECK_EQ_INT(waitpid(l->launcher, &status, 0), l->launcher);
    for (int i = 0; i < LAUNCHED_RANKS_MAX; i++)
        if (l->board->pid[i] != 0) CHECK(is_gone(l->board->pid[i]));
    code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    close(l->output);
    for (int i = 0; i < 2; i++) {
        close(l->ready[i]);
        close(l->go[i]);
    }
    munmap((void *)l->board, sizeof *l->board);
    ls_free(l);
    return code;
}
