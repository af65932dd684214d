/* append.c: appends whole records to a file; see append.h for what happens when it cannot. */
#include "events/append.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/grow.h"
#include "base/log.h"

#define TRY_AGAIN_S 1.0

ls_status ls_append_open(ls_append *a, const char *path, int flags, const char *what, ls_err *err)
{
    struct stat info;
    *a = (ls_append){.fd = -1, .what = what};
    a->path = ls_strdup(LS_MEM_CLI, path);
    if (!a->path) return ls_fail(err, LS_NOMEM, "%s: out of memory", path);
    a->fd = open(path, O_CREAT | O_APPEND | O_CLOEXEC | flags, 0666);
    if (a->fd < 0 || fstat(a->fd, &info) != 0) {
        int cause = errno;
        ls_fail(err, LS_IO, "%s: %s", path, strerror(cause));
        ls_append_close(a);
        errno = cause;
        return LS_IO;
    }
    a->bytes = (int64_t)info.st_size;
    return LS_OK;
}

LS_PRINTF(2, 3) static void say(const ls_append *a, const char *fmt, ...)
{
    char text[4096 + 256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (a->say != NULL)
        a->say(a->say_ctx, text);
    else
        ls_log(LS_LOG_WARN, "%s", text);
}

static void warn(ls_append *a, const char *why)
{
    if (a->warned) return;
    a->warned = true;
    say(a, "%s: %s; %s wait in memory until it can be written to, and the run goes on", a->path, why,
        a->what);
}

/* One record, at the end of the file, or nothing. */
static bool write_record(ls_append *a, const char *p, size_t n)
{
    size_t left = n;
    /* Goes round again only for what a signal or a full disk left over. */
    while (left > 0) {
        ssize_t done = write(a->fd, p, left);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) break;
        p += done;
        left -= (size_t)done;
    }
    if (left == 0) {
        a->bytes += (int64_t)n;
        return true;
    }
    a->cause = errno;
    /* Half a record would read as damage. */
    if (left < n && ftruncate(a->fd, (off_t)a->bytes) != 0)
        say(a, "%s: cannot cut off what was written last: %s", a->path, strerror(errno));
    return false;
}

/* The records that wait, as many as the disk takes. */
static void try_again(ls_append *a)
{
    size_t done = 0, at = 0;
    while (done < a->n_waiting && write_record(a, a->kept + at, a->lengths[done])) at += a->lengths[done++];
    if (done > 0) {
        a->n_kept -= at;
        a->n_waiting -= done;
        memmove(a->kept, a->kept + at, a->n_kept);
        memmove(a->lengths, a->lengths + done, a->n_waiting * sizeof *a->lengths);
    }
    if (a->n_waiting > 0) {
        a->next_try = ls_clock_seconds() + TRY_AGAIN_S;
    } else if (a->warned) {
        say(a, "%s can be written to again: the %s that waited are in it", a->path, a->what);
        a->warned = false;
    }
}

static void keep(ls_append *a, const void *data, size_t n)
{
    if (n > LS_APPEND_KEEP - a->n_kept || !LS_GROW(LS_MEM_CLI, a->kept, a->n_kept + n, a->kept_capacity) ||
        !LS_GROW(LS_MEM_CLI, a->lengths, a->n_waiting + 1, a->lengths_capacity)) {
        a->dropped++;
        return;
    }
    memcpy(a->kept + a->n_kept, data, n);
    a->n_kept += n;
    a->lengths[a->n_waiting++] = n;
}

void ls_append_write(ls_append *a, const void *data, size_t n)
{
    if (a->n_waiting > 0 && ls_clock_seconds() >= a->next_try) try_again(a);
    if (a->n_waiting == 0 && write_record(a, data, n)) return;
    if (a->n_waiting == 0) a->next_try = ls_clock_seconds() + TRY_AGAIN_S;
    keep(a, data, n);
    warn(a, strerror(a->cause));
}

void ls_append_lost(ls_append *a)
{
    a->dropped++;
    warn(a, "out of memory");
}

void ls_append_flush(ls_append *a)
{
    if (a->fd < 0) return;
    if (a->n_waiting > 0) try_again(a);
    /* EINVAL: the file is of a kind that has no disk behind it. */
    if (fdatasync(a->fd) == 0 || errno == EINVAL || a->sync_failed) return;
    a->sync_failed = true;
    say(a, "%s: %s; what was written last may be missing from it", a->path, strerror(errno));
}

int64_t ls_append_missing(const ls_append *a)
{
    return a->dropped + (int64_t)a->n_waiting;
}

void ls_append_close(ls_append *a)
{
    ls_append_flush(a);
    if (a->fd >= 0) close(a->fd);
    if (ls_append_missing(a) > 0)
        say(a, "%s: %lld %s were lost%s%s", a->path, (long long)ls_append_missing(a), a->what,
            a->cause != 0 ? ": " : "", a->cause != 0 ? strerror(a->cause) : "");
    ls_free(a->path);
    ls_free(a->kept);
    ls_free(a->lengths);
    *a = (ls_append){.fd = -1};
}
