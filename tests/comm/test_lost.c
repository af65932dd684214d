/* A rank that goes away: the others learn it within a second, and who it was, and what it did; a slow rank is
 * reported and waited for. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"
#include "ranks.h"

enum { VICTIM = 1, RANKS = 3, EXIT_AS_EXPECTED = 7 };

/* Prints what is not in the message. */
static int lacks(const ls_err *err, const char *part)
{
    if (strstr(err->text, part) != NULL) return 0;
    printf("\"%s\" does not say \"%s\"\n", err->text, part);
    return 1;
}

/* -- a process that ends
 * ------------------------------------------------------------------------------------- */

/* Where the victim goes: */
enum { IN_CONTROL, BEFORE_START };

static int exchange_until_lost(ls_comm *c, const void *arg)
{
    const int where = *(const int *)arg;
    ls_exchange_options o = {.name = "bucket 3", .n = 200000};
    ls_exchange *x = NULL;
    ls_err err = {0};
    int wrong = expect_status(c, ls_exchange_create(&x, c, &o, &err), LS_OK, &err, "create");
    bool victim = ls_comm_rank(c) == VICTIM;

    for (int t = 0; t < 5 && wrong == 0; t++) {
        ls_comm_note_step(c, t);
        if (victim && t == 3 && where == BEFORE_START) _exit(EXIT_AS_EXPECTED);
        ls_exchange_start(x, 1);
        uint64_t begun = ls_clock_ns();
        ls_status st = ls_exchange_wait(x, &err);
        if (st == LS_OK && where == IN_CONTROL) {
            if (victim && t == 3) raise(SIGKILL);
            st = ls_comm_barrier(c, "end of step", &err);
        }
        if (st == LS_OK) continue;
        wrong += expect_status(c, st, LS_LOST, &err, "wait");
        wrong += lacks(&err, "rank 1 is gone") + lacks(&err, "its process has ended") +
                 lacks(&err, "step 3") +
                 lacks(&err, where == IN_CONTROL ? "waiting in end of step" : "waiting in bucket 3");
        if (ls_clock_ns() - begun > UINT64_C(1000000000) && !check_is_slow_build()) {
            printf("rank %d noticed after %.2f s\n", ls_comm_rank(c), (double)(ls_clock_ns() - begun) * 1e-9);
            wrong++;
        }
        if (!ls_exchange_progress(x) && where != IN_CONTROL)
            wrong++; /* progress must not be waited for either */
        break;
    }
    if (err.status == LS_OK) wrong++;
    ls_exchange_destroy(x);
    return wrong;
}

/* The victim's own exit status is not a failure. */
static int run_with_victim(rank_fn fn, const void *arg, int status_of_victim)
{
    return run_processes(RANKS, fn, arg) - status_of_victim;
}

static void ended_processes_are_noticed(void)
{
    int where = BEFORE_START;
    CHECK_EQ_INT(run_with_victim(exchange_until_lost, &where, EXIT_AS_EXPECTED), 0);
    where = IN_CONTROL;
    CHECK_EQ_INT(run_with_victim(exchange_until_lost, &where, 1000), 0);
}

/* -- ranks that leave or give up
 * -------------------------------------------------------------------------------- */

static int one_leaves(ls_comm *c, const void *arg)
{
    ls_err err = {0};

    (void)arg;
    if (ls_comm_rank(c) == VICTIM) return 0; /* its communicator is closed */
    return expect_status(c, ls_comm_barrier(c, "the end", &err), LS_LOST, &err, "barrier") +
           lacks(&err, "rank 1 is gone (it has left the run") + lacks(&err, "waiting in the end");
}

static int one_gives_up(ls_comm *c, const void *arg)
{
    ls_err err = {0};
    int wrong = expect_status(c, ls_comm_barrier(c, "before", &err), LS_OK, &err, "barrier");

    (void)arg;
    if (ls_comm_rank(c) == VICTIM) {
        ls_comm_abort(c, "the disk is full");
        ls_comm_abort(c, "and this comes too late");
        return wrong;
    }
    return wrong + expect_status(c, ls_comm_barrier(c, "after", &err), LS_LOST, &err, "barrier") +
           lacks(&err, "rank 1 is gone (the disk is full; last in before)");
}

/* All arrive at the last barrier and close at once: nobody may take that for a loss. */
static int orderly_end(ls_comm *c, const void *arg)
{
    ls_err err = {0};

    (void)arg;
    return expect_status(c, ls_comm_barrier(c, "the end", &err), LS_OK, &err, "barrier");
}

static void leaving_and_giving_up(void)
{
    CHECK_EQ_INT(run_threads(RANKS, one_leaves, NULL), 0);
    CHECK_EQ_INT(run_processes(RANKS, one_leaves, NULL), 0);
    CHECK_EQ_INT(run_threads(RANKS, one_gives_up, NULL), 0);
    CHECK_EQ_INT(run_processes(RANKS, one_gives_up, NULL), 0);
    for (int i = 0; i < 20; i++) CHECK_EQ_INT(run_threads(4, orderly_end, NULL), 0);
}

/* -- the launcher's side
 * -------------------------------------------------------------------------------------- */

/* The heap tells its maker what ranks do, and carries its word to them. */
static void launchers_look_and_abort(void)
{
    ls_err err = {0};
    ls_comm_heap *heap;
    ls_comm_look look;
    pid_t pid[2];
    int n = 2, status;

    REQUIRE_OK(ls_comm_heap_create(&heap, 3, &err), &err); /* rank 2 never starts */
    ls_comm_heap_look(heap, 2, &look);
    CHECK_EQ_INT(look.pid, 0);
    CHECK_EQ_INT(look.step, -1);
    CHECK_EQ_STR(look.what, "");
    fflush(NULL);
    for (int i = 0; i < n; i++) {
        pid[i] = fork();
        REQUIRE(pid[i] >= 0);
        if (pid[i] > 0) continue;
        ls_comm *c;
        ls_status st = ls_comm_open_local(&c, ls_comm_heap_fd(heap), i, 3, &err);
        int wrong =
            (st != LS_LOST) + lacks(&err, "rank 2 is gone (signal 9; never seen) while waiting in start-up");
        fflush(stdout);
        _exit(wrong);
    }
    do ls_comm_heap_look(heap, 1, &look);
    while (look.pid == 0 || look.what[0] == '\0');
    CHECK_EQ_INT(look.pid, pid[1]);
    CHECK_EQ_STR(look.what, "start-up");
    ls_comm_heap_abort(heap, 2, "signal 9");
    for (int i = 0; i < n; i++) {
        CHECK_EQ_INT(waitpid(pid[i], &status, 0), pid[i]);
        CHECK_EQ_INT(status, 0);
    }
    ls_comm_heap_look(heap, 1, &look);
    CHECK(look.left);
    ls_comm_heap_destroy(heap);
}

/* -- stalls
 * ------------------------------------------------------------------------------------------------------ */

/* Rank 1 comes when it has read the other's report, which the log writes to the pipe. */
static int one_is_slow(ls_comm *c, const void *arg)
{
    const int *log = arg;
    ls_err said = {0}, err = {0};
    int wrong = 0;

    ls_comm_set_stall(c, 0.05, 0);
    ls_comm_note_step(c, 12);
    wrong += expect_status(c, ls_comm_barrier(c, "loading", &err), LS_OK, &err, "barrier");
    if (ls_comm_rank(c) == VICTIM) {
        if (read(*log, said.text, sizeof said.text - 1) <= 0) wrong++;
        wrong += lacks(&said, "rank 0 has been waiting") + lacks(&said, "in a barrier again") +
                 lacks(&said, "not there: rank 1 (last in loading, step 12)");
    }
    return wrong + expect_status(c, ls_comm_barrier(c, "a barrier again", &err), LS_OK, &err, "barrier");
}

static void stalls_are_reported(void)
{
    int log[2], saved = dup(STDERR_FILENO);

    REQUIRE(saved >= 0 && pipe(log) == 0 && dup2(log[1], STDERR_FILENO) == STDERR_FILENO);
    int wrong = run_processes(2, one_is_slow, &log[0]);
    dup2(saved, STDERR_FILENO);
    CHECK_EQ_INT(wrong, 0);
    close(saved);
    close(log[0]);
    close(log[1]);
}

int main(void)
{
    CHECK_RUN(ended_processes_are_noticed);
    CHECK_RUN(leaving_and_giving_up);
    CHECK_RUN(launchers_look_and_abort);
    CHECK_RUN(stalls_are_reported);
    return CHECK_DONE();
}
