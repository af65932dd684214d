/* stall.h: whether the ranks of this machine get on, seen by somebody who does not wait himself: their
 * launcher, or a thread where there is none.
 *
 * A rank that waits for others or for samples gets nothing done; neither does one whose process is stopped,
 * or that runs a step without finishing a node of it.  One that is busy with what may take long (set-up,
 * validation, checkpoints) gets on.  While any rank gets on there is no stall. */
#ifndef LS_LAUNCH_STALL_H
#define LS_LAUNCH_STALL_H

#include "comm/comm.h"

/* Between two looks. */
#define LSI_STALL_LOOK_S 0.1
/* How long ranks that were asked to stop may get nothing done before they are ended. */
#define LSI_STOP_GRACE_S 0.9
/* The same with other machines that tell: what happens there is seen by a look, told with the next beat to
 * machine 0, and with the next one of that to all.  Beats are this close once ranks are to stop. */
#define LSI_STOP_BEAT_S      0.1
#define LSI_STOP_GRACE_FAR_S (LSI_STOP_GRACE_S + 2 * LSI_STOP_BEAT_S + LSI_STALL_LOOK_S)
/* And with other machines of which nothing is heard, while nobody here is the cause. */
#define LSI_STOP_GRACE_DEAF_S 10.0
/* For `elsewhere`: there are other machines, and they tell nothing. */
#define LSI_STALL_DEAF UINT64_MAX

typedef struct lsi_seen {
    uint64_t beats;
    uint64_t cpu; /* clock ticks that the process has used */
    double cpu_at;
    bool computed; /* the answer for the time before cpu_at */
} lsi_seen;

typedef struct lsi_stall {
    const ls_comm_heap *heap;
    int n;
    lsi_seen *seen;   /* by local index */
    double looked_at; /* infinity: never */
    double since;     /* nobody has got on since then */
    double beaten;    /* nobody has finished anything since then */
    uint64_t moves;   /* looks at which somebody here had got on: what is told to other machines */
    uint64_t elsewhere;
} lsi_stall;

ls_status lsi_stall_open(lsi_stall *s, const ls_comm_heap *heap, int n, ls_err *err) LS_MUST_CHECK;
void lsi_stall_release(lsi_stall *s);

/* To be called about every LSI_STALL_LOOK_S.  `asked_at`: when the ranks were asked to stop (infinity: not);
 * `elsewhere`: a number that changes while ranks of other machines get on, never 0; 0: there are none;
 * LSI_STALL_DEAF: they tell nothing.  Then only what is known here counts: a rank that gets nothing done by
 * itself, be it stopped, in its step or without samples, but not one that waits for others.
 * Returns whether the run is to be ended, with the reason in `text`. */
bool lsi_stall_look(lsi_stall *s, double now, double asked_at, uint64_t elsewhere, char *text, size_t bytes);

/* The first rank here that others have to wait for; -1: each waits for another. */
int lsi_stall_late(const lsi_stall *s);
/* Whether that process is stopped (by a signal or a debugger): it can neither leave nor obey. */
bool lsi_process_is_stopped(pid_t pid);

/* A thread that watches this process's rank and its neighbours, where no launcher of ours does: ends their
 * waits with the reason, and the process where that does not help.  Of other machines it knows nothing. */
typedef struct lsi_stall_thread lsi_stall_thread;
/* NULL: it cannot be had, which costs the watch and not the run. */
lsi_stall_thread *lsi_stall_thread_start(ls_comm *c);
void lsi_stall_thread_stop(lsi_stall_thread *t); /* accepts NULL */

#endif
