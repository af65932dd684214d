/* remove.c: removes a run directory and nothing else. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "runs/manage.h"
#include "runs/owner_internal.h"
#include "runs/run_internal.h"

enum { DEEPEST = 16 }; /* runs are three folders deep */

/* The folder that is being looked at or emptied, as its path is shown; longer ones are cut there. */
typedef struct place {
    char path[2 * LS_PATH_MAX];
    size_t n;
    int depth;
} place;

/* What is in it; back with leave(). */
static size_t enter(place *p, const char *name)
{
    const size_t before = p->n;
    const int n = snprintf(p->path + p->n, sizeof p->path - p->n, "/%s", name);

    p->n += n > 0 && (size_t)n < sizeof p->path - p->n ? (size_t)n : strlen(p->path + p->n);
    p->depth++;
    return before;
}

static void leave(place *p, size_t before)
{
    p->path[before] = '\0';
    p->n = before;
    p->depth--;
}

/* `what` is done with everything in the folder that `fd` stands for, which is closed here.  The run's
 * owner.json is left out, since the lock is on it: whoever opens the run meanwhile must meet that one. */
static ls_status each_take(int fd, place *p, ls_status (*what)(int, const char *, place *, ls_err *),
                           ls_err *err)
{
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *e;
    ls_status st = LS_OK;

    if (d == NULL) {
        st = ls_fail(err, LS_IO, "%s: %s", p->path, strerror(errno));
        if (fd >= 0) close(fd);
        return st;
    }
    while (st == LS_OK && (e = readdir(d)) != NULL) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (p->depth == 0 && strcmp(e->d_name, LSI_OWNER_FILE) == 0) continue;
        const size_t before = enter(p, e->d_name);
        st = what(fd, e->d_name, p, err);
        leave(p, before);
    }
    closedir(d);
    return st;
}

static int open_below(int fd, const char *name)
{
    return openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* -- before: may all of it go? ----------------------------------------------------------------------------
 */

/* 0, or why something of `owner` cannot be removed from the folder `name` of `fd`. */
static int refusal(int fd, const char *name, uid_t owner)
{
    const uid_t me = geteuid();
    struct stat folder;

    if (faccessat(fd, name, W_OK | X_OK, AT_EACCESS) != 0 || fstatat(fd, name, &folder, 0) != 0) return errno;
    return (folder.st_mode & S_ISVTX) && me != 0 && me != folder.st_uid && me != owner ? EPERM : 0;
}

static ls_status refuse(const place *p, const char *why, ls_err *err)
{
    return ls_fail(err, LS_INVALID,
                   "%s cannot be removed: %s; nothing was removed: have its owner remove it, or change the "
                   "permissions of the folder that it is in",
                   p->path, why);
}

static ls_status check_one(int fd, const char *name, place *p, ls_err *err)
{
    struct stat info;
    int bad, below;

    if (fstatat(fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? LS_OK : refuse(p, strerror(errno), err);
    bad = refusal(fd, ".", info.st_uid);
    if (bad != 0) return refuse(p, strerror(bad), err);
    if (!S_ISDIR(info.st_mode)) return LS_OK;
    if (p->depth > DEEPEST) return refuse(p, "folders in folders in folders, as no run has them", err);
    below = open_below(fd, name);
    if (below < 0) return refuse(p, strerror(errno), err);
    return each_take(below, p, check_one, err);
}

/* Half a run is none any more: everything in it may be removed, and it itself. */
static ls_status check_all(int folder, place *p, ls_err *err)
{
    struct stat info;
    int bad = fstat(folder, &info) == 0 ? refusal(folder, "..", info.st_uid) : errno;

    if (bad == 0) bad = refusal(folder, ".", info.st_uid);
    return bad != 0 ? refuse(p, strerror(bad), err) : each_take(open_below(folder, "."), p, check_one, err);
}

/* -- removing ---------------------------------------------------------------------------------------------
 */

static ls_status remove_one(int fd, const char *name, place *p, ls_err *err)
{
    ls_status st;
    int below;

    if (unlinkat(fd, name, 0) == 0 || errno == ENOENT) return LS_OK;
    if (errno != EISDIR && errno != EPERM) return ls_fail(err, LS_IO, "%s: %s", p->path, strerror(errno));
    below = open_below(fd, name);
    if (below < 0) return ls_fail(err, LS_IO, "%s: %s", p->path, strerror(errno));
    st = each_take(below, p, remove_one, err);
    if (st == LS_OK && unlinkat(fd, name, AT_REMOVEDIR) != 0)
        st = ls_fail(err, LS_IO, "%s: %s", p->path, strerror(errno));
    return st;
}

/* Nobody may take the run while it goes; *fd: the lock, -1 where the run has none. */
static ls_status take_lock(int folder, const ls_run_info *i, int *fd, ls_err *err)
{
    char word[LS_PATH_MAX];

    *fd = openat(folder, LSI_OWNER_FILE, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (i->alive || (*fd >= 0 && lsi_owner_lock(*fd) == LSI_LOCK_HELD))
        return ls_fail(err, LS_INVALID,
                       "%s is running (process %lld on %s); end it first: lockstep runs stop %s", i->path,
                       (long long)i->owner.pid, i->owner.host, ls_text_quoted(i->path, word, sizeof word));
    return LS_OK;
}

/* The path without slashes at its end, which would follow a link, and its folder. */
static ls_status open_run(place *p, int *folder, const char *path, ls_err *err)
{
    size_t n = strlen(path);

    while (n > 1 && path[n - 1] == '/') n--;
    if (n >= LS_PATH_MAX) return ls_fail(err, LS_INVALID, "a path of more than %d bytes", LS_PATH_MAX);
    *p = (place){.n = n};
    memcpy(p->path, path, n);
    *folder = open(p->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*folder >= 0) return LS_OK;
    return ls_fail(err, LS_INVALID, "%s: %s; links are not followed: name the directory itself", p->path,
                   strerror(errno));
}

ls_status ls_run_remove_check(const char *path, ls_err *err)
{
    place p;
    int folder = -1;
    ls_status st = LS_OK;

    LS_TRY(open_run(&p, &folder, path, err));
    LS_TRY(check_all(folder, &p, err));
out:
    if (folder >= 0) close(folder);
    return st;
}

ls_status ls_run_remove(const char *path, ls_err *err)
{
    place p;
    ls_run_info i = {0};
    int folder = -1, lock = -1;
    ls_status st = LS_OK;

    LS_TRY(ls_run_read(&i, path, err));
    LS_TRY(open_run(&p, &folder, path, err));
    LS_TRY(take_lock(folder, &i, &lock, err));
    LS_TRY(check_all(folder, &p, err));
    LS_TRY(each_take(open_below(folder, "."), &p, remove_one, err));
    if (unlinkat(folder, LSI_OWNER_FILE, 0) != 0 && errno != ENOENT)
        st = ls_fail(err, LS_IO, "%s/%s: %s", p.path, LSI_OWNER_FILE, strerror(errno));
    else if (rmdir(p.path) != 0)
        st = ls_fail(err, LS_IO, "%s: %s", p.path, strerror(errno));
out:
    if (lock >= 0) close(lock);
    if (folder >= 0) close(folder);
    ls_run_info_release(&i);
    return st;
}
