/* runs_test.c: files, runs and children of the tests. */
#include "runs_test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static char folder[] = "/tmp/lockstep-runs-XXXXXX";

bool enter_folder(void)
{
    return mkdtemp(folder) != NULL && chdir(folder) == 0;
}

bool leave_folder(void)
{
    char command[128];

    snprintf(command, sizeof command, "rm -rf %s", folder);
    return chdir("/") == 0 && system(command) == 0;
}

void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    REQUIRE(f != NULL);
    fputs(text, f);
    REQUIRE(fclose(f) == 0);
}

const char *file_text(const char *path)
{
    static char text[65536];
    FILE *f = fopen(path, "r");
    size_t n = f != NULL ? fread(text, 1, sizeof text - 1, f) : 0;

    if (f != NULL) fclose(f);
    text[n] = '\0';
    return text;
}

bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

void write_owner(const char *run, const char *start, const char *ended, int epoch, double age)
{
    char path[512], text[512];
    struct timespec now;

    snprintf(path, sizeof path, "%s/owner.json", run);
    snprintf(text, sizeof text,
             "{\"pid\": 1234, \"host\": \"elsewhere\", \"boot\": \"another\", \"start\": \"%s\", %s%s%s"
             "\"epoch\": %d, \"begun\": true, \"name\": \"mnist\", \"command\": \"lockstep train mnist\"}",
             start, ended != NULL ? "\"ended\": \"" : "", ended != NULL ? ended : "",
             ended != NULL ? "\", " : "", epoch);
    write_file(path, text);
    clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec -= (time_t)age;
    REQUIRE(utimensat(AT_FDCWD, path, (const struct timespec[2]){now, now}, 0) == 0);
}

ls_status write_state(ls_run *r, const char *state, ls_err *err)
{
    json_t *o = json_pack("{s:s, s:i, s:i, s:{s:{s:f}}}", "state", state, "ranks", 2, "steps", 7, "metrics",
                          "last", "loss", 0.5);
    ls_status st = ls_run_write_summary(r, o, err);

    json_decref(o);
    return st;
}

ls_run *begin_run(const char *path)
{
    ls_run *r = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_run_create(&r, "mnist", path, &err), &err);
    ls_run_enter(r);
    REQUIRE_OK(ls_run_begin(r, &err), &err);
    REQUIRE_OK(write_state(r, "running", &err), &err);
    return r;
}

child start_child(bool (*work)(void *arg), void *arg)
{
    int ready[2], leave[2];
    child c;

    REQUIRE(pipe2(ready, O_CLOEXEC) == 0 && pipe2(leave, O_CLOEXEC) == 0);
    fflush(NULL);
    c.pid = fork();
    REQUIRE(c.pid >= 0);
    if (c.pid == 0) {
        char answer, byte;
        close(leave[1]);
        answer = work(arg) ? 'y' : 'n';
        if (write(ready[1], &answer, 1) == 1) (void)!read(leave[0], &byte, 1);
        _exit(0);
    }
    close(ready[1]);
    close(leave[0]);
    c.ready = ready[0];
    c.leave = leave[1];
    return c;
}

bool child_said_yes(const child *c)
{
    char answer = 'n';

    return read(c->ready, &answer, 1) == 1 && answer == 'y';
}

void end_child(child *c, int number)
{
    if (number != 0) kill(c->pid, number);
    close(c->leave);
    waitpid(c->pid, NULL, 0);
    close(c->ready);
}
