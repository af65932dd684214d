/* owner.c: reads, writes and locks owner.json, and judges whether its owner lives. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "runs/owner_internal.h"

/* -- times ------------------------------------------------------------------------------------------------
 */

double lsi_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

const char *lsi_time_text(double t, char buf[32])
{
    char day[24];
    struct tm tm;
    time_t whole;

    buf[0] = '\0';
    if (!isfinite(t) || fabs(t) > 1e11) return buf;
    t = floor(t * 1e3 + 0.5) / 1e3;
    whole = (time_t)floor(t);
    gmtime_r(&whole, &tm);
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(buf, 32, "%s.%03dZ", day, (int)((t - (double)whole) * 1e3 + 0.5) % 1000);
    return buf;
}

double lsi_time_parse(const char *text)
{
    struct tm tm = {0};
    int ms = 0, used = 0;

    if (text == NULL) return NAN;
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
               &tm.tm_min, &tm.tm_sec, &used) != 6 ||
        used == 0)
        return NAN;
    if (text[used] == '.') {
        int more = 0;
        if (sscanf(text + used, ".%3d%n", &ms, &more) != 1 || ms < 0) return NAN;
        used += more;
    }
    if (strcmp(text + used, "Z") != 0 || tm.tm_year < 1970 || tm.tm_mon < 1 || tm.tm_mon > 12 ||
        tm.tm_mday < 1 || tm.tm_mday > 31 || tm.tm_hour < 0 || tm.tm_hour > 23 || tm.tm_min < 0 ||
        tm.tm_min > 59 || tm.tm_sec < 0 || tm.tm_sec > 60)
        return NAN;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    return (double)timegm(&tm) + ms * 1e-3;
}

/* -- content ----------------------------------------------------------------------------------------------
 */

/* Of the kernel since it started: the same number means the same machine, not restarted. */
static void read_boot(char *out, size_t size)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, size - 1) : 0;

    if (fd >= 0) close(fd);
    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

/* The words of this process's command line, as a shell would take them. */
static ls_status read_command(char *out, size_t size, ls_err *err)
{
    char words[1024];
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, words, sizeof words - 1) : 0;
    ls_text text = {0};
    bool failed;

    if (fd >= 0) close(fd);
    words[n > 0 ? n : 0] = '\0';
    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(words + at) + 1) {
        if (at > 0) ls_text_add(&text, " ");
        ls_text_add_quoted(&text, words + at);
    }
    failed = text.failed;
    snprintf(out, size, "%s", text.data != NULL && !failed ? text.data : "");
    ls_text_release(&text);
    return failed ? ls_fail(err, LS_NOMEM, "no memory for the command line") : LS_OK;
}

ls_status lsi_owner_self(ls_run_owner *o, ls_err *err)
{
    *o = (ls_run_owner){.pid = getpid(), .start = lsi_now(), .ended = (double)NAN, .version = LS_VERSION};
    if (gethostname(o->host, sizeof o->host - 1) != 0) snprintf(o->host, sizeof o->host, "unknown");
    read_boot(o->boot, sizeof o->boot);
    return read_command(o->command, sizeof o->command, err);
}

/* False when it is there and no text, or one that does not fit. */
static bool take_text(const json_t *from, const char *key, char *out, size_t size)
{
    const json_t *v = json_object_get(from, key);

    if (v == NULL || json_is_null(v)) return true;
    return json_is_string(v) && snprintf(out, size, "%s", json_string_value(v)) < (int)size;
}

bool lsi_owner_parse(ls_run_owner *o, const char *text, size_t n)
{
    json_t *j = json_loadb(text, n, JSON_DISABLE_EOF_CHECK, NULL);
    const json_t *pid = json_object_get(j, "pid"), *epoch = json_object_get(j, "epoch");
    char start[64] = "", ended[64] = "", end[16] = "";
    bool ok;

    *o = (ls_run_owner){.ended = (double)NAN};
    ok = json_is_integer(pid) && json_integer_value(pid) > 0 && json_is_integer(epoch) &&
         json_integer_value(epoch) > 0 && take_text(j, "host", o->host, sizeof o->host) &&
         take_text(j, "boot", o->boot, sizeof o->boot) &&
         take_text(j, "version", o->version, sizeof o->version) &&
         take_text(j, "name", o->name, sizeof o->name) &&
         take_text(j, "command", o->command, sizeof o->command) &&
         take_text(j, "start", start, sizeof start) && take_text(j, "ended", ended, sizeof ended) &&
         take_text(j, "state", end, sizeof end);
    if (ok) {
        o->pid = json_integer_value(pid);
        o->epoch = json_integer_value(epoch);
        o->begun = json_is_true(json_object_get(j, "begun"));
        o->start = lsi_time_parse(start);
        o->ended = lsi_time_parse(ended);
        o->end = ls_run_state_of(end);
        if (o->end == LS_RUN_RUNNING) o->end = LS_RUN_UNKNOWN;
        ok = isfinite(o->start);
    }
    json_decref(j);
    return ok;
}

/* All of it, or why not. */
static int write_at_start(int fd, const char *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        const ssize_t done = pwrite(fd, p + at, n - at, (off_t)at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return done < 0 ? errno : ENOSPC;
        at += (size_t)done;
    }
    return ftruncate(fd, (off_t)n) == 0 ? 0 : errno;
}

ls_status lsi_owner_write(int fd, const ls_run_owner *o, const char *path, ls_err *err)
{
    char start[32], ended[32];
    ls_text text = {0};
    json_t *j =
        json_pack("{s:I, s:s, s:s, s:s, s:s*, s:s*, s:I, s:b, s:s, s:s, s:s}", "pid", (json_int_t)o->pid,
                  "host", o->host, "boot", o->boot, "start", lsi_time_text(o->start, start), "ended",
                  isfinite(o->ended) ? lsi_time_text(o->ended, ended) : NULL, "state",
                  o->end != LS_RUN_UNKNOWN ? ls_run_state_name(o->end) : NULL, "epoch", (json_int_t)o->epoch,
                  "begun", o->begun, "name", o->name, "command", o->command, "version", o->version);
    int bad;

    /* Words of a command line need not be UTF-8, which is all that JSON can hold. */
    if (j == NULL) {
        ls_run_owner plain = *o;
        if (o->command[0] == '\0' && o->name[0] == '\0') return ls_fail(err, LS_NOMEM, "%s: no memory", path);
        plain.command[0] = plain.name[0] = '\0';
        return lsi_owner_write(fd, &plain, path, err);
    }
    ls_json_add(&text, j, LS_JSON_FILE_FLAGS);
    ls_text_add(&text, "\n");
    json_decref(j);
    bad = text.failed ? ENOMEM : write_at_start(fd, text.data, text.length);
    ls_text_release(&text);
    return bad == 0 ? LS_OK : ls_fail(err, bad == ENOMEM ? LS_NOMEM : LS_IO, "%s: %s", path, strerror(bad));
}

void lsi_owner_read(int fd, ls_run_owner *o, bool *there)
{
    char text[LSI_OWNER_BYTES];
    ssize_t n;

    do n = pread(fd, text, sizeof text, 0);
    while (n < 0 && errno == EINTR);
    *o = (ls_run_owner){.ended = (double)NAN};
    *there = n > 0 && n < (ssize_t)sizeof text && lsi_owner_parse(o, text, (size_t)n);
}

/* The whole number behind `"key": `, as lsi_owner_write writes it; -1: there is none.  A quote within a value
 * has a backslash before it, so that no value looks like a key. */
static int64_t number_at(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    int64_t value = 0;

    if (at == NULL) return -1;
    at += strlen(key);
    if (*at < '0' || *at > '9') return -1;
    for (; *at >= '0' && *at <= '9' && value < INT64_MAX / 16; at++) value = value * 10 + (*at - '0');
    return value;
}

bool lsi_owner_holds(const char *path, const ls_run_owner *o)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), before = errno;
    char text[LSI_OWNER_BYTES];
    ssize_t n = 0;
    int64_t pid, epoch;

    if (fd < 0) return true;
    do n = pread(fd, text, sizeof text - 1, 0);
    while (n < 0 && errno == EINTR);
    close(fd);
    errno = before;
    text[n > 0 ? n : 0] = '\0';
    pid = number_at(text, "\"pid\": ");
    epoch = number_at(text, "\"epoch\": ");
    if (pid < 0 || epoch < 0) return true;
    return pid == o->pid && epoch == o->epoch && strstr(text, o->boot) != NULL;
}

/* -- the lock ---------------------------------------------------------------------------------------------
 */

/* Of the open file, not of a process: children share it, and it goes with the last descriptor. */
static struct flock whole_file(void)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
}

lsi_lock lsi_owner_lock(int fd)
{
    struct flock l = whole_file();

    if (fcntl(fd, F_OFD_SETLK, &l) == 0) return LSI_LOCK_OURS;
    return errno == EAGAIN || errno == EACCES ? LSI_LOCK_HELD : LSI_LOCK_NONE;
}

lsi_lock lsi_owner_look(int fd)
{
    struct flock l = whole_file();

    if (fcntl(fd, F_OFD_GETLK, &l) != 0) return LSI_LOCK_NONE;
    return l.l_type == F_UNLCK ? LSI_LOCK_OURS : LSI_LOCK_HELD;
}

double lsi_owner_heartbeat(int fd)
{
    struct stat info;

    if (fstat(fd, &info) != 0) return NAN;
    return (double)info.st_mtim.tv_sec + (double)info.st_mtim.tv_nsec * 1e-9;
}

bool lsi_owner_alive(int fd, const ls_run_owner *o, bool *sure)
{
    const lsi_lock lock = lsi_owner_look(fd);
    char boot[sizeof o->boot];

    *sure = true;
    if (lock == LSI_LOCK_HELD) return true;
    if (o->pid == 0 || isfinite(o->ended)) return false;
    read_boot(boot, sizeof boot);
    if (boot[0] != '\0' && strcmp(boot, o->boot) == 0) {
        if (lock == LSI_LOCK_OURS) return false;
        if (kill((pid_t)o->pid, 0) != 0 && errno == ESRCH) return false;
    }
    *sure = false;
    return lsi_now() - lsi_owner_heartbeat(fd) < LSI_STALE_S;
}

json_t *lsi_summary_load(const char *path, ls_err *err)
{
    json_t *o = NULL;

    if (ls_json_read(&o, path, LS_JSON_FILE_MAX, err) != LS_OK) return NULL;
    if (json_is_object(o)) return o;
    ls_fail(err, LS_DATA, "%s: no JSON object", path);
    json_decref(o);
    return NULL;
}
