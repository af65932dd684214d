/* follow.c: a job's way from the queue to its end, and its output as it grows.
 *
 * By looking again and again, since the log lies on a file system that other machines write, where nobody is
 * told of changes, and since Slurm has no call to wait for a job.  The file is looked at often; the
 * controller, which all users share, ever less often while nothing happens. */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "submit/submit.h"

#define LOOK_MS    100 /* at the file */
#define ASK_FIRST  0.5 /* the controller, seconds */
#define ASK_MOST   5.0
#define ASK_GROWTH 1.3
#define SILENT_MAX 10 /* questions in a row without an answer */

typedef struct following {
    const char *id;
    const ls_submit_watcher *w;
    int log; /* -1: not there yet */
    double next, interval;
    int n_silent;
} following;

/* Everything that has been written since. */
static void take_output(following *f, const char *path)
{
    char bytes[8192];
    ssize_t n;

    if (f->w->output == NULL) return;
    if (f->log < 0 && path[0] != '\0') f->log = open(path, O_RDONLY | O_CLOEXEC);
    if (f->log < 0) return;
    while ((n = read(f->log, bytes, sizeof bytes)) > 0) f->w->output(f->w->ctx, bytes, (size_t)n);
}

static bool same(const ls_submit_job *a, const ls_submit_job *b)
{
    return strcmp(a->state, b->state) == 0 && strcmp(a->reason, b->reason) == 0 &&
           strcmp(a->nodes, b->nodes) == 0 && a->restarts == b->restarts;
}

/* Asks the controller; one that is busy or being restarted is asked again. */
static ls_status look(following *f, ls_submit_job *job, bool *changed, ls_err *err)
{
    ls_submit_job now;
    ls_err why = {0};
    const ls_status st = ls_slurm_job(&now, f->id, &why);

    *changed = false;
    if ((st == LS_IO || st == LS_TIMEOUT) && ++f->n_silent < SILENT_MAX) return LS_OK;
    if (st != LS_OK) return ls_fail(err, st, "%s", why.text);
    f->n_silent = 0;
    *changed = !same(job, &now);
    *job = now;
    return LS_OK;
}

ls_status ls_slurm_follow(const char *id, const char *log, const ls_submit_watcher *w, ls_submit_job *job,
                          ls_err *err)
{
    following f = {.id = id, .w = w, .log = -1, .interval = ASK_FIRST};
    ls_status st = LS_OK;
    struct pollfd stop = {.fd = w->stop_fd, .events = POLLIN};
    bool changed, ended = false;

    *job = (ls_submit_job){0};
    while (!ended && stop.revents == 0) {
        if (ls_clock_seconds() >= f.next) {
            LS_TRY(look(&f, job, &changed, err));
            ended = job->phase == LS_JOB_ENDED;
            if (ended) take_output(&f, log != NULL ? log : job->log); /* its end is told last */
            if (changed && w->state != NULL) w->state(w->ctx, job);
            f.interval = changed ? ASK_FIRST : f.interval * ASK_GROWTH;
            if (f.interval > ASK_MOST) f.interval = ASK_MOST;
            f.next = ls_clock_seconds() + f.interval;
        }
        take_output(&f, log != NULL ? log : job->log);
        if (!ended && poll(&stop, 1, LOOK_MS) < 0) stop.revents = 0;
    }
out:
    if (f.log >= 0) close(f.log);
    return st;
}
