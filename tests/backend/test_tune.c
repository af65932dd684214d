/* test_tune.c: choosing by measurement, remembering, and surviving a damaged memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
} race;

static bool run_candidate(void *ctx, int i)
{
    race *r = ctx;
    uint64_t end = ls_clock_ns() + 2000000;

    r->runs++;
    while (i != r->fast && ls_clock_ns() < end) continue;
    return true;
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
    race second = {1, 0}, third = {2, 0};

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
    race r = {0, 0};
    static const char text[] = "gone\tforth\n";

    lsi_tuner_parse(t, text, sizeof text - 1);
    CHECK_EQ_INT(choose(t, "gone", &r), 0);
    CHECK(r.runs > 0);
    lsi_tuner_destroy(t);
}

static void off_takes_the_guess(void)
{
    lsi_tuner *t;
    race r = {2, 0};

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
    race r = {1, 0};

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
    race r = {2, 0};

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
    CHECK_RUN(off_takes_the_guess);
    CHECK_RUN(nowhere_to_remember_is_no_error);
    CHECK_RUN(garbage_is_skipped);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK_EQ_INT(system(command), 0);
    return CHECK_DONE();
}
