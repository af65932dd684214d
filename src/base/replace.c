/* replace.c: a file written aside and renamed. */
#include "base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* All of it, however often the system takes only a part. */
static int write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        const ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return -1;
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

ls_status ls_replace_file(const char *path, const void *bytes, size_t n, ls_err *err)
{
    char aside[4200];
    int fd, bad;

    if (snprintf(aside, sizeof aside, "%s.%ld.partial", path, (long)getpid()) >= (int)sizeof aside)
        return ls_fail(err, LS_IO, "%.200s...: the name is too long", path);
    fd = open(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return ls_fail(err, LS_IO, "%s: %s", path, strerror(errno));
    bad = write_all(fd, bytes, n) != 0 || fsync(fd) != 0 ? errno : 0;
    if (close(fd) != 0 && bad == 0) bad = errno;
    if (bad == 0 && rename(aside, path) != 0) bad = errno;
    if (bad == 0) return LS_OK;
    unlink(aside);
    return ls_fail(err, LS_IO, "%s: %s", path, strerror(bad));
}
