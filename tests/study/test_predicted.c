/* test_predicted.c: predicted.json as it is written and read, damaged or not, and predictions beside what was
 * measured. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "study/predicted.h"

static char work[512];

static ls_study a_study(void)
{
    ls_study s = {.mode = LS_STUDY_WEAK, .counts = {1, 2, 4}, .n_counts = 3, .repeats = 1, .threads = 1};

    snprintf(s.dir, sizeof s.dir, "%s", work);
    return s;
}

static ls_predicted_point point(int count, double rate, double band)
{
    return (ls_predicted_point){.count = count,
                                .ranks = count,
                                .step_s = {1 / rate / band, 1 / rate, band / rate},
                                .rate = {rate / band, rate, rate * band},
                                .fit = 0.1,
                                .together = count > 1 ? 0.04 : 0,
                                .spread = 0.02,
                                .extrapolated = 0.03,
                                .waited = 0.5};
}

static ls_predicted some(void)
{
    ls_predicted p = {.calibration = "a \"quoted\" name.json",
                      .hash = "0123456789abcdef",
                      .machine = "m",
                      .network = "n",
                      .version = "0.1.0",
                      .time = 1700000000};
    const ls_predicted_point four = {.count = 4, .ranks = 4, .why = "more ranks than cores"};
    const ls_predicted_point one = point(1, 100, 1.1);
    ls_predicted_point two = point(2, 190, 1.2);

    two.after = true;
    CHECK(ls_predicted_add(&p, &four)); /* in any order */
    CHECK(ls_predicted_add(&p, &two));
    CHECK(ls_predicted_add(&p, &one));
    return p;
}

static void write_text(const char *text, size_t n)
{
    char path[600];
    FILE *f;

    snprintf(path, sizeof path, "%s/predicted.json", work);
    f = fopen(path, "w");
    REQUIRE(f != NULL && fwrite(text, 1, n, f) == n && fclose(f) == 0);
}

static size_t read_text(char *text, size_t size)
{
    char path[600];
    FILE *f;
    size_t n;

    snprintf(path, sizeof path, "%s/predicted.json", work);
    f = fopen(path, "r");
    REQUIRE(f != NULL);
    n = fread(text, 1, size - 1, f);
    text[n] = '\0';
    fclose(f);
    return n;
}

static void what_is_written_is_read(void)
{
    const ls_study s = a_study();
    const ls_predicted p = some();
    ls_predicted q;
    ls_err err = {0};
    bool there;

    CHECK_OK(ls_predicted_load(&q, &s, &there, &err), &err);
    CHECK(!there && q.n == 0);
    REQUIRE_OK(ls_predicted_write(&p, &s, &err), &err);
    REQUIRE_OK(ls_predicted_load(&q, &s, &there, &err), &err);
    CHECK(there);
    CHECK_EQ_STR(q.calibration, p.calibration);
    CHECK_EQ_STR(q.hash, p.hash);
    CHECK_EQ_STR(q.machine, p.machine);
    CHECK_EQ_STR(q.network, p.network);
    CHECK_EQ_STR(q.version, p.version);
    CHECK_EQ_INT(q.time, p.time);
    CHECK_EQ_INT(q.n, 3);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ_INT(q.of[i].count, 1 << i);
        CHECK_EQ_STR(q.of[i].why, p.of[i].why);
        CHECK_EQ_INT(q.of[i].after, p.of[i].after);
        CHECK_NEAR(q.of[i].rate.lo, p.of[i].rate.lo, 1e-6);
        CHECK_NEAR(q.of[i].step_s.hi, p.of[i].step_s.hi, 1e-8);
        CHECK_NEAR(q.of[i].together, p.of[i].together, 1e-8);
        CHECK_NEAR(q.of[i].spread, p.of[i].spread, 1e-8);
        CHECK_NEAR(q.of[i].waited, p.of[i].waited, 1e-8);
    }
    CHECK(ls_predicted_of(&q, 2) == &q.of[1]);
    CHECK(ls_predicted_of(&q, 3) == NULL);
}

/* A file that is cut anywhere is none, and never half of one. */
static void what_is_cut_is_refused(void)
{
    static char text[8192];
    const ls_study s = a_study();
    const ls_predicted p = some();
    ls_predicted q;
    ls_err err = {0};
    bool there;
    size_t n;

    REQUIRE_OK(ls_predicted_write(&p, &s, &err), &err);
    n = read_text(text, sizeof text);
    REQUIRE(n > 400);
    for (size_t i = 0; i + 2 < n; i += 3) { /* without its last bracket it is none */
        err = (ls_err){0};
        write_text(text, i);
        CHECK_STATUS(ls_predicted_load(&q, &s, &there, &err), LS_DATA, &err);
        CHECK_CONTAINS(err.text, "predicted.json");
        CHECK_CONTAINS(err.text, "Remove the file");
        CHECK_EQ_INT(q.n, 0);
    }
}

/* One of before has no error of whole steps. */
static void an_older_file_is_read(void)
{
    static char text[8192];
    const ls_study s = a_study();
    const ls_predicted p = some();
    ls_predicted q;
    ls_err err = {0};
    bool there;

    REQUIRE_OK(ls_predicted_write(&p, &s, &err), &err);
    read_text(text, sizeof text);
    for (char *at; (at = strstr(text, "\"together\"")) != NULL;) {
        const char *end = strchr(at, '\n') + 1;
        memmove(at, end, strlen(end) + 1);
    }
    write_text(text, strlen(text));
    CHECK_OK(ls_predicted_load(&q, &s, &there, &err), &err);
    CHECK_EQ_INT(q.n, 3);
    CHECK_NEAR(q.of[1].together, 0, 0);
    CHECK_NEAR(q.of[1].spread, p.of[1].spread, 1e-8);
}

static void refused(const char *from, const char *to, const char *says)
{
    static char text[8192], other[9000];
    const ls_study s = a_study();
    const ls_predicted p = some();
    ls_predicted q;
    ls_err err = {0};
    bool there;
    char *at;

    REQUIRE_OK(ls_predicted_write(&p, &s, &err), &err);
    read_text(text, sizeof text);
    at = strstr(text, from);
    REQUIRE(at != NULL);
    snprintf(other, sizeof other, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    write_text(other, strlen(other));
    CHECK_STATUS(ls_predicted_load(&q, &s, &there, &err), LS_DATA, &err);
    CHECK_CONTAINS(err.text, says);
}

static void what_makes_no_sense_is_refused(void)
{
    refused("\"version\": 1", "\"version\": 2", "version 2; this program reads version 1");
    refused("lockstep-predicted", "lockstep-network", "\"format\" is not");
    refused("\"calibration_xxh3\": \"0123456789abcdef\"", "\"calibration_xxh3\": \"\"",
            "\"calibration_xxh3\"");
    refused("\"time\": 1700000000", "\"time\": \"now\"", "\"time\"");
    refused("\"ranks\": 2", "\"ranks\": 3", "\"ranks\""); /* not those of its count */
    refused("\"count\": 2,\n   \"ranks\": 2", "\"count\": 1,\n   \"ranks\": 1", "\"count\""); /* twice */
    refused("\"mid\": 100.0", "\"mid\": 300.0", "\"samples_per_s\"");
    refused("\"after\": true", "\"after\": 1", "\"after\"");
    refused("more ranks than cores", "", "\"why\"");
    refused("\"together\": 0.04", "\"together\": -1", "\"together\"");
    refused("\"waited\": 0.5", "\"waited\": 1.5", "\"waited\"");
    refused("\"points\": [", "\"points\": 3, \"more\": [", "\"points\"");
}

static ls_study_row row(int count, double rate)
{
    return (ls_study_row){.count = count,
                          .ranks = count,
                          .repeats = rate > 0,
                          .rate = {0.98 * rate, rate > 0 ? rate : NAN, 1.02 * rate},
                          .predicted = {NAN, NAN, NAN},
                          .predicted_efficiency = {NAN, NAN, NAN},
                          .predicted_error = NAN};
}

static void errors_and_bands(void)
{
    const ls_study s = a_study();
    ls_study strong = s;
    const ls_predicted p = some();
    ls_study_results r = {.n = 3, .rows = {row(1, 80), row(2, 200), row(4, 390)}}, again = r;
    ls_text text = {0};

    strong.mode = LS_STUDY_STRONG;
    ls_predicted_judge(&s, &p, &r);
    CHECK(r.by == &p);
    CHECK_NEAR(r.rows[0].predicted_error, 100.0 / 80 - 1, 1e-9);
    CHECK(!r.rows[0].within); /* 91 to 110 */
    CHECK_NEAR(r.rows[1].predicted_error, 190.0 / 200 - 1, 1e-9);
    CHECK(r.rows[1].within && r.rows[1].predicted_after && !r.rows[0].predicted_after);
    CHECK(isnan(r.rows[2].predicted.mid) && isnan(r.rows[2].predicted_error));
    CHECK_EQ_STR(r.rows[2].unpredicted, "more ranks than cores");
    CHECK_EQ_INT(r.compared, 2);
    CHECK_EQ_INT(r.inside, 1);
    CHECK_NEAR(r.error_median, (0.25 + 0.05) / 2, 1e-9);
    CHECK_NEAR(r.error_largest, 0.25, 1e-9);
    CHECK_EQ_INT(r.largest_at, 1);
    /* The smallest run against itself has no error; of others what is wrong with computing cancels, if all
     * have the same to compute. */
    CHECK_NEAR(r.rows[0].predicted_efficiency.lo, 1, 1e-12);
    CHECK_NEAR(r.rows[1].predicted_efficiency.mid, 0.95, 1e-9);
    CHECK_NEAR(log(r.rows[1].predicted_efficiency.hi / 0.95),
               1.645 * sqrt(0.05 * 0.05 + 0.04 * 0.04 + 0.02 * 0.02 + 0.03 * 0.03), 1e-9);
    ls_predicted_judge(&strong, &p, &again);
    CHECK_NEAR(log(again.rows[1].predicted_efficiency.hi / 0.95),
               1.645 * sqrt(0.1 * 0.1 + 0.04 * 0.04 + 0.02 * 0.02 + 0.03 * 0.03), 1e-9);
    ls_predicted_advice(&s, &r, &text);
    REQUIRE(text.data != NULL);
    CHECK_CONTAINS(text.data,
                   "1 of 2 within the 90 % band; error of samples/s: median 15.0 %, largest 25.0 % (1 rank)");
    CHECK_CONTAINS(text.data, "No prediction for 4 ranks: more ranks than cores.");
    CHECK_CONTAINS(text.data, "made after the measurement, which prove less: for ranks 2.");
    ls_text_release(&text);
}

static void shared_cores_and_missing_points(void)
{
    const ls_study s = a_study();
    const ls_predicted p = some();
    ls_study_results r = {.n = 4, .rows = {row(1, 80), row(2, 200), row(3, 100), row(4, 0)}};

    r.rows[0].oversubscribed = true;
    ls_predicted_judge(&s, &p, &r);
    CHECK_CONTAINS(r.rows[0].unpredicted, "more threads than cores");
    CHECK(isnan(r.rows[0].predicted_error));
    CHECK_NEAR(r.rows[1].predicted_error, -0.05, 1e-9);
    CHECK(isnan(r.rows[1].predicted_efficiency.mid)); /* against what? */
    CHECK_CONTAINS(r.rows[2].unpredicted, "none was asked for");
    CHECK_EQ_INT(r.compared, 1);
}

int main(void)
{
    check_new_folder(work, sizeof work);
    CHECK_RUN(what_is_written_is_read);
    CHECK_RUN(what_is_cut_is_refused);
    CHECK_RUN(an_older_file_is_read);
    CHECK_RUN(what_makes_no_sense_is_refused);
    CHECK_RUN(errors_and_bands);
    CHECK_RUN(shared_cores_and_missing_points);
    {
        char command[600];
        snprintf(command, sizeof command, "rm -rf '%s'", work);
        CHECK_EQ_INT(system(command), 0);
    }
    return CHECK_DONE();
}
