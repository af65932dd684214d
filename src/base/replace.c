/* replace.c: a file written aside and renamed. */
#include "base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* All of it, however often the system takes only a part. */
static int write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        const ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR) continue;
        if (done == 0) errno = ENOSPC;
        if (done <= 0) return -1;
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

static int create(const char *aside)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    const int fd = open(aside, flags, 0666);

    if (fd >= 0 || errno != EEXIST) return fd;
    /* Of a process that had this name and was killed; were it a link, only the link goes. */
    unlink(aside);
    return open(aside, flags, 0666);
}

int ls_replace_sync_folder(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int bad;

    if (fd < 0) return errno;
    bad = fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP ? errno : 0;
    close(fd);
    return bad;
}

/* Takes over `fd`.  `bad` is what has gone wrong before. */
static int finish(const ls_replace_names *names, int fd, int bad, const ls_replace_gate *gate)
{
    /* EINVAL: a file of a kind that has no disk behind it. */
    if (bad == 0 && fsync(fd) != 0 && errno != EINVAL) bad = errno;
    if (close(fd) != 0 && bad == 0) bad = errno;
    if (bad == 0 && gate != NULL && !gate->open(gate->arg)) bad = ECANCELED;
    if (bad == 0 && rename(names->aside, names->path) != 0) bad = errno;
    if (bad == 0) return ls_replace_sync_folder(names->folder);
    unlink(names->aside);
    return bad;
}

int ls_replace_named(const ls_replace_names *names, const void *bytes, size_t n, const ls_replace_gate *gate)
{
    const int fd = create(names->aside);

    if (fd < 0) return errno;
    return finish(names, fd, write_all(fd, bytes, n) != 0 ? errno : 0, gate);
}

/* A device or a pipe would be gone for everybody, and /dev/stdout is a link that others follow. */
static bool is_no_file(const char *path)
{
    struct stat info;

    if (strncmp(path, "/dev/", 5) == 0 && strncmp(path, "/dev/shm/", 9) != 0) return true;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

ls_status ls_replace_name(ls_replace_names *names, const char *path, ls_err *err)
{
    const char *slash = strrchr(path, '/');
    const size_t n = slash != NULL ? (size_t)(slash - path) : 0;
    unsigned salt = 0;

    if (is_no_file(path))
        return ls_fail(err, LS_IO,
                       "%s is a device or a pipe, which no file may take the place of; name a file", path);
    if (strlen(path) >= sizeof names->path)
        return ls_fail(err, LS_IO, "%.200s...: the name is too long", path);
    snprintf(names->path, sizeof names->path, "%s", path);
    /* Processes of other machines may have the same number. */
    if (getrandom(&salt, sizeof salt, GRND_NONBLOCK) != (ssize_t)sizeof salt) salt = 0;
    snprintf(names->aside, sizeof names->aside, "%s.%ld-%08x.partial", path, (long)getpid(), salt);
    if (n > 0)
        snprintf(names->folder, sizeof names->folder, "%.*s", (int)n, path);
    else
        snprintf(names->folder, sizeof names->folder, "%s", slash != NULL ? "/" : ".");
    return LS_OK;
}

static ls_status refuse(const ls_replace_names *names, int bad, ls_err *err)
{
    return bad == 0 ? LS_OK : ls_fail(err, LS_IO, "%s: %s", names->path, strerror(bad));
}

ls_status ls_replace_file(const char *path, const void *bytes, size_t n, ls_err *err)
{
    ls_replace_names names;
    const ls_status st = ls_replace_name(&names, path, err);

    return st != LS_OK ? st : refuse(&names, ls_replace_named(&names, bytes, n, NULL), err);
}

ls_status ls_replace_check(const char *path, ls_err *err)
{
    ls_replace_names names;
    struct stat info;
    ls_status st = ls_replace_name(&names, path, err);
    int fd;

    if (st != LS_OK) return st;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return refuse(&names, EISDIR, err);
    fd = create(names.aside); /* permissions alone do not tell: root has them all */
    if (fd < 0) return refuse(&names, errno, err);
    close(fd);
    unlink(names.aside);
    return LS_OK;
}

ls_status ls_replace_begin(ls_replace_stream *s, const char *path, ls_err *err)
{
    ls_status st;
    int fd;

    s->f = NULL;
    st = ls_replace_name(&s->names, path, err);
    if (st != LS_OK) return st;
    fd = create(s->names.aside);
    if (fd >= 0) s->f = fdopen(fd, "w");
    if (s->f != NULL) return LS_OK;
    st = refuse(&s->names, errno, err);
    if (fd >= 0) {
        close(fd);
        unlink(s->names.aside);
    }
    return st;
}

ls_status ls_replace_commit(ls_replace_stream *s, ls_err *err)
{
    int bad, fd;

    if (s->f == NULL) return ls_fail(err, LS_IO, "nothing was begun");
    errno = 0;
    bad = ferror(s->f) || fflush(s->f) != 0 ? (errno != 0 ? errno : EIO) : 0;
    fd = dup(fileno(s->f)); /* the stream goes, its file stays until it is on the disk */
    if (fd < 0 && bad == 0) bad = errno;
    fclose(s->f);
    s->f = NULL;
    if (fd >= 0) return refuse(&s->names, finish(&s->names, fd, bad, NULL), err);
    unlink(s->names.aside);
    return refuse(&s->names, bad, err);
}

void ls_replace_abandon(ls_replace_stream *s)
{
    if (s->f == NULL) return;
    fclose(s->f);
    unlink(s->names.aside);
    s->f = NULL;
}
