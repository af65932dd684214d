/* test_tune.c: choosing by measurement, remembering, and surviving a damaged memory. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/tune.h"
#include "base/clock.h"
#include "base/rng.h"
#include "check.h"

static char folder[] = "/tmp/lockstep-tune-XXXXXX";

static const char *const names[] = {"first", "second", "third"};

typedef struct race {
    int fast; /* the candidate that returns at once; others burn two milliseconds */
    int runs;
    lsi_outcome first; /* what becomes of candidate 0; the default is that it runs */
} race;

static lsi_outcome run_candidate(void *ctx, int i)
{
    race *r = ctx;
    uint64_t end = ls_clock_ns() + 2000000;

    r->runs++;
    if (i == 0 && r->first != LSI_RAN) return r->first;
    while (i != r->fast && ls_clock_ns() < end) continue;
    return LSI_RAN;
}

static int choose(lsi_tuner *t, const char *problem, race *r)
{
    lsi_candidates c = {problem, 3, names, 1, run_candidate, r, NULL};

    return lsi_tune(t, &c);
}

static lsi_tuner *open_tuner(void)
{
    lsi_tuner *t;
    ls_err err = {0};

    REQUIRE_OK(lsi_tuner_create(&t, "cpu-2", "test", &err), &err);
    return t;
}

static void the_fastest_wins_and_is_remembered(void)
{
    lsi_tuner *t = open_tuner();
    race second = {.fast = 1}, third = {.fast = 2};

    CHECK_EQ_INT(choose(t, "p", &second), 1);
    CHECK(second.runs > 3);
    CHECK_EQ_INT(choose(t, "p", &third), 1); /* not measured again */
    CHECK_EQ_INT(third.runs, 0);
    lsi_tuner_destroy(t);

    t = open_tuner(); /* another process would see the same file */
    CHECK_EQ_INT(choose(t, "p", &third), 1);
    CHECK_EQ_INT(third.runs, 0);
    CHECK_EQ_INT(choose(t, "q", &third), 2);
    lsi_tuner_destroy(t);
}

static void a_choice_that_no_longer_exists_is_measured_anew(void)
{
    lsi_tuner *t = open_tuner();
    race r = {.fast = 0};
    static const char text[] = "gone\tforth\n";

    lsi_tuner_parse(t, text, sizeof text - 1);
    CHECK_EQ_INT(choose(t, "gone", &r), 0);
    CHECK(r.runs > 0);
    r.runs = 0;
    CHECK_EQ_INT(choose(t, "gone", &r), 0); /* once */
    CHECK_EQ_INT(r.runs, 0);
    lsi_tuner_destroy(t);

    t = open_tuner(); /* also where the old name is still in the file, before the new one */
    CHECK_EQ_INT(choose(t, "gone", &r), 0);
    CHECK_EQ_INT(r.runs, 0);
    lsi_tuner_destroy(t);
}

/* A candidate that has no memory now is the best again when it has. */
static void a_choice_without_all_candidates_is_for_now(void)
{
    lsi_tuner *t = open_tuner();
    race short_of = {.fast = 0, .first = LSI_CANNOT_NOW}, well = {.fast = 0};

    CHECK(choose(t, "short", &short_of) != 0);
    CHECK(lsi_tuned(t, "short"));
    CHECK(choose(t, "short", &well) != 0); /* this process stays with what it runs with */
    CHECK_EQ_INT(well.runs, 0);
    lsi_tuner_destroy(t);

    t = open_tuner();
    CHECK(!lsi_tuned(t, "short"));
    CHECK_EQ_INT(choose(t, "short", &well), 0);
    CHECK(well.runs > 0);
    lsi_tuner_destroy(t);
}

static void one_that_never_can_is_no_reason_to_forget(void)
{
    lsi_tuner *t = open_tuner();
    race without = {.fast = 1, .first = LSI_CANNOT}, with = {.fast = 0};

    CHECK_EQ_INT(choose(t, "never", &without), 1);
    lsi_tuner_destroy(t);
    t = open_tuner();
    CHECK_EQ_INT(choose(t, "never", &with), 1);
    CHECK_EQ_INT(with.runs, 0);
    lsi_tuner_destroy(t);
}

/* A candidate that was itself chosen from what there was memory for. */
typedef struct nested {
    lsi_tuner *t;
    race inner;
} nested;

static lsi_outcome run_nested(void *ctx, int i)
{
    nested *n = ctx;
    race outer = {.fast = 1};

    if (i == 0) (void)choose(n->t, "inner", &n->inner);
    return run_candidate(&outer, i);
}

static void a_choice_above_one_for_now_is_for_now(void)
{
    nested n = {open_tuner(), {.fast = 0, .first = LSI_CANNOT_NOW}};
    const lsi_candidates c = {"outer", 2, names, 0, run_nested, &n, NULL};

    CHECK_EQ_INT(lsi_tune(n.t, &c), 1);
    lsi_tuner_destroy(n.t);
    n.t = open_tuner();
    CHECK(!lsi_tuned(n.t, "outer"));
    n.inner = (race){.fast = 0};
    CHECK_EQ_INT(lsi_tune(n.t, &c), 1);
    CHECK(n.inner.runs > 0); /* measured anew, and kept this time */
    lsi_tuner_destroy(n.t);
    n.t = open_tuner();
    n.inner.runs = 0;
    CHECK_EQ_INT(lsi_tune(n.t, &c), 1);
    CHECK_EQ_INT(n.inner.runs, 0);
    lsi_tuner_destroy(n.t);
}

/* -- processes --------------------------------------------------------------------------------------------
 */

/* What a process that is ended by a signal has chosen, the next one has. */
static void a_choice_outlives_a_kill(void)
{
    const pid_t child = fork();
    int status = 0;
    race r = {.fast = 2}, other = {.fast = 0};
    lsi_tuner *t;

    REQUIRE(child >= 0);
    if (child == 0) {
        if (choose(open_tuner(), "killed", &r) == 2) kill(getpid(), SIGKILL);
        _exit(1);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    t = open_tuner();
    CHECK_EQ_INT(choose(t, "killed", &other), 2);
    CHECK_EQ_INT(other.runs, 0);
    lsi_tuner_destroy(t);
}

static void two_at_once_keep_what_both_have_chosen(void)
{
    lsi_tuner *a = open_tuner(), *b = open_tuner(), *later;
    race first = {.fast = 0}, second = {.fast = 1}, third = {.fast = 2};

    CHECK_EQ_INT(choose(a, "of a", &first), 0);
    CHECK_EQ_INT(choose(b, "of b", &second), 1);
    CHECK_EQ_INT(choose(b, "of a", &third), 0); /* b was opened before that was chosen */
    CHECK_EQ_INT(third.runs, 0);
    lsi_tuner_destroy(b);
    lsi_tuner_destroy(a);
    later = open_tuner();
    CHECK_EQ_INT(choose(later, "of a", &third), 0);
    CHECK_EQ_INT(choose(later, "of b", &third), 1);
    CHECK_EQ_INT(third.runs, 0);
    lsi_tuner_destroy(later);
}

/* Another process is done with the same problem while this one measures. */
static lsi_outcome run_overtaken(void *ctx, int i)
{
    lsi_tuner *other = open_tuner();
    race r = {.fast = 2}, own = {.fast = 1};

    (void)ctx;
    CHECK_EQ_INT(choose(other, "overtaken", &r), 2);
    lsi_tuner_destroy(other);
    return run_candidate(&own, i);
}

static void who_was_first_wins(void)
{
    lsi_tuner *t = open_tuner();
    const lsi_candidates c = {"overtaken", 3, names, 0, run_overtaken, NULL, NULL};

    CHECK_EQ_INT(lsi_tune(t, &c), 2);
    CHECK_EQ_INT(lsi_tune(t, &c), 2);
    lsi_tuner_destroy(t);
}

/* The one file in the folder. */
static void file_name(char *path, size_t size)
{
    char command[100];
    FILE *f;

    snprintf(command, sizeof command, "ls %s/cpu-2-*.txt", folder);
    f = popen(command, "r");
    REQUIRE(f != NULL && fgets(path, (int)size, f) != NULL);
    path[strcspn(path, "\n")] = '\0';
    pclose(f);
}

static void add_bytes(const char *path, const char *text)
{
    FILE *f = fopen(path, "a");

    REQUIRE(f != NULL && fputs(text, f) >= 0);
    REQUIRE(fclose(f) == 0);
}

/* What is given out stays, though the file comes to say something else or vanishes; and it is written again.
 */
static void what_is_in_use_stays(void)
{
    lsi_tuner *t = open_tuner();
    race first = {.fast = 0}, third = {.fast = 2};
    char path[200];

    CHECK_EQ_INT(choose(t, "mine", &first), 0);
    file_name(path, sizeof path);
    add_bytes(path, "mine\tsecond\n");
    CHECK_EQ_INT(choose(t, "next", &first), 0); /* it reads and writes the file */
    CHECK_EQ_INT(choose(t, "mine", &third), 0);
    REQUIRE(unlink(path) == 0);
    CHECK_EQ_INT(choose(t, "one more", &first), 0);
    lsi_tuner_destroy(t);
    t = open_tuner();
    CHECK_EQ_INT(choose(t, "mine", &third), 0);
    CHECK_EQ_INT(choose(t, "next", &third), 0);
    CHECK_EQ_INT(third.runs, 0);
    lsi_tuner_destroy(t);
}

static void a_torn_line_joins_no_other(void)
{
    lsi_tuner *t;
    race first = {.fast = 0}, third = {.fast = 2};
    char path[200];

    file_name(path, sizeof path);
    add_bytes(path, "split\tsecond");
    t = open_tuner();
    CHECK_EQ_INT(choose(t, "behind", &first), 0);
    lsi_tuner_destroy(t);
    t = open_tuner();
    CHECK_EQ_INT(choose(t, "behind", &third), 0);
    CHECK_EQ_INT(third.runs, 0);
    CHECK_EQ_INT(choose(t, "split", &third), 2);
    lsi_tuner_destroy(t);
}

static void off_takes_the_guess(void)
{
    lsi_tuner *t;
    race r = {.fast = 2};

    setenv("LOCKSTEP_TUNE", "off", 1);
    t = open_tuner();
    CHECK_EQ_INT(choose(t, "p", &r), 1);
    CHECK_EQ_INT(r.runs, 0);
    lsi_tuner_destroy(t);
    unsetenv("LOCKSTEP_TUNE");
}

static void nowhere_to_remember_is_no_error(void)
{
    lsi_tuner *t;
    race r = {.fast = 1};

    setenv("LOCKSTEP_CACHE", "/proc/nowhere", 1);
    t = open_tuner();
    CHECK_EQ_INT(choose(t, "p", &r), 1);
    lsi_tuner_destroy(t);
    setenv("LOCKSTEP_CACHE", folder, 1);
}

static void garbage_is_skipped(void)
{
    static const char text[] =
        "good\tsecond\nno tab here\n\tempty problem\nempty name\t\nnul\0byte\tthird\ntorn\tsec";
    lsi_tuner *t = open_tuner();
    race r = {.fast = 2};

    lsi_tuner_parse(t, text, sizeof text - 1);
    CHECK_EQ_INT(choose(t, "good", &r), 1);
    CHECK_EQ_INT(r.runs, 0);
    CHECK_EQ_INT(choose(t, "torn", &r), 2); /* a line without its end is not believed */
    for (uint32_t seed = 0; seed < 300; seed++) {
        ls_rng_key key = {seed, 0, 0, 0};
        char bytes[256];
        static const char alphabet[] = "ab\t\n\0 1";
        for (uint64_t i = 0; i < sizeof bytes; i++)
            bytes[i] = alphabet[ls_rng_word(&key, 0, 0, i) % (sizeof alphabet - 1)];
        lsi_tuner_parse(t, bytes, ls_rng_word(&key, 1, 0, 0) % sizeof bytes);
    }
    lsi_tuner_destroy(t);
}

int main(void)
{
    char command[64];

    REQUIRE(mkdtemp(folder) != NULL);
    setenv("LOCKSTEP_CACHE", folder, 1);
    unsetenv("LOCKSTEP_TUNE");
    CHECK_RUN(the_fastest_wins_and_is_remembered);
    CHECK_RUN(a_choice_that_no_longer_exists_is_measured_anew);
    CHECK_RUN(a_choice_without_all_candidates_is_for_now);
    CHECK_RUN(one_that_never_can_is_no_reason_to_forget);
    CHECK_RUN(a_choice_above_one_for_now_is_for_now);
    CHECK_RUN(a_choice_outlives_a_kill);
    CHECK_RUN(two_at_once_keep_what_both_have_chosen);
    CHECK_RUN(who_was_first_wins);
    CHECK_RUN(what_is_in_use_stays);
    CHECK_RUN(a_torn_line_joins_no_other);
    CHECK_RUN(off_takes_the_guess);
    CHECK_RUN(nowhere_to_remember_is_no_error);
    CHECK_RUN(garbage_is_skipped);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK_EQ_INT(system(command), 0);
    return CHECK_DONE();
}
