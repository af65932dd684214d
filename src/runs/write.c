/* write.c: what the writer of a run does: heartbeat, the look whether the run is still its own, summary.json.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/folders.h"
#include "base/json.h"
#include "base/log.h"
#include "base/replace.h"
#include "base/text.h"
#include "runs/run_internal.h"

#define LOOK_S 1.0 /* how long a look at owner.json holds */

/* -- where it is ------------------------------------------------------------------------------------------
 */

/* Whether the path leads elsewhere than to the directory that was taken.  A disk that does not answer says
 * nothing. */
static bool has_moved(const ls_run *r)
{
    struct stat mine, there;

    if (r->folder < 0 || fstat(r->folder, &mine) != 0) return false;
    if (stat(r->paths.path, &there) != 0) return errno == ENOENT || errno == ENOTDIR;
    return mine.st_ino != there.st_ino || mine.st_dev != there.st_dev;
}

bool ls_run_is_gone(const ls_run *r)
{
    return atomic_load(&r->gone);
}

/* What became of it. */
static ls_status fail_gone(const ls_run *r, ls_err *err)
{
    char link[64], now[LS_PATH_MAX], word[LS_PATH_MAX];
    struct stat mine, there;
    ssize_t n;

    snprintf(link, sizeof link, "/proc/self/fd/%d", r->folder);
    n = readlink(link, now, sizeof now - 1);
    now[n > 0 ? n : 0] = '\0';
    if (n > 0 && fstat(r->folder, &mine) == 0 && stat(now, &there) == 0 && mine.st_ino == there.st_ino &&
        mine.st_dev == there.st_dev)
        return ls_fail(
            err, LS_IO,
            "the run directory %s was moved to %s while the run went on: it ends here, and keeps what was "
            "written before, with its last checkpoint; to go on from that: lockstep train --resume=%s",
            r->paths.path, now, ls_text_quoted(now, word, sizeof word));
    return ls_fail(
        err, LS_IO,
        "the run directory %s was removed while the run went on, with all its checkpoints: nothing of the "
        "run is kept, and it ends here",
        r->paths.path);
}

/* -- the heartbeat ----------------------------------------------------------------------------------------
 */

static void *beat(void *arg)
{
    ls_run *r = arg;
    struct timespec next;

    pthread_mutex_lock(&r->lock);
    clock_gettime(CLOCK_MONOTONIC, &next);
    while (!r->leaving) {
        if (has_moved(r)) atomic_store(&r->gone, true);
        if (!atomic_load(&r->lost))
            futimens(r->fd, (const struct timespec[2]){{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}});
        next.tv_sec += (time_t)LSI_BEAT_S;
        while (!r->leaving && pthread_cond_timedwait(&r->wake, &r->lock, &next) != ETIMEDOUT) continue;
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

void ls_run_enter(ls_run *r)
{
    pthread_condattr_t attr;
    sigset_t all, before;

    if (r->is_beating) return;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->wake, &attr);
    pthread_condattr_destroy(&attr);
    r->leaving = false;
    /* Signals are for the thread that trains. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r->is_beating = pthread_create(&r->beat, NULL, beat, r) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!r->is_beating)
        ls_log(LS_LOG_WARN, "%s: no thread for the heartbeat; other machines may take this run for dead",
               r->paths.path);
}

void ls_run_leave(ls_run *r)
{
    if (!r->is_beating) return;
    pthread_mutex_lock(&r->lock);
    r->leaving = true;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->beat, NULL);
    pthread_cond_destroy(&r->wake);
    pthread_mutex_destroy(&r->lock);
    r->is_beating = false;
}

/* -- whose it is ------------------------------------------------------------------------------------------
 */

ls_status ls_run_check(ls_run *r, ls_err *err)
{
    const double now = ls_clock_seconds();
    ls_run_owner other;
    bool there = false;
    int fd;

    if (atomic_load(&r->gone) || has_moved(r)) {
        atomic_store(&r->gone, true);
        return fail_gone(r, err);
    }
    if (!atomic_load(&r->lost) && r->looked > 0 && now - r->looked < LOOK_S) return LS_OK;
    fd = open(r->file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) lsi_owner_read(fd, &other, &there);
    if (fd >= 0) close(fd);
    /* A file that is gone says nothing: it is how the run is taken by force, and who does that writes
     * another. */
    if (!there || (other.epoch == r->owner.epoch && other.pid == r->owner.pid &&
                   strcmp(other.boot, r->owner.boot) == 0)) {
        r->looked = now;
        return LS_OK;
    }
    atomic_store(&r->lost, true);
    return ls_fail(err, LS_IO,
                   "%s was taken over by process %lld on host %s (opening %lld, this is %lld): this process "
                   "writes nothing more",
                   r->paths.path, (long long)other.pid, other.host, (long long)other.epoch,
                   (long long)r->owner.epoch);
}

ls_status ls_run_begin(ls_run *r, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(ls_run_check(r, err));
    r->owner.begun = true;
    LS_TRY(lsi_owner_write(r->fd, &r->owner, r->file, err));
    LS_TRY(ls_folders_make(r->paths.checkpoints, err));
out:
    return st;
}

/* -- summary.json -----------------------------------------------------------------------------------------
 */

static bool still_ours(const void *arg)
{
    const ls_run *r = arg;

    return lsi_owner_holds(r->file, &r->owner);
}

/* The last look is the one right before the renaming: to write aside may take long, and a process may be
 * stopped over it. */
static ls_status replace(ls_run *r, const char *path, const json_t *value, ls_err *err)
{
    const ls_replace_gate ours = {still_ours, r};
    ls_replace_names names;
    ls_text text = {0};
    ls_status st = LS_OK;
    int bad;

    ls_json_add(&text, value, LS_JSON_FILE_FLAGS);
    ls_text_add(&text, "\n");
    if (text.failed) {
        st = ls_fail(err, LS_NOMEM, "%s: no memory to write it", path);
        goto out;
    }
    LS_TRY(ls_replace_name(&names, path, err));
    bad = ls_replace_named(&names, text.data, text.length, &ours);
    if (bad == ECANCELED) {
        r->looked = 0;
        LS_TRY(ls_run_check(r, err)); /* says whose it is */
    }
    if (bad != 0) st = ls_fail(err, LS_IO, "%s: %s", path, strerror(bad));
out:
    ls_text_release(&text);
    return st;
}

static void add_text(json_t *o, const char *key, const char *text)
{
    /* Not UTF-8: JSON cannot hold it. */
    json_t *v = json_string(text);
    if (v != NULL) json_object_set_new(o, key, v);
}

static void add_own(const ls_run *r, json_t *summary)
{
    char text[32];

    if (r->owner.name[0] != '\0') add_text(summary, "name", r->owner.name);
    add_text(summary, "started", lsi_time_text(r->started, text));
    add_text(summary, "written", lsi_time_text(lsi_now(), text));
    json_object_set_new(summary, "owner_epoch", json_integer((json_int_t)r->owner.epoch));
}

ls_status ls_run_write_summary(ls_run *r, json_t *summary, ls_err *err)
{
    char path[LS_PATH_MAX];
    ls_status st = LS_OK;

    LS_TRY(ls_run_check(r, err));
    LS_TRY(lsi_run_path(path, r->paths.path, LSI_SUMMARY_FILE, err));
    add_own(r, summary);
    LS_TRY(replace(r, path, summary, err));
out:
    return st;
}

void ls_run_settle(ls_run *r, const char *state, const char *why)
{
    char path[LS_PATH_MAX];
    ls_run_owner now;
    bool there;
    json_t *summary = NULL;
    const char *said;
    ls_err err = {0};

    lsi_owner_read(r->fd, &now, &there);
    if (!there || !now.begun || now.epoch != r->owner.epoch || ls_run_check(r, NULL) != LS_OK) return;
    if (lsi_run_path(path, r->paths.path, LSI_SUMMARY_FILE, NULL) == LS_OK)
        summary = lsi_summary_load(path, NULL);
    said = json_string_value(json_object_get(summary, "state"));
    if (said == NULL || strcmp(said, "running") == 0) {
        /* Without one, the writer was lost before it could write its first. */
        if (summary == NULL)
            summary = json_pack("{s:i, s:i, s:{}, s:s, s:s}", "steps", 0, "epochs", 0, "metrics", "version",
                                r->owner.version, "host", r->owner.host);
        if (summary != NULL) {
            add_text(summary, "state", state);
            if (why != NULL && why[0] != '\0') add_text(summary, "error", why);
            /* A full disk still takes what goes into the bytes of a file that is there. */
            if (ls_run_write_summary(r, summary, &err) != LS_OK) {
                ls_log(LS_LOG_WARN, "%s", err.text);
                r->owner.end = ls_run_state_of(state);
            }
        }
    }
    json_decref(summary);
}
