/* stop.c: asks the owner of a run to end.
 *
 * A number in a file is no process: the one that had it may be gone, and its number another's.  So the
 * process is held first (a descriptor stands for it, not for its number), then looked at, then asked. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"
#include "runs/manage.h"
#include "runs/owner_internal.h"
#include "runs/run_internal.h"

/* Clocks of the file and of the process are read one after another. */
static const double SLACK_S = 2;

enum { STAT_BYTES = 1024 };

/* /proc/PID/stat from the end of the name on, which may hold anything; NULL: it cannot be read. */
static const char *read_stat(int64_t pid, char text[STAT_BYTES])
{
    char path[64];
    size_t n;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    f = fopen(path, "re");
    if (f == NULL) return NULL;
    n = fread(text, 1, STAT_BYTES - 1, f);
    fclose(f);
    text[n] = '\0';
    return strrchr(text, ')');
}

/* When process `pid` was started, in seconds since 1970; NaN when it cannot be told. */
static double process_start(int64_t pid)
{
    char text[STAT_BYTES];
    unsigned long long ticks = 0;
    struct timespec up, now;
    const char *at = read_stat(pid, text);

    /* the 20th word after the name */
    for (int i = 0; at != NULL && i < 20; i++) at = strchr(at + 1, ' ');
    if (at == NULL || sscanf(at, " %llu", &ticks) != 1) return NAN;
    clock_gettime(CLOCK_BOOTTIME, &up);
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)(now.tv_sec - up.tv_sec) + (double)(now.tv_nsec - up.tv_nsec) * 1e-9 +
           (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

/* Has the process the file open? */
static bool has_open(int64_t pid, const struct stat *file)
{
    char folder[64];
    const struct dirent *e;
    struct stat info;
    bool found = false;
    DIR *d;

    snprintf(folder, sizeof folder, "/proc/%lld/fd", (long long)pid);
    d = opendir(folder);
    while (d != NULL && !found && (e = readdir(d)) != NULL)
        found = e->d_name[0] != '.' && fstatat(dirfd(d), e->d_name, &info, 0) == 0 &&
                info.st_dev == file->st_dev && info.st_ino == file->st_ino;
    if (d != NULL) closedir(d);
    return found;
}

static ls_status elsewhere(const ls_run_info *i, ls_err *err)
{
    char whole[PATH_MAX], word[LS_PATH_MAX];
    const char *path = realpath(i->path, whole) != NULL ? whole : i->path;

    return ls_fail(err, LS_INVALID, "%s runs on %s (process %lld); there: lockstep runs stop %s", i->path,
                   i->owner.host, (long long)i->owner.pid, ls_text_quoted(path, word, sizeof word));
}

/* Asks the process that `fd` stands for. */
static ls_status ask(const ls_run_info *i, const struct stat *file, int fd, ls_err *err)
{
    const double begun = process_start(i->owner.pid);

    if (!(begun <= i->owner.start + SLACK_S) || !has_open(i->owner.pid, file))
        return ls_fail(
            err, LS_IO,
            "%s: process %lld is not the one that owns the run, or is not yours to look at; nothing was done",
            i->path, (long long)i->owner.pid);
    if (syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) != 0)
        return ls_fail(err, LS_IO, "%s: process %lld: %s", i->path, (long long)i->owner.pid, strerror(errno));
    return LS_OK;
}

ls_status ls_run_ask_to_end(const ls_run_info *i, bool *asked, ls_err *err)
{
    ls_run_owner self;
    char path[LS_PATH_MAX];
    struct stat file;
    ls_status st = LS_OK;
    int fd;

    *asked = false;
    if (!i->alive) return LS_OK;
    LS_TRY(lsi_owner_self(&self, err));
    if (strcmp(self.boot, i->owner.boot) != 0) return elsewhere(i, err);
    LS_TRY(lsi_run_path(path, i->path, LSI_OWNER_FILE, err));
    fd = (int)syscall(SYS_pidfd_open, (pid_t)i->owner.pid, 0);
    if (fd < 0 && errno == ESRCH) {
        st = ls_fail(err, LS_IO,
                     "%s: its process %lld is gone, but others of the run still hold it; they end by "
                     "themselves",
                     i->path, (long long)i->owner.pid);
        goto out;
    }
    if (fd < 0 || stat(path, &file) != 0)
        st = ls_fail(err, LS_IO, "%s: process %lld: %s", i->path, (long long)i->owner.pid, strerror(errno));
    else
        st = ask(i, &file, fd, err);
    if (fd >= 0) close(fd);
    *asked = st == LS_OK;
out:
    return st;
}

bool ls_run_is_stopped(const ls_run_info *i)
{
    char text[STAT_BYTES];
    ls_run_owner self;
    const char *at;

    if (!i->alive || lsi_owner_self(&self, NULL) != LS_OK || strcmp(self.boot, i->owner.boot) != 0)
        return false;
    at = read_stat(i->owner.pid, text);
    return at != NULL && (strncmp(at, ") T", 3) == 0 || strncmp(at, ") t", 3) == 0);
}
