/* runlog.c: the file, and the hook that fills it. */
#include "train/runlog.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "events/append.h"

enum { PATH_BYTES = 4200 };

struct ls_runlog {
    char path[PATH_BYTES];
    pthread_mutex_t lock; /* of what follows */
    ls_append file;
    ls_progress *progress;
};

static void show(const ls_runlog *log, const char *line, size_t n)
{
    ssize_t ignored = 0;

    if (log->progress != NULL)
        ls_progress_interrupt(log->progress, line, n);
    else
        ignored = write(STDERR_FILENO, line, n);
    (void)ignored; /* nobody is there to see it */
}

/* Must not log: it may be inside the log. */
static void complain(void *ctx, const char *text)
{
    char line[PATH_BYTES + 512];
    const int n = snprintf(line, sizeof line, "lockstep: warning: %s\n", text);

    show(ctx, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

/* "2026-11-15T11:40:01.123Z " in front of the line. */
static void add_line(ls_text *out, const char *line, size_t n)
{
    struct timespec now;
    struct tm tm;
    char stamp[32];

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &tm);
    ls_text_add(out, "%s.%03dZ %.*s\n", stamp, (int)(now.tv_nsec / 1000000), (int)n, line);
}

/* Every line of `text` with the time; empty ones are left out. */
static void append_lines(ls_runlog *log, const char *text, size_t n)
{
    ls_text out = {0};

    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t length = end != NULL ? (size_t)(end - text) - at : n - at;
        if (length > 0) add_line(&out, text + at, length);
        at += length + 1;
    }
    if (out.failed)
        ls_append_lost(&log->file);
    else if (out.length > 0)
        ls_append_write(&log->file, out.data, out.length);
    ls_text_release(&out);
}

static void on_line(void *arg, ls_log_level level, bool shown, const char *line, size_t n)
{
    ls_runlog *log = arg;

    (void)level;
    pthread_mutex_lock(&log->lock);
    append_lines(log, line, n);
    if (shown) show(log, line, n);
    pthread_mutex_unlock(&log->lock);
}

ls_status ls_runlog_open(ls_runlog **out, const char *folder, int rank, ls_err *err)
{
    ls_runlog *log = ls_alloc(LS_MEM_CLI, sizeof *log);
    ls_status st = LS_OK;

    *out = NULL;
    if (log == NULL) return ls_fail(err, LS_NOMEM, "log: no memory");
    snprintf(log->path, sizeof log->path, "%s/logs", folder);
    if (mkdir(log->path, 0777) != 0 && errno != EEXIST) {
        st = ls_fail(err, LS_IO, "%s: %s", log->path, strerror(errno));
        goto out;
    }
    snprintf(log->path, sizeof log->path, "%s/logs/rank-%05d.log", folder, rank);
    LS_TRY(ls_append_open(&log->file, log->path, O_WRONLY, "lines of the log", err));
    log->file.say = complain;
    log->file.say_ctx = log;
    pthread_mutex_init(&log->lock, NULL);
    ls_log_set_hook(&(ls_log_hook){LS_LOG_INFO, on_line, log});
    *out = log;
    log = NULL;
out:
    ls_free(log);
    return st;
}

void ls_runlog_close(ls_runlog *log)
{
    if (log == NULL) return;
    ls_log_set_hook(NULL);
    ls_append_close(&log->file);
    pthread_mutex_destroy(&log->lock);
    ls_free(log);
}

void ls_runlog_attach(ls_runlog *log, ls_progress *progress)
{
    if (log == NULL) return;
    pthread_mutex_lock(&log->lock);
    log->progress = progress;
    pthread_mutex_unlock(&log->lock);
}

void ls_runlog_note(ls_runlog *log, const char *text)
{
    if (log == NULL || text == NULL) return;
    pthread_mutex_lock(&log->lock);
    append_lines(log, text, strlen(text));
    pthread_mutex_unlock(&log->lock);
}

void ls_runlog_flush(ls_runlog *log)
{
    if (log == NULL) return;
    pthread_mutex_lock(&log->lock);
    ls_append_flush(&log->file);
    pthread_mutex_unlock(&log->lock);
}

int64_t ls_runlog_missing(ls_runlog *log)
{
    int64_t n;

    if (log == NULL) return 0;
    pthread_mutex_lock(&log->lock);
    n = ls_append_missing(&log->file);
    pthread_mutex_unlock(&log->lock);
    return n;
}
