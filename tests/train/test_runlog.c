/* test_runlog.c: what is logged while a run goes on is in its file with the time, and never on the bar. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/parallel.h"
#include "check.h"
#include "train/runlog.h"

enum { LINES = 100 };

static char folder[] = "/tmp/lockstep-runlog-XXXXXX";
static char text[1 << 16];

static const char *content(void)
{
    char path[256];
    FILE *f;
    size_t n;

    snprintf(path, sizeof path, "%s/logs/rank-00003.log", folder);
    f = fopen(path, "r");
    REQUIRE(f != NULL);
    n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    fclose(f);
    return text;
}

/* How many lines there are, each of which must begin with a time. */
static int stamped_lines(const char *all)
{
    int n = 0;

    for (const char *at = all; *at != '\0'; n++) {
        int end = 0, y, mo, d, h, mi, s, ms;
        if (!CHECK(sscanf(at, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ %n", &y, &mo, &d, &h, &mi, &s, &ms, &end) == 7 &&
                   end == 25))
            printf("  no time in front of: %.60s\n", at);
        at = strchr(at, '\n');
        if (!CHECK(at != NULL)) break;
        at++;
    }
    return n;
}

static void lines_are_kept_and_appended(void)
{
    ls_runlog *log = NULL;
    ls_err err = {0};

    ls_log_set_level(LS_LOG_ERROR);
    REQUIRE_OK(ls_runlog_open(&log, folder, 3, &err), &err);
    ls_log(LS_LOG_INFO, "first %d", 1);
    ls_log(LS_LOG_DEBUG, "not this");
    ls_runlog_note(log, "two lines\n\nof one text\n");
    ls_runlog_close(log);
    CHECK_EQ_INT(stamped_lines(content()), 3);
    CHECK_CONTAINS(text, "Z lockstep: first 1\n");
    CHECK_CONTAINS(text, "Z two lines\n");
    CHECK(strstr(text, "not this") == NULL);
    ls_log(LS_LOG_INFO, "after the end");

    REQUIRE_OK(ls_runlog_open(&log, folder, 3, &err), &err);
    ls_log(LS_LOG_WARN, "again");
    ls_runlog_close(log);
    CHECK_EQ_INT(stamped_lines(content()), 4);
    CHECK_CONTAINS(text, "lockstep: first 1");
    CHECK_CONTAINS(text, "lockstep: warning: again");
    CHECK(strstr(text, "after the end") == NULL);
}

static void talk(int thread, int n_threads, void *arg)
{
    (void)n_threads;
    (void)arg;
    for (int i = 0; i < LINES; i++) ls_log(LS_LOG_WARN, "thread %d, line %d", thread, i);
}

/* Threads log while a bar is drawn: every line on the screen stands by itself. */
static void no_line_lands_on_the_bar(void)
{
    char path[256];
    ls_progress *p = NULL;
    ls_runlog *log = NULL;
    int fd, lines = 0;
    ssize_t n;
    ls_err err = {0};

    snprintf(path, sizeof path, "%s/screen", folder);
    fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
    REQUIRE(fd >= 0);
    REQUIRE_OK(ls_progress_create(
                   &p, &(ls_progress_options){.mode = LS_PROGRESS_BAR, .fd = fd, .columns = 60}, &err),
               &err);
    REQUIRE_OK(ls_runlog_open(&log, folder, 3, &err), &err);
    ls_log_set_level(LS_LOG_WARN);
    ls_runlog_attach(log, p);
    ls_progress_update(p, &(ls_progress_state){.phase = "train", .step = 1, .n_steps = 10});
    ls_parallel_run(3, talk, NULL);
    ls_progress_finish(p);
    ls_runlog_attach(log, NULL);
    ls_runlog_close(log);
    ls_progress_destroy(p);

    n = pread(fd, text, sizeof text - 1, 0);
    REQUIRE(n > 0);
    text[n] = '\0';
    close(fd);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char *said = strstr(line, "lockstep: warning: thread ");
        if (said == NULL) continue;
        lines++;
        if (!CHECK(said - line >= 4 && strncmp(said - 4, "\r\033[K", 4) == 0))
            printf("  on the bar: %s\n", line);
    }
    CHECK_EQ_INT(lines, 3 * LINES);
    CHECK_EQ_INT(stamped_lines(content()), 4 + 3 * LINES);
}

static void a_folder_that_is_not_there(void)
{
    ls_runlog *log = NULL;
    ls_err err = {0};

    CHECK_EQ_INT(ls_runlog_open(&log, "/nowhere/at/all", 0, &err), LS_IO);
    CHECK_CONTAINS(err.text, "/nowhere/at/all/logs");
    CHECK(log == NULL);
}

int main(void)
{
    char command[128];
    int rc;

    if (mkdtemp(folder) == NULL) return 1;
    CHECK_RUN(lines_are_kept_and_appended);
    CHECK_RUN(no_line_lands_on_the_bar);
    CHECK_RUN(a_folder_that_is_not_there);
    rc = CHECK_DONE();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) rc = 1;
    return rc;
}
