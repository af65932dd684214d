/* folder.c: makes and removes the folder of a launcher, and those that killed launchers have left. */
#include "launch/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "lockstep-run-"

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *at)
{
    (void)about;
    (void)kind;
    (void)at;
    (void)!remove(path);
    return 0;
}

static void remove_tree(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void remove_stale(const char *tmp)
{
    DIR *dir = opendir(tmp);
    const struct dirent *e;

    while (dir != NULL && (e = readdir(dir)) != NULL) {
        char path[512];
        if (fnmatch(NAME "??????", e->d_name, 0) != 0) continue;
        snprintf(path, sizeof path, "%s/%s", tmp, e->d_name);
        const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0) continue;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) remove_tree(path);
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
    const int fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
    remove_tree(f->path);
    close(f->lock);
    f->lock = -1;
}
