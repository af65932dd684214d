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

/* Empties the folder that `fd` stands for, which is closed here.  The run's owner.json stays, since the lock
 * is on it: whoever opens the run meanwhile must meet that one. */
static ls_status empty_take(int fd, const char *path, int depth, ls_err *err)
{
    DIR *d = fdopendir(fd);
    const struct dirent *e;
    ls_status st = LS_OK;

    if (d == NULL) {
        st = ls_fail(err, LS_IO, "%s: %s", path, strerror(errno));
        close(fd);
        return st;
    }
    while (st == LS_OK && (errno = 0, e = readdir(d)) != NULL) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (depth == 0 && strcmp(e->d_name, LSI_OWNER_FILE) == 0) continue;
        if (unlinkat(fd, e->d_name, 0) == 0 || errno == ENOENT) continue;
        if (errno != EISDIR && errno != EPERM) {
            st = ls_fail(err, LS_IO, "%s/.../%s: %s", path, e->d_name, strerror(errno));
            break;
        }
        const int below = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below < 0 || depth == DEEPEST) {
            st = ls_fail(err, LS_IO, "%s/.../%s: %s", path, e->d_name,
                         below < 0 ? strerror(errno) : "folders in folders in folders, as no run has them");
            if (below >= 0) close(below);
            break;
        }
        st = empty_take(below, path, depth + 1, err);
        if (st == LS_OK && unlinkat(fd, e->d_name, AT_REMOVEDIR) != 0)
            st = ls_fail(err, LS_IO, "%s/.../%s: %s", path, e->d_name, strerror(errno));
    }
    closedir(d);
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

ls_status ls_run_remove(const char *path, ls_err *err)
{
    char plain[LS_PATH_MAX];
    ls_run_info i = {0};
    int folder = -1, lock = -1;
    ls_status st = LS_OK;
    size_t n = strlen(path);

    /* A slash at the end would follow a link. */
    while (n > 1 && path[n - 1] == '/') n--;
    if (n >= sizeof plain) return ls_fail(err, LS_INVALID, "a path of more than %d bytes", LS_PATH_MAX);
    memcpy(plain, path, n);
    plain[n] = '\0';
    LS_TRY(ls_run_read(&i, plain, err));
    folder = open(plain, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) {
        st = ls_fail(err, LS_INVALID, "%s: %s; links are not followed: name the directory itself", plain,
                     strerror(errno));
        goto out;
    }
    LS_TRY(take_lock(folder, &i, &lock, err));
    st = empty_take(dup(folder), plain, 0, err);
    if (st == LS_OK && unlinkat(folder, LSI_OWNER_FILE, 0) != 0 && errno != ENOENT)
        st = ls_fail(err, LS_IO, "%s/%s: %s", plain, LSI_OWNER_FILE, strerror(errno));
    if (st == LS_OK && rmdir(plain) != 0) st = ls_fail(err, LS_IO, "%s: %s", plain, strerror(errno));
out:
    if (lock >= 0) close(lock);
    if (folder >= 0) close(folder);
    ls_run_info_release(&i);
    return st;
}
