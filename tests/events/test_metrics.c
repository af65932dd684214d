/* test_metrics.c: lines of metrics.jsonl, and what a resume leaves of them. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/log.h"
#include "check.h"
#include "event_files.h"
#include "events/append.h"
#include "events/metrics.h"
#include "faults.h"

static char folder[FOLDER_MAX], path[FOLDER_MAX + 32];

static void check_file(const char *want)
{
    char *got = read_bytes(path, NULL);
    CHECK_EQ_STR(got, want);
    free(got);
}

/* The steps in the file are 1 to `last`. */
static void check_steps(int64_t last)
{
    char *got = read_bytes(path, NULL), *at = got;
    int64_t step = 0;
    for (; *at != '\0'; at = strchr(at, '\n') + 1) {
        long long there = 0;
        if (!CHECK(sscanf(at, "{\"step\": %lld,", &there) == 1 && there == step + 1)) break;
        step = there;
    }
    CHECK_EQ_INT(step, last);
    free(got);
}

static ls_metrics *open_metrics(int64_t last_step)
{
    ls_err err = {0};
    ls_metrics *m;
    REQUIRE_OK(ls_metrics_open(&m, path, last_step, NULL, &err), &err);
    return m;
}

static void write_step(ls_metrics *m, int64_t step)
{
    const ls_metric loss = {"loss", 0.5};
    ls_metrics_write(m, &(ls_metrics_line){.step = step, .time_s = 1, .values = &loss, .n_values = 1});
}

static void lines(void)
{
    const ls_metric values[] = {{"train/loss", 0.1}, {"a \"b\"\\\n", 1e300}, {"third", 1.0 / 3}, {"n", -4}};
    ls_metrics *m = open_metrics(LS_METRICS_NEW);
    ls_metrics_write(m, &(ls_metrics_line){781, 1, 12.5, values, 4});
    ls_metrics_write(m, &(ls_metrics_line){782, 1.25, 0.1 + 0.2, NULL, 0});
    CHECK_EQ_INT(ls_metrics_missing(m), 0);
    ls_metrics_close(m);
    check_file("{\"step\": 781, \"epoch\": 1, \"time_s\": 12.5, \"train/loss\": 0.1, "
               "\"a \\\"b\\\"\\\\\\u000a\": 1e+300, \"third\": 0.3333333333333333, \"n\": -4}\n"
               "{\"step\": 782, \"epoch\": 1.25, \"time_s\": 0.30000000000000004}\n");
}

static void not_finite(void)
{
    const ls_metric values[] = {{"loss", NAN}, {"acc", 1}, {"up", INFINITY}, {"down", -INFINITY}};
    ls_metrics *m = open_metrics(LS_METRICS_NEW);
    ls_metrics_write(m, &(ls_metrics_line){1, 0, 0, values, 4});
    ls_metrics_close(m);
    check_file("{\"step\": 1, \"epoch\": 0, \"time_s\": 0, \"loss\": null, \"acc\": 1, \"up\": null, "
               "\"down\": null, \"not_finite\": {\"loss\": \"nan\", \"up\": \"inf\", \"down\": \"-inf\"}}\n");
}

#define LINE(step) "{\"step\": " step ", \"epoch\": 0, \"time_s\": 1, \"loss\": 0.5}\n"

static void resumed(int64_t last_step, const char *want)
{
    const char *was = LINE("50") LINE("100") LINE("100") "something else\n" LINE("150") LINE("1000");
    write_bytes(path, was, strlen(was));
    ls_metrics *m = open_metrics(last_step);
    write_step(m, 120);
    ls_metrics_close(m);
    check_file(want);
}

static void cut_after_resume(void)
{
    resumed(LS_METRICS_NEW, LINE("120"));
    resumed(0, LINE("120"));
    resumed(49, LINE("120"));
    resumed(50, LINE("50") LINE("120"));
    resumed(100, LINE("50") LINE("100") LINE("100") "something else\n" LINE("120"));
    resumed(149, LINE("50") LINE("100") LINE("100") "something else\n" LINE("120"));
    resumed(999, LINE("50") LINE("100") LINE("100") "something else\n" LINE("150") LINE("120"));
    resumed(LS_METRICS_KEEP,
            LINE("50") LINE("100") LINE("100") "something else\n" LINE("150") LINE("1000") LINE("120"));
}

#define VALIDATION(step) "{\"step\": " step ", \"epoch\": 0, \"time_s\": 1, \"val/loss\": 0.5}\n"

/* A report of the step that the run goes on from is not there twice when it is made again; those of earlier
 * steps stay. */
static void cut_before_what_is_made_again(void)
{
    const char *was = VALIDATION("50") LINE("100") VALIDATION("100") LINE("120");
    ls_err err = {0};
    ls_metrics *m;
    write_bytes(path, was, strlen(was));
    REQUIRE_OK(ls_metrics_open(&m, path, 100, "val/", &err), &err);
    ls_metrics_close(m);
    check_file(VALIDATION("50") LINE("100"));
    REQUIRE_OK(ls_metrics_open(&m, path, 100, "val/", &err), &err);
    write_step(m, 120);
    ls_metrics_close(m);
    check_file(VALIDATION("50") LINE("100") LINE("120"));
    write_bytes(path, was, strlen(was));
    ls_metrics_close(open_metrics(100));
    check_file(VALIDATION("50") LINE("100") VALIDATION("100"));
}

/* A kill can leave part of the last line. */
static void torn_line(void)
{
    const char *was = LINE("50") LINE("60");
    size_t first = strlen(LINE("50"));
    for (size_t n = first; n < strlen(was); n++) {
        write_bytes(path, was, n);
        ls_metrics *m = open_metrics(LS_METRICS_KEEP);
        write_step(m, 70);
        ls_metrics_close(m);
        check_file(LINE("50") LINE("70"));
    }
}

static void full_disk(void)
{
    struct rlimit was, limit;
    ls_metrics *m = open_metrics(LS_METRICS_NEW);
    write_step(m, 1);
    getrlimit(RLIMIT_FSIZE, &was);
    limit = (struct rlimit){.rlim_cur = strlen(LINE("1")) + 5, .rlim_max = was.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    write_step(m, 2);
    write_step(m, 3);
    ls_metrics_flush(m); /* no half line, no line twice */
    CHECK_EQ_INT(ls_metrics_missing(m), 2);
    check_file(LINE("1"));
    /* Room for one more: the oldest goes first. */
    limit.rlim_cur = 2 * strlen(LINE("1")) + 5;
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    ls_metrics_flush(m);
    CHECK_EQ_INT(ls_metrics_missing(m), 1);
    check_file(LINE("1") LINE("2"));
    write_step(m, 4);
    setrlimit(RLIMIT_FSIZE, &was);
    CHECK_EQ_INT(ls_metrics_missing(m), 2);
    ls_metrics_close(m); /* the last chance */
    check_file(LINE("1") LINE("2") LINE("3") LINE("4"));
}

/* Without waiting for a flush: a later line takes those before it along. */
static void room_again(void)
{
    struct rlimit was, limit;
    ls_metrics *m = open_metrics(LS_METRICS_NEW);
    const time_t until = time(NULL) + 60;
    int64_t step = 2;
    getrlimit(RLIMIT_FSIZE, &was);
    write_step(m, 1);
    limit = (struct rlimit){.rlim_cur = strlen(LINE("1")) + 5, .rlim_max = was.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    write_step(m, step);
    setrlimit(RLIMIT_FSIZE, &was);
    while (ls_metrics_missing(m) > 0 && time(NULL) < until) {
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        write_step(m, ++step);
    }
    CHECK_EQ_INT(ls_metrics_missing(m), 0);
    ls_metrics_close(m);
    check_steps(step);
}

/* What does not fit into memory either is counted. */
static void too_much(void)
{
    struct rlimit was, limit;
    ls_metrics *m = open_metrics(LS_METRICS_NEW);
    char name[60000];
    const ls_metric loss = {name, 0.5};
    const ls_metrics_line line = {.step = 1, .time_s = 1, .values = &loss, .n_values = 1};
    const int64_t more = (int64_t)(LS_APPEND_KEEP / sizeof name) + 10;
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    getrlimit(RLIMIT_FSIZE, &was);
    limit = (struct rlimit){.rlim_cur = 5, .rlim_max = was.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    for (int64_t i = 0; i < more; i++) ls_metrics_write(m, &line);
    CHECK_EQ_INT(ls_metrics_missing(m), more);
    setrlimit(RLIMIT_FSIZE, &was);
    ls_metrics_flush(m);
    CHECK(ls_metrics_missing(m) >= 10 && ls_metrics_missing(m) < 20);
    ls_metrics_close(m);
}

static void no_writer(void)
{
    write_step(NULL, 1);
    ls_metrics_flush(NULL);
    ls_metrics_close(NULL);
    CHECK_EQ_INT(ls_metrics_missing(NULL), 0);
}

static void no_folder(void)
{
    ls_err err = {0};
    ls_metrics *m;
    CHECK_STATUS(ls_metrics_open(&m, "/nonexistent/metrics.jsonl", 5, NULL, &err), LS_IO, &err);
    CHECK_CONTAINS(err.text, "/nonexistent/metrics.jsonl: No such file");
    CHECK(m == NULL);
}

static ls_status open_and_close(void *arg, ls_err *err)
{
    ls_metrics *m;
    ls_status st = ls_metrics_open(&m, arg, LS_METRICS_KEEP, NULL, err);
    ls_metrics_close(m);
    return st;
}

static void out_of_memory(void)
{
    check_faults("open", open_and_close, path);
}

int main(void)
{
    signal(SIGXFSZ, SIG_IGN);
    ls_log_set_level(LS_LOG_ERROR);
    make_folder(folder);
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    CHECK_RUN(lines);
    CHECK_RUN(not_finite);
    CHECK_RUN(cut_after_resume);
    CHECK_RUN(cut_before_what_is_made_again);
    CHECK_RUN(torn_line);
    CHECK_RUN(full_disk);
    CHECK_RUN(room_again);
    CHECK_RUN(too_much);
    CHECK_RUN(no_writer);
    CHECK_RUN(no_folder);
    CHECK_RUN(out_of_memory);
    remove_folder(folder);
    return CHECK_DONE();
}
