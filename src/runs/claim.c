/* claim.c: takes a run directory, new or old, and gives it back.
 *
 * The order keeps two promises.  A command that is refused changes nothing: what can be seen without the lock
 * is looked at first, and everything made is taken back.  Of two processes one wins: whoever has the lock
 * looks again, at a file that is still the one at that path. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/folders.h"
#include "base/log.h"
#include "base/text.h"
#include "ckpt/ckpt.h"
#include "launch/launch.h"
#include "runs/run_internal.h"

#define TRIES_MAX 100 /* how often a directory may be taken away under our hands */

/* -- names ------------------------------------------------------------------------------------------------
 */

void ls_run_new_name(char path[LS_PATH_MAX], const char *name)
{
    char stamp[32];
    unsigned short salt = 0;
    time_t now = time(NULL);
    struct tm tm;

    gmtime_r(&now, &tm);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &tm);
    if (getrandom(&salt, sizeof salt, 0) != (ssize_t)sizeof salt) salt = (unsigned short)getpid();
    snprintf(path, LS_PATH_MAX, "runs/%s-%s-%04x", name, stamp, salt);
}

ls_status lsi_run_path(char out[LS_PATH_MAX], const char *folder, const char *name, ls_err *err)
{
    if (snprintf(out, LS_PATH_MAX, "%s/%s", folder, name) < LS_PATH_MAX) return LS_OK;
    return ls_fail(err, LS_INVALID, "the run directory's path, %.60s..., is longer than %d bytes", folder,
                   LS_PATH_MAX - 32);
}

static ls_status set_paths(ls_run_paths *p, ls_err *err)
{
    /* Room for the names of everything that lies in it. */
    if (strlen(p->path) + 32 >= sizeof p->checkpoints)
        return ls_fail(err, LS_INVALID, "the run directory's path, %.60s..., is longer than %d bytes",
                       p->path, LS_PATH_MAX - 32);
    return lsi_run_path(p->checkpoints, p->path, "checkpoints", err);
}

ls_status ls_run_join(ls_run_paths *p, ls_err *err)
{
    ls_status st = set_paths(p, err);

    return st == LS_OK ? ls_folders_make(p->path, err) : st;
}

/* -- what lies there --------------------------------------------------------------------------------------
 */

/* What may be in the directory of a run that has not begun: the job that is to begin it. */
static bool is_of_job(const char *name)
{
    static const char *const known[] = {".", "..", "job.sh", "job.log", "job-*.sh", "job-*.log"};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (fnmatch(known[i], name, 0) == 0) return true;
    return false;
}

static bool is_empty(int folder, const char *name)
{
    const int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *e;
    bool empty = d != NULL;

    while (empty && (e = readdir(d)) != NULL)
        empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
    if (d != NULL)
        closedir(d);
    else if (fd >= 0)
        close(fd);
    return empty;
}

/* What a run leaves that ended before it could write its settings: nothing in `checkpoints`, its first words
 * in `logs`.  Only beside an owner.json: folders of these names may be anybody's. */
static bool is_of_beginning(int folder, const char *name)
{
    return faccessat(folder, LSI_OWNER_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
           (strcmp(name, LSI_OWNER_FILE) == 0 || strcmp(name, "logs") == 0 ||
            (strcmp(name, "checkpoints") == 0 && is_empty(folder, name)));
}

/* The first thing that makes the directory a used one: its name into `what`; "" when there is none. */
static ls_status look_for_use(const char *path, char what[256], ls_err *err)
{
    DIR *d = opendir(path);
    const struct dirent *e;

    what[0] = '\0';
    if (d == NULL && errno == ENOENT) return LS_OK;
    if (d == NULL && errno == ENOTDIR)
        return ls_fail(err, LS_INVALID, "the run directory %s: a file is in the way; choose another name",
                       path);
    if (d == NULL && errno == ENAMETOOLONG)
        return ls_fail(err, LS_INVALID, "the run directory %.60s...: a name in it is too long", path);
    if (d == NULL) return ls_fail(err, LS_IO, "%s: %s", path, strerror(errno));
    while (what[0] == '\0' && (e = readdir(d)) != NULL)
        if (!is_of_job(e->d_name) && !is_of_beginning(dirfd(d), e->d_name))
            snprintf(what, 256, "%s", e->d_name);
    closedir(d);
    return LS_OK;
}

static ls_status refuse_used(const char *path, const char *what, ls_err *err)
{
    char word[LS_PATH_MAX];

    ls_text_quoted(path, word, sizeof word);
    if (ls_run_is_one(path))
        return ls_fail(err, LS_INVALID,
                       "%s is the directory of another run (it has %s): go on with that one (--resume=%s), "
                       "choose another name (--run-dir, or none for a new one under runs/), or remove it "
                       "(lockstep runs rm %s)",
                       path, what, word, word);
    return ls_fail(
        err, LS_INVALID,
        "%s is not empty (it has %s): a new run begins in a new or empty directory; choose another "
        "name (--run-dir, or none for a new one under runs/)",
        path, what);
}

static ls_status refuse_alive(const char *path, const ls_run_owner *o, bool known, ls_err *err)
{
    char since[32], word[LS_PATH_MAX];

    if (!known)
        return ls_fail(err, LS_INVALID, "%s is being taken by another process at this moment; try again",
                       path);
    return ls_fail(err, LS_INVALID,
                   "%s belongs to process %lld on host %s since %s (%.200s): wait for its end or stop it "
                   "(lockstep runs stop %s), or choose another directory",
                   path, (long long)o->pid, o->host, lsi_time_text(o->start, since), o->command,
                   ls_text_quoted(path, word, sizeof word));
}

static bool find_checkpoint(const char *folder)
{
    DIR *d = opendir(folder);
    const struct dirent *e;
    bool found = false;

    while (d != NULL && !found && (e = readdir(d)) != NULL) found = ls_ckpt_step_of(e->d_name) >= 0;
    if (d != NULL) closedir(d);
    return found;
}

/* -- taking -----------------------------------------------------------------------------------------------
 */

/* Makes the directory with those that lead to it, and notes from where on. */
static ls_status make_folders(ls_run *r, ls_err *err)
{
    char text[LS_PATH_MAX];
    const size_t n = strlen(r->paths.path);

    memcpy(text, r->paths.path, n + 1);
    for (size_t at = 1; at <= n; at++) {
        if (text[at] != '/' && text[at] != '\0') continue;
        text[at] = '\0';
        if (mkdir(text, 0777) == 0) {
            if (r->made_from == 0) r->made_from = at;
        } else if (errno != EEXIST) {
            return ls_fail(err, ls_folders_status(errno),
                           "the run directory %s cannot be made: %s; --run-dir names another one", text,
                           strerror(errno));
        }
        text[at] = r->paths.path[at];
    }
    return LS_OK;
}

static ls_status open_file(ls_run *r, ls_err *err)
{
    /* Exclusive first: whether this process made the file decides whether it may remove it again. */
    r->fd = open(r->file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    r->made_file = r->fd >= 0;
    if (r->fd < 0 && errno == EEXIST) r->fd = open(r->file, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (r->fd < 0 && errno != ENOENT)
        return ls_fail(err, ls_folders_status(errno), "%s: %s; --run-dir names another directory", r->file,
                       strerror(errno));
    return LS_OK;
}

/* Whether the open file is still the one at its path: its owner may just have given it back. */
static bool is_in_place(const ls_run *r)
{
    struct stat mine, there;

    return fstat(r->fd, &mine) == 0 && stat(r->file, &there) == 0 && mine.st_ino == there.st_ino &&
           mine.st_dev == there.st_dev;
}

/* The owner is on another machine, whose lock may not be seen here: does it show a sign of life? */
static bool is_beating(const ls_run *r, const ls_run_owner *o, double watch_s)
{
    const double until = ls_clock_seconds() + watch_s, first = lsi_owner_heartbeat(r->fd);
    bool beats = false;

    ls_log(LS_LOG_WARN,
           "%s was taken by process %lld on host %s, which did not give it back; waiting %g s for a sign of "
           "its life",
           r->paths.path, (long long)o->pid, o->host, watch_s);
    while (!beats && ls_clock_seconds() < until && *ls_launch_stop_requests() == 0) {
        /* Opened anew: that is when network file systems ask their server. */
        const int fd = open(r->file, O_RDONLY | O_CLOEXEC);
        const double left = until - ls_clock_seconds(), wait = left < 0.5 ? left : 0.5;
        if (fd < 0) break;
        beats = lsi_owner_heartbeat(fd) != first;
        close(fd);
        if (!beats && wait > 0) nanosleep(&(struct timespec){.tv_nsec = (long)(wait * 1e9)}, NULL);
    }
    return beats;
}

/* Whether another owner of the open file lives; *o is what the file says of it, where it is *known. */
static bool is_taken(const ls_run *r, double watch_s, ls_run_owner *o, bool *known)
{
    const lsi_lock lock = lsi_owner_lock(r->fd);
    bool sure, alive;

    lsi_owner_read(r->fd, o, known);
    if (lock == LSI_LOCK_HELD) return true;
    if (lock == LSI_LOCK_NONE)
        ls_log(LS_LOG_WARN,
               "%s: this disk has no locks (%s); two processes are kept apart by heartbeats alone", r->file,
               strerror(errno));
    if (!*known) return false;
    alive = lsi_owner_alive(r->fd, o, &sure);
    if (sure) return alive;
    /* The heartbeat is of another machine's clock, or the disk's: only a second look is certain. */
    return !(lsi_now() - lsi_owner_heartbeat(r->fd) > LSI_DEAD_S) && is_beating(r, o, watch_s);
}

/* Keeps what the file says, to be put back. */
static ls_status keep_before(ls_run *r, ls_err *err)
{
    struct stat info;

    if (fstat(r->fd, &info) != 0) return ls_fail(err, LS_IO, "%s: %s", r->file, strerror(errno));
    if (r->made_file || info.st_size > LSI_OWNER_BYTES) return LS_OK;
    r->before = ls_alloc(LS_MEM_CLI, (size_t)info.st_size + 1);
    if (r->before == NULL) return ls_fail(err, LS_NOMEM, "%s: no memory", r->file);
    const ssize_t n = pread(r->fd, r->before, (size_t)info.st_size, 0);
    r->n_before = n > 0 ? (size_t)n : 0;
    r->beat_before = info.st_mtim;
    return LS_OK;
}

/* The number of the opening before, and when the run began, by its summary: owner.json may be gone. */
static void recall(ls_run *r, const ls_run_owner *before, bool known)
{
    char path[LS_PATH_MAX];
    int64_t epoch = known ? before->epoch : 0;
    json_t *summary = NULL;

    r->started = r->owner.start;
    if (!r->is_new && lsi_run_path(path, r->paths.path, LSI_SUMMARY_FILE, NULL) == LS_OK)
        summary = lsi_summary_load(path, NULL);
    if (summary != NULL) {
        const json_int_t said = json_integer_value(json_object_get(summary, "owner_epoch"));
        const double started = lsi_time_parse(json_string_value(json_object_get(summary, "started")));
        if (said > epoch && said < INT64_MAX) epoch = said;
        if (isfinite(started)) r->started = started;
        const char *name = json_string_value(json_object_get(summary, "name"));
        if (r->owner.name[0] == '\0' && name != NULL)
            snprintf(r->owner.name, sizeof r->owner.name, "%s", name);
    }
    if (r->owner.name[0] == '\0' && known) snprintf(r->owner.name, sizeof r->owner.name, "%s", before->name);
    r->owner.epoch = epoch < INT64_MAX ? epoch + 1 : epoch;
    json_decref(summary);
}

/* Opens, locks and looks again; *again: it was taken away meanwhile. */
static ls_status take_once(ls_run *r, double watch_s, bool *again, ls_err *err)
{
    ls_run_owner other = {0};
    char what[256];
    bool known = false;
    ls_status st = LS_OK;

    *again = false;
    if (r->is_new) LS_TRY(make_folders(r, err));
    LS_TRY(open_file(r, err));
    *again = r->fd < 0;
    if (*again) goto out;
    const bool taken = is_taken(r, watch_s, &other, &known);
    if (!taken && *ls_launch_stop_requests() > 0) {
        st = ls_fail(err, LS_CANCELLED, "%s: asked to stop before the run began", r->paths.path);
        goto out;
    }
    if (taken) {
        r->made_file = false; /* by now it is the other's */
        st = refuse_alive(r->paths.path, &other, known, err);
        goto out;
    }
    /* Locked, but perhaps a file that its owner has unlinked since it was opened: a lock on it keeps nobody
     * out. */
    *again = !is_in_place(r);
    if (*again) goto out;
    if (r->is_new) {
        /* Again, now under the lock: another run may have begun and ended since the first look. */
        LS_TRY(look_for_use(r->paths.path, what, err));
        if (what[0] != '\0') {
            st = refuse_used(r->paths.path, what, err);
            goto out;
        }
    }
    LS_TRY(keep_before(r, err));
    recall(r, &other, known);
    LS_TRY(lsi_owner_write(r->fd, &r->owner, r->file, err));
out:
    return st;
}

/* Takes back what was made; nothing that others have put there is touched. */
static void undo(ls_run *r)
{
    char text[LS_PATH_MAX];

    if (r->made_file && is_in_place(r)) unlink(r->file);
    if (!r->made_file && r->before != NULL && r->fd >= 0) {
        if (pwrite(r->fd, r->before, r->n_before, 0) == (ssize_t)r->n_before)
            (void)!ftruncate(r->fd, (off_t)r->n_before);
        futimens(r->fd, (const struct timespec[2]){{.tv_nsec = UTIME_OMIT}, r->beat_before});
    }
    if (r->made_from == 0) return;
    snprintf(text, sizeof text, "%s", r->paths.path);
    /* rmdir stops at the first folder that somebody else has put something in. */
    for (size_t at = strlen(text); at >= r->made_from; at--) {
        if (text[at] != '/' && text[at] != '\0') continue;
        text[at] = '\0';
        if (rmdir(text) != 0 && errno != ENOENT) break;
    }
}

static void release(ls_run *r)
{
    if (r->fd >= 0) close(r->fd);
    if (r->folder >= 0) close(r->folder);
    ls_free(r->before);
    ls_free(r);
}

static ls_status take(ls_run **out, ls_run *r, double watch_s, ls_err *err)
{
    bool again = true;
    ls_status st = LS_OK;

    for (int k = 0; again && st == LS_OK && k < TRIES_MAX; k++) {
        if (r->fd >= 0) close(r->fd);
        r->fd = -1;
        st = take_once(r, watch_s < 0 ? LS_RUN_WATCH_S : watch_s, &again, err);
    }
    if (st == LS_OK && again) st = ls_fail(err, LS_IO, "%s: others keep removing it", r->paths.path);
    if (st == LS_OK) {
        r->has_checkpoint = !r->is_new && find_checkpoint(r->paths.checkpoints);
        r->folder = open(r->paths.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        *out = r;
        return LS_OK;
    }
    undo(r);
    release(r);
    return st;
}

static ls_status prepare(ls_run **out, const char *path, ls_err *err)
{
    ls_run *r = ls_alloc(LS_MEM_CLI, sizeof *r);
    ls_status st = LS_OK;

    *out = NULL;
    if (r == NULL) return ls_fail(err, LS_NOMEM, "no memory for a run");
    r->fd = r->folder = -1;
    r->taken_by = getpid();
    LS_TRY(lsi_owner_self(&r->owner, err));
    /* Too long a path is cut here and refused by its length. */
    snprintf(r->paths.path, sizeof r->paths.path, "%s", path);
    LS_TRY(set_paths(&r->paths, err));
    LS_TRY(lsi_run_path(r->file, r->paths.path, LSI_OWNER_FILE, err));
    *out = r;
    r = NULL;
out:
    ls_free(r);
    return st;
}

ls_status ls_run_create(ls_run **out, const char *name, const char *path, ls_err *err)
{
    char fresh[LS_PATH_MAX], what[256];
    ls_run *r = NULL;
    ls_status st = LS_OK;

    *out = NULL;
    if (path == NULL) {
        ls_run_new_name(fresh, name);
        path = fresh;
    }
    if (path[0] == '\0')
        return ls_fail(
            err, LS_INVALID,
            "--run-dir has an empty name; name a new directory, or leave it out for one under runs/");
    LS_TRY(prepare(&r, path, err));
    r->is_new = true;
    snprintf(r->owner.name, sizeof r->owner.name, "%s", name);
    st = look_for_use(path, what, err);
    if (st == LS_OK && what[0] != '\0') {
        /* Whose it is matters more than what is in it. */
        ls_run_info info;
        if (ls_run_read(&info, path, NULL) == LS_OK && info.alive)
            st = refuse_alive(path, &info.owner, info.has_owner, err);
        else
            st = refuse_used(path, what, err);
        ls_run_info_release(&info);
    }
    if (st != LS_OK) {
        release(r);
        return st;
    }
    return take(out, r, -1, err);
out:
    return st;
}

ls_status ls_run_open(ls_run **out, const char *path, double watch_s, ls_err *err)
{
    ls_run *r = NULL;
    ls_status st = LS_OK;

    *out = NULL;
    if (!ls_run_is_one(path))
        return ls_fail(err, LS_INVALID,
                       "%s is no run directory: config.yaml and summary.json are not there; `lockstep runs` "
                       "lists those that are",
                       path[0] != '\0' ? path : "an empty name");
    LS_TRY(prepare(&r, path, err));
    return take(out, r, watch_s, err);
out:
    return st;
}

/* -- owning -----------------------------------------------------------------------------------------------
 */

const ls_run_paths *ls_run_paths_of(const ls_run *r)
{
    return &r->paths;
}

bool ls_run_has_checkpoint(const ls_run *r)
{
    return r->has_checkpoint;
}

int64_t ls_run_epoch(const ls_run *r)
{
    return r->owner.epoch;
}

/* Whether a writer has begun, which may have been a child's: the file knows. */
static bool has_begun(ls_run *r)
{
    ls_run_owner now;
    bool there;

    if (r->has_begun) return true;
    lsi_owner_read(r->fd, &now, &there);
    if (there && now.epoch == r->owner.epoch) r->has_begun = now.begun;
    return r->has_begun;
}

ls_status ls_run_renew(ls_run *r, ls_err *err)
{
    (void)has_begun(r);
    r->has_checkpoint = find_checkpoint(r->paths.checkpoints);
    r->owner.epoch++;
    r->owner.begun = r->has_begun;
    r->owner.end = LS_RUN_UNKNOWN;
    r->looked = 0;
    return lsi_owner_write(r->fd, &r->owner, r->file, err);
}

void ls_run_close(ls_run *r)
{
    if (r == NULL) return;
    ls_run_leave(r);
    if (r->taken_by == getpid()) {
        ls_err ignored = {0};
        if (!lsi_owner_holds(r->file, &r->owner)) {
            /* Taken over: nothing in it is this process's any more, begun or not. */
        } else if (!has_begun(r)) {
            undo(r);
        } else {
            r->owner.begun = true;
            r->owner.ended = lsi_now();
            (void)!lsi_owner_write(r->fd, &r->owner, r->file, &ignored);
        }
    }
    release(r);
}
