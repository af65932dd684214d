/* Log lines: levels, prefixes, and whole lines under concurrent writers. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/parallel.h"
#include "check.h"

#define LINES 200

/* Runs `fn` with standard error sent to a temporary file and returns its size; the text goes to `out`. */
static size_t capture(void (*fn)(void), char *out, size_t size)
{
    char path[] = "/tmp/lockstep-log-XXXXXX";
    int file = mkstemp(path), saved = dup(STDERR_FILENO);
    REQUIRE(file >= 0 && saved >= 0);
    unlink(path);
    /* Writers share the descriptor without a lock of their own, as ranks share a terminal. */
    fcntl(file, F_SETFL, O_APPEND);
    fflush(stderr);
    dup2(file, STDERR_FILENO);
    fn();
    dup2(saved, STDERR_FILENO);
    close(saved);
    ssize_t n = pread(file, out, size - 1, 0);
    close(file);
    REQUIRE(n >= 0);
    out[n] = '\0';
    return (size_t)n;
}

static void say_all_levels(void)
{
    ls_log(LS_LOG_ERROR, "e %d", 1);
    ls_log(LS_LOG_WARN, "w %s", "two");
    ls_log(LS_LOG_INFO, "i");
    ls_log(LS_LOG_DEBUG, "d");
}

static void levels_and_prefixes(void)
{
    char text[4096];
    CHECK_EQ_INT(ls_log_get_level(), LS_LOG_INFO); /* from LOCKSTEP_LOG, set in main */
    ls_log_set_level(LS_LOG_DEBUG);
    capture(say_all_levels, text, sizeof text);
    CHECK_EQ_STR(text, "lockstep: error: e 1\nlockstep: warning: w two\nlockstep: i\nlockstep: d\n");
    ls_log_set_level(LS_LOG_ERROR);
    capture(say_all_levels, text, sizeof text);
    CHECK_EQ_STR(text, "lockstep: error: e 1\n");
}

static void names(void)
{
    ls_log_set_level(LS_LOG_ERROR);
    CHECK(!ls_log_set_level_by_name("loud"));
    CHECK(!ls_log_set_level_by_name(NULL));
    CHECK_EQ_INT(ls_log_get_level(), LS_LOG_ERROR);
    CHECK(ls_log_set_level_by_name("debug"));
    CHECK_EQ_INT(ls_log_get_level(), LS_LOG_DEBUG);
}

static void say_long(void)
{
    ls_log(LS_LOG_INFO, "%*d", 10000, 1);
}

static void long_lines_are_cut(void)
{
    static char text[20000];
    ls_log_set_level(LS_LOG_INFO);
    size_t n = capture(say_long, text, sizeof text);
    CHECK_EQ_INT(n, 4096);
    CHECK_EQ_STR(text + n - 4, "...\n");
}

static void say_odd(void)
{
    ls_log(LS_LOG_WARN, "host %s is gone", "a\x1b]0;owned\x07\xc2\x9b\xc3\xbc");
}

/* What a peer or a file says may be part of a message: it is shown, and moves no cursor. */
static void control_characters_are_shown(void)
{
    char text[4096];
    capture(say_odd, text, sizeof text);
    CHECK_EQ_STR(text, "lockstep: warning: host a\\x1b]0;owned\\x07\\xc2\\x9b\xc3\xbc is gone\n");
}

static void talk(int thread, int n_threads, void *arg)
{
    (void)n_threads;
    (void)arg;
    for (int i = 0; i < LINES; i++) ls_log(LS_LOG_INFO, "thread %d says line %d and no more", thread, i);
}

static void talk_in_parallel(void)
{
    ls_parallel_run(4, talk, NULL);
}

static void lines_never_mix(void)
{
    static char text[4 * LINES * 64];
    capture(talk_in_parallel, text, sizeof text);
    int seen[4] = {0}, whole = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        int thread, number, end = 0;
        if (sscanf(line, "lockstep: thread %d says line %d and no more%n", &thread, &number, &end) == 2 &&
            end && line[end] == '\0' && thread >= 0 && thread < 4 && number == seen[thread]) {
            seen[thread]++;
            whole++;
        }
    }
    CHECK_EQ_INT(whole, 4 * LINES);
}

typedef struct taken {
    int n, shown;
    char text[4096];
} taken;

static void take(void *arg, ls_log_level level, bool shown, const char *line, size_t n)
{
    taken *t = arg;
    size_t at = strlen(t->text);
    (void)level;
    t->n++;
    t->shown += shown;
    if (at + n < sizeof t->text) memcpy(t->text + at, line, n);
}

/* A hook gets what it asks for and what would be shown; standard error gets nothing meanwhile. */
static void a_hook_takes_over(void)
{
    static taken t;
    char text[4096];
    ls_log_set_level(LS_LOG_WARN);
    ls_log_set_hook(&(ls_log_hook){LS_LOG_INFO, take, &t});
    capture(say_all_levels, text, sizeof text);
    CHECK_EQ_STR(text, "");
    CHECK_EQ_STR(t.text, "lockstep: error: e 1\nlockstep: warning: w two\nlockstep: i\n");
    CHECK_EQ_INT(t.shown, 2);
    ls_log_set_level(LS_LOG_DEBUG);
    capture(say_all_levels, text, sizeof text);
    CHECK_EQ_INT(t.n, 3 + 4);
    ls_log_set_hook(NULL);
    ls_log_set_level(LS_LOG_ERROR);
    capture(say_all_levels, text, sizeof text);
    CHECK_EQ_STR(text, "lockstep: error: e 1\n");
    CHECK_EQ_INT(t.n, 3 + 4);
}

/* Lines of several threads reach a hook one at a time. */
static void a_hook_is_called_one_at_a_time(void)
{
    static taken t;
    ls_log_set_level(LS_LOG_ERROR);
    ls_log_set_hook(&(ls_log_hook){LS_LOG_INFO, take, &t});
    talk_in_parallel();
    ls_log_set_hook(NULL);
    CHECK_EQ_INT(t.n, 4 * LINES);
    CHECK_EQ_INT(t.shown, 0);
}

int main(void)
{
    setenv("LOCKSTEP_LOG", "info", 1);
    CHECK_RUN(levels_and_prefixes);
    CHECK_RUN(names);
    CHECK_RUN(long_lines_are_cut);
    CHECK_RUN(control_characters_are_shown);
    CHECK_RUN(lines_never_mix);
    CHECK_RUN(a_hook_takes_over);
    CHECK_RUN(a_hook_is_called_one_at_a_time);
    return CHECK_DONE();
}
