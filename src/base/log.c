/* log.c: one line per message, one write per line. */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"

#define LINE_MAX_BYTES 4096
#define LEVEL_UNSET    (-1)

static const char *const level_names[] = {"error", "warn", "info", "debug"};

static atomic_int log_level = LEVEL_UNSET;

/* The lock makes sure that nobody is inside a hook that has been taken away. */
static pthread_mutex_t hook_lock = PTHREAD_MUTEX_INITIALIZER;
static ls_log_hook log_hook;
static atomic_int hook_keep = LEVEL_UNSET; /* log_hook.keep, or LEVEL_UNSET without a hook */

static int level_by_name(const char *name)
{
    for (int i = 0; name && i < (int)(sizeof level_names / sizeof *level_names); i++) {
        if (strcmp(name, level_names[i]) == 0) return i;
    }
    return LEVEL_UNSET;
}

void ls_log_set_level(ls_log_level level)
{
    atomic_store_explicit(&log_level, (int)level, memory_order_relaxed);
}

int ls_log_set_level_by_name(const char *name)
{
    int level = level_by_name(name);
    if (level == LEVEL_UNSET) return 0;
    ls_log_set_level((ls_log_level)level);
    return 1;
}

ls_log_level ls_log_get_level(void)
{
    int level = atomic_load_explicit(&log_level, memory_order_relaxed);
    if (level == LEVEL_UNSET) {
        int from_env = level_by_name(getenv("LOCKSTEP_LOG"));
        if (from_env == LEVEL_UNSET) from_env = LS_LOG_WARN;
        /* Another thread may have set a level in the meantime; that one stays. */
        if (atomic_compare_exchange_strong(&log_level, &level, from_env)) level = from_env;
    }
    return (ls_log_level)level;
}

void ls_log_set_hook(const ls_log_hook *hook)
{
    pthread_mutex_lock(&hook_lock);
    log_hook = hook ? *hook : (ls_log_hook){0};
    atomic_store_explicit(&hook_keep, hook ? (int)hook->keep : LEVEL_UNSET, memory_order_relaxed);
    pthread_mutex_unlock(&hook_lock);
}

static void emit(ls_log_level level, bool shown, const char *line, size_t n)
{
    pthread_mutex_lock(&hook_lock);
    if (log_hook.line) {
        log_hook.line(log_hook.arg, level, shown, line, n);
    } else if (shown) {
        /* Nothing can be done about a log line that cannot be written. */
        ssize_t ignored = write(STDERR_FILENO, line, n);
        (void)ignored;
    }
    pthread_mutex_unlock(&hook_lock);
}

void ls_log(ls_log_level level, const char *fmt, ...)
{
    bool shown = level <= ls_log_get_level();
    if (!shown && (int)level > atomic_load_explicit(&hook_keep, memory_order_relaxed)) return;

    const char *word = level == LS_LOG_ERROR ? "error: " : level == LS_LOG_WARN ? "warning: " : "";
    char line[LINE_MAX_BYTES];
    size_t room = sizeof line - 1; /* for the newline */
    size_t n = (size_t)snprintf(line, room, "lockstep: %s", word);

    va_list ap;
    va_start(ap, fmt);
    int text = vsnprintf(line + n, room - n, fmt, ap);
    va_end(ap);
    if (text > 0) n += (size_t)text;
    if (n >= room) { /* vsnprintf cut the text: show it */
        n = room;
        memcpy(line + n - 3, "...", 3);
    }
    char clean[LINE_MAX_BYTES];
    n = ls_printable(line, n, clean, room + 1);
    clean[n++] = '\n';
    emit(level, shown, clean, n);
}
