/* join_link.c: the library is called by a thread of its own.
 *
 * A library that could be asked how far it is (ncclCommInitRankConfig without blocking) would return early
 * from every later call as well, before anything is in a stream: no order of queues would hold.  So the call
 * that waits may wait, and whoever needs the link looks after the others meanwhile.  Where one is gone the
 * thread is left in its call: the run is over, and the process ends. */
#include "exec/join_link.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"

#define LOOK_EVERY_NS UINT64_C(20000000)

typedef enum standing { JOINING, JOINED, LEFT } standing;

/* Of both threads; the second that is done with it frees it. */
typedef struct joining {
    const ls_links *links;
    ls_device *dev;
    char id[LS_LINK_ID];
    int rank, ranks;
    atomic_int standing;
    ls_link *link; /* with the rest: once it is JOINED */
    ls_status status;
    ls_err err;
} joining;

static void *join(void *arg)
{
    joining *j = arg;

    /* Who wanted it may be gone before this thread begins, and the device with it. */
    if (atomic_load(&j->standing) == LEFT) {
        ls_free(j);
        return NULL;
    }
    j->status = j->links->open(&j->link, j->dev, j->id, j->rank, j->ranks, &j->err);
    /* A link that nobody waits for any more is left as it is: its device may be gone. */
    if (atomic_exchange(&j->standing, JOINED) == LEFT) ls_free(j);
    return NULL;
}

static ls_status begin(joining *j, ls_err *err)
{
    sigset_t all, before;
    pthread_t thread;
    int rc;

    sigfillset(&all); /* signals are for the thread that knows what to do with them */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&thread, NULL, join, j);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) return ls_fail(err, LS_NOMEM, "ranks: no thread: %s", strerror(rc));
    pthread_detach(thread);
    return LS_OK;
}

/* Until it has joined or a rank is gone. */
static ls_status wait_for(ls_comm *c, const joining *j, ls_err *err)
{
    uint64_t looked = ls_clock_ns();

    while (atomic_load(&j->standing) == JOINING) {
        const struct timespec moment = {0, 200000};
        const uint64_t now = ls_clock_ns();
        nanosleep(&moment, NULL);
        if (now - looked < LOOK_EVERY_NS) continue;
        looked = now;
        const ls_status st = ls_comm_alive(c, "joining a group of devices", err);
        if (st != LS_OK) return st;
    }
    return LS_OK;
}

ls_status lsi_join_link(ls_peers *p, ls_link **out, const char id[LS_LINK_ID], int rank, int ranks,
                        ls_err *err)
{
    joining *j = ls_alloc(LS_MEM_COMM, sizeof *j);
    ls_status st;

    if (j == NULL) return ls_fail(err, LS_NOMEM, "ranks: no memory");
    *j = (joining){.links = p->links, .dev = p->dev, .rank = rank, .ranks = ranks};
    memcpy(j->id, id, sizeof j->id);
    st = begin(j, err);
    if (st != LS_OK) {
        ls_free(j);
        return st;
    }
    st = wait_for(p->comm, j, err);
    if (st != LS_OK && atomic_exchange(&j->standing, LEFT) == JOINING) return st;
    if (st == LS_OK && j->status != LS_OK) st = ls_fail(err, j->status, "%s", j->err.text);
    *out = j->link; /* also of one that came too late: its owner closes it */
    ls_free(j);
    return st;
}
