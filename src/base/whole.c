/* whole.c: a file in memory. */
#include "base/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"

enum { FIRST_BYTES = 64 * 1024 };

/* One read that a signal does not end. */
static ssize_t read_some(int fd, char *to, size_t n)
{
    ssize_t got;

    do got = read(fd, to, n);
    while (got < 0 && errno == EINTR);
    return got;
}

/* Sizes are only a hint: a file may grow while it is read, and a pipe has none. */
static ls_status read_all(char **out, size_t *n, int fd, const char *path, size_t most, ls_err *err)
{
    struct stat info;
    size_t capacity = 0, want = FIRST_BYTES;
    ssize_t got = 1;

    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0)
        want = (size_t)info.st_size < most ? (size_t)info.st_size : most;
    while (got > 0) {
        /* One byte for the NUL, and one that shows that there is more than expected. */
        if (!LS_GROW(LS_MEM_CLI, *out, want + 2, capacity))
            return ls_fail(err, LS_NOMEM, "%s: no memory to read it", path);
        got = read_some(fd, *out + *n, capacity - 1 - *n);
        if (got < 0) return ls_fail(err, LS_DATA, "%s: %s", path, strerror(errno));
        *n += (size_t)got;
        if (*n > most) return ls_fail(err, LS_DATA, "%s: more than %zu bytes", path, most);
        if (*n + 1 == capacity) want = capacity;
    }
    (*out)[*n] = '\0';
    return LS_OK;
}

/* Takes over `fd`. */
static ls_status read_and_close(char **out, size_t *n, int fd, const char *path, size_t most, ls_err *err)
{
    const ls_status st = read_all(out, n, fd, path, most, err);

    close(fd);
    if (st == LS_OK) return LS_OK;
    ls_free(*out);
    *out = NULL;
    *n = 0;
    return st;
}

ls_status ls_whole_file(char **out, size_t *n, const char *path, size_t most, ls_err *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);

    *out = NULL;
    *n = 0;
    if (fd < 0) return ls_fail(err, LS_DATA, "%s: %s", path, strerror(errno));
    return read_and_close(out, n, fd, path, most, err);
}

ls_status ls_whole_plain(char **out, size_t *n, const char *path, size_t most, ls_err *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info;

    *out = NULL;
    *n = 0;
    if (fd < 0 || fstat(fd, &info) != 0) {
        const int bad = errno;
        if (fd >= 0) close(fd);
        return ls_fail(err, LS_DATA, "%s: %s", path, strerror(bad));
    }
    if (S_ISREG(info.st_mode)) return read_and_close(out, n, fd, path, most, err);
    close(fd);
    return ls_fail(err, LS_DATA, "%s: is no plain file", path);
}
