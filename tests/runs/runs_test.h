/* runs_test.h: what the tests of runs share: a folder that is this process's working directory. */
#ifndef LS_TESTS_RUNS_TEST_H
#define LS_TESTS_RUNS_TEST_H

#include <stdbool.h>
#include <sys/types.h>

#include "runs/reader.h"

/* Makes the folder and goes there; leave_folder removes it. */
bool enter_folder(void);
bool leave_folder(void);

void write_file(const char *path, const char *text);
/* The bytes of a file as a text, "" when there is none; valid until the next call. */
const char *file_text(const char *path);
bool exists(const char *path);
/* An owner.json of a machine that is not this one, with a heartbeat `age` seconds ago. */
void write_owner(const char *run, const char *start, const char *ended, int epoch, double age);
/* Takes a new run, begins, and writes that it is running. */
ls_run *begin_run(const char *path);
ls_status write_state(ls_run *r, const char *state, ls_err *err);

/* A child that does `work` and then waits until it is killed, or told to leave. */
typedef struct child {
    pid_t pid;
    int ready; /* a byte comes when `work` is done, 'y' or 'n' */
    int leave; /* closed by the parent: the child calls _exit(0) */
} child;
child start_child(bool (*work)(void *arg), void *arg);
bool child_said_yes(const child *c);  /* waits for its byte */
void end_child(child *c, int number); /* 0: lets it leave; returns when it is gone */

#endif
