/* file.c: the system calls of a checkpoint.
 *
 * Each one that changes the disk first asks the hook of lsi_io, so that a test can let the n-th call fail, or
 * end the process there, for every n. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/replace.h"
#include "ckpt/ckpt_internal.h"

/* False with errno set when the hook wants the call to fail. */
static bool allowed(const lsi_io *io, const char *call)
{
    int e = io != NULL ? io->before(io->arg, call) : 0;

    if (e != 0) errno = e;
    return e == 0;
}

static ls_status refused(const char *call, const char *path, ls_err *err)
{
    int e = errno;
    ls_status st = ls_fail(err, LS_IO, "%s: cannot %s: %s", path, call, strerror(e));

    errno = e;
    return st;
}

ls_status lsi_io_create(const lsi_io *io, const char *path, int *fd, ls_err *err)
{
    *fd = -1;
    /* Always a new file: what a killed process left there goes, and no link is followed. */
    if (allowed(io, "create") && (unlink(path) == 0 || errno == ENOENT))
        *fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    return *fd < 0 ? refused("create", path, err) : LS_OK;
}

ls_status lsi_io_write(const lsi_io *io, int fd, const char *path, const void *data, size_t bytes,
                       ls_err *err)
{
    const char *p = data;

    while (bytes > 0) {
        /* Linux writes at most 2 GiB per call; smaller portions also keep the hook useful. */
        size_t portion = bytes < (size_t)64 << 20 ? bytes : (size_t)64 << 20;
        ssize_t done = allowed(io, "write") ? write(fd, p, portion) : -1;
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return refused("write", path, err);
        p += done;
        bytes -= (size_t)done;
    }
    return LS_OK;
}

ls_status lsi_io_skip(int fd, const char *path, size_t bytes, ls_err *err)
{
    return lseek(fd, (off_t)bytes, SEEK_CUR) >= 0 ? LS_OK : refused("seek", path, err);
}

/* Sync before the name: what a quota or a network file system refuses late shows here or in close(2), while
 * the checkpoint of before is still in its place. */
ls_status lsi_io_finish(const lsi_io *io, int fd, const char *path, ls_err *err)
{
    ls_status st = allowed(io, "sync") && fsync(fd) == 0 ? LS_OK : refused("sync", path, err);
    int e = errno;

    if (close(fd) != 0 && st == LS_OK) return refused("close", path, err);
    errno = e;
    return st;
}

ls_status lsi_io_mkdir(const lsi_io *io, const char *path, ls_err *err)
{
    return allowed(io, "mkdir") && mkdir(path, 0777) == 0 ? LS_OK : refused("make", path, err);
}

ls_status lsi_io_sync_dir(const lsi_io *io, const char *path, ls_err *err)
{
    int bad = allowed(io, "sync directory") ? ls_replace_sync_folder(path) : errno;

    errno = bad;
    return bad == 0 ? LS_OK : refused("sync", path, err);
}

ls_status lsi_io_replace(const lsi_io *io, const char *from, const char *to, ls_err *err)
{
    char aside[LSI_PATH + 8];

    if (!allowed(io, "rename")) return refused("rename", from, err);
    if (rename(from, to) == 0) return LS_OK;
    if (errno != ENOTEMPTY && errno != EEXIST) return refused("rename", from, err);
    /* A directory that is not empty: swap the two names, so that there is a whole one at every moment. */
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0) {
        lsi_io_remove(from);
        return LS_OK;
    }
    /* Some network file systems cannot swap.  The old one is set aside and comes back when the rename fails.
     */
    snprintf(aside, sizeof aside, "%s.old", to);
    if (rename(to, aside) != 0) return refused("rename", to, err);
    if (rename(from, to) != 0) {
        ls_status st = refused("rename", from, err);
        int e = errno;
        if (rename(aside, to) != 0) ls_fail_in(err, st, "%s is now %s", to, aside);
        errno = e;
        return st;
    }
    lsi_io_remove(aside);
    return LS_OK;
}

/* A link under another name that takes the place of the old one: whoever looks meanwhile finds one of the
 * two. */
ls_status lsi_io_link(const lsi_io *io, const char *target, const char *path, ls_err *err)
{
    char fresh[LSI_PATH + 8];
    ls_status st;

    snprintf(fresh, sizeof fresh, "%s%s", path, LSI_CKPT_PARTIAL);
    unlink(fresh);
    if (!allowed(io, "link") || symlink(target, fresh) != 0) return refused("link", path, err);
    st = allowed(io, "rename") && rename(fresh, path) == 0 ? LS_OK : refused("rename", fresh, err);
    if (st != LS_OK) unlink(fresh);
    return st;
}

/* One level deep, which is all that a checkpoint has: a path that is wrong cannot take a tree with it. */
void lsi_io_remove(const char *path)
{
    DIR *d;
    struct dirent *e;

    if (unlink(path) == 0 || (d = opendir(path)) == NULL) return;
    while ((e = readdir(d)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    rmdir(path);
}

const char *lsi_io_parent(const char *path, char *buf, size_t size)
{
    size_t n = strlen(path);

    while (n > 1 && path[n - 1] == '/') n--;
    while (n > 0 && path[n - 1] != '/') n--;
    while (n > 1 && path[n - 1] == '/') n--;
    if (n == 0)
        snprintf(buf, size, ".");
    else
        snprintf(buf, size, "%.*s", (int)n, path);
    return buf;
}

int64_t lsi_io_free_bytes(const char *path)
{
    struct statvfs s;

    if (statvfs(path, &s) != 0) return -1;
    return (int64_t)s.f_bavail * (int64_t)s.f_frsize;
}

ls_status lsi_io_join(char *buf, size_t size, const char *folder, const char *name, ls_err *err)
{
    int n = snprintf(buf, size, "%s/%s", folder, name);

    return n >= 0 && (size_t)n < size ? LS_OK : ls_fail(err, LS_INVALID, "%s: the path is too long", folder);
}

ls_status lsi_io_open(const char *path, int *fd, uint64_t *bytes, ls_err *err)
{
    struct stat s;

    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd >= 0 && fstat(*fd, &s) == 0 && S_ISREG(s.st_mode)) {
        *bytes = (uint64_t)s.st_size;
        return LS_OK;
    }
    if (*fd < 0) return ls_fail(err, LS_DATA, "%s: cannot be opened: %s", path, strerror(errno));
    close(*fd);
    *fd = -1;
    return ls_fail(err, LS_DATA, "%s: is no plain file", path);
}

ls_status lsi_io_read(int fd, const char *path, uint64_t at, void *to, size_t bytes, ls_err *err)
{
    char *p = to;

    while (bytes > 0) {
        ssize_t done = pread(fd, p, bytes, (off_t)at);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return ls_fail(err, LS_DATA, "%s: cannot be read: %s", path, strerror(errno));
        if (done == 0)
            return ls_fail(err, LS_DATA, "%s: ends at byte %llu, %zu bytes too early", path,
                           (unsigned long long)at, bytes);
        p += done;
        at += (uint64_t)done;
        bytes -= (size_t)done;
    }
    return LS_OK;
}
