/* folder.c: makes and removes the folder of a launcher, and those that killed launchers have left. */
#include "launch/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME      "lockstep-run-"
#define DEPTH_MAX 64 /* of folders in it */

/* All there is in the folder `fd`, which is closed.  Links are removed, never followed, and everything is
 * named relative to its open folder: nobody can put another one in its place meanwhile. */
static void remove_inside(int fd, int depth)
{
    DIR *dir = fdopendir(fd);
    const struct dirent *e;

    if (dir == NULL) {
        close(fd);
        return;
    }
    while ((e = readdir(dir)) != NULL) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (unlinkat(fd, e->d_name, 0) == 0) continue;
        const int inner = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner < 0 || depth == DEPTH_MAX) {
            if (inner >= 0) close(inner);
            continue;
        }
        remove_inside(inner, depth + 1);
        (void)!unlinkat(fd, e->d_name, AT_REMOVEDIR);
    }
    closedir(dir);
}

/* The folder `name` in `parent` as a descriptor, if it is this user's own; else -1.  In /tmp anybody may have
 * made one, or a link, by that name. */
static int open_own(int parent, const char *name)
{
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat about;

    if (fd < 0 || (fstat(fd, &about) == 0 && about.st_uid == geteuid())) return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

static void remove_stale(const char *tmp)
{
    DIR *dir = opendir(tmp);
    const struct dirent *e;

    while (dir != NULL && (e = readdir(dir)) != NULL) {
        if (fnmatch(NAME "??????", e->d_name, 0) != 0) continue;
        const int fd = open_own(dirfd(dir), e->d_name);
        if (fd < 0) continue;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            const int inside = dup(fd); /* the lock stays until the folder is gone */
            if (inside >= 0) remove_inside(inside, 0);
            (void)!unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR);
        }
        close(fd);
    }
    if (dir != NULL) closedir(dir);
}

/* Makes the folder and locks it.  Until the lock is there another launcher that clears away stale folders may
   take this one for stale: *taken says so, and the next name is tried. */
static ls_status make_locked(lsi_folder *f, const char *tmp, bool *taken, ls_err *err)
{
    struct stat about;

    snprintf(f->path, sizeof f->path, "%s/" NAME "XXXXXX", tmp);
    if (mkdtemp(f->path) == NULL) return ls_fail(err, LS_IO, "%s: %s", f->path, strerror(errno));
    const int fd = open_own(AT_FDCWD, f->path);
    if (fd < 0) {
        *taken = errno == ENOENT;
        return *taken ? LS_OK : ls_fail(err, LS_IO, "%s: %s", f->path, strerror(errno));
    }
    const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    const int number = errno;
    *taken = locked ? fstat(fd, &about) != 0 || about.st_nlink == 0 : number == EWOULDBLOCK;
    if (locked && !*taken) {
        f->lock = fd;
        return LS_OK;
    }
    close(fd);
    return *taken ? LS_OK : ls_fail(err, LS_IO, "%s: cannot be locked: %s", f->path, strerror(number));
}

ls_status lsi_folder_make(lsi_folder *f, ls_err *err)
{
    const char *given = getenv("TMPDIR");
    const char *tmp = given != NULL && given[0] == '/' && strlen(given) < 40 ? given : "/tmp";
    bool taken = true;
    ls_status st = LS_OK;

    f->lock = -1;
    remove_stale(tmp);
    for (int k = 0; k < 100 && taken && st == LS_OK; k++) st = make_locked(f, tmp, &taken, err);
    if (st != LS_OK || !taken) return st;
    return ls_fail(err, LS_IO, "%s: others keep removing the folders made there", tmp);
}

void lsi_folder_remove(lsi_folder *f)
{
    if (f->lock < 0) return;
    const int inside = dup(f->lock);
    if (inside >= 0) remove_inside(inside, 0);
    (void)!rmdir(f->path);
    close(f->lock);
    f->lock = -1;
}
