/* test_writer.c: the writer beside a run: what it keeps, its links, failing calls, sudden death.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "ckpt_test.h"

static void keeps_the_last_and_the_best(void)
{
    static const double metric[] = {0.9, 0.3, NAN, 0.5, 0.4, 0.35};
    const char *folder = ckpt_test_path("keep");
    ls_state *vars = ckpt_test_vars(1, false);
    ls_ckpt_writer *w = NULL;
    ls_ckpt_writer_stats stats;
    ls_err err = {0};

    REQUIRE_OK(ls_ckpt_writer_create(&w, folder,
                                     (ls_ckpt_keep){.last = 2, .best = 1, .larger_is_better = false},
                                     CKPT_TEST_SIZE, &err),
               &err);
    for (int i = 0; i < 6; i++)
        REQUIRE_OK(ls_ckpt_writer_submit(w, i + 1, vars, 5, NULL, metric[i], &err), &err);
    CHECK_OK(ls_ckpt_writer_wait(w, &err), &err);
    stats = ls_ckpt_writer_stats_of(w);
    CHECK_EQ_INT(stats.written, 6);
    CHECK_EQ_INT(stats.failed, 0);
    CHECK(stats.write_s > 0 && stats.submit_s > 0);
    CHECK(ckpt_test_there(folder, "step-00000002") && ckpt_test_there(folder, "step-00000005") &&
          ckpt_test_there(folder, "step-00000006"));
    CHECK(ckpt_test_there(folder, ".reserve"));
    ckpt_test_link_is(folder, "last", "step-00000006");
    ckpt_test_link_is(folder, "best", "step-00000002");
    ls_ckpt_writer_destroy(w);
    CHECK_EQ_INT(ckpt_test_entries(folder), 5);

    /* A second run goes on with what the first one knew; the other way round, the largest metric is best. */
    REQUIRE_OK(ls_ckpt_writer_create(&w, folder,
                                     (ls_ckpt_keep){.last = 1, .best = 1, .larger_is_better = true},
                                     CKPT_TEST_SIZE, &err),
               &err);
    REQUIRE_OK(ls_ckpt_writer_submit(w, 6, vars, 5, NULL, 0.1, &err), &err);
    CHECK_OK(ls_ckpt_writer_wait(w, &err), &err);
    ckpt_test_link_is(folder, "last", "step-00000006");
    ckpt_test_link_is(folder, "best", "step-00000005");
    ls_ckpt_writer_destroy(w);
    CHECK_EQ_INT(ckpt_test_entries(folder), 4);
    ckpt_test_whole(folder, "last");
    ckpt_test_whole(folder, "best");
    ls_state_destroy(vars);
}

static void writes_what_was_there_at_submit(void)
{
    const char *folder = ckpt_test_path("copy");
    ls_state *vars = ckpt_test_vars(1, false), *was = ckpt_test_vars(1, false),
             *got = ckpt_test_vars(2, false);
    json_t *state = json_pack("{s:i}", "step", 1);
    ls_ckpt_writer *w = NULL;
    ls_ckpt *c = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_ckpt_writer_create(&w, folder,
                                     (ls_ckpt_keep){.last = 1, .best = 0, .larger_is_better = false},
                                     CKPT_TEST_SIZE, &err),
               &err);
    REQUIRE_OK(ls_ckpt_writer_submit(w, 1, vars, 0, state, NAN, &err), &err);
    init_state(vars, 9);
    json_object_set_new(state, "step", json_integer(2));
    CHECK_OK(ls_ckpt_writer_wait(w, &err), &err);
    ls_ckpt_writer_destroy(w);
    REQUIRE_OK(ls_ckpt_open(&c, ckpt_test_path("copy/last"), &err), &err);
    CHECK_OK(ls_ckpt_load_state(c, got, &err), &err);
    CHECK(ckpt_test_equal(got, was));
    CHECK_EQ_INT(json_integer_value(json_object_get(ls_ckpt_state(c), "step")), 1);
    CHECK(!ckpt_test_there(folder, "best"));
    ls_ckpt_close(c);
    json_decref(state);
    ls_state_destroy(vars);
    ls_state_destroy(was);
    ls_state_destroy(got);
}

static void refuses_what_cannot_fit(void)
{
    ls_ckpt_writer *w = NULL;
    ls_err err = {0};

    CHECK_STATUS(ls_ckpt_writer_create(&w, ckpt_test_path("huge"),
                                       (ls_ckpt_keep){.last = 3, .best = 1, .larger_is_better = false},
                                       (size_t)1 << 55, &err),
                 LS_IO, &err);
    CHECK(w == NULL);
    CHECK_CONTAINS(err.text, "5 checkpoints of ");
    CHECK_CONTAINS(err.text, "are missing");
    CHECK_CONTAINS(err.text, "(180143985094819840 bytes)"); /* 5 of 2^55 */
    CHECK_CONTAINS(err.text, "make room there, or put the run on another disk (--run-dir)");
}

/* -- calls that fail, and death ---------------------------------------------------------------------------
 */

/* To ThreadSanitizer death is nothing new after failing calls, and it is slow to start processes. */
#ifdef __SANITIZE_THREAD__
enum { DEATHS = 0 };
#else
enum { DEATHS = 1 };
#endif

typedef struct fault {
    int n, at;   /* calls so far; the one that fails, from 1 */
    bool deadly; /* the process ends there */
} fault;

static int before(void *arg, const char *call)
{
    fault *f = arg;

    (void)call;
    if (++f->n != f->at) return 0;
    if (f->deadly) _exit(9);
    return EIO;
}

/* Writes step 1 undisturbed and step 2 with the fault. */
static ls_status two_steps(const char *folder, fault *f, const ls_state *vars, ls_err *err)
{
    lsi_io io = {before, f};
    ls_ckpt_writer *w = NULL;
    ls_status st;
    int at = f->at;

    f->at = 0;
    REQUIRE_OK(lsi_ckpt_writer_create(&w, folder,
                                      (ls_ckpt_keep){.last = 1, .best = 0, .larger_is_better = false},
                                      CKPT_TEST_SIZE, &io, err),
               err);
    REQUIRE_OK(ls_ckpt_writer_submit(w, 1, vars, 0, NULL, NAN, err), err);
    REQUIRE_OK(ls_ckpt_writer_wait(w, err), err);
    f->n = 0;
    f->at = at;
    REQUIRE_OK(ls_ckpt_writer_submit(w, 2, vars, 0, NULL, NAN, err), err);
    st = ls_ckpt_writer_wait(w, err);
    ls_ckpt_writer_destroy(w);
    return st;
}

/* `last` leads to a whole checkpoint, and the next start finds nothing to complain about. */
static void expect_good(const char *folder, const ls_state *vars)
{
    ls_ckpt_writer *w = NULL;
    ls_err err = {0};

    ckpt_test_whole(folder, "last");
    REQUIRE_OK(ls_ckpt_writer_create(&w, folder,
                                     (ls_ckpt_keep){.last = 1, .best = 0, .larger_is_better = false},
                                     CKPT_TEST_SIZE, &err),
               &err);
    REQUIRE_OK(ls_ckpt_writer_submit(w, 3, vars, 0, NULL, NAN, &err), &err);
    CHECK_OK(ls_ckpt_writer_wait(w, &err), &err);
    ls_ckpt_writer_destroy(w);
    ckpt_test_link_is(folder, "last", "step-00000003");
    CHECK_EQ_INT(ckpt_test_entries(folder), 2);
}

static void every_failing_call_leaves_a_good_one(void)
{
    ls_state *vars = ckpt_test_vars(1, false);
    int at = 1;

    ls_log_set_level(LS_LOG_ERROR);
    for (bool failed = true; failed; at++) {
        fault f = {.at = at};
        char name[32];
        const char *folder;
        ls_err err = {0};
        snprintf(name, sizeof name, "fail-%d", at);
        folder = ckpt_test_path(name);
        failed = two_steps(folder, &f, vars, &err) != LS_OK;
        if (failed) CHECK_CONTAINS(err.text, "checkpoint of step 2");
        expect_good(folder, vars);
    }
    CHECK(at > 10);
    printf("  %d calls failed in turn\n", at - 2);
    ls_log_set_level(LS_LOG_WARN);
    ls_state_destroy(vars);
}

static void death_at_every_call_leaves_a_good_one(void)
{
    ls_state *vars = ckpt_test_vars(1, false);
    int at = 1;

    for (bool died = true; died; at++) {
        char name[32];
        const char *folder;
        int status = 0;
        pid_t pid;
        snprintf(name, sizeof name, "die-%d", at);
        folder = ckpt_test_path(name);
        fflush(stdout);
        pid = fork();
        REQUIRE(pid >= 0);
        if (pid == 0) {
            fault f = {.at = at, .deadly = true};
            ls_err err = {0};
            _exit(two_steps(folder, &f, vars, &err) == LS_OK ? 0 : 1);
        }
        REQUIRE(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 9 || WEXITSTATUS(status) == 0));
        died = WIFEXITED(status) && WEXITSTATUS(status) == 9;
        expect_good(folder, vars);
    }
    CHECK(at > 10);
    printf("  died at %d calls in turn\n", at - 2);
    ls_state_destroy(vars);
}

int main(void)
{
    CHECK_RUN(keeps_the_last_and_the_best);
    CHECK_RUN(writes_what_was_there_at_submit);
    CHECK_RUN(refuses_what_cannot_fit);
    CHECK_RUN(every_failing_call_leaves_a_good_one);
    if (DEATHS) CHECK_RUN(death_at_every_call_leaves_a_good_one);
    ckpt_test_cleanup();
    return CHECK_DONE();
}
