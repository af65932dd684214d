/* launched.h: runs a launcher with its ranks as a child of the test, and listens to it. */
#ifndef LS_TESTS_LAUNCH_LAUNCHED_H
#define LS_TESTS_LAUNCH_LAUNCHED_H

#include <sys/types.h>

#include "launch/launch.h"

#define LAUNCHED_RANKS_MAX 64

/* What ranks share with the test; a rank's `arg` is a pointer to it. */
typedef struct launched {
    pid_t launcher;
    int output; /* the end of a pipe: all that launcher and ranks say */
    int ready[2];
    int go[2];
    /* Shared memory. */
    volatile struct launched_board {
        pid_t pid[LAUNCHED_RANKS_MAX];
        int cpus[LAUNCHED_RANKS_MAX]; /* in the mask of the rank */
        int seen[LAUNCHED_RANKS_MAX]; /* anything a rank wants to tell */
        int which;                    /* anything a rank is to know */
    } * board;
} launched;

/* Starts a launcher of `o->ranks` ranks that run `rank_main`; `which` is for them. */
launched *launched_start(const ls_launch_options *o, ls_rank_main rank_main, int which);
/* In a rank: tells the test that it got here. */
void launched_ready(const launched *l);
/* In a rank: waits until the test says so. */
void launched_wait_go(const launched *l);
/* In the test: waits for n ranks; lets n ranks go on. */
void launched_await(const launched *l, int n);
void launched_go(const launched *l, int n);
/* In the test: stops the launcher (SIGCONT lets it go on), and waits until it does nothing more. */
void launched_pause(const launched *l);
/* Waits for the launcher's end.  Returns its exit code, or minus the signal that killed it; `text` receives
 * what was said.  Checks that no rank is left. */
int launched_end(launched *l, char *text, size_t size);

#endif
