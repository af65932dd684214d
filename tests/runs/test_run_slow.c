/* test_run.c: a run directory has one owner: taken, refused, given back, killed, taken over. */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "check.h"
#include "runs/last_words.h"
#include "runs_test.h"

#define PATIENCE_S 30 /* for what comes within a second or two */

/* -- taking and giving back -------------------------------------------------------------------------------
 */

static void names_are_in_utc(void)
{
    char path[LS_PATH_MAX];
    struct tm tm = {0};
    time_t then;

    REQUIRE(setenv("TZ", "Asia/Tokyo", 1) == 0);
    tzset();
    ls_run_new_name(path, "mnist");
    REQUIRE(strncmp(path, "runs/mnist-", 11) == 0 && strlen(path) == 11 + 20);
    REQUIRE(strptime(path + 11, "%Y%m%d-%H%M%S", &tm) != NULL);
    then = timegm(&tm);
    CHECK(llabs((long long)(time(NULL) - then)) < 600);
    CHECK(!exists("runs"));
}

static void what_never_began_leaves_nothing(void)
{
    ls_run *r = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_run_create(&r, "mnist", "a/b/c", &err), &err);
    CHECK(exists("a/b/c/owner.json"));
    ls_run_close(r);
    CHECK(!exists("a"));
    REQUIRE(mkdir("there", 0777) == 0);
    REQUIRE_OK(ls_run_create(&r, "mnist", "there/", &err), &err);
    ls_run_close(r);
    CHECK(exists("there") && rmdir("there") == 0);
    REQUIRE_OK(ls_run_create(&r, "mnist", NULL, &err), &err);
    CHECK(strncmp(ls_run_paths_of(r)->path, "runs/mnist-", 11) == 0);
    ls_run_close(r);
    CHECK(!exists("runs"));
}

static void a_run_that_began_stays(void)
{
    ls_run *r = begin_run("stays");
    ls_err err = {0};

    CHECK_EQ_INT(ls_run_epoch(r), 1);
    CHECK(!ls_run_has_checkpoint(r));
    CHECK(exists("stays/checkpoints"));
    REQUIRE_OK(write_state(r, "completed", &err), &err);
    ls_run_close(r);
    CHECK_CONTAINS(file_text("stays/owner.json"), "\"ended\": \"20");
    CHECK_CONTAINS(file_text("stays/summary.json"), "\"name\": \"mnist\"");

    /* Taken again, and not begun: everything is as it was. */
    char before[4096];
    struct stat one, two;
    snprintf(before, sizeof before, "%s", file_text("stays/owner.json"));
    REQUIRE(stat("stays/owner.json", &one) == 0);
    REQUIRE_OK(ls_run_open(&r, "stays", 0, &err), &err);
    CHECK_EQ_INT(ls_run_epoch(r), 2);
    ls_run_close(r);
    CHECK_EQ_STR(file_text("stays/owner.json"), before);
    REQUIRE(stat("stays/owner.json", &two) == 0);
    CHECK(one.st_mtim.tv_sec == two.st_mtim.tv_sec && one.st_mtim.tv_nsec == two.st_mtim.tv_nsec);

    REQUIRE(mkdir("stays/checkpoints/step-00000007", 0777) == 0);
    REQUIRE_OK(ls_run_open(&r, "stays", 0, &err), &err);
    CHECK(ls_run_has_checkpoint(r));
    REQUIRE_OK(ls_run_begin(r, &err), &err);
    ls_run_close(r);
    CHECK_CONTAINS(file_text("stays/owner.json"), "\"epoch\": 2");
}

/* -- refusals ---------------------------------------------------------------------------------------------
 */

static void refused(const char *path, ls_status want, const char *part)
{
    ls_run *r = NULL;
    ls_err err = {0};

    CHECK_STATUS(ls_run_create(&r, "mnist", path, &err), want, &err);
    CHECK(r == NULL);
    CHECK_CONTAINS(err.text, part);
    ls_run_close(r);
}

static void used_and_unusable_directories_are_refused(void)
{
    static const char *const left[] = {"config.yaml", "summary.json", "metrics.jsonl", "notes.txt"};
    char longer[2 * LS_PATH_MAX], path[512];
    ls_run *r;
    ls_err err = {0};

    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
        snprintf(path, sizeof path, "used-%zu", i);
        REQUIRE(mkdir(path, 0777) == 0);
        snprintf(path, sizeof path, "used-%zu/%s", i, left[i]);
        write_file(path, "mine");
        snprintf(path, sizeof path, "used-%zu", i);
        refused(path, LS_INVALID, left[i]);
        refused(path, LS_INVALID, i < 2 ? "--resume=used-" : "is not empty");
        snprintf(path, sizeof path, "used-%zu/owner.json", i);
        CHECK(!exists(path));
    }
    CHECK_EQ_STR(file_text("used-3/notes.txt"), "mine");
    refused("", LS_INVALID, "empty name");
    write_file("file", "");
    refused("file", LS_INVALID, "a file is in the way");
    refused("file/below", LS_INVALID, "a file is in the way");
    refused("/proc/here", LS_INVALID, "cannot be made");
    memset(longer, 'a', sizeof longer);
    longer[LS_PATH_MAX + 10] = '\0';
    refused(longer, LS_INVALID, "longer than");
    longer[400] = '\0';
    refused(longer, LS_INVALID, "too long");
    /* A job that is to begin the run has put its files there. */
    REQUIRE(mkdir("job", 0777) == 0);
    write_file("job/job.sh", "#!/bin/sh");
    write_file("job/job-2.log", "");
    REQUIRE_OK(ls_run_create(&r, "mnist", "job", &err), &err);
    ls_run_close(r);
    CHECK(exists("job/job.sh") && !exists("job/owner.json"));

    CHECK_STATUS(ls_run_open(&r, "nowhere", 0, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "no run directory");
    err = (ls_err){0};
    CHECK_STATUS(ls_run_open(&r, "used-3", 0, &err), LS_INVALID, &err);
    CHECK(!exists("used-3/owner.json"));
    /* A link instead of the file is not followed. */
    REQUIRE(mkdir("linked", 0777) == 0 && symlink("../target", "linked/owner.json") == 0);
    refused("linked", LS_IO, "owner.json");
    CHECK(!exists("target"));
}

/* It ended between its lock and its settings: nobody can go on with it, and nothing is lost by another. */
static void a_run_without_settings_may_be_taken(void)
{
    ls_run *r = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_run_create(&r, "mnist", "unborn", &err), &err);
    REQUIRE_OK(ls_run_begin(r, &err), &err);
    ls_run_close(r);
    CHECK_CONTAINS(file_text("unborn/owner.json"), "\"ended\": \"20");
    REQUIRE(mkdir("unborn/logs", 0777) == 0);
    REQUIRE_OK(ls_run_create(&r, "mnist", "unborn", &err), &err);
    CHECK_EQ_INT(ls_run_epoch(r), 2);
    ls_run_close(r);
    write_file("unborn/checkpoints/step-00000001", "");
    refused("unborn", LS_INVALID, "checkpoints");
    REQUIRE(mkdir("logged", 0777) == 0 && mkdir("logged/logs", 0777) == 0);
    refused("logged", LS_INVALID, "logs");
}

static bool try_to_take(void *arg)
{
    ls_run *r = NULL;
    ls_err err = {0};
    bool ok = ls_run_create(&r, "mnist", arg, &err) == LS_INVALID && strstr(err.text, "belongs to") != NULL &&
              strstr(err.text, "on host") != NULL;

    err = (ls_err){0};
    return ok && ls_run_open(&r, arg, 0, &err) == LS_INVALID && strstr(err.text, "belongs to") != NULL;
}

static void a_run_with_a_living_owner_is_refused(void)
{
    ls_run *r = begin_run("lives");
    ls_err err = {0};
    child c = start_child(try_to_take, "lives");

    CHECK(child_said_yes(&c));
    end_child(&c, 0);
    /* What the child looked at is as it was. */
    CHECK_OK(ls_run_check(r, &err), &err);
    CHECK_OK(write_state(r, "completed", &err), &err);
    ls_run_close(r);
}

/* -- two at once ------------------------------------------------------------------------------------------
 */

enum { RIVALS = 6, ROUNDS = 10 };

typedef struct race {
    const char *path;
    int start; /* all begin when its other end is closed */
} race;

static bool run_race(void *arg)
{
    const race *x = arg;
    ls_run *r = NULL;
    ls_err err = {0};
    char byte;

    (void)!read(x->start, &byte, 1);
    if (ls_run_create(&r, "mnist", x->path, &err) != LS_OK) return false;
    return ls_run_begin(r, &err) == LS_OK && write_state(r, "running", &err) == LS_OK;
}

static void of_several_at_once_one_wins(void)
{
    for (int k = 0; k < ROUNDS; k++) {
        char path[64];
        child c[RIVALS];
        race x = {path, -1};
        int won = 0, start[2];
        snprintf(path, sizeof path, "race/%d/run", k);
        REQUIRE(pipe(start) == 0);
        x.start = start[0];
        for (int i = 0; i < RIVALS; i++) {
            c[i] = start_child(run_race, &x);
        }
        close(start[0]);
        REQUIRE(write(start[1], "123456", RIVALS) == RIVALS);
        for (int i = 0; i < RIVALS; i++) won += child_said_yes(&c[i]);
        CHECK_EQ_INT(won, 1);
        close(start[1]);
        for (int i = 0; i < RIVALS; i++) end_child(&c[i], SIGKILL);
    }
}

/* -- ends without a word ----------------------------------------------------------------------------------
 */

static bool be_owner(void *arg)
{
    begin_run(arg);
    return true;
}

static void a_killed_run_is_known_to_be_killed(void)
{
    child c = start_child(be_owner, "killed");
    ls_run_info i;
    ls_run *r;
    ls_err err = {0};

    REQUIRE(child_said_yes(&c));
    REQUIRE_OK(ls_run_read(&i, "killed", &err), &err);
    CHECK(i.alive && i.state == LS_RUN_RUNNING && i.written == LS_RUN_RUNNING);
    CHECK(i.has_owner && i.owner.pid == c.pid && i.owner.epoch == 1 && i.ranks == 2 && i.steps == 7);
    CHECK_EQ_STR(i.name, "mnist");
    CHECK_NEAR(ls_run_metric(&i, "last", "loss"), 0.5, 1e-9);
    CHECK(isnan(ls_run_metric(&i, "last", "other")) && isnan(ls_run_metric(&i, "test", "loss")));
    ls_run_info_release(&i);
    end_child(&c, SIGKILL);
    REQUIRE_OK(ls_run_read(&i, "killed", &err), &err);
    CHECK(!i.alive && i.state == LS_RUN_KILLED && i.written == LS_RUN_RUNNING);
    CHECK(i.heartbeat >= i.owner.start - 1 && i.heartbeat < (double)time(NULL) + 1);
    ls_run_info_release(&i);
    REQUIRE_OK(ls_run_open(&r, "killed", 0, &err), &err);
    CHECK_EQ_INT(ls_run_epoch(r), 2);
    ls_run_close(r);
}

static void the_heart_beats(void)
{
    ls_run *r = begin_run("beats");
    const double until = ls_clock_seconds() + PATIENCE_S;
    struct stat first, now;

    ls_run_leave(r);
    REQUIRE(stat("beats/owner.json", &first) == 0);
    ls_run_enter(r); /* at once, and then every two seconds */
    for (int beats = 0; beats < 2;) {
        REQUIRE(stat("beats/owner.json", &now) == 0 && ls_clock_seconds() < until);
        if (now.st_mtim.tv_sec != first.st_mtim.tv_sec || now.st_mtim.tv_nsec != first.st_mtim.tv_nsec)
            beats++;
        first = now;
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    ls_run_close(r);
}

static bool be_launcher(void *arg)
{
    int *ends = arg;
    ls_run *r = NULL;
    char byte;

    if (ls_run_create(&r, "mnist", "forked", &(ls_err){0}) != LS_OK) return false;
    if (fork() == 0) {
        /* rank 0, which outlives its launcher here */
        bool ok = ls_run_begin(r, &(ls_err){0}) == LS_OK;
        close(ends[0]);
        (void)!write(ends[1], ok ? "y" : "n", 1);
        (void)!read(ends[2], &byte, 1);
        _exit(0);
    }
    return true;
}

static void the_lock_goes_with_the_last_process_of_the_owner(void)
{
    int said[2], told[2], ends[3];
    char byte = 'n';
    ls_run *r;
    ls_err err = {0};

    REQUIRE(pipe(said) == 0 && pipe(told) == 0);
    ends[0] = told[1], ends[1] = said[1], ends[2] = told[0];
    child c = start_child(be_launcher, ends);
    REQUIRE(child_said_yes(&c));
    close(said[1]);
    close(told[0]);
    REQUIRE(read(said[0], &byte, 1) == 1 && byte == 'y');
    end_child(&c, SIGKILL);
    write_file("forked/config.yaml", "");
    CHECK_STATUS(ls_run_open(&r, "forked", 0, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "belongs to");
    close(told[1]);
    REQUIRE(read(said[0], &byte, 1) == 0); /* rank 0 is gone */
    err = (ls_err){0};
    REQUIRE_OK(ls_run_open(&r, "forked", 0, &err), &err);
    ls_run_close(r);
    close(said[0]);
}

/* Until the writer notices, which it does within a second of its last look. */
static bool notices(ls_run *r, ls_err *err)
{
    const double until = ls_clock_seconds() + PATIENCE_S;

    while (ls_clock_seconds() < until) {
        if (ls_run_check(r, err) != LS_OK) return true;
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return false;
}

static void a_late_writer_writes_nothing(void)
{
    ls_run *late = begin_run("late"), *now = NULL;
    char owner[4096];
    ls_err err = {0};

    /* By force: the file with the lock is removed. */
    REQUIRE(unlink("late/owner.json") == 0);
    CHECK_OK(ls_run_check(late, &err), &err); /* a directory that is being removed is no other owner */
    REQUIRE_OK(ls_run_open(&now, "late", 0, &err), &err);
    CHECK_EQ_INT(ls_run_epoch(now), 2); /* by the summary */
    REQUIRE_OK(ls_run_begin(now, &err), &err);
    REQUIRE_OK(write_state(now, "paused", &err), &err);
    CHECK(notices(late, &err));
    CHECK_CONTAINS(err.text, "was taken over");
    err = (ls_err){0};
    CHECK_STATUS(write_state(late, "completed", &err), LS_IO, &err);
    CHECK_CONTAINS(file_text("late/summary.json"), "\"state\": \"paused\"");
    snprintf(owner, sizeof owner, "%s", file_text("late/owner.json"));
    ls_run_settle(late, "failed", "too late");
    ls_run_close(late);
    CHECK_EQ_STR(file_text("late/owner.json"), owner);
    CHECK_CONTAINS(file_text("late/summary.json"), "\"state\": \"paused\"");
    ls_run_close(now);
}

/* Takes the run from its living owner, by force. */
static ls_run *take_over(const char *path)
{
    char file[300];
    ls_run *now = NULL;
    ls_err err = {0};

    snprintf(file, sizeof file, "%s/owner.json", path);
    if (!CHECK(unlink(file) == 0) || !CHECK_OK(ls_run_open(&now, path, 0, &err), &err) ||
        !CHECK_OK(ls_run_begin(now, &err), &err))
        return NULL;
    return now;
}

/* The look of a moment ago does not count when something is to be replaced. */
static void what_is_written_last_is_looked_at_last(void)
{
    static ls_last_words words;
    ls_run *late = begin_run("final"), *now;
    json_t *summary = json_pack("{s:s}", "state", "running");
    ls_err err = {0};

    ls_last_words_prepare(&words, late, summary);
    json_decref(summary);
    ls_last_words_write(&words);
    CHECK_CONTAINS(file_text("final/summary.json"), "\"state\": \"killed\"");
    REQUIRE_OK(write_state(late, "running", &err), &err);
    now = take_over("final");
    REQUIRE(now != NULL);
    REQUIRE_OK(write_state(now, "paused", &err), &err);
    ls_last_words_write(&words);
    CHECK_CONTAINS(file_text("final/summary.json"), "\"state\": \"paused\"");
    CHECK(!exists("final/.summary-killed.json"));
    CHECK_STATUS(write_state(late, "completed", &err), LS_IO, &err);
    CHECK_CONTAINS(err.text, "was taken over by process");
    CHECK_CONTAINS(file_text("final/summary.json"), "\"state\": \"paused\"");
    ls_run_close(late);
    CHECK_CONTAINS(file_text("final/owner.json"), "\"epoch\": 2");
    ls_run_close(now);
}

/* What it made belongs to the one that came after it. */
static void who_never_began_takes_nothing_back_from_another(void)
{
    ls_run *late = NULL, *now;
    char owner[4096];
    ls_err err = {0};

    REQUIRE_OK(ls_run_create(&late, "mnist", "never", &err), &err);
    write_file("never/summary.json", "{\"state\": \"running\", \"owner_epoch\": 1}\n");
    now = take_over("never");
    REQUIRE(now != NULL);
    snprintf(owner, sizeof owner, "%s", file_text("never/owner.json"));
    ls_run_close(late);
    CHECK_EQ_STR(file_text("never/owner.json"), owner);
    ls_run_close(now);
}

/* -- directories that go ----------------------------------------------------------------------------------
 */

static void a_directory_that_goes_is_noticed(void)
{
    ls_run *moved = begin_run("place"), *removed = begin_run("place two");
    ls_err err = {0};

    CHECK(!ls_run_is_gone(moved) && !ls_run_is_gone(removed));
    REQUIRE(rename("place", "other place") == 0);
    CHECK_STATUS(write_state(moved, "paused", &err), LS_IO, &err);
    CHECK_CONTAINS(err.text, "was moved to /");
    CHECK_CONTAINS(err.text, "/other place'"); /* as a shell takes it */
    CHECK(ls_run_is_gone(moved));
    /* Another directory in its place is another's. */
    REQUIRE(rename("place two", "away") == 0 && system("rm -r away") == 0 && mkdir("place two", 0777) == 0);
    err = (ls_err){0};
    CHECK_STATUS(ls_run_check(removed, &err), LS_IO, &err);
    CHECK_CONTAINS(err.text, "place two was removed");
    ls_run_settle(removed, "failed", "gone");
    ls_run_close(removed);
    ls_run_close(moved);
    CHECK(!exists("place") && !exists("place two/owner.json") && !exists("place two/summary.json"));
}

/* -- restarts and last words ------------------------------------------------------------------------------
 */

static void a_restart_is_the_same_owner(void)
{
    ls_run *r = NULL;
    ls_run_info i;
    ls_err err = {0};

    REQUIRE_OK(ls_run_create(&r, "mnist", "again", &err), &err);
    fflush(NULL);
    const pid_t rank = fork();
    if (rank == 0) _exit(ls_run_begin(r, &err) == LS_OK && write_state(r, "running", &err) == LS_OK ? 0 : 1);
    int status = 0;
    waitpid(rank, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    REQUIRE_OK(ls_run_renew(r, &err), &err);
    CHECK_EQ_INT(ls_run_epoch(r), 2);
    CHECK(!ls_run_has_checkpoint(r));
    REQUIRE_OK(ls_run_read(&i, "again", &err), &err);
    CHECK(i.alive && i.state == LS_RUN_RUNNING);
    ls_run_info_release(&i);
    /* The second attempt was lost before it began; the first one has. */
    ls_run_settle(r, "failed", "rank 0 was killed");
    CHECK_CONTAINS(file_text("again/summary.json"), "\"state\": \"failed\"");
    CHECK_CONTAINS(file_text("again/summary.json"), "\"error\": \"rank 0 was killed\"");
    ls_run_settle(r, "killed", NULL);
    CHECK_CONTAINS(file_text("again/summary.json"), "\"state\": \"failed\"");
    ls_run_close(r);
    CHECK(exists("again/owner.json"));
    REQUIRE_OK(ls_run_read(&i, "again", &err), &err);
    CHECK(!i.alive && i.state == LS_RUN_FAILED);
    ls_run_info_release(&i);
}

static void a_run_lost_before_its_first_summary_gets_one(void)
{
    ls_run *r = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_run_create(&r, "mnist", "early", &err), &err);
    ls_run_settle(r, "failed", "never began");
    CHECK(!exists("early/summary.json"));
    REQUIRE_OK(ls_run_begin(r, &err), &err);
    ls_run_settle(r, "failed", "no room");
    CHECK_CONTAINS(file_text("early/summary.json"), "\"error\": \"no room\"");
    ls_run_close(r);
}

static void a_state_that_cannot_be_written_is_known(void)
{
    ls_run *r = begin_run("full");
    ls_run_info i;
    ls_err err = {0};

    /* Nothing can be renamed to that. */
    REQUIRE(unlink("full/summary.json") == 0 && mkdir("full/summary.json", 0777) == 0);
    ls_log_set_level(LS_LOG_ERROR);
    ls_run_settle(r, "failed", "no room");
    ls_log_set_level(LS_LOG_WARN);
    ls_run_close(r);
    REQUIRE_OK(ls_run_read(&i, "full", &err), &err);
    CHECK(i.state == LS_RUN_FAILED);
    ls_run_info_release(&i);
    REQUIRE_OK(ls_run_open(&r, "full", 0, &err), &err);
    REQUIRE(rmdir("full/summary.json") == 0);
    REQUIRE_OK(ls_run_begin(r, &err), &err);
    REQUIRE_OK(write_state(r, "completed", &err), &err);
    ls_run_close(r);
    REQUIRE_OK(ls_run_read(&i, "full", &err), &err);
    CHECK(i.state == LS_RUN_COMPLETED);
    ls_run_info_release(&i);
}

/* -- other machines ---------------------------------------------------------------------------------------
 */

static bool beat_on(void *arg)
{
    fflush(NULL);
    if (fork() == 0) {
        const pid_t parent = getppid();
        while (getppid() == parent) {
            utimensat(AT_FDCWD, arg, NULL, 0);
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        }
        _exit(0);
    }
    return true;
}

static void another_machine_is_watched(void)
{
    ls_run *r;
    ls_err err = {0};

    ls_log_set_level(LS_LOG_ERROR);
    REQUIRE(mkdir("far", 0777) == 0);
    write_file("far/summary.json", "{\"state\": \"running\"}");
    write_owner("far", "2026-01-01T00:00:00Z", NULL, 5, 1);
    REQUIRE_OK(ls_run_open(&r, "far", 0.2, &err), &err); /* it does not beat */
    CHECK_EQ_INT(ls_run_epoch(r), 6);
    ls_run_close(r);
    write_owner("far", "2026-01-01T00:00:00Z", NULL, 5, 1);
    child c = start_child(beat_on, "far/owner.json");
    REQUIRE(child_said_yes(&c));
    CHECK_STATUS(ls_run_open(&r, "far", PATIENCE_S, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "process 1234 on host elsewhere since 2026-01-01T00:00:00.000Z");
    end_child(&c, 0);
    /* One that was given back need not be watched. */
    write_owner("far", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", 5, 1);
    const double before = ls_clock_seconds();
    err = (ls_err){0};
    REQUIRE_OK(ls_run_open(&r, "far", 1000, &err), &err);
    CHECK(ls_clock_seconds() - before < 500);
    ls_run_close(r);
    ls_log_set_level(LS_LOG_WARN);
}

int main(void)
{
    int rc;

    if (!enter_folder()) return 1;
    CHECK_RUN(names_are_in_utc);
    CHECK_RUN(what_never_began_leaves_nothing);
    CHECK_RUN(a_run_that_began_stays);
    CHECK_RUN(used_and_unusable_directories_are_refused);
    CHECK_RUN(a_run_without_settings_may_be_taken);
    CHECK_RUN(a_run_with_a_living_owner_is_refused);
    CHECK_RUN(a_directory_that_goes_is_noticed);
    CHECK_RUN(of_several_at_once_one_wins);
    CHECK_RUN(a_killed_run_is_known_to_be_killed);
    CHECK_RUN(the_heart_beats);
    CHECK_RUN(the_lock_goes_with_the_last_process_of_the_owner);
    CHECK_RUN(a_late_writer_writes_nothing);
    CHECK_RUN(what_is_written_last_is_looked_at_last);
    CHECK_RUN(who_never_began_takes_nothing_back_from_another);
    CHECK_RUN(a_restart_is_the_same_owner);
    CHECK_RUN(a_run_lost_before_its_first_summary_gets_one);
    CHECK_RUN(a_state_that_cannot_be_written_is_known);
    CHECK_RUN(another_machine_is_watched);
    rc = CHECK_DONE();
    return leave_folder() ? rc : 1;
}
