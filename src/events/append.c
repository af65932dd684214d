/* append.c: appends whole pieces to a file; see append_internal.h for what happens when it cannot. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "events/append_internal.h"

ls_status lsi_append_open(lsi_append *a, const char *path, int flags, const char *what, ls_err *err)
{
    struct stat info;
    *a = (lsi_append){.fd = -1, .what = what};
    a->path = ls_strdup(LS_MEM_CLI, path);
    if (!a->path) return ls_fail(err, LS_NOMEM, "%s: out of memory", path);
    a->fd = open(path, O_CREAT | O_APPEND | O_CLOEXEC | flags, 0666);
    if (a->fd < 0 || fstat(a->fd, &info) != 0) {
        int cause = errno;
        ls_fail(err, LS_IO, "%s: %s", path, strerror(cause));
        lsi_append_close(a);
        errno = cause;
        return LS_IO;
    }
    a->bytes = (int64_t)info.st_size;
    return LS_OK;
}

static void fail(lsi_append *a, const char *why)
{
    if (a->failed) return;
    a->failed = true;
    ls_log(LS_LOG_WARN, "%s: %s; the %s of this run end here, the run goes on", a->path, why, a->what);
    /* Half a piece would read as damage. */
    if (ftruncate(a->fd, (off_t)a->bytes) != 0) {
        ls_log(LS_LOG_WARN, "%s: cannot cut off what was written last: %s", a->path, strerror(errno));
    }
}

void lsi_append_write(lsi_append *a, const void *data, size_t n)
{
    const char *p = data;
    size_t left = n;
    /* Goes round again only for what a signal or a full disk left over. */
    while (!a->failed && left > 0) {
        ssize_t done = write(a->fd, p, left);
        if (done >= 0) {
            p += done;
            left -= (size_t)done;
        } else if (errno != EINTR) {
            fail(a, strerror(errno));
        }
    }
    if (a->failed) {
        a->dropped++;
    } else {
        a->bytes += (int64_t)n;
    }
}

void lsi_append_lost(lsi_append *a)
{
    fail(a, "out of memory");
    a->dropped++;
}

void lsi_append_flush(lsi_append *a)
{
    if (a->failed || a->fd < 0) return;
    /* EINVAL: the file is of a kind that has no disk behind it. */
    if (fdatasync(a->fd) != 0 && errno != EINVAL) fail(a, strerror(errno));
}

void lsi_append_close(lsi_append *a)
{
    lsi_append_flush(a);
    if (a->fd >= 0) close(a->fd);
    if (a->dropped > 0) {
        ls_log(LS_LOG_WARN, "%s: %lld %s were lost", a->path, (long long)a->dropped, a->what);
    }
    ls_free(a->path);
    *a = (lsi_append){.fd = -1};
}
