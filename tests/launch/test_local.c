/* Ranks started here: they meet, they end together, the first failure is named, and nothing stays behind. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/parallel.h"
#include "check.h"
#include "launched.h"

static char text[65536];

static ls_launch_options ranks(int n)
{
    return (ls_launch_options){.ranks = n};
}

/* -- ranks that do their work -----------------------------------------------------------------------------
 */

static int meet(const ls_place *place, ls_comm *comm, void *arg)
{
    const launched *l = arg;
    double sum = place->rank + 1;
    ls_err err = {0};

    for (int i = 0; i < 10; i++)
        if (ls_comm_barrier(comm, "the barrier", &err) != LS_OK) return ls_launch_exit_code(err.status);
    if (ls_comm_sum(comm, &sum, 1, "the sum", &err) != LS_OK) return ls_launch_exit_code(err.status);
    l->board->seen[place->rank] = (int)sum;
    launched_ready(l);
    launched_wait_go(l);
    ls_log(LS_LOG_WARN, "all of us say this");
    if (place->rank == 0) ls_log(LS_LOG_WARN, "rank 0 has the terminal");
    launched_ready(l);
    return LS_EXIT_DONE;
}

static void ranks_meet_and_speak(void)
{
    const int n = 4;
    ls_launch_options o = ranks(n);
    launched *l = launched_start(&o, meet, 0);
    volatile struct launched_board *b = l->board;
    int sums = 0;

    launched_await(l, n);
    for (int i = 0; i < n; i++) sums += b->seen[i] == 1 + 2 + 3 + 4;
    CHECK_EQ_INT(sums, n);
    /* The launcher folds lines that come within a moment of each other.  It sleeps until all ranks have
     * spoken, on whichever cores and whenever they did, and so finds all of them there at once. */
    launched_pause(l);
    launched_go(l, n);
    launched_await(l, n);
    REQUIRE(kill(l->launcher, SIGCONT) == 0);
    CHECK_EQ_INT(launched_end(l, text, sizeof text), LS_EXIT_DONE);
    CHECK_CONTAINS(text, "ranks         4 here, ");
    CHECK_CONTAINS(text, "lockstep: warning: rank 0 has the terminal\n");
    CHECK_CONTAINS(text, "[ranks 1-3] lockstep: warning: all of us say this\n");
}

static void more_ranks_than_cores(void)
{
    ls_launch_options o = ranks(16);
    launched *l;

    o.silent = true;
    l = launched_start(&o, meet, 0);
    launched_go(l, 16);
    CHECK_EQ_INT(launched_end(l, text, sizeof text), LS_EXIT_DONE);
    CHECK(strstr(text, "here, ") == NULL);
}

/* -- failures ---------------------------------------------------------------------------------------------
 */

/* Rank `which` % 100 does something bad in step 41; the others wait for it. */
enum { DIES = 100, FAILS = 200, DISAGREES = 300, CRASHES = 400 };

static int fail_in_step(const ls_place *place, ls_comm *comm, void *arg)
{
    const launched *l = arg;
    const int bad = l->board->which % 100, how = l->board->which - bad;
    ls_err err = {0};
    ls_status st;

    ls_comm_note_step(comm, 41);
    st = ls_comm_barrier(comm, "the barrier before", &err);
    if (st == LS_OK && place->rank == bad) {
        switch (how) {
        case DIES: kill(getpid(), SIGKILL); break;
        case CRASHES:
            signal(SIGABRT, SIG_DFL);
            kill(getpid(), SIGABRT);
            break;
        case DISAGREES: return LS_EXIT_DISAGREED;
        default: fprintf(stderr, "no more paper\n"); return LS_EXIT_DAMAGED;
        }
    }
    if (st == LS_OK) st = ls_comm_barrier(comm, "the barrier after", &err);
    return ls_launch_exit_code(st);
}

static void first_failure(int how, int bad, int want, const char *words)
{
    ls_launch_options o = ranks(4);
    launched *l = launched_start(&o, fail_in_step, how + bad);
    const double begun = ls_clock_seconds();
    char part[64];

    CHECK_EQ_INT(launched_end(l, text, sizeof text), want);
    snprintf(part, sizeof part, "lockstep: rank %d (host ", bad);
    CHECK_CONTAINS(text, part);
    CHECK_CONTAINS(text, words);
    CHECK_CONTAINS(text, "\"the barrier before\" of step 41");
    printf("{\"fault\": \"%s\", \"rank\": %d, \"t_stop_s\": %.3f}\n", words, bad, ls_clock_seconds() - begun);
}

static void a_rank_is_killed(void)
{
    first_failure(DIES, 2, LS_EXIT_LOST, "was killed by signal 9 (Killed)");
    first_failure(DIES, 0, LS_EXIT_LOST, "was killed by signal 9 (Killed)");
    first_failure(CRASHES, 3, LS_EXIT_LOST, "was killed by signal 6 (Aborted)");
}

static void a_rank_fails(void)
{
    first_failure(FAILS, 1, LS_EXIT_DAMAGED, "failed with exit code 3");
    CHECK_CONTAINS(text, "[rank 1] no more paper\n");
    /* Its own words come before the line that says it failed. */
    CHECK(strstr(text, "no more paper") < strstr(text, "failed with exit code 3"));
    first_failure(FAILS, 0, LS_EXIT_DAMAGED, "failed with exit code 3");
    first_failure(DISAGREES, 3, LS_EXIT_DISAGREED, "failed with exit code 5");
}

/* Rank 1 fails while the others compute and look at nothing. */
static int deaf(const ls_place *place, ls_comm *comm, void *arg)
{
    const launched *l = arg;
    sigset_t all;

    (void)comm;
    if (place->rank == 1) {
        launched_wait_go(l);
        return LS_EXIT_FAILED;
    }
    if (place->rank == 2) { /* deaf to everything but SIGKILL */
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
    }
    launched_ready(l);
    for (;;) pause();
    return LS_EXIT_FAILED;
}

static void ranks_that_do_not_listen_end(void)
{
    ls_launch_options o = ranks(4);
    launched *l = launched_start(&o, deaf, 0);
    double begun;

    launched_await(l, 3);
    begun = ls_clock_seconds();
    launched_go(l, 1);
    CHECK_EQ_INT(launched_end(l, text, sizeof text), LS_EXIT_FAILED);
    CHECK_CONTAINS(text, "rank 1 (host ");
    printf("{\"fault\": \"deaf ranks\", \"t_stop_s\": %.3f}\n", ls_clock_seconds() - begun);
}

static int die_at_once(const ls_place *place, ls_comm *comm, void *arg)
{
    (void)comm;
    (void)arg;
    if (place->rank == 1) _exit(LS_EXIT_FAILED);
    for (;;) pause();
    return LS_EXIT_FAILED;
}

static void a_rank_fails_before_it_says_anything(void)
{
    ls_launch_options o = ranks(2);
    launched *l = launched_start(&o, die_at_once, 0);

    CHECK_EQ_INT(launched_end(l, text, sizeof text), LS_EXIT_FAILED);
    CHECK_CONTAINS(text, "rank 1 (host ");
}

/* -- requests to stop -------------------------------------------------------------------------------------
 */

/* Works until it is asked to stop; all ranks agree on the step. */
static int work(const ls_place *place, ls_comm *comm, void *arg)
{
    const launched *l = arg;
    ls_err err = {0};

    ls_launch_watch_signals(NULL);
    launched_ready(l);
    for (int64_t step = 0;; step++) {
        double stop = *ls_launch_stop_requests();
        ls_comm_note_step(comm, step);
        if (ls_comm_max(comm, &stop, 1, "stop?", &err) != LS_OK) return ls_launch_exit_code(err.status);
        l->board->seen[place->rank] = (int)step;
        if (stop > 0) return LS_EXIT_STOPPED;
    }
}

static void ask(int number, int times, bool one_rank, int want)
{
    ls_launch_options o = ranks(3);
    launched *l = launched_start(&o, work, 0);

    launched_await(l, 3);
    for (int i = 0; i < times; i++) CHECK_EQ_INT(kill(one_rank ? l->board->pid[1] : l->launcher, number), 0);
    CHECK_EQ_INT(launched_end(l, text, sizeof text), want);
    CHECK(strstr(text, "failed") == NULL);
}

static void asked_once_all_stop_at_one_step(void)
{
    ask(SIGINT, 1, false, LS_EXIT_STOPPED);
    CHECK_CONTAINS(text, "once more stops now");
    ask(SIGTERM, 1, false, LS_EXIT_STOPPED);
    ask(SIGUSR1, 1, false, LS_EXIT_STOPPED);
    /* To one rank only, and twice: a request, not an order. */
    ask(SIGTERM, 1, true, LS_EXIT_STOPPED);
    ask(SIGUSR1, 2, true, LS_EXIT_STOPPED);
}

/* Goes on until all know that one was asked. */
static int stop_when_asked(const ls_place *place, ls_comm *comm, void *arg)
{
    ls_err err = {0};
    double stop = 0;

    (void)place;
    (void)arg;
    while (stop == 0) {
        stop = *ls_launch_stop_requests();
        if (ls_comm_max(comm, &stop, 1, "stop?", &err) != LS_OK) return ls_launch_exit_code(err.status);
    }
    return LS_EXIT_STOPPED;
}

/* A request that comes when there are no ranks yet counts as one; so does one between two attempts. */
static void asked_before_there_are_ranks(void)
{
    int status = -1;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        ls_launch_end end = {0};
        ls_launch_options o = ranks(2);
        ls_start start;
        int code = 99;
        o.end = &end;
        o.silent = true;
        ls_launch_watch_signals(NULL);
        raise(SIGTERM);
        if (ls_launch_detect(&start, &o, ls_launch_env, NULL, NULL) != LS_OK ||
            ls_launch_run(&start, &o, stop_when_asked, NULL, &code, NULL) != LS_OK)
            _exit(1);
        _exit(code != LS_EXIT_STOPPED         ? 2
              : end.stop_number != SIGTERM    ? 3
              : ls_launch_rest(30) != SIGTERM ? 4
                                              : 0);
    }
    REQUIRE(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ_INT(WEXITSTATUS(status), 0);
}

/* Takes a long time to stop. */
static int slow_to_stop(const ls_place *place, ls_comm *comm, void *arg)
{
    const launched *l = arg;

    (void)place;
    (void)comm;
    ls_launch_watch_signals(NULL);
    launched_ready(l);
    while (*ls_launch_stop_requests() == 0) usleep(1000);
    launched_ready(l);
    for (;;) pause();
    return LS_EXIT_FAILED;
}

/* A command that keeps nothing does not watch for requests. */
static int end_by_default(const ls_place *place, ls_comm *comm, void *arg)
{
    (void)place;
    (void)comm;
    launched_ready(arg);
    for (;;) pause();
    return LS_EXIT_FAILED;
}

static void ranks_that_do_not_watch_end_by_the_signal(void)
{
    ls_launch_options o = ranks(2);
    launched *l = launched_start(&o, end_by_default, 0);

    launched_await(l, 2);
    CHECK_EQ_INT(kill(l->launcher, SIGTERM), 0);
    CHECK_EQ_INT(launched_end(l, text, sizeof text), 128 + SIGTERM);
    CHECK(strstr(text, "was killed") == NULL);
}

static void asked_twice_they_end_now(void)
{
    ls_launch_options o = ranks(3);
    launched *l = launched_start(&o, slow_to_stop, 0);

    launched_await(l, 3);
    CHECK_EQ_INT(kill(l->launcher, SIGINT), 0);
    launched_await(l, 3);
    CHECK_EQ_INT(kill(l->launcher, SIGINT), 0);
    CHECK_EQ_INT(launched_end(l, text, sizeof text), 128 + SIGINT);
    CHECK(strstr(text, "was killed") == NULL);
}

/* Rank 1 cannot take the first request before the second is there, which then is dropped: signals of a kind
 * do not queue.  It waits for the others, which end at once. */
static int hears_nothing(const ls_place *place, ls_comm *comm, void *arg)
{
    ls_err err = {0};
    sigset_t asking;

    if (place->rank != 1) return slow_to_stop(place, comm, arg);
    sigemptyset(&asking);
    sigaddset(&asking, SIGINT);
    sigaddset(&asking, SIGTERM);
    sigprocmask(SIG_BLOCK, &asking, NULL);
    launched_ready(arg);
    (void)!ls_comm_barrier(comm, "a barrier where nobody comes", &err);
    fprintf(stderr, "it ends: %s\n", err.text);
    return ls_launch_exit_code(err.status);
}

static void an_order_that_a_rank_misses_is_no_failure(void)
{
    ls_launch_options o = ranks(3);
    launched *l = launched_start(&o, hears_nothing, 0);

    launched_await(l, 3);
    CHECK_EQ_INT(kill(l->launcher, SIGINT), 0);
    launched_await(l, 2);
    CHECK_EQ_INT(kill(l->launcher, SIGINT), 0);
    CHECK_EQ_INT(launched_end(l, text, sizeof text), 128 + SIGINT);
    CHECK_CONTAINS(text, "[rank 1] it ends: told to stop at once\n"); /* not: rank 0 is gone */
    CHECK(strstr(text, "failed") == NULL);
}

/* -- the launcher itself ----------------------------------------------------------------------------------
 */

static void a_killed_launcher_leaves_no_ranks(void)
{
    ls_launch_options o = ranks(4);
    launched *l = launched_start(&o, work, 0);

    launched_await(l, 4);
    CHECK_EQ_INT(kill(l->launcher, SIGKILL), 0);
    CHECK_EQ_INT(launched_end(l, text, sizeof text), -SIGKILL);
}

static int show_place(const ls_place *place, ls_comm *comm, void *arg)
{
    (void)comm;
    launched_ready(arg);
    launched_wait_go(arg);
    if (place->rank == 0)
        printf("place %d/%d %d/%d %d/%d %d %s\n", place->rank, place->size, place->local_rank,
               place->local_size, place->node, place->nodes, place->threads, place->how);
    return LS_EXIT_DONE;
}

static void cores_are_shared_out(void)
{
    const int cores = ls_parallel_cores();
    ls_launch_options o = ranks(2);
    launched *l;

    unsetenv("OMP_NUM_THREADS");
    unsetenv("LOCKSTEP_THREADS");
    o.threads = 3;
    o.bind = "none";
    l = launched_start(&o, show_place, 0);
    launched_await(l, 2);
    CHECK_EQ_INT(l->board->cpus[0], cores);
    CHECK_EQ_INT(l->board->cpus[1], cores);
    launched_go(l, 2);
    CHECK_EQ_INT(launched_end(l, text, sizeof text), LS_EXIT_DONE);
    CHECK_CONTAINS(text, "place 0/2 0/2 0/1 3 -n\n");
    CHECK_CONTAINS(text, "3 threads each, not bound");
    if (cores < 2) return;
    o.threads = 0;
    o.bind = "core";
    l = launched_start(&o, show_place, 0);
    launched_await(l, 2);
    CHECK_EQ_INT(l->board->cpus[0] + l->board->cpus[1], cores);
    launched_go(l, 2);
    CHECK_EQ_INT(launched_end(l, text, sizeof text), LS_EXIT_DONE);
    CHECK_CONTAINS(text, "each, cores "); /* whichever this process may use */
}

static void what_cannot_be_is_refused(void)
{
    ls_launch_options o = ranks(2);
    launched *l;

    o.bind = "socket";
    l = launched_start(&o, show_place, 0);
    CHECK_EQ_INT(launched_end(l, text, sizeof text), LS_EXIT_FAILED);
    CHECK_CONTAINS(text, "not started: --bind socket: expected core or none");
    o.ranks = 64;
    o.bind = "core";
    if (ls_parallel_cores() >= 64) return;
    l = launched_start(&o, show_place, 0);
    CHECK_EQ_INT(launched_end(l, text, sizeof text), LS_EXIT_FAILED);
    CHECK_CONTAINS(text, "--bind core: 64 ranks");
}

int main(void)
{
    CHECK_RUN(ranks_meet_and_speak);
    CHECK_RUN(more_ranks_than_cores);
    CHECK_RUN(a_rank_is_killed);
    CHECK_RUN(a_rank_fails);
    CHECK_RUN(ranks_that_do_not_listen_end);
    CHECK_RUN(a_rank_fails_before_it_says_anything);
    CHECK_RUN(asked_once_all_stop_at_one_step);
    CHECK_RUN(asked_before_there_are_ranks);
    CHECK_RUN(ranks_that_do_not_watch_end_by_the_signal);
    CHECK_RUN(asked_twice_they_end_now);
    CHECK_RUN(an_order_that_a_rank_misses_is_no_failure);
    CHECK_RUN(a_killed_launcher_leaves_no_ranks);
    CHECK_RUN(cores_are_shared_out);
    CHECK_RUN(what_cannot_be_is_refused);
    return CHECK_DONE();
}
