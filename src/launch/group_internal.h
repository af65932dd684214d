/* group_internal.h: the state of a launcher and its ranks, shared by group.c (start) and watch.c (the rest).
 */
#ifndef LS_LAUNCH_GROUP_INTERNAL_H
#define LS_LAUNCH_GROUP_INTERNAL_H

#include "launch/launch_internal.h"
#include "launch/stall.h"

/* A rank that has done its work, and whose standard output could not be written: the run is complete and
 * nobody else is to be ended, but its exit code is that of a failure. */
#define LSI_EXIT_UNHEARD 74

typedef struct lsi_member {
    pid_t pid; /* also of its process group; 0: not started */
    int pipe;  /* what it says; -1: closed, or it has the terminal itself */
    bool gone;
    int status; /* of waitpid, when gone */
} lsi_member;

struct lsi_group {
    const ls_start *start;
    const lsi_cores *cores;
    const lsi_group_hooks *hooks;
    ls_comm_heap *heap;
    lsi_fold *fold;
    lsi_member *members;
    struct pollfd *fds; /* signals, pipes, those of the hooks */
    int n, n_alive;
    int signals; /* a signalfd */
    sigset_t old_mask;
    char host[64];
    lsi_failure failure; /* the first one; its text is empty while there is none */
    int suspect;         /* a rank that ended because a peer was gone: -1, or its index */
    double suspect_until;
    int stop_how, stop_number; /* LSI_STOP_*: what the ranks were asked last, and with which signal */
    double term_at, kill_at;   /* infinity unless the ranks are being ended */
    lsi_stall stall;
    double look_at;     /* the next look whether they get on */
    double asked_at;    /* when they were asked to stop; infinity: not */
    bool gave_up;       /* they were, and did not get on */
    bool gave_up_early; /* before any step, with nothing to lose */
    ls_launch_end *end; /* may be NULL */
};

/* Polls until all ranks are gone; returns the run's exit code. */
int lsi_group_watch(lsi_group *g);
/* Ends ranks that are still there, at once. */
void lsi_group_kill(lsi_group *g);

#endif
