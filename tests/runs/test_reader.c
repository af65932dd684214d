/* test_reader.c: what a run is, by its files: states, times, checkpoints, the newest; and files that are
 * none. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "faults.h"
#include "runs/owner_internal.h"
#include "runs_test.h"

static void make_run(const char *path, const char *summary)
{
    char file[512];

    REQUIRE(mkdir(path, 0777) == 0);
    snprintf(file, sizeof file, "%s/config.yaml", path);
    write_file(file, "name: mnist\n");
    snprintf(file, sizeof file, "%s/summary.json", path);
    if (summary != NULL) write_file(file, summary);
}

static void is_state(const char *path, ls_run_state written, ls_run_state state)
{
    ls_run_info i;
    ls_err err = {0};

    CHECK_OK(ls_run_read(&i, path, &err), &err);
    CHECK_EQ_STR(ls_run_state_name(i.written), ls_run_state_name(written));
    CHECK_EQ_STR(ls_run_state_name(i.state), ls_run_state_name(state));
    ls_run_info_release(&i);
}

static void times_come_back(void)
{
    char text[32];

    CHECK_EQ_STR(lsi_time_text(0, text), "1970-01-01T00:00:00.000Z");
    CHECK_EQ_STR(lsi_time_text(1763251201.9996, text), "2025-11-16T00:00:02.000Z");
    CHECK_EQ_STR(lsi_time_text((double)NAN, text), "");
    for (double t = 0; t < 4e9; t += 123456789.123)
        CHECK_NEAR(lsi_time_parse(lsi_time_text(t, text)), t, 0.00051);
    CHECK_NEAR(lsi_time_parse("2026-01-01T00:00:00Z"), 1767225600, 1e-9);
    static const char *const bad[] = {"",
                                      "now",
                                      "2026-01-01",
                                      "2026-01-01T00:00:00",
                                      "2026-01-01T00:00:00+01:00",
                                      "2026-13-01T00:00:00Z",
                                      "2026-01-01T00:00:00.Z",
                                      "2026-01-01T00:00:00.-12Z",
                                      "2026-01-01T-1:00:00Z"};
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) CHECK(isnan(lsi_time_parse(bad[k])));
    CHECK(isnan(lsi_time_parse(NULL)));
}

static void states_as_written_and_as_they_are(void)
{
    static const char *const names[] = {"completed", "paused", "failed", "killed"};

    for (int k = 0; k < 4; k++) {
        char path[64], text[128];
        snprintf(path, sizeof path, "is-%s", names[k]);
        snprintf(text, sizeof text, "{\"state\": \"%s\", \"owner_epoch\": 5}", names[k]);
        make_run(path, text);
        is_state(path, ls_run_state_of(names[k]), ls_run_state_of(names[k]));
        /* Its owner may still be about to leave, or may have left without saying so. */
        write_owner(path, "2026-01-01T00:00:00Z", NULL, 5, 1);
        is_state(path, ls_run_state_of(names[k]), ls_run_state_of(names[k]));
        write_owner(path, "2026-01-01T00:00:00Z", NULL, 5, 1000);
        is_state(path, ls_run_state_of(names[k]), ls_run_state_of(names[k]));
        /* The next opening is at work, or was killed before its first word. */
        write_owner(path, "2026-01-01T00:00:00Z", NULL, 6, 1);
        is_state(path, ls_run_state_of(names[k]), LS_RUN_RUNNING);
        write_owner(path, "2026-01-01T00:00:00Z", NULL, 6, 1000);
        is_state(path, ls_run_state_of(names[k]), LS_RUN_KILLED);
    }
    make_run("gone", "{\"state\": \"running\"}");
    is_state("gone", LS_RUN_RUNNING, LS_RUN_KILLED);
    write_owner("gone", "2026-01-01T00:00:00Z", NULL, 1, 2);
    is_state("gone", LS_RUN_RUNNING, LS_RUN_RUNNING); /* on another machine, with a fresh heartbeat */
    write_owner("gone", "2026-01-01T00:00:00Z", NULL, 1, 1000);
    is_state("gone", LS_RUN_RUNNING, LS_RUN_KILLED);
    make_run("unborn", NULL);
    is_state("unborn", LS_RUN_UNKNOWN, LS_RUN_UNKNOWN);
    write_owner("unborn", "2026-01-01T00:00:00Z", NULL, 1, 1000);
    is_state("unborn", LS_RUN_UNKNOWN, LS_RUN_KILLED);
}

static void damaged_files_are_named(void)
{
    static const char *const bad[] = {"", "[]", "{", "{\"state\": 7, \"ranks\": \"x\", \"steps\": -4}",
                                      "\x7f\x45"};
    ls_run_info i;
    ls_err err = {0};

    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        char path[64], file[128];
        snprintf(path, sizeof path, "bad-%zu", k);
        make_run(path, bad[k]);
        snprintf(file, sizeof file, "%s/owner.json", path);
        write_file(file, bad[k]);
        REQUIRE_OK(ls_run_read(&i, path, &err), &err);
        CHECK(i.state == LS_RUN_UNKNOWN && !i.alive && !i.has_owner && i.ranks == 0 && i.steps == -1);
        if (k != 3) CHECK_CONTAINS(i.trouble, "summary.json");
        ls_run_info_release(&i);
    }
    /* Nobody ever writes into these pipes. */
    make_run("pipes", NULL);
    REQUIRE(mkfifo("pipes/summary.json", 0666) == 0 && mkfifo("pipes/owner.json", 0666) == 0);
    REQUIRE_OK(ls_run_read(&i, "pipes", &err), &err);
    CHECK(i.state == LS_RUN_UNKNOWN && i.trouble[0] != '\0');
    ls_run_info_release(&i);
    CHECK_STATUS(ls_run_read(&i, "nowhere", &err), LS_INVALID, &err);
    err = (ls_err){0};
    CHECK_STATUS(ls_run_read(&i, "", &err), LS_INVALID, &err);
    REQUIRE(mkdir("empty", 0777) == 0);
    err = (ls_err){0};
    CHECK_STATUS(ls_run_read(&i, "empty", &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "no run directory");
}

static void set_mtime(const char *path, time_t t)
{
    REQUIRE(utimensat(AT_FDCWD, path, (const struct timespec[2]){{.tv_sec = t}, {.tv_sec = t}}, 0) == 0);
}

static void the_newest_is_by_content(void)
{
    char path[LS_PATH_MAX];
    ls_runs list;
    ls_err err = {0};

    CHECK_STATUS(ls_runs_newest(path, "runs", NULL, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "no run under runs/");
    REQUIRE(mkdir("runs", 0777) == 0);
    /* Names and times of files say the opposite. */
    make_run("runs/mnist-20990101-000000-ffff",
             "{\"state\": \"completed\", \"name\": \"mnist\", \"started\": \"2026-03-01T00:00:00.000Z\"}");
    make_run("runs/a",
             "{\"state\": \"paused\", \"name\": \"mnist\", \"started\": \"2026-03-01T00:00:00.001Z\"}");
    make_run("runs/vit", "{\"state\": \"paused\", \"name\": \"vit\", \"started\": \"2026-02-01T00:00:00Z\"}");
    set_mtime("runs/a/summary.json", 1000);
    set_mtime("runs/a", 1000);
    /* Older than there were such times: by the file. */
    make_run("runs/mnist-20250101-000000-0000", "{\"state\": \"completed\"}");
    set_mtime("runs/mnist-20250101-000000-0000/summary.json", 1735689600);
    REQUIRE(mkdir("runs/no-run", 0777) == 0);
    write_file("runs/file", "");
    write_file("runs/no-run/x", "");

    err = (ls_err){0};
    REQUIRE_OK(ls_runs_scan(&list, "runs", &err), &err);
    REQUIRE(list.n == 4);
    CHECK_EQ_STR(list.items[0].folder, "a");
    CHECK_EQ_STR(list.items[1].folder, "mnist-20990101-000000-ffff");
    CHECK_EQ_STR(list.items[2].folder, "vit");
    CHECK_EQ_STR(list.items[3].folder, "mnist-20250101-000000-0000");
    CHECK_EQ_STR(list.items[3].name, "mnist");
    ls_runs_release(&list);
    REQUIRE_OK(ls_runs_newest(path, "runs", "mnist", &err), &err);
    CHECK_EQ_STR(path, "runs/a");
    REQUIRE_OK(ls_runs_newest(path, "runs", "vit", &err), &err);
    CHECK_EQ_STR(path, "runs/vit");
    /* What was gone on with last is newer than what began later. */
    write_owner("runs/vit", "2026-04-01T00:00:00Z", NULL, 2, 1000);
    REQUIRE_OK(ls_runs_newest(path, "runs", NULL, &err), &err);
    CHECK_EQ_STR(path, "runs/vit");
    CHECK_STATUS(ls_runs_newest(path, "runs", "other", &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "\"other\"");
}

static void checkpoints_are_found(void)
{
    char config[LS_PATH_MAX], checkpoint[LS_PATH_MAX];
    ls_run_checkpoints c;
    ls_err err = {0};

    make_run("kept", "{}");
    CHECK_STATUS(ls_run_locate("kept", false, config, checkpoint, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "no checkpoint yet");
    err = (ls_err){0};
    REQUIRE_OK(ls_run_checkpoints_list(&c, "kept", &err), &err);
    CHECK(c.n == 0 && c.last == -1 && c.best == -1);
    ls_run_checkpoints_release(&c);
    REQUIRE(mkdir("kept/checkpoints", 0777) == 0 && mkdir("kept/checkpoints/step-00000020", 0777) == 0 &&
            mkdir("kept/checkpoints/step-00000003", 0777) == 0 &&
            mkdir("kept/checkpoints/step-00000030.partial", 0777) == 0 &&
            symlink("step-00000020", "kept/checkpoints/last") == 0);
    write_file("kept/checkpoints/step-00000003/manifest.json", "");
    REQUIRE_OK(ls_run_checkpoints_list(&c, "kept", &err), &err);
    REQUIRE(c.n == 2);
    CHECK(c.steps[0] == 3 && c.steps[1] == 20 && c.last == 20 && c.best == -1);
    ls_run_checkpoints_release(&c);
    REQUIRE_OK(ls_run_locate("kept", false, config, checkpoint, &err), &err);
    CHECK_EQ_STR(checkpoint, "kept/checkpoints/last");
    CHECK_EQ_STR(config, "kept/config.yaml");
    REQUIRE(symlink("step-00000003", "kept/checkpoints/best") == 0);
    REQUIRE_OK(ls_run_locate("kept", false, config, checkpoint, &err), &err);
    CHECK_EQ_STR(checkpoint, "kept/checkpoints/best");
    REQUIRE_OK(ls_run_locate("kept", true, config, checkpoint, &err), &err);
    CHECK_EQ_STR(checkpoint, "kept/checkpoints/last");
    REQUIRE_OK(ls_run_locate("kept/checkpoints/step-00000003", false, config, checkpoint, &err), &err);
    CHECK_EQ_STR(checkpoint, "kept/checkpoints/step-00000003");
    CHECK_CONTAINS(config, "config.yaml");
    CHECK_STATUS(ls_run_locate("", false, config, checkpoint, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "neither a run directory nor a checkpoint");
}

static ls_status all_of_it(void *arg, ls_err *err)
{
    ls_run *r = NULL;
    ls_runs list = {0};
    ls_run_checkpoints c = {0};
    ls_status st = LS_OK;

    (void)arg;
    LS_TRY(ls_run_create(&r, "mnist", "faults/run", err));
    LS_TRY(ls_runs_scan(&list, "runs", err));
    LS_TRY(ls_run_checkpoints_list(&c, "kept", err));
out:
    ls_run_checkpoints_release(&c);
    ls_runs_release(&list);
    ls_run_close(r);
    return st;
}

static void without_memory(void)
{
    check_faults("runs", all_of_it, NULL);
    CHECK(!exists("faults"));
}

int main(void)
{
    int rc;

    if (!enter_folder()) return 1;
    CHECK_RUN(times_come_back);
    CHECK_RUN(states_as_written_and_as_they_are);
    CHECK_RUN(damaged_files_are_named);
    CHECK_RUN(the_newest_is_by_content);
    CHECK_RUN(checkpoints_are_found);
    CHECK_RUN(without_memory);
    rc = CHECK_DONE();
    return leave_folder() ? rc : 1;
}
